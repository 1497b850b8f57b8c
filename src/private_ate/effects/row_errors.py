"""The errors of one released row: its noise by distribution and size, and the normal error beside.

The steps of a release state the distribution of the last noise, the noise interval its size: one
number, the quantile at the release's confidence, fixes the scale. Everything else of the interval
counts as a normal error beside that noise.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from scipy.special import ndtr, ndtri

from private_ate.privacy.distributions import NoiseDistribution, staircase_variance
from private_ate.privacy.quantiles import staircase_quantile, two_staircase_quantile
from private_ate.release.intervals import chance_beyond, half_width, noise_half_width
from private_ate.release.metadata import Effect, Step, longer_half
from private_ate.release.release import Release

# Steps whose noise is that of the effect itself; several of them are one draw an arm. Those of the
# second kind have noise intervals that are normal by definition.
_LAST_STEPS: Final = ("effect", "mean effect", "outcome sum", "outcome sums")
_NORMAL_STEPS: Final = ("mean score", "mean and variance of scores")
# Near Laplace's distribution, of no exact form.
_ROUNDED: Final = ("trimmed_centre", "joint_centres", "laplace_disjoint")
_DISTRIBUTIONS: Final[dict[str, Literal["staircase", "laplace"]]] = {
    "staircase": "staircase",
    "staircase_disjoint": "staircase",
    "laplace": "laplace",
    "laplace_disjoint": "laplace",
    "laplace_rows": "laplace",
}
_LARGEST_EPSILON: Final = 1000.0  # beyond it the quantiles of a staircase are no numbers


class RowVariances(NamedTuple):
    """The variance of a row's noise, and that of everything else that its interval covers."""

    noise: float
    sampling: float


def row_variances(release: Release, effect: Effect) -> RowVariances:
    """Return both variances of a row that has an interval and one of its noise.

    Where the release does not state the shape of the noise, its variance is the largest that a
    normal distribution, Laplace's and, unless the mechanism is known to be near those, the
    staircases among its steps have with this quantile (without steps, one at the whole ε), but no
    more than the first two would have if all of the interval were noise.
    """
    coverage = release.facts.confidence
    quantile, half = _reaches(effect)
    noises = _noises_of(release, effect, quantile)
    if noises:
        variance = sum(noise.variance for noise in noises)
        return RowVariances(variance, _variance_beside(tuple(noises), half, coverage))
    normal = _normal_ratio(coverage)
    deviation = quantile * normal
    if quantile > 0 and not _is_normal(release):
        usual = max(normal, math.sqrt(2) / -math.log1p(-coverage))  # Laplace's
        stairs = []
        if not any(step.mechanism in _ROUNDED for step in release.steps):
            stairs = [
                math.sqrt(staircase_variance(epsilon)) / staircase_quantile(coverage, epsilon)
                for epsilon in _stairs(release)
            ]
        deviation = min(quantile * max([usual, *stairs]), half * usual)
    return RowVariances(deviation**2, max((half * normal) ** 2 - deviation**2, 0.0))


def chance_of_effect(release: Release, effect: Effect) -> float:
    """Return how likely errors alone are as large as the effect, were there none.

    The errors are the noise, whose quantile at a coverage is known, and the normal error that makes
    the interval as wide as it is: at the interval's own end the chance is one less the coverage.
    Where the shape of the noise is not known it is the larger chance of a normal distribution and
    of Laplace's, whose tails are longer.
    """
    size, coverage = abs(effect.estimate), release.facts.confidence
    quantile, half = _reaches(effect)
    if half <= 0:
        return 1.0 if size == 0 else 0.0
    normal = 2 * float(ndtr(-size / (half * _normal_ratio(coverage))))
    if quantile <= 0 or _is_normal(release):
        return normal
    known = _noises_of(release, effect, quantile)
    laplace = [NoiseDistribution("laplace", 1.0, 1.0)]
    noises = known or _scaled(laplace, coverage, quantile)
    variance = _variance_beside(tuple(noises), half, coverage)
    chance = chance_beyond(size, noises, [(variance,)], "convolved")
    return chance if known else max(chance, normal)


def _reaches(effect: Effect) -> tuple[float, float]:
    """Return the half-widths of the noise interval and of the interval."""
    pairs = effect.noise_interval or (math.nan, math.nan), effect.interval or (math.nan, math.nan)
    quantile, half = (longer_half(effect.estimate, pair) for pair in pairs)
    return quantile, half


def _is_normal(release: Release) -> bool:
    return any(step.name in _NORMAL_STEPS for step in release.steps)


def _normal_ratio(coverage: float) -> float:
    """Return the standard deviation over the quantile of a normal distribution."""
    return 1 / float(ndtri((1 + coverage) / 2))


@lru_cache(maxsize=256)  # every form that shows a release asks for the p-values of its rows
def _variance_beside(noises: tuple[NoiseDistribution, ...], half: float, coverage: float) -> float:
    """Return the variance of a normal error that widens the interval of noises to ``half``."""
    low, high = 0.0, half * _normal_ratio(coverage)
    for _ in range(45):
        middle = (low + high) / 2
        if half_width(coverage, noises, [(middle**2,)], "convolved") < half:
            low = middle
        else:
            high = middle
    return low**2


def _noises_of(release: Release, effect: Effect, quantile: float) -> list[NoiseDistribution]:
    """Return the noises of a row, whose sum has this quantile; none where steps do not say."""
    steps = [step for step in release.steps if step.name.partition(", ")[0] in _LAST_STEPS]
    kinds = {(step.mechanism, step.epsilon) for step in steps}
    # Rows of subgroups mix their draws.
    if quantile <= 0 or _is_normal(release) or len(kinds) != 1 or any(one.part for one in steps):
        return []
    ((mechanism, epsilon),) = kinds
    name = _DISTRIBUTIONS.get(mechanism)
    sizes = tuple(float(size) for step in steps for size in step.sensitivity or ())
    if name is None or not _is_drawn(epsilon) or not all(size > 0 for size in sizes):
        return []
    if len(sizes) > 2:
        sizes = _sizes_of_arms(release, effect, sizes)
    drawn = [NoiseDistribution(name, size, epsilon) for size in sizes]
    return _scaled(drawn, release.facts.confidence, quantile)


def _sizes_of_arms(release: Release, effect: Effect, sizes: tuple[float, ...]) -> tuple[float, ...]:
    """Pick the two arms of a row out of one size per arm, the reference first."""
    arms = () if release.treatment is None else release.treatment.arms
    if len(arms) != len(sizes) or not {effect.arm, effect.against} <= set(arms):
        return ()
    return sizes[arms.index(effect.arm)], sizes[arms.index(effect.against)]


def _scaled(
    noises: list[NoiseDistribution], coverage: float, quantile: float
) -> list[NoiseDistribution]:
    """Return the noises in units of the outcome, in which their sum has this quantile."""
    if not noises:
        return []
    first, *others = noises
    if first.name == "staircase" and others:  # exactly as releases have it
        epsilon = float(first.epsilon)
        own = two_staircase_quantile(coverage, epsilon, first.unit, others[0].unit)
    else:
        own = noise_half_width(coverage, noises)
    return [noise.scaled(quantile / own) for noise in noises]


def _stairs(release: Release) -> list[float]:
    """Return the ε of every staircase that was drawn, or might have been."""
    if not release.steps:
        return [min(float(release.epsilon), _LARGEST_EPSILON)]
    drawn = [_stair_epsilon(step) for step in release.steps if step.mechanism.startswith("stair")]
    return [epsilon for epsilon in drawn if _is_drawn(epsilon)]


def _is_drawn(epsilon: float) -> bool:
    """Say whether noise at this ε has a quantile that is a number."""
    return 1e-13 < epsilon <= _LARGEST_EPSILON


def _stair_epsilon(step: Step) -> float:
    """Return the ε of one draw; a step of several moves shows it by its scale alone."""
    if not step.scale or not step.sensitivity or not 0 < step.scale[0] < 1e100:
        return step.epsilon
    deviation = step.scale[0] / max(step.sensitivity[0], 1)
    low, high = math.log(1e-6), math.log(1e3)  # of ε; the variance falls as it grows
    for _ in range(60):
        middle = (low + high) / 2
        if staircase_variance(math.exp(middle)) > deviation**2:
            low = middle
        else:
            high = middle
    return math.exp(low)
