"""Propensity scores of two arms or more: ridge multinomial regression by folds over the rows.

The loss is ``J(W) = mean −log e_T(x) + λ Σ_k ‖w_k‖²`` with ``e_t = exp(w_t·z)/Σ_k exp(w_k·z)``,
``z = (1, x)`` and ``x`` in [0, 1]ᵈ: a weight vector for every arm, none of them privileged. The
minimiser's vectors add up to zero, so the fit works in coordinates V with ``W = BᵀV``, of which
there are K − 1 for every column. Of two arms V is ``w_1 − w_0``, the log odds of treatment, and J
the logistic loss with ``(λ/2)‖V‖²``; of more B has orthonormal rows. Rows of B have the squared
length c, one half or one, so that ``λ‖W‖² = cλ‖V‖²``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.models.folds import Folds, LossSums, few_rows
from private_ate.models.newton import (
    PUBLIC_GRADIENT,
    Derivatives,
    Schedule,
    minimize,
    minimize_obliviously,
)
from private_ate.study import Block, Rows, Study

__all__ = [
    "PropensityModel",
    "contrast_basis",
    "convexity",
    "fit_propensity",
    "fit_propensity_obliviously",
    "log_odds",
    "schedule_of",
]

# Rows that stand for all while far from the minimum: enough for each weight that full steps
# from their fit contract, and no more than memory holds easily.
_FEW: Final = 6_000
_FEW_PER_WEIGHT: Final = 300
_MOST_FEW: Final = 60_000
_TITLE: Final = "propensity model"
_NO_HESSIAN: Final[Floats] = np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class PropensityModel:
    """Probabilities of the arms given covariates.

    Attributes
    ----------
    coefficients : array, shape (K, d + 1)
        A row per arm: intercept first, then one slope per feature; the rows add up to zero.
    gradient_norm : float or None
        The norm of the gradient when it was last measured; None for a model that was released.
    """

    coefficients: Floats
    gradient_norm: float | None = None

    @classmethod
    def from_coordinates(
        cls, coordinates: Floats, arms: int, gradient_norm: float | None = None
    ) -> PropensityModel:
        """Return the model of coordinates V, K − 1 runs of d + 1 numbers."""
        return cls(contrast_basis(arms).T @ coordinates.reshape(arms - 1, -1), gradient_norm)

    @property
    def coordinates(self) -> Floats:
        """The coordinates V; of two arms the log odds of treatment, intercept first."""
        basis = contrast_basis(self.arms)
        return (basis @ self.coefficients).ravel() / _scale(self.arms)

    @property
    def arms(self) -> int:
        """The number of arms (K)."""
        return int(self.coefficients.shape[0])

    def predictors(self, covariates: Floats) -> Floats:
        """Return w_t·z for rows of encoded covariates, shape (K, m)."""
        return _linear(self.coefficients, covariates)

    def probabilities(self, covariates: Floats) -> Floats:
        """Return the probability of every arm for every row, shape (m, K)."""
        linear = self.predictors(covariates)
        shares: Floats = np.exp(linear - linear.max(axis=0))
        shares /= shares.sum(axis=0)
        return np.ascontiguousarray(shares.T)

    def scores(self, covariates: Floats, arm: int) -> Floats:
        """Return the log odds of one arm against all others, ``log e_t/(1 − e_t)``; shape (m,)."""
        return log_odds(self.predictors(covariates), arm)


def log_odds(linear: Floats, arm: int) -> Floats:
    """Return the log odds of one arm against all others, given w_t·z of all arms, shape (K, m)."""
    others = np.delete(linear, arm, axis=0)
    top = others.max(axis=0)
    odds: Floats = linear[arm] - top - np.log(np.exp(others - top).sum(axis=0))
    return odds


def contrast_basis(arms: int) -> Floats:
    """Return B, shape (K − 1, K): orthogonal rows of one length that add up to zero.

    Of two arms (−½, ½); of more Helmert's: row j has j + 1 equal negative entries, one positive
    and zeros after it.
    """
    matrix = np.zeros((arms - 1, arms))
    for row in range(arms - 1):
        before = row + 1
        matrix[row, :before] = -1 / math.sqrt(before * (before + 1))
        matrix[row, before] = before / math.sqrt(before * (before + 1))
    return np.array([[-0.5, 0.5]]) if arms == 2 else matrix


def _scale(arms: int) -> float:
    """Return c, the squared length of the rows of B."""
    return 0.5 if arms == 2 else 1.0


def convexity(ridge: float, arms: int) -> float:
    """Return the least eigenvalue of the Hessian in coordinates V that the penalty provides."""
    return 2 * _scale(arms) * ridge


def schedule_of(columns: int, ridge: float, arms: int) -> Schedule:
    """Return what is known of the loss in coordinates V, for z of ``columns`` columns.

    The largest eigenvalue of ``diag(e) − eeᵀ`` is at most ½, the loss at zero is ln K, and logits
    along V have a range of at most ``√(2c) ‖V‖‖z‖``.
    """
    scale, least = _scale(arms), convexity(ridge, arms)
    return Schedule(scale * columns / 2 + least, least, math.log(arms), 2 * scale * columns)


def fit_propensity(study: Study, ridge: float) -> PropensityModel:
    """Fit by damped Newton until the gradient norm is at most 1e-10; for public columns.

    The norm is that in coordinates V. Large studies start from the fit of an evenly spaced subset
    of their rows, which then also shows how the Hessian changes from step to step: one full Hessian
    and few gradients suffice. Arms that hold no row are fitted too: their probability is small,
    and positive by the penalty.
    """
    arms = study.domain.treatment.size
    start = np.zeros((arms - 1) * (study.dimension + 1))
    stride = study.size // min(max(_FEW, _FEW_PER_WEIGHT * start.size), _MOST_FEW)
    few = None
    if stride > 1:
        few = _Loss(study.fold(few_rows(stride), title=_TITLE).joined(), ridge, arms)
        start = minimize(few, None, start, tolerance=1e-6).point
    found = minimize(_Loss(study, ridge, arms), few, start, tolerance=PUBLIC_GRADIENT)
    return PropensityModel.from_coordinates(found.point, arms, found.gradient_norm)


def fit_propensity_obliviously(rows: Rows, ridge: float, arms: int) -> PropensityModel:
    """Fit in a number of passes that depends on K, d and λ only, whatever the rows are.

    Its gradient norm, in coordinates V, is at most γ = 1e-9.
    Proof: docs/proofs/propensity.md, and of several arms docs/proofs/several-arms.md.
    """
    columns = rows.dimension + 1
    schedule = schedule_of(columns, ridge, arms)
    found = minimize_obliviously(_Loss(rows, ridge, arms), (arms - 1) * columns, schedule)
    return PropensityModel.from_coordinates(found.point, arms, found.gradient_norm)


@dataclass(frozen=True, slots=True)
class _Loss:
    """The mean loss of some rows with its ridge, as a function of coordinates V."""

    rows: Folds
    ridge: float
    arms: int

    def derivatives(self, point: Floats) -> Derivatives:
        """Return gradient, Hessian and value at some coordinates."""
        sums, penalty = self._fold(point, curved=True), convexity(self.ridge, self.arms)
        gradient = sums.gradient / sums.rows + penalty * point
        hessian = sums.hessian / sums.rows
        hessian[np.diag_indices(point.size)] += penalty
        loss = float(sums.loss / sums.rows + penalty / 2 * point @ point)
        return Derivatives(gradient, hessian, loss)

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient alone."""
        sums = self._fold(point, curved=False)
        return sums.gradient / sums.rows + convexity(self.ridge, self.arms) * point

    def _fold(self, point: Floats, *, curved: bool) -> LossSums:
        basis = contrast_basis(self.arms)
        coordinates = point.reshape(self.arms - 1, -1)

        def kernel(block: Block) -> LossSums:
            return _loss_sums(coordinates, basis, block, curved=curved)

        return self.rows.fold(kernel, title=_TITLE)


def _loss_sums(coordinates: Floats, basis: Floats, block: Block, *, curved: bool) -> LossSums:
    """Return the sums over rows of −log e_T and its derivatives in coordinates V.

    As ``diag(e) − eeᵀ = Σ_{s<t} e_s e_t (δ_s − δ_t)(δ_s − δ_t)ᵀ``, the Hessian is a sum over pairs
    of arms of a matrix product of rows each. Without ``curved`` only the gradient is computed.
    """
    covariates, arms = block.covariates, basis.shape[1]
    linear = basis.T @ _linear(coordinates, covariates)
    linear -= linear.max(axis=0)
    own, loss = block.arm == np.arange(arms)[:, None], 0.0
    if curved:
        loss = -float(linear[own].sum())
    chance = np.exp(linear, out=linear)
    totals = chance.sum(axis=0)
    chance /= totals
    hessian = _NO_HESSIAN
    if curved:
        loss += float(np.log(totals).sum())
        pairs = list(combinations(range(arms), 2))
        products = np.array([_products(covariates, chance[s] * chance[t]) for s, t in pairs])
        apart = np.array([basis[:, s] - basis[:, t] for s, t in pairs])
        hessian = np.einsum("pi,pj,pab->iajb", apart, apart, products, optimize=True)
        hessian = hessian.reshape(coordinates.size, coordinates.size)
    residual = basis @ np.subtract(chance, own, out=chance)
    gradient = np.column_stack([residual.sum(axis=1), residual @ covariates])
    return LossSums(block.arm.size, loss, gradient.ravel(), hessian)


def _products(covariates: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of zzᵀ over rows, shape (d + 1, d + 1)."""
    found = np.empty((covariates.shape[1] + 1,) * 2)
    root = covariates * np.sqrt(weights)[:, None]
    found[1:, 1:] = root.T @ root  # one half of it is computed, the other copied
    found[0, 1:] = found[1:, 0] = weights @ covariates
    found[0, 0] = weights.sum()
    return found


def _linear(coefficients: Floats, covariates: Floats) -> Floats:
    """Return every row of coefficients times z of every row, shape (·, m)."""
    linear: Floats = coefficients[:, 1:] @ covariates.T
    linear += coefficients[:, :1]
    return linear
