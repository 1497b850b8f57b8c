"""A time to an event: its declaration, codes, curves, pseudo-values and releases."""

import json
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from jsonschema import Draft202012Validator

import private_ate
from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    DomainError,
    Interval,
    Ledger,
    LedgerError,
    Outcome,
    Release,
    SchemaError,
    Survival,
    Treatment,
    check_data,
    combine,
    estimate_ate,
    plan_ate,
)
from private_ate.api import METHODS, estimate_study
from private_ate.data.tables import table_of
from private_ate.datasets.cancer_registry import DOMAIN as REGISTRY
from private_ate.datasets.cancer_registry import draw_registry
from private_ate.datasets.dummy import draw_dummy
from private_ate.domain.outcome import HORIZON_STEPS, happened, steps_of
from private_ate.engines.local import LocalStudy
from private_ate.methods.survival.curves import (
    FINE,
    Hazards,
    at_edges,
    expected_value,
    hazards_of,
    pseudo_table,
    tidy_cells,
)
from private_ate.methods.survival.first_step import bootstrap_curve
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.request import Request
from survival_studies import HORIZON, draw_times, survival_domain, survival_study

SHIPPED = Path(private_ate.__file__).parent / "release.schema.json"
SCHEMA = Draft202012Validator(json.loads(SHIPPED.read_text("utf-8")))


def frame(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.random((2, rows))
    arm = (rng.random(rows) < 1 / (1 + np.exp(0.5 - a))).astype(int)
    times, ended = draw_times(rng, rows, arm, a)
    status = np.where(ended, "dead", "alive")
    return pl.DataFrame({"a": a, "b": b, "t": arm, "days": times, "status": status})


# Declaration


def test_a_domain_with_a_time_to_an_event_is_written_and_read_back():
    domain = survival_domain(bins=8, censoring_by="a<0.5", unit="days", missing="public")
    text = domain.to_toml()
    assert 'time = "days"' in text
    assert Domain.from_toml(text) == domain
    both = Domain("t", [domain.outcome, Outcome("b", Interval(0, 1))], {"a": Interval(0, 1)})
    assert Domain.from_toml(both.to_toml()) == both
    assert domain.columns == ["t", "days", "status", "a", "b"]
    assert domain.private_columns == ("days", "status")


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({"event": ""}, "needs the column of its event"),
        ({"event": "days"}, "needs the column of its event"),
        ({"event_label": None}, "which label"),
        ({"horizon": 0}, "above 0"),
        ({"horizon": float("nan")}, "above 0"),
        ({"horizon": True}, "is a number"),
        ({"horizon": "365"}, "is a number"),
        ({"bounds": Interval(0, 9)}, "leave out bounds"),
    ],
)
def test_declarations_that_make_no_question_are_refused(declared, words):
    usual = {"event": "status", "event_label": 1, "horizon": 365.0}
    with pytest.raises(DomainError, match=words):
        Survival("days", **{**usual, **declared})


def test_bins_are_a_whole_number():
    with pytest.raises(ArgumentError, match="bins"):
        Survival("days", "status", event_label=1, horizon=365, bins=0)


def test_private_gaps_are_censored_at_the_start():
    assert Survival("d", "s", event_label=1, horizon=9, missing="private").missing is None
    with pytest.raises(DomainError, match="no number"):
        Survival("d", "s", event_label=1, horizon=9).with_missing(3.0)


# Reading


def test_times_and_events_are_read_from_every_kind_of_entry():
    table = table_of(
        pl.DataFrame({
            "days": ["0", "182.5", "365", "365", "400", "-1", "", "x", "1e400", "NA"],
            "status": ["1", "1", "1", "0", "1", "1", "1", "1", "1", "1"],
            "t": ["1", "0"] * 5,
        }),
        typed=False,
    )  # fmt: skip
    outcome = Survival("days", "status", event_label=1, horizon=365)
    study = LocalStudy.encode(table, Domain("t", outcome, {}))
    steps, ended = steps_of(study.outcome), happened(study.outcome)
    half, whole = HORIZON_STEPS // 2, HORIZON_STEPS
    assert steps.tolist() == [0, half, whole, whole, whole, 0, 0, 0, whole, 0]
    assert ended.tolist() == [True, True, True] + [False] * 7


def test_public_gaps_leave_rows_out():
    data = frame(200).with_columns(
        pl.when(pl.int_range(200) < 5).then(None).otherwise(pl.col("days")).alias("days")
    )
    domain = survival_domain(missing="public")
    made = estimate_ate(data, domain=domain, level="label", epsilon="1", seed=1)
    assert made.settings["left_out_outcome"] == 5


@pytest.mark.parametrize("limit", ["1GB", "1"])
def test_a_file_is_read_alike_in_memory_and_streamed(tmp_path, limit):
    path = tmp_path / "s.csv"
    frame().write_csv(path)
    domain = survival_domain()
    made = estimate_ate(path, domain=domain, level="label", epsilon="1", seed=4, memory_limit=limit)
    assert made == estimate_ate(frame(), domain=domain, level="label", epsilon="1", seed=4)


def test_a_column_of_dates_is_refused_by_its_type():
    data = frame(20).with_columns(days=pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 20)))
    with pytest.raises(SchemaError, match="declared as numbers"):
        estimate_ate(data, domain=survival_domain(), level="sample", epsilon="1")


# Curves


def test_tidy_cells_add_up_to_what_is_known_and_are_never_negative():
    cells = np.random.default_rng(1).normal(5, 30, size=(50, 13))
    tidy = tidy_cells(cells, 100.0)
    assert tidy.sum(axis=1) == pytest.approx(np.full(50, 100.0))
    assert (tidy >= -1e-9).all()


def test_hazards_of_an_exact_histogram_are_those_that_made_it():
    event, censoring = np.array([0.3, 0.9, 1.4]), np.array([0.2, 0.6, 0.1])
    alive = np.concatenate([[1.0], np.exp(-np.cumsum(event + censoring) / 3)])
    left, share = -np.diff(alive), event / (event + censoring)
    cells = 1000 * np.concatenate([left * share, left * (1 - share), alive[-1:]])
    found = hazards_of(cells, 1000.0, 1e-12)
    assert found.event[0] == pytest.approx(event)
    assert found.censoring[0] == pytest.approx(censoring)
    assert at_edges(found.event)[0, -1] == pytest.approx(np.exp(-event.sum() / 3))


# Pseudo-values


def test_without_censoring_a_pseudo_value_is_the_time_itself():
    table = pseudo_table(Hazards(np.array([0.4, 1.9, 0.7, 1.1]), np.zeros(4)), "rmst")
    times = np.linspace(0, 1, FINE + 1)
    assert table.event == pytest.approx(times, abs=2e-5)
    assert table.censored[-1] == pytest.approx(1.0, abs=2e-5)


@pytest.mark.parametrize("quantity", ["rmst", "risk"])
@pytest.mark.parametrize("wrong", ["event", "censoring"])
def test_either_curve_may_be_wrong(quantity, wrong):
    """Lemma 3: with the right censoring curve, or the right hazards, the mean is right."""
    right = Hazards(np.array([0.3, 0.9, 1.4, 0.6]), np.array([0.5, 0.2, 0.7, 0.4]))
    other = {"event": right.event, "censoring": right.censoring}
    other[wrong] = other[wrong][::-1] * 1.3
    truth = pseudo_table(right, quantity)
    mean = expected_value(truth, pseudo_table(Hazards(**other), quantity))
    assert mean == pytest.approx(truth.target, abs=2e-4)
    both = Hazards(right.event * 2, right.censoring * 2)
    assert abs(expected_value(truth, pseudo_table(both, quantity)) - truth.target) > 1e-3


def test_curves_without_an_event_have_finite_pseudo_values():
    table = pseudo_table(Hazards(np.zeros(4), np.full(4, 0.7)), "rmst")
    assert table.censored == pytest.approx(np.ones(FINE + 1))
    assert np.isfinite(table.event).all()
    assert table.variance == pytest.approx(0.0, abs=1e-12)


def test_a_long_horizon_keeps_the_table_narrow():
    table = pseudo_table(Hazards(np.full(4, 0.5), np.full(4, 9.0)), "risk")
    assert table.high - table.low <= 3
    assert table.floor > table.least


def test_bands_cover_single_edges_and_whole_curves():
    hazards = Hazards(np.full(6, 0.8), np.full(6, 0.4))
    errors, _ = bootstrap_curve("x", hazards, 900.0, 400.0, NoiseDistribution("staircase", 3, 0.25))
    each, at_once = errors.half_each(0.95), errors.half_all(0.95)
    assert each[0] == at_once[0] == 0
    assert (at_once[1:] > each[1:]).all()
    within = (np.abs(errors.errors) <= at_once + 1e-12).all(axis=1).mean()
    assert within >= 0.95


# Releases


@pytest.fixture(scope="module")
def made():
    return estimate_ate(
        frame(), domain=survival_domain(unit="days"), level="label", epsilon="2", seed=1
    )


def test_a_release_is_valid_and_reads_itself_back(made):
    plain = json.loads(made.to_json())
    assert not list(SCHEMA.iter_errors(plain))
    assert Release.from_json(made.to_json()) == made
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  # our own bytes
    del plain["risks"]
    with pytest.raises(ArgumentError, match="exactly the fields"):
        Release.from_json(json.dumps(plain))


def test_text_and_page_show_curves_and_risks(made):
    text = made.to_text()
    assert "survival curves, weighted by covariates" in text
    assert "Up to 365 days, the event comes" in text
    page = made.to_html()
    assert "Survival curves" in page
    assert page.count("<path") == 4


def test_other_horizons_follow_from_the_curves(made):
    curve = made.curves["1"]
    assert curve.at(0) == 1
    assert curve.at(HORIZON) == pytest.approx(curve.survival[-1])
    assert 0 < curve.mean_until(100) < 100
    with pytest.raises(ArgumentError, match="reaches from 0"):
        curve.at(400)


def test_the_risk_comes_with_a_ratio_at_label_level():
    made = estimate_ate(
        frame(), domain=survival_domain(), level="label", epsilon="2", seed=1, quantity="risk"
    )
    assert made.risks.source == "sums"
    assert made.outcome.bounds == (0, 1)
    (row,) = made.risks.contrasts
    assert row.ratio == pytest.approx(made.risks.by_arm["1"] / made.risks.by_arm["0"])
    assert row.ratio_interval[0] < row.ratio
    assert "risk" in made.to_text()


def test_three_arms_have_curves_and_every_contrast():
    study = survival_study(3, rows=500, arms=3)
    made = estimate_study(study, Request("label", Fraction(2)), METHODS["calibrated"])
    assert list(made.curves) == ["none", "low", "high"]
    assert len(made.contrasts) == 3
    assert len(made.risks.contrasts) == 2
    assert not list(SCHEMA.iter_errors(json.loads(made.to_json())))


def test_small_strata_are_merged_and_the_release_says_so():
    small = estimate_ate(
        frame(), domain=survival_domain(censoring_by="b<0.5"), level="label", epsilon="1", seed=1
    )
    assert any("merged" in note for note in small.settings["notes"])
    large = estimate_ate(
        frame(6000), domain=survival_domain(censoring_by="b<0.5"), level="label", epsilon="4",
        seed=1,
    )  # fmt: skip
    assert not any("merged" in note for note in large.settings["notes"])
    steps = {step.name: step for step in large.steps}
    assert len(steps["times and events"].sensitivity) == 2 * 2 * (2 * large.bins + 1)


def test_the_estimate_is_near_the_truth_of_the_registry():
    study = draw_registry()
    made = estimate_ate(study.frame, domain=REGISTRY, level="label", epsilon="4", seed=5)
    assert made.interval[0] < study.true_effect < made.interval[1]


def test_dummy_data_of_a_time_to_an_event_can_be_asked():
    study = draw_dummy(survival_domain(), rows=2000)
    assert set(study.frame["status"]) == {"dead", "0"}
    made = estimate_ate(study.frame, domain=survival_domain(), level="label", epsilon="8", seed=1)
    assert made.ate == pytest.approx(study.effect, abs=12)


def test_refusals():
    with pytest.raises(ArgumentError, match="the risk by a horizon"):
        estimate_ate(
            frame(), domain=Domain("t", ("days", Interval(0, 9)), {"a": Interval(0, 1)}),
            level="label", epsilon="1", quantity="risk",
        )  # fmt: skip
    both = Domain("t", [survival_domain().outcome, Outcome("b", Interval(0, 1))])
    with pytest.raises(ArgumentError, match="asked for alone"):
        estimate_ate(frame(), domain=both, level="label", epsilon="1")
    with pytest.raises(ArgumentError, match="not by 'nobody'"):
        estimate_ate(
            frame(), domain=survival_domain(censoring_by="nobody"), level="label", epsilon="1"
        )


# Ledger, plan, check


def test_another_horizon_is_another_question_and_both_columns_are_private(tmp_path):
    ledger = Ledger.create(
        tmp_path / "ledger", "s", epsilon="3", level="label", public=["t", "a", "b"]
    )
    asked = {"level": "label", "epsilon": "1", "ledger": ledger, "dataset": "s"}
    first = estimate_ate(frame(), domain=survival_domain(), request_id="a", **asked)
    assert estimate_ate(frame(), domain=survival_domain(), request_id="a", **asked) == first
    shorter = survival_domain().with_outcome(
        Survival("days", "status", event_label="dead", horizon=100)
    )
    with pytest.raises(LedgerError):
        estimate_ate(frame(), domain=shorter, request_id="a", **asked)
    other = estimate_ate(frame(), domain=shorter, request_id="b", **asked)
    assert other.horizon == 100
    leaks = Domain(
        Treatment("t", 1, 0), ("b", Interval(0, 1)), {"status": Categories("dead", "alive")}
    )
    with pytest.raises(LedgerError, match="status"):
        estimate_ate(frame(), domain=leaks, request_id="c", **asked)


def test_a_plan_predicts_the_half_width_that_is_released():
    data, domain = frame(2000), survival_domain()
    plan = plan_ate(data, domain=domain, level="label", epsilons=["1", "4"], risk=0.5, censored=0.3)
    made = estimate_ate(data, domain=domain, level="label", epsilon="4", seed=1)
    half = (made.interval[1] - made.interval[0]) / 2
    assert plan.rows[1].half_width == pytest.approx(half, rel=0.25)
    assert "guessed risk of 0.5" in str(plan)


def topics(check):
    return {(one.topic, one.column, one.severity) for one in check.findings}


def test_a_check_says_what_is_wrong_with_times_and_events():
    domain = survival_domain()
    data = frame(400)
    assert ("event", "status", "ok") in topics(check_data(data, domain=domain, level="label"))
    none = data.with_columns(status=pl.lit("alive"))
    assert ("event", "status", "bends") in topics(check_data(none, domain=domain))
    negative = data.with_columns(days=pl.col("days") - 50)
    assert ("negative", "days", "bends") in topics(check_data(negative, domain=domain))
    zero = data.with_columns(
        days=pl.when(pl.int_range(400) < 20).then(0.0).otherwise(pl.col("days"))
    )
    assert ("zero", "days", "bends") in topics(check_data(zero, domain=domain))
    years = data.with_columns(days=2000 + pl.int_range(400) % 20)
    assert ("years", "days", "bends") in topics(check_data(years, domain=domain))
    short = data.with_columns(days=pl.col("days").clip(0, 200))
    assert ("horizon", "days", "bends") in topics(check_data(short, domain=domain))
    whole = data.with_columns(status=pl.lit("dead"), days=pl.col("days") * 3)
    found = topics(check_data(whole, domain=domain))
    assert ("event", "status", "bends") in found
    assert ("censoring", "days", "note") in found


def test_a_check_sees_dates_commas_and_mixed_truth(tmp_path):
    path = tmp_path / "s.csv"
    rows = ["a,b,t,days,status"]
    rows += [f".{k},.5,{k % 2},2020-01-0{k},{'TRUE' if k % 3 else 0}" for k in range(1, 9)]
    path.write_text("\n".join(rows), "utf-8")
    outcome = Survival("days", "status", event_label=1, horizon=9)
    domain = Domain(Treatment("t", 1, 0), outcome, {"a": Interval(0, 1), "b": Interval(0, 1)})
    found = topics(check_data(path, domain=domain))
    assert ("dates", "days", "bends") in found
    assert ("event", "status", "bends") in found


@pytest.mark.parametrize("arms", [2, 3])
def test_a_check_names_the_covariate_that_censoring_depends_on(arms):
    rng = np.random.default_rng(0)
    data, domain = frame(3000), survival_domain(arms)
    codes = np.arange(3000) % arms
    data = data.with_columns(t=pl.Series(np.array(domain.treatment.coded)[codes]))
    lean = np.where(codes == 1, 6.0, -6.0) * (data["a"].to_numpy() - 0.5)
    lost = rng.random(3000) < 1 / (1 + np.exp(-lean))
    data = data.with_columns(status=pl.Series(np.where(lost, "alive", "dead")))
    found = topics(check_data(data, domain=domain, level="label"))
    assert ("censoring", "a", "note") in found


def test_a_plain_outcome_that_looks_like_a_censored_time_is_named():
    domain = Domain(Treatment("t", 1, 0), ("days", Interval(0, 365)), {"a": Interval(0, 1)})
    found = topics(check_data(frame(), domain=domain, level="label"))
    assert ("censored time", "days", "bends") in found
    renamed = frame().rename({"status": "kind"})
    found = topics(check_data(renamed, domain=domain, level="label"))
    assert ("censored time", "days", "bends") not in found


def test_sites_with_other_horizons_are_not_combined():
    asked = {"level": "label", "epsilon": "1"}
    shorter = survival_domain().with_outcome(
        Survival("days", "status", event_label="dead", horizon=100)
    )
    first = estimate_ate(frame(200), domain=survival_domain(), **asked)
    second = estimate_ate(frame(200, seed=1), domain=shorter, **asked)
    with pytest.raises(ArgumentError, match="horizon"):
        combine([first, second])
    third = estimate_ate(frame(200, seed=1), domain=survival_domain(), **asked)
    assert combine([first, third]).effects


def test_curves_are_drawn(made, tmp_path):
    plots = pytest.importorskip("private_ate.report.plots")
    pytest.importorskip("matplotlib")
    plots.draw_curves(made, tmp_path / "c.svg")
    assert (tmp_path / "c.svg").stat().st_size > 1000
