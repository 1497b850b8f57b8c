"""One compiled pass from covariates to weights and weighted sums of features.

Rows are taken in short tiles, so that all terms of a tile stay in the processor's cache and no
matrix of features is ever made. Within a tile loops run over one column at a time, many rows at
once. Sums are added up in the order of rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from private_ate.arrays import Codes, Floats, Indices, Integers
from private_ate.models.boosting import ALL_BITS, mark_leaves

__all__ = ["Terms", "pair_nearest", "pass_over"]

_TILE: Final = 256

_kernel = numba.njit(cache=True, nogil=True, boundscheck=False)
# Sums of a tile may be added up in any order, which is the same on every run.
_sums = numba.njit(
    cache=True, nogil=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"}
)


class Terms(NamedTuple):
    """What compiled code reads of a `FeatureMap` and of its trees."""

    columns: Indices
    center: Floats
    deviation: Floats
    line: Floats
    left: Indices
    right: Indices
    squares: Indices
    knots: Floats
    column: Integers
    edge: Floats
    tree: Integers
    mask: Codes


@_sums
def _dot(weights: Floats, values: Floats) -> float:
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * values[i]
    return total


@_sums
def _dot_product(weights: Floats, values: Floats, others: Floats) -> float:
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * values[i] * others[i]
    return total


@_kernel
def _add_to(price: Floats, slope: float, values: Floats) -> None:
    for i in range(price.size):
        price[i] += slope * values[i]


@_kernel
def _add_product_to(price: Floats, slope: float, values: Floats, others: Floats) -> None:
    for i in range(price.size):
        price[i] += slope * values[i] * others[i]


@_kernel
def _fill_tile(
    covariates: Floats, rows: Indices, terms: Terms, standard: Floats, curve: Floats
) -> None:
    """Standardise the covariates of a tile, shape (k, m); probability and hinges of its line."""
    index = np.full(rows.size, terms.line[0])
    for j in range(terms.columns.size):
        column, center, deviation = terms.columns[j], terms.center[j], terms.deviation[j]
        values = standard[j]
        for i in range(rows.size):
            values[i] = (covariates[rows[i], column] - center) / deviation
        _add_to(index, terms.line[j + 1], values)
    for i in range(rows.size):
        small = np.exp(-abs(index[i]))
        curve[0, i] = (1.0 if index[i] >= 0 else small) / (1.0 + small)
    for knot in range(terms.knots.size):
        for i in range(rows.size):
            curve[knot + 1, i] = max(index[i] - terms.knots[knot], 0.0)


@_kernel
def _mark_tile(terms: Terms, standard: Floats, marks: npt.NDArray[np.uint64]) -> None:
    """Leave the bits of the leaves that a tile's rows can be in; products follow covariates."""
    width = terms.columns.size
    marks[:] = ALL_BITS
    first = 0
    while first < terms.column.size:
        j = terms.column[first]
        last = np.searchsorted(terms.column, j, side="right")
        values = (
            standard[j] if j < width
            else standard[terms.left[j - width]] * standard[terms.right[j - width]]
        )  # fmt: skip
        mark_leaves(values, terms.edge[first:last], terms.tree[first:last],
                    terms.mask[first:last], marks)  # fmt: skip
        first = last


@_kernel
def _price_tile(
    terms: Terms, slopes: Floats, values: Floats, standard: Floats, curve: Floats, marks: Codes,
    price: Floats,
) -> None:  # fmt: skip
    """Add the slopes of dense terms and the values of leaves, by their bits, to the prices."""
    width = terms.columns.size
    for j in range(width):
        _add_to(price, slopes[j], standard[j])
    _add_to(price, slopes[width], curve[0])
    place = width + 1
    for k in range(terms.left.size):
        _add_product_to(price, slopes[place + k], standard[terms.left[k]], standard[terms.right[k]])
    place += terms.left.size
    for k in range(terms.squares.size):
        square = standard[terms.squares[k]]
        _add_product_to(price, slopes[place + k], square, square)
    place += terms.squares.size
    for k in range(terms.knots.size):
        _add_to(price, slopes[place + k], curve[k + 1])
    for tree in range(values.shape[0]):
        leaf, mark = values[tree], marks[tree]
        for i in range(price.size):
            price[i] += leaf[mark[i]]


@_kernel
def _add_tile(
    terms: Terms, weights: Floats, standard: Floats, curve: Floats, marks: Codes, sums: Floats,
    held: Floats,
) -> None:  # fmt: skip
    """Add a tile's weighted terms to their sums, and its weights to the bits of every tree."""
    width = terms.columns.size
    for j in range(width):
        sums[j] += _dot(weights, standard[j])
    sums[width] += _dot(weights, curve[0])
    place = width + 1
    for k in range(terms.left.size):
        sums[place + k] += _dot_product(weights, standard[terms.left[k]], standard[terms.right[k]])
    place += terms.left.size
    for k in range(terms.squares.size):
        square = standard[terms.squares[k]]
        sums[place + k] += _dot_product(weights, square, square)
    place += terms.squares.size
    for k in range(terms.knots.size):
        sums[place + k] += _dot(weights, curve[k + 1])
    for tree in range(marks.shape[0]):
        mark = marks[tree]
        for i in range(weights.size):  # two sums in turn: one would wait for itself
            held[i & 1, tree, mark[i]] += weights[i]


@_kernel
def pass_over(  # noqa: PLR0913  # compiled code takes arrays, not objects
    covariates: Floats,
    rows: Indices,
    terms: Terms,
    slopes: Floats,
    values: Floats,
    near: Floats,
    pull: Floats,
    least: float,
    cap: float,
    price: Floats,
    weights: Floats,
    sums: Floats,
    held: Floats,
) -> None:
    """Go over some rows of a block once; an empty output is one that is not asked for.

    It adds ``f·λ`` to ``price``, shape (m,), by slopes of dense terms and values of leaves, and
    writes ``clip(near − pull·price, least, cap)`` to ``weights``. It adds ``Σ w·term`` to ``sums``,
    shape (q,), and the weights of the rows with the same bits to ``held``, (2, trees, 256).
    """
    width, trees = terms.columns.size, values.shape[0]
    # The last tile is shorter: what its arrays hold beyond it is never read.
    standard = np.empty((width, _TILE))
    curve = np.empty((1 + terms.knots.size, _TILE))
    words = np.empty((trees, _TILE // 8), np.uint64)
    marks = words.reshape(-1).view(np.uint8).reshape((trees, _TILE))
    for start in range(0, rows.size, _TILE):
        tile = slice(start, min(start + _TILE, rows.size))
        _fill_tile(covariates, rows[tile], terms, standard, curve)
        _mark_tile(terms, standard, words)
        own = weights[tile]
        if price.size > 0:
            prices, base, pulled = price[tile], near[tile], pull[tile]
            _price_tile(terms, slopes, values, standard, curve, marks, prices)
            for i in range(prices.size):
                own[i] = min(max(base[i] - pulled[i] * prices[i], least), cap)
        if sums.size > 0:
            _add_tile(terms, own, standard, curve, marks, sums, held)


@_sums
def pair_nearest(points: Floats, compared: int) -> tuple[Indices, Indices]:
    """Pair each row, in their order, with the nearest of so many rows that follow without a pair.

    ``points`` has shape (m, k). Returns both members of the m // 2 pairs, by position.
    """
    rows, width = points.shape
    first, second = np.empty(rows // 2, np.intp), np.empty(rows // 2, np.intp)
    following = np.arange(1, rows + 1)  # of the rows without a pair
    head = 0
    for pair in range(rows // 2):
        least, found, before = np.inf, following[head], head
        last, other = head, following[head]
        for _ in range(compared):
            if other >= rows:
                break
            distance = 0.0
            for j in range(width):
                distance += (points[head, j] - points[other, j]) ** 2
            if distance < least:
                least, found, before = distance, other, last
            last, other = other, following[other]
        first[pair], second[pair] = head, found
        following[before] = following[found]
        head = following[head]
    return first, second
