"""Propensity scores: ridge logistic regression by folds over the rows.

The loss is ``J(w) = mean log(1 + exp(−tᵢ zᵢ·w)) + (λ/2)‖w‖²`` with ``z = (1, x)``, ``x`` in
[0, 1]ᵈ and ``t = ±1``; the intercept is penalised too. Every quantity is a sum over rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Floats
from private_ate.models.folds import Folds, LossSums, few_rows
from private_ate.models.newton import (
    PUBLIC_GRADIENT,
    SOLVER_GRADIENT,
    Derivatives,
    Schedule,
    minimize,
    minimize_obliviously,
)
from private_ate.study import Block, Rows, Study

__all__ = ["SOLVER_GRADIENT", "LogisticFit", "fit_logistic", "fit_logistic_obliviously"]


_FEW = 6_000  # rows that stand for all while far from the minimum
_TITLE = "propensity model"


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
    shows how the Hessian changes from step to step: one full Hessian and few gradients suffice.
    """
    start = np.zeros(study.dimension + 1)
    stride = study.size // _FEW
    if stride <= 1:
        return LogisticFit(*minimize(_Loss(study, ridge), None, start, tolerance=PUBLIC_GRADIENT))
    few = _Loss(study.fold(few_rows(stride), title=_TITLE).joined(), ridge)
    start = minimize(few, None, start, tolerance=1e-6).point
    return LogisticFit(*minimize(_Loss(study, ridge), few, start, tolerance=PUBLIC_GRADIENT))


def fit_logistic_obliviously(study: Rows, ridge: float) -> LogisticFit:
    """Fit in a number of passes that depends on d and λ only, whatever the rows are.

    Its gradient norm is at most γ = 1e-9. Proof: docs/proofs/propensity.md.
    """
    size = study.dimension + 1
    return LogisticFit(*minimize_obliviously(_Loss(study, ridge), size, _schedule(size, ridge)))


def gradient_steps(dimension: int, ridge: float) -> int:
    """Return the number of accelerated steps after which Newton's method squares its error."""
    return _schedule(dimension, ridge).gradient_steps


def _schedule(dimension: int, ridge: float) -> Schedule:
    return Schedule(dimension / 4 + ridge, ridge, math.log(2), dimension)


@dataclass(frozen=True, slots=True)
class _Loss:
    """The mean logistic loss of some rows with its ridge."""

    rows: Folds
    ridge: float

    def derivatives(self, point: Floats) -> Derivatives:
        """Return gradient, Hessian and value at some coefficients."""
        sums = self.rows.fold(_newton_kernel(point), title=_TITLE)
        gradient = sums.gradient / sums.rows + self.ridge * point
        hessian = sums.hessian / sums.rows + self.ridge * np.eye(point.size)
        loss = float(sums.loss / sums.rows + self.ridge / 2 * point @ point)
        return Derivatives(gradient, hessian, loss)

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient alone."""
        sums = self.rows.fold(_gradient_kernel(point), title=_TITLE)
        return sums.gradient / sums.rows + self.ridge * point


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
