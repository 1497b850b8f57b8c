"""Out-of-bag forests: what trees that did not see a row predict for it.

Built on the learner of `models.trees`: a tree is grown on a random part of the rows and applied to
the others. Trees split by the first of several targets, and predict all of them. Functions of
their arguments alone: the generator is written out here, so that its numbers never change.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numba
import numpy as np

from private_ate.arrays import Codes, Floats, Integers, Words
from private_ate.models.trees import empty_histograms, find_leaves, grow_tree

__all__ = ["BINS", "ForestSize", "out_of_bag", "shuffled"]

BINS: Final = 16
_BAG: Final = 0.632  # the share of different rows in a bootstrap sample
_LEAST_ROWS: Final = 3  # of a leaf


class ForestSize(NamedTuple):
    """How large a forest is; public.

    Attributes
    ----------
    trees : int
        How many there are.
    judges : int
        The first of them, which are asked where forests are compared with each other.
    rows : int
        The most rows that a tree learns from: more cost time and teach it little.
    leaves : int
        The most leaves of a tree.
    """

    trees: int
    judges: int
    rows: int = 800
    leaves: int = 128


_kernel = numba.njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")


@_kernel
def _next(state: Words) -> np.uint64:
    """Advance a generator (xorshift64) and return its word."""
    word: np.uint64 = state[0]
    word ^= word << np.uint64(13)
    word ^= word >> np.uint64(7)
    word ^= word << np.uint64(17)
    state[0] = word
    return word


@_kernel
def _generator(seed: int) -> Words:
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed) * np.uint64(2654435761) + np.uint64(88172645463325252)
    return state


@_kernel
def _shuffle(order: Integers, count: int, state: Words) -> None:
    """Move a uniformly chosen part of the order to its front."""
    for i in range(count):
        k = i + np.int64(_next(state) % np.uint64(order.size - i))
        order[i], order[k] = order[k], order[i]


@_kernel
def shuffled(size: int, seed: int) -> Integers:
    """Return a public order of so many rows."""
    order = np.arange(size)
    _shuffle(order, size, _generator(seed))
    return order


@_kernel
def out_of_bag(
    codes: Codes, targets: Floats, weights: Floats, size: ForestSize, seed: int
) -> tuple[Floats, Floats]:
    """Return for each row and target the mean prediction of trees that did not see the row.

    ``codes`` are binned columns, shape (n, columns), and ``targets`` have shape (n, t); trees
    split by the first. The first of two arrays is what the judges among the trees predict, the
    second what all of them do. A row that every tree has seen is predicted to be zero.
    """
    rows, count = targets.shape
    bag = min(int(_BAG * rows), size.rows)
    state = _generator(seed)
    order = np.arange(rows)
    total = np.zeros((rows, count))
    seen = np.zeros(rows)
    judged = total
    leaves = min(size.leaves, max(bag // _LEAST_ROWS, 1))
    histograms = empty_histograms(leaves, codes.shape[1], BINS)
    gradient = targets[:, 0] * weights
    sums = np.empty((2 * leaves, count + 1))
    for tree_number in range(size.trees):
        _shuffle(order, bag, state)
        tree = grow_tree(codes, order[:bag].copy(), gradient, weights, _LEAST_ROWS, 0.0, histograms)
        node = find_leaves(codes, tree)
        _add_predictions(order, bag, node, targets, weights, sums, total, seen)
        if tree_number + 1 == size.judges < size.trees:
            judged = _means(total.copy(), seen)
    return judged, _means(total, seen)


@_kernel
def _add_predictions(  # noqa: PLR0913  # a tree's bag and leaves, and what is added to
    order: Integers,
    bag: int,
    node: Integers,
    targets: Floats,
    weights: Floats,
    sums: Floats,
    total: Floats,
    seen: Floats,
) -> None:
    """Add what a tree predicts to the totals of the rows that it has not seen.

    The first rows of the order are those of its bag; ``node`` holds the leaf of every row.
    """
    count = targets.shape[1]
    sums[:] = 0.0
    for i in range(bag):
        row = order[i]
        sums[node[row], count] += weights[row]
        for k in range(count):
            sums[node[row], k] += weights[row] * targets[row, k]
    for leaf in range(sums.shape[0]):
        if sums[leaf, count] > 0.0:
            for k in range(count):
                sums[leaf, k] /= sums[leaf, count]
    for i in range(bag, order.size):
        row = order[i]
        if sums[node[row], count] > 0.0:
            seen[row] += 1.0
            for k in range(count):
                total[row, k] += sums[node[row], k]


@_kernel
def _means(total: Floats, seen: Floats) -> Floats:
    """Divide the sums of rows by how many trees there were, in place."""
    for i in range(total.shape[0]):
        if seen[i] > 0.0:
            for k in range(total.shape[1]):
                total[i, k] /= seen[i]
    return total
