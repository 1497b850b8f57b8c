"""Neighbouring outcomes through the calibrated estimator, earlier outputs replayed."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.methods.calibrated import clipping
from private_ate.methods.calibrated import method as calibrated
from private_ate.methods.calibrated.method import estimate_calibrated
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

REQUESTS = [
    {},
    {"target": "track"},
    {"estimand": "att"},
    {"estimand": "atc"},
    {"confidence": None},
    {"options": CalibratedOptions(means=True)},
    {"rows_per_person": 2},
    {"rows_per_person": 2, "options": CalibratedOptions(means=True)},
    {"options": CalibratedOptions(clip_share="0.1")},
    {"rows_per_person": 2, "options": CalibratedOptions(clip_share="0.1")},
    {"estimand": "ato"},
    {"options": CalibratedOptions(terms="plain")},
    {"options": CalibratedOptions(outcome_sd=0.03)},
    {"rows_per_person": 2, "options": CalibratedOptions(outcome_sd=0.03)},
]


def random_study(rows=151, seed=0):
    rng = np.random.default_rng(seed)
    covariates = rng.random((3, rows))
    treatment = rng.random(rows) < 0.2 + 0.6 * covariates[0]
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    domain = Domain("t", ("y", Interval(0, 1)), {f"x{j}": Interval(0, 1) for j in range(3)})
    return LocalStudy(domain, covariates, treatment, outcome)


def neighbours(study, changed):
    """Two studies that differ in the outcomes of some rows, from one bound to the other."""
    low, high = study.outcome.copy(), study.outcome.copy()
    low[changed], high[changed] = 0, OUTCOME_STEPS
    return replace(study, outcome=low), replace(study, outcome=high)


def findings(request_, changed, seed=0):
    request = Request("label", Fraction(1), **request_)
    first, second = neighbours(random_study(seed=seed), changed)
    return replay.replay_findings(estimate_calibrated, first, second, request)


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("row", [0, 1, 70, 150])
def test_no_input_moves_further_than_declared(request_, row):
    changed = [row] if request_.get("rows_per_person", 1) == 1 else [row, (row + 1) % 151]

    assert findings(request_, changed) == []


def test_the_unit_of_largest_weight_moves_the_sum_by_the_whole_sensitivity():
    request = Request("label", Fraction(1), confidence=None)
    study = random_study(rows=41)
    shares = []
    for row in range(study.size):
        first, second = neighbours(study, [row])
        calls = [replay.record(estimate_calibrated, one, request).calls for one in (first, second)]
        shares.append(replay.moved_share(calls[0][0], calls[1][0]))

    assert max(shares) == 1.0


def test_a_halved_sensitivity_is_found(monkeypatch):
    whole = Noise.staircase

    def halved(self, step, value, *, sensitivity, epsilon):
        return whole(self, step, value, sensitivity=sensitivity // 2, epsilon=epsilon)

    monkeypatch.setattr(Noise, "staircase", halved)

    assert any(
        "'outcome sum' moves" in finding for row in range(40) for finding in findings({}, [row])
    )


def test_a_halved_sensitivity_of_the_variance_is_found(monkeypatch):
    whole = Noise.laplace

    def halved(self, step, values, *, sensitivity, epsilon):
        return whole(self, step, values, sensitivity=sensitivity // 2, epsilon=epsilon)

    monkeypatch.setattr(Noise, "laplace", halved)

    def furthest(row):  # the partner at the other bound makes the pair as far apart as can be
        study = random_study()
        study.outcome[:] = 0
        first, second = neighbours(study, [row])
        request = Request("label", Fraction(1))
        return replay.replay_findings(estimate_calibrated, first, second, request)

    assert any("'variance' moves" in finding for row in range(151) for finding in furthest(row))


def test_a_budget_spent_twice_is_found(monkeypatch):
    whole = calibrated.release_pair_variance

    def twice(*arguments):
        whole(*arguments)
        return whole(*arguments)

    monkeypatch.setattr(calibrated, "release_pair_variance", twice)

    assert any("cost" in finding for finding in findings({}, [0]))


def test_a_removed_clip_is_found(monkeypatch):
    request = Request("label", Fraction(1))

    def unclipped(row):
        first, second = neighbours(random_study(), [row])
        second.outcome[row] = np.int32(2**31 - 1)  # an outcome that nobody clipped to its bounds
        first.outcome[row] = np.int32(-(2**30))
        return replay.replay_findings(estimate_calibrated, first, second, request)

    assert unclipped(0) == []

    monkeypatch.setattr(
        clipping.OutcomeRange, "centre", lambda kept, outcome: outcome - np.int32(kept.middle)
    )

    assert any("moves" in finding for row in range(5) for finding in unclipped(row))
