"""What the package can answer, a service can be asked: arms, subgroups, trials, weights."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from house_people import ALICE, CAROL, CLINIC

from private_ate import Categories, Domain, Interval, Release, Treatment
from private_ate.datasets.dummy import draw_dummy
from private_ate.domain import SamplingWeights
from private_ate.errors import ArgumentError
from private_ate.service.job import estimate
from private_ate.service.policy import Policy, Question
from private_ate.service.settling import plan_question, settle_question
from private_ate.service.store.catalogue import set_policy

AGES = {"age": Interval(18, 90), "sex": Categories("f", "m")}
DOSES = Domain(
    Treatment("dose", arms=["none", "low", "high"]), ("score", Interval(0, 100, missing=50)), AGES
)  # fmt: skip
WEIGHTED = Domain(
    Treatment("drug", "yes", "no"), ("score", Interval(0, 100, missing=50)), AGES,
    weights=SamplingWeights("weight", 4.0),
)  # fmt: skip
CHANCES = Domain(
    Treatment("drug", "yes", "no"), ("score", Interval(0, 100, missing=50)),
    {**AGES, "chance": Interval(0.2, 0.8)},
)  # fmt: skip


def add(house, name, domain, level="label"):
    """Register made-up people of a domain as a data set of records."""
    frame = draw_dummy(domain, 300, seed=5).frame
    frame.write_csv(house.folder / "data" / f"{name}.csv")
    new = replace(
        CLINIC, name=name, source=f"{name}.csv", domain=domain, columns=tuple(frame.columns),
        size=300, level=level,
    )  # fmt: skip
    house.add(new)
    return new


def answer(house, **question):
    """Ask, do the job in this process, and return the request with its release."""
    asked = house.ask(**question)
    assert asked.state == "queued", asked.reason
    worker = house.worker()
    row = worker.claim(dummy=bool(asked.dummy))
    report = estimate(worker._order(row, "estimate"))
    worker._finish(row, report)
    house.wait(2000)
    return row, Release.from_json(house.service.release(ALICE, row.id))


def charged_plan(house):
    return [entry.plan for entry in house.ledger.history() if entry.kind == "charge"][-1]


def test_subgroups_are_planned_charged_and_released(small_house):
    row, release = answer(small_house, by=["smoker", "age<60"], overall=True)

    assert charged_plan(small_house) == row.plan
    names = {effect.subgroup for effect in release.effects}
    assert {"smoker=never, age<60", "age≥60"} <= names


def test_several_arms_are_planned_charged_and_released(small_house):
    add(small_house, "doses", DOSES)
    row, release = answer(small_house, dataset="doses", among="low")

    assert charged_plan(small_house) == row.plan
    assert {arm.label for arm in release.arms} == {"none", "low", "high"}


def test_a_trial_with_a_column_of_probabilities_is_charged_and_released(small_house):
    add(small_house, "trial", CHANCES)
    row, release = answer(small_house, dataset="trial", design="randomized", probability="chance")

    assert charged_plan(small_house) == row.plan
    assert release.design == "randomized"


def test_a_column_of_probabilities_is_one_of_the_covariates_of_the_question(small_house):
    add(small_house, "trial", CHANCES)
    others = [name for name in CHANCES.covariates if name != "chance"]

    with pytest.raises(ArgumentError, match="a covariate of the question, not 'chance'"):
        small_house.ask(
            dataset="trial", design="randomized", probability="chance", covariates=others
        )


def test_declared_sampling_weights_are_in_force_and_public(small_house):
    add(small_house, "survey", WEIGHTED)
    row, release = answer(small_house, dataset="survey")

    assert charged_plan(small_house) == row.plan
    assert "weight" in small_house.ledger.roles("survey").public
    assert release.settings["sampling_weights"]


def test_a_column_of_weights_must_be_among_the_columns(small_house):
    wrong = replace(
        CLINIC, name="survey", source="survey.csv", domain=WEIGHTED,
        columns=("age", "sex", "drug", "score"),
    )  # fmt: skip

    with pytest.raises(ArgumentError, match="'weight', which is not among the columns"):
        small_house.add(wrong)


@pytest.mark.parametrize(
    "question",
    [
        {"by": ["pressure_drop"]},
        {"by": ["age"]},
        {"by": [3]},
        {"by": 3},
        {"overall": True},
        {"probability": 0.5},
        {"design": "randomized", "probability": "nothing"},
        {"design": "randomized", "probability": 1.5},
        {"among": "perhaps"},
        {"by": ["smoker"], "method": "published"},
    ],
)
def test_what_cannot_be_answered_is_refused_before_it_is_kept(small_house, question):
    with pytest.raises(ArgumentError):
        small_house.ask(**question)
    assert small_house.service.requests(CAROL) == []


def test_a_policy_lists_the_subgroups_and_outcomes_that_need_no_curator(small_house):
    with small_house.store.transaction() as execute:
        narrow = Policy(subgroups=("smoker",), outcomes=("pressure_drop",))
        set_policy(execute, "clinic", narrow, "carol")

    assert small_house.ask("one", by=["smoker"]).state == "queued"
    waits = small_house.ask("two", by=["smoker", "age<60"])
    assert (waits.state, waits.reason) == ("waiting", "subgroups by 'age' are not on the list")
    with small_house.store.transaction() as execute:
        set_policy(execute, "clinic", Policy(outcomes=()), "carol")
    assert small_house.ask("three").reason == "outcome 'pressure_drop' is not on the list"


@pytest.mark.parametrize("wrong", ["age", [1], [""], ["a\nb"]])
def test_a_policy_s_columns_are_a_list_of_names(wrong):
    with pytest.raises(ArgumentError):
        Policy.read({"subgroups": wrong})


def expectation(dataset, **question):
    asked = Question.read({"dataset": dataset.name, "epsilon": "1", **question})
    return plan_question(settle_question(asked, dataset))


def test_a_plan_of_subgroups_and_of_arms_says_what_it_is_about():
    all_units, cells = expectation(CLINIC), expectation(CLINIC, by=["smoker"])
    paid = expectation(CLINIC, by=["smoker"], overall=True)
    doses = replace(CLINIC, domain=DOSES, columns=("age", "sex", "dose", "score"))
    arms = expectation(doses, among="low")

    halves = [plan.rows[0].half_width for plan in (all_units, cells, paid)]
    assert halves == sorted(set(halves))
    assert "one of 4 subgroups" in cells.caveat
    assert [(row.arm, row.against) for row in arms.rows] == [
        ("low", "none"), ("high", "none"), ("high", "low"),
    ]  # fmt: skip
    weighted = replace(CLINIC, domain=WEIGHTED, columns=("age", "sex", "drug", "score", "weight"))
    assert "sampling weights" in expectation(weighted).caveat


def test_made_up_people_of_a_trial_are_treated_by_its_probability(small_house):
    frame = draw_dummy(CHANCES, 20_000, trial="chance").frame
    high = frame.filter(pl.col("chance") > 0.6)["drug"].eq("yes").mean()
    low = frame.filter(pl.col("chance") < 0.4)["drug"].eq("yes").mean()
    _, release = answer(small_house, dummy=True, design="randomized", probability=0.5, epsilon="3")

    assert (high, low) == (pytest.approx(0.7, abs=0.03), pytest.approx(0.3, abs=0.03))
    assert release.ate == pytest.approx(10, abs=4)


def test_made_up_people_follow_the_domain_and_never_the_records(small_house):
    path = small_house.folder / "data" / "clinic.csv"
    first = answer(small_house, dummy=True, key="a")[1]
    path.write_text("nothing of this is read\n")
    second = answer(small_house, dummy=True, key="b")[1]

    assert first.ate == second.ate
    assert np.array_equal(draw_dummy(WEIGHTED).frame, draw_dummy(WEIGHTED).frame)
    assert draw_dummy(WEIGHTED).frame["weight"].is_between(0, 4).all()
