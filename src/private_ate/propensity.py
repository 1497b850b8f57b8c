"""Propensity scores: ridge logistic regression by folds over the rows.

The loss is ``J(w) = mean log(1 + exp(−tᵢ zᵢ·w)) + (λ/2)‖w‖²`` with ``z = (1, x)``, ``x`` in
[0, 1]ᵈ and ``t = ±1``; the intercept is penalised too. Every quantity is a sum over rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Protocol

import numpy as np
import numpy.typing as npt

from private_ate.study import Block, Study

__all__ = ["SOLVER_GRADIENT", "LogisticFit", "fit_logistic", "fit_logistic_obliviously"]

Floats = npt.NDArray[np.float64]

SOLVER_GRADIENT = 1e-9  # γ: the gradient norm that the oblivious fit provably reaches
_PUBLIC_GRADIENT = 1e-10
_WARM_START_ROWS = 20_000
_TITLE = "propensity model"
_NEWTON_STEPS = 6
_CLOSE = 1e-2  # squared Newton decrement below which full steps contract


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """A fitted model: intercept first, then one slope per feature; shape (d + 1,)."""

    coefficients: Floats
    gradient_norm: float


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums over rows of the logistic loss and its derivatives."""

    rows: int
    loss: float
    gradient: Floats
    hessian: Floats

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(
            self.rows + other.rows,
            self.loss + other.loss,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )


def fit_logistic(study: Study, ridge: float) -> LogisticFit:
    """Fit by damped Newton until the gradient norm is at most 1e-10; for public columns.

    Large studies start from the fit of an evenly spaced subset of their rows.
    """
    start = np.zeros(study.dimension + 1)
    stride = study.size // _WARM_START_ROWS
    if stride > 1:
        few = study.fold(_gather_kernel(stride), title=_TITLE)
        start = _newton(few, ridge, start, tolerance=1e-6).coefficients
    return _newton(study, ridge, start, tolerance=_PUBLIC_GRADIENT)


class _Folds(Protocol):
    """What the solver asks of a study."""

    def fold(self, kernel: Callable[[Block], _Sums], *, title: str = "") -> _Sums:
        """Return the sum of the kernel over all blocks."""


@dataclass(frozen=True, slots=True)
class _FewRows:
    """Public rows gathered from all blocks, at hand for as many passes as it takes."""

    covariates: tuple[Floats, ...]
    treatment: tuple[npt.NDArray[np.bool_], ...]

    def __add__(self, other: _FewRows) -> _FewRows:
        return _FewRows(self.covariates + other.covariates, self.treatment + other.treatment)

    def fold(self, kernel: Callable[[Block], _Sums], *, title: str = "") -> _Sums:  # noqa: ARG002
        """Return the sum of the kernel over the gathered rows."""
        pairs = zip(self.covariates, self.treatment, strict=True)
        return reduce(add, (kernel(Block(rows, arm, None)) for rows, arm in pairs))


def _gather_kernel(stride: int) -> Callable[[Block], _FewRows]:
    def kernel(block: Block) -> _FewRows:
        # Copies: views would keep the whole block alive.
        return _FewRows((block.covariates[::stride].copy(),), (block.treatment[::stride].copy(),))

    return kernel


def fit_logistic_obliviously(study: Study, ridge: float) -> LogisticFit:
    """Fit in a number of passes that depends on d and λ only, whatever the rows are.

    Accelerated gradient steps reach the region where Newton's method squares its error, for every
    data set in the domain; six Newton steps then bring the gradient norm below γ = 1e-9.
    Proof: docs/proofs/propensity.md.
    """
    dimension = study.dimension + 1
    smoothness = dimension / 4 + ridge
    momentum = (math.sqrt(smoothness) - math.sqrt(ridge)) / (
        math.sqrt(smoothness) + math.sqrt(ridge)
    )
    previous = current = np.zeros(dimension)
    for _ in range(gradient_steps(dimension, ridge)):
        ahead = current + momentum * (current - previous)
        slope = (
            study.fold(_gradient_kernel(ahead), title=_TITLE).gradient / study.size + ridge * ahead
        )
        previous, current = current, ahead - slope / smoothness
    for _ in range(_NEWTON_STEPS):
        gradient, hessian, _ = _derivatives(study, ridge, current)
        current = current - np.linalg.solve(hessian, gradient)
    final = (
        study.fold(_gradient_kernel(current), title=_TITLE).gradient / study.size + ridge * current
    )
    return LogisticFit(current, float(np.linalg.norm(final)))


def gradient_steps(dimension: int, ridge: float) -> int:
    """Return the number of accelerated steps after which Newton's method squares its error."""
    smoothness = dimension / 4 + ridge
    reduction = 2 * smoothness * 2 * math.log(2) * 4 * dimension / ridge**2
    return math.ceil(math.log(reduction) / -math.log1p(-math.sqrt(ridge / smoothness)))


def _newton(study: _Folds, ridge: float, start: Floats, *, tolerance: float) -> LogisticFit:
    """Run damped Newton, then keep the last Hessian for cheap steps near the minimum."""
    current = start
    gradient, hessian, loss = _derivatives(study, ridge, current)
    step = np.linalg.solve(hessian, gradient)
    for _ in range(100):
        if float(gradient @ step) <= _CLOSE or np.linalg.norm(gradient) <= tolerance:
            break
        size = 1.0
        while True:
            candidate = current - size * step
            derivatives = _derivatives(study, ridge, candidate)
            if derivatives[2] < loss or size < 1e-6:
                break
            size /= 2
        current = candidate
        gradient, hessian, loss = derivatives
        step = np.linalg.solve(hessian, gradient)
    return _polish(study, ridge, current, gradient, hessian, tolerance=tolerance)


def _polish(  # the state of a Newton iteration
    study: _Folds,
    ridge: float,
    current: Floats,
    gradient: Floats,
    hessian: Floats,
    *,
    tolerance: float,
) -> LogisticFit:
    """Repeat steps with one Hessian; renew it when the gradient stops falling fast."""
    norm = float(np.linalg.norm(gradient))
    for _ in range(100):
        if norm <= tolerance:
            break
        current = current - np.linalg.solve(hessian, gradient)
        sums = study.fold(_gradient_kernel(current), title=_TITLE)
        gradient = sums.gradient / sums.rows + ridge * current
        before, norm = norm, float(np.linalg.norm(gradient))
        if norm > before / 8 and norm > tolerance:
            gradient, hessian, _ = _derivatives(study, ridge, current)
    return LogisticFit(current, norm)


def _derivatives(study: _Folds, ridge: float, coefficients: Floats) -> tuple[Floats, Floats, float]:
    sums = study.fold(_newton_kernel(coefficients), title=_TITLE)
    gradient = sums.gradient / sums.rows + ridge * coefficients
    hessian = sums.hessian / sums.rows + ridge * np.eye(coefficients.size)
    loss = sums.loss / sums.rows + ridge / 2 * float(coefficients @ coefficients)
    return gradient, hessian, loss


def _newton_kernel(coefficients: Floats) -> Callable[[Block], _Sums]:
    def kernel(block: Block) -> _Sums:
        covariates, treatment = block.covariates, block.treatment
        linear = covariates @ coefficients[1:] + coefficients[0]
        small = np.exp(-np.abs(linear))
        probability = np.where(linear >= 0, 1.0, small) / (1.0 + small)
        loss = np.log(1.0 + small).sum() + np.maximum(linear, 0.0).sum() - treatment @ linear
        residual = probability - treatment
        weight = probability * (1.0 - probability)
        weighted = covariates * weight[:, None]
        hessian = np.empty((coefficients.size, coefficients.size))
        hessian[1:, 1:] = weighted.T @ covariates
        hessian[0, 1:] = hessian[1:, 0] = weighted.sum(axis=0)
        hessian[0, 0] = weight.sum()
        return _Sums(treatment.size, float(loss), _gradient(covariates, residual), hessian)

    return kernel


def _gradient_kernel(coefficients: Floats) -> Callable[[Block], _Sums]:
    def kernel(block: Block) -> _Sums:
        covariates, treatment = block.covariates, block.treatment
        linear = covariates @ coefficients[1:] + coefficients[0]
        residual = _sigmoid(linear) - treatment
        return _Sums(residual.size, 0.0, _gradient(covariates, residual), np.zeros((0, 0)))

    return kernel


def _gradient(covariates: Floats, residual: Floats) -> Floats:
    return np.concatenate(([residual.sum()], residual @ covariates))


def _sigmoid(linear: Floats) -> Floats:
    """Return the logistic function without overflow on either side."""
    small = np.exp(-np.abs(linear))
    return np.where(linear >= 0, 1.0, small) / (1.0 + small)
