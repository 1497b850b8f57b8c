"""What a row shows: its outcome less a prognosis, and its place along the score of each arm.

Both are functions of the row's own values and of what was released before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from scipy.special import expit, ndtr

from private_ate.arrays import Floats, Indices
from private_ate.estimators.orthogonal.several_arms.sums import centred_outcomes
from private_ate.models.private_logistic import RowFeatures
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block

__all__ = ["PROGNOSIS_BOUND", "AsTheyAre", "Outcomes", "Prognosis", "Scores"]

PROGNOSIS_BOUND: Final = 0.2  # of the range: how far a prognosis may move an outcome


class Outcomes(Protocol):
    """Outcomes as they are added up: centred, bounded, in steps of 2⁻³⁰ of the declared range."""

    @property
    def half_range(self) -> int:
        """The largest size of an outcome in steps."""

    @property
    def width(self) -> float:
        """The range of these outcomes in units of the declared range (W)."""

    def of(self, block: Block) -> Floats:
        """Return the outcomes of a block in steps."""


@dataclass(frozen=True, slots=True)
class AsTheyAre:
    """Outcomes less the middle of their range."""

    half_range: int = OUTCOME_STEPS // 2
    width: float = 1.0

    def of(self, block: Block) -> Floats:
        """Return the outcomes of a block in steps."""
        return centred_outcomes(block)


@dataclass(frozen=True, slots=True)
class Prognosis:
    """Outcomes less a released prognosis, which is one model for all arms.

    ``weights`` holds the intercept first, then one slope per feature.
    """

    design: RowFeatures
    weights: Floats

    @property
    def half_range(self) -> int:
        """The largest size of an outcome in steps, the prognosis taken off."""
        return OUTCOME_STEPS // 2 + math.ceil(PROGNOSIS_BOUND * OUTCOME_STEPS)

    @property
    def width(self) -> float:
        """The range of these outcomes in units of the declared range (W)."""
        return 2 * self.half_range / OUTCOME_STEPS

    def of(self, block: Block) -> Floats:
        """Return the outcomes of a block in steps, clipped to their range once more."""
        outcome = centred_outcomes(block)
        outcome -= np.rint(self.deviation(block) * OUTCOME_STEPS)
        np.clip(outcome, -self.half_range, self.half_range, out=outcome)
        return outcome

    def deviation(self, block: Block) -> Floats:
        """Return how far the prognosis of each row lies from that of the origin, bounded."""
        linear = _linear(self.weights[None, 1:], self.design.features(block)[1:])[0]
        away = expit(self.weights[0] + linear) - expit(self.weights[0])
        bounded: Floats = np.clip(away, -PROGNOSIS_BOUND, PROGNOSIS_BOUND)
        return bounded


@dataclass(frozen=True, slots=True)
class Scores:
    """A released score for each arm, and the cells of equal probability along it.

    Separate models give linear scores. A joint model gives log odds of each arm against all
    others, less those of a row whose features are all zero.

    Attributes
    ----------
    slopes : array, shape (K, p − 1)
        Weights of each arm's model, without the intercept.
    reach : array, shape (K,)
        How far from zero a score is taken to lie at most (r).
    cells : int
        Cells along each score (G).
    centre, spread : array, shape (K,)
        Released mean and standard deviation of each score.
    intercepts : array, shape (K,), or None
        Of a joint model; None for separate models.
    """

    design: RowFeatures
    slopes: Floats
    reach: Floats
    cells: int
    centre: Floats
    spread: Floats
    intercepts: Floats | None = None

    @property
    def arms(self) -> int:
        """The number of arms (K)."""
        return int(self.slopes.shape[0])

    def scores(self, block: Block) -> Floats:
        """Return every arm's score of every row, shape (K, m); equal rows have equal ones."""
        linear = _linear(self.slopes, self.design.features(block)[1:])
        if self.intercepts is None:
            return linear
        start = self.intercepts[:, None]
        scores: Floats = log_odds(linear + start) - log_odds(start)
        return scores

    def all_cells(self, block: Block) -> Indices:
        """Return the cell of every row along every arm's score, shape (K, m)."""
        return self._cells(self.scores(block), self.centre[:, None], self.spread[:, None])

    def own_cells(self, block: Block) -> Indices:
        """Return the cell of every row along the score of its own arm, shape (m,)."""
        arm = block.arm
        if self.intercepts is not None:
            score = self.scores(block)[arm, np.arange(arm.size)]
            return self._cells(score, self.centre[arm], self.spread[arm])
        score = np.zeros(arm.size)
        for column, feature in zip(self.slopes.T, self.design.features(block)[1:], strict=True):
            score += column[arm] * feature
        return self._cells(score, self.centre[arm], self.spread[arm])

    def _cells(self, score: Floats, centre: Floats, spread: Floats) -> Indices:
        place = (self.cells * ndtr((score - centre) / spread)).astype(np.intp)
        return np.minimum(place, self.cells - 1)


def log_odds(linear: Floats) -> Floats:
    """Return ``log e_t/(1 − e_t)`` of every arm from the logits of all; shape (K, m)."""
    odds = np.empty_like(linear)
    for arm in range(linear.shape[0]):
        others = np.delete(linear, arm, axis=0)
        odds[arm] = linear[arm] - np.logaddexp.reduce(others, axis=0)
    return odds


def _linear(slopes: Floats, features: Floats) -> Floats:
    # Feature by feature: a matrix product may round equal rows differently.
    linear = np.zeros((slopes.shape[0], features.shape[1]))
    for column, feature in zip(slopes.T, features, strict=True):
        linear += column[:, None] * feature
    return linear
