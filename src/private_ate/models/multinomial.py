"""Propensity scores of several arms: ridge multinomial regression by folds over the rows.

The loss is ``J(W) = mean −log e_T(x) + λ Σ_k ‖w_k‖²`` with ``e_t = exp(w_t·z)/Σ_k exp(w_k·z)``,
``z = (1, x)`` and ``x`` in [0, 1]ᵈ: a weight vector for every arm, none of them privileged. The
minimiser's vectors add up to zero, so the fit works in Helmert coordinates ``V = U W``, of which
there are K − 1 for every column; distances in V and in W are the same. For two arms
``w_1 − w_0`` is the logistic fit with the same λ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Protocol

import numpy as np

from private_ate.arrays import Codes, Floats
from private_ate.models.folds import FEATURE_ROWS, LossSums
from private_ate.models.newton import PUBLIC_GRADIENT, Derivatives, minimize
from private_ate.study import Block, Rows, Study

__all__ = ["MultinomialModel", "fit_multinomial", "helmert", "log_odds"]

_FEW = 6_000  # rows that stand for all while far from the minimum
_TITLE = "propensity model"
_NO_HESSIAN: Floats = np.zeros((0, 0))


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


def fit_multinomial(study: Study, ridge: float) -> MultinomialModel:
    """Fit by damped Newton until the gradient norm is at most 1e-10; for public columns.

    The norm is that in Helmert coordinates. Large studies start from the fit of an evenly spaced
    subset of their rows, as `fit_logistic` does. Arms that hold no row are fitted too: their
    probability is small, and positive by the penalty.
    """
    arms = study.domain.treatment.size
    start = np.zeros((arms - 1) * (study.dimension + 1))
    stride = study.size // _FEW
    few = None
    if stride > 1:
        few = _Loss(study.fold(_gather_kernel(stride), title=_TITLE).joined(), ridge, arms)
        start = minimize(few, None, start, tolerance=1e-6).point
    loss = _Loss(_AllRows(study), ridge, arms)
    found = minimize(loss, few, start, tolerance=PUBLIC_GRADIENT)
    return MultinomialModel.from_coordinates(found.point, arms, found.gradient_norm)


Kernel = Callable[[Floats, Codes], LossSums]


class _Rows(Protocol):
    """What the solver asks of rows."""

    def sums(self, kernel: Kernel) -> LossSums:
        """Return the sum over all rows of a kernel that sees covariates and arms."""


@dataclass(frozen=True, slots=True)
class _AllRows:
    """The rows of a study, behind its boundary."""

    study: Rows

    def sums(self, kernel: Kernel) -> LossSums:
        """Return the sum of a fold."""
        return self.study.fold(lambda block: kernel(block.covariates, block.arm), title=_TITLE)


@dataclass(frozen=True, slots=True)
class _FewRows:
    """Public rows gathered from all blocks, at hand for as many passes as it takes."""

    covariates: tuple[Floats, ...]
    arm: tuple[Codes, ...]

    def __add__(self, other: _FewRows) -> _FewRows:
        return _FewRows(self.covariates + other.covariates, self.arm + other.arm)

    def joined(self) -> _FewRows:
        """Return the rows as one piece."""
        return _FewRows((np.concatenate(self.covariates),), (np.concatenate(self.arm),))

    def sums(self, kernel: Kernel) -> LossSums:
        """Return the sum over the gathered rows."""
        return reduce(add, map(kernel, self.covariates, self.arm))


def _gather_kernel(stride: int) -> Callable[[Block], _FewRows]:
    def kernel(block: Block) -> _FewRows:
        # Copies: views would keep the whole block alive.
        return _FewRows((block.covariates[::stride].copy(),), (block.arm[::stride].copy(),))

    return kernel


@dataclass(frozen=True, slots=True)
class _Loss:
    """The mean loss of some rows with its ridge, as a function of Helmert coordinates."""

    rows: _Rows
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

        def kernel(covariates: Floats, arm: Codes) -> LossSums:
            return loss_sums(coefficients, basis, covariates, arm, curved=curved)

        return self.rows.sums(kernel)


def loss_sums(
    coefficients: Floats, basis: Floats, covariates: Floats, arm: Codes, *, curved: bool
) -> LossSums:
    """Return the sums over rows of −log e_T and its derivatives in Helmert coordinates.

    The coordinates are those of ``basis``; without ``curved`` the Hessian is left out.
    """
    loss, gradient = 0.0, np.zeros(coefficients.shape)
    curvature = _Curvature.zero(basis, coefficients.shape[1]) if curved else None
    for rows in _runs(arm.size):
        values, codes = covariates[rows], arm[rows]
        linear = _predictors(coefficients, values)
        linear -= linear.max(axis=0)
        chosen = (codes, np.arange(codes.size))
        loss -= float(linear[chosen].sum())
        probability = np.exp(linear, out=linear)
        totals = probability.sum(axis=0)
        loss += float(np.log(totals).sum())
        probability /= totals
        if curvature is not None:
            curvature.add(probability, values)
        probability[chosen] -= 1.0  # from here on the residual
        gradient[:, 0] += probability.sum(axis=1)
        gradient[:, 1:] += probability @ values
    hessian = _NO_HESSIAN if curvature is None else curvature.hessian()
    return LossSums(arm.size, loss, (basis @ gradient).ravel(), hessian)


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

    def add(self, probability: Floats, covariates: Floats) -> None:
        """Add some rows, given the probabilities of their arms; shape (K, m)."""
        columns, rows = self.own.shape[1], probability.shape[1]
        design = np.empty((columns, rows))
        design[0] = 1.0
        design[1:] = covariates.T
        for arm, share in enumerate(probability):
            root = design * np.sqrt(share)
            self.own[arm] += root @ root.T  # one half of it is computed, the other copied
        tilted = ((self.basis @ probability)[:, None, :] * design).reshape(-1, rows)
        np.add(self.joint, tilted @ tilted.T, out=self.joint)

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


def _runs(rows: int) -> Iterator[slice]:
    """Go through rows in runs whose features stay in the processor's cache."""
    for start in range(0, rows, FEATURE_ROWS):
        yield slice(start, start + FEATURE_ROWS)
