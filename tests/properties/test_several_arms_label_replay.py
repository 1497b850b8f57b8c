"""Neighbouring outcomes through the label-level methods for several arms, outputs replayed."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.methods.calibrated.method import estimate_calibrated
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.published.method import PublishedOptions, estimate_published
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from several_arms import arm_domain, arm_study

CALIBRATED = [
    {},
    {"target": "track"},
    {"among": "a1"},
    {"confidence": None},
    {"rows_per_person": 3},
    {"rows_per_person": 200},
    {"options": CalibratedOptions(clip_share="0.1")},
    {"options": CalibratedOptions(outcome_sd=0.03)},
    {"rows_per_person": 2, "options": CalibratedOptions(outcome_sd=0.03)},
]
PUBLISHED = [{}, {"options": PublishedOptions(k=None)}, {"rows_per_person": 3}]
METHODS = [(estimate_calibrated, asked) for asked in CALIBRATED]
METHODS += [(estimate_published, asked) for asked in PUBLISHED]


def neighbours(study, changed):
    """Two studies that differ in the outcomes of some rows, from one bound to the other."""
    low, high = study.outcome.copy(), study.outcome.copy()
    low[changed], high[changed] = 0, OUTCOME_STEPS
    return replace(study, outcome=low), replace(study, outcome=high)


def findings(method, asked, study, changed):
    request = Request("label", Fraction(1), **asked)
    return replay.replay_findings(method, *neighbours(study, changed), request)


@pytest.mark.parametrize(("method", "asked"), METHODS)
@pytest.mark.parametrize("arms", [3, 4])
def test_no_input_moves_further_than_declared(method, asked, arms):
    study = arm_study(arms, rows=90 + arms)
    for arm in range(arms) if not asked else (arms - 1,):
        first = int(np.flatnonzero(study.arm == arm)[0])
        rows = min(asked.get("rows_per_person", 1), 40)
        changed = (first + np.arange(rows)) % study.size  # of several people's worth of arms

        assert findings(method, asked, study, changed) == []


@pytest.mark.parametrize("rule", ["public", None])
def test_neighbours_with_rows_that_lack_an_outcome_are_as_close(rule):
    whole = arm_study(3)
    observed = np.arange(whole.size) % 5 != 1
    study = replace(whole, domain=arm_domain(3, missing=rule))
    if rule is not None:
        study = replace(study, observed=observed)
    for method in (estimate_calibrated, estimate_published):
        for row in (0, 2, 3):
            assert findings(method, {}, study, [row]) == []


def moved_shares(method, study):
    """Return by which share of its sensitivity the last call's input moves, row by row."""
    request = Request("label", Fraction(1), confidence=None)
    shares = np.zeros(study.size)
    for row in range(study.size):
        calls = [replay.record(method, one, request).calls for one in neighbours(study, [row])]
        shares[row] = replay.moved_share(calls[0][-1], calls[1][-1])
    return shares


@pytest.mark.parametrize("method", [estimate_calibrated, estimate_published])
def test_a_unit_of_largest_weight_moves_its_sum_by_the_whole_sensitivity(method):
    study = arm_study(3, rows=30, covariates=1)

    shares = moved_shares(method, study)

    for arm in range(3):
        assert shares[study.arm == arm].max() == 1.0


@pytest.mark.parametrize(
    ("method", "mechanism", "rows"),
    [
        (estimate_calibrated, "staircase_disjoint", 1),
        (estimate_calibrated, "staircase_by_arm", 2),
        (estimate_published, "laplace_disjoint", 1),
    ],
)
def test_a_halved_sensitivity_is_found(monkeypatch, method, mechanism, rows):
    whole = getattr(Noise, mechanism)

    def halved(self, step, values, *, sensitivities, **more):
        smaller = [size // 2 for size in sensitivities]
        return whole(self, step, values, sensitivities=smaller, **more)

    monkeypatch.setattr(Noise, mechanism, halved)
    study = arm_study(3, rows=24, covariates=1)
    asked = {"confidence": None, "rows_per_person": rows}
    found = [
        findings(method, asked, study, np.arange(row, row + rows) % study.size)
        for row in range(study.size)
    ]

    assert any("'outcome sums' moves" in finding for each in found for finding in each)


def test_a_variance_that_counts_all_arms_alike_is_found(monkeypatch):
    """The planted fault: the sensitivity of an arm of mean size, where a small one counts more."""
    whole = Noise.laplace

    def forgetful(self, step, values, *, sensitivity, epsilon):
        return whole(self, step, values, sensitivity=sensitivity // 3, epsilon=epsilon)

    study = arm_study(3, rows=15, covariates=1)
    study.outcome[:] = 0  # partners at the other bound make pairs as far apart as can be

    def found():
        every = (findings(estimate_calibrated, {}, study, [row]) for row in range(5))
        return [finding for each in every for finding in each]

    assert found() == []
    monkeypatch.setattr(Noise, "laplace", forgetful)
    assert any("'variance' moves" in finding for finding in found())
