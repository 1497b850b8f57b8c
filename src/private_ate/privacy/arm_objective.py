"""Objective perturbation of a multinomial model: Lemma 2K of docs/proofs/several-arms.md.

The loss is ``Σᵢ −log softmax_{Tᵢ}(W zᵢ)`` over matrices W with a row per arm whose columns add up
to zero, z in [−1, 1]ᵖ. Its minimiser together with a ridge ``Λ/2 ‖W‖²`` and a term ``⟨b, W⟩`` is
private as it stands. Weights and gradients are in Helmert coordinates, (K − 1)·p numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from private_ate.privacy.cubes import RADIUS_BITS
from private_ate.privacy.objective import (
    ROUNDING,
    SMALLEST_RIDGE,
    SUM_ROWS,
    Objective,
    ObjectiveLaw,
    Tilt,
    proved_radius,
    split_budget,
)
from private_ate.privacy.zero_sum import helmert

__all__ = ["ArmObjective", "ArmObjectiveLaw"]


class ArmObjective(Objective, Protocol):
    """A sum of multinomial losses over rows, as a function of Helmert coordinates."""

    @property
    def arms(self) -> int:
        """The number of arms (K)."""


@dataclass(frozen=True, slots=True)
class ArmObjectiveLaw(ObjectiveLaw):
    """How ε is turned into a linear term, a ridge and a final rounding, for several arms.

    Attributes
    ----------
    linear : Fraction
        ε of the linear term: one row moves a column of the gradient by at most 4 in L1.
    curvature : Fraction
        ε of the ridge: one row changes the determinant of the Hessian by ``(1 + p/(KΛ))^(K − 1)``.
    smoothing : Fraction
        ε of the Laplace noise that hides solver error and rounding.
    """

    arms: int

    @classmethod
    def divide(cls, objective: ArmObjective, changes: int, epsilon: Fraction) -> ArmObjectiveLaw:
        """Split ε between the three parts, for neighbours that differ in ``changes`` rows."""
        parts = split_budget(epsilon)
        return cls(objective.dimension, objective.size, changes, *parts, objective.arms)

    @property
    def columns(self) -> int:
        """The number of columns (p), the constant among them."""
        return self.dimension // (self.arms - 1)

    @property
    def radius_unit(self) -> Fraction:
        """The scale of the linear term: ``4·changes/ε``."""
        return Fraction(4 * self.changes) / self.linear

    @property
    def ridge(self) -> float:
        """The least ridge Λ that the curvature's ε allows; never below 2, for the solver's sake."""
        rate = float(self.curvature) / (self.changes * (self.arms - 1))
        growth = math.expm1(min(rate, 700.0))
        # A relative 1e-12 covers the rounding of this line; more ridge is never less private.
        return max(self.columns / (self.arms * growth) * (1 + 1e-12), 2 * SMALLEST_RIDGE)

    @property
    def tolerance(self) -> float:
        """The gradient norm to reach: a bound on the rounding of its own computation.

        Covers every data set, for a linear term whose columns are within `proved_radius` units in
        L1, of the dimension D = (K − 1)p.
        """
        p, n, arms = self.columns, self.size, self.arms
        radius = float(self.radius_unit) * proved_radius(self.dimension)
        reach = math.sqrt(2 * n * math.log(arms) / self.ridge)
        reach += 2 * math.sqrt(p) * radius / self.ridge
        root = math.sqrt(arms)
        additions = SUM_ROWS + n / (1 << 14) + 1024
        logits = root * (p + arms + 6) * math.sqrt(p) * reach / 2
        each = n * (2 * additions + 2 * root * (arms + 3) + logits + arms + 16)
        each += 8 * self.ridge * reach + (8 + root * (arms + 2)) * radius
        return ROUNDING * math.sqrt(p) * each

    @property
    def drawn_distance(self) -> float:
        """The L2 distance between the linear term that is drawn and an ideal one."""
        entry = float(self.radius_unit) * (self.dimension + 2) / (1 << RADIUS_BITS)
        return math.sqrt(self.arms * self.columns) * entry

    def tilt_by_arm(self, drawn: list[list[Fraction]]) -> Tilt:
        """Scale a draw of the unit law, given by columns, into the linear term."""
        entries = [[float(value * self.radius_unit) for value in column] for column in drawn]
        linear = (helmert(self.arms) @ np.array(entries).T).ravel()
        return Tilt(linear, self.ridge, self.tolerance)
