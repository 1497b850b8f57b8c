"""Trees on binned columns: the best splits, bounds on leaves, rows that must not matter."""

from __future__ import annotations

import numpy as np
import pytest

from private_ate.models.trees import (
    Tree,
    bin_codes,
    bin_edges,
    empty_histograms,
    find_leaves,
    grow_tree,
)


def _grow(
    x: np.ndarray,
    y: np.ndarray,
    *,
    bins: int = 16,
    leaves: int = 8,
    least: int = 3,
    ridge: float = 0.0,
) -> tuple[Tree, np.ndarray]:
    codes = bin_codes(x, bin_edges(x, bins))
    memory = empty_histograms(leaves, x.shape[1], bins)
    tree = grow_tree(codes, np.arange(len(y)), y, np.ones(len(y)), least, ridge, memory)
    return tree, codes


def _exhaustive(codes: np.ndarray, y: np.ndarray, least: int) -> tuple[float, int, int]:
    """Try every split of all rows by means of squares, without histograms."""
    best = (0.0, -1, 0)
    for j in range(codes.shape[1]):
        for code in range(int(codes[:, j].max())):
            side = codes[:, j] <= code
            if side.sum() < least or (~side).sum() < least or not (codes[:, j] == code).any():
                continue
            gain = (
                y[side].sum() ** 2 / side.sum()
                + y[~side].sum() ** 2 / (~side).sum()
                - y.sum() ** 2 / y.size
            )
            if gain > best[0] + 1e-12:
                best = (gain, j, code)
    return best


@pytest.mark.parametrize("seed", range(5))
def test_the_first_split_is_the_best_of_all(seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    x = random.normal(size=(60, 4))
    y = random.normal(size=60) + (x[:, 2] > 0.3)
    tree, codes = _grow(x, y, leaves=2)
    _, column, code = _exhaustive(codes, y, 3)
    assert (tree.feature[0], tree.threshold[0]) == (column, code)


def test_a_second_split_is_the_better_of_both_sides() -> None:
    random = np.random.default_rng(7)
    x = random.normal(size=(400, 3))
    y = 5.0 * (x[:, 0] > 0) + 2.0 * (x[:, 1] > 0) * (x[:, 0] > 0)
    tree, codes = _grow(x, y, leaves=3)
    leaf = find_leaves(codes, tree)
    assert tree.feature[0] == 0
    assert np.unique(leaf).size == 3
    right = tree.left[0] + 1
    assert tree.feature[right] == 1  # the side on which the second column matters


def test_leaves_predict_the_shrunken_mean_of_their_rows() -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(300, 5))
    y = random.normal(size=300)
    tree, codes = _grow(x, y, leaves=12, least=10, ridge=4.0)
    leaf = find_leaves(codes, tree)
    for node in np.unique(leaf):
        inside = leaf == node
        assert inside.sum() >= 10
        assert tree.value[node] == pytest.approx(y[inside].sum() / (inside.sum() + 4.0), abs=1e-12)


def test_trees_grow_until_no_split_is_left() -> None:
    random = np.random.default_rng(4)
    x = random.normal(size=(200, 3))
    y = random.normal(size=200)
    tree, codes = _grow(x, y, leaves=200, least=3)
    leaf = find_leaves(codes, tree)
    for node in np.unique(leaf):
        rows = np.flatnonzero(leaf == node)
        gain, column, _ = _exhaustive(codes[rows], y[rows], 3)
        assert column < 0 or gain < 1e-8


def test_rows_outside_the_sample_do_not_matter() -> None:
    random = np.random.default_rng(5)
    x = random.normal(size=(120, 4))
    codes = bin_codes(x, bin_edges(x, 16))
    memory = empty_histograms(10, 4, 16)
    sample = np.arange(0, 120, 2)
    y = random.normal(size=120)
    trees = []
    for fill in (0.0, np.nan):
        y[1::2] = fill
        tree = grow_tree(codes, sample.copy(), y, np.ones(120), 3, 0.0, memory)
        trees.append(tree)
    for one, other in zip(*trees, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_constant_target_and_odd_entries_leave_one_leaf() -> None:
    x = np.array([[np.nan, 1.0], [np.inf, 1.0], [-np.inf, 1.0], [0.0, 1.0]] * 10)
    tree, codes = _grow(x, np.full(40, 0.25))
    assert tree.feature.tolist() == [-1]
    assert codes[0, 0] == 0
    tree, _ = _grow(x, np.full(40, np.nan))
    assert tree.feature.tolist() == [-1]


def test_edges_are_different_values_of_the_column() -> None:
    x = np.array([0.0] * 50 + [1.0] * 30 + [2.0] * 20)[:, None]
    edges = bin_edges(x, 16)
    assert edges.shape == (1, 15)
    assert edges[0][np.isfinite(edges[0])].tolist() == [1.0, 2.0]
    assert np.unique(bin_codes(x, edges)).tolist() == [0, 1, 2]
