"""Blocks of rows: how they are cut, what is learnt inside, and what is released of them."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from private_ate import Treatment, estimate_ate
from private_ate.api import method_for
from private_ate.domain import Domain, Interval, SamplingWeights
from private_ate.engines.grouping import group_places, groups_of
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError, NumericRangeError
from private_ate.methods.blocks.inside import block_effects, block_kernel
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.methods.blocks.partition import Shuffle, draw_shuffles
from private_ate.methods.blocks.plan import Ask, BlocksOptions, Inside, plan_blocks
from private_ate.methods.blocks.regression import choose_terms
from private_ate.methods.blocks.run import Subgroups
from private_ate.models.forest import ForestSize, out_of_bag
from private_ate.planning import StudySizes, plan_ate
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.privacy.trimmed_mean import CentreRule
from private_ate.request import Request
from private_ate.study import Groups

EFFECT = 0.1
MODEL = Inside(
    arms=2,
    among=-1,
    terms=3,
    forest=ForestSize(6, 6),
    treatment_forest=True,
    vote=True,
    slopes=2,
    binary=False,
)
MODELS = {
    "regression": MODEL._replace(terms=0, forest=ForestSize(0, 0)),
    "terms": MODEL._replace(forest=ForestSize(0, 0)),
    "forests": MODEL,
    "att": MODEL._replace(among=1),
    "atc": MODEL._replace(among=0),
    "ato": MODEL._replace(slopes=0),
    "three arms": MODEL._replace(arms=3, vote=False),
}


def confounded(rows=3000, dimension=4, seed=0, share=0.0):
    rng = np.random.default_rng(seed)
    covariates = rng.random((dimension, rows))
    total = (covariates - 0.5).sum(axis=0) * np.sqrt(12 / dimension)
    treatment = rng.random(rows) < 1 / (1 + np.exp(-total - share))
    outcome = 0.5 + 0.08 * total + EFFECT * (treatment - 0.5) + 0.05 * rng.standard_normal(rows)
    steps = np.rint(np.clip(outcome, 0, 1) * OUTCOME_STEPS).astype(np.int32)
    names = {f"x{j}": Interval(0, 1) for j in range(dimension)}
    return LocalStudy(
        Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), names), covariates, treatment, steps
    )


def run(study, epsilon="2", *, seed=0, **request):
    asked = Request("sample", Fraction(epsilon), **request)
    return estimate_blocks(study, asked, Noise(SeededEntropy(seed)))


def with_missing_treatment(study, share=0.2, seed=3):
    takes_part = np.random.default_rng(seed).random(study.size) >= share
    return replace(study, takes_part=takes_part)


def request_of(**asked):
    return Request("sample", Fraction(1), **asked)


def blocks(arms=2, count=6, rows=90, dimension=3, seed=0):
    """Stacked blocks whose arms and outcomes follow a rule and a line."""
    rng = np.random.default_rng(seed)
    covariates = rng.random((count, rows, dimension))
    index = covariates[..., 0] + (covariates[..., 1] > 0.5)
    arm = (rng.random((count, rows)) * arms * (0.7 + 0.3 * index)).astype(np.uint8) % arms
    outcome = 0.2 + 0.2 * index + EFFECT * arm + 0.03 * rng.standard_normal((count, rows))
    steps = np.rint(np.clip(outcome, 0, 1) * OUTCOME_STEPS).astype(np.int32)
    weights = rng.uniform(0.2, 1, (count, rows))
    return Groups(covariates, arm, steps, rng.random((count, rows)) < 0.95, weights)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 1000, 4097])
def test_a_shuffle_is_a_bijection_of_the_positions(size):
    places = Shuffle(size, 1, 0x1234567).places(0, size)

    assert sorted(places.tolist()) == list(range(size))


def test_a_row_finds_its_place_without_the_other_rows():
    shuffle = Shuffle(1000, 7, 99)

    parts = [shuffle.places(first, 100) for first in range(0, 1000, 100)]

    assert np.array_equal(np.concatenate(parts), shuffle.places(0, 1000))


def test_blocks_have_the_same_size_or_one_row_more_and_hold_every_row_once():
    shuffle = Shuffle(1003, 10, 5)

    places, is_inside = group_places(shuffle, 0, 10)
    inside = places[is_inside]

    assert sorted(inside.tolist()) == list(range(1003))
    assert set(is_inside.sum(axis=1)) == {100, 101}
    assert np.array_equal(groups_of(shuffle, inside), np.nonzero(is_inside)[0])


def test_partitions_differ_from_each_other_and_spread_neighbouring_rows():
    first, second = draw_shuffles(5000, 50, 2, bytes(range(16)))

    places = first.places(0, 5000)

    assert np.mean(places == second.places(0, 5000)) < 0.01
    assert abs(np.corrcoef(places, np.arange(5000))[0, 1]) < 0.06
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 0.06


def said(groups, inside, subgroups=None):
    return block_kernel(subgroups or Subgroups(), inside, 0.2, 8)(groups)


@pytest.mark.parametrize("inside", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_block_depends_on_its_own_rows_only(inside, weighted):
    groups = blocks(inside.arms)
    if not weighted:
        groups = replace(groups, weights=np.ones(1))
    other = blocks(inside.arms, seed=9)
    kept = np.zeros(6, dtype=bool)
    kept[[1, 4]] = True

    def mixed(name):
        mine, theirs = getattr(groups, name), getattr(other, name)
        if mine is None:
            return None
        return np.where(kept.reshape(-1, *[1] * (mine.ndim - 1)), mine, theirs)

    swapped = Groups(*(mixed(name) for name in ("covariates", "arm", "outcome", "takes_part",
                                                "weights")))  # fmt: skip

    assert np.array_equal(said(groups, inside)[kept], said(swapped, inside)[kept])
    assert not np.array_equal(said(groups, inside)[~kept], said(swapped, inside)[~kept])


@pytest.mark.parametrize("inside", [MODEL, MODELS["three arms"]])
def test_rows_that_take_no_part_leave_no_trace(inside):
    groups = blocks(inside.arms)
    absent = ~groups.takes_part
    outcome, arm = groups.outcome.copy(), groups.arm.copy()
    covariates, weights = groups.covariates.copy(), groups.weights.copy()
    outcome[absent], arm[absent], covariates[absent], weights[absent] = 7, 0, np.nan, 0.9

    odd = Groups(covariates, arm, outcome, groups.takes_part, weights)

    assert np.array_equal(said(groups, inside), said(odd, inside))


def test_a_long_block_chooses_by_its_own_rows():
    groups = blocks(count=2, rows=4500)
    alone = Groups(*(getattr(groups, name)[1:] for name in ("covariates", "arm", "outcome",
                                                            "takes_part", "weights")))  # fmt: skip

    assert np.array_equal(said(groups, MODEL)[1:], said(alone, MODEL))


ODD = {
    "one arm": lambda g: replace(g, arm=np.zeros_like(g.arm)),
    "no rows": lambda g: replace(g, takes_part=np.zeros_like(g.takes_part)),
    "no weight": lambda g: replace(g, weights=np.zeros_like(g.weights)),
    "equal rows": lambda g: replace(g, covariates=np.full_like(g.covariates, 0.5)),
    "constant outcome": lambda g: replace(g, outcome=np.full_like(g.outcome, 12345)),
    "outcome is the arm": lambda g: replace(
        g, outcome=(g.arm > 0).astype(np.int32) * np.int32(OUTCOME_STEPS)
    ),
    "arm is a covariate": lambda g: replace(
        g, covariates=np.repeat(g.arm[..., None].astype(float), 3, axis=2)
    ),
    "arm is almost a covariate": lambda g: replace(
        g, covariates=np.repeat(g.arm[..., None] + 1e-9 * g.covariates[..., :1], 3, axis=2)
    ),
    "missing covariates": lambda g: replace(g, covariates=np.full_like(g.covariates, np.nan)),
    "infinite covariates": lambda g: replace(
        g, covariates=np.where(g.covariates > 0.9, np.inf, g.covariates)
    ),
    "huge covariates": lambda g: replace(g, covariates=1e300 * g.covariates),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("inside", MODELS.values(), ids=MODELS)
def test_odd_blocks_say_finite_numbers_and_raise_nothing(inside, odd, recwarn):
    table = said(odd(blocks(inside.arms)), inside)

    effects, deviations = table[:, 0:-1:4], table[:, 1:-1:4]
    assert (np.abs(effects) <= 1 << 30).all()
    assert (deviations >= 1).all()
    assert (deviations <= 4 * 0.2 * (1 << 30) + 1).all()
    assert len(recwarn) == 0


@pytest.mark.parametrize("error", [ValueError, ZeroDivisionError, np.linalg.LinAlgError])
def test_an_error_inside_a_block_is_a_public_answer(error, monkeypatch):
    def failing(*_):
        raise error

    monkeypatch.setattr("private_ate.methods.blocks.inside.block_effects", failing)

    assert said(blocks(), MODEL).tolist() == [[0, round(0.2 * (1 << 30)), 0, 0, 0]] * 6


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_number_that_is_not_finite_is_a_public_answer(number, monkeypatch):
    monkeypatch.setattr(
        "private_ate.methods.blocks.inside._variance", lambda *_, **__: np.array([number])
    )

    assert said(blocks(), MODEL).tolist() == [[0, round(0.2 * (1 << 30)), 0, 0, 0]] * 6


def test_subgroups_of_a_block_are_those_of_their_rows():
    names = {f"x{j}": Interval(0, 1) for j in range(3)}
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), names)
    from private_ate.domain.domain import Cells

    halves = Subgroups(Cells.of(domain, ["x2<0.5"]), overall=True)
    groups = blocks(count=3, rows=200)
    inside = MODELS["regression"]
    low = replace(groups, takes_part=groups.takes_part & (groups.covariates[..., 2] < 0.5))

    table = said(groups, inside, halves)

    assert table.shape == (3, 13)
    assert np.array_equal(table[:, :4], said(low, inside)[:, :4])
    assert np.array_equal(table[:, 8:12], said(groups, inside)[:, :4])


def one_block(rows=600, seed=0, shape="rule", arms=2):
    rng = np.random.default_rng(seed)
    x = rng.random((rows, 4))
    index = {"rule": (x[:, 0] > 0.4) & (x[:, 1] > 0.4), "line": x[:, 0] + x[:, 1]}[shape] * 1.0
    lean = index - index.mean()
    treated = (rng.random(rows) < 0.5 + 0.35 * lean / np.abs(lean).max()).astype(np.uint8)
    y = 0.3 * index + EFFECT * treated + 0.05 * rng.standard_normal(rows)
    return x, treated * (arms - 1), y, np.ones(rows)


def test_forests_remove_the_confounding_of_a_rule_and_say_that_they_matter():
    plain = [block_effects(*one_block(seed=seed), MODELS["regression"], 8) for seed in range(6)]
    forest = [block_effects(*one_block(seed=seed), MODEL._replace(forest=ForestSize(30, 30)), 8)
              for seed in range(6)]  # fmt: skip

    left = [abs(np.mean([one.effect[0] for one in each]) - EFFECT) for each in (plain, forest)]
    assert left[1] < 0.5 * left[0]
    assert np.mean([one.other for one in forest]) > 0.8


def test_contenders_hold_the_terms_that_a_block_would_choose_among_all():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((900, 6))
    shape = x[:, 0] * x[:, 1] + np.maximum(x[:, 2], 0) + (x[:, 3] > 0.5)
    arms = shape[:, None] + rng.standard_normal((900, 1))
    outcome = 2 * shape[:, None] + rng.standard_normal((900, 1))
    weights = rng.uniform(0.5, 1.5, 900)

    with np.errstate(all="ignore"):  # as inside a block: a term may be used up to the last bit
        few, every = (
            choose_terms(x, arms, outcome, weights, count=5, seen=900, contenders=contenders)
            for contenders in (20, 10_000)
        )

    assert np.allclose(few, every)


def test_judges_are_the_first_trees_of_a_forest():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 16, (200, 3)).astype(np.uint8)
    targets = codes[:, :1] / 16 + rng.standard_normal((200, 1))
    judged, every = out_of_bag(codes, targets, np.ones(200), ForestSize(9, 4), 1)
    alone, same = out_of_bag(codes, targets, np.ones(200), ForestSize(4, 4), 1)

    assert np.array_equal(judged, alone)
    assert np.array_equal(alone, same)
    assert not np.allclose(judged, every)


def test_the_work_of_very_many_rows_is_that_of_passing_them_through_a_bounded_number_of_trees():
    plans = [plan_blocks(Ask(10**power, 20, 1.0), BlocksOptions()) for power in (6, 7, 8)]

    trees = [plan.size * plan.inside.forest.trees for plan in plans]
    assert len(set(trees)) == 1
    assert trees[0] < 2000


def test_a_straight_block_sees_no_more_in_its_outcome_than_in_the_twin():
    straight = [
        block_effects(
            *one_block(seed=seed, shape="line"), MODEL._replace(forest=ForestSize(30, 30)), 8
        )
        for seed in range(8)
    ]

    assert np.mean([one.other for one in straight]) < 0.3
    assert abs(np.mean([one.effect[0] for one in straight]) - EFFECT) < 0.01


def test_blocks_vote_where_an_arm_never_occurs_and_are_silent_elsewhere():
    rng = np.random.default_rng(0)
    x = rng.random((300, 4))
    y = rng.random(300)
    open_arms = (rng.random(300) < 0.5).astype(np.uint8)
    shut = np.where(x[:, 0] > 0.65, 0, open_arms).astype(np.uint8)
    inside = MODEL._replace(forest=ForestSize(40, 40))

    assert not block_effects(x, open_arms, y, np.ones(300), inside, 8).apart
    assert block_effects(x, shut, y, np.ones(300), inside, 8).apart


def test_effects_on_one_arm_are_averaged_over_its_units():
    rng = np.random.default_rng(1)
    x = rng.random((4000, 3))
    treated = (rng.random(4000) < 0.2 + 0.6 * x[:, 0]).astype(np.uint8)
    y = 0.2 * x[:, 0] + (0.05 + 0.2 * x[:, 0]) * treated + 0.02 * rng.standard_normal(4000)
    effects = 0.05 + 0.2 * x[:, 0]

    for among, units in ((-1, treated >= 0), (1, treated == 1), (0, treated == 0)):
        inside = MODELS["regression"]._replace(among=among)
        found = block_effects(x, treated, y, np.ones(4000), inside, 8)
        assert found.effect[0] == pytest.approx(effects[units].mean(), abs=0.006)


def test_weights_count_as_copies_of_rows():
    x, arm, y, _ = one_block(rows=200, shape="line")
    twice = np.r_[np.arange(200), np.arange(100)]
    copies = block_effects(x[twice], arm[twice], y[twice], np.ones(300), MODELS["regression"], 8)
    weights = np.r_[np.full(100, 2.0), np.ones(100)]

    weighted = block_effects(x, arm, y, weights * 200 / 300, MODELS["regression"], 8)

    assert weighted.effect[0] == pytest.approx(copies.effect[0], abs=2e-3)


@pytest.mark.parametrize(
    ("size", "dimension", "epsilon", "rarer", "adjusts"),
    [
        (1000, 20, 2.0, 0.5, True),
        (1000, 20, 0.1, 0.5, False),
        (10_000, 20, 1.0, 0.5, True),
        (10_000, 20, 1.0, 0.005, False),
        (1000, 200, 1.0, 0.5, False),
        (1_000_000, 20, 0.01, 0.5, True),
    ],
)
def test_blocks_are_cut_where_they_can_pay(size, dimension, epsilon, rarer, adjusts):
    plan = plan_blocks(Ask(size, dimension, epsilon), BlocksOptions(), rarer=rarer)

    assert plan.adjusts is adjusts


def test_blocks_and_what_they_do_grow_with_rows():
    plans = [
        plan_blocks(Ask(size, 10, 1.0), BlocksOptions()) for size in np.geomspace(500, 10**7, 40)
    ]

    for earlier, later in pairwise(plans):
        assert later.rows >= earlier.rows * 0.93
        assert later.inside.terms >= earlier.inside.terms
        assert later.partitions <= earlier.partitions
    assert plans[-1].inside.forest.trees > 0
    assert plans[-1].inside.vote


def test_plans_take_no_true_share_of_an_arm():
    """Plans are functions of what was released: a share that no count released may not enter."""
    study = confounded(rows=2000)
    heard = []

    class Deaf(Noise):
        def _release(self, spend, values, draw):
            del values
            heard.append(spend.step)
            # Always the same answer, whatever the records hold.
            return [2 * 900 << 20] if spend.step == "treated count" else draw()

    plans = []
    for share in (0.0, 3.0):
        one = confounded(rows=2000, share=share)
        asked = Request("sample", Fraction(2))
        estimate = estimate_blocks(one, asked, Deaf(SeededEntropy(0)))
        settings = estimate.settings
        plans.append((settings.blocks, settings.block_rows, settings.arm_shares))

    assert plans[0] == plans[1]
    assert study.size == 2000
    assert heard[0] == "treated count"


def test_an_effect_is_found_and_its_interval_covers_it():
    estimate = run(confounded(), "4")

    assert estimate.is_adjusted
    assert estimate.interval[0] < EFFECT < estimate.interval[1]
    assert estimate.ate == pytest.approx(EFFECT, abs=0.02)
    assert estimate.settings.spread > 0


@pytest.mark.parametrize("estimand", ["att", "atc", "ato"])
@pytest.mark.parametrize("epsilon", ["0.02", "4"])
def test_other_estimands_are_released_and_named(epsilon, estimand):
    estimate = run(confounded(1500), epsilon, estimand=estimand)

    assert estimate.settings.estimand == estimand
    assert estimate.is_adjusted is (epsilon == "4")


@pytest.mark.parametrize("confidence", [None, 0.9])
@pytest.mark.parametrize("rows_per_person", [1, 3])
@pytest.mark.parametrize("epsilon", ["0.031", "2.5"])
def test_the_whole_budget_is_spent_exactly(confidence, rows_per_person, epsilon):
    noise = Noise(SeededEntropy(0))
    asked = Request(
        "sample", Fraction(epsilon), confidence=confidence, rows_per_person=rows_per_person
    )

    estimate = estimate_blocks(confounded(1200), asked, noise)

    assert noise.spent == Fraction(epsilon)
    assert (estimate.interval is None) is (confidence is None)


def test_only_the_count_is_bought_before_the_effect():
    noise = Noise(SeededEntropy(0))
    estimate_blocks(confounded(), Request("sample", Fraction(4)), noise)

    assert [spend.step for spend in noise.spends] == ["treated count", "effect"]


def test_a_rare_treatment_falls_back_after_the_count_and_spends_all():
    noise = Noise(SeededEntropy(1))
    estimate = estimate_blocks(confounded(2000, share=-7.0), Request("sample", Fraction(2)), noise)

    assert not estimate.is_adjusted
    assert noise.spent == 2
    assert "too few rows" in " ".join(estimate.settings.notes)


def test_a_randomised_study_is_compared_as_it_is():
    estimate = run(confounded(), design="randomized")

    assert not estimate.is_adjusted
    assert "randomised" in estimate.settings.notes[0]


@pytest.mark.parametrize("times", [1, 20, 200])
def test_wide_bounds_leave_the_interval_as_it_is_and_are_named(times):
    """Also the error: with fewer spreads to choose from it was that of the bare candidates."""
    study = confounded(3000)
    wide = Interval(0.5 - times / 2, 0.5 + times / 2)
    steps = np.rint((study.outcome / OUTCOME_STEPS - 0.5) / times * OUTCOME_STEPS)
    moved = replace(
        study,
        domain=Domain(Treatment("t", 1, 0), ("y", wide), dict(study.domain.covariates)),
        outcome=(steps + OUTCOME_STEPS // 2).astype(np.int32),
    )
    estimate = run(moved, "4")
    half = (estimate.interval[1] - estimate.interval[0]) / 2

    assert half < 0.05
    assert estimate.ate == pytest.approx(EFFECT, abs=0.03)
    assert ("are wide" in " ".join(estimate.settings.notes)) is (times > 1)


def test_a_flag_heads_the_release_and_widens_its_interval():
    rng = np.random.default_rng(2)
    x = rng.random((3, 6000))
    rule = (x[0] > 0.4) & (x[1] > 0.4)
    treated = rng.random(6000) < np.where(rule, 0.8, 0.25)
    y = np.clip(0.3 + 0.25 * rule + EFFECT * treated + 0.03 * rng.standard_normal(6000), 0, 1)
    names = {f"x{j}": Interval(0, 1) for j in range(3)}
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), names)
    study = LocalStudy(domain, x, treated, np.rint(y * OUTCOME_STEPS).astype(np.int32))

    estimate = run(study, "4", options=BlocksOptions(partitions=1))

    assert estimate.settings.models_differ is True
    assert estimate.warnings[0].startswith("blocks see shapes")
    assert estimate.interval[1] - estimate.ate > 3 * estimate.settings.spread


def test_arms_that_do_not_overlap_are_headed_as_the_overlap_effect():
    rng = np.random.default_rng(3)
    x = rng.random((3, 5000))
    treated = (rng.random(5000) < 0.5) & (x[0] < 0.7)
    y = np.clip(0.3 + 0.1 * x[0] + EFFECT * treated + 0.03 * rng.standard_normal(5000), 0, 1)
    names = {f"x{j}": Interval(0, 1) for j in range(3)}
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), names)
    study = LocalStudy(domain, x, treated, np.rint(y * OUTCOME_STEPS).astype(np.int32))

    estimate = run(study, "3", options=BlocksOptions(partitions=1))

    assert estimate.settings.arms_overlap is False
    assert estimate.warnings[0].startswith("the arms hardly overlap")


def test_a_trial_with_a_known_probability_uses_covariates_and_pays_for_no_count():
    rng = np.random.default_rng(4)
    study = confounded(2000)
    study = replace(study, treatment=rng.random(2000) < 0.5)
    noise = Noise(SeededEntropy(0))
    asked = Request("sample", Fraction(2), design="randomized", probability=0.5)

    estimate_blocks(study, asked, noise)

    assert [spend.step for spend in noise.spends] == ["effect"]


def test_the_retired_method_names_its_successor():
    with pytest.raises(ArgumentError, match="use method 'blocks'"):
        method_for("orthogonal", Request("sample", Fraction(1)))


@pytest.mark.parametrize("wrong", [{"adjust": 1}, {"partitions": 0}, {"partitions": 101}])
def test_wrong_options_are_refused_when_they_are_made(wrong):
    with pytest.raises(ArgumentError):
        BlocksOptions(**wrong)


def test_sampling_weights_move_the_effect_to_the_population():
    rng = np.random.default_rng(5)
    rows = 6000
    x = rng.random((2, rows))
    treated = rng.random(rows) < 0.5
    weights = np.where(x[0] > 0.5, 1.0, 0.25)
    y = 0.4 + 0.2 * (x[0] > 0.5) * treated + 0.02 * rng.standard_normal(rows)
    names = {"x0": Interval(0, 1), "x1": Interval(0, 1)}
    weighted = SamplingWeights("w", 4)
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), names, weights=weighted)
    study = LocalStudy(domain, x, treated, np.rint(y * OUTCOME_STEPS).astype(np.int32),
                       weights=weights)  # fmt: skip

    estimate = run(study, "4", options=BlocksOptions(partitions=1))

    assert estimate.ate == pytest.approx(0.16, abs=0.015)  # 0.10 without weights
    assert estimate.settings.private_weights.mean == pytest.approx(4 * 0.625, abs=0.1)


def test_a_plan_says_where_blocks_are_cut_and_how_wide_the_interval_is():
    plan = plan_ate(StudySizes(3000, 4, 1.0), level="sample", epsilons=["0.02", "4"],
                    outcome_sd=0.09)  # fmt: skip
    without, with_blocks = plan.rows

    assert not without.adjusted
    assert with_blocks.adjusted
    assert "blocks of" in with_blocks.note
    released = run(confounded(), "4").interval
    assert 0.4 < with_blocks.half_width / ((released[1] - released[0]) / 2) < 2.5


@pytest.mark.parametrize("candidates", [[], [5000], [3, 2]])
def test_a_rule_with_impossible_candidates_is_refused(candidates):
    with pytest.raises(NumericRangeError):
        CentreRule(np.array(candidates, dtype=np.int64), 1000, 0)


@pytest.mark.parametrize("design", ["unknown", "randomized"])
def test_rows_without_a_treatment_change_nothing_whatever_they_hold(design):
    study = with_missing_treatment(confounded())
    absent = ~study.takes_part
    covariates, treatment, outcome = (
        part.copy() for part in (study.covariates, study.treatment, study.outcome)
    )
    covariates[:, absent], treatment[absent], outcome[absent] = 0.9, True, OUTCOME_STEPS

    other = replace(study, covariates=covariates, treatment=treatment, outcome=outcome)

    assert run(study, design=design) == run(other, design=design)


def test_a_table_with_missing_treatments_is_released_as_if_they_were_not_there():
    study = confounded(4000, 2)
    frame = pl.DataFrame(
        {
            "t": ["1" if t else "0" for t in study.treatment],
            "y": study.outcome / OUTCOME_STEPS,
            "x0": study.covariates[0],
            "x1": study.covariates[1],
        }
    )
    odd = frame.with_columns(
        t=pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("t")),
        y=pl.when(pl.int_range(pl.len()) % 5 == 0).then(1.0).otherwise(pl.col("y")),
    )
    asked = {"domain": study.domain, "level": "sample", "epsilon": 8, "method": "blocks"}

    # Read as control, a fifth of the rows with the highest outcome would hide the effect.
    release = estimate_ate(odd, seed=1, **asked)

    assert release.ate == pytest.approx(EFFECT, abs=0.02)
    assert release.settings["adjusted"] is True


def test_mapped_columns_give_the_same_values_as_columns_in_memory():
    from private_ate.engines.disk_columns import CompactColumns

    study = confounded(800, 3)
    number = np.array([True, False, True])
    binary = np.where(number[:, None], study.covariates, study.covariates > 0.5)
    compact = CompactColumns(binary[number], binary[~number] > 0, number)

    first = run(replace(study, covariates=binary), "8", design="observational")
    second = run(replace(study, covariates=compact), "8", design="observational")

    assert first == second


def test_the_method_is_the_default_at_sample_level():
    assert method_for("auto", request_of()).name == "blocks"
    assert method_for("auto", request_of(options=BlocksOptions())).name == "blocks"


def test_the_overlap_population_is_refused_by_methods_that_do_not_know_it():
    with pytest.raises(ArgumentError, match="ATO"):
        method_for("difference_in_means", request_of(estimand="ato"))


@pytest.mark.parametrize(
    ("design", "title"),
    [("unknown", "Difference in means"), ("randomized", "Average treatment effect")],
)
def test_an_unadjusted_number_is_headed_as_an_effect_only_if_treatment_was_random(design, title):
    study = confounded(150, 2)
    frame = pl.DataFrame(
        {
            "t": study.treatment.astype(int),
            "y": study.outcome / OUTCOME_STEPS,
            "x0": study.covariates[0],
            "x1": study.covariates[1],
        }
    )

    release = estimate_ate(
        frame, domain=study.domain, level="sample", epsilon=1, seed=1, design=design
    )
    page, text = release.to_html(), str(release)

    assert release.settings["adjusted"] is False
    assert text.splitlines()[1].startswith(title)
    assert ("effect (ATE)" in text) is (design == "randomized")
    assert ("not adjusted for covariates" in page) is (design == "unknown")
