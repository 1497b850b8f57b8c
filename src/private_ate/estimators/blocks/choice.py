"""How a block chooses bends of its covariates, from its own rows alone: matching pursuit.

Everything here is about one block at a time, variables along the first axis. The number of steps
is fixed, and a bend that is not asked for is set to zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats, Integers
from private_ate.estimators.blocks.ridge import LEAST_PENALTY, solve
from private_ate.estimators.blocks.rows import CONSTANT, Rows, empty

__all__ = [
    "JUMPS", "KNOTS", "LINEAR_RIDGE", "MOST_PRODUCTS", "choose_bends", "hinge", "product", "square",
]  # fmt: skip

KNOTS: Final = (-0.8, 0.0, 0.8)
LINEAR_RIDGE: Final = 0.08  # times covariates over rows
MOST_PRODUCTS: Final = 5000  # beyond this, products are left out: a block takes too long
JUMPS: Final = (0.15, 0.3, 0.5, 0.7, 0.85)  # quantiles of a block's own covariates
_LEAST_STRENGTH: Final = 9.0  # squared standard errors from which a bend is asked for
_LEAST_NEWS: Final = 0.04  # of a bend's square that covariates do not say already
_LEAST_OWN: Final = 0.09  # of that, what bends chosen earlier do not say already
_TIE: Final = 1e-9
_MOST_ROWS: Final = 2000  # by which a block chooses


def choose_bends(rows: Rows, count: int, length: int) -> Floats:
    """Return the bends that each block's own rows ask for, one block at a time.

    Shape (g, b, k); a column is zero where no bend was asked for any more. Long blocks choose by
    every so many of their rows.
    """
    chosen = empty(rows.weight.shape, count)
    step = -(-rows.weight.shape[1] // _MOST_ROWS)
    for place in range(rows.weight.shape[0]):
        block = _Block.of(rows, place)
        seen = block.every(step)
        pool = _Pool.of(seen)
        bends = [
            pool.bend(block.covariates, index) * found
            for index, found in _pursue(seen, pool, count, length)
        ]
        chosen[place] = block.standardized(np.stack(bends)).T
    return chosen


@dataclass(frozen=True, slots=True)
class _Block:
    """The rows of one block, variables first: ``covariates`` of shape (d, b), all others (b,).

    ``copies`` are sampling weights, 1 where none are declared and 0 for rows that take no part;
    ``worth`` is how many rows of equal weight they amount to.
    """

    covariates: Floats
    treatment: Floats
    outcome: Floats
    copies: Floats
    count: float
    worth: float

    @classmethod
    def of(cls, rows: Rows, place: int) -> _Block:
        """Return one of the stacked blocks."""
        return cls(
            np.ascontiguousarray(rows.covariates[place].T),
            rows.treatment[place],
            rows.outcome[place],
            rows.weight[place] if rows.copies is None else rows.copies[place],
            max(float(rows.count[place]), 1.0),
            float(rows.worth[place]),
        )

    def every(self, step: int) -> _Block:
        """Return one row in so many, as a block of its own."""
        if step == 1:
            return self
        copies = self.copies[::step]
        square = max(float(copies @ copies), 1e-9)
        return _Block(
            np.ascontiguousarray(self.covariates[:, ::step]),
            self.treatment[::step],
            self.outcome[::step],
            copies,
            max(float(copies.sum()), 1.0),
            float(copies.sum()) ** 2 / square,
        )

    def standardized(self, variables: Floats) -> Floats:
        """Centre variables, shape (p, b), and give them unit variance, unless they are constant."""
        present = self.copies > 0
        centred = (variables - (variables @ self.copies / self.count)[:, None]) * present
        spread = np.sqrt(np.square(centred) @ self.copies / self.count)
        standard: Floats = centred / np.where(spread < CONSTANT, 1.0, spread)[:, None]
        return standard


@dataclass(frozen=True, slots=True)
class _Pool:
    """The bends that a block may choose from: pairs to multiply, and where jumps are.

    In order: products, hinges by knot, squares, jumps by quantile. ``edges`` are the block's own
    quantiles, shape (q, d).
    """

    first: Integers
    second: Integers
    edges: Floats

    @classmethod
    def of(cls, block: _Block) -> _Pool:
        """Return the pool of a block; with very many covariates, one without products."""
        first, second = np.triu_indices(len(block.covariates), 1)
        if len(first) > MOST_PRODUCTS:
            first = second = first[:0]
        ordered = np.sort(block.covariates[:, block.copies > 0], axis=1)
        if ordered.shape[1] == 0:
            ordered = np.zeros((len(block.covariates), 1))
        places = [math.floor(share * (ordered.shape[1] - 1)) for share in JUMPS]
        return cls(first, second, ordered[:, places].T)

    def bends(self, covariates: Floats) -> Floats:
        """Return all bends of covariates, shape (p, b)."""
        return np.concatenate(
            [
                product(covariates[self.first], covariates[self.second]),
                *(hinge(covariates, knot) for knot in KNOTS),
                square(covariates),
                *(_jump(covariates, edge[:, None]) for edge in self.edges),
            ]
        )

    def bend(self, covariates: Floats, index: int) -> Floats:
        """Return one of the bends, shape (b,)."""
        if index < len(self.first):
            return product(covariates[self.first[index]], covariates[self.second[index]])
        kind, place = divmod(index - len(self.first), len(covariates))
        seen = covariates[place]
        if kind < len(KNOTS):
            return hinge(seen, KNOTS[kind])
        if kind == len(KNOTS):
            return square(seen)
        return _jump(seen, self.edges[kind - len(KNOTS) - 1, place])


def product(first: Floats, second: Floats) -> Floats:
    """Return the product of standardised covariates, kept within ±4."""
    return np.clip(first * second, -4.0, 4.0)


def hinge(covariates: Floats, knot: float) -> Floats:
    """Return by how much covariates lie above a knot."""
    above: Floats = np.maximum(covariates - knot, 0.0)
    return above


def square(covariates: Floats) -> Floats:
    """Return the square of standardised covariates, which count to ±3."""
    return np.square(np.clip(covariates, -3.0, 3.0))


def _jump(covariates: Floats, edge: Floats | float) -> Floats:
    return (covariates > edge).astype(np.float64)


def _pursue(block: _Block, pool: _Pool, count: int, length: int) -> list[tuple[int, bool]]:
    """Choose bends of one block by matching pursuit, each the strongest that is left.

    Strength is the larger of two squared standard errors: those by which a bend is correlated
    with what covariates and earlier choices leave of treatment, and of the outcome. A bend that
    is not strong enough is marked; so are then all that follow.
    """
    bends = block.standardized(pool.bends(block.covariates))
    left = _beyond_covariates(block, np.vstack([block.treatment, block.outcome, bends]), length)
    wanted, columns = _without_effect(left[:2]), left[2:]
    news = np.square(columns).sum(axis=1)
    own = news.copy()
    eligible = own > _LEAST_NEWS * block.count
    degrees = block.worth - 0.7 * block.covariates.shape[0]
    units = np.zeros((count, columns.shape[1]))
    choices = []
    for step in range(count):
        spread = np.square(wanted).sum(axis=1) / max(degrees - step, block.worth / 4, 1.0)
        best, found = _strongest(columns @ wanted.T, spread, own, eligible)
        choices.append((best, found))
        column = columns[best] - (units[:step] @ columns[best]) @ units[:step]
        units[step] = found * column / max(float(np.linalg.norm(column)), 1e-300)
        wanted = wanted - np.outer(wanted @ units[step], units[step])
        own = own - np.square(columns @ units[step])
        eligible &= own > _LEAST_OWN * news
    return choices


def _beyond_covariates(block: _Block, targets: Floats, length: int) -> Floats:
    """Return what a ridge regression on the covariates leaves of variables, shape (p, b).

    With sampling weights times the root of the weight, so that products are weighted.
    """
    root = np.sqrt(block.copies)
    covariates, targets = block.covariates * root, targets * root
    system = covariates @ covariates.T
    ridge = LINEAR_RIDGE * len(covariates) / length
    diagonal = np.diagonal(system).copy()
    system[np.diag_indices_from(system)] += ridge * diagonal + LEAST_PENALTY
    weights = solve(system[None], (covariates @ targets.T)[None])[0]
    left: Floats = targets - weights.T @ covariates
    return left


def _without_effect(wanted: Floats) -> Floats:
    """Take treatment's part off the outcome: bends are to explain what it does not."""
    treatment, outcome = wanted
    variation = float(treatment @ treatment)
    slope = float(treatment @ outcome) / variation if variation > 0 else 0.0
    return np.stack([treatment, outcome - slope * treatment])


def _strongest(products: Floats, spread: Floats, own: Floats, eligible: Bits) -> tuple[int, bool]:
    """Return the strongest bend, the first of those that tie, and whether it is strong at all.

    ``products`` with what is left of treatment and outcome have shape (p, 2).
    """
    with np.errstate(all="ignore"):
        strength = np.square(products / np.sqrt(spread)).max(axis=1) / own
    strength = np.where(eligible & np.isfinite(strength), strength, 0.0)
    strongest = float(strength.max())
    best = int(np.argmax(strength >= (1 - _TIE) * strongest))
    return best, strongest >= _LEAST_STRENGTH
