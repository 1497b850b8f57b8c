"""From released levels of several arms to means and all their contrasts, with intervals.

An outcome belongs to one arm, so that one ε pays for a level of every arm; what follows here is
made of those levels and the known distributions of their noise, and is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.domain import Interval
from private_ate.effects.estimate import ArmEstimate, Comparison
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import (
    Rule,
    fixed_uniforms,
    half_width,
    noise_draws,
    noise_half_width,
)
from private_ate.release.metadata import Arm, Contrast, Pair

__all__ = [
    "ALL_PAIRS",
    "TO_REFERENCE",
    "around",
    "compare_arms",
    "contrast_row",
    "pairs_in_order",
]

ALL_PAIRS: Final = "all pairs"
TO_REFERENCE: Final = "against the reference"
_DRAWS: Final = 20_000  # simulated errors behind the simultaneous factors


def compare_arms(
    arms: Sequence[ArmEstimate],
    labels: Sequence[str],
    bounds: Interval,
    *,
    coverage: float,
    at_once: float,
    rule: Rule | None,
) -> tuple[Comparison, dict[str, float]]:
    """Return arms and contrasts with their intervals, and how much wider simultaneous ones are.

    Contrasts are kept within ± the width of the outcome's bounds and means within the bounds.
    Intervals follow ``rule``; without one there are those of the noise alone. Simultaneous ones
    cover all contrasts together with the probability ``at_once``.
    """
    halves = _Halves(arms, coverage, rule)
    pairs = pairs_in_order(len(arms))
    factors = {} if rule is None else _simultaneous_factors(arms, halves, pairs, at_once)
    ends = (-bounds.width, bounds.width)
    contrasts = tuple(
        contrast_row(
            labels[first], labels[second],
            _within(arms[first].level.value - arms[second].level.value, ends),
            half=halves.whole(first, second), factor=factors.get(ALL_PAIRS),
            noise=halves.noise(first, second), width=bounds.width,
        )
        for first, second in pairs
    )  # fmt: skip
    shown = tuple(
        _released_arm(label, place, arms, halves, (bounds.low, bounds.high))
        for place, label in enumerate(labels)
    )
    return Comparison(shown, contrasts), factors


def pairs_in_order(arms: int) -> list[tuple[int, int]]:
    """Return (arm, against) by codes: against the reference, then later arms against earlier."""
    others = [(later, earlier) for earlier, later in combinations(range(1, arms), 2)]
    return [(arm, 0) for arm in range(1, arms)] + others


def contrast_row(
    arm: str,
    against: str,
    effect: float,
    *,
    half: float | None,
    factor: float | None,
    noise: float,
    width: float,
) -> Contrast:
    """Return a contrast with its intervals, which are kept within ``width`` of zero.

    ``half`` is the half-width of its own interval, None if no interval was paid for; that of the
    simultaneous one is ``factor`` times as wide.
    """
    ends = (-width, width)
    wider = None if half is None or factor is None else factor * half
    return Contrast(
        arm, against, effect,
        interval=around(effect, half, ends),
        simultaneous=around(effect, wider, ends),
        noise_interval=around(effect, noise, ends),
    )  # fmt: skip


def around(center: float, half: float | None, ends: Pair) -> Pair | None:
    """Return the interval of a half-width around a number, within what the number can be."""
    if half is None:
        return None
    return _within(center - half, ends), _within(center + half, ends)


def _within(value: float, ends: Pair) -> float:
    return min(max(value, ends[0]), ends[1])


class _Halves:
    """Half-widths of intervals by arms; without a rule of the noise alone."""

    def __init__(self, arms: Sequence[ArmEstimate], coverage: float, rule: Rule | None) -> None:
        self._arms = arms
        self._coverage = coverage
        self._rule = rule
        self._known: dict[tuple[int, ...], float] = {}

    def noise(self, *places: int, beyond: NoiseDistribution | None = None) -> float:
        """Return the half-width for the noise of those arms alone."""
        return noise_half_width(self._coverage, self._laws(places, beyond))

    def whole(self, *places: int, beyond: NoiseDistribution | None = None) -> float | None:
        """Return the half-width for noise and sampling; None if no interval was paid for."""
        if self._rule is None:
            return None
        if places not in self._known:
            self._known[places] = half_width(
                self._coverage,
                self._laws(places, beyond),
                [self._arms[place].level.variances for place in places],
                self._rule,
            )
        return self._known[places]

    def _laws(
        self, places: tuple[int, ...], beyond: NoiseDistribution | None
    ) -> list[NoiseDistribution]:
        laws = [law for place in places for law in self._arms[place].level.noise]
        return laws if beyond is None else [*laws, beyond]


def _released_arm(
    label: str, place: int, arms: Sequence[ArmEstimate], halves: _Halves, ends: Pair
) -> Arm:
    arm = arms[place]
    beyond = arm.mean_noise
    (noise,) = arm.level.noise
    mean = None if arm.mean is None else _within(arm.mean, ends)
    interval = noise_interval = None
    if mean is not None:
        interval = around(mean, halves.whole(place, beyond=beyond), ends)
        noise_interval = around(mean, halves.noise(place, beyond=beyond), ends)
    return Arm(
        label, arm.units, mean, interval, noise_interval,
        noise=_plain(noise), mean_noise=None if beyond is None else _plain(beyond),
        variances=arm.level.variances, weighted=arm.weighted,
    )  # fmt: skip


def _plain(law: NoiseDistribution) -> NoiseDistribution | None:
    """Return noise with its ε as the number that JSON holds; None if outcomes share the draw."""
    if law.outcomes > 1:
        return None
    return NoiseDistribution(law.name, float(law.unit), float(law.epsilon))


def _simultaneous_factors(
    arms: Sequence[ArmEstimate],
    halves: _Halves,
    pairs: list[tuple[int, int]],
    coverage: float,
) -> dict[str, float]:
    """Return how much wider intervals must be to cover all at once, from simulated errors.

    Contrasts share arms, which Tukey's and Dunnett's intervals use and Bonferroni's do not: the
    factor is a quantile of the largest error of a contrast relative to its own half-width.
    """
    # Streams go to arms by their errors, so that the order of arms does not matter.
    by_error = sorted(range(len(arms)), key=lambda place: _order_of(arms[place]))
    errors = [_errors(by_error.index(place), arm) for place, arm in enumerate(arms)]
    largest = np.zeros(_DRAWS)
    found = {}
    for count, (first, second) in enumerate(pairs, start=1):
        half = halves.whole(first, second) or 0.0
        if half > 0:
            np.maximum(largest, np.abs(errors[first] - errors[second]) / half, out=largest)
        if count in (len(arms) - 1, len(pairs)):
            scope = TO_REFERENCE if count < len(arms) else ALL_PAIRS
            found[scope] = max(1.0, float(np.quantile(largest, coverage)))
    return {scope: found[scope] for scope in (ALL_PAIRS, TO_REFERENCE)}


def _order_of(arm: ArmEstimate) -> tuple[object, ...]:
    (noise,) = arm.level.noise
    return noise.unit, noise.name, noise.epsilon, arm.level.variances


def _errors(place: int, arm: ArmEstimate) -> Floats:
    """Return simulated errors of a level: its noise, and a normal of one of its variances."""
    named = f"errors of place {place} behind simultaneous intervals"
    noise, normal, which = fixed_uniforms(named, 3, _DRAWS)
    (own,) = arm.level.noise
    likely = np.asarray(arm.level.variances)
    chosen = likely[np.minimum((which * likely.size).astype(np.intp), likely.size - 1)]
    errors: Floats = noise_draws(own, noise) + np.sqrt(chosen) * ndtri(normal)
    return errors
