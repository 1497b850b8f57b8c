"""What each of several arms balances: covariates, their squares and its own score.

Covariates and squares are those of the binary method and the same for every arm; the score of arm
t is ``log e_t/(1 − e_t)`` by the multinomial model. Each column is centred and scaled over all
rows. Everything here is a function of public columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.calibrated.features import (
    SCORE_SHARE,
    Columns,
    extent_of,
    settle_columns,
)
from private_ate.models.folds import FEATURE_ROWS, by_chunks
from private_ate.models.multinomial import MultinomialModel, log_odds
from private_ate.study import Block, Study

__all__ = ["ArmFeatures", "FeatureSet", "fit_arm_features"]


@dataclass(frozen=True, slots=True)
class ArmFeatures:
    """How a row of covariates becomes a row of one arm's features.

    Attributes
    ----------
    columns : Columns
        Covariates and squares, which all arms share.
    model : MultinomialModel
        Where the score comes from.
    arm : int
        The code of the arm.
    score_mean, score_scale : float
        Centre and scale of the arm's score; a zero scale leaves it out.
    """

    columns: Columns
    model: MultinomialModel = field(repr=False)
    arm: int
    score_mean: float
    score_scale: float

    @property
    def size(self) -> int:
        """The number of features (p)."""
        return int(self.columns.linear.size + self.columns.squares.size + (self.score_scale > 0))

    def map(self, covariates: Floats) -> Floats:
        """Return the features of some rows, shape (m, p)."""
        matrix = self.matrix()
        features = matrix[:, :-1] @ self.basis(covariates)
        features += matrix[:, -1:]
        return np.asarray(features.T)

    def basis(self, covariates: Floats) -> Floats:
        """Return deviations, squares and the score, of which features are a fixed map; (b, m)."""
        first, columns = covariates.shape[1], self.columns
        basis = np.empty((first + columns.squares.size + 1, covariates.shape[0]))
        deviations = basis[:first]
        np.subtract(covariates.T, columns.center[:, None], out=deviations)
        np.square(deviations[columns.squares], out=basis[first:-1])
        basis[-1] = self.score(covariates)
        return basis

    def score(self, covariates: Floats) -> Floats:
        """Return the arm's log odds against all others, shape (m,)."""
        return self.model.scores(covariates, self.arm)

    def matrix(self) -> Floats:
        """Return the map from the basis and a constant to the features, shape (p, b + 1)."""
        columns = self.columns
        first, width, curved = columns.linear.size, columns.center.size, columns.squares.size
        matrix = np.zeros((self.size, width + curved + 2))
        matrix[np.arange(first), columns.linear] = columns.linear_scale
        rows = first + np.arange(curved)
        matrix[rows, width + np.arange(curved)] = columns.squares_scale
        matrix[rows, -1] = -columns.squares_mean * columns.squares_scale
        if self.score_scale > 0:
            matrix[-1, -2] = self.score_scale
            matrix[-1, -1] = -self.score_mean * self.score_scale
        return matrix


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """The features of all arms, and how the arms differ before any weighting.

    ``arm_means`` are covariate means of each arm less those of all units, shape (K, d), and
    ``pooled_deviation`` is the root of the arms' mean variance, shape (d,). With sampling weights
    all of these are weighted; ``population`` is how far the mean of all units then lies from that
    of the rows, from which features are counted, shape (d,).
    """

    arms: tuple[ArmFeatures, ...]
    arm_means: Floats
    pooled_deviation: Floats
    population: Floats


@dataclass(frozen=True, slots=True)
class _Spread:
    """Second pass: sums of powers of deviations, by arm where needed, and of all scores."""

    second: Floats  # shape (d,)
    fourth: Floats  # shape (d,)
    rows: Floats  # shape (K,), or sums of sampling weights
    arm_first: Floats  # shape (K, d)
    arm_second: Floats  # shape (K, d)
    score: Floats  # shape (K,)
    score_second: Floats  # shape (K,)

    def __add__(self, other: _Spread) -> _Spread:
        return _Spread(
            self.second + other.second,
            self.fourth + other.fourth,
            self.rows + other.rows,
            self.arm_first + other.arm_first,
            self.arm_second + other.arm_second,
            self.score + other.score,
            self.score_second + other.score_second,
        )


def fit_arm_features(public: Study, model: MultinomialModel) -> FeatureSet:
    """Learn centres and scales from the public covariates in two passes; no arm is empty."""
    extent = public.fold(extent_of, title="features")
    kernel = by_chunks(_spread_kernel(extent.center, model), FEATURE_ROWS)
    moments = public.fold(kernel, title="features")
    columns = settle_columns(extent, moments.second, moments.fourth)
    means = moments.score / extent.rows
    variances = moments.score_second / extent.rows - means**2
    population = moments.arm_first.sum(axis=0) / moments.rows.sum()
    if public.domain.weights is None:
        population = np.zeros_like(population)  # features are counted from the mean of all rows
    first = moments.arm_first / moments.rows[:, None]
    second = moments.arm_second / moments.rows[:, None]
    pooled = np.sqrt(np.maximum(second - first**2, 0.0).mean(axis=0))
    pooled[pooled < 1e-9] = 1.0
    arms = tuple(
        ArmFeatures(
            columns, model, arm, float(mean),
            float(np.sqrt(SCORE_SHARE / variance)) if variance > 1e-12 else 0.0,
        )
        for arm, (mean, variance) in enumerate(zip(means, variances, strict=True))
    )  # fmt: skip
    return FeatureSet(arms, first - population, pooled, population)


def _spread_kernel(center: Floats, model: MultinomialModel) -> Callable[[Block], _Spread]:
    codes = np.arange(model.arms)[:, None]

    def kernel(block: Block) -> _Spread:
        deviations = block.covariates - center
        squares = deviations**2
        linear = model.predictors(block.covariates)
        scores = np.stack([log_odds(linear, arm) for arm in range(model.arms)])
        members = (block.arm == codes).astype(np.float64)
        if block.weights is not None:
            members *= block.weights
        return _Spread(
            squares.sum(axis=0),
            (squares**2).sum(axis=0),
            members.sum(axis=1),
            members @ deviations,
            members @ squares,
            scores.sum(axis=1),
            (scores**2).sum(axis=1),
        )

    return kernel
