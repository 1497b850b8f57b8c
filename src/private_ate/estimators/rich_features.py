"""What calibration balances when rows allow: bends, products and a flexible score.

Covariates and treatment are public at label level, so features may be as many as they like and
may be chosen by looking at the treatment; they never look at an outcome. Beside covariates and
squares there are hinges at quantiles, products of pairs, and functions of a propensity score that
is itself fitted on all of these. Each block's share is a prior guess of how much of the outcome's
variance it explains: with few rows the weights hardly follow a block of small share, with many
rows its imbalance vanishes like that of the covariates, and so does the bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.estimators.features import FeatureMap
from private_ate.study import Block, Study

__all__ = ["RichFeatureMap", "enrich", "scatter"]

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_LINEAR: Final = 0.40
_SQUARES: Final = 0.10
_HINGES: Final = 0.04
_PRODUCTS: Final = 0.03
_SCORE: Final = 0.15
_FLEXIBLE: Final = 0.25
_BENDS: Final = 0.04  # hinges of the score
_ODDS: Final = 0.01  # both odds of treatment, in which inverse probabilities are linear
_GROWN: Final = 20_000  # rows from which the flexible blocks have their full shares
_LEARNING_ROWS: Final = 30_000  # rows from which knots, products and the score are learnt
_MOST_HINGES: Final = 90
_MOST_PRODUCTS: Final = 200
_KNOTS: Final = (0.2, 0.5, 0.8)  # quantiles of a covariate at which its effect may bend
_SCORE_KNOTS: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
_REACH: Final = (0.005, 0.995)  # quantiles between which the score's exponentials follow it
_PENALTIES: Final = (0.005, 0.02, 0.1, 0.5)  # of the flexible terms, times the root of the rows
_FEWEST: Final = 50  # rows of an arm below which the flexible score is not tried


@dataclass(frozen=True, slots=True)
class Terms:
    """Functions of standardised covariates, in this order; shapes in brackets.

    Attributes
    ----------
    center, deviation : arrays, shape (d,)
        What standardises the covariates.
    linear, squares, hinged : arrays of indices
        Covariates that enter as they are, squared, and as hinges.
    knots : array
        Where each hinge begins, as long as ``hinged``.
    left, right : arrays of indices
        Both factors of each product.
    """

    center: Floats
    deviation: Floats
    linear: Indices
    squares: Indices
    hinged: Indices
    knots: Floats
    left: Indices
    right: Indices

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many terms are linear, bent and products."""
        return self.linear.size, self.squares.size + self.hinged.size, self.left.size

    def of(self, covariates: Floats) -> Floats:
        """Return the terms of some rows, shape (terms, m)."""
        columns = (covariates.T - self.center[:, None]) / self.deviation[:, None]
        first, bent, products = self.sizes
        terms = np.empty((first + bent + products, covariates.shape[0]))
        terms[:first] = columns[self.linear]
        np.square(columns[self.squares], out=terms[first : first + self.squares.size])
        hinges = terms[first + self.squares.size : first + bent]
        np.subtract(columns[self.hinged], self.knots[:, None], out=hinges)
        np.maximum(hinges, 0.0, out=hinges)
        np.multiply(columns[self.left], columns[self.right], out=terms[first + bent :])
        return terms


@dataclass(frozen=True, slots=True)
class Score:
    """A propensity score on all terms, and the functions of it that are balanced."""

    plain: Floats  # slopes of the linear score, one per term
    intercept: float
    slopes: Floats  # one per term
    knots: Floats
    low: float
    high: float

    @property
    def size(self) -> int:
        """How many functions of the score there are."""
        return self.knots.size + 4

    def of(self, terms: Floats) -> Floats:
        """Return the score, its hinges and both odds, shape (size, m)."""
        score = self.slopes @ terms + self.intercept
        held = np.clip(score, self.low, self.high)
        hinges = np.maximum(score - self.knots[:, None], 0.0)
        return np.vstack([self.plain @ terms, score, hinges, np.exp(held), np.exp(-held)])


@dataclass(frozen=True, slots=True)
class RichFeatureMap:
    """How a row of covariates becomes a row of features; answers as ``FeatureMap`` does.

    Attributes
    ----------
    plain : FeatureMap
        Covariates, squares and the linear score, from which these features were grown.
    terms, score : Terms, Score
        What is computed from a row.
    mean, scale : arrays, shape (p,)
        Centre of each function over all rows, and what its deviation is multiplied by.
    """

    plain: FeatureMap
    terms: Terms
    score: Score
    mean: Floats
    scale: Floats

    @property
    def size(self) -> int:
        """The number of features (p)."""
        return self.mean.size

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

    def basis(self, covariates: Floats) -> Floats:
        """Return the functions of some rows as they are, shape (p, m)."""
        terms = self.terms.of(covariates)
        return np.vstack([terms, self.score.of(terms)])

    def map(self, covariates: Floats) -> Floats:
        """Return the features of some rows, shape (m, p)."""
        features = self.basis(covariates)
        features -= self.mean[:, None]
        features *= self.scale[:, None]
        return features.T

    def matrix(self) -> Floats:
        """Return the map from the basis and a constant to the features, shape (p, p + 1)."""
        return np.column_stack([np.diag(self.scale), -self.mean * self.scale])


@dataclass(frozen=True, slots=True)
class _Learning:
    """Public rows gathered from all blocks."""

    covariates: tuple[Floats, ...]
    treatment: tuple[npt.NDArray[np.bool_], ...]

    def __add__(self, other: _Learning) -> _Learning:
        return _Learning(self.covariates + other.covariates, self.treatment + other.treatment)


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


def enrich(public: Study, plain: FeatureMap) -> FeatureMap | RichFeatureMap:
    """Grow features from public rows; a study without a varying covariate keeps the plain ones."""
    if plain.linear.size == 0:
        return plain
    gathered = public.fold(_gather_kernel(_LEARNING_ROWS / public.size), title="features")
    covariates = np.concatenate(gathered.covariates)
    treatment = np.concatenate(gathered.treatment)
    arm = int(np.count_nonzero(treatment))
    if min(arm, treatment.size - arm) < _FEWEST:
        return plain
    terms = _choose_terms(plain, covariates, treatment)
    straight = np.zeros(sum(terms.sizes))
    straight[: plain.linear.size] = (plain.coefficients[1:] * terms.deviation)[plain.linear]
    score = _fit_score(terms.of(covariates), treatment, plain.linear.size, straight)
    halfway = RichFeatureMap(plain, terms, score, np.zeros(0), np.zeros(0))
    moments = public.fold(_moments_kernel(halfway), title="features")
    mean = moments.first / moments.rows
    variance = moments.second / moments.rows - mean**2
    return RichFeatureMap(plain, terms, score, mean, _scales(terms, score, mean, variance, moments.rows))


def _scales(terms: Terms, score: Score, mean: Floats, variance: Floats, rows: int) -> Floats:
    """Return scales at which each block's variances add up to its share."""
    kept = variance > 1e-9 * (1.0 + mean**2)
    shares = np.zeros(mean.size)
    start = 0
    grown = min(1.0, rows / _GROWN)
    first, bent, products = terms.sizes
    sizes = (first, terms.squares.size, terms.hinged.size, products, 1, 1, score.knots.size, 2)
    shares_of = (_LINEAR, _SQUARES, grown*_HINGES, grown*_PRODUCTS, _SCORE, grown*_FLEXIBLE, grown*_BENDS, grown*_ODDS)
    blocks = zip(sizes, shares_of, strict=True)
    for size, share in blocks:
        counted = int(np.count_nonzero(kept[start : start + size]))
        shares[start : start + size] = share / max(counted, 1)
        start += size
    return np.where(kept, np.sqrt(shares / np.where(kept, variance, 1.0)), 0.0)


def _choose_terms(plain: FeatureMap, covariates: Floats, treatment: npt.NDArray[np.bool_]) -> Terms:
    """Choose hinges and products by how much treatment leans on them beyond the linear score."""
    deviation = np.maximum(covariates.std(axis=0), 1e-9)
    deviation[deviation < 1e-6] = 1.0
    columns = (covariates - plain.center) / deviation
    predicted = 1.0 / (1.0 + np.exp(-_linear_score(plain, covariates)))
    residual = treatment - predicted
    knots = np.quantile(columns[:, plain.squares], _KNOTS, axis=0)
    hinged = np.tile(plain.squares, len(_KNOTS))
    strengths = [
        _lean(np.maximum(columns[:, [column]] - knot, 0.0), residual)[0]
        for column, knot in zip(hinged, knots.ravel(), strict=True)
    ]
    best = np.sort(np.argsort(strengths, kind="stable")[::-1][:_MOST_HINGES]).astype(np.intp)
    left, right = _choose_products(columns, residual, plain.linear)
    return Terms(
        plain.center,
        deviation,
        plain.linear,
        plain.squares,
        hinged[best],
        knots.ravel()[best],
        left,
        right,
    )


def _linear_score(plain: FeatureMap, covariates: Floats) -> Floats:
    score: Floats = covariates @ plain.coefficients[1:] + plain.coefficients[0]
    return score


def _lean(functions: Floats, residual: Floats) -> Floats:
    """Return how many deviations treatment leans on each function, shape (k,)."""
    centred = functions - functions.mean(axis=0)
    size = np.sqrt((centred**2).sum(axis=0) * float((residual**2).mean())) + 1e-9
    return np.abs(residual @ centred) / size


def _choose_products(
    columns: Floats, residual: Floats, linear: Indices
) -> tuple[Indices, Indices]:
    """Return both factors of the products on which treatment leans most."""
    kept = columns[:, linear]
    rows = kept.shape[0]
    slant = kept.T @ (kept * residual[:, None]) - (kept.T @ kept) / rows * residual.sum()
    spread = (kept**2).T @ (kept**2) / rows - ((kept.T @ kept) / rows) ** 2
    first, second = np.triu_indices(linear.size, 1)
    varies = spread[first, second] > 1e-6
    first, second = first[varies], second[varies]
    lean = np.abs(slant[first, second]) / np.sqrt(spread[first, second])
    best = np.sort(np.argsort(lean, kind="stable")[::-1][:_MOST_PRODUCTS])
    return linear[first[best]], linear[second[best]]


def _fit_score(terms: Floats, treatment: npt.NDArray[np.bool_], linear: int, straight: Floats) -> Score:
    """Fit the score on all terms; held-out rows choose the penalty of the flexible ones."""
    mean, deviation = terms.mean(axis=1), terms.std(axis=1)
    usable = deviation > 1e-6
    scaled = ((terms - mean[:, None]) / np.where(usable, deviation, 1.0)[:, None])[usable].T
    flexible = (np.arange(terms.shape[0]) >= linear)[usable]
    weights = _fit_ridge(scaled, treatment, flexible, _choose_penalty(scaled, treatment, flexible))
    slopes = np.zeros(terms.shape[0])
    slopes[usable] = weights[1:] / deviation[usable]
    intercept = float(weights[0] - slopes @ mean)
    score = slopes @ terms + intercept
    low, high = np.quantile(score, _REACH)
    return Score(straight, intercept, slopes, np.quantile(score, _SCORE_KNOTS), float(low), float(high))


def _choose_penalty(
    scaled: Floats, treatment: npt.NDArray[np.bool_], flexible: npt.NDArray[np.bool_]
) -> float:
    """Return the penalty whose fit on two rows in three predicts the third best."""
    root = float(np.sqrt(treatment.size))
    held = np.arange(treatment.size) % 3 == 2
    sign = np.where(treatment[held], -1.0, 1.0)
    losses = []
    for penalty in _PENALTIES:
        weights = _fit_ridge(scaled[~held], treatment[~held], flexible, penalty * root)
        score = scaled[held] @ weights[1:] + weights[0]
        losses.append(float(np.logaddexp(0.0, sign * score).mean()))
    return _PENALTIES[int(np.argmin(losses))] * root


def _fit_ridge(
    scaled: Floats,
    treatment: npt.NDArray[np.bool_],
    flexible: npt.NDArray[np.bool_],
    penalty: float,
) -> Floats:
    """Return intercept and slopes of a logistic fit; flexible terms are penalised more."""
    rows = np.column_stack([np.ones(treatment.size), scaled])
    ridge = np.concatenate([[1e-3], np.where(flexible, max(penalty, 1.0), 1.0)])
    weights = np.zeros(rows.shape[1])
    share = float(treatment.mean())
    weights[0] = np.log(share / (1.0 - share))
    for _ in range(12):
        predicted = 1.0 / (1.0 + np.exp(-np.clip(rows @ weights, -30.0, 30.0)))
        slope = rows.T @ (predicted - treatment) + ridge * weights
        curvature = (rows * np.maximum(predicted * (1 - predicted), 1e-4)[:, None]).T @ rows
        step = np.linalg.solve(curvature + np.diag(ridge), slope)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-7:
            break
    return weights


def _gather_kernel(share: float) -> Callable[[Block], _Learning]:
    def kernel(block: Block) -> _Learning:
        picked = scatter(block.first, block.treatment.size) < share
        return _Learning((block.covariates[picked],), (block.treatment[picked],))

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
