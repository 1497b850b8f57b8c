"""What the noise of a release adds to its variance, from its public law and its noise interval.

The law of the last step is told by the release's steps, its size by the noise interval: one number,
the quantile at the release's confidence, fixes the scale. Everything else of the interval counts as
a normal error beside that noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtr, ndtri

from private_ate.arrays import Floats
from private_ate.privacy.distributions import DistributionName
from private_ate.privacy.distributions import NoiseDistribution as ArmNoise
from private_ate.privacy.quantiles import (
    staircase_quantile,
    staircase_variance,
    two_laplace_quantile,
    two_staircase_quantile,
)
from private_ate.release.intervals import chance_beyond, half_width

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.release.metadata import Effect, Step

__all__ = ["NoiseLaw", "chance_of_effect", "noise_law"]

# Steps whose noise is that of the effect itself; several of them are one draw an arm. Those of the
# second kind have noise intervals that are normal by definition.
_LAST_STEPS: Final = ("effect", "mean effect", "outcome sum", "outcome sums")
_NORMAL_STEPS: Final = ("mean score", "mean and variance of scores")
_ROUNDED_LAWS: Final = ("trimmed_centre", "laplace_disjoint")  # near Laplace's, of no exact form
_LARGEST_EPSILON: Final = 1000.0  # beyond it the quantiles of a staircase are no numbers
_STAIRCASES: Final = ("staircase", "staircase_disjoint")
_LAPLACES: Final = ("laplace", "laplace_disjoint", "laplace_rows")


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The noise of one effect, in units of the outcome.

    Attributes
    ----------
    deviation : float
        Its standard deviation.
    places, shares : array of float
        Sizes that the noise takes, and how likely each is; empty if it counts as normal.
    """

    deviation: float
    places: Floats = field(default_factory=lambda: np.zeros(0))
    shares: Floats = field(default_factory=lambda: np.zeros(0))

    def normal_beside(self, half: float, coverage: float) -> float:
        """Return the standard deviation of a normal error that widens the interval to ``half``.

        It is the one with ``P(|noise + error| ≤ half) = coverage``; zero if the noise alone is
        that wide.
        """
        reach = half / float(ndtri((1 + coverage) / 2))
        if not self.places.size:
            return math.sqrt(max(reach**2 - self.deviation**2, 0.0))
        low, high = 0.0, reach
        while high - low > 1e-12 * reach:
            middle = (low + high) / 2
            if self._covered(half, middle) > coverage:
                low = middle
            else:
                high = middle
        return low

    def _covered(self, half: float, deviation: float) -> float:
        upper = ndtr((half - self.places) / deviation)
        inside = upper - ndtr((-half - self.places) / deviation)
        return float(inside @ self.shares)


def noise_law(
    release: Release, effect: Effect, coverage: float, *, quantile: float, half: float
) -> NoiseLaw:
    """Return the noise of a row whose quantile at a coverage is known, as is half its interval.

    Where the release does not tell the shape of the law, the variance is the largest that a
    normal law, Laplace's and, unless the mechanism is known to be near those, the staircases among
    its steps have with this quantile (without steps, one at the whole ε), but no more than the
    first two would have if all of the interval were noise.
    """
    if quantile <= 0:
        return NoiseLaw(0.0)
    if any(step.name in _NORMAL_STEPS for step in release.steps):
        return NoiseLaw(quantile * _normal_ratio(coverage))
    draws = _draws(release, effect)
    if draws is None:
        usual = max(_normal_ratio(coverage), _laplace_ratio(coverage))
        stairs = []
        if not any(step.mechanism in _ROUNDED_LAWS for step in release.steps):
            stairs = [_staircase_ratio(coverage, epsilon) for epsilon in _stairs(release)]
        return NoiseLaw(min(quantile * max([usual, *stairs]), half * usual))
    unit = quantile / draws.quantile(coverage)
    places, shares = draws.places()
    return NoiseLaw(unit * draws.deviation, unit * places, shares)


def chance_of_effect(
    release: Release, effect: Effect, coverage: float, *, quantile: float, half: float
) -> float:
    """Return how likely errors alone are as large as the effect, were there none.

    The errors are the noise, whose quantile at a coverage is known, and the normal error that makes
    the interval as wide as it is: at the interval's own end the chance is one less the coverage.
    Where the shape of the noise is not told it is the larger chance of a normal law and of
    Laplace's, whose tails are longer.
    """
    size = abs(effect.estimate)
    normal = 2 * float(ndtr(-size / (half * _normal_ratio(coverage))))
    if quantile <= 0 or any(step.name in _NORMAL_STEPS for step in release.steps):
        return normal
    drawn = _draws(release, effect)
    laws = (drawn or _Draws("laplace", 1.0, (1.0,))).laws(quantile, coverage)
    variance = _variance_beside(laws, half, coverage)
    chance = chance_beyond(size, laws, [(variance,)], "convolved")
    return chance if drawn is not None else max(chance, normal)


def _variance_beside(laws: list[ArmNoise], half: float, coverage: float) -> float:
    """Return the variance of a normal error that widens the interval of noises to ``half``."""
    low, high = 0.0, half * _normal_ratio(coverage)
    for _ in range(45):
        middle = (low + high) / 2
        if half_width(coverage, laws, [(middle**2,)], "convolved") < half:
            low = middle
        else:
            high = middle
    return low**2


@dataclass(frozen=True, slots=True)
class _Draws:
    """One draw of noise, or the difference of two, by mechanism, ε and sensitivities."""

    mechanism: str
    epsilon: float
    sizes: tuple[float, ...]

    @property
    def deviation(self) -> float:
        if self.mechanism in _STAIRCASES:
            one = math.sqrt(staircase_variance(self.epsilon))
        else:
            one = math.sqrt(2) / self.epsilon
        return one * math.hypot(*self.sizes)

    def quantile(self, coverage: float) -> float:
        first, second = (*self.sizes, 0.0)[:2]
        if self.mechanism in _STAIRCASES:
            return two_staircase_quantile(coverage, self.epsilon, first, second)
        return two_laplace_quantile(coverage, first / self.epsilon, second / self.epsilon)

    def laws(self, quantile: float, coverage: float) -> list[ArmNoise]:
        """Return the draws in units of the outcome, of which a quantile is known."""
        unit = quantile / self.quantile(coverage)
        name: DistributionName = "staircase" if self.mechanism in _STAIRCASES else "laplace"
        return [ArmNoise(name, unit * size, self.epsilon) for size in self.sizes]

    def places(self) -> tuple[Floats, Floats]:
        """Return sizes of the noise and their shares."""
        levels, shares = _levels(400 if len(self.sizes) == 1 else 60)
        one = np.array([self._unit_quantile(level) for level in levels])
        if len(self.sizes) == 1:
            return self.sizes[0] * one, shares
        first, second = (size * one for size in self.sizes)
        both = np.outer(shares, shares).ravel() / 2
        sums = np.abs([np.add.outer(first, second), np.subtract.outer(first, second)])
        return sums.ravel(), np.concatenate([both, both])

    def _unit_quantile(self, coverage: float) -> float:
        if self.mechanism in _STAIRCASES:
            return staircase_quantile(coverage, self.epsilon)
        return -math.log1p(-coverage) / self.epsilon


def _draws(release: Release, effect: Effect) -> _Draws | None:
    """Read the law of a row off the steps; none where they do not tell it."""
    steps = _last_steps(release)
    laws = {(step.mechanism, step.epsilon) for step in steps}
    if len(laws) != 1 or any(step.part for step in steps):  # rows of subgroups mix their draws
        return None
    ((mechanism, epsilon),) = laws
    sizes = tuple(float(size) for step in steps for size in step.sensitivity or ())
    known = mechanism in _STAIRCASES or mechanism in _LAPLACES
    if not known or not _is_drawn(epsilon) or not all(size > 0 for size in sizes):
        return None
    if len(sizes) > 2:
        sizes = _sizes_of_arms(release, effect, sizes)
    return _Draws(mechanism, epsilon, sizes) if len(sizes) in (1, 2) else None


def _stairs(release: Release) -> list[float]:
    """Return the ε of every staircase that was drawn, or might have been."""
    if not release.steps:
        return [min(float(release.epsilon), _LARGEST_EPSILON)]
    drawn = [_stair_epsilon(step) for step in release.steps if step.mechanism.startswith("stair")]
    return [epsilon for epsilon in drawn if _is_drawn(epsilon)]


def _is_drawn(epsilon: float) -> bool:
    """Say whether a law at this ε has a quantile that is a number."""
    return 1e-13 < epsilon <= _LARGEST_EPSILON


def _stair_epsilon(step: Step) -> float:
    """Return the ε of one draw; a step of several moves tells it by its scale alone."""
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


def _last_steps(release: Release) -> list[Step]:
    return [step for step in release.steps if step.name.partition(", ")[0] in _LAST_STEPS]


def _sizes_of_arms(release: Release, effect: Effect, sizes: tuple[float, ...]) -> tuple[float, ...]:
    """Pick the two arms of a row out of one size per arm, the reference first."""
    arms = () if release.treatment is None else release.treatment.arms
    if len(arms) != len(sizes) or not {effect.arm, effect.against} <= set(arms):
        return ()
    return sizes[arms.index(effect.arm)], sizes[arms.index(effect.against)]


@lru_cache(maxsize=4)
def _levels(count: int) -> tuple[Floats, Floats]:
    """Return midpoints and widths of slices of the unit interval, finer towards one."""
    tails = np.concatenate(
        [np.linspace(1.0, 0.1, count // 2, endpoint=False), np.geomspace(0.1, 1e-9, count // 2)]
    )
    edges = 1 - np.concatenate([tails, [0.0]])
    return (edges[:-1] + edges[1:]) / 2, np.diff(edges)


def _normal_ratio(coverage: float) -> float:
    """Return the standard deviation over the quantile of a normal law."""
    return 1 / float(ndtri((1 + coverage) / 2))


def _laplace_ratio(coverage: float) -> float:
    return math.sqrt(2) / -math.log1p(-coverage)


def _staircase_ratio(coverage: float, epsilon: float) -> float:
    return math.sqrt(staircase_variance(epsilon)) / staircase_quantile(coverage, epsilon)
