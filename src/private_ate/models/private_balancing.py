"""Losses whose minimum balances covariates between arms, under objective perturbation.

With f = z·w and p = σ(f), the derivatives of a treated and of a control row's loss are

    ATE: −1/p and 1/(1 − p)        ATT: −1 and p/(1 − p)        ATC: −(1 − p)/p and 1,

so that the gradient vanishes exactly where the weighted sums of z agree in both arms. Beyond
|f| = log((1 − η)/η) a loss goes on along its tangent: it stays convex, and one row's slope and
curvature are bounded. Proof: section 12 of docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, assert_never

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.models.folds import LossSums, by_chunks
from private_ate.models.private_logistic import PrivateFit
from private_ate.privacy.objective import LossBounds
from private_ate.study import Block, Study

__all__ = ["Balanced", "BalancingObjective", "RowLoss", "loss_bounds_of", "row_losses"]

Balanced = Literal["ate", "att", "atc"]

_NO_HESSIAN: Floats = np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class RowLoss:
    """Loss, slope and curvature of rows by their predictors, shape (m,) each."""

    value: Floats
    slope: Floats
    curvature: Floats


def loss_bounds_of(estimand: Balanced, truncation: float) -> LossBounds:
    """Return bounds on one row's loss: its Lipschitz constant is 1/η (ATE) or (1 − η)/η."""
    least = Fraction(truncation)
    odds = (1 - least) / least
    return LossBounds(math.ceil(1 + odds if estimand == "ate" else odds), odds, None)


def row_losses(estimand: Balanced, predictors: Floats, treated: Bits, truncation: float) -> RowLoss:
    """Return the loss of each row with its derivatives, along the tangent beyond the knots."""
    knot = math.log((1 - truncation) / truncation)
    inside = np.clip(predictors, -knot, knot)
    sign = np.where(treated, -1.0, 1.0)
    growing = np.exp(sign * inside)  # (1 − p)/p of a treated row, p/(1 − p) of a control
    match estimand:
        case "ate":
            curved, straight = np.ones_like(growing), np.ones_like(growing)
        case "att":
            curved, straight = (~treated).astype(np.float64), treated.astype(np.float64)
        case "atc":
            curved, straight = treated.astype(np.float64), (~treated).astype(np.float64)
        case _:
            assert_never(estimand)
    slope = sign * (curved * growing + straight)
    value = curved * growing + straight * sign * inside + slope * (predictors - inside)
    curvature = curved * growing * (np.abs(predictors) <= knot)
    return RowLoss(value, slope, curvature)


@dataclass(frozen=True, slots=True)
class BalancingObjective(PrivateFit):
    """The sum of losses whose stationary point balances the features between arms."""

    estimand: Balanced
    truncation: float

    @property
    def loss_bounds(self) -> LossBounds:
        """Bounds on the slope and the curvature of one row's loss."""
        return loss_bounds_of(self.estimand, self.truncation)

    def sums(self, rows: Study, point: Floats, *, curved: bool = False) -> LossSums:
        """Return sums over rows of the loss and its derivatives."""
        return rows.fold(by_chunks(_kernel(self, point, curved=curved)), title="balancing weights")


def _kernel(
    objective: BalancingObjective, point: Floats, *, curved: bool
) -> Callable[[Block], LossSums]:
    scaling, estimand, truncation = objective.scaling, objective.estimand, objective.truncation

    def kernel(block: Block) -> LossSums:
        features = scaling.features(block)
        found = row_losses(estimand, point @ features, block.treatment, truncation)
        present = block.present
        loss, gradient = float(found.value @ present), features @ (found.slope * present)
        if not curved:
            return LossSums(block.arm.size, loss, gradient, _NO_HESSIAN)
        features *= np.sqrt(found.curvature) * present  # in place: no second large array
        return LossSums(block.arm.size, loss, gradient, features @ features.T)

    return kernel
