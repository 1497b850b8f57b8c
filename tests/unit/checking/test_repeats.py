"""The check compares columns: what is the outcome in another form, and what repeats a covariate."""

import numpy as np
import polars as pl
import pytest

from private_ate import Binary, Domain, Interval, Outcome, Treatment, check_data
from private_ate.checking.column_counts import Entries
from private_ate.checking.repeats import RowSample

ROWS = 800
RNG = np.random.default_rng(11)
DAYS = RNG.integers(8, 2659, ROWS)
WAGES = RNG.lognormal(2, 0.5, ROWS).round(2)
DIED = RNG.random(ROWS) < 0.3
SCORES = RNG.normal(0, 10, ROWS)
AGES = RNG.integers(20, 80, ROWS)


def checked(outcome, bounds, covariate, **further):
    """Check a study of this outcome with this covariate beside an innocent one."""
    frame = pl.DataFrame(
        {"t": np.arange(ROWS) % 3 == 0, "y": outcome, "age": AGES, "x": covariate, **further}
    )
    return check_data(
        frame, domain=Domain(Treatment("t"), Outcome("y", bounds)), covariates="all", level="label"
    )


def topics(check, column="x"):
    return {finding.topic: finding for finding in check.about(column)}


@pytest.mark.parametrize(
    ("outcome", "bounds", "covariate"),
    [
        pytest.param(DAYS / 365.25, Interval(0, 8), DAYS, id="days beside years"),
        pytest.param((DAYS / 365.25).round(1), Interval(0, 8), -DAYS, id="rounded, turned round"),
        pytest.param(WAGES, Interval(0, 100), np.log(WAGES), id="logarithm"),
        pytest.param(
            np.where(DIED, 0, WAGES), Interval(0, 100),
            np.where(DIED, np.nan, np.log(WAGES)), id="logarithm without zeros",
        ),
        pytest.param(SCORES, Interval(-50, 50), SCORES**2, id="square"),
        pytest.param(SCORES**2, Interval(0, 2500), SCORES, id="root"),
        pytest.param(DIED * 1, Binary(), np.where(DIED, "dead", "alive"), id="labels"),
        pytest.param(DIED * 1, Binary(), ~DIED, id="opposite"),
        pytest.param(
            DIED * 1, Binary(), np.where(DIED, DAYS, np.nan), id="missing unless it happens"
        ),
        pytest.param(
            DIED * 1, Binary(), np.where(DIED, 200.0, 100.0) + RNG.normal(0, 5, ROWS),
            id="threshold",
        ),
        pytest.param(
            AGES // 10, Interval(0, 10), [f"group {age // 10}" for age in AGES],
            id="one to one with five labels",
        ),
        pytest.param(SCORES, Interval(-50, 50), np.floor(SCORES / 10), id="classes"),
        pytest.param(SCORES, Interval(-50, 50), np.where(SCORES > 8, "high", "low"), id="a cut"),
    ],
)  # fmt: skip
def test_a_covariate_that_is_the_outcome_in_another_form_is_an_error(outcome, bounds, covariate):
    check = checked(outcome, bounds, covariate)
    finding = topics(check)["tells the outcome"]

    assert finding.severity == "bends"
    assert finding in check.bends
    sentence = "determines the outcome; leave it out: at label level it would publish it"
    assert sentence in finding.sentence
    assert sentence in " ".join(check.to_text(100).split())
    assert "in order" not in topics(check)
    assert '[covariates."x"]' not in check.proposed


@pytest.mark.parametrize(
    ("outcome", "bounds", "covariate"),
    [
        pytest.param(SCORES, Interval(-50, 50), SCORES + RNG.normal(0, 5, ROWS), id="pre-test"),
        pytest.param(DIED * 1, Binary(), DIED ^ (RNG.random(ROWS) < 0.1), id="nine of ten"),
        pytest.param(DIED * 1, Binary(), RNG.random(ROWS) < 0.005, id="rare trait"),
        pytest.param(RNG.random(ROWS) < 0.02, Binary(), RNG.normal(size=ROWS), id="rare event"),
        pytest.param(DIED * 1, Binary(), [f"street {i}" for i in range(ROWS)], id="address"),
        pytest.param(SCORES, Interval(-50, 50), RNG.choice(["a", "b"], ROWS), id="label"),
        pytest.param(SCORES, Interval(-50, 50), np.sort(SCORES)[-6] < SCORES, id="few at one end"),
        pytest.param(
            SCORES, Interval(-50, 50), np.floor((SCORES + RNG.normal(0, 5, ROWS)) / 10),
            id="classes of a pre-test",
        ),
    ],
)  # fmt: skip
def test_a_covariate_that_only_predicts_the_outcome_is_no_error(outcome, bounds, covariate):
    assert "tells the outcome" not in topics(checked(outcome, bounds, covariate))


def test_a_covariate_close_to_the_outcome_is_a_question_about_when_it_was_measured():
    near = SCORES + RNG.normal(0, 2, ROWS)
    finding = topics(checked(SCORES, Interval(-50, 50), near))["close to the outcome"]

    assert finding.severity == "note"
    assert "before the treatment" in finding.remedy


@pytest.mark.parametrize(
    "copy", [AGES * 12.0, AGES**2, [f"aged {age}" for age in AGES]], ids=["unit", "square", "label"]
)
def test_a_covariate_that_repeats_another_names_it_once(copy):
    check = checked(SCORES, Interval(-50, 50), copy)

    assert topics(check)["repeats a covariate"].counts == {"of": "age"}
    assert topics(check)["repeats a covariate"].severity == "note"
    assert "repeats a covariate" not in topics(check, "age")


def test_every_outcome_is_compared():
    frame = pl.DataFrame({"t": DIED, "y": SCORES, "wage": WAGES, "lwage": np.log(WAGES)})
    domain = Domain(
        Treatment("t"), [("y", Interval(-50, 50)), ("wage", Interval(0, 100))]
    )  # fmt: skip
    (finding,) = check_data(frame, domain=domain, covariates=["lwage"]).about("lwage")

    assert finding.counts["outcome"] == "wage"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_sampled_rows_are_the_same_however_rows_are_cut(size):
    values = np.arange(3000.0)
    whole, parts = RowSample(most=200), RowSample(most=200)
    whole.add({"x": Entries(values, None)}, values.size)
    for first in range(0, values.size, size):
        part = values[first : first + size]
        parts.add({"x": Entries(part, None)}, part.size)

    assert set(parts.columns["x"].numbers) == set(whole.columns["x"].numbers)
    assert parts.columns["x"].size == 200
