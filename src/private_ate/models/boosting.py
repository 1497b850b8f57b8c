"""Boosted trees that predict which rows are in an arm, and the leaves that rows fall into.

Logistic boosting in the usual form (Friedman 2001) on the trees of `models.trees`. All inputs are
public at label level, which is the only place that uses it. No random numbers: the same rows give
the same trees on every machine up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numba
import numpy as np
import numpy.typing as npt

from private_ate.arrays import Codes, Floats, Integers
from private_ate.models.trees import bin_codes, bin_edges, empty_histograms, find_leaves, grow_tree

__all__ = [
    "ALL_BITS", "BoostedTrees", "boost", "boost_until_worse", "gather_leaves", "leaf_pairs",
    "leaf_values", "leaf_weights", "mark_leaves",
]  # fmt: skip

BINS: Final = 63  # of a column; a code is one byte, and 63 edges resolve a leaf of 20 rows in 1,000
LEAVES: Final = 8  # of a tree: interactions of up to seven conditions, three on the average path
LEAST_ROWS: Final = 20  # of a leaf: fewer cannot be balanced by weights
RATE: Final = 0.05
RIDGE: Final = 20.0  # added to the Hessian of a leaf, which is at most a quarter of its rows

ALL_BITS: Final = np.uint64(2**64 - 1)
_EVERY_BYTE: Final = np.uint64(0x0101010101010101)

_kernel = numba.njit(cache=True, nogil=True, boundscheck=False)


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """Trees in the order in which they were grown, as conditions that rule leaves out.

    A tree has at most eight leaves, one bit each from left to right. A row starts with all bits
    set; every split whose condition ``x >= edge`` holds clears the bits of its left side. The
    lowest bit that is left is the row's leaf (QuickScorer; Lucchese et al. 2015). Splits follow
    one another without branches, so that many rows are compared at once.

    Attributes
    ----------
    column, edge, tree, mask : arrays, shape (splits,)
        The condition of every split, in the order of columns and edges; its tree; and the bits
        that stay.
    node : array of uint8, shape (trees, 256)
        The node that the bits of a row mean.
    value : array, shape (trees, nodes)
        What a leaf adds to the log odds.
    """

    column: Integers = field(repr=False)
    edge: Floats = field(repr=False)
    tree: Integers = field(repr=False)
    mask: Codes = field(repr=False)
    node: Codes = field(repr=False)
    value: Floats = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of trees, and of nodes of each."""
        return self.value.shape[0], self.value.shape[1]

    def leaves(self, columns: Floats) -> Codes:
        """Return the node of every tree in which each row ends; columns (k, m), (trees, m)."""
        found: Codes = _find_nodes(columns, self.column, self.edge, self.tree, self.mask, self.node)
        return found

    def predict(self, columns: Floats, trees: int) -> Floats:
        """Return what the first trees add to the log odds of each row; columns (k, m)."""
        return leaf_values(self.leaves(columns)[:trees], self.value[:trees])


def boost(columns: Floats, target: Floats, trees: int) -> BoostedTrees:
    """Fit so many trees to 0/1 targets, from the average on."""
    edges = bin_edges(np.ascontiguousarray(columns), BINS)
    codes = bin_codes(np.ascontiguousarray(columns), edges)
    share = min(max(float(target.mean()), 1e-6), 1 - 1e-6)
    start = np.full(target.size, np.log(share / (1 - share)))
    nobody = np.zeros((0, codes.shape[1]), np.uint8)
    found = _boost(codes, target, start, nobody, np.zeros(0), np.zeros(0), trees, trees)
    return BoostedTrees(*_conditions(edges, *found[:3]), found[3])


def boost_until_worse(
    columns: Floats,
    target: Floats,
    start: Floats,
    held: tuple[Floats, Floats, Floats],
    rounds: int,
    patience: int,
) -> tuple[BoostedTrees, Floats]:
    """Fit trees to what log odds ``start`` leave, until held-out rows have not gained for a while.

    ``held`` are columns, targets and log odds of the held-out rows. Returns the trees and the mean
    held-out loss before the first tree and after each.
    """
    edges = bin_edges(np.ascontiguousarray(columns), BINS)
    codes = bin_codes(np.ascontiguousarray(columns), edges)
    others = bin_codes(np.ascontiguousarray(held[0]), edges)
    found = _boost(codes, target, start, others, held[1], held[2], rounds, patience)
    return BoostedTrees(*_conditions(edges, *found[:3]), found[3]), found[4]


@_kernel
def _mean_loss(target: Floats, score: Floats) -> float:
    """Return the mean logistic loss."""
    total = 0.0
    for i in range(target.size):
        signed = score[i] if target[i] == 0.0 else -score[i]
        total += max(signed, 0.0) + np.log1p(np.exp(-abs(signed)))
    return total / max(target.size, 1)


@_kernel
def _boost(  # noqa: PLR0913  # compiled code takes arrays, not objects
    codes: Codes,
    target: Floats,
    start: Floats,
    held_codes: Codes,
    held_target: Floats,
    held_start: Floats,
    rounds: int,
    patience: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Floats, Floats]:
    """Grow trees one after the other; stop ``patience`` trees after the least held-out loss."""
    nodes = 2 * LEAVES - 1
    feature = np.full((rounds, nodes), -1, np.int64)
    threshold = np.zeros((rounds, nodes), np.uint8)
    left = np.zeros((rounds, nodes), np.int64)
    value = np.zeros((rounds, nodes))
    losses = np.zeros(rounds + 1)
    histograms = empty_histograms(LEAVES, codes.shape[1], BINS)
    score = start.copy()
    held = held_start.copy()
    gradient = np.empty(target.size)
    hessian = np.empty(target.size)
    losses[0] = _mean_loss(held_target, held)
    best = 0
    grown = 0
    while grown < rounds:
        for i in range(target.size):
            chance = 1.0 / (1.0 + np.exp(-score[i]))
            gradient[i] = target[i] - chance
            hessian[i] = chance * (1.0 - chance)
        rows = np.arange(target.size)
        tree = grow_tree(codes, rows, gradient, hessian, LEAST_ROWS, RIDGE, histograms)
        size = tree.feature.size
        feature[grown, :size] = tree.feature
        threshold[grown, :size] = tree.threshold
        left[grown, :size] = tree.left
        value[grown, :size] = RATE * tree.value
        score += value[grown][find_leaves(codes, tree)]
        held += value[grown][find_leaves(held_codes, tree)]
        grown += 1
        losses[grown] = _mean_loss(held_target, held)
        if losses[grown] < losses[best]:
            best = grown
        elif grown - best >= patience:
            break
    return feature[:grown], threshold[:grown], left[:grown], value[:grown], losses[: grown + 1]


@_kernel
def _conditions(
    edges: Floats, feature: np.ndarray, threshold: np.ndarray, left: np.ndarray
) -> tuple[Integers, Floats, Integers, Codes, Codes]:
    """Return the splits of all trees as conditions that rule leaves out."""
    trees, nodes = feature.shape
    node = np.zeros((trees, 256), np.uint8)
    column = np.empty(trees * nodes, np.int64)
    edge = np.empty(trees * nodes)
    owner = np.empty(trees * nodes, np.int64)
    mask = np.empty(trees * nodes, np.uint8)
    splits = 0
    for tree in range(trees):
        count = np.ones(nodes, np.int64)  # leaves below a node; children follow their parent
        for one in range(nodes - 1, -1, -1):
            if feature[tree, one] >= 0:
                count[one] = count[left[tree, one]] + count[left[tree, one] + 1]
        place = np.full(nodes, -1)  # of a node's first leaf
        place[0] = 0
        for one in range(nodes):
            if place[one] < 0:
                continue
            if feature[tree, one] >= 0:
                child = left[tree, one]
                place[child] = place[one]
                place[child + 1] = place[one] + count[child]
                column[splits] = feature[tree, one]
                edge[splits] = edges[feature[tree, one], threshold[tree, one]]
                owner[splits] = tree
                mask[splits] = 255 - (((1 << count[child]) - 1) << place[child])
                splits += 1
            else:
                lowest = 1 << place[one]
                for bits in range(lowest, 256, 2 * lowest):
                    node[tree, bits] = one
    order = np.argsort(edge[:splits], kind="mergesort")
    order = order[np.argsort(column[:splits][order], kind="mergesort")]
    return column[order], edge[order], owner[order], mask[order], node


@_kernel
def mark_leaves(
    values: Floats, edge: Floats, tree: Integers, mask: Codes, marks: npt.NDArray[np.uint64]
) -> None:
    """Clear bits by the conditions on one column of m values.

    ``marks`` holds a byte for every tree and row, eight rows a word; shape (trees, m/8 rounded up).
    """
    below = np.zeros(8 * marks.shape[1], np.uint8)
    words = below.view(np.uint64)
    for split in range(edge.size):
        if split == 0 or edge[split] != edge[split - 1]:  # trees often share an edge
            least = edge[split]
            for i in range(values.size):
                below[i] = 0 if values[i] >= least else 255
        kept = np.uint64(mask[split]) * _EVERY_BYTE
        own = marks[tree[split]]
        for word in range(words.size):
            own[word] &= kept | words[word]


@_kernel
def _find_nodes(
    columns: Floats, column: Integers, edge: Floats, tree: Integers, mask: Codes, node: Codes
) -> Codes:
    """Return the node of every tree in which each row ends, shape (trees, m)."""
    trees, rows = node.shape[0], columns.shape[1]
    words = np.full((trees, (rows + 7) // 8), ALL_BITS)
    for j in range(columns.shape[0]):
        first, last = np.searchsorted(column, j), np.searchsorted(column, j, side="right")
        mark_leaves(columns[j], edge[first:last], tree[first:last], mask[first:last], words)
    found = np.empty((trees, rows), np.uint8)
    for t in range(trees):
        marks = words[t].view(np.uint8)
        for i in range(rows):
            found[t, i] = node[t, marks[i]]
    return found


@_kernel
def leaf_values(leaves: Codes, values: Floats) -> Floats:
    """Return the sum over trees of a number per leaf, for each row; ``values`` (trees, nodes)."""
    trees, rows = leaves.shape
    found = np.zeros(rows)
    for tree in range(trees):
        for i in range(rows):
            found[i] += values[tree, leaves[tree, i]]
    return found


@_kernel
def leaf_weights(leaves: Codes, weights: Floats, nodes: int) -> Floats:
    """Return the sum of the rows' weights in every leaf, shape (trees, nodes)."""
    trees, rows = leaves.shape
    found = np.zeros((2, trees, nodes))
    for tree in range(trees):
        for i in range(rows):  # two sums in turn: one would wait for itself
            found[i & 1, tree, leaves[tree, i]] += weights[i]
    total: Floats = found[0] + found[1]
    return total


@_kernel
def leaf_pairs(leaves: Codes, nodes: int) -> Floats:
    """Return how many rows every two leaves of all trees share, shape (trees * nodes,) * 2."""
    trees, rows = leaves.shape
    found = np.zeros((trees * nodes, trees * nodes))
    shared = np.zeros((nodes, nodes), np.int64)
    for first in range(trees):
        for second in range(first + 1):
            shared[:] = 0
            for i in range(rows):
                shared[leaves[first, i], leaves[second, i]] += 1
            for a in range(nodes):
                for b in range(nodes):
                    found[first * nodes + a, second * nodes + b] = shared[a, b]
                    found[second * nodes + b, first * nodes + a] = shared[a, b]
    return found


@_kernel
def gather_leaves(leaves: Codes, table: Floats) -> Floats:
    """Return the sum over trees of a vector per leaf, for each row; ``table`` (trees, nodes, k)."""
    trees, rows = leaves.shape
    width = table.shape[2]
    found = np.zeros((rows, width))
    for i in range(rows):
        for tree in range(trees):
            vector = table[tree, leaves[tree, i]]
            for k in range(width):
                found[i, k] += vector[k]
    return found
