"""Objective perturbation: a convex fit made private by a random linear term.

The loss is a sum over rows of convex functions of ``zᵢ·w`` with ``z`` in [−1, 1]ᵖ, usually
``log(1 + exp(zᵢ·w)) − tᵢ zᵢ·w`` with ``t`` in [0, 1]. Its minimiser together with a ridge
``Λ/2 ‖w‖²`` and a term ``b·w``, b from the L∞ distribution, is private as it stands. A computer
finds it only approximately; Laplace noise on the result covers the difference. Lemmas 2 and 3 of
docs/proofs/orthogonal.md; other losses than the logistic: section 12 of docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Protocol

import numpy as np

from private_ate.arrays import Floats
from private_ate.privacy.linf_noise import RADIUS_BITS

__all__ = [
    "LOGISTIC", "SMOOTHING_SHARE", "SUM_ROWS", "LossBounds", "Objective", "ObjectiveCalibration",
    "Perturbation", "proved_radius", "radius_tail",
]  # fmt: skip

SUM_ROWS: Final = 1 << 12  # rows whose gradients one matrix product may add; enters `tolerance`
SMOOTHING_SHARE: Final = Fraction(1, 100)  # of ε, for solver error and rounding
_LINEAR_SHARE: Final = Fraction(9, 10)  # of the rest, for the linear term; the ridge has 1/10
_SPARE_UNITS: Final = 120  # of the linear term, beyond twice the number of exponentials in it
_GRID_BITS: Final = 10  # the grid of the result lies this far below its sensitivity
_UNIT_ROUNDOFF: Final = 2.0**-53  # of float64
_SMALLEST_RIDGE: Final = 1.0  # keeps the solver well conditioned; more ridge is never less private


@dataclass(frozen=True, slots=True)
class LossBounds:
    """Bounds on every row's loss as a function of its predictor ``z·w``.

    Attributes
    ----------
    lipschitz : int
        Lipschitz constant of the loss (L).
    curvature : Fraction
        Lipschitz constant of its derivative (c), a bound on the second derivative where it exists.
    at_zero : float or None
        The loss at zero of a loss that is never negative; None for one that has no lower bound.
    """

    lipschitz: int
    curvature: Fraction
    at_zero: float | None


LOGISTIC: Final = LossBounds(1, Fraction(1, 4), math.log(2))


@dataclass(frozen=True, slots=True)
class Perturbation:
    """What is added to the loss, and how small the gradient of the result has to be."""

    linear: Floats
    ridge: float
    tolerance: float


class Objective(Protocol):
    """A sum of convex losses over rows; the recorder may probe its gradient."""

    @property
    def loss_bounds(self) -> LossBounds:
        """Bounds on the loss of one row and on its derivatives."""

    @property
    def dimension(self) -> int:
        """The number of weights (p)."""

    @property
    def size(self) -> int:
        """The number of rows (n)."""

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient of the loss alone, a sum over rows."""

    def minimize(self, perturbation: Perturbation) -> Floats:
        """Return a point where the perturbed loss has a gradient norm within the tolerance."""


def proved_radius(dimension: int) -> int:
    """Return up to which size of the linear term, in its units, rounding is proved to be small."""
    return 2 * (dimension + 1) + _SPARE_UNITS


def radius_tail(dimension: int) -> float:
    """Return a bound on the probability that the linear term exceeds `proved_radius`.

    Its size is a sum R of k = dimension + 1 unit exponentials, so ``E exp(R/2) = 2ᵏ`` and
    ``P(R > 2k + s) ≤ 2ᵏ exp(−k − s/2)``. No record influences it.
    """
    return math.exp((dimension + 1) * (math.log(2) - 1) - _SPARE_UNITS / 2)


@dataclass(frozen=True, slots=True)
class ObjectiveCalibration:
    """Calibration of linear term, ridge and final rounding to ε; public numbers only.

    Attributes
    ----------
    linear : Fraction
        ε of the linear term: one row moves every coordinate of the gradient by at most 2L.
    curvature : Fraction
        ε of the ridge: one row changes the determinant of the Hessian by 1 + cp/Λ at most.
    smoothing : Fraction
        ε of the Laplace noise that hides solver error and rounding.
    loss_bounds : LossBounds
        L and c of one row's loss: 1 and 1/4 if it is logistic.
    """

    dimension: int
    size: int
    changes: int
    linear: Fraction
    curvature: Fraction
    smoothing: Fraction
    loss_bounds: LossBounds = field(default=LOGISTIC, kw_only=True)

    @classmethod
    def of(cls, objective: Objective, changes: int, epsilon: Fraction) -> ObjectiveCalibration:
        """Split ε between the three parts, for neighbours that differ in ``changes`` rows."""
        smoothing = epsilon * SMOOTHING_SHARE
        linear = (epsilon - smoothing) * _LINEAR_SHARE
        return cls(
            objective.dimension, objective.size, changes,
            linear, epsilon - smoothing - linear, smoothing, loss_bounds=objective.loss_bounds,
        )  # fmt: skip

    @property
    def movement(self) -> int:
        """How far neighbours move every coordinate of the gradient: ``2L·changes``."""
        return 2 * self.loss_bounds.lipschitz * self.changes

    @property
    def radius_unit(self) -> Fraction:
        """The scale of the linear term: ``2L·changes/ε``."""
        return Fraction(self.movement) / self.linear

    @property
    def ridge(self) -> float:
        """The least ridge Λ that the curvature's ε allows; never below 1, for the solver's sake."""
        growth = math.expm1(min(float(self.curvature) / self.changes, 700.0))
        # A relative 1e-12 covers the rounding of this line; more ridge is never less private.
        curvature = float(self.dimension * self.loss_bounds.curvature)
        return max(curvature / growth * (1 + 1e-12), _SMALLEST_RIDGE)

    @property
    def tolerance(self) -> float:
        """The gradient norm to reach: a bound on the rounding of its own computation.

        Covers every data set, for a linear term within `proved_radius` units.
        """
        p, n = self.dimension, self.size
        radius = float(self.radius_unit) * proved_radius(p)
        reach = self._reach(radius)
        lipschitz, curvature = self.loss_bounds.lipschitz, float(self.loss_bounds.curvature)
        additions = SUM_ROWS + n / (1 << 14) + 1024
        predictor = (p + 2) * math.sqrt(p) * reach * curvature + 16 * lipschitz
        each = n * (lipschitz * additions + predictor) + 8 * (self.ridge * reach + radius)
        return _UNIT_ROUNDOFF * math.sqrt(p) * each

    def _reach(self, radius: float) -> float:
        """Return a bound on the norm of the minimiser, for a linear term within the radius.

        A loss that is never negative: compare it with zero. Any other: its gradient at zero over
        the ridge, as the perturbed loss is at least as strongly convex as its ridge.
        """
        root = math.sqrt(self.dimension)
        if self.loss_bounds.at_zero is None:
            return root * (self.size * self.loss_bounds.lipschitz + radius) / self.ridge
        start = math.sqrt(2 * self.size * self.loss_bounds.at_zero / self.ridge)
        return start + 2 * root * radius / self.ridge

    @property
    def grid(self) -> Fraction:
        """The power-of-two grid on which the weights are released."""
        return Fraction(2) ** (math.floor(math.log2(self._distance)) - _GRID_BITS)

    @property
    def sensitivity(self) -> int:
        """How far apart, in L1 grid steps, two computed minimisers of one ideal one may lie."""
        return math.ceil(Fraction(self._distance) / self.grid) + self.dimension

    @property
    def drawn_distance(self) -> float:
        """The L2 distance between the linear term that is drawn and an ideal one."""
        drawn = float(self.radius_unit) * (self.dimension + 2) / (1 << RADIUS_BITS)
        return math.sqrt(self.dimension) * drawn

    @property
    def _distance(self) -> float:
        """Twice the L1 distance between a computed and an ideal minimiser (2√p·η)."""
        root = math.sqrt(self.dimension)
        away = (2 * self.tolerance + self.drawn_distance) / self.ridge
        return 2 * root * away * (1 + 1e-9)

    def perturbation(self, drawn: list[Fraction]) -> Perturbation:
        """Scale a draw of the unit L∞ distribution into the linear term."""
        linear = np.array([float(value * self.radius_unit) for value in drawn])
        return Perturbation(linear, self.ridge, self.tolerance)

    def steps(self, weights: Floats) -> list[int]:
        """Put computed weights on the grid."""
        return [round(Fraction(float(weight)) / self.grid) for weight in weights]

    def weights(self, half_steps: list[int]) -> Floats:
        """Read released half grid steps as weights."""
        return np.array([float(value * self.grid / 2) for value in half_steps])
