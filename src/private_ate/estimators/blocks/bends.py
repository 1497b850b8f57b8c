"""What the models inside a block control for: the covariates, and bends of them.

Bends are squares, products of two covariates, hinges at a few knots, and jumps at quantiles.
Large blocks hold all but the jumps; others choose, from their own rows alone, the few bends that
treatment or outcome ask for.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.blocks.choice import (
    JUMPS,
    KNOTS,
    LINEAR_RIDGE,
    MOST_PRODUCTS,
    choose_bends,
    hinge,
    product,
)
from private_ate.estimators.blocks.ridge import Basis
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

_CHOSEN_RIDGE: Final = 0.02  # times covariates over rows
_RICH_RIDGE: Final = 0.03
_ROWS_PER_CHOICE: Final = 25
_MOST_CHOICES: Final = 12


def basis_of(rows: Rows, length: int, bends: Bends) -> Basis:
    """Return covariates and squares, and the bends that are chosen, or all products and hinges."""
    crowding = rows.covariates.shape[2] / length
    basis = Basis((rows.covariates, _squares(rows)), (LINEAR_RIDGE * crowding, 12 * crowding**3))
    match bends:
        case "squares":
            return basis
        case "chosen":
            return basis.with_columns(
                choose_bends(rows, chosen_columns(length), length), _CHOSEN_RIDGE * crowding
            )
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
    return 2 * dimension + dimension * (dimension - 1) // 2 + len(KNOTS) * dimension


def bends_to_choose_from(dimension: int) -> int:
    """Return how many bends a block looks at when it chooses."""
    products = dimension * (dimension - 1) // 2
    return (products if products <= MOST_PRODUCTS else 0) + dimension * (
        1 + len(KNOTS) + len(JUMPS)
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
    products = product(rows.covariates[..., first], rows.covariates[..., second])
    hinges = [standardize(hinge(rows.covariates, knot) * present, rows) for knot in KNOTS]
    return np.concatenate([standardize(products, rows), *hinges], axis=2)
