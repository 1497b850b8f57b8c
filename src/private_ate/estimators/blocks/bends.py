"""What the models inside a block control for: the covariates, and bends of them.

Bends are squares, products of two covariates, hinges at a few knots, and jumps at quantiles.
Large blocks hold all but the jumps; others choose, from their own rows alone, the few bends that
treatment or outcome ask for.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.estimators.blocks.ridge import Basis, Controls, residuals
from private_ate.estimators.blocks.rows import (
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
    squares = _squares(rows)
    basis = Basis((rows.covariates, squares), (_LINEAR_RIDGE * crowding, 12 * crowding**3))
    match bends:
        case "squares":
            return basis
        case "chosen":
            return basis.with_columns(_choose(rows, squares, length), _CHOSEN_RIDGE * crowding)
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


def _jumps(rows: Rows) -> Floats:
    """Return where the covariates of one block lie above their own quantiles."""
    covariates = rows.covariates[0]
    present = covariates[rows.weight[0] > 0]
    if present.shape[0] == 0:
        return np.zeros((1, covariates.shape[0], covariates.shape[1] * len(_JUMPS)))
    edges = np.quantile(present, _JUMPS, axis=0)
    above = np.concatenate([covariates > edge for edge in edges], axis=1)
    return standardize(above[None].astype(np.float64) * rows.weight[..., None], rows)


def _choose(rows: Rows, squares: Floats, length: int) -> Floats:
    """Return the bends that each block's own rows ask for, one block at a time.

    Shape (g, b, k); a column is zero where no bend was asked for any more.
    """
    chosen = empty(rows.weight.shape, chosen_columns(length))
    for place in range(rows.weight.shape[0]):
        one = rows.at(place)
        parts = (_products_and_hinges(one), squares[place : place + 1], _jumps(one))
        bends = np.concatenate(parts, axis=2)
        chosen[place] = _pursue(one, bends, chosen.shape[2], length)
    return chosen


def _pursue(rows: Rows, bends: Floats, count: int, length: int) -> Floats:
    """Choose bends of one block by matching pursuit, each the strongest that is left.

    Strength is the larger of two squared standard errors: those by which a bend is correlated
    with what covariates and earlier choices leave of treatment, and of the outcome.
    """
    ridge = np.full(
        (1, rows.covariates.shape[2]), _LINEAR_RIDGE * rows.covariates.shape[2] / length
    )
    targets = np.concatenate([rows.treatment[..., None], rows.outcome[..., None], bends], axis=2)
    left = residuals(Controls(rows.covariates, ridge), targets, rows)[0]
    columns = np.ascontiguousarray(left[:, 2:])
    wanted = _without_effect(left[:, :2].T)
    news = np.square(columns).sum(axis=0)
    own = news.copy()
    eligible = own > _LEAST_NEWS * rows.count
    degrees = float(rows.worth[0]) - 0.7 * rows.covariates.shape[2]
    units = np.zeros((count, columns.shape[0]))
    chosen = np.zeros((columns.shape[0], count))
    for step in range(count):
        spread = np.square(wanted).sum(axis=1) / max(degrees - step, float(rows.worth[0]) / 4, 1.0)
        best, found = _strongest(wanted @ columns, spread, own, eligible)
        column = columns[:, best] - units[:step].T @ (units[:step] @ columns[:, best])
        units[step] = found * column / max(float(np.linalg.norm(column)), 1e-300)
        chosen[:, step] = found * bends[0, :, best]
        wanted = wanted - np.outer(wanted @ units[step], units[step])
        own = own - np.square(units[step] @ columns)
        eligible &= own > _LEAST_OWN * news
    return chosen


def _without_effect(wanted: Floats) -> Floats:
    """Take treatment's part off the outcome: bends are to explain what it does not."""
    treatment, outcome = wanted
    variation = float(treatment @ treatment)
    slope = float(treatment @ outcome) / variation if variation > 0 else 0.0
    return np.stack([treatment, outcome - slope * treatment])


def _strongest(products: Floats, spread: Floats, own: Floats, eligible: Bits) -> tuple[int, bool]:
    """Return the strongest column, the first of those that tie, and whether it is strong at all."""
    with np.errstate(all="ignore"):
        strength = np.square(products / np.sqrt(spread)[:, None]).max(axis=0) / own
    strength = np.where(eligible & np.isfinite(strength), strength, 0.0)
    strongest = float(strength.max())
    best = int(np.argmax(strength >= (1 - _TIE) * strongest))
    return best, strongest >= _LEAST_STRENGTH
