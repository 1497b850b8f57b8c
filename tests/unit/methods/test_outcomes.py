"""Effects on several outcomes: one request, one charge, a row for every outcome."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import (
    Binary,
    CalibratedOptions,
    Domain,
    Interval,
    Ledger,
    Outcome,
    Release,
    SamplingWeights,
    Treatment,
    check_data,
    estimate_ate,
    plan_ate,
)
from private_ate.charging import bill_for
from private_ate.diagnostics.exact import diagnose_ate
from private_ate.effects import p_value_of
from private_ate.errors import ArgumentError, DomainError, SchemaError
from private_ate.planning import StudySizes
from private_ate.report.effects_table import by_outcome
from private_ate.request import Request
from several_outcomes import clinic_domain, clinic_table, outcome_study

LABEL = {"level": "label", "epsilon": "1", "seed": 3}


@pytest.fixture(scope="module")
def two():
    return estimate_ate(clinic_table(800), domain=clinic_domain(), **LABEL)


@pytest.fixture(scope="module")
def whole():
    """Three arms × four subgroups × two outcomes."""
    return estimate_ate(
        clinic_table(900, 3), domain=clinic_domain(3), level="label", epsilon="2", seed=4,
        by=["sex", "site"],
    )  # fmt: skip


def test_rows_carry_their_outcome_and_the_first_is_the_headline(two):
    assert [row.outcome for row in two.effects] == ["pressure", "died"]
    assert (two.ate, two.interval) == (two.effects[0].estimate, two.effects[0].interval)
    assert two.outcome.column == "pressure"
    assert [one["column"] for one in two.settings["outcomes"]] == ["pressure", "died"]
    assert [one["bounds"] for one in two.settings["outcomes"]] == [[60, 220], [0, 1]]


def test_intervals_at_once_have_room_for_all_outcomes(two):
    for row in two.effects:
        assert row.simultaneous[0] < row.interval[0] < row.interval[1] < row.simultaneous[1]


def test_all_outcomes_cost_one_epsilon(two):
    assert [step.mechanism for step in two.steps] == ["cubes", "cubes"]
    assert sum(step.epsilon for step in two.steps) == pytest.approx(1)
    assert "outcomes (all 2 at once) differ" in two.adjacency


def test_a_release_is_read_back_as_it_was(two, whole):
    for release in (two, whole):
        assert Release.from_json(release.to_json()) == release


def test_arms_subgroups_and_outcomes_are_one_release_and_one_page(whole):
    rows = [(row.outcome, row.subgroup, row.arm) for row in whole.effects]
    cells = {subgroup for _, subgroup, _ in rows}
    assert len(cells) == 1 + 4 + 4
    assert len(rows) == 2 * (3 + 2 * 8)  # all pairs of all units, arms in margins and cells
    assert len({step.part for step in whole.steps}) == 4
    page = whole.to_html()
    for text in ("<h2>Outcomes</h2>", "Subgroups: pressure", "Subgroups: died"):
        assert text in page
    assert "high against none" in whole.to_text()
    assert "died" in whole._repr_html_()


def test_texts_show_every_outcome_in_its_own_digits(two):
    text = str(two)
    assert "pressure (mmHg)" in text
    assert "headline" in text
    died = next(line for line in text.splitlines() if line.startswith("died"))
    assert died.split()[1].startswith(("0.", "−0."))
    assert "| died |" in two.to_markdown()
    assert 'outcome=["pressure", "died"]' in two.to_html().replace("&quot;", '"')
    assert two.to_frame().get_column("outcome").to_list() == ["pressure", "died"]


def test_every_row_has_a_p_value_of_its_own(two, whole):
    for release in (two, whole):
        for row in release.effects:
            chance = p_value_of(release, row)
            assert 0 < chance <= 1
            excludes = row.interval[0] > 0 or row.interval[1] < 0
            assert excludes == (chance < 0.05) or abs(chance - 0.05) < 0.02


def test_each_outcome_is_seen_by_itself(whole):
    first, second = by_outcome(whole)
    assert first.effects[0].outcome == "pressure"
    assert second.outcome.bounds == (0, 1)
    assert {row.outcome for row in second.effects} == {"died"}
    assert second.ate == next(
        row.estimate
        for row in whole.effects
        if row.outcome == "died" and row.subgroup is None and row.arm == "high"
        and row.against == "none"
    )  # fmt: skip


@pytest.mark.parametrize("arms", [2, 3])
def test_without_noise_every_outcome_is_what_it_is_alone(arms):
    table, domain = clinic_table(500, arms), clinic_domain(arms)
    asked = {"level": "label", "epsilon": "3000", "seed": 1, "confidence": None}
    together = estimate_ate(table, domain=domain, **asked)
    for row in together.effects:
        alone = estimate_ate(table, domain=domain, outcome=row.outcome, **asked)
        found = {(one.arm, one.against): one.estimate for one in alone.effects}
        width = 160 if row.outcome == "pressure" else 1
        assert row.estimate == pytest.approx(found[row.arm, row.against], abs=0.002 * width)


def test_some_of_the_declared_outcomes_can_be_asked_for():
    table, domain = clinic_table(300), clinic_domain()
    one = estimate_ate(table, domain=domain, outcome="died", **LABEL)
    turned = estimate_ate(table, domain=domain, outcome=["died", "pressure"], **LABEL)
    assert [row.outcome for row in one.effects] == ["died"]
    assert one.steps[0].mechanism == "laplace"
    assert [row.outcome for row in turned.effects] == ["died", "pressure"]


def test_an_outcome_that_is_not_asked_for_is_never_a_covariate():
    table, domain = clinic_table(300), replace(clinic_domain(), covariates={})
    release = estimate_ate(table, domain=domain, outcome="died", covariates="all", **LABEL)
    assert release.covariates == ("age", "sex", "site")
    with pytest.raises(ArgumentError, match="cannot be a covariate"):
        estimate_ate(table, domain=domain, outcome="died", covariates=["pressure"], **LABEL)


def test_missing_outcomes_are_left_out_of_their_own_rows_alone():
    table = clinic_table(600).with_columns(
        pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("died")).alias("died")
    )
    release = estimate_ate(table, domain=clinic_domain(missing="public"), **LABEL)
    left_out = {one["column"]: one["left_out"] for one in release.settings["outcomes"]}
    assert left_out == {"pressure": 0, "died": 120}
    assert "who has one is public" in release.adjacency


def test_a_subgroup_that_lacks_one_outcome_alone_is_refused_before_noise():
    table = clinic_table(300).with_columns(
        pl.when(pl.col("sex") == "male").then(None).otherwise(pl.col("died")).alias("died")
    )
    with pytest.raises(SchemaError, match="has no unit with outcome 'died'"):
        estimate_ate(table, domain=clinic_domain(missing="public"), by=["sex"], **LABEL)


def test_guessed_spreads_are_given_by_column():
    table, domain = clinic_table(300), clinic_domain()
    usual = estimate_ate(table, domain=domain, **LABEL)
    told = estimate_ate(table, domain=domain, outcome_sd={"pressure": 3.0}, **LABEL)
    assert told.effects[0].interval != usual.effects[0].interval
    assert told.settings["weight_cap"] <= usual.settings["weight_cap"]
    one = estimate_ate(table, domain=domain, outcome="died", outcome_sd={"died": 0.3}, **LABEL)
    assert len(one.effects) == 1


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"method": "published"}, "one outcome at a time"),
        ({"level": "sample", "method": "ipw"}, "one outcome at a time at sample level"),
        ({"level": "sample", "outcome_sd": {"died": 0.3}}, "method of label level"),
        ({"outcome_sd": 3.0}, "give one by column"),
        ({"outcome_sd": {"age": 3.0}}, "none of the outcomes"),
        ({"options": CalibratedOptions(clip_share="0.1")}, "not clipped"),
        ({"outcome": ["pressure", "weight"]}, "declares: 'pressure', 'died'"),
        ({"outcome": ["died", "died"]}, "once"),
        ({"outcome": []}, "at least one"),
        ({"domain": clinic_domain(missing="private")}, "private missing"),
        ({"engine": "spark"}, "do not run on Spark"),
    ],
)
def test_what_cannot_be_drawn_together_is_refused_before_a_file_is_opened(asked, words):
    with pytest.raises((ArgumentError, DomainError), match=words):
        estimate_ate("no such file.csv", **{"domain": clinic_domain(), **LABEL, **asked})


def test_curators_see_one_outcome_at_a_time():
    table, domain = clinic_table(200), clinic_domain()
    with pytest.raises(DomainError, match="has one outcome"):
        diagnose_ate(table, domain=domain)
    assert diagnose_ate(table, domain=domain, outcome="died").treated > 0


def test_a_check_looks_at_every_outcome():
    domain = clinic_domain()
    open_one = replace(domain, further=(Outcome("died"),))
    found = check_data(clinic_table(200), domain=open_one)
    assert {"pressure", "died"} <= {one.column for one in found.findings}
    assert '[[outcome]]\ncolumn = "died"' in found.proposed


def test_a_domain_is_written_and_read_with_all_outcomes():
    domain = clinic_domain(missing="public")
    text = domain.to_toml()
    assert text.count("[[outcome]]") == 2
    assert Domain.from_toml(text) == domain
    one = domain.of_outcome(1)
    assert "[outcome]\n" in one.to_toml()
    assert one.outcomes == (domain.outcomes[1],)


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (["y", "y"], "declared twice"),
        ([], "a list of these"),
        (["y", "x"], "declared twice"),
        ([f"y{place}" for place in range(60)], "at most 50"),
        (7, "a list of these"),
    ],
)
def test_outcomes_that_make_no_sense_are_refused(outcome, words):
    with pytest.raises(DomainError, match=words):
        Domain(Treatment("t", 1, 0), outcome, {"x": Interval(0, 1)})


def test_a_ledger_is_charged_once_and_binds_every_outcome(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "clinic", epsilon="2")
    asked = {"domain": clinic_domain(), "level": "label", "epsilon": "1", "ledger": ledger}
    first = estimate_ate(clinic_table(200), request_id="all", **asked)
    again = estimate_ate(clinic_table(200), request_id="all", **asked)
    assert first.to_json() == again.to_json()
    assert first.is_private
    assert float(ledger.accounts()[0].left.epsilon_text) == 1.0
    assert {"pressure", "died"} <= ledger.roles("clinic").private
    ledger.close()


def test_the_plan_of_one_outcome_has_the_hash_that_it_always_had():
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
    request = Request("label", Fraction(1))
    bill = bill_for(request, "calibrated", CalibratedOptions, domain, None)
    several = replace(domain, further=(Outcome("z", Binary()),))
    other = bill_for(request, "calibrated", CalibratedOptions, several, None)
    assert (
        bill.plan == "ca95f2a1f12c044ac96179749206c460ae9cdae921ac0d2c6810616981fdbdea"
    )  # as older versions hashed it
    assert other.plan != bill.plan
    assert other.use.outcomes == ("y", "z")
    assert "further" not in bill.use.plain


def test_plans_have_rows_of_every_outcome():
    plan = plan_ate(clinic_table(300), domain=clinic_domain(), level="label", epsilons=["1"])
    sizes = StudySizes.declared(300, 4, Interval(60, 220))
    guessed = plan_ate(sizes, domain=clinic_domain(), level="label", epsilons=["1"])
    for found in (plan, guessed):
        assert [row.outcome for row in found.rows] == ["pressure", "died"]
        assert found.rows[1].half_width < 1 < found.rows[0].half_width
    assert "pressure" in str(plan)
    assert "of 2 outcomes" in plan.caveat
    alone = plan_ate(
        clinic_table(300), domain=clinic_domain(), outcome="died", level="label", epsilons=["1"]
    )
    assert alone.rows[0].noise_error < plan.rows[1].noise_error
    assert "outcome" not in alone.to_dict()["rows"][0]


def test_a_plan_foresees_the_noise_that_a_release_has(two):
    plan = plan_ate(clinic_table(800), domain=clinic_domain(), level="label", epsilons=["1"])
    for row, effect in zip(plan.rows, two.effects, strict=True):
        half = (effect.interval[1] - effect.interval[0]) / 2
        assert row.half_width == pytest.approx(half, rel=0.35)


def test_intervals_of_every_outcome_cover_its_effect():
    """Sixty draws of a family: a share below .85 would be told from .95."""
    truth = {"pressure": -6.0, "died": 0.05}
    covered, at_once = [], []
    for seed in range(60):
        release = estimate_ate(
            clinic_table(300, seed=seed), domain=clinic_domain(), level="label", epsilon="2",
            seed=seed, options=CalibratedOptions(terms="plain"),
        )  # fmt: skip
        rows = [(truth[row.outcome], row) for row in release.effects]
        covered.append([row.interval[0] <= true <= row.interval[1] for true, row in rows])
        at_once.append(
            all(row.simultaneous[0] <= true <= row.simultaneous[1] for true, row in rows)
        )
    assert np.mean(covered, axis=0).min() > 0.85
    assert np.mean(at_once) > 0.88


@pytest.mark.parametrize("arms", [2, 3])
def test_at_sample_level_outcomes_share_all_of_epsilon(arms):
    release = estimate_ate(
        clinic_table(900, arms), domain=clinic_domain(arms), level="sample", epsilon="1", seed=2
    )
    assert release.steps[-1].mechanism in ("joint_centres", "cubes", "cube")
    assert sum(release.settings["budget"].values()) == pytest.approx(1)
    assert release.effects[0].outcome == "pressure"
    assert Release.from_json(release.to_json()) == release
    for row in release.effects:
        assert row.simultaneous[0] < row.interval[0] < row.interval[1] < row.simultaneous[1]


def test_the_settings_of_outcomes_are_plain(two):
    told = json.loads(two.to_json())["settings"]["outcomes"]
    assert told[0] == {"column": "pressure", "bounds": [60.0, 220.0], "unit": "mmHg"}


@pytest.mark.parametrize(
    "asked",
    [
        {"estimand": "att"},
        {"estimand": "ato"},
        {"design": "randomized", "probability": 0.5},
        {"rows_per_person": 2},
        {"target": "track"},
        {"bounds": "from-data", "domain": Domain(Treatment("drug", 1, 0), ["pressure", "died"])},
        {"weights": SamplingWeights("weight", 5.0)},
        {"options": CalibratedOptions(means=True)},
    ],
    ids=str,
)
def test_what_one_outcome_can_have_several_can_have(asked):
    table = clinic_table(200).with_columns(weight=1.0 + pl.int_range(pl.len()) % 3)
    asked = dict(asked)
    domain = asked.pop("domain", clinic_domain())
    if not domain.covariates:
        asked |= {"treatment": clinic_domain().treatment, "covariates": ["age", "sex"]}
    release = estimate_ate(table, domain=domain, **LABEL, **asked)
    assert [row.outcome for row in release.effects] == ["pressure", "died"]
    told = release.settings["outcomes"]
    assert ("means" in told[1]) == ("options" in asked)
    assert (told[0]["bounds"] is None) == ("bounds" in asked)


def test_a_streamed_file_gives_what_the_table_in_memory_gives(tmp_path):
    path = tmp_path / "study.csv"
    table = clinic_table(400).with_columns(
        pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("died")).alias("died")
    )
    table.write_csv(path)
    asked = {"domain": clinic_domain(missing="public"), **LABEL}
    streamed = estimate_ate(path, memory_limit=1, **asked)
    assert streamed.effects == estimate_ate(path, **asked).effects


def test_a_study_that_was_encoded_holds_all_outcomes():
    study = outcome_study(2, 3, rows=100)
    release = estimate_ate(study, **LABEL)
    assert [row.outcome for row in release.effects] == ["y", "y1", "y2"]
    thin = study.reordered(np.arange(0, 100, 2))
    assert np.array_equal(thin.further[1].steps, study.further[1].steps[::2])
    with study.thinned(2) as thinned:
        assert np.array_equal(thinned.further[0].steps, study.further[0].steps[::2])
    assert study.public().further == ()
