"""What calibration balances when rows allow: bends, products and functions of the score.

Covariates and treatment are public at label level, so features may be as many as they like and
may be chosen by looking at the treatment; they never look at an outcome. Beside covariates,
squares and the score there are hinges of covariates, products of pairs, and functions of a score
that may itself bend. Each block's share is a prior guess of how much of the outcome's variance it
explains: with few rows the weights hardly follow a block of small share, with many rows its
imbalance vanishes like that of the covariates, and so does the bias. Functions of the score count
by what is new in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats, Indices
from private_ate.estimators.calibrated.bends import doubt_by, growth_of, new_functions
from private_ate.estimators.calibrated.features import FeatureMap
from private_ate.estimators.calibrated.flexible_score import (
    BentScore,
    Score,
    fit_bent_score,
    score_on,
)
from private_ate.estimators.calibrated.terms import LearningRows, Terms, choose_terms
from private_ate.models.folds import FEATURE_ROWS, by_chunks
from private_ate.study import Block, Study

__all__ = ["RichFeatureMap", "grow_features", "scatter"]


# Of bends where a network tells treatment best: interactions of many covariates show then, and
# the other features have those of pairs alone.
_NETWORK_DOUBT: Final = 8.0
_LINEAR: Final = 0.40
_SQUARES: Final = 0.10
_HINGES: Final = 0.08
_PRODUCTS: Final = 0.10
_SCORE: Final = 0.15
_FLEXIBLE: Final = 0.25
_BENDS: Final = 0.05  # functions of the score beyond all other terms
_FEW_ROWS: Final = 5_000  # rows up to which bent terms need all of the evidence
_MANY_ROWS: Final = 20_000  # rows from which terms need no evidence
_VERY_MANY_ROWS: Final = 15_000  # rows from which shares of hinges and products grow with them
_MOST_MORE: Final = 10.0
_EVIDENCE: Final = 0.02  # nats a row by which bent terms must tell treatment better, few rows
_STRONG_EVIDENCE: Final = 2.5  # times that: the bent score itself is balanced
_LEARNING_ROWS: Final = 20_000  # rows from which knots, products and the score are learnt
_FEWEST: Final = 50  # rows of an arm below which nothing is grown


@dataclass(frozen=True, slots=True)
class RichFeatureMap:
    """How a row of covariates becomes a row of features; answers as ``FeatureMap`` does.

    Attributes
    ----------
    plain : FeatureMap
        Covariates, squares and the linear score, from which these features were grown.
    terms, score : Terms, Score
        What is computed from a row.
    mean : array, shape (b,)
        Centre over all rows of each function of a row: terms, then functions of the score.
    scale : array
        What the deviations of terms and scores are multiplied by; zero for those left out.
    bends : array, shape (k, b)
        Combinations of all functions that are new to terms and scores.
    doubt : array, shape (p,)
        What an interval multiplies each feature's imbalance by: the class of outcomes that it
        covers gives bends their full share, and leans on them more where arms overlap less.
    """

    plain: FeatureMap
    terms: Terms
    score: Score
    mean: Floats
    scale: Floats
    bends: Floats
    doubt: Floats

    @property
    def size(self) -> int:
        """The number of features (p)."""
        return int(self.scale.size + self.bends.shape[0])

    @property
    def coefficients(self) -> Floats:
        """The linear propensity model, along which like units are paired."""
        return self.plain.coefficients

    @property
    def linear(self) -> Indices:
        """Covariates that vary; their features come first."""
        return self.terms.linear

    @property
    def linear_scale(self) -> Floats:
        """What deviations of those covariates are multiplied by."""
        used = self.terms.linear.size
        return np.asarray(self.scale[:used] / self.terms.deviation[self.terms.linear])

    @property
    def arm_means(self) -> Floats:
        """Covariate means of treated and control, shape (2, d)."""
        return self.plain.arm_means

    @property
    def pooled_deviation(self) -> Floats:
        """The spread that standardises differences of covariate means, shape (d,)."""
        return self.plain.pooled_deviation

    def probability(self, covariates: Floats) -> Floats:
        """Return the chance of treatment of some rows by the best score, shape (m,)."""
        score = self.score.best(self.terms.of(covariates))
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -30.0, 30.0))))

    def basis(self, covariates: Floats) -> Floats:
        """Return the functions of some rows as they are, shape (p, m)."""
        basis = self.terms.of(covariates, self.score.size)
        self.score.fill(basis[: self.terms.size], basis[self.terms.size :])
        return basis

    def map(self, covariates: Floats) -> Floats:
        """Return the features of some rows, shape (m, p)."""
        basis = self.basis(covariates)
        basis -= self.mean[:, None]
        features = np.empty((self.size, covariates.shape[0]))
        straight = self.scale.size
        np.multiply(basis[:straight], self.scale[:, None], out=features[:straight])
        np.matmul(self.bends, basis, out=features[straight:])
        return features.T

    def matrix(self) -> Floats:
        """Return the map from the basis and a constant to the features, shape (p, b + 1)."""
        matrix = np.zeros((self.size, self.mean.size + 1))
        straight = np.arange(self.scale.size)
        matrix[straight, straight] = self.scale
        matrix[self.scale.size :, :-1] = self.bends
        matrix[:, -1] = -matrix[:, :-1] @ self.mean
        return matrix


@dataclass(frozen=True, slots=True)
class _Gathered:
    """Public rows gathered from all blocks."""

    covariates: tuple[Floats, ...]
    treatment: tuple[Bits, ...]
    held_out: tuple[Bits, ...]

    def __add__(self, other: _Gathered) -> _Gathered:
        return _Gathered(
            self.covariates + other.covariates,
            self.treatment + other.treatment,
            self.held_out + other.held_out,
        )

    def joined(self) -> LearningRows:
        """Return the rows of all blocks as one."""
        return LearningRows(
            np.concatenate(self.covariates),
            np.concatenate(self.treatment),
            np.concatenate(self.held_out),
        )


@dataclass(frozen=True, slots=True)
class _Moments:
    """Sums of functions and of their squares."""

    rows: int
    first: Floats
    second: Floats

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(
            self.rows + other.rows, self.first + other.first, self.second + other.second
        )


def grow_features(public: Study, plain: FeatureMap) -> FeatureMap | RichFeatureMap:
    """Grow features from public rows; too few rows or no covariate that varies keep the plain."""
    if plain.linear.size == 0 or plain.score_scale == 0:
        return plain
    gathered = public.fold(_gather_kernel(_LEARNING_ROWS / public.size), title="features")
    learning = gathered.joined()
    treated = int(np.count_nonzero(learning.treatment))
    if min(treated, learning.treatment.size - treated) < _FEWEST:
        return plain
    candidates = choose_terms(plain, learning, public.size)
    terms, bent, is_ignored = _gather_evidence(candidates, learning, public.size)
    score = score_on(terms, plain, learning.covariates, bent)
    empty = np.zeros(0)
    unscaled = RichFeatureMap(plain, terms, score, empty, empty, np.zeros((0, 0)), empty)
    moments = public.fold(by_chunks(_moments_kernel(unscaled), FEATURE_ROWS), title="features")
    overlap = score.overlap(terms.of(learning.covariates), learning.treatment)
    doubt = doubt_by(0.0 if is_ignored else overlap)
    if score.hidden is not None:
        doubt = _NETWORK_DOUBT
    return _scale(unscaled, moments, learning, doubt)


def _scale(
    features: RichFeatureMap, moments: _Moments, learning: LearningRows, doubt: float
) -> RichFeatureMap:
    """Give each block of features its share of the outcome's variance."""
    mean = moments.first / moments.rows
    variance = moments.second / moments.rows - mean**2
    variance[variance <= 1e-9 * (1.0 + mean**2)] = 0.0
    straight = features.terms.size + 1 + features.score.is_flexible
    varies = variance[:straight] > 0
    more = min(max(1.0, moments.rows / _VERY_MANY_ROWS), _MOST_MORE)
    share = _shares(features.terms, features.score, varies, more)
    scale = np.where(varies, np.sqrt(share / np.where(varies, variance[:straight], 1.0)), 0.0)
    bends = new_functions(features.basis(learning.covariates), mean, variance, straight)
    growth = growth_of(moments.rows, features.linear.size)
    bends *= math.sqrt(_BENDS * growth / max(bends.shape[0], 1))
    doubts = np.concatenate([np.ones(straight), np.full(bends.shape[0], doubt / math.sqrt(growth))])
    return replace(features, mean=mean, scale=scale, bends=bends, doubt=doubts)


def _gather_evidence(
    terms: Terms, learning: LearningRows, rows: int
) -> tuple[Terms, BentScore | None, bool]:
    """Keep bent terms and the score on them as far as held-out rows or many rows justify.

    With few rows every further term costs variance, so treatment must be told clearly better; the
    bar falls with the cube of the rows. The last value tells whether treatment bends but weights
    will not follow, which an interval should doubt.
    """
    bent = fit_bent_score(terms, learning)
    bar = _EVIDENCE * min(1.0, (_FEW_ROWS / rows) ** 3)
    if rows < _MANY_ROWS and (bent is None or bent.gain < bar):
        return terms.without_bends(), None, bent is not None
    if bent is not None and bent.gain < _STRONG_EVIDENCE * bar:
        return terms, None, True
    return terms, bent, False


def _shares(terms: Terms, score: Score, kept: Bits, more: float) -> Floats:
    """Return each feature's share of the variance; hinges and products count ``more`` times."""
    blocks = (
        (terms.linear.size, _LINEAR),
        (terms.squares.size, _SQUARES),
        (terms.hinged.size, more * _HINGES),
        (terms.left.size, more * _PRODUCTS),
        (1, _SCORE),
        (int(score.is_flexible), _FLEXIBLE),
    )
    shares = []
    start = 0
    for size, share in blocks:
        counted = max(int(np.count_nonzero(kept[start : start + size])), 1)
        shares.append(np.full(size, share / counted))
        start += size
    return np.concatenate(shares)


def _gather_kernel(share: float) -> Callable[[Block], _Gathered]:
    """Gather a share of the rows; a row's place decides whether it is taken and held out."""

    def kernel(block: Block) -> _Gathered:
        size = block.treatment.size
        picked = scatter(block.first, size) < share
        held_out = (block.first + np.arange(size)) % 3 == 2
        return _Gathered(
            (block.covariates[picked],), (block.treatment[picked],), (held_out[picked],)
        )

    return kernel


def _moments_kernel(features: RichFeatureMap) -> Callable[[Block], _Moments]:
    def kernel(block: Block) -> _Moments:
        functions = features.basis(block.covariates)
        return _Moments(
            block.treatment.size, functions.sum(axis=1), np.square(functions).sum(axis=1)
        )

    return kernel


def scatter(start: int, size: int) -> Floats:
    """Return a fixed number in [0, 1) for each of a run of rows, scattered like random ones.

    Every k-th row would meet any rhythm in the order of rows; the mixing is SplitMix64's.
    """
    word = np.arange(start + 1, start + size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((word ^ (word >> np.uint64(31))) >> np.uint64(11)) / 2.0**53
