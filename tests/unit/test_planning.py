"""Plans that one can plan with: near what is released, for ε or rows, with or without data."""

import numpy as np
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    CalibratedOptions,
    Domain,
    Interval,
    StudySizes,
    Treatment,
    estimate_ate,
    plan_ate,
)
from private_ate.datasets import Confounded, generate
from private_ate.datasets.clinic import draw_clinic
from private_ate.report.plans import plan_legend

CLINIC = draw_clinic()
CLINIC_SD = 8.4  # of the drop in pressure, within an arm
SIZES = StudySizes(3000, 4, 10.0)


@pytest.mark.parametrize(("level", "told"), [("label", CLINIC_SD), ("sample", None)])
def test_a_planned_half_width_is_within_15_percent_of_the_median_released_one(level, told):
    (row,) = plan_ate(
        CLINIC.frame, domain=CLINIC.domain, level=level, epsilons=["1"], outcome_sd=CLINIC_SD
    ).rows

    pairs = [
        estimate_ate(
            CLINIC.frame, domain=CLINIC.domain, level=level, epsilon=1, seed=seed, outcome_sd=told
        ).interval
        for seed in range(7)
    ]
    released = np.median([(high - low) / 2 for low, high in pairs])

    assert row.half_width == pytest.approx(released, rel=0.15)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_the_rows_found_reach_the_wanted_half_width_and_fewer_do_not(level):
    open_size = StudySizes(None, 4, 10.0)
    asked = {"level": level, "epsilons": ["1"], "outcome_sd": 1.2}

    plan = plan_ate(open_size, half_width=0.3, **asked)
    (needed,) = plan.rows_needed
    (reached,) = plan_ate(StudySizes(needed, 4, 10.0), **asked).rows
    (fewer,) = plan_ate(StudySizes(needed * 4 // 5, 4, 10.0), **asked).rows

    assert plan.epsilon_needed is None
    assert plan.rows[0].size == needed
    assert plan.rows[0].half_width <= 0.3
    assert reached.half_width == pytest.approx(0.3, rel=0.1)
    assert fewer.half_width > 0.3
    assert f"about {needed:,} rows at ε = 1" in plan.answer


def test_rows_are_found_for_people_like_those_of_a_study():
    plan = plan_ate(
        CLINIC.frame, domain=CLINIC.domain, level="label", epsilons=["0.5", "2"],
        outcome_sd=CLINIC_SD, half_width=1.5, solve="rows",
    )  # fmt: skip
    few, many = plan.rows_needed[1], plan.rows_needed[0]

    assert 100 < few < many
    assert [row.size for row in plan.rows] == [many, few]


def test_rows_that_do_not_let_the_method_adjust_are_never_named_without_saying_so():
    plan = plan_ate(
        StudySizes(None, 4, 10.0), level="sample", epsilons=["0.5"], outcome_sd=1.2, half_width=1.5
    )
    trial = plan_ate(
        StudySizes(None, 4, 10.0), level="sample", epsilons=["0.5"], outcome_sd=1.2,
        half_width=1.5, design="randomized",
    )  # fmt: skip

    assert "would do only without adjusting for covariates" in plan.answer
    assert plan.rows[0].adjusted
    assert trial.rows_needed[0] < plan.rows_needed[0]
    assert "adjusting" not in trial.answer


def test_a_width_that_no_rows_reach_is_said_to_need_more_than_all():
    plan = plan_ate(
        StudySizes(None, 2, 1.0), level="sample", epsilons=["0.001"], half_width=1e-9,
        design="randomized",
    )  # fmt: skip

    assert plan.rows_needed == (None,)
    assert "more than 1,000,000,000 rows" in plan.answer


@pytest.mark.parametrize(
    ("sizes", "asked", "message"),
    [
        (StudySizes(None, 2, 1.0), {}, "which half-width"),
        (StudySizes(None, 2, 1.0), {"half_width": 1, "solve": "epsilon"}, "how many rows"),
        (SIZES, {"solve": "rows"}, "which half-width"),
        (SIZES, {"solve": "sideways"}, "solve is 'epsilon' or 'rows'"),
        (SIZES, {"overlap": "none"}, "overlap is 'good' or 'poor'"),
        (SIZES, {"outcome_sd": 6.0}, "at most half the range"),
        (SIZES, {"explained": 1.0}, "explained"),
        (SIZES, {"treated_share": 0}, "treated units"),
    ],
)
@pytest.mark.parametrize("level", ["label", "sample"])
def test_questions_without_an_answer_are_refused(level, sizes, asked, message):
    with pytest.raises(ArgumentError, match=message):
        plan_ate(sizes, level=level, epsilons=["1"], **asked)


@pytest.mark.parametrize("sizes", [StudySizes(1, 3, 1.0), StudySizes(1000, 10**6, 1.0)])
def test_people_who_cannot_be_made_up_are_refused(sizes):
    with pytest.raises(ArgumentError, match=r"two rows|at most 200 covariates"):
        plan_ate(sizes, level="label", epsilons=["1"])


def test_made_up_people_stand_for_real_ones_of_the_same_kind():
    study = generate(Confounded(size=3000, dimension=4, selection=0.7), 5)
    asked = {"level": "label", "epsilons": ["0.5", "1", "4"], "outcome_sd": 1.6}

    real = plan_ate(study.frame, domain=study.domain, **asked).rows
    made_up = plan_ate(StudySizes(3000, 4, 16.0), **asked).rows

    for one, other in zip(real, made_up, strict=True):
        assert one.half_width == pytest.approx(other.half_width, rel=0.15)


@pytest.mark.parametrize(
    ("level", "guess"),
    [
        ("label", {"overlap": "poor"}),
        ("label", {"treated_share": 0.1}),
        ("sample", {"treated_share": 0.1}),
    ],
)
def test_poor_overlap_and_unequal_arms_cost_precision(level, guess):
    asked = {"level": level, "epsilons": ["2"], "outcome_sd": 1.2}

    good, worse = (plan_ate(SIZES, **asked, **more).rows[0].half_width for more in ({}, guess))

    assert worse > 1.1 * good


def test_covariates_that_explain_more_leave_less_open():
    asked = {"level": "sample", "epsilons": ["4"], "outcome_sd": 1.2}

    little, much = (plan_ate(SIZES, explained=share, **asked).rows[0] for share in (0.1, 0.7))

    assert much.sampling_error < 0.7 * little.sampling_error
    assert much.half_width < little.half_width


def test_a_skewed_amount_far_from_the_middle_of_its_range_is_planned_with_more_noise():
    asked = {"level": "sample", "epsilons": ["0.5"], "outcome_sd": 1.0, "design": "randomized"}

    amount = plan_ate(StudySizes(500, 2, 10.0, outcome_low=0.0), **asked).rows[0]
    score = plan_ate(StudySizes(500, 2, 10.0, outcome_low=-5.0), **asked).rows[0]

    assert amount.noise_error > 1.5 * score.noise_error


def test_the_outcomes_deviation_is_the_same_question_for_plans_and_estimates():
    asked = {"domain": CLINIC.domain, "level": "label"}
    options = CalibratedOptions(outcome_sd=9.0)

    direct = plan_ate(CLINIC.frame, epsilons=["1"], outcome_sd=9.0, **asked)
    released = estimate_ate(CLINIC.frame, epsilon=1, seed=3, outcome_sd=9.0, **asked)

    assert direct == plan_ate(CLINIC.frame, epsilons=["1"], options=options, **asked)
    assert (
        released.ate == estimate_ate(CLINIC.frame, epsilon=1, seed=3, options=options, **asked).ate
    )
    for ask in (
        lambda: plan_ate(CLINIC.frame, outcome_sd=8.0, options=options, **asked),
        lambda: estimate_ate(CLINIC.frame, epsilon=1, outcome_sd=8.0, options=options, **asked),
    ):
        with pytest.raises(ArgumentError, match="given twice: 9 and 8"):
            ask()


def test_a_method_that_makes_no_use_of_the_deviation_says_so():
    with pytest.raises(ArgumentError, match="BlocksOptions has no outcome_sd"):
        estimate_ate(CLINIC.frame, domain=CLINIC.domain, level="sample", epsilon=1, outcome_sd=9.0)


def test_a_sample_level_plan_depends_on_no_value_of_a_record():
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
    rng = np.random.default_rng(1)
    frames = [
        pl.DataFrame({"t": rng.integers(0, 2, 400), "y": rng.random(400), "x": rng.random(400)}),
        pl.DataFrame({"t": [1] * 400, "y": [0.0] * 400, "x": [float("nan")] * 400}),
    ]

    first, second = (
        plan_ate(frame, domain=domain, level="sample", epsilons=["1", "8"]) for frame in frames
    )

    assert first == second


def test_a_label_level_plan_depends_on_no_outcome():
    changed = CLINIC.frame.with_columns(pressure_drop=pl.lit(-40.0))
    asked = {"domain": CLINIC.domain, "level": "label", "epsilons": ["1"]}

    assert plan_ate(CLINIC.frame, **asked) == plan_ate(changed, **asked)


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize("rows", [3000, None])
def test_a_plan_fits_eighty_columns_and_explains_each_of_its_own(level, rows):
    sizes = StudySizes(rows, 4, 123456.0)

    plan = plan_ate(
        sizes, level=level, half_width=9000, outcome_sd=20_000, epsilons=["0.05", "1", "8"]
    )
    lines = str(plan).splitlines()

    assert max(len(line) for line in lines) <= 80
    names = lines[2].split()
    assert names == ["ε", *(["rows"] if rows is None else []), *dict(plan_legend(plan))]
    for name, meaning in plan_legend(plan):
        assert any(line.startswith(f"{name:12}{meaning[:40]}") for line in lines)
    assert lines[-1].endswith("Nothing was spent.")


def test_an_answer_that_begins_with_epsilon_keeps_its_letter():
    sizes = StudySizes(300, 3, 1.0)
    (row,) = plan_ate(sizes, level="sample", epsilons=["0.5"]).rows

    plan = plan_ate(sizes, level="sample", epsilons=["0.5"], half_width=row.half_width)

    assert plan.answer.startswith("ε = ")
    assert f"\n{plan.answer[:40]}" in str(plan)


def test_a_plan_as_plain_values_holds_what_the_table_shows():
    plan = plan_ate(SIZES, level="sample", epsilons=["1"], half_width=1.0).to_dict()

    (row,) = plan["rows"]
    assert row["detectable_effect"] > row["half_width"] > row["expected_error"] > 0
    assert row["size"] == 3000
    assert plan["method"] == "blocks"
    assert plan["rows_needed"] is None


@pytest.mark.parametrize(("deviation", "is_wide"), [(10, False), (1, True)])
def test_a_plan_at_sample_level_says_that_bounds_are_wide_for_the_guess(deviation, is_wide):
    sizes = StudySizes(10_000, 5, 80.0)
    plan = plan_ate(sizes, level="sample", epsilons=["1"], outcome_sd=deviation)
    assert ("noise and intervals follow the bounds" in plan.caveat) == is_wide
