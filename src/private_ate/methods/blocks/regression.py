"""Ridge regression inside one block, on covariates, squares, and terms that its own rows ask for.

A system that cannot be solved raises, and a block that meets one cannot say an effect. Terms are
chosen by matching pursuit over products, hinges, squares and jumps: each step takes the term that
is most strongly correlated with what is left of an arm or of the outcome. The number of steps is
public; a term that is not strong enough is a column of zeros.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from private_ate.arrays import Floats, Integers

LINEAR_RIDGE: Final = 0.08  # times covariates over rows
_CONSTANT: Final = 1e-6  # a column whose standard deviation is below this is left centred
_LEAST_PENALTY: Final = 1e-9
_LARGEST_LEVERAGE: Final = 0.9
_KNOTS: Final = (-0.8, 0.0, 0.8)
_JUMPS: Final = (0.15, 0.3, 0.5, 0.7, 0.85)  # quantiles of a block's own covariates
_MOST_PRODUCTS: Final = 5000  # beyond this products are left out: a block takes too long
_LEAST_STRENGTH: Final = 9.0  # squared standard errors from which a term is taken
_LEAST_NEWS: Final = 0.04  # of a term's square that covariates do not say already
_LEAST_OWN: Final = 0.09  # of that, what terms chosen earlier do not say already
_TIE: Final = 1e-9


class Ridge(NamedTuple):
    """A ridge regression on some columns: residuals of anything else follow from it.

    ``columns`` (b, p) are centred, ``inverse`` is that of their penalised Gram matrix, and
    ``leverage`` (b,) includes that of the mean.
    """

    columns: Floats
    weights: Floats
    inverse: Floats
    leverage: Floats

    @property
    def freedom(self) -> float:
        """To how many fitted numbers the regression amounts."""
        return float(self.leverage.sum())

    def residuals(self, targets: Floats) -> Floats:
        """Return what the regression leaves of targets, shape (b, t), which are centred first."""
        left = centred(targets, self.weights)
        products = self.columns.T @ (left * self.weights[:, None])
        found: Floats = left - self.columns @ (self.inverse @ products)
        return found

    def press(self, left: Floats) -> float:
        """Return the mean square of residuals (b, 1) of rows left out of the regression."""
        return float(self.weights @ np.square(left[:, 0] / (1 - self.leverage)) / len(left))


def centred(columns: Floats, weights: Floats) -> Floats:
    """Return columns less their weighted means, shape (b, p)."""
    found: Floats = columns - weights @ columns / weights.sum()
    return found


def standardized(columns: Floats, weights: Floats) -> Floats:
    """Return centred columns of unit variance; constant ones stay centred."""
    found = centred(columns, weights)
    spread = np.sqrt(weights @ np.square(found) / weights.sum())
    found /= np.where(spread < _CONSTANT, 1.0, spread)
    return found


def fit_ridge(columns: Floats, ridges: Floats | float, weights: Floats) -> Ridge:
    """Fit centred columns, each with a penalty relative to its own sum of squares."""
    rooted = columns * np.sqrt(weights)[:, None]
    system = rooted.T @ rooted
    diagonal = np.einsum("ii->i", system)
    diagonal += ridges * diagonal + _LEAST_PENALTY
    inverse: Floats = np.linalg.inv(system).astype(np.float64, copy=False)
    leverage = np.einsum("ij,ij->i", columns @ inverse, columns) + 1 / len(columns)
    return Ridge(columns, weights, inverse, np.minimum(weights * leverage, _LARGEST_LEVERAGE))


def solve(first: Floats, second: Floats, wanted: Floats, weights: Floats, least: float) -> Floats:
    """Solve ``first' W second θ = first' W wanted`` for coefficients (D, t).

    The system counts as singular where some combination of arms varies by no more than ``least``.
    """
    weighted = first * weights[:, None]
    system = weighted.T @ second
    if not np.linalg.svd(system, compute_uv=False).min() > least:
        msg = "an arm hardly varies"
        raise np.linalg.LinAlgError(msg)
    return np.linalg.solve(system, weighted.T @ wanted).astype(np.float64, copy=False)


def clipped_squares(covariates: Floats) -> Floats:
    """Return the squares of standardised covariates, which count to ±3."""
    return np.square(np.clip(covariates, -3.0, 3.0))


class _Pool(NamedTuple):
    """What a block may choose from: products, then hinges, squares and jumps of each covariate.

    ``edges`` are quantiles of the block's own covariates, shape (q, d).
    """

    first: Integers
    second: Integers
    edges: Floats

    def terms(self, covariates: Floats) -> Floats:
        """Return all terms of standardised covariates, shape (b, p)."""
        return np.concatenate(
            [
                np.clip(covariates[:, self.first] * covariates[:, self.second], -4.0, 4.0),
                *(np.maximum(covariates - knot, 0.0) for knot in _KNOTS),
                clipped_squares(covariates),
                *(covariates > edge for edge in self.edges),
            ],
            axis=1,
        )

    def term(self, covariates: Floats, index: int) -> Floats:
        """Return one of the terms, shape (b,)."""
        kept = slice(0)
        if index < self.first.size:
            seen, kind, kept = [self.first[index], self.second[index]], 0, slice(1)
        else:
            kind, place = divmod(index - self.first.size, covariates.shape[1])
            seen = [place]
        alone = _Pool(np.array([0])[kept], np.array([1])[kept], self.edges[:, seen])
        return alone.terms(covariates[:, seen])[:, kind]


def choose_terms(
    covariates: Floats,
    arms: Floats,
    outcome: Floats,
    weights: Floats,
    *,
    count: int,
    seen: int,
    contenders: int,
) -> Floats:
    """Return the terms that a block's own rows ask for, standardised, shape (b, count).

    ``covariates`` are standardised, shape (b, d); ``arms`` (b, D) and ``outcome`` (b, 1) centred.
    Long blocks choose by every so many of their rows, at most ``seen``. With very many covariates
    there are no products to choose from.
    """
    step, dimension = -(-len(covariates) // seen), covariates.shape[1]
    looked, weight = covariates[::step], weights[::step]
    first, second = np.triu_indices(dimension, 1)
    kept = slice(first.size if first.size <= _MOST_PRODUCTS else 0)
    places = [math.floor(share * (len(looked) - 1)) for share in _JUMPS]
    pool = _Pool(first[kept], second[kept], np.sort(looked, axis=0)[places])
    fit = fit_ridge(looked, LINEAR_RIDGE * dimension / len(covariates), weight)
    left, wanted = (fit.residuals(one[::step]) for one in (arms, outcome))
    effects = solve(left, left, wanted, weight, 1e-12)
    targets = np.concatenate([left, wanted - left @ effects], axis=1)
    terms = pool.terms(looked)
    chosen = np.arange(terms.shape[1])
    if chosen.size > contenders:
        chosen = _contenders(fit, terms, targets, contenders)
        terms = terms[:, chosen]
    # Times the root of weights, so that products are weighted.
    root = np.sqrt(weight)[:, None]
    terms = root * fit.residuals(standardized(terms, weight))
    effective = float(weight.sum()) ** 2 / float(weight @ weight)
    choices = _pursue(terms, root * targets, count, effective, dimension)
    columns = [found * pool.term(covariates, int(chosen[place])) for place, found in choices]
    return standardized(np.stack(columns, axis=1), weights)


def _contenders(fit: Ridge, terms: Floats, targets: Floats, count: int) -> Integers:
    """Return the places of the terms most strongly correlated with one of the targets, in order.

    Strengths are those of `_pursue` at its first step, by products alone: no column is copied.
    """
    weights, total, dimension = fit.weights, fit.weights.sum(), fit.columns.shape[1]
    both = np.concatenate([fit.columns, targets, np.ones((len(terms), 1))], axis=1)
    products = terms.T @ (both * weights[:, None])
    means = products[:, -1:] / total
    squares = np.einsum("ij,ij,i->j", terms, terms, weights) - total * means[:, 0] ** 2
    products -= means * (weights @ both)
    said = products[:, :dimension] @ fit.inverse
    gram = fit.columns.T @ (fit.columns * weights[:, None])
    own = squares - ((2 * products[:, :dimension] - said @ gram) * said).sum(axis=1)
    shared = products[:, dimension:-1] - said @ (fit.columns.T @ (targets * weights[:, None]))
    strength = (np.square(shared) / (weights @ np.square(targets))).max(axis=1) / own
    strength = np.where((own > _LEAST_NEWS * squares) & np.isfinite(strength), strength, 0.0)
    return np.sort(np.argsort(-strength, kind="stable")[:count])


def _pursue(
    terms: Floats, targets: Floats, count: int, effective: float, dimension: int
) -> list[tuple[int, bool]]:
    """Choose terms by matching pursuit, each the strongest that is left; mark the weak ones.

    ``effective`` is the effective sample size. Strength is the largest of the squared
    standard errors by which a term is correlated with what is left of the targets.
    """
    news = np.square(terms).sum(axis=0)
    own = news.copy()
    eligible = own > _LEAST_NEWS * len(terms)
    units = np.zeros((len(terms), count))
    choices = []
    for step in range(count):
        freedom = max(effective - 0.7 * dimension - step, effective / 4, 1.0)
        spread = np.square(targets).sum(axis=0) / freedom
        strength = (np.square(terms.T @ targets) / spread).max(axis=1) / own
        strength = np.where(eligible & np.isfinite(strength), strength, 0.0)
        strongest = float(strength.max())
        best = int(np.argmax(strength >= (1 - _TIE) * strongest))
        found = strongest >= _LEAST_STRENGTH
        choices.append((best, found))
        column = terms[:, best] - units[:, :step] @ (units[:, :step].T @ terms[:, best])
        unit = found * column / max(float(np.linalg.norm(column)), 1e-300)
        units[:, step] = unit
        targets = targets - np.outer(unit, unit @ targets)
        own = own - np.square(unit @ terms)
        eligible &= own > _LEAST_OWN * news
    return choices
