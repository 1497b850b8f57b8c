"""A site's two variances: that of the noise, which is known, and that of everything else.

A release reports its interval and the interval of its noise, both at one confidence. The
distribution of the noise is public, so its variance follows from the second. The first is as wide
as the noise and a normal error together; that error's variance is the sampling variance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from private_ate.effects.row_errors import row_variances
from private_ate.errors import ArgumentError
from private_ate.release.metadata import longer_half
from private_ate.sites.values import SiteEffect

if TYPE_CHECKING:
    from private_ate.release.metadata import Effect, Pair
    from private_ate.release.release import Release

_LARGEST: Final = 1e100  # whose square and its sums are still numbers
_SLACK: Final = 1e-9  # by which rounding may make ends differ


def read_site(name: str, release: Release, effect: Effect) -> SiteEffect:
    """Return a site's effect and its variances, without a weight yet; or refuse it, and say why."""
    interval, noise_interval = effect.interval, effect.noise_interval
    if interval is None:
        msg = (
            f"{name} has no confidence interval, so its sampling variance is not known; leave it "
            "out, or ask that site for a release with a confidence (it spends new ε)"
        )
        raise ArgumentError(msg)
    if noise_interval is None:
        msg = f"{name} does not tell how large its noise is (no noise interval); leave it out"
        raise ArgumentError(msg)
    coverage = _coverage(name, release)
    half = _half_width(name, effect.estimate, interval)
    noise = _half_width(name, effect.estimate, noise_interval, least=0.0)
    _refuse_cut(name, release, effect, interval)
    if noise > half * (1 + _SLACK):
        msg = f"{name} has an interval that is narrower than that of its noise: it was edited"
        raise ArgumentError(msg)
    found = row_variances(release, effect, coverage, quantile=noise, half=half)
    return SiteEffect(
        name, effect.estimate, interval, noise_interval, found.sampling, found.noise, weight=0.0
    )


def _coverage(name: str, release: Release) -> float:
    coverage = release.facts.confidence
    if not 0.5 <= coverage <= 0.9999:
        msg = f"{name} has a confidence of {coverage:g}, which no release has: it was edited"
        raise ArgumentError(msg)
    return coverage


def _half_width(name: str, estimate: float, pair: Pair, *, least: float = 1 / _LARGEST) -> float:
    """Return the longer half of an interval that holds its estimate.

    The interval of the noise may be a point, at a very large ε.
    """
    if not all(math.isfinite(number) and abs(number) <= _LARGEST for number in (estimate, *pair)):
        msg = f"{name} holds numbers that are not finite or beyond {_LARGEST:g}"
        raise ArgumentError(msg)
    half = longer_half(estimate, pair)
    if not pair[0] <= estimate <= pair[1] or half < least:
        msg = f"{name} has an interval that does not hold its estimate, or of no width"
        raise ArgumentError(msg)
    return half


def _refuse_cut(name: str, release: Release, effect: Effect, interval: Pair) -> None:
    """Refuse numbers that were cut at the outcome's range: what was cut off is not known."""
    outcome = release.outcome
    if outcome is None or outcome.bounds is None or outcome.column != effect.outcome:
        return
    reach = outcome.bounds[1] - outcome.bounds[0]
    cut = [abs(abs(number) - reach) <= _SLACK * reach for number in (effect.estimate, *interval)]
    if cut[0] or (cut[1] and cut[2]):
        msg = (
            f"{name} was cut at the declared range of the outcome, so its variance is not known; "
            "it says next to nothing, leave it out"
        )
        raise ArgumentError(msg)
