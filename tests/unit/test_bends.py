"""Bends of covariates that blocks choose: which, from what, and what that leaves of confounding."""

from dataclasses import replace

import numpy as np
import pytest

from private_ate.estimators.blocks import choice, models
from private_ate.estimators.blocks.bends import (
    basis_of,
    bends_to_choose_from,
    chosen_columns,
    rich_columns,
)
from private_ate.estimators.blocks.rows import prepare
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Groups

EFFECT = 0.1


def bent(shape, blocks=40, rows=200, dimension=8, seed=0, **changed):
    """Return blocks whose confounding follows one bend of the covariates, and is large."""
    rng = np.random.default_rng(seed)
    covariates = rng.random((blocks, rows, dimension))
    first, second = (np.sqrt(12) * (covariates[..., place] - 0.5) for place in (1, 4))
    index = {
        "none": np.zeros_like(first),
        "product": first * second,
        "hinge": 2 * np.abs(first) - np.sqrt(3),
        "jump": 4.0 * (first > 1.2) - 0.6,
    }[shape]
    treatment = rng.random(index.shape) < 1 / (1 + np.exp(-index))
    outcome = 0.4 + 0.08 * index + EFFECT * treatment + 0.05 * rng.standard_normal(index.shape)
    steps = np.rint(np.clip(outcome, 0, 1) * OUTCOME_STEPS).astype(np.int32)
    takes_part = np.ones(index.shape, dtype=np.bool_)
    return Groups(covariates, treatment, steps, takes_part, **changed)


def chosen_of(groups, length=200):
    """Return the columns that blocks chose, shape (g, b, k)."""
    return basis_of(prepare(groups), length, "chosen").parts[2]


@pytest.mark.parametrize(
    "model", [models.linear_effects, models.overlap_effects, models.average_effects]
)
@pytest.mark.parametrize(("shape", "left"), [("product", 0.1), ("hinge", 0.3), ("jump", 0.6)])
def test_confounding_through_a_bend_is_removed_where_blocks_choose(model, shape, left):
    groups = bent(shape)

    without, chosen = (model(groups, bends=which).effect.mean() for which in ("squares", "chosen"))

    assert without > EFFECT + 0.003
    assert abs(chosen - EFFECT) < left * (without - EFFECT)


def of_two_kinds(blocks, rows, share, dimension=8):
    """Return blocks whose first rows are confounded by a product and whose others by a hinge."""
    parts = (
        bent("product", blocks, round(share * rows), dimension),
        bent("hinge", blocks, rows - round(share * rows), dimension, seed=1),
    )
    columns = ("covariates", "treatment", "outcome", "takes_part")
    return Groups(
        *(np.concatenate([getattr(part, name) for part in parts], axis=1) for name in columns)
    )


def follow_the_product(groups, length):
    """Say for each block whether its first choice is the product of the confounders."""
    rows = prepare(groups)
    product = rows.covariates[..., 1] * rows.covariates[..., 4]
    first = basis_of(rows, length, "chosen").parts[2][..., 0]
    return np.array(
        [abs(np.corrcoef(*pair)[0, 1]) > 0.95 for pair in zip(product, first, strict=True)]
    )


def test_sampling_weights_take_part_in_the_choice():
    groups = of_two_kinds(30, 300, 0.25)
    weights = np.tile(np.where(np.arange(300) < 75, 1.0, 0.02), (30, 1))

    assert follow_the_product(groups, 300).mean() < 0.2
    assert follow_the_product(replace(groups, weights=weights), 300).mean() > 0.8


def test_a_row_that_stands_four_times_chooses_as_a_weight_of_four_does():
    groups = of_two_kinds(30, 300, 0.3)
    heavy = np.arange(300) < 90
    order = np.concatenate([np.arange(300), *3 * [np.flatnonzero(heavy)]])
    copied = Groups(
        groups.covariates[:, order], groups.treatment[:, order], groups.outcome[:, order],
        groups.takes_part[:, order],
    )  # fmt: skip
    weighted = replace(groups, weights=np.tile(np.where(heavy, 1.0, 0.25), (30, 1)))

    first, *others = (chosen_of(one, 300)[:, :300, 0] for one in (copied, weighted, groups))
    same = [
        np.mean([np.allclose(*pair) for pair in zip(first, one, strict=True)]) for one in others
    ]

    # The strongest bend is the same; how many are strong enough depends on the worth of the rows.
    assert same[0] > 0.9
    assert same[1] < 0.1


def test_blocks_without_bends_choose_next_to_none():
    taken = np.any(chosen_of(bent("none", blocks=60)) != 0, axis=1)

    assert taken.shape == (60, chosen_columns(200))
    assert taken.sum(axis=1).mean() < 2  # of eight; two out of a hundred bends pass by chance


def test_the_bend_that_confounds_is_the_first_choice():
    groups = bent("product")
    rows = prepare(groups)
    product = rows.covariates[..., 1] * rows.covariates[..., 4]

    first = basis_of(rows, 200, "chosen").parts[2][..., 0]

    same = [abs(np.corrcoef(*pair)[0, 1]) > 0.99 for pair in zip(product, first, strict=True)]
    assert np.mean(same) > 0.95


def test_of_equal_bends_the_first_is_chosen():
    products = np.array([[1.0, 0.0], [5.0, 1.0], [5.0 * (1 + 1e-14), 1.0], [2.0, 0.0]])

    best = choice._strongest(products, np.ones(2), np.ones(4), np.ones(4, dtype=np.bool_))

    assert best == (1, True)


def test_a_bend_that_covariates_say_already_is_never_chosen():
    rng = np.random.default_rng(4)
    covariates = (rng.random((30, 80, 3)) > 0.5).astype(
        np.float64
    )  # a square or a hinge is no news
    covariates[..., 2] = covariates[..., 0]
    treatment = rng.random((30, 80)) < 0.2 + 0.6 * covariates[..., 0]
    steps = np.rint((0.3 + 0.3 * covariates[..., 0]) * OUTCOME_STEPS).astype(np.int32)
    groups = Groups(covariates, treatment, steps, np.ones((30, 80), dtype=np.bool_))

    chosen = chosen_of(groups, 80)

    # What is left to choose from are products of the two different covariates.
    rows = prepare(groups)
    product = rows.covariates[..., 0] * rows.covariates[..., 1]
    for block, columns in zip(product, chosen, strict=True):
        for column in columns.T[np.any(columns != 0, axis=0)]:
            assert abs(np.corrcoef(block, column)[0, 1]) > 0.9


def test_blocks_choose_more_bends_the_more_rows_they_have():
    counts = [chosen_columns(rows) for rows in (20, 60, 100, 200, 500, 5000)]

    assert counts == [2, 2, 4, 8, 12, 12]


def test_long_blocks_choose_by_some_of_their_rows_and_adjust_all():
    groups = bent("product", blocks=2, rows=4100, dimension=5)
    other = bent("hinge", blocks=2, rows=4100, dimension=5)
    seen = np.arange(4100) % 3 == 0  # one row in three is looked at
    mixed = replace(
        groups,
        treatment=np.where(seen, groups.treatment, other.treatment),
        outcome=bent("none", blocks=2, rows=4100, dimension=5, seed=7).outcome,
    )

    chosen = basis_of(prepare(groups), 4100, "chosen").parts[2]
    effects = models.linear_effects(groups, bends="chosen").effect

    assert np.all(np.any(chosen[:, ~seen, 0] != 0, axis=1))
    assert follow_the_product(mixed, 4100).all()
    assert effects == pytest.approx(EFFECT, abs=0.006)


def test_a_long_block_depends_on_its_own_rows_only():
    groups = bent("product", blocks=3, rows=2100, dimension=5)
    other = bent("hinge", blocks=3, rows=2100, dimension=5, seed=1)
    mine = np.arange(3) == 1
    changed = replace(
        groups,
        covariates=np.where(mine[:, None, None], groups.covariates, other.covariates),
        treatment=np.where(mine[:, None], groups.treatment, other.treatment),
        outcome=np.where(mine[:, None], groups.outcome, other.outcome),
    )

    first, second = (models.linear_effects(one, bends="chosen") for one in (groups, changed))

    assert (first.effect == second.effect).tolist() == [False, True, False]
    assert first.variance[1] == second.variance[1]


def pursue_by_projection(block, pool, count, length):
    """Choose by the definition: every step projects on all that was chosen before."""
    bends = block.standardized(pool.bends(block.covariates))
    stacked = np.vstack([block.treatment, block.outcome, bends])
    left = choice._beyond_covariates(block, stacked, length)
    treatment, outcome, columns = left[0], left[1], left[2:]
    wanted = np.stack([treatment, outcome - treatment @ outcome / (treatment @ treatment)
                       * treatment])  # fmt: skip
    news = (columns**2).sum(axis=1)
    worth = block.copies.sum() ** 2 / (block.copies**2).sum()
    eligible = news > 0.04 * block.copies.sum()
    chosen = []
    for step in range(count):
        basis = np.linalg.qr(columns[chosen].T)[0] if chosen else np.zeros((len(treatment), 0))
        rest, targets = (one - one @ basis @ basis.T for one in (columns, wanted))
        own = (rest**2).sum(axis=1)
        eligible &= own > 0.09 * news
        degrees = max(worth - 0.7 * len(block.covariates) - step, worth / 4)
        spread = (targets**2).sum(axis=1) / degrees
        strength = np.where(eligible, ((rest @ targets.T) ** 2 / spread).max(axis=1) / own, 0)
        if strength.max() < 9:
            break
        chosen.append(int(np.argmax(strength >= (1 - 1e-9) * strength.max())))  # ties: the first
    return chosen


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rows", [150, 30])
def test_the_pursuit_is_that_of_its_definition(weighted, rows):
    groups = of_two_kinds(40, rows, 0.5, dimension=6)
    rng = np.random.default_rng(5)
    # Two products that are almost the same, and what they differ by matters much.
    own = groups.covariates[..., 0].copy()
    groups.covariates[..., 0] = 0.85 * groups.covariates[..., 1] + 0.15 * own
    gap = (groups.covariates[..., 0] - groups.covariates[..., 1]) * (
        groups.covariates[..., 4] - 0.5
    )
    steps = groups.outcome + np.rint(3 * gap * OUTCOME_STEPS).astype(np.int64)
    groups = replace(groups, outcome=np.clip(steps, 0, OUTCOME_STEPS).astype(np.int32))
    if weighted:
        groups = replace(groups, weights=rng.uniform(0.05, 1.0, groups.outcome.shape) ** 2)
    stacked = prepare(groups)
    lengths = []
    for place in range(40):
        block = choice._Block.of(stacked, place)
        pool = choice._Pool.of(block)
        found = [index for index, is_found in choice._pursue(block, pool, 6, rows) if is_found]
        assert found == pursue_by_projection(block, pool, 6, rows)
        lengths.append(len(found))
    assert max(lengths) >= (3 if rows > 100 else 1)


def test_jumps_are_at_quantiles_of_rows_that_take_part():
    groups = bent("none", blocks=1, rows=60, dimension=5)
    takes_part = np.arange(60)[None] % 3 > 0
    there = [getattr(groups, name)[:, takes_part[0]] for name in ("covariates", "treatment")]
    alone = Groups(*there, groups.outcome[takes_part][None], groups.takes_part[takes_part][None])

    edges = [
        choice._Pool.of(choice._Block.of(prepare(one), 0)).edges
        for one in (replace(groups, takes_part=takes_part), alone)
    ]

    assert np.allclose(edges[0], edges[1])


def test_a_variance_counts_the_bends_that_were_chosen():
    rows = prepare(bent("product", blocks=9))
    basis = basis_of(rows, 200, "chosen")
    taken = np.any(basis.parts[2] != 0, axis=1).sum(axis=1)

    assert taken.min() >= 1
    assert models._fitted(basis, "chosen", 0.6).tolist() == (8 + taken).tolist()


@pytest.mark.parametrize("index", range(10 + 9 * 5))
def test_a_bend_alone_is_what_it_is_among_all(index):
    block = choice._Block.of(prepare(bent("none", blocks=1, rows=50, dimension=5)), 0)
    pool = choice._Pool.of(block)

    assert np.array_equal(pool.bend(block.covariates, index), pool.bends(block.covariates)[index])


def test_very_many_covariates_leave_products_out_of_the_choice():
    assert bends_to_choose_from(20) == 190 + 9 * 20
    assert bends_to_choose_from(60) == 1770 + 9 * 60
    assert bends_to_choose_from(150) == 9 * 150
    assert rich_columns(5) == 35


@pytest.mark.parametrize("dimension", [5, 20, 110])
def test_a_block_looks_at_as_many_bends_as_are_counted(dimension):
    block = choice._Block.of(prepare(bent("none", 1, 30, dimension)), 0)

    found = choice._Pool.of(block).bends(block.covariates)

    assert found.shape == (bends_to_choose_from(dimension), 30)


def test_a_block_of_many_covariates_is_fitted_without_products():
    groups = bent("hinge", blocks=3, rows=60, dimension=110)

    effects = models.linear_effects(groups, bends="chosen")

    assert effects.usable.all()
    assert np.isfinite(effects.variance).all()
