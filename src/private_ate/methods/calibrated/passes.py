"""One compiled pass from covariates to weights and weighted sums of features.

Rows are taken in short tiles, so that all terms of a tile stay in the processor's cache and no
matrix of features is ever made. Within a tile loops run over one term at a time, many rows at
once. Sums are added up in the order of rows.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numba
import numpy as np

from private_ate.arrays import Codes, Floats, Indices, Integers, Words
from private_ate.models.boosting import ALL_BITS, mark_leaves

__all__ = ["Terms", "pass_over"]

_TILE: Final = 256

_kernel = numba.njit(cache=True, nogil=True, boundscheck=False)


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
    node: Codes


@_kernel
def _fill_tile(covariates: Floats, rows: Indices, terms: Terms, found: Floats) -> None:
    """Write the dense terms of a tile, in the order of `FeatureMap.dense`, shape (q, tile)."""
    width, count = terms.columns.size, rows.size
    index = np.full(count, terms.line[0])
    for j in range(width):
        column, center, deviation = terms.columns[j], terms.center[j], terms.deviation[j]
        values, slope = found[j], terms.line[j + 1]
        for i in range(count):
            values[i] = (covariates[rows[i], column] - center) / deviation
            index[i] += slope * values[i]
    for i in range(count):
        small = np.exp(-abs(index[i]))
        found[width, i] = (1.0 if index[i] >= 0 else small) / (1.0 + small)
    place = width + 1
    for k in range(terms.left.size):
        values, one, other = found[place + k], found[terms.left[k]], found[terms.right[k]]
        for i in range(count):
            values[i] = one[i] * other[i]
    place += terms.left.size
    for k in range(terms.squares.size):
        values, one = found[place + k], found[terms.squares[k]]
        for i in range(count):
            values[i] = one[i] * one[i]
    place += terms.squares.size
    for k in range(terms.knots.size):
        for i in range(count):
            found[place + k, i] = max(index[i] - terms.knots[k], 0.0)


@_kernel
def _mark_tile(terms: Terms, dense: Floats, marks: Words) -> None:
    """Leave the bits of the leaves that a tile's rows can be in; products follow covariates."""
    marks[:] = ALL_BITS
    first = 0
    while first < terms.column.size:
        j = terms.column[first]
        last = np.searchsorted(terms.column, j, side="right")
        values = dense[j if j < terms.columns.size else j + 1]  # the line's probability is between
        mark_leaves(values, terms.edge[first:last], terms.tree[first:last],
                    terms.mask[first:last], marks)  # fmt: skip
        first = last


@_kernel
def _price_tile(slopes: Floats, values: Floats, dense: Floats, marks: Codes, price: Floats) -> None:
    """Add the slopes of dense terms and the values of leaves, by their bits, to the prices."""
    for k in range(slopes.size):
        slope, term = slopes[k], dense[k]
        for i in range(price.size):
            price[i] += slope * term[i]
    for tree in range(values.shape[0]):
        leaf, mark = values[tree], marks[tree]
        for i in range(price.size):
            price[i] += leaf[mark[i]]


# Sums of a tile may be added up in any order, which is the same on every run.
@numba.njit(cache=True, nogil=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"})
def _add_tile(weights: Floats, dense: Floats, marks: Codes, sums: Floats, held: Floats) -> None:
    """Add a tile's weighted terms to their sums, and its weights to the bits of every tree."""
    for k in range(sums.size):
        term, total = dense[k], 0.0
        for i in range(weights.size):
            total += weights[i] * term[i]
        sums[k] += total
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
    adding: bool,  # noqa: FBT001  # compiled code takes arguments by place
) -> tuple[Floats, Floats]:
    """Go over some rows of a block once.

    It adds ``f·λ`` to ``price``, shape (m,), by slopes of dense terms and values of leaves, shape
    (trees, nodes), and writes ``clip(near − pull·price, least, cap)`` to ``weights``. Returns, if
    asked, ``Σ w·term``, shape (q,), and the weights of every leaf; else zeros.
    """
    trees = values.shape[0]
    by_bits = np.empty((trees, 256))
    for tree in range(trees):
        by_bits[tree] = values[tree][terms.node[tree]]
    sums, held = np.zeros(slopes.size), np.zeros((2, trees, 256))
    # The last tile is shorter: what its arrays hold beyond it is never used.
    dense = np.zeros((slopes.size, _TILE))
    words = np.empty((trees, _TILE // 8), np.uint64)
    marks = words.reshape(-1).view(np.uint8).reshape((trees, _TILE))
    for start in range(0, rows.size, _TILE):
        tile = slice(start, min(start + _TILE, rows.size))
        _fill_tile(covariates, rows[tile], terms, dense)
        _mark_tile(terms, dense, words)
        prices, base, pulled, own = price[tile], near[tile], pull[tile], weights[tile]
        _price_tile(slopes, by_bits, dense, marks, prices)
        for i in range(own.size):
            own[i] = min(max(base[i] - pulled[i] * prices[i], least), cap)
        if adding:
            _add_tile(own, dense, marks, sums, held)
    by_leaf = np.zeros(values.shape)
    for tree in range(trees):
        for bits in range(256):
            by_leaf[tree, terms.node[tree, bits]] += held[0, tree, bits] + held[1, tree, bits]
    return sums, by_leaf
