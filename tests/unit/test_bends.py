"""Bends of covariates that blocks choose: which, from what, and what that leaves of confounding."""

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


@pytest.mark.parametrize("shape", ["product", "hinge"])
def test_sampling_weights_take_part_in_the_choice(shape):
    rng = np.random.default_rng(9)
    groups = bent(shape)
    weighted = bent(shape, weights=rng.uniform(0.2, 1.0, groups.outcome.shape))

    effects = models.linear_effects(weighted, bends="chosen")

    assert effects.effect.mean() == pytest.approx(EFFECT, abs=0.01)
    assert not np.array_equal(effects.effect, models.linear_effects(groups, bends="chosen").effect)


def test_a_copy_of_every_row_chooses_as_a_weight_of_two_does():
    groups = bent("product", blocks=5, rows=60)
    twice = np.arange(60) % 3 == 0
    order = np.concatenate([np.arange(60), np.flatnonzero(twice)])
    copied = Groups(
        groups.covariates[:, order], groups.treatment[:, order], groups.outcome[:, order],
        groups.takes_part[:, order],
    )  # fmt: skip
    weights = np.tile(np.where(twice, 1.0, 0.5), (5, 1))
    weighted = Groups(
        groups.covariates, groups.treatment, groups.outcome, groups.takes_part, weights
    )

    first, second = chosen_of(copied)[:, :60, 0], chosen_of(weighted)[..., 0]

    # The strongest bend is the same; how many are strong enough depends on the worth of the rows.
    assert [int(np.argmax(np.abs(row))) for row in first] == [
        int(np.argmax(np.abs(row))) for row in second
    ]
    assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.9


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
    rows = prepare(groups)
    unseen = np.arange(4100) % 3 != 0  # one row in three is looked at
    treatment = np.where(unseen, ~groups.treatment, groups.treatment)
    other = Groups(groups.covariates, treatment, groups.outcome, groups.takes_part)

    chosen = basis_of(rows, 4100, "chosen").parts[2]
    effects = models.linear_effects(groups, bends="chosen").effect

    assert np.all(np.any(chosen[:, unseen, 0] != 0, axis=1))
    assert np.array_equal(chosen[..., 0], basis_of(prepare(other), 4100, "chosen").parts[2][..., 0])
    assert effects == pytest.approx(EFFECT, abs=0.006)


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


def test_a_block_of_many_covariates_is_fitted_without_products():
    groups = bent("hinge", blocks=3, rows=60, dimension=110)

    effects = models.linear_effects(groups, bends="chosen")

    assert effects.usable.all()
    assert np.isfinite(effects.variance).all()
