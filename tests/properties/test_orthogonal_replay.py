"""Neighbouring studies, earlier outputs replayed: no input moves further than was declared."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.estimators.orthogonal import aggregate, strata
from private_ate.estimators.orthogonal import method as orthogonal
from private_ate.estimators.orthogonal.method import OrthogonalOptions, estimate_orthogonal
from private_ate.estimators.request import Request
from private_ate.models.standardization import Scaling
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS

DIMENSION = 3
ADJUST = OrthogonalOptions(adjust=True)
COMPARE = OrthogonalOptions(adjust=False)


def study_of(covariates, treatment, outcome):
    domain = Domain(
        treatment="t",
        outcome=("y", Interval(0, 1)),
        covariates={f"x{j}": Interval(0, 1) for j in range(covariates.shape[0])},
    )
    return LocalStudy(domain, covariates, treatment, outcome)


def random_study(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    covariates = rng.beta(2, 5, (DIMENSION, rows))
    treatment = rng.random(rows) < covariates[0] + 0.3
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    return study_of(covariates, treatment, outcome)


def with_rows_replaced(study, rows, *, covariates, treated, outcome):
    x, t, y = study.covariates.copy(), study.treatment.copy(), study.outcome.copy()
    x[:, rows], t[rows], y[rows] = covariates, treated, outcome
    return study_of(x, t, y)


def extreme_pairs(study, rows=slice(0, 1)):
    """Two records that lie as far apart as the domain allows, in several directions."""
    corners = [
        ((0.0, True, 0), (1.0, True, OUTCOME_STEPS)),
        ((0.0, True, 0), (1.0, False, OUTCOME_STEPS)),
        ((1.0, True, OUTCOME_STEPS), (0.0, False, OUTCOME_STEPS)),
        ((0.5, False, 0), (0.0, True, 0)),
        ((1.0, False, OUTCOME_STEPS), (1.0, False, 0)),
    ]
    for pair in corners:
        yield tuple(
            with_rows_replaced(study, rows, covariates=x, treated=t, outcome=y) for x, t, y in pair
        )


@pytest.mark.parametrize("options", [ADJUST, COMPARE], ids=["adjusted", "compared"])
@pytest.mark.parametrize("confidence", [0.95, None])
@pytest.mark.parametrize("epsilon", ["0.3", "20"])
def test_no_step_moves_further_than_it_declares(options, confidence, epsilon):
    request = Request("sample", Fraction(epsilon), confidence=confidence, options=options)

    for number, (one, other) in enumerate(extreme_pairs(random_study())):
        assert not replay.replay_findings(estimate_orthogonal, one, other, request, seed=number)


@pytest.mark.parametrize("estimand", ["att", "atc", "ato"])
@pytest.mark.parametrize("epsilon", ["0.3", "20"])
def test_no_estimand_moves_a_step_further(estimand, epsilon):
    request = Request("sample", Fraction(epsilon), options=ADJUST, estimand=estimand)

    for number, (one, other) in enumerate(extreme_pairs(random_study())):
        assert not replay.replay_findings(estimate_orthogonal, one, other, request, seed=number)


def test_the_outcome_model_keeps_its_promise_too():
    request = Request("sample", Fraction(60), options=ADJUST)
    study = random_study(rows=2000)

    tape = replay.record(estimate_orthogonal, study, request).tape
    findings = [
        replay.replay_findings(estimate_orthogonal, one, other, request)
        for one, other in extreme_pairs(study)
    ]

    assert "outcome model" in [heard.spend.step for heard in tape]
    assert not any(findings)


def test_rows_of_several_blocks_keep_the_promise():
    request = Request("sample", Fraction(1), options=ADJUST)
    study = random_study(rows=(1 << 14) + 100)

    one, other = next(iter(extreme_pairs(study, rows=slice(study.size - 1, study.size))))

    assert not replay.replay_findings(estimate_orthogonal, one, other, request)


@pytest.mark.parametrize("options", [ADJUST, COMPARE], ids=["adjusted", "compared"])
def test_a_person_with_three_rows_is_covered_when_declared(options):
    request = Request("sample", Fraction(2), rows_per_person=3, options=options)

    for one, other in extreme_pairs(random_study(), rows=slice(0, 3)):
        assert not replay.replay_findings(estimate_orthogonal, one, other, request)


@pytest.mark.parametrize("options", [ADJUST, COMPARE], ids=["adjusted", "compared"])
def test_a_person_with_three_rows_is_found_when_not_declared(options):
    request = Request("sample", Fraction(2), options=options)

    findings = [
        finding
        for one, other in extreme_pairs(random_study(), rows=slice(0, 3))
        for finding in replay.replay_findings(estimate_orthogonal, one, other, request)
    ]

    assert any("times its sensitivity" in finding for finding in findings)


def findings_of(options, epsilon=60):
    request = Request("sample", Fraction(epsilon), options=options)
    study = random_study(rows=2000)
    return [
        finding
        for one, other in extreme_pairs(study)
        for finding in replay.replay_findings(estimate_orthogonal, one, other, request)
    ]


MECHANISMS = {
    "cube": ("standardisation",),
    "laplace": ("cell counts", "cell sums", "variance", "score spread"),
    "staircase": ("effect",),
}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_halved_sensitivity_is_found(monkeypatch, mechanism):
    honest = getattr(Noise, mechanism)

    def halved(self, step, values, *, sensitivity, epsilon):
        return honest(self, step, values, sensitivity=max(sensitivity // 4, 1), epsilon=epsilon)

    monkeypatch.setattr(Noise, mechanism, halved)

    found = " ".join(findings_of(ADJUST))

    assert any(step in found for step in MECHANISMS[mechanism])


def test_a_missing_clip_of_covariates_is_found(monkeypatch):
    def unclipped(self, block):
        scaled = block.covariates.T * self.slope[:, None] + self.shift[:, None]
        return np.vstack([np.ones(block.treatment.size), scaled])

    monkeypatch.setattr(Scaling, "features", unclipped)

    # At a small ε covariates are stretched to two standard deviations, so the clip bites.
    assert "propensity model" in " ".join(findings_of(ADJUST, epsilon=2))


def test_a_missing_clip_of_outcomes_is_found(monkeypatch):
    honest = strata._centred

    monkeypatch.setattr(strata, "_centred", lambda block: 3 * honest(block))

    assert "arm sums" in " ".join(findings_of(COMPARE))


def test_a_missing_clip_of_scores_is_found(monkeypatch):
    honest = aggregate.CellScore.of

    def too_narrow(*arguments):
        score = honest(*arguments)
        return replace(score, low=score.low / 8, high=score.high / 8)

    class Unclipped:
        def __getattr__(self, name):
            return (lambda values, *_bounds: values) if name == "clip" else getattr(np, name)

    monkeypatch.setattr(aggregate.CellScore, "of", too_narrow)
    monkeypatch.setattr(aggregate, "np", Unclipped())

    assert "'effect'" in " ".join(findings_of(COMPARE))


def test_a_budget_that_is_spent_twice_is_found(monkeypatch):
    honest = orthogonal.release_variance

    def twice(*arguments, **keywords):
        honest(*arguments, **keywords)
        return honest(*arguments, **keywords)

    monkeypatch.setattr(orthogonal, "release_variance", twice)

    assert any("the steps cost" in finding for finding in findings_of(COMPARE))


def test_a_step_that_switches_on_the_records_is_found(monkeypatch):
    honest = orthogonal.release_arms

    def peeking(study, noise, **keywords):
        if study.outcome[0] > OUTCOME_STEPS // 2:
            noise.laplace("extra", [0], sensitivity=1, epsilon=Fraction(1, 100))
        return honest(study, noise, **keywords)

    monkeypatch.setattr(orthogonal, "release_arms", peeking)

    assert any("different mechanisms" in finding for finding in findings_of(COMPARE))
