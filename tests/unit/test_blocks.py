"""The blocks method piece by piece: plan, partition, models, candidates, release."""

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import get_args

import numpy as np
import polars as pl
import pytest

from private_ate import Treatment, estimate_ate
from private_ate.domain import Domain, Interval
from private_ate.engines.grouping import group_places, groups_of
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError, NumericRangeError
from private_ate.estimation import method_for, options_from_texts
from private_ate.estimators.blocks import models
from private_ate.estimators.blocks.bends import Bends
from private_ate.estimators.blocks.centre import _replayed, centre_rule, noise_quantile
from private_ate.estimators.blocks.method import BlocksOptions, estimate_blocks
from private_ate.estimators.blocks.partition import Shuffle, draw_shuffles
from private_ate.estimators.blocks.plan import count_share, plan_blocks
from private_ate.estimators.blocks.ridge import solve
from private_ate.estimators.blocks.rows import prepare
from private_ate.estimators.request import Request
from private_ate.planning import StudySizes, plan_ate
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.ranks import CentreRule
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Groups

EFFECT = 0.1
BENDS = get_args(Bends)
MODELS = [
    models.linear_effects,
    models.overlap_effects,
    models.average_effects,
    partial(models.linear_effects, estimand="att"),
    partial(models.average_effects, estimand="att"),
    partial(models.linear_effects, estimand="atc"),
    partial(models.average_effects, estimand="atc"),
]


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


def groups_of_study(study, blocks, key=7):
    kept = []

    def keep(groups):
        kept.append(groups)
        return np.zeros((groups.treatment.shape[0], 1), dtype=np.int64)

    study.by_groups(Shuffle(study.size, blocks, key), keep)
    return kept


def run(study, epsilon="2", *, seed=0, **request):
    asked = Request("sample", Fraction(epsilon), **request)
    return estimate_blocks(study, asked, Noise(SeededEntropy(seed)))


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

    stack = group_places(shuffle, 0, 10)
    inside = stack.places[stack.inside]

    assert sorted(inside.tolist()) == list(range(1003))
    assert set(stack.inside.sum(axis=1)) == {100, 101}
    assert np.array_equal(groups_of(shuffle, inside), np.nonzero(stack.inside)[0])


def test_partitions_differ_from_each_other_and_spread_neighbouring_rows():
    first, second = draw_shuffles(5000, 50, 2, bytes(range(16)))

    places = first.places(0, 5000)

    assert np.mean(places == second.places(0, 5000)) < 0.01
    assert abs(np.corrcoef(places, np.arange(5000))[0, 1]) < 0.06
    assert abs(np.corrcoef(places[1:], places[:-1])[0, 1]) < 0.06


def test_shares_are_exact_and_leave_the_rest_to_the_effect():
    plan = plan_blocks(5000, 20, 1.0)

    spent = count_share(5000, 1.0) + Fraction(1, 50) + plan.centre + plan.effect + Fraction(1, 10)

    assert spent == 1
    assert plan.centre.denominator <= 1000


@pytest.mark.parametrize(
    ("size", "dimension", "epsilon", "share", "enough"),
    [
        (1000, 20, 0.5, 0.5, False),
        (1000, 20, 2.0, 0.5, True),
        (5000, 60, 1.0, 0.5, True),
        (5000, 20, 1.0, 0.01, False),
        (5000, 0, 1.0, 0.5, False),
    ],
)
def test_blocks_are_cut_where_they_can_pay(size, dimension, epsilon, share, enough):
    assert plan_blocks(size, dimension, epsilon, share=share).enough is enough


def test_the_model_inside_grows_with_the_blocks():
    sizes = (2000, 10_000, 100_000)

    plans = [plan_blocks(size, 10, 1.0) for size in sizes]

    assert [plan.model for plan in plans] == ["linear", "doubly_robust", "doubly_robust"]
    assert [plan.bends for plan in plans] == ["chosen", "chosen", "all"]
    assert plan_blocks(10_000, 10, 1.0, estimand="ato").model == "overlap"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("bends", BENDS)
def test_models_remove_the_confounding_inside_large_blocks(model, bends):
    [groups] = groups_of_study(confounded(12_000), 20)

    effects = model(groups, bends=bends)

    assert effects.usable.all()
    assert np.mean(effects.effect) == pytest.approx(EFFECT, abs=0.004)  # 0.06 off without
    assert np.mean(effects.variance) == pytest.approx(np.var(effects.effect), rel=0.8)


def varied(rows=20_000, seed=0, share=-1.0):
    """Return a study whose effects rise with the score, and its true effects by estimand."""
    rng = np.random.default_rng(seed)
    covariates = rng.random((4, rows))
    score = (covariates - 0.5).sum(axis=0) * np.sqrt(3)
    treatment = rng.random(rows) < 1 / (1 + np.exp(-1.2 * score - share))
    gains = EFFECT * (1 + 0.7 * score)
    outcome = 0.5 + 0.06 * score + gains * (treatment - 0.5) + 0.05 * rng.standard_normal(rows)
    steps = np.rint(np.clip(outcome, 0, 1) * OUTCOME_STEPS).astype(np.int32)
    names = {f"x{j}": Interval(0, 1) for j in range(4)}
    made = LocalStudy(
        Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), names), covariates, treatment, steps
    )
    parts = {"ate": gains, "att": gains[treatment], "atc": gains[~treatment]}
    return made, {name: float(part.mean()) for name, part in parts.items()}


@pytest.mark.parametrize("estimand", ["ate", "att", "atc"])
@pytest.mark.parametrize("bends", BENDS)
@pytest.mark.parametrize("model", [models.linear_effects, models.average_effects])
def test_models_aim_at_the_units_of_the_estimand(model, bends, estimand):
    made, truth = varied()
    parts = groups_of_study(made, 100)

    found = np.concatenate([model(part, bends=bends, estimand=estimand).effect for part in parts])
    found = float(found.mean())

    nearest = min(truth, key=lambda name: abs(truth[name] - found))
    assert nearest == estimand
    assert found == pytest.approx(truth[estimand], abs=0.006)  # 0.02 lie between the estimands


@pytest.mark.parametrize("estimand", ["att", "atc"])
@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_an_effect_on_one_arm_is_released_and_named(epsilon, estimand):
    made, truth = varied()

    releases = [run(made, epsilon, seed=seed, estimand=estimand) for seed in range(3)]

    assert np.mean([release.ate for release in releases]) == pytest.approx(
        truth[estimand], abs=0.008
    )
    settings = releases[0].settings
    arm = {"att": "the treated units (ATT)", "atc": "the control units (ATC)"}[estimand]
    assert settings.population == arm
    assert settings.estimand == estimand


def test_no_interval_is_short_by_the_luck_of_a_noisy_variance():
    made = confounded(2000, seed=4)  # covariates explain most of the outcome

    halves = [np.diff(run(made, "2", seed=seed).interval)[0] / 2 for seed in range(40)]

    assert min(halves) > 0.5 * np.median(halves)  # 0.43 without a floor


@pytest.mark.parametrize(("times", "is_wide"), [(1, False), (5, True), (20, True)])
@pytest.mark.parametrize("confidence", [0.95, None])
def test_bounds_that_are_wide_for_the_released_spread_are_named(times, is_wide, confidence):
    study = confounded(10_000)
    middle = OUTCOME_STEPS // 2
    study = replace(study, outcome=middle + (study.outcome - middle) // times)
    notes = run(study, confidence=confidence).settings.notes
    # Without an interval nothing is released of the spread.
    assert any("standard deviations of the outcome" in note for note in notes) == (
        is_wide and confidence is not None
    )


@pytest.mark.parametrize(("share", "label"), [(0.0, None), (-3.5, "'1'"), (3.5, "'0'")])
def test_a_rare_arm_is_named_with_whom_the_effect_leans_to(share, label):
    notes = run(confounded(20_000, share=share), "4").settings.notes
    found = [note for note in notes if "leans to units for whom both arms occur" in note]
    assert len(found) == (label is not None)
    assert all(f"of the rows are {label}" in note for note in found)


def test_small_blocks_name_the_arm_and_what_they_lean_to():
    made, _ = varied(2000)

    populations = [run(made, "1", estimand=one).settings.population for one in ("att", "atc")]

    assert [text.split(";")[0] for text in populations] == [
        "the treated units", "the control units",
    ]  # fmt: skip
    assert all("leans to units that overlap" in text for text in populations)


def test_blocks_that_choose_are_as_large_as_the_ranks_allow():
    plans = [plan_blocks(size, 20, 1.0) for size in (2000, 5000, 10_000, 50_000, 100_000)]

    ranks = [plan.blocks * float(plan.effect) for plan in plans]

    assert {plan.bends for plan in plans} == {"chosen"}
    assert all(45 <= rank < 47 for rank in ranks[:3])
    assert [plan.rows for plan in plans[3:]] == [500, 641]  # from here on they need not be larger


@pytest.mark.parametrize("bends", BENDS)
def test_a_caller_may_say_what_blocks_see_of_the_covariates(bends):
    plan = plan_blocks(10_000, 10, 1.0, options=BlocksOptions(bends=bends))

    assert plan.bends == bends


def test_an_unknown_kind_of_bend_is_refused():
    with pytest.raises(ArgumentError, match="bends"):
        BlocksOptions(bends="splines")


def test_many_rows_take_products_and_hinges_with_fewer_ranks_to_spare():
    few, many = (plan_blocks(size, 10, 0.5) for size in (19_000, 20_000))

    assert [few.bends, many.bends] == ["chosen", "all"]
    assert many.blocks * float(many.effect) * 0.5 >= 45


def test_a_larger_model_asks_for_rows_of_the_arm_that_it_carries_over():
    options = BlocksOptions(bends="squares")
    rare = {
        one: plan_blocks(20_000, 20, 2.0, share=0.1, estimand=one, options=options)
        for one in ("ate", "att")
    }

    assert rare["ate"].rows >= 2.5 * 20 / 0.1
    assert rare["att"].rows < rare["ate"].rows
    assert {plan.model for plan in rare.values()} == {"doubly_robust"}


def test_interactions_of_a_rare_arm_do_not_take_the_effect_with_them():
    made = confounded(30_000, seed=3, share=-4.0)
    parts = groups_of_study(made, 200)  # three treated rows in a block

    found = [models.linear_effects(part) for part in parts]

    effects = np.concatenate([part.effect for part in found])
    assert 0.01 < made.treatment.mean() < 0.04
    assert np.median(effects) == pytest.approx(EFFECT, abs=0.01)
    assert np.std(effects) < 0.06  # 0.21 where interactions are free


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("bends", BENDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_block_depends_on_its_own_rows_only(model, bends, weighted):
    [groups] = groups_of_study(confounded(1003), 17)
    rng = np.random.default_rng(1)
    others = np.arange(17) != 5
    if weighted:
        groups = replace(groups, weights=rng.uniform(0.1, 1.0, groups.outcome.shape))
    changed = Groups(
        groups.covariates.copy(), groups.treatment.copy(), groups.outcome.copy(),
        groups.takes_part.copy(), None if groups.weights is None else groups.weights.copy(),
    )  # fmt: skip
    changed.covariates[others] = rng.random(changed.covariates[others].shape)
    changed.treatment[others] = False
    changed.outcome[others] = 0
    changed.takes_part[others] &= rng.random(changed.takes_part[others].shape) < 0.6
    if weighted:
        changed.weights[others] **= 8

    first, second = model(groups, bends=bends), model(changed, bends=bends)

    assert first.effect[5] == second.effect[5]
    assert first.variance[5] == second.variance[5]
    assert not second.usable[others].any()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("bends", BENDS)
def test_rows_that_take_no_part_leave_no_trace(model, bends):
    [groups] = groups_of_study(confounded(1000), 10)
    takes_part = groups.takes_part.copy()
    takes_part[:, ::7] = False
    other = Groups(
        np.where(takes_part[..., None], groups.covariates, 0.123),
        np.where(takes_part, groups.treatment, True),
        np.where(takes_part, groups.outcome, 77).astype(np.int32),
        takes_part,
    )

    first = model(replace(groups, takes_part=takes_part), bends=bends)
    second = model(other, bends=bends)

    assert np.array_equal(first.effect, second.effect)
    assert np.array_equal(first.variance, second.variance)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("bends", BENDS)
def test_odd_blocks_are_marked_and_raise_nothing(model, bends):
    [groups] = groups_of_study(confounded(600), 6)
    covariates, treatment = groups.covariates.copy(), groups.treatment.copy()
    outcome, takes_part = groups.outcome.copy(), groups.takes_part.copy()
    treatment[0] = True  # one arm absent
    takes_part[1] = False  # nobody
    takes_part[2, 3:] = False  # too few
    covariates[3] = 0.25  # constant covariates
    covariates[4] = treatment[4][:, None]  # treatment known from a covariate
    outcome[5] = 0

    effects = model(Groups(covariates, treatment, outcome, takes_part), bends=bends)

    assert not effects.usable[:3].any()
    assert effects.usable[[3, 5]].all()
    assert np.isfinite(effects.effect).all()
    assert effects.effect[5] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("arm", [False, True])
def test_weighted_blocks_of_one_arm_are_marked(model, arm):
    [groups] = groups_of_study(confounded(2000), 40)
    rng = np.random.default_rng(3)
    weights = rng.uniform(0.1, 1.0, groups.outcome.shape)
    alone = replace(groups, treatment=np.full_like(groups.treatment, arm), weights=weights)
    few = groups.treatment.copy()
    few[:] = False
    few[:, :5] = True
    light = np.where(few, 1e-6, weights)  # an arm that weighs next to nothing is one

    assert not model(alone).usable.any()
    assert np.array_equal(prepare(replace(alone, treatment=few, weights=light)).positive, few)


def test_a_singular_system_spoils_no_other():
    systems = np.stack([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)])
    targets = np.ones((3, 2, 1))

    solved = solve(systems, targets)

    assert np.array_equal(solved[0], np.ones((2, 1)))
    assert np.isnan(solved[1]).all()
    assert np.array_equal(solved[2], np.full((2, 1), 0.5))


def test_candidates_are_dense_near_the_start_and_within_the_bounds():
    rule = centre_rule(1 << 19, bits=14, value_bits=20, trim=3)

    gaps = np.diff(rule.candidates)

    assert rule.candidates.size == 1 << 14
    assert np.median(rule.candidates) == pytest.approx(1 << 19, abs=4)
    assert (gaps >= 0).all()
    assert np.abs(rule.candidates).max() <= 1 << 20
    quarter = rule.candidates[3 * (1 << 12)] - (1 << 19)
    assert quarter == pytest.approx(0.06 * 0.7407 * (1 << 20), rel=1e-3)  # of Student's t, 4 df


def test_the_noise_quantile_shrinks_with_more_blocks():
    rule = centre_rule(0, bits=14, value_bits=20, trim=30)

    few, many = (
        noise_quantile(
            rule, effect=1000, spread=50_000.0, size=size, rate=Fraction(1, 2), coverage=0.95
        )
        for size in (100, 1000)
    )

    assert 0 < many < few / 3


def test_a_lone_candidate_far_from_the_start_still_has_a_width():
    rule = CentreRule(np.array([-1000, 0, 500, 900]), 1000, 0)

    reach = noise_quantile(rule, effect=500, spread=1.0, size=50, rate=Fraction(50), coverage=0.95)

    assert reach == 250


@pytest.mark.parametrize("candidates", [[], [5000], [3, 2]])
def test_a_rule_with_impossible_candidates_is_refused(candidates):
    with pytest.raises(NumericRangeError):
        CentreRule(np.array(candidates, dtype=np.int64), 1000, 0)


def test_a_confounded_study_is_adjusted_and_the_effect_found():
    estimate = run(confounded())

    assert estimate.settings.adjusted is True
    assert estimate.ate == pytest.approx(EFFECT, abs=0.02)  # 0.06 off without adjustment
    assert estimate.interval[0] < EFFECT < estimate.interval[1]


@pytest.mark.parametrize("model", ["linear", "overlap", "doubly_robust"])
def test_every_model_can_be_asked_for(model):
    estimate = run(confounded(), options=BlocksOptions(model=model))

    assert estimate.settings.model.startswith(model.replace("_", " "))
    assert estimate.ate == pytest.approx(EFFECT, abs=0.02)


def test_a_randomised_study_is_compared_as_it_is():
    estimate = run(confounded(), design="randomized")

    assert estimate.settings.adjusted is False


def test_a_small_study_is_adjusted_only_where_it_is_said_to_be_observational():
    study = confounded(900, 2)

    unknown, observational = (run(study, "8", design=d) for d in ("unknown", "observational"))

    assert unknown.settings.adjusted is False
    assert observational.settings.adjusted is True


def test_a_rare_treatment_falls_back_after_the_count_and_spends_all():
    study = confounded(share=-6.0)
    noise = Noise(SeededEntropy(0))

    estimate = estimate_blocks(study, Request("sample", Fraction(1)), noise)

    assert estimate.settings.adjusted is False
    assert noise.spent == 1


@pytest.mark.parametrize("confidence", [0.95, None])
@pytest.mark.parametrize("rows_per_person", [1, 2])
@pytest.mark.parametrize("epsilon", ["0.1", "2", "30"])
def test_the_whole_budget_is_spent_exactly(confidence, rows_per_person, epsilon):
    noise = Noise(SeededEntropy(0))
    request = Request(
        "sample", Fraction(epsilon), confidence=confidence, rows_per_person=rows_per_person
    )

    estimate = estimate_blocks(confounded(1200, 2), request, noise)

    assert noise.spent == Fraction(epsilon)
    assert (estimate.interval is None) is (confidence is None)


def test_mapped_columns_give_the_same_values_as_columns_in_memory():
    from private_ate.engines.on_disk import CompactColumns

    study = confounded(800, 3)
    number = np.array([True, False, True])
    binary = np.where(number[:, None], study.covariates, study.covariates > 0.5)
    compact = CompactColumns(binary[number], binary[~number] > 0, number)

    first = run(replace(study, covariates=binary), "8", design="observational")
    second = run(replace(study, covariates=compact), "8", design="observational")

    assert first == second


def test_options_of_other_methods_and_levels_are_refused():
    for request in (
        Request("sample", Fraction(1), options=object()),
        Request("label", Fraction(1)),
    ):
        with pytest.raises(ArgumentError):
            estimate_blocks(confounded(100), request, Noise(SeededEntropy(0)))


@pytest.mark.parametrize("wrong", [{"adjust": "yes"}, {"partitions": 0}, {"model": "boosted"}])
def test_wrong_options_are_refused_when_they_are_made(wrong):
    with pytest.raises(ArgumentError):
        BlocksOptions(**wrong)


def with_missing_treatment(study, share=0.2, seed=3):
    takes_part = np.random.default_rng(seed).random(study.size) >= share
    return replace(study, takes_part=takes_part)


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


@pytest.mark.parametrize("design", ["unknown", "randomized"])
def test_the_effect_is_that_of_the_rows_that_take_part(design):
    study = with_missing_treatment(confounded(20_000), share=0.4)
    shown = study.takes_part
    left = LocalStudy(
        study.domain, study.covariates[:, shown], study.treatment[shown], study.outcome[shown]
    )

    masked, alone = run(study, "8", design=design), run(left, "8", design=design)

    assert masked.settings.adjusted is (design == "unknown")
    assert masked.ate == pytest.approx(alone.ate, abs=0.004)


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


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("dimension", [5, 20, 60])
def test_where_blocks_are_first_cut_a_release_far_off_is_rare(epsilon, dimension):
    size = next(
        size for size in range(1000, 40_000, 20) if plan_blocks(size, dimension, epsilon).enough
    )
    plan = plan_blocks(size, dimension, epsilon)
    rate = plan.effect * Fraction(epsilon) / (2 * plan.partitions)
    # A starting point that is off by confounding, and block effects of a usual spread.
    rule = centre_rule(
        round(0.04 * (1 << 20)), bits=14, value_bits=20, trim=plan.trim(Fraction(epsilon))
    )

    law = _replayed(rule, 0, 0.04 * (1 << 20), plan.blocks * plan.partitions, rate)
    far = law[np.abs(rule.candidates) > 0.1 * (1 << 20)].sum()

    assert far < 0.01


def test_blocks_and_models_never_shrink_as_rows_are_added():
    sizes = [2000, 5000, 10_000, 20_000, 50_000, 100_000, 10**6]

    plans = [plan_blocks(size, 10, 1.0) for size in sizes]
    rows = [plan.rows for plan in plans]

    assert rows == sorted(rows)
    assert all(plan.blocks * float(plan.effect) >= 45 for plan in plans)


def request_of(**asked):
    return Request("sample", Fraction(1), **asked)


def test_the_method_is_the_default_at_sample_level():
    assert method_for("auto", request_of()).name == "blocks"
    assert method_for("auto", request_of(options=BlocksOptions())).name == "blocks"


def test_options_of_the_orthogonal_method_still_choose_it():
    texts = {"adjust_threshold": "100"}

    options = options_from_texts("auto", "sample", texts)

    assert method_for("auto", request_of(options=options)).name == "orthogonal"
    assert isinstance(options_from_texts("auto", "sample", {"adjust": "true"}), BlocksOptions)


def test_the_overlap_population_is_refused_by_methods_that_do_not_know_it():
    with pytest.raises(ArgumentError, match="ATO"):
        method_for("difference_in_means", request_of(estimand="ato"))


@pytest.mark.parametrize(
    ("design", "title"),
    [("unknown", "Difference in means"), ("randomized", "Average treatment effect")],
)
def test_an_unadjusted_number_is_headed_as_an_effect_only_if_treatment_was_random(design, title):
    study = confounded(300, 1)
    frame = pl.DataFrame(
        {
            "t": study.treatment.astype(int),
            "y": study.outcome / OUTCOME_STEPS,
            "x0": study.covariates[0],
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


def test_a_plan_says_where_blocks_are_cut():
    sizes = StudySizes(5000, 20, 1.0)

    few, many = plan_ate(sizes, level="sample", epsilons=["0.05", "1"]).rows
    [trial] = plan_ate(sizes, level="sample", epsilons=["1"], design="randomized").rows

    assert few.note == "does not adjust"
    assert many.note.startswith("adjusts (")
    assert "randomised" in trial.note


@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_a_planned_half_width_is_near_the_released_one(epsilon):
    study = confounded(5000, 5)
    # A width by which the guessed deviation is that of outcomes within the arms.
    spread = StudySizes(5000, 5, np.std(study.outcome[study.treatment]) / OUTCOME_STEPS / 0.125)

    [planned] = plan_ate(spread, level="sample", epsilons=[epsilon]).rows
    low, high = run(study, epsilon).interval

    assert (high - low) / 2 == pytest.approx(planned.half_width, rel=0.6)
