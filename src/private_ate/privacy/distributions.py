"""The distribution of a released number's noise, as releases hold it, and its variance.

Several outcomes of the same units are drawn together from the L∞ distribution, or have a staircase
each with an equal part of ε, which has the smaller variance at large ε (docs/proofs/outcomes.md).
Nothing here loads scipy: quantiles and densities are in :mod:`private_ate.privacy.quantiles`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, assert_never

from private_ate.codec import NOT_NEGATIVE, POSITIVE

__all__ = [
    "DistributionName", "NoiseDistribution", "SharedNoise", "linf_variance", "stair_shape",
    "staircase_variance", "sum_noise",
]  # fmt: skip

DistributionName = Literal["laplace", "staircase"]


@dataclass(frozen=True, slots=True)
class NoiseDistribution:
    """Noise of a released number: ``unit`` times a draw of sensitivity one.

    Attributes
    ----------
    name : str
        Its distribution.
    unit : float
        What a sensitivity of one is, in units of the outcome.
    epsilon : float
        The ε of the draw.
    """

    name: DistributionName
    unit: Annotated[float, NOT_NEGATIVE]
    epsilon: Annotated[float | Fraction, POSITIVE]
    outcomes: ClassVar[int] = 1

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        epsilon = float(self.epsilon)
        match self.name:
            case "laplace":
                return linf_variance(self.outcomes) * (self.unit / epsilon) ** 2
            case "staircase":
                return self.unit**2 * staircase_variance(epsilon)
        assert_never(self.name)

    def scaled(self, factor: float) -> NoiseDistribution:
        """Return the noise of a multiple of the number."""
        return replace(self, unit=abs(factor) * self.unit)


@dataclass(frozen=True, slots=True)
class SharedNoise(NoiseDistribution):
    """Noise of a number that shares an L∞ draw with those of other outcomes.

    Attributes
    ----------
    outcomes : int
        How many numbers share the draw; one has Laplace's distribution.
    """

    outcomes: int = 1  # type: ignore[misc]  # every other draw has one number


def sum_noise(outcomes: int, epsilon: Fraction, moves: int = 1) -> NoiseDistribution:
    """Return the noise of a sum of each outcome, for a sensitivity of one move.

    Of the two distributions that cost ε the one with the smaller variance, a function of public
    numbers. ``moves`` is how many moves neighbours are apart.
    """
    stairs = NoiseDistribution("staircase", 1.0, epsilon / (outcomes * moves))
    shared = SharedNoise("laplace", 1.0, epsilon / moves, outcomes)
    return stairs if outcomes == 1 or stairs.variance < shared.variance else shared


def linf_variance(outcomes: int) -> float:
    """Return ``(m + 1)(m + 2)/3``, the variance of one coordinate of m in (sensitivity/ε)²."""
    return (outcomes + 1) * (outcomes + 2) / 3


def staircase_variance(epsilon: float) -> float:
    """Return the variance of staircase noise of unit sensitivity at ε.

    The size of the noise is ``G + V``: G geometric with ratio ``b = h²``, ``h = exp(−ε/2)``, and V
    of density ``1/h`` up to the inner width ``γ = h/(1 + h)`` and ``h`` from there to 1. In terms
    of h nothing cancels or overflows for ε from 1e-12 to 1e6.
    """
    half, inner = stair_shape(epsilon)
    whole = half * half / -math.expm1(-epsilon)  # E G
    whole_square = whole * (1 + half * half) / -math.expm1(-epsilon)
    part = (inner / (1 + half) + half * (1 - inner**2)) / 2  # E V
    part_square = (inner**2 / (1 + half) + half * (1 - inner**3)) / 3
    return whole_square + 2 * whole * part + part_square


def stair_shape(epsilon: float) -> tuple[float, float]:
    """Return ``h = exp(−ε/2)`` and the width ``γ = h/(1 + h)`` of the inner part of a stair."""
    half = math.exp(-epsilon / 2)
    return half, half / (1 + half)
