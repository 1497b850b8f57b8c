"""Held-out evidence that treatment follows more than a straight line of the covariates.

Each fold fits a logistic line, a spline of the line's own index, a line with products of
covariates, and boosted trees on what these leave; the stack of all four is compared with the line
alone on rows that no fit has seen. Everything here is a function of public columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.special import expit

from private_ate.arrays import Bits, Floats, Indices
from private_ate.models.folds import scatter

__all__ = ["KNOTS", "PRODUCTS", "evidence_of", "fit_line", "index_terms", "telling_products"]

PRODUCTS: Final = 20  # that trees may split on and that the line with products holds
KNOTS: Final = (0.2, 0.4, 0.6, 0.8)  # quantiles of the line's index at which its spline may turn
# Standard errors of held-out gain at which evidence begins to count, and counts fully: families
# with a straight line stay below 0.6, two-condition rules have 0 at n = 1,000 and 5 at 10,000.
_NO_EVIDENCE, _FULL_EVIDENCE = 1.0, 5.0
_FLOOR: Final = 0.1  # added to the gain's deviation: small where nothing predicts the arm
_FOLDS: Final = 5
_FEWEST: Final = 200  # rows below which held-out gains are too noisy to count
_ALL_FOLDS, _TWO_FOLDS = 4_000, 10_000  # rows up to which all folds, and two of them, are used
_ROUNDS, _PATIENCE = 400, 40
_LINE_RIDGE, _MORE_RIDGE, _STACK_RIDGE = 1.0, 5.0, 1e-3
_STEPS: Final = 25
_CLIP: Final = 30.0


def evidence_of(columns: Floats, target: Floats) -> float:
    """Return the evidence that non-linear terms predict a 0/1 target better than a line, 0 to 1.

    ``columns`` are standardised covariates, shape (n, d).
    """
    rows = target.size
    if rows < _FEWEST or not 0 < target.sum() < rows:
        return 0.0
    folds = np.empty(rows, dtype=np.int64)
    folds[np.argsort(scatter(0, rows), kind="stable")] = np.arange(rows) % _FOLDS
    used = _FOLDS if rows <= _ALL_FOLDS else 2 if rows <= _TWO_FOLDS else 1
    found = [_hold_out(columns, target, folds == fold) for fold in range(used)]
    least = min(losses.size for _, losses, _ in found)
    rounds = int(np.mean([losses[:least] for _, losses, _ in found], axis=0).argmin())
    parts = [
        np.column_stack([scores, trees(rounds)]) if rounds else scores for scores, _, trees in found
    ]
    held = np.concatenate([target[folds == fold] for fold in range(used)])
    stacked = np.column_stack([np.ones(held.size), np.concatenate(parts)])
    line = _loss(held, stacked[:, :2] @ fit_line(stacked[:, :2], held, _STACK_RIDGE))
    gain = line - _loss(held, stacked @ fit_line(stacked, held, _STACK_RIDGE))
    # A fitted coefficient gains 1/(2n) on the rows that it is fitted on.
    free = (stacked.shape[1] - 2) / 2 / held.size
    errors = (gain.mean() - free) / ((gain.std() + _FLOOR) / np.sqrt(held.size))
    return float(np.clip((errors - _NO_EVIDENCE) / (_FULL_EVIDENCE - _NO_EVIDENCE), 0.0, 1.0))


def _hold_out(
    columns: Floats, target: Floats, held: Bits
) -> tuple[Floats, Floats, Callable[[int], Floats]]:
    """Fit on all rows but the held-out ones.

    Returns the held-out log odds of the line, of its spline less the line and of products less the
    line, shape (m, 3); the held-out loss after each tree; and what the first trees add.
    """
    from private_ate.models.boosting import boost_until_worse  # numba loads here

    left, right = telling_products(columns[~held], target[~held], PRODUCTS)
    terms = np.column_stack([columns, columns[:, left] * columns[:, right]])
    design = _with_constant(terms, ~held)
    width = columns.shape[1] + 1
    index = design[:, :width] @ fit_line(design[~held, :width], target[~held], _LINE_RIDGE)
    knots = np.quantile(index[~held], KNOTS)
    curve = _with_constant(np.column_stack([index, index_terms(index, knots)]), ~held)
    spline = curve[held] @ fit_line(curve[~held], target[~held], _LINE_RIDGE)
    more = design @ fit_line(design[~held], target[~held], _MORE_RIDGE)
    trees, losses = boost_until_worse(
        terms[~held], target[~held], more[~held], (terms[held], target[held], more[held]),
        _ROUNDS, _PATIENCE,
    )  # fmt: skip
    line = index[held]
    scores = np.column_stack([line, spline - line, more[held] - line])
    return scores, losses, lambda rounds: trees.predict(np.ascontiguousarray(terms[held].T), rounds)


def _with_constant(terms: Floats, fitted: Bits) -> Floats:
    """Return a constant and the terms, standardised over the rows that a fit may see."""
    deviation = np.maximum(terms[fitted].std(axis=0), 1e-9)
    scaled = (terms - terms[fitted].mean(axis=0)) / deviation
    return np.column_stack([np.ones(terms.shape[0]), scaled])


def fit_line(design: Floats, target: Floats, ridge: float) -> Floats:
    """Fit a logistic model by Newton steps; the first column is the constant and has no ridge."""
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 1e-6
    coefficients = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chance = expit(np.clip(design @ coefficients, -_CLIP, _CLIP))
        curvature = (design * np.maximum(chance * (1 - chance), 1e-5)[:, None]).T @ design
        slope = design.T @ (target - chance) - penalty * coefficients
        step = np.linalg.solve(curvature + np.diag(penalty), slope)
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-6:
            break
    return coefficients


def telling_products(columns: Floats, target: Floats, keep: int) -> tuple[Indices, Indices]:
    """Return pairs of columns whose product differs most between the arm and the rest.

    Differences are counted in the product's own standard deviations; ``columns`` are standardised.
    """
    rows, width = columns.shape
    left, right = np.triu_indices(width, 1)
    squares = columns**2
    variance = (squares.T @ squares / rows - (columns.T @ columns / rows) ** 2)[left, right]
    centred = target - target.mean()
    covariance = np.abs((columns * centred[:, None]).T @ columns / rows)[left, right]
    varies = variance > 1e-3
    size = np.where(varies, covariance / np.sqrt(np.maximum(variance, 1e-12)), -1.0)
    kept = np.argsort(-size, kind="stable")[:keep]
    kept = kept[varies[kept]]
    return left[kept], right[kept]


def index_terms(index: Floats, knots: Floats) -> Floats:
    """Return the hinges of a line's index, shape (m, knots)."""
    return np.asarray(np.maximum(index[:, None] - knots, 0.0))


def _loss(target: Floats, score: Floats) -> Floats:
    return np.asarray(np.logaddexp(0.0, np.where(target == 1, -score, score)))
