from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from private_ate.baselines.graphical_model import (
    JunctionTree,
    Measurement,
    Model,
    cells_of,
    sample_rows,
    sweep,
)

SIZES = (2, 3, 2, 4, 3)
TOTAL = 500.0


def is_junction_tree(tree):
    """Each column's cliques are connected, parents come first and no clique is in a neighbour."""
    for place, parent in enumerate(tree.parents):
        if parent >= place or (parent < 0) != (place == 0):
            return False
        if parent >= 0 and set(tree.cliques[place]) <= set(tree.cliques[parent]):
            return False
    for column in tree.columns:
        holders = [place for place, clique in enumerate(tree.cliques) if column in clique]
        roots = [p for p in holders if tree.parents[p] not in holders]
        if len(roots) != 1:
            return False
    return True


def loopy_tree():
    tree = JunctionTree.single(0)
    for before, after in ((0, 1), (1, 2), (2, 3), (3, 4)):
        tree = tree.merged(JunctionTree.single(after), before, after)
    return tree.linked(4, 0)


def measured_model(tree, pairs, seed=1, spread=5.0):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(int(np.prod(SIZES)), 0.3)).reshape(SIZES) * TOTAL
    measured = {}
    for pair in [*pairs, *((column,) for column in range(5))]:
        axes = tuple(set(range(5)) - set(pair))
        noisy = joint.sum(axis=axes) + rng.normal(0, spread, [SIZES[c] for c in pair])
        measured[pair] = Measurement(noisy, 1 / spread**2)
    potentials = tuple(np.zeros([SIZES[c] for c in clique]) for clique in tree.cliques)
    return Model(tree, SIZES, TOTAL, measured, potentials)


def full_joint(model):
    """Multiply all potentials out over every cell of the joint table."""
    log = np.zeros(SIZES)
    for clique, potential in zip(model.tree.cliques, model.potentials, strict=True):
        log = log + potential.reshape([SIZES[c] if c in clique else 1 for c in range(5)])
    joint = np.exp(log - log.max())
    return joint / joint.sum() * TOTAL


def test_random_links_keep_a_junction_tree_that_holds_every_asked_pair():
    rng = np.random.default_rng(2)
    for _ in range(30):
        trees = {column: JunctionTree.single(column) for column in range(8)}
        asked = []
        for _ in range(12):
            first, second = rng.choice(8, size=2, replace=False).tolist()
            mine, other = trees[first], trees[second]
            grown = (
                mine.linked(first, second)
                if second in mine.columns
                else mine.merged(other, first, second)
            )
            asked.append((first, second))
            for column in grown.columns:
                trees[column] = grown
        for first, second in asked:
            assert trees[first].place_of((first, second)) is not None
            assert is_junction_tree(trees[first])


def test_a_cycle_is_closed_with_cliques_of_three_columns():
    tree = loopy_tree()

    assert is_junction_tree(tree)
    assert max(len(clique) for clique in tree.cliques) == 3
    assert tree.place_of((0, 4)) is not None


def test_clique_sizes_do_not_overflow():
    assert cells_of(range(40), [1000] * 40) == pytest.approx(1e120)


def test_marginals_of_belief_propagation_equal_those_of_the_full_joint_table():
    model = measured_model(loopy_tree(), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]).fitted(30)
    joint = full_joint(model)

    for clique, marginal in zip(model.tree.cliques, model.marginals, strict=True):
        axes = tuple(set(range(5)) - set(clique))
        assert np.allclose(marginal, joint.sum(axis=axes), atol=1e-8)


def test_a_sweep_finds_all_pairs_of_the_full_joint_table_and_the_cost_of_links():
    model = measured_model(loopy_tree(), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]).fitted(30)
    joint = full_joint(model)

    for first, second in combinations(range(5), 2):
        axes = tuple(set(range(5)) - {first, second})
        walk, back = sweep(model, first), sweep(model, second)
        assert np.allclose(walk.pairs[second], joint.sum(axis=axes), atol=1e-7)
        assert np.allclose(back.pairs[first], walk.pairs[second].T, atol=1e-7)
        linked = model.tree.linked(first, second)
        grown = linked.cells(SIZES) - model.tree.cells(SIZES)
        assert grown <= walk.costs[second] + 1e-9
        assert (walk.costs[second] == 0) == (model.tree.place_of((first, second)) is not None)


def test_the_fit_is_the_least_squares_model_over_all_joint_tables():
    """An independent fit on the full table (exponentiated gradient) finds the same marginals."""
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
    model = measured_model(loopy_tree(), pairs).fitted(4000)
    joint = np.full(SIZES, TOTAL / np.prod(SIZES))
    for _ in range(6_000):
        slope = np.zeros(SIZES)
        for columns, measurement in model.measured.items():
            axes = tuple(set(range(5)) - set(columns))
            error = joint.sum(axis=axes) - measurement.values
            shape = [SIZES[c] if c in columns else 1 for c in range(5)]
            slope += measurement.precision * error.reshape(shape)
        joint = joint * np.exp(-0.004 * slope)
        joint *= TOTAL / joint.sum()

    for columns in pairs:
        axes = tuple(set(range(5)) - set(columns))
        assert np.allclose(model.marginal(columns), joint.sum(axis=axes), atol=0.3)


def test_drawn_rows_have_the_marginals_of_the_model():
    model = measured_model(loopy_tree(), [(0, 1), (1, 2), (0, 4)]).fitted(200)
    rows = 100_000
    drawn = sample_rows(model, rows, np.random.default_rng(3))

    for clique, marginal in zip(model.tree.cliques, model.marginals, strict=True):
        shape = tuple(SIZES[c] for c in clique)
        index = np.ravel_multi_index(tuple(drawn[c] for c in clique), shape)
        share = np.bincount(index, minlength=marginal.size) / rows
        assert np.abs(share - marginal.ravel() / TOTAL).sum() / 2 < 0.01


def test_repeated_measurements_are_averaged_by_precision():
    merged = Measurement(np.array([1.0, 2.0]), 3.0) + Measurement(np.array([5.0, 2.0]), 1.0)

    assert merged.values.tolist() == [2.0, 2.0]
    assert merged.precision == 4.0
