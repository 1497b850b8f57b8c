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
from typing import NamedTuple, Protocol

import numpy as np

from private_ate.arrays import Codes, Floats
from private_ate.models.folds import LossSums
from private_ate.study import Block, Rows, Study

__all__ = ["SOLVER_GRADIENT", "LogisticFit", "fit_logistic", "fit_logistic_obliviously"]


SOLVER_GRADIENT = 1e-9  # γ: the gradient norm that the oblivious fit provably reaches
_PUBLIC_GRADIENT = 1e-10
_FEW = 6_000  # rows that stand for all while far from the minimum
_TITLE = "propensity model"
_NEWTON_STEPS = 6
_CLOSE = 1e-2  # squared Newton decrement below which full steps contract


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """A fitted model: intercept first, then one slope per feature; shape (d + 1,).

    The gradient was at most as long as ``gradient_norm`` when it was last measured.
    """

    coefficients: Floats
    gradient_norm: float


def fit_logistic(study: Study, ridge: float) -> LogisticFit:
    """Fit by damped Newton until the gradient norm is at most 1e-10; for public columns.

    Large studies start from the fit of an evenly spaced subset of their rows, which then also
    tells how the Hessian changes from step to step: one full Hessian and few gradients suffice.
    """
    start = np.zeros(study.dimension + 1)
    stride = study.size // _FEW
    if stride <= 1:
        return _newton(study, None, ridge, start, tolerance=_PUBLIC_GRADIENT)
    few = study.fold(_gather_kernel(stride), title=_TITLE).joined()
    start = _newton(few, None, ridge, start, tolerance=1e-6).coefficients
    return _newton(study, few, ridge, start, tolerance=_PUBLIC_GRADIENT)


class _Folds(Protocol):
    """What the solver asks of a study."""

    def fold(self, kernel: Callable[[Block], LossSums], *, title: str = "") -> LossSums:
        """Return the sum of the kernel over all blocks."""


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

    def fold(self, kernel: Callable[[Block], LossSums], *, title: str = "") -> LossSums:  # noqa: ARG002
        """Return the sum of the kernel over the gathered rows."""
        pairs = zip(self.covariates, self.arm, strict=True)
        return reduce(add, (kernel(Block(rows, arm, None)) for rows, arm in pairs))


def _gather_kernel(stride: int) -> Callable[[Block], _FewRows]:
    def kernel(block: Block) -> _FewRows:
        # Copies: views would keep the whole block alive.
        return _FewRows((block.covariates[::stride].copy(),), (block.arm[::stride].copy(),))

    return kernel


def fit_logistic_obliviously(study: Rows, ridge: float) -> LogisticFit:
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


def _newton(
    study: _Folds, few: _Folds | None, ridge: float, start: Floats, *, tolerance: float
) -> LogisticFit:
    """Run damped Newton; near the minimum, steps with a Hessian that was not computed anew."""
    current = start
    gradient, hessian, loss = _derivatives(study, ridge, current)
    for _ in range(100):
        if np.linalg.norm(gradient) <= tolerance:
            # The last step needs no pass, and leaves a small part of the error measured.
            last = np.linalg.solve(hessian, gradient)
            return LogisticFit(current - last, float(np.linalg.norm(gradient)))
        step = np.linalg.solve(hessian, gradient).astype(np.float64)
        point = _Point(current, gradient)
        if float(gradient @ step) <= _CLOSE:
            point = _polish(study, few, ridge, point, hessian, tolerance=tolerance)
        if point.coefficients is current:  # far away, or near by the mean of a loss that is not
            current, (gradient, hessian, loss) = _descend(study, ridge, current, step, loss)
            continue
        current, gradient = point
        if np.linalg.norm(gradient) > tolerance:
            gradient, hessian, loss = _derivatives(study, ridge, current)
    return LogisticFit(current, float(np.linalg.norm(gradient)))


def _descend(
    study: _Folds, ridge: float, current: Floats, step: Floats, loss: float
) -> tuple[Floats, tuple[Floats, Floats, float]]:
    """Go along a Newton step, half as far until the loss falls."""
    size = 1.0
    while True:
        candidate = current - size * step
        derivatives = _derivatives(study, ridge, candidate)
        if derivatives[2] < loss or size < 1e-6:
            return candidate, derivatives
        size /= 2


class _Point(NamedTuple):
    coefficients: Floats
    gradient: Floats


def _polish(
    study: _Folds,
    few: _Folds | None,
    ridge: float,
    point: _Point,
    hessian: Floats,
    *,
    tolerance: float,
) -> _Point:
    """Repeat steps with one Hessian, while each shortens the gradient eightfold; keep no other.

    If a few rows are at hand, the change of their Hessian since the first point is added to it:
    its sampling error shrinks with the distance, so that steps are nearly Newton's own.
    """
    before = None
    norm = float(np.linalg.norm(point.gradient))
    while norm > tolerance:
        curvature = hessian
        if few is not None:
            now = _derivatives(few, ridge, point.coefficients)[1]
            before = now if before is None else before
            curvature = hessian + (now - before)
        ahead = point.coefficients - np.linalg.solve(curvature, point.gradient)
        sums = study.fold(_gradient_kernel(ahead), title=_TITLE)
        gradient = sums.gradient / sums.rows + ridge * ahead
        shorter = float(np.linalg.norm(gradient))
        if shorter > norm / 8:
            break
        point, norm = _Point(ahead, gradient), shorter
    return point


def _derivatives(study: _Folds, ridge: float, coefficients: Floats) -> tuple[Floats, Floats, float]:
    sums = study.fold(_newton_kernel(coefficients), title=_TITLE)
    gradient = sums.gradient / sums.rows + ridge * coefficients
    hessian = sums.hessian / sums.rows + ridge * np.eye(coefficients.size)
    loss = float(sums.loss / sums.rows + ridge / 2 * coefficients @ coefficients)
    return gradient, hessian, loss


def _newton_kernel(coefficients: Floats) -> Callable[[Block], LossSums]:
    def kernel(block: Block) -> LossSums:
        covariates, treatment = block.covariates, block.treatment
        linear = covariates @ coefficients[1:] + coefficients[0]
        small = np.exp(-np.abs(linear))
        probability = np.where(linear >= 0, 1.0, small) / (1.0 + small)
        loss = np.log(1.0 + small).sum() + np.maximum(linear, 0.0).sum() - treatment @ linear
        residual = probability - treatment
        weight = probability * (1.0 - probability)
        root = covariates * np.sqrt(weight)[:, None]
        hessian = np.empty((coefficients.size, coefficients.size))
        hessian[1:, 1:] = root.T @ root  # one half of it is computed, the other copied
        hessian[0, 1:] = hessian[1:, 0] = weight @ covariates
        hessian[0, 0] = weight.sum()
        return LossSums(treatment.size, float(loss), _gradient(covariates, residual), hessian)

    return kernel


def _gradient_kernel(coefficients: Floats) -> Callable[[Block], LossSums]:
    def kernel(block: Block) -> LossSums:
        covariates, treatment = block.covariates, block.treatment
        linear = covariates @ coefficients[1:] + coefficients[0]
        residual = _sigmoid(linear) - treatment
        return LossSums(residual.size, 0.0, _gradient(covariates, residual), np.zeros((0, 0)))

    return kernel


def _gradient(covariates: Floats, residual: Floats) -> Floats:
    return np.concatenate(([residual.sum()], residual @ covariates))


def _sigmoid(linear: Floats) -> Floats:
    """Return the logistic function without overflow on either side."""
    small = np.exp(-np.abs(linear))
    return np.where(linear >= 0, 1.0, small) / (1.0 + small)
