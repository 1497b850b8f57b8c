"""By which law sums of outcomes get their noise: the quieter of two, told by public numbers.

One outcome has the staircase. Several outcomes of the same people are drawn together from the L∞
law, or have a staircase each with an equal part of ε, which is quieter at large ε. Proof:
docs/proofs/outcomes.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from private_ate.privacy.cube_law import cube_variance
from private_ate.privacy.quantiles import staircase_variance

__all__ = ["SumLaw"]


@dataclass(frozen=True, slots=True)
class SumLaw:
    """The law of one sum's noise, for a sensitivity of one move.

    Attributes
    ----------
    name : "staircase" or "cube"
        The law.
    epsilon : Fraction
        The ε of the draw.
    outcomes : int
        How many numbers share a cube; one for a staircase.
    """

    name: Literal["staircase", "cube"]
    epsilon: Fraction
    outcomes: int = 1

    @classmethod
    def of(cls, outcomes: int, epsilon: Fraction, moves: int = 1) -> SumLaw:
        """Return the law of sums of some outcomes, where a neighbour is so many moves away."""
        stairs = cls("staircase", epsilon / (outcomes * moves))
        cube = cls("cube", epsilon / moves, outcomes)
        return stairs if outcomes == 1 or stairs.variance < cube.variance else cube

    @property
    def variance(self) -> float:
        """The variance of the noise in squared sensitivities."""
        epsilon = float(self.epsilon)
        if self.name == "staircase":
            return staircase_variance(epsilon)
        return cube_variance(self.outcomes) / epsilon**2
