"""What the models inside a block control for: the covariates, and bends of them.

Bends are squares, products of two covariates, hinges at a few knots, and jumps at quantiles.
Large blocks hold all but the jumps; others choose, from their own rows alone, the few bends that
treatment or outcome ask for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.estimators.blocks.ridge import LEAST_PENALTY, Basis, solve
from private_ate.estimators.blocks.rows import (
    CONSTANT,
    Rows,
    empty,
    few_columns,
    standardize,
    standardize_into,
)

__all__ = [
    "Bends",
    "basis_of",
    "bends_to_choose_from",
    "chosen_columns",
    "rich_columns",
    "score_columns",
]

Bends = Literal["squares", "chosen", "all"]

_KNOTS: Final = (-0.8, 0.0, 0.8)
_JUMPS: Final = (0.15, 0.3, 0.5, 0.7, 0.85)  # quantiles of a block's own covariates
_LINEAR_RIDGE: Final = 0.08  # times covariates over rows, as is the next
_CHOSEN_RIDGE: Final = 0.02
_RICH_RIDGE: Final = 0.03
_ROWS_PER_CHOICE: Final = 25
_MOST_CHOICES: Final = 12
_LEAST_STRENGTH: Final = 9.0  # squared standard errors from which a bend is asked for
_LEAST_NEWS: Final = 0.04  # of a bend's square that covariates do not say already
_LEAST_OWN: Final = 0.09  # of that, what bends chosen earlier do not say already
_TIE: Final = 1e-9
_MOST_PRODUCTS: Final = 5000  # beyond this, products are left out: a block takes too long


def basis_of(rows: Rows, length: int, bends: Bends) -> Basis:
    """Return covariates and squares, and the products and hinges that are chosen, or all."""
    crowding = rows.covariates.shape[2] / length
    basis = Basis((rows.covariates, _squares(rows)), (_LINEAR_RIDGE * crowding, 12 * crowding**3))
    match bends:
        case "squares":
            return basis
        case "chosen":
            return basis.with_columns(_choose(rows, length), _CHOSEN_RIDGE * crowding)
        case "all":
            added = _products_and_hinges(rows)
            crowding = (added.shape[2] + 2 * rows.covariates.shape[2]) / length
            return basis.with_columns(added, _RICH_RIDGE * crowding**3)


def score_columns(basis: Basis, bends: Bends) -> Floats:
    """Return which of the controls a score of treatment follows."""
    match bends:
        case "squares":
            return basis.parts[0]
        case "chosen":
            covariates, _, chosen = basis.parts
            joined = empty(covariates.shape[:2], covariates.shape[2] + chosen.shape[2])
            np.concatenate([covariates, chosen], axis=2, out=joined)
            return joined
        case "all":
            return basis.joined().columns


def rich_columns(dimension: int) -> int:
    """Return how many controls the rich basis has."""
    return 2 * dimension + dimension * (dimension - 1) // 2 + len(_KNOTS) * dimension


def bends_to_choose_from(dimension: int) -> int:
    """Return how many bends a block looks at when it chooses."""
    products = dimension * (dimension - 1) // 2
    return (products if products <= _MOST_PRODUCTS else 0) + dimension * (
        1 + len(_KNOTS) + len(_JUMPS)
    )


def chosen_columns(length: int) -> int:
    """Return how many bends a block of so many rows may choose."""
    return min(max(round(length / _ROWS_PER_CHOICE), 2), _MOST_CHOICES)


def _squares(rows: Rows) -> Floats:
    squares = empty(rows.weight.shape, rows.covariates.shape[2])
    for few in few_columns(squares):
        part = squares[..., few]
        np.clip(rows.covariates[..., few], -3.0, 3.0, out=part)
        np.square(part, out=part)
        standardize_into(part, part, rows)
    return squares


def _products_and_hinges(rows: Rows) -> Floats:
    dimension = rows.covariates.shape[2]
    first, second = np.triu_indices(dimension, 1)
    present = rows.weight[..., None]
    parts = [
        standardize(np.maximum(rows.covariates - knot, 0.0) * present, rows) for knot in _KNOTS
    ]
    if len(first) <= _MOST_PRODUCTS:
        products = rows.covariates[..., first] * rows.covariates[..., second]
        parts.insert(0, standardize(np.clip(products, -4.0, 4.0), rows))
    return np.concatenate(parts, axis=2)


def _choose(rows: Rows, length: int) -> Floats:
    """Return the bends that each block's own rows ask for, one block at a time.

    Shape (g, b, k); a column is zero where no bend was asked for any more.
    """
    chosen = empty(rows.weight.shape, chosen_columns(length))
    for place in range(rows.weight.shape[0]):
        chosen[place] = _choose_in(_Block.of(rows, place), chosen.shape[2], length).T
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
        return cls(
            np.ascontiguousarray(rows.covariates[place].T),
            rows.treatment[place],
            rows.outcome[place],
            rows.weight[place] if rows.copies is None else rows.copies[place],
            max(float(rows.count[place]), 1.0),
            float(rows.worth[place]),
        )

    def standardized(self, variables: Floats) -> Floats:
        """Centre variables, shape (p, b), and give them unit variance, unless they are constant."""
        present = self.copies > 0
        centred = (variables - (variables @ self.copies / self.count)[:, None]) * present
        spread = np.sqrt(np.square(centred) @ self.copies / self.count)
        standard: Floats = centred / np.where(spread < CONSTANT, 1.0, spread)[:, None]
        return standard


def _choose_in(block: _Block, count: int, length: int) -> Floats:
    """Choose bends of one block by matching pursuit, each the strongest that is left.

    Strength is the larger of two squared standard errors: those by which a bend is correlated
    with what covariates and earlier choices leave of treatment, and of the outcome.
    """
    bends = _bends_of(block)
    left = _beyond_covariates(block, np.vstack([block.treatment, block.outcome, bends]), length)
    wanted, columns = _without_effect(left[:2]), left[2:]
    news = np.square(columns).sum(axis=1)
    own = news.copy()
    eligible = own > _LEAST_NEWS * block.count
    degrees = block.worth - 0.7 * block.covariates.shape[0]
    units = np.zeros((count, columns.shape[1]))
    chosen = np.zeros_like(units)
    for step in range(count):
        spread = np.square(wanted).sum(axis=1) / max(degrees - step, block.worth / 4, 1.0)
        best, found = _strongest(columns @ wanted.T, spread, own, eligible)
        column = columns[best] - (units[:step] @ columns[best]) @ units[:step]
        units[step] = found * column / max(float(np.linalg.norm(column)), 1e-300)
        chosen[step] = found * bends[best]
        wanted = wanted - np.outer(wanted @ units[step], units[step])
        own = own - np.square(columns @ units[step])
        eligible &= own > _LEAST_OWN * news
    return chosen


def _bends_of(block: _Block) -> Floats:
    """Return all bends that a block may choose from, shape (p, b)."""
    covariates = block.covariates
    first, second = np.triu_indices(len(covariates), 1)
    if len(first) > _MOST_PRODUCTS:
        first = second = first[:0]
    bends = np.concatenate(
        [
            np.clip(covariates[first] * covariates[second], -4.0, 4.0),
            *(np.maximum(covariates - knot, 0.0) for knot in _KNOTS),
            np.square(np.clip(covariates, -3.0, 3.0)),
            *_jumps(block),
        ]
    )
    return block.standardized(bends * (block.copies > 0))


def _jumps(block: _Block) -> list[Floats]:
    """Return where covariates lie above their own quantiles in the block."""
    ordered = np.sort(block.covariates[:, block.copies > 0], axis=1)
    if ordered.shape[1] == 0:
        return [np.zeros_like(block.covariates)] * len(_JUMPS)
    places = [math.floor(share * (ordered.shape[1] - 1)) for share in _JUMPS]
    return [(block.covariates > ordered[:, [place]]).astype(np.float64) for place in places]


def _beyond_covariates(block: _Block, targets: Floats, length: int) -> Floats:
    """Return what a ridge regression on the covariates leaves of variables, shape (p, b).

    With sampling weights times the root of the weight, so that products are weighted.
    """
    root = np.sqrt(block.copies)
    covariates, targets = block.covariates * root, targets * root
    system = covariates @ covariates.T
    ridge = _LINEAR_RIDGE * len(covariates) / length
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
