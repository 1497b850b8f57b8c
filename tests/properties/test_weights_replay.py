"""Neighbouring outcomes under sampling weights, earlier outputs replayed."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.domain import Domain, Interval, Outcome, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.engines.threads import single_threaded_blas
from private_ate.methods.calibrated.method import estimate_calibrated
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.calibrated.weights import ArmWeights, PublicWeights
from private_ate.methods.registry import METHODS
from private_ate.methods.subgroups import estimate_subgroups
from private_ate.privacy.quantization import OUTCOME_STEPS, WEIGHT_BITS
from private_ate.request import Request

ROWS = 151
REQUESTS = [
    {},
    {"estimand": "att"},
    {"estimand": "atc"},
    {"estimand": "ato"},
    {"confidence": None},
    {"options": CalibratedOptions(means=True)},
    {"options": CalibratedOptions(terms="plain")},
    {"rows_per_person": 2},
    {"rows_per_person": 2, "options": CalibratedOptions(means=True)},
    {"options": CalibratedOptions(clip_share="0.1")},
]


def sampled_study(missing=None, seed=0):
    rng = np.random.default_rng(seed)
    covariates = rng.random((3, ROWS))
    treatment = rng.random(ROWS) < 0.2 + 0.6 * covariates[0]
    outcome = rng.integers(0, OUTCOME_STEPS + 1, ROWS).astype(np.int32)
    names = {f"x{j}": Interval(0, 1) for j in range(3)}
    bounds = Outcome("y", Interval(0, 1), missing)
    domain = Domain("t", bounds, names, weights=("w", Interval(0, 40)))
    weights = rng.random(ROWS) ** 3
    weights[::9] = 0.0
    observed = None if missing is None else rng.random(ROWS) < 0.8
    return LocalStudy(domain, covariates, treatment, outcome, weights=weights, observed=observed)


def findings(study, request, changed):
    low, high = study.outcome.copy(), study.outcome.copy()
    low[changed], high[changed] = 0, OUTCOME_STEPS
    pair = (replace(study, outcome=values) for values in (low, high))
    return replay.replay_findings(estimate_calibrated, *pair, request)


@pytest.mark.parametrize("request_", REQUESTS)
@pytest.mark.parametrize("row", [0, 1, 70, 150])
def test_no_input_moves_further_than_declared(request_, row):
    request = Request("label", Fraction(1), **request_)
    changed = [row] if request.rows_per_person == 1 else [row, (row + 1) % ROWS]

    assert findings(sampled_study(), request, changed) == []


@pytest.mark.parametrize("missing", ["public", "private"])
@pytest.mark.parametrize("row", [0, 1, 70])
def test_nor_where_outcomes_are_missing(missing, row):
    request = Request("label", Fraction(1))

    assert findings(sampled_study(missing), request, [row]) == []


def mean_weight(design):
    return design.found.weight / design.rows


def test_a_sensitivity_that_forgets_the_sampling_weights_is_found(monkeypatch):
    """The planted fault: the largest weight as if every unit had the mean sampling weight."""
    study, request = sampled_study(), Request("label", Fraction(8), confidence=None)
    equal = property(
        lambda weights: tuple(
            round(arm.problem.level * mean_weight(weights.design) * 2**WEIGHT_BITS)
            for arm in weights.arms
        )
    )
    monkeypatch.setattr(PublicWeights, "largest", equal)

    assert any("moves" in found for row in range(ROWS) for found in findings(study, request, [row]))


def sampled_arms_study(missing=None, seed=0):
    study = sampled_study(missing, seed)
    arm = np.random.default_rng([seed, 1]).integers(0, 3, ROWS).astype(np.uint8)
    declared = Treatment("t", arms=("a", "b", "c"))
    return replace(study, domain=replace(study.domain, treatment=declared), treatment=arm)


@pytest.mark.parametrize(
    "request_",
    [{}, {"among": "b"}, {"confidence": None}, {"rows_per_person": 2}],
)
@pytest.mark.parametrize("missing", [None, "public"])
def test_no_input_of_three_arms_moves_further_than_declared(request_, missing):
    request, study = Request("label", Fraction(1), **request_), sampled_arms_study(missing)
    for row in (0, 1, 70, 149):
        changed = [row] if request.rows_per_person == 1 else [row, row + 1]
        assert findings(study, request, changed) == []


@pytest.mark.parametrize("make", [sampled_study, sampled_arms_study])
def test_the_heaviest_unit_moves_its_sum_by_the_whole_sensitivity(make):
    request, study = Request("label", Fraction(1), confidence=None), make()
    shares = []
    for row in [0, *np.argsort(study.weights)[-8:].tolist()]:
        low, high = study.outcome.copy(), study.outcome.copy()
        low[row], high[row] = 0, OUTCOME_STEPS
        calls = [
            replay.record(estimate_calibrated, replace(study, outcome=values), request).calls
            for values in (low, high)
        ]
        shares.append(replay.moved_share(calls[0][0], calls[1][0]))

    assert max(shares) == 1.0
    assert shares[0] == 0.0  # of sampling weight zero


@pytest.mark.parametrize("make", [sampled_study, sampled_arms_study])
def test_weights_stay_below_their_cap_and_add_up_to_n(monkeypatch, make):
    study, seen = make(), []
    whole = ArmWeights.of

    def noted(weights, rows):
        found = whole(weights, rows)
        assert found.max() <= weights.cap * (1 + 1e-12)
        assert (study.weights[rows.rows] > 0).all()
        seen.append(found.sum())
        return found

    monkeypatch.setattr(ArmWeights, "of", noted)
    replay.record(estimate_calibrated, study, Request("label", Fraction(1, 10)))

    np.testing.assert_allclose(seen, ROWS, rtol=1e-9)


def run_by(study, request, noise):
    with single_threaded_blas():  # as the front door has it
        return estimate_subgroups(study, request, METHODS["calibrated"], noise)


@pytest.mark.parametrize("overall", [False, True])
@pytest.mark.parametrize("make", [sampled_study, sampled_arms_study])
def test_nor_does_one_of_subgroups_that_count_by_their_weights(make, overall):
    study = make()
    request = Request("label", Fraction(1), by=("x1<0.4",), overall=overall)
    for row in (0, 1, 70):
        low, high = study.outcome.copy(), study.outcome.copy()
        low[row], high[row] = 0, OUTCOME_STEPS
        pair = (replace(study, outcome=values) for values in (low, high))
        assert replay.replay_findings(run_by, *pair, request) == []
