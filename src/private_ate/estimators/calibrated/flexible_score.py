"""A propensity score that may bend, if held-out rows say that it predicts treatment better.

Fitted on public rows by ridge logistic regression on all terms. The inverse of a probability is
linear in the odds of the score; weights that balance the score's hinges and both odds can
therefore come close to inverse probabilities, and those balance every function of the covariates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.estimators.calibrated.features import FeatureMap
from private_ate.estimators.calibrated.terms import LearningRows, Terms

__all__ = ["BentScore", "Score", "fit_bent_score", "score_on"]


_KNOTS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
_REACH: Final = (0.005, 0.995)  # quantiles between which the score's exponentials follow it
_PENALTIES: Final = (2.0, 0.5, 0.1, 0.02)  # of the bent terms, times the root of the rows
_GAIN: Final = 3.0  # nats of held-out likelihood by which a bent score must win
_NEWTON_STEPS: Final = 12


@dataclass(frozen=True, slots=True)
class Score:
    """A propensity score on all terms, and the functions of it that are balanced."""

    straight: Floats  # slopes of the linear score, one per term
    intercept: float  # of the best score
    slopes: Floats  # of the best score, one per term
    is_flexible: bool  # whether the best score is not the linear one
    knots: Floats
    low: float
    high: float

    def best(self, terms: Floats) -> Floats:
        """Return the best score of some rows, shape (m,)."""
        score: Floats = self.slopes @ terms + self.intercept
        return score

    def overlap(self, terms: Floats, treatment: Bits) -> float:
        """Return how many equal units one unit is worth under inverse probabilities, worst arm.

        A fitted score is shrunk towards none; its slope is fitted once more on the rows given.
        """
        score = self.best(terms)
        rows = np.vstack([np.ones(score.size), score]).T
        free = _fit_ridge(rows, treatment, np.full(2, 1e-3), np.array([0.0, 1.0]))
        score = np.clip(rows @ free, *np.quantile(rows @ free, _REACH))
        worth = []
        for members, sign in ((treatment, -1.0), (~treatment, 1.0)):
            inverse = 1.0 + np.exp(sign * score[members])
            worth.append(float(inverse.mean()) ** 2 / float((inverse**2).mean()))
        return min(worth)

    @property
    def size(self) -> int:
        """How many functions of the score are balanced."""
        return self.knots.size + 3 + self.is_flexible

    def fill(self, terms: Floats, functions: Floats) -> None:
        """Write the linear score, the best if another, its hinges and both odds, (size, m)."""
        score = self.best(terms)
        functions[0] = self.straight @ terms
        if self.is_flexible:
            functions[1] = score
        np.subtract(score, self.knots[:, None], out=functions[-2 - self.knots.size : -2])
        np.maximum(
            functions[-2 - self.knots.size : -2], 0.0, out=functions[-2 - self.knots.size : -2]
        )
        np.clip(score, self.low, self.high, out=score)
        np.exp(score, out=functions[-2])
        np.divide(1.0, functions[-2], out=functions[-1])


@dataclass(frozen=True, slots=True)
class BentScore:
    """A score on all terms, and how much better than a linear one it predicts treatment."""

    slopes: Floats  # one per term
    intercept: float
    gain: float  # nats of likelihood per row that was held out


def score_on(terms: Terms, plain: FeatureMap, covariates: Floats, bent: BentScore | None) -> Score:
    """Return the functions to balance of the linear score, or of the bent one if given."""
    straight = np.zeros(terms.size)
    straight[: plain.linear.size] = (plain.coefficients[1:] * terms.deviation)[plain.linear]
    level = float(plain.coefficients[0] + plain.coefficients[1:] @ plain.center)
    slopes, intercept = (straight, level) if bent is None else (bent.slopes, bent.intercept)
    score = slopes @ terms.of(covariates) + intercept
    low, high = np.quantile(score, _REACH)
    knots = np.unique(np.quantile(score, _KNOTS))
    return Score(straight, intercept, slopes, bent is not None, knots, float(low), float(high))


def fit_bent_score(terms: Terms, learning: LearningRows) -> BentScore | None:
    """Fit a score on all terms; held-out rows choose its penalty. None if they prefer a line."""
    treatment = learning.treatment
    functions = terms.of(learning.covariates)
    mean, deviation = functions.mean(axis=1), functions.std(axis=1)
    usable = deviation > 1e-6
    scaled = (functions[usable] - mean[usable, None]) / deviation[usable, None]
    rows = np.vstack([np.ones(treatment.size), scaled]).T
    bends = np.append(False, (np.arange(terms.size) >= terms.linear.size)[usable])
    penalty, gain = _choose_penalty(rows, treatment, learning.held_out, bends)
    if penalty is None:
        return None
    weights = _fit_ridge(rows, treatment, np.where(bends, penalty, 1.0), np.zeros(rows.shape[1]))
    slopes = np.zeros(terms.size)
    slopes[usable] = weights[1:] / deviation[usable]
    return BentScore(slopes, float(weights[0] - slopes @ mean), gain)


def _choose_penalty(
    rows: Floats, treatment: Bits, held: Bits, bends: Bits
) -> tuple[float | None, float]:
    """Return the penalty whose fit on two rows in three predicts the third best, and its gain."""
    sign = np.where(treatment[held], -1.0, 1.0)

    def loss(weights: Floats) -> float:
        return float(np.logaddexp(0.0, sign * (rows[held] @ weights)).sum())

    straight = rows[:, ~bends]
    weights = np.zeros(rows.shape[1])
    weights[~bends] = _fit_ridge(
        straight[~held], treatment[~held], np.ones(straight.shape[1]), weights[~bends]
    )
    linear = loss(weights)
    best, least = None, linear - _GAIN
    for penalty in np.sqrt(treatment.size) * np.array(_PENALTIES):
        ridge = np.where(bends, max(float(penalty), 1.0), 1.0)
        weights = _fit_ridge(rows[~held], treatment[~held], ridge, weights)
        if loss(weights) < least:
            best, least = float(ridge.max()), loss(weights)
    return best, (linear - least) / max(int(np.count_nonzero(held)), 1)


def _fit_ridge(rows: Floats, treatment: Bits, ridge: Floats, start: Floats) -> Floats:
    """Return the coefficients of a ridge logistic fit by Newton steps; the first is free."""
    ridge = np.append(1e-3, ridge[1:])
    weights = start
    for _ in range(_NEWTON_STEPS):
        predicted = 1.0 / (1.0 + np.exp(-np.clip(rows @ weights, -30.0, 30.0)))
        slope = rows.T @ (predicted - treatment) + ridge * weights
        curvature = (rows * np.maximum(predicted * (1 - predicted), 1e-4)[:, None]).T @ rows
        step = np.linalg.solve(curvature + np.diag(ridge), slope)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-4:
            break
    return weights
