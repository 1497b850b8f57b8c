"""The distribution of a released number's noise, as releases hold it and intervals read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from private_ate.codec import NOT_NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from private_ate.privacy.sum_law import SumLaw

__all__ = ["DistributionName", "NoiseDistribution", "SharedNoise"]

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

    @classmethod
    def of_sum(cls, law: SumLaw, unit: float) -> NoiseDistribution:
        """Return the noise of a released sum."""
        if law.name == "cube":
            return SharedNoise("laplace", unit, law.epsilon, law.outcomes)
        return NoiseDistribution("staircase", unit, law.epsilon)

    def scaled(self, factor: float) -> NoiseDistribution:
        """Return the noise of a multiple of the number."""
        return replace(self, unit=abs(factor) * self.unit)


@dataclass(frozen=True, slots=True)
class SharedNoise(NoiseDistribution):
    """Noise of a number that shares its draw with those of other outcomes; by itself Laplace's.

    Attributes
    ----------
    outcomes : int
        How many numbers share the draw.
    """

    outcomes: int = 1  # type: ignore[misc]  # every other draw has one number
