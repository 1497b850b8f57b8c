"""Propensity scores of several arms: ridge multinomial regression by folds over the rows.

The loss is ``J(W) = mean −log e_T(x) + λ Σ_k ‖w_k‖²`` with ``e_t = exp(w_t·z)/Σ_k exp(w_k·z)``,
``z = (1, x)`` and ``x`` in [0, 1]ᵈ: a weight vector for every arm, none of them privileged. The
minimiser's vectors add up to zero, so the fit works in Helmert coordinates ``V = U W``, of which
there are K − 1 for every column; distances in V and in W are the same. For two arms
``w_1 − w_0`` is the logistic fit with the same λ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from private_ate.arrays import Codes, Floats
from private_ate.models.folds import FEATURE_ROWS, Folds, LossSums, few_rows, runs
from private_ate.models.newton import (
    PUBLIC_GRADIENT,
    Derivatives,
    Schedule,
    minimize,
    minimize_obliviously,
)
from private_ate.study import Block, Rows, Study

__all__ = [
    "MultinomialModel",
    "fit_multinomial",
    "fit_multinomial_obliviously",
    "helmert",
    "log_odds",
    "multinomial_schedule",
]

# Rows that stand for all while far from the minimum: enough for each weight that full steps
# from their fit contract, and no more than memory holds easily.
_FEW = 6_000
_FEW_PER_WEIGHT = 300
_MOST_FEW = 60_000
_TITLE = "propensity model"
_NO_HESSIAN: Floats = np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class MultinomialModel:
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
    ) -> MultinomialModel:
        """Return the model of Helmert coordinates V, K − 1 runs of d + 1 numbers."""
        free = coordinates.reshape(arms - 1, -1)
        return cls(helmert(arms).T @ free, gradient_norm)

    @property
    def coordinates(self) -> Floats:
        """The Helmert coordinates V of the coefficients, K − 1 runs of d + 1 numbers."""
        return (helmert(self.arms) @ self.coefficients).ravel()

    @property
    def arms(self) -> int:
        """The number of arms (K)."""
        return int(self.coefficients.shape[0])

    def predictors(self, covariates: Floats) -> Floats:
        """Return w_t·z for rows of encoded covariates, shape (K, m)."""
        return _predictors(self.coefficients, covariates)

    def probabilities(self, covariates: Floats) -> Floats:
        """Return the probability of every arm for every row, shape (m, K)."""
        return np.ascontiguousarray(_softmax(self.predictors(covariates)).T)

    def scores(self, covariates: Floats, arm: int) -> Floats:
        """Return the log odds of one arm against all others, ``log e_t/(1 − e_t)``; shape (m,)."""
        return log_odds(self.predictors(covariates), arm)


def log_odds(linear: Floats, arm: int) -> Floats:
    """Return the log odds of one arm against all others, given w_t·z of all arms, shape (K, m)."""
    others = np.delete(linear, arm, axis=0)
    top = others.max(axis=0)
    odds: Floats = linear[arm] - top - np.log(np.exp(others - top).sum(axis=0))
    return odds


def helmert(arms: int) -> Floats:
    """Return the Helmert matrix U, shape (K − 1, K): orthonormal rows that add up to zero.

    Row j has j + 1 equal negative entries, one positive and zeros after it.
    """
    matrix = np.zeros((arms - 1, arms))
    for row in range(arms - 1):
        before = row + 1
        matrix[row, :before] = -1 / math.sqrt(before * (before + 1))
        matrix[row, before] = before / math.sqrt(before * (before + 1))
    return matrix


def fit_multinomial(study: Study, ridge: float) -> MultinomialModel:
    """Fit by damped Newton until the gradient norm is at most 1e-10; for public columns.

    The norm is that in Helmert coordinates. Large studies start from the fit of an evenly spaced
    subset of their rows, as `fit_logistic` does. Arms that hold no row are fitted too: their
    probability is small, and positive by the penalty.
    """
    arms = study.domain.treatment.size
    start = np.zeros((arms - 1) * (study.dimension + 1))
    stride = study.size // min(max(_FEW, _FEW_PER_WEIGHT * start.size), _MOST_FEW)
    few = None
    if stride > 1:
        few = _Loss(study.fold(few_rows(stride), title=_TITLE).joined(), ridge, arms)
        start = minimize(few, None, start, tolerance=1e-6).point
    loss = _Loss(study, ridge, arms)
    found = minimize(loss, few, start, tolerance=PUBLIC_GRADIENT)
    return MultinomialModel.from_coordinates(found.point, arms, found.gradient_norm)


def fit_multinomial_obliviously(study: Rows, ridge: float, arms: int) -> MultinomialModel:
    """Fit in a number of passes that depends on K, d and λ only, whatever the rows are.

    Its gradient norm, in Helmert coordinates, is at most γ = 1e-9.
    Proof: docs/proofs/several-arms.md.
    """
    columns = study.dimension + 1
    loss = _Loss(study, ridge, arms)
    schedule = multinomial_schedule(columns, ridge, arms)
    found = minimize_obliviously(loss, (arms - 1) * columns, schedule)
    return MultinomialModel.from_coordinates(found.point, arms, found.gradient_norm)


def multinomial_schedule(columns: int, ridge: float, arms: int) -> Schedule:
    """Return what is known of the loss in Helmert coordinates, for z of ``columns`` columns.

    The largest eigenvalue of ``diag(e) − eeᵀ`` is at most ½, the loss at zero is ln K, and logits
    along V have a range of at most ``√2 ‖V‖‖z‖``.
    """
    return Schedule(columns / 2 + 2 * ridge, 2 * ridge, math.log(arms), 2 * columns)


@dataclass(frozen=True, slots=True)
class _Loss:
    """The mean loss of some rows with its ridge, as a function of Helmert coordinates."""

    rows: Folds
    ridge: float
    arms: int

    def derivatives(self, point: Floats) -> Derivatives:
        """Return gradient, Hessian and value at some coordinates."""
        sums = self._fold(point, curved=True)
        gradient = sums.gradient / sums.rows + 2 * self.ridge * point
        hessian = sums.hessian / sums.rows
        hessian[np.diag_indices(point.size)] += 2 * self.ridge
        loss = float(sums.loss / sums.rows + self.ridge * point @ point)
        return Derivatives(gradient, hessian, loss)

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient alone."""
        sums = self._fold(point, curved=False)
        return sums.gradient / sums.rows + 2 * self.ridge * point

    def _fold(self, point: Floats, *, curved: bool) -> LossSums:
        basis = helmert(self.arms)
        coefficients = basis.T @ point.reshape(self.arms - 1, -1)

        def kernel(block: Block) -> LossSums:
            return _loss_sums(coefficients, basis, _pieces(block), curved=curved)

        return self.rows.fold(kernel, title=_TITLE)


class _Piece(NamedTuple):
    """Some rows as a loss sees them.

    Attributes
    ----------
    design : array, shape (p, m)
        A constant and the features.
    arm : array of uint8, shape (m,)
        The codes of the arms.
    """

    design: Floats
    arm: Codes


def _loss_sums(
    coefficients: Floats, basis: Floats, pieces: Iterable[_Piece], *, curved: bool
) -> LossSums:
    """Return the sums over rows of −log e_T and its derivatives in Helmert coordinates.

    The coordinates are those of ``basis``; without ``curved`` the Hessian is left out.
    """
    rows, loss, gradient = 0, 0.0, np.zeros(coefficients.shape)
    curvature = _Curvature.zero(basis, coefficients.shape[1]) if curved else None
    for design, arm in pieces:
        linear: Floats = coefficients @ design
        linear -= linear.max(axis=0)
        chosen = (arm, np.arange(arm.size))
        loss -= float(linear[chosen].sum())
        probability = np.exp(linear, out=linear)
        totals = probability.sum(axis=0)
        loss += float(np.log(totals).sum())
        probability /= totals
        if curvature is not None:
            curvature.add(probability, design)
        probability[chosen] -= 1.0  # from here on the residual
        gradient += probability @ design.T
        rows += arm.size
    hessian = _NO_HESSIAN if curvature is None else curvature.hessian()
    return LossSums(rows, loss, (basis @ gradient).ravel(), hessian)


@dataclass(frozen=True, slots=True)
class _Curvature:
    """The parts of ``Σ U(diag(e) − eeᵀ)Uᵀ ⊗ zzᵀ`` over rows, added up in place.

    ``own`` holds ``Σ e_t zzᵀ`` for every arm, ``joint`` the sum of ``(Ue)(Ue)ᵀ ⊗ zzᵀ``.
    """

    basis: Floats
    own: Floats
    joint: Floats

    @classmethod
    def zero(cls, basis: Floats, columns: int) -> _Curvature:
        """Return the sums over no rows."""
        free, arms = basis.shape
        size = free * columns
        return cls(basis, np.zeros((arms, columns, columns)), np.zeros((size, size)))

    def add(self, probability: Floats, design: Floats) -> None:
        """Add some rows, given the probabilities of their arms, shape (K, m)."""
        for arm, share in enumerate(probability):
            root = design * np.sqrt(share)
            self.own[arm] += root @ root.T  # one half of it is computed, the other copied
        weighted = ((self.basis @ probability)[:, None, :] * design).reshape(-1, design.shape[1])
        np.add(self.joint, weighted @ weighted.T, out=self.joint)

    def hessian(self) -> Floats:
        """Return the Hessian in Helmert coordinates."""
        own = np.einsum("it,jt,tab->iajb", self.basis, self.basis, self.own, optimize=True)
        return np.asarray(own.reshape(self.joint.shape) - self.joint)


def _predictors(coefficients: Floats, covariates: Floats) -> Floats:
    linear: Floats = coefficients[:, 1:] @ covariates.T
    linear += coefficients[:, :1]
    return linear


def _softmax(linear: Floats) -> Floats:
    """Return probabilities along the first axis without overflow."""
    shares: Floats = np.exp(linear - linear.max(axis=0))
    shares /= shares.sum(axis=0)
    return shares


def _pieces(block: Block) -> Iterator[_Piece]:
    """Go through a block in runs whose features stay in the processor's cache."""
    for run in runs(block, FEATURE_ROWS):
        covariates = block.covariates[run]
        design = np.empty((covariates.shape[1] + 1, covariates.shape[0]))
        design[0] = 1.0
        design[1:] = covariates.T
        yield _Piece(design, block.arm[run])
