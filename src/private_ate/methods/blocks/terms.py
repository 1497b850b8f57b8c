"""How a block chooses non-linear terms of its covariates, from its own rows alone.

Matching pursuit over products, hinges, squares and jumps: each step takes the term that is most
strongly correlated with what is left of an arm or of the outcome. The number of steps is public;
a term that is not strong enough is a column of zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.methods.blocks.regression import (
    Ridge,
    fit_ridge,
    residuals,
    solve,
    standardized,
)

__all__ = ["LINEAR_RIDGE", "choose_terms", "clipped_squares"]

LINEAR_RIDGE: Final = 0.08  # times covariates over rows
_KNOTS: Final = (-0.8, 0.0, 0.8)
_JUMPS: Final = (0.15, 0.3, 0.5, 0.7, 0.85)  # quantiles of a block's own covariates
_MOST_PRODUCTS: Final = 5000  # beyond this products are left out: a block takes too long
_LEAST_STRENGTH: Final = 9.0  # squared standard errors from which a term is taken
_LEAST_NEWS: Final = 0.04  # of a term's square that covariates do not say already
_LEAST_OWN: Final = 0.09  # of that, what terms chosen earlier do not say already
_TIE: Final = 1e-9


def clipped_squares(covariates: Floats) -> Floats:
    """Return the squares of standardised covariates, which count to ±3."""
    return np.square(np.clip(covariates, -3.0, 3.0))


@dataclass(frozen=True, slots=True)
class _Pool:
    """What a block may choose from: products, then hinges, squares and jumps of each covariate.

    ``edges`` are quantiles of the block's own covariates, shape (q, d).
    """

    first: Integers
    second: Integers
    edges: Floats

    @classmethod
    def of(cls, covariates: Floats) -> _Pool:
        """Return the pool of a block; with very many covariates, one without products."""
        rows, dimension = covariates.shape
        first, second = np.triu_indices(dimension, 1)
        if first.size > _MOST_PRODUCTS:
            first = second = first[:0]
        places = [math.floor(share * (rows - 1)) for share in _JUMPS]
        return cls(first, second, np.sort(covariates, axis=0)[places])

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
        if index < self.first.size:
            both = covariates[:, self.first[index]] * covariates[:, self.second[index]]
            return np.clip(both, -4.0, 4.0)
        kind, place = divmod(index - self.first.size, covariates.shape[1])
        seen = covariates[:, place]
        if kind < len(_KNOTS):
            return np.maximum(seen - _KNOTS[kind], 0.0)
        if kind == len(_KNOTS):
            return clipped_squares(seen)
        return np.asarray(seen > self.edges[kind - len(_KNOTS) - 1, place], dtype=np.float64)


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
    Long blocks choose by every so many of their rows, at most ``seen``.
    """
    step = -(-len(covariates) // seen)
    looked, weight = covariates[::step], weights[::step]
    pool = _Pool.of(looked)
    ridge = LINEAR_RIDGE * covariates.shape[1] / len(covariates)
    fit = fit_ridge(looked, ridge, weight)
    left, wanted = (residuals(fit, one[::step], weight) for one in (arms, outcome))
    slopes, _ = solve(left, left, wanted, weight, 1e-12)
    targets = np.concatenate([left, wanted - left @ slopes], axis=1)
    terms = pool.terms(looked)
    places = np.arange(terms.shape[1])
    if places.size > contenders:
        places = _contenders(fit, terms, targets, weight, contenders)
        terms = terms[:, places]
    # Times the root of weights, so that products are weighted.
    root = np.sqrt(weight)[:, None]
    terms = root * residuals(fit, standardized(terms, weight), weight)
    choices = _pursue(terms, root * targets, count,
                      float(weight.sum()) ** 2 / float(weight @ weight),
                      covariates.shape[1])  # fmt: skip
    chosen = [found * pool.term(covariates, int(places[place])) for place, found in choices]
    return standardized(np.stack(chosen, axis=1), weights)


def _contenders(
    fit: Ridge, terms: Floats, targets: Floats, weights: Floats, count: int
) -> Integers:
    """Return the places of the terms most strongly correlated with one of the targets, in order.

    Strengths are those of `_pursue` at its first step, by products alone: no column is copied.
    """
    total = weights.sum()
    both = np.concatenate([fit.columns, targets, np.ones((len(terms), 1))], axis=1)
    products = terms.T @ (both * weights[:, None])
    means = products[:, -1:] / total
    squares = np.einsum("ij,ij,i->j", terms, terms, weights) - total * means[:, 0] ** 2
    products -= means * (weights @ both)
    dimension = fit.columns.shape[1]
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
