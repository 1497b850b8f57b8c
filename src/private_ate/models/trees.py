"""Regression trees on binned columns, grown best split first: one learner for both levels.

A tree is fitted to gradients and Hessians of a loss, so a boosting round for a logistic model, a
boosting round for squares and a tree of a forest differ in two vectors only. All functions but
`bin_edges` are compiled, release the interpreter's lock, and may be called from compiled code. They
are functions of their arguments alone: no random numbers, no clock, ties broken by the order of
columns.

Histograms hold three sums for each column and bin: rows, gradients, Hessians. A split fills the
histogram of its smaller side and subtracts it from the parent's for the other side.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numba
import numpy as np

from private_ate.arrays import Codes, Floats, Integers

__all__ = ["Tree", "bin_codes", "bin_edges", "empty_histograms", "find_leaves", "grow_tree"]

_SUMS: Final = 3  # rows, gradients, Hessians
# Gains of targets within [-1, 1] are sums of at most some 10^5 rounded products: below this a gain
# is rounding, and a split that follows it would depend on the order of additions.
_LEAST_GAIN: Final = 1e-9

_kernel = numba.njit(cache=True, nogil=True, boundscheck=False)


class Tree(NamedTuple):
    """A binary tree over binned columns; node 0 is the root.

    Attributes
    ----------
    feature : array of int64
        The column that a node splits on; -1 in a leaf.
    threshold : array of uint8
        Rows whose code is at most this go left.
    left : array of int64
        The left child; the right one follows it.
    value : array of float64
        What a leaf predicts: sum of gradients / (sum of Hessians + ridge).
    """

    feature: Integers
    threshold: Codes
    left: Integers
    value: Floats


def bin_edges(columns: Floats, bins: int) -> Floats:
    """Return at most ``bins - 1`` different quantiles of each column, padded by infinity.

    Missing entries sort last and never become an edge. Shape (columns, bins - 1).
    """
    ordered = np.sort(columns.T, axis=1)
    rows = ordered.shape[1]
    quantiles = ordered[:, np.minimum(np.arange(1, bins) * rows // bins, rows - 1)]
    differs = quantiles > ordered[:, :1]
    differs[:, 1:] &= quantiles[:, 1:] > quantiles[:, :-1]
    edges: Floats = np.sort(np.where(differs, quantiles, np.inf), axis=1)
    return edges


@_kernel
def bin_codes(columns: Floats, edges: Floats) -> Codes:
    """Return for each entry how many edges of its column are not above it; 0 where missing."""
    rows, width = columns.shape
    codes = np.empty((rows, width), np.uint8)
    for j in range(width):
        column_edges = edges[j]
        for i in range(rows):
            value = columns[i, j]
            low = 0
            high = column_edges.size
            while low < high:
                middle = (low + high) // 2
                if value >= column_edges[middle]:
                    low = middle + 1
                else:
                    high = middle
            codes[i, j] = low
    return codes


@_kernel
def empty_histograms(leaves: int, width: int, bins: int) -> Floats:
    """Return the working memory of `grow_tree`, which a caller may use for tree after tree."""
    return np.empty((leaves, width, bins, _SUMS))


@_kernel
def _fill(
    histogram: Floats, codes: Codes, rows: Integers, gradient: Floats, hessian: Floats
) -> None:
    """Add up rows, gradients and Hessians in each bin of each column."""
    histogram[:] = 0.0
    width = codes.shape[1]
    for i in range(rows.size):
        row = rows[i]
        g = gradient[row]
        h = hessian[row]
        for j in range(width):
            code = codes[row, j]
            histogram[j, code, 0] += 1.0
            histogram[j, code, 1] += g
            histogram[j, code, 2] += h


@_kernel
def _best_split(histogram: Floats, least: int, ridge: float) -> tuple[float, int, int]:
    """Return gain, column and last left bin of the best split; a gain of 0 where there is none."""
    width, bins, _ = histogram.shape
    total_rows = 0.0
    total_g = 0.0
    total_h = 0.0
    for code in range(bins):
        total_rows += histogram[0, code, 0]
        total_g += histogram[0, code, 1]
        total_h += histogram[0, code, 2]
    unsplit = total_g * total_g / max(total_h + ridge, 1e-300)
    best = _LEAST_GAIN
    column = -1
    last = 0
    for j in range(width):
        rows = 0.0
        g = 0.0
        h = 0.0
        for code in range(bins - 1):
            here = histogram[j, code, 0]
            if here == 0.0:
                continue
            rows += here
            g += histogram[j, code, 1]
            h += histogram[j, code, 2]
            if rows < least:
                continue
            if total_rows - rows < least:
                break
            left_h = max(h + ridge, 1e-300)
            right_h = max(total_h - h + ridge, 1e-300)
            right_g = total_g - g
            gain = g * g / left_h + right_g * right_g / right_h - unsplit
            if gain > best:
                best = gain
                column = j
                last = code
    if column < 0:
        return 0.0, -1, 0
    return best, column, last


@_kernel
def _leaf_value(rows: Integers, gradient: Floats, hessian: Floats, ridge: float) -> float:
    """Return what a leaf of these rows predicts."""
    g = 0.0
    h = 0.0
    for i in range(rows.size):
        g += gradient[rows[i]]
        h += hessian[rows[i]]
    return g / max(h + ridge, 1e-300)


@_kernel
def _partition(codes: Codes, rows: Integers, column: int, last: int, spare: Integers) -> int:
    """Order rows so that those that go left come first, stably; return how many they are."""
    left = 0
    right = 0
    for i in range(rows.size):
        row = rows[i]
        if codes[row, column] <= last:
            rows[left] = row
            left += 1
        else:
            spare[right] = row
            right += 1
    for i in range(right):
        rows[left + i] = spare[i]
    return left


@_kernel
def grow_tree(
    codes: Codes,
    rows: Integers,
    gradient: Floats,
    hessian: Floats,
    least: int,
    ridge: float,
    histograms: Floats,
) -> Tree:
    """Grow a tree on some rows, by the best split first, up to as many leaves as there is memory.

    Parameters
    ----------
    codes : array of uint8, shape (n, columns)
        Binned columns.
    rows : array of int64
        The rows to learn from; their order is changed.
    gradient, hessian : arrays of float64, shape (n,)
        The negative gradient of the loss and its curvature: w (y - f) and w for squares with
        weights w, t - p and p (1 - p) for a logistic model.
    least : int
        The fewest rows of a leaf.
    ridge : float
        Added to the sum of Hessians of a leaf.
    histograms : array of float64
        Working memory made by `empty_histograms`; its first length is the most leaves.
    """
    most = histograms.shape[0]
    nodes = 2 * most - 1
    feature = np.full(nodes, -1, np.int64)
    threshold = np.zeros(nodes, np.uint8)
    left = np.zeros(nodes, np.int64)
    value = np.zeros(nodes)
    start = np.zeros(nodes, np.int64)
    end = np.zeros(nodes, np.int64)
    memory = np.zeros(nodes, np.int64)  # which histogram belongs to the node
    gain = np.zeros(nodes)
    spare = np.empty(rows.size, np.int64)

    end[0] = rows.size
    _fill(histograms[0], codes, rows, gradient, hessian)
    if rows.size >= 2 * least:
        gain[0], feature[0], threshold[0] = _best_split(histograms[0], least, ridge)
    grown = 1
    leaves = 1
    while leaves < most:
        node = int(np.argmax(gain[:grown]))
        if gain[node] <= 0.0:
            break
        a, z = start[node], end[node]
        middle = a + _partition(codes, rows[a:z], feature[node], threshold[node], spare)
        left[node] = grown
        start[grown], end[grown] = a, middle
        start[grown + 1], end[grown + 1] = middle, z
        small = grown if middle - a <= z - middle else grown + 1
        large = 2 * grown + 1 - small
        memory[small] = leaves
        memory[large] = memory[node]
        if end[large] - start[large] >= 2 * least:
            few = histograms[memory[small]]
            many = histograms[memory[large]]
            _fill(few, codes, rows[start[small] : end[small]], gradient, hessian)
            many -= few  # what is left is the histogram of the larger side
            gain[large], feature[large], threshold[large] = _best_split(many, least, ridge)
            if end[small] - start[small] >= 2 * least:
                gain[small], feature[small], threshold[small] = _best_split(few, least, ridge)
        gain[node] = 0.0
        grown += 2
        leaves += 1
    for node in range(grown):
        if left[node] == 0:
            feature[node] = -1
            value[node] = _leaf_value(rows[start[node] : end[node]], gradient, hessian, ridge)
    return Tree(feature[:grown], threshold[:grown], left[:grown], value[:grown])


@_kernel
def find_leaves(codes: Codes, tree: Tree) -> Integers:
    """Return the node in which each row ends."""
    found = np.empty(codes.shape[0], np.int64)
    for i in range(codes.shape[0]):
        node = 0
        while tree.feature[node] >= 0:
            right = int(codes[i, tree.feature[node]] > tree.threshold[node])
            node = int(tree.left[node]) + right
        found[i] = node
    return found
