"""Intervals of ratios and of numbers needed to treat, from released risks."""

import json
import math

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    Binary,
    CalibratedOptions,
    Domain,
    Interval,
    Outcome,
    Release,
    Treatment,
    estimate_ate,
    number_needed_to_treat,
    risk_ratio,
)
from private_ate.cli.app import app
from private_ate.effects.of_releases import invert_effect, odds_interval, risk_interval


def test_the_interval_of_a_risk_ratio_holds_one_exactly_if_that_of_the_effect_holds_zero():
    generator = np.random.default_rng(1)
    for first, second, half in generator.random((500, 3)) * (1, 1, 0.5) + (0, 1e-3, 1e-6):
        low, high = risk_interval(first, second, half)
        assert (low <= 1 <= high) == (abs(first - second) <= half)
        assert low <= first / second <= high


def test_the_ends_of_a_risk_ratio_solve_fiellers_equation():
    for first, second, half in ((0.3, 0.2, 0.05), (0.2, 0.3, 0.05), (0.21, 0.2, 0.05)):
        for end in risk_interval(first, second, half):
            assert abs(first - end * second) == pytest.approx(max(1, end) * half)


def test_a_control_risk_within_its_error_of_zero_leaves_the_ratio_open_above():
    assert risk_interval(0.3, 0.04, 0.05)[1] == math.inf
    assert risk_interval(0.3, 0.0, 0.05) is None


@pytest.mark.parametrize("laplace", [False, True])
def test_intervals_of_ratios_cover_at_least_as_often_as_promised(laplace):
    generator = np.random.default_rng(2)
    risks, scales = np.array([0.35, 0.2]), np.array([0.01, 0.02])
    draw = generator.laplace if laplace else generator.normal
    errors = draw(size=(4000, 2)) * scales
    half = np.quantile(np.abs(errors @ [1, -1]), 0.95)
    ratio = risks[0] / risks[1]
    odds = ratio * (1 - risks[1]) / (1 - risks[0])

    held = np.array([
        [low[0] <= ratio <= low[1], other is None or other[0] <= odds <= other[1]]
        for first, second in risks + errors
        for low, other in [(risk_interval(first, second, half), odds_interval(first, second, half))]
    ])  # fmt: skip

    assert held.mean(axis=0).min() > 0.94
    assert held.mean(axis=0).max() < 1  # wide, not useless


def test_odds_have_no_interval_where_a_risk_is_within_its_error_of_an_end():
    assert odds_interval(0.5, 0.04, 0.05) is None
    assert odds_interval(0.97, 0.5, 0.05) is None
    low, high = odds_interval(0.5, 0.4, 0.05)
    assert low < 1.5 < high


def test_a_number_needed_to_treat_inverts_the_effect_and_its_interval():
    found = invert_effect(0.1, (0.05, 0.2))
    assert (found.estimate, found.interval, found.holds_none) == (10, (5, 20), False)
    assert invert_effect(-0.1, (-0.2, -0.05)).interval == (-20, -5)


def test_an_interval_that_holds_no_effect_becomes_two_rays():
    found = invert_effect(0.1, (-0.05, 0.2))
    assert found.interval == (-20, 5)
    assert found.holds_none
    assert invert_effect(0.0, None).estimate == math.inf


def study_of(size: int = 1200) -> pl.DataFrame:
    rows = range(size)
    return pl.DataFrame(
        {
            "drug": ["yes" if i % 2 else "no" for i in rows],
            "age": [20 + i % 50 for i in rows],
            "ill": [int(i % 10 < (3 if i % 2 else 5)) for i in rows],
        }
    )


def ask(**asked):
    declared = asked.pop("outcome", Outcome("ill", Binary(missing=0)))
    domain = Domain(Treatment("drug", "yes", "no"), declared, {"age": Interval(18, 90)})
    known = {"level": "label", "epsilon": 4, **asked}
    return estimate_ate(study_of(), domain=domain, **known)


def test_the_number_needed_to_treat_follows_from_the_effect_of_a_binary_outcome_alone():
    release = ask()

    assert number_needed_to_treat(release).estimate == pytest.approx(1 / release.ate)
    assert "needed to treat" in str(release)
    assert "needed to treat" in release.to_html()
    assert "risk ratio" not in str(release)  # its means were not released
    with pytest.raises(ArgumentError, match="no arm means"):
        risk_ratio(release)
    assert Release.from_json(release.to_json()) == release


def test_a_mere_difference_treats_nobody():
    release = ask(level="sample", method="difference_in_means")

    assert release.estimand == "difference"
    assert "needed to treat" not in str(release)


def test_ratios_are_shown_without_being_asked_for_where_both_means_are_released_anyway():
    silent = ask(outcome=Outcome("ill", Binary(), missing="private"), seed=1)
    asked = ask(
        outcome=Outcome("ill", Binary(), missing="private"),
        seed=1,
        options=CalibratedOptions(means=True),
    )

    assert risk_ratio(silent) == pytest.approx(risk_ratio(asked), rel=0.1)  # caps may differ
    assert [step.name for step in silent.steps] == [step.name for step in asked.steps]
    assert silent.ate == asked.ate  # nothing more was paid for
    for name in ("risk ratio", "odds ratio", "needed to treat", "E-value"):
        assert f"\n{name} " in str(silent)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_flag_asks_for_the_means_where_they_cost_something(tmp_path, level):
    study_of().write_csv(tmp_path / "study.csv")
    done = CliRunner().invoke(app, [
        "estimate", str(tmp_path / "study.csv"), "--treatment", "drug", "--treated", "yes",
        "--control", "no", "--outcome", "ill", "--binary-outcome", "--covariates", "age",
        "--bounds", "age=18:90", "--missing-outcomes", "0", "--level", level, "--epsilon", "4",
        "--means", "--json",
    ])  # fmt: skip

    if level == "label":
        assert "risk_ratio" in json.loads(done.stdout)["settings"]
    else:
        assert "means of two arms are not released" in str(done.exception)
