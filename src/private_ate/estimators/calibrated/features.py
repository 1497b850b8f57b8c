"""What calibration balances: covariates, their squares and the score, on a common scale.

Each column is centred over the whole sample and scaled so that the variances of its block add up
to the block's share, a prior guess of how much of the outcome's variance the block explains.
Everything here is a function of public columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats
from private_ate.study import Block, Study

__all__ = [
    "SCORE_SHARE", "UNEXPLAINED", "Columns", "Extent", "FeatureMap", "extent_of", "fit_features",
    "settle_columns",
]  # fmt: skip


_LINEAR: Final = 0.40
_SQUARES: Final = 0.10
SCORE_SHARE: Final = 0.15
UNEXPLAINED: Final = 0.35  # r: the share of the outcome's variance that no feature explains


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """How a row of covariates becomes a row of features.

    Attributes
    ----------
    coefficients : array, shape (d + 1,)
        Propensity model whose linear predictor is the score.
    center : array, shape (d,)
        Means of the covariates.
    linear, linear_scale : arrays, shape (k,)
        Indices of covariates that vary, and what their deviations are multiplied by.
    squares, squares_mean, squares_scale : arrays, shape (q,)
        Indices of covariates with more than two values, and centre and scale of their squares.
    score_mean, score_scale : float
        Centre and scale of the score; a zero scale leaves it out.
    arm_means, pooled_deviation : arrays, shapes (2, d) and (d,)
        Covariate means of treated and control, and the spread that standardises their difference.
    """

    coefficients: Floats
    center: Floats
    linear: npt.NDArray[np.intp]
    linear_scale: Floats
    squares: npt.NDArray[np.intp]
    squares_mean: Floats
    squares_scale: Floats
    score_mean: float
    score_scale: float
    arm_means: Floats
    pooled_deviation: Floats

    @property
    def size(self) -> int:
        """The number of features (p)."""
        return int(self.linear.size + self.squares.size + (self.score_scale > 0))

    @property
    def linear_deviation(self) -> Floats:
        """Standard deviations of the covariates that vary, shape (k,)."""
        return np.asarray(math.sqrt(_LINEAR / max(self.linear.size, 1)) / self.linear_scale)

    @property
    def score_deviation(self) -> float:
        """Standard deviation of the score."""
        return math.sqrt(SCORE_SHARE) / self.score_scale if self.score_scale > 0 else 0.0

    @property
    def doubt(self) -> Floats:
        """What an interval multiplies each feature's imbalance by: nothing but its prior guess."""
        return np.ones(self.size)

    def probability(self, covariates: Floats) -> Floats:
        """Return the chance of treatment of some rows by the linear score, shape (m,)."""
        score = covariates @ self.coefficients[1:] + self.coefficients[0]
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -30.0, 30.0))))

    def map(self, covariates: Floats) -> Floats:
        """Return the features of some rows, shape (m, p)."""
        features = np.empty((self.size, covariates.shape[0]))
        columns = covariates.T
        deviations = columns - self.center[:, None]
        first, second = self.linear.size, self.linear.size + self.squares.size
        np.multiply(deviations[self.linear], self.linear_scale[:, None], out=features[:first])
        squared = features[first:second]
        np.square(deviations[self.squares], out=squared)
        squared -= self.squares_mean[:, None]
        squared *= self.squares_scale[:, None]
        if self.score_scale > 0:
            score = self.coefficients[1:] @ deviations
            features[second] = (score - self.score_mean) * self.score_scale
        return features.T

    def basis(self, covariates: Floats) -> Floats:
        """Return deviations and their squares, of which features are a fixed map; shape (b, m)."""
        first = covariates.shape[1]
        basis = np.empty((first + self.squares.size, covariates.shape[0]))
        deviations = basis[:first]
        np.subtract(covariates.T, self.center[:, None], out=deviations)
        curved = deviations if self.squares.size == first else deviations[self.squares]
        np.square(curved, out=basis[first:])
        return basis

    def matrix(self) -> Floats:
        """Return the map from the basis and a constant to the features, shape (p, b + 1)."""
        first, width = self.linear.size, self.center.size
        matrix = np.zeros((self.size, width + self.squares.size + 1))
        matrix[np.arange(first), self.linear] = self.linear_scale
        rows = first + np.arange(self.squares.size)
        matrix[rows, width + np.arange(self.squares.size)] = self.squares_scale
        matrix[rows, -1] = -self.squares_mean * self.squares_scale
        if self.score_scale > 0:
            matrix[-1, :width] = self.coefficients[1:] * self.score_scale
            matrix[-1, -1] = -self.score_mean * self.score_scale
        return matrix


@dataclass(frozen=True, slots=True)
class Extent:
    """First pass: sums and extremes of the covariates; adds up over blocks."""

    rows: int
    total: Floats
    low: Floats
    high: Floats

    def __add__(self, other: Extent) -> Extent:
        return Extent(
            self.rows + other.rows,
            self.total + other.total,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    @property
    def center(self) -> Floats:
        """Means of the covariates."""
        return np.asarray(self.total / self.rows)


@dataclass(frozen=True, slots=True)
class Columns:
    """Which covariates enter as they are and squared, and how they are centred and scaled.

    Attributes
    ----------
    center : array, shape (d,)
        Means of the covariates.
    linear, linear_scale : arrays, shape (k,)
        Indices of covariates that vary, and what their deviations are multiplied by.
    squares, squares_mean, squares_scale : arrays, shape (q,)
        Indices of covariates with more than two values, and centre and scale of their squares.
    """

    center: Floats
    linear: npt.NDArray[np.intp]
    linear_scale: Floats
    squares: npt.NDArray[np.intp]
    squares_mean: Floats
    squares_scale: Floats


def settle_columns(extent: Extent, second: Floats, fourth: Floats) -> Columns:
    """Choose and scale columns, given sums of second and fourth powers of their deviations."""
    center, variance = extent.center, second / extent.rows
    varies = extent.high - extent.low > 1e-9
    # A column with two values has the largest variance that its mean and range allow.
    largest = (center - extent.low) * (extent.high - center)
    curved = varies & (variance < (1 - 1e-9) * largest)
    square_variance = fourth / extent.rows - variance**2
    curved &= square_variance > 1e-18
    linear, squares = np.flatnonzero(varies), np.flatnonzero(curved)
    return Columns(
        center=center,
        linear=linear,
        linear_scale=np.sqrt(_LINEAR / max(linear.size, 1) / variance[linear]),
        squares=squares,
        squares_mean=variance[squares],
        squares_scale=np.sqrt(_SQUARES / max(squares.size, 1) / square_variance[squares]),
    )


@dataclass(frozen=True, slots=True)
class _Spread:
    """Second pass: sums of powers of deviations and of the score."""

    second: Floats
    fourth: Floats
    score: float
    score_second: float
    treated: int
    treated_first: Floats
    treated_second: Floats

    def __add__(self, other: _Spread) -> _Spread:
        return _Spread(
            self.second + other.second,
            self.fourth + other.fourth,
            self.score + other.score,
            self.score_second + other.score_second,
            self.treated + other.treated,
            self.treated_first + other.treated_first,
            self.treated_second + other.treated_second,
        )


def fit_features(public: Study, coefficients: Floats) -> FeatureMap:
    """Learn centres and scales from the public covariates in two passes."""
    extent = public.fold(extent_of, title="features")
    center = extent.center

    def spread(block: Block) -> _Spread:
        deviations = block.covariates - center
        squares = deviations**2
        score = deviations @ coefficients[1:]
        return _Spread(
            squares.sum(axis=0),
            (squares**2).sum(axis=0),
            float(score.sum()),
            float((score**2).sum()),
            int(np.count_nonzero(block.treatment)),
            block.treatment @ deviations,
            block.treatment @ squares,
        )

    moments = public.fold(spread, title="features")
    columns = settle_columns(extent, moments.second, moments.fourth)
    score_mean = moments.score / extent.rows
    score_variance = moments.score_second / extent.rows - score_mean**2
    arm_means, pooled = _compare_arms(moments, extent.rows)
    return FeatureMap(
        coefficients=coefficients,
        center=columns.center,
        linear=columns.linear,
        linear_scale=columns.linear_scale,
        squares=columns.squares,
        squares_mean=columns.squares_mean,
        squares_scale=columns.squares_scale,
        score_mean=score_mean,
        score_scale=float(np.sqrt(SCORE_SHARE / score_variance)) if score_variance > 1e-12 else 0.0,
        arm_means=center + arm_means,
        pooled_deviation=pooled,
    )


def _compare_arms(moments: _Spread, rows: int) -> tuple[Floats, Floats]:
    """Return both arms' mean deviations and the root of their mean variance."""
    sizes = np.array([[moments.treated], [rows - moments.treated]], dtype=np.float64)
    first = np.stack([moments.treated_first, -moments.treated_first]) / sizes
    second = np.stack([moments.treated_second, moments.second - moments.treated_second]) / sizes
    pooled = np.sqrt(np.maximum(second - first**2, 0.0).mean(axis=0))
    pooled[pooled < 1e-9] = 1.0
    return first, pooled


def extent_of(block: Block) -> Extent:
    """Return the sums and extremes of a block's covariates."""
    return Extent(
        block.arm.size,
        block.covariates.sum(axis=0),
        block.covariates.min(axis=0),
        block.covariates.max(axis=0),
    )
