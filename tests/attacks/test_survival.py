"""Attacks on survival: the histogram, the table of pseudo-values, and what neighbours give away."""

import logging
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from private_ate import ArgumentError
from private_ate.api import METHODS, estimate_study
from private_ate.methods.survival import first_step
from private_ate.methods.survival.curves import Hazards, code_tables, pseudo_table
from private_ate.methods.survival.first_step import cells_of
from private_ate.methods.survival.method import estimate_survival
from private_ate.privacy.metrics import Metric
from private_ate.request import Request
from private_ate.study import Block
from replay import Recording, broken_promises, record, replay_findings
from survival_studies import RECORDS, survival_study, with_record

METHOD = {"label": METHODS["calibrated"], "sample": METHODS["blocks"]}


def run_of(level):
    return lambda study, request, noise: estimate_survival(study, request, METHOD[level], noise)


CASES = [
    pytest.param("label", {}, {}, id="label"),
    pytest.param("label", {"quantity": "risk"}, {}, id="risk"),
    pytest.param("label", {}, {"arms": 3}, id="three arms"),
    pytest.param("label", {"by": ("a<0.5",)}, {}, id="subgroups"),
    pytest.param("label", {"estimand": "att"}, {}, id="att"),
    pytest.param("label", {"estimand": "atc"}, {}, id="atc"),
    pytest.param("label", {"estimand": "ato"}, {}, id="ato"),
    pytest.param("label", {"among": "low"}, {"arms": 3}, id="among"),
    pytest.param("label", {}, {"weighted": True}, id="sampling weights"),
    pytest.param("sample", {}, {"weighted": True}, id="sample weights"),
    pytest.param("label", {}, {"censoring_by": "b<0.5", "rows": 600}, id="strata"),
    pytest.param("label", {"confidence": None}, {}, id="no interval"),
    pytest.param("sample", {}, {}, id="sample"),
    pytest.param("sample", {"quantity": "risk"}, {}, id="sample risk"),
]


@pytest.mark.parametrize(("level", "asked", "made"), CASES)
def test_no_step_moves_more_than_it_declares(level, asked, made):
    study = survival_study(1, **made)
    request = Request(level, Fraction(4), **asked)
    for row, (one, other) in enumerate(
        [((0.0, True), (9e9, False)), ((np.nan, True), (365, True))]
    ):
        first, second = with_record(study, row, *one), with_record(study, row, *other)
        assert not replay_findings(run_of(level), first, second, request, seed=3)


def test_a_replaced_record_may_change_its_arm_at_sample_level():
    study = survival_study(2)
    first = with_record(study, 5, 0.0, True, arm=False, covariates=[0, 1])
    second = with_record(study, 5, 9e9, False, arm=True, covariates=[1, 0])
    request = Request("sample", Fraction(2))
    assert not replay_findings(run_of("sample"), first, second, request, seed=1)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_person_with_three_rows_moves_no_more_than_declared(level):
    first = second = survival_study(4)
    for row in range(3):
        first, second = with_record(first, row, 0, True), with_record(second, row, 9e9, False)
    request = Request(level, Fraction(3), rows_per_person=3)
    assert not replay_findings(run_of(level), first, second, request, seed=1)
    alone = Request(level, Fraction(3))
    found = replay_findings(run_of(level), first, second, alone, seed=1)
    assert found  # three rows are more than one declares


def test_the_histogram_is_attacked_by_every_record_and_its_bound_is_attained():
    study, request = survival_study(3, rows=80), Request("label", Fraction(1))
    first = record(run_of("label"), study, request)
    cells, sums = first.calls[0], first.calls[1]
    assert cells.spend.metric is Metric.MOVES
    assert cells.spend.moves == 2
    most = 0.0
    for row in (0, 1, 7):
        for time, ended in RECORDS:
            other = with_record(study, row, time, ended)
            second = record(run_of("label"), other, request, source=first.recording)
            assert not broken_promises(first.recording, second.recording)
            moved = np.subtract(second.calls[0].values, cells.values)
            assert np.count_nonzero(moved) in (0, 2)
            assert moved.sum() == 0
            most = max(most, abs(second.calls[1].values - sums.values) / sums.spend.sensitivity[0])
    assert 0.2 < most <= 1


def test_the_pseudo_value_table_spans_exactly_the_bounds_that_noise_is_scaled_to():
    rng = np.random.default_rng(0)
    for _ in range(20):
        tables = [
            pseudo_table(Hazards(rng.gamma(1, 1, 6), rng.gamma(1, 1, 6)), quantity)
            for quantity in ("rmst", "rmst")
        ]
        codes = code_tables(tables)
        assert codes.steps.min() == 0
        assert codes.steps.max() == 1 << 30
        assert codes.high - codes.low <= 3.0001


@pytest.mark.parametrize("quantity", ["rmst", "risk"])
def test_every_record_has_a_cell_and_a_pseudo_value(quantity):
    study = survival_study(0, rows=len(RECORDS))
    times, ended = map(np.array, zip(*RECORDS, strict=True))
    codes = study.domain.outcome.encode(times.astype(float), ended.astype(bool))
    cells = cells_of(codes, 4)
    assert cells.min() >= 0
    assert cells.max() <= 8
    unreadable = ~(times >= 0)
    assert set(cells[unreadable]) == {4}  # censored at 0
    assert set(cells[times > 365]) == {8}
    table = code_tables([pseudo_table(Hazards(np.full(4, 0.5), np.full(4, 0.5)), quantity)])
    block = Block(np.zeros((codes.size, 1)), np.zeros(codes.size, np.uint8), codes)
    found = table.coder(lambda one: np.zeros(one.arm.size, np.int64))(block)
    assert ((found >= 0) & (found <= 1 << 30)).all()


def test_a_histogram_with_the_noise_of_one_move_would_be_found_out(monkeypatch):
    study, request = survival_study(3), Request("label", Fraction(1))
    honest = first_step.release_cells
    monkeypatch.setattr(
        first_step, "release_cells", lambda *args, **kw: honest(*args, **{**kw, "moves": 1})
    )
    other = with_record(study, 0, 9e9, False)
    study = with_record(study, 0, 0.0, True)
    assert replay_findings(run_of("label"), study, other, request, seed=0)


ODD = {
    "all events": {"censoring": 0.0},
    "no event": {"rate": 1e-9},
    "horizon beyond the data": {"rate": 200.0, "censoring": 200.0},
    "few rows": {"rows": 12},
}


@pytest.mark.parametrize("odd", ODD)
def test_nothing_that_records_hold_raises_or_speaks_at_sample_level(odd, caplog, capfd):
    study = survival_study(6, **ODD[odd])
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG):
        warnings.simplefilter("error")
        made = estimate_study(study, Request("sample", Fraction(1)), METHOD["sample"])
    assert np.isfinite(made.ate)
    assert capfd.readouterr() == ("", "")
    assert not [one for one in caplog.records if one.name.startswith("private_ate")]


@pytest.mark.parametrize("odd", ODD)
def test_odd_outcomes_make_a_release_at_label_level_too(odd):
    study = survival_study(6, **ODD[odd])
    made = estimate_study(study, Request("label", Fraction(1)), METHOD["label"])
    assert made.interval[0] < made.ate < made.interval[1]


def test_a_release_without_a_released_event_still_has_a_variance():
    """The first trap: released curves without events tell a variance of zero."""
    study = survival_study(8, rows=2000, rate=1e-9, censoring=0.0)
    run = record(run_of("label"), study, Request("label", Fraction(1)))
    assert run.estimate.quantities[0].variances[0] > 0
    low, high = run.estimate.interval
    assert high - low > 1.05 * np.subtract(*reversed(run.estimate.noise_interval))


def test_no_private_range_cuts_off_rare_events():
    """The second trap: a narrower range would clip the events of a rare kind."""
    study = survival_study(9, rows=2000, rate=0.02)
    run = record(run_of("label"), study, Request("label", Fraction(1)))
    assert [call.spend.step for call in run.calls] == ["times and events", "outcome sum"]


def test_refusals_speak_of_declarations_alone():
    study = survival_study(0, censoring_by="b<0.5")
    with pytest.raises(ArgumentError, match="belong to label level"):
        estimate_study(study, Request("sample", Fraction(1)), METHOD["sample"])
    with pytest.raises(ArgumentError, match="takes no time to an event"):
        estimate_study(survival_study(0), Request("label", Fraction(1)), METHODS["published"])


def test_a_recording_of_one_study_replays_on_another_entry():
    study = survival_study(5)
    run = partial(estimate_study, request=Request("label", Fraction(1)), method=METHOD["label"])
    first = Recording()
    release = run(study, recorder=first, seed=1)
    other = with_record(study, 4, 12.0, True)
    assert run(other, recorder=Recording(source=first), seed=1) == release
