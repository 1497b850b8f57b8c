"""Neighbouring outcomes through subgroups, outputs replayed: a cell has all of ε, none more."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.engines.local import LocalStudy
from private_ate.engines.threads import single_threaded_blas
from private_ate.methods.calibrated.method import estimate_rows
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.registry import METHODS
from private_ate.methods.subgroups import estimate_subgroups, learned_for_subgroups
from private_ate.privacy.distributions import staircase_variance
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from several_arms import arm_study

TWO = ("x0<0.5", "x1<0.4")
ASKED = [
    {},
    {"overall": True},
    {"confidence": None},
    {"overall": True, "target": "track"},
    {"options": CalibratedOptions(clip_share="0.1")},
    {"overall": True, "options": CalibratedOptions(means=True)},
]
OF_TWO = [{"estimand": name, "overall": True} for name in ("att", "atc", "ato")]


def run(study, request, noise):
    with single_threaded_blas():  # as the front door has it
        return estimate_subgroups(study, request, METHODS["calibrated"], noise)


def neighbours(study, row):
    low, high = study.outcome.copy(), study.outcome.copy()
    low[row], high[row] = 0, OUTCOME_STEPS
    return replace(study, outcome=low), replace(study, outcome=high)


def cell_of(study):
    return 2 * (study.covariates[0] >= 0.5) + (study.covariates[1] >= 0.4)


@pytest.mark.parametrize(
    ("arms", "asked"),
    [(arms, asked) for arms in (2, 3) for asked in ASKED]
    + [(2, asked) for asked in OF_TWO]
    + [(3, {"among": "a1", "overall": True})],
)
def test_no_input_moves_further_than_declared(arms, asked):
    study = arm_study(arms, rows=120)
    request = Request("label", Fraction(1), by=TWO, **asked)
    for cell in (3,) if asked else range(4):
        row = int(np.flatnonzero(cell_of(study) == cell)[0])

        assert replay.replay_findings(run, *neighbours(study, row), request) == []


@pytest.mark.parametrize("arms", [2, 3])
def test_every_cell_spends_the_whole_budget_and_half_of_it_beside_all_units(arms):
    study = arm_study(arms, rows=120)
    for overall, whole in ((False, Fraction(1)), (True, Fraction(1, 2))):
        request = Request("label", Fraction(1), by=TWO, overall=overall)
        spends = replay.record(run, study, request).noise.spends
        spent = {}
        for spend in spends:
            spent[spend.part] = spent.get(spend.part, 0) + spend.epsilon
        assert spent.pop("", Fraction(0)) == 1 - whole
        assert len(spent) == 4
        assert set(spent.values()) == {whole}


@pytest.mark.parametrize("arms", [2, 3])
def test_eight_cells_each_carry_the_noise_of_the_whole_budget(arms):
    study = arm_study(arms, rows=500, seed=3)
    by = ("x0<0.5", "x1<0.5", "x2<0.5")
    request = Request("label", Fraction(1), by=by, confidence=None)
    calls = [call for call in replay.record(run, study, request).calls if call.spend.part]
    assert len({call.spend.part for call in calls}) == 8
    drawn = []
    for call in calls:
        sizes, exact = np.array(call.spend.sensitivity), np.atleast_1d(call.values)
        for _ in range(100):
            drawn += list((np.atleast_1d(call.draw()) - 2 * exact) / (2 * sizes))
    measured = float(np.mean(np.array(drawn, dtype=float) ** 2))
    assert measured == pytest.approx(staircase_variance(1.0), rel=0.2)
    assert measured < staircase_variance(0.5) / 2  # what cells that share ε would carry at least


def test_all_units_paid_for_have_the_calls_of_a_request_without_subgroups_at_half_epsilon():
    study = arm_study(2, rows=400, seed=7)
    request = Request("label", Fraction(1), by=TWO, overall=True)
    spends = replay.record(run, study, request).noise.spends
    half = Request("label", Fraction(1, 2))
    alone = replay.record(METHODS["calibrated"].run, study, half).noise.spends
    assert [spend for spend in spends if not spend.part] == [
        replace(spend, step=f"all units: {spend.step}") for spend in alone
    ]


def test_a_cell_alone_has_the_sensitivity_that_it_has_among_others():
    study = arm_study(2, rows=400, seed=4)
    request = Request("label", Fraction(1), by=("x0<0.5",))
    together = replay.record(run, study, request).noise.spends
    rows = study.reordered(np.flatnonzero(study.covariates[0] < 0.5))
    each = replace(request, by=())
    learned = learned_for_subgroups(study.public(), each, 4)

    def with_features_of_all(study, request, noise):
        return estimate_rows(study, request, noise, learned)

    alone = replay.record(with_features_of_all, rows, each).noise.spends

    found = [spend for spend in together if spend.part == "x0<0.5"]
    assert [replace(spend, part="") for spend in found] == alone


def test_cells_that_share_a_person_are_found(monkeypatch):
    study = arm_study(2, rows=120)
    honest = LocalStudy.divided

    def overlapping(self, cell_of, cells):
        _, *others = honest(self, cell_of, cells)
        return (self, *others)

    monkeypatch.setattr(LocalStudy, "divided", overlapping)
    row = int(np.flatnonzero(cell_of(study) == 3)[0])
    request = Request("label", Fraction(1), by=TWO)
    found = replay.replay_findings(run, *neighbours(study, row), request)
    assert any("several parts" in finding for finding in found)
