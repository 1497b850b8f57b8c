"""Coverage and accuracy of the orthogonal method on fresh studies; long runs."""

from fractions import Fraction

import numpy as np
import pytest

from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.estimators.orthogonal.method import OrthogonalOptions, estimate_orthogonal
from private_ate.estimators.request import Request
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS

EFFECT = 0.15
# Four standard errors below 95 % for the numbers of runs used here, rounded down.
LEAST_COVERAGE = {300: 0.90, 80: 0.85}


def confounded(rows, dimension, strength, seed):
    rng = np.random.default_rng(seed)
    covariates = rng.random((dimension, rows))
    total = (covariates - 0.5).sum(axis=0) * np.sqrt(12 / dimension)
    treatment = rng.random(rows) < 1 / (1 + np.exp(-strength * total))
    outcome = 0.5 + 0.06 * total + EFFECT * (treatment - 0.5) + 0.08 * rng.standard_normal(rows)
    steps = np.rint(np.clip(outcome, 0, 1) * OUTCOME_STEPS).astype(np.int32)
    names = {f"x{j}": Interval(0, 1) for j in range(dimension)}
    return LocalStudy(Domain("t", ("y", Interval(0, 1)), names), covariates, treatment, steps)


def estimates(rows, dimension, strength, epsilon, runs, adjust=None):
    request = Request("sample", Fraction(epsilon), options=OrthogonalOptions(adjust=adjust))
    return [
        estimate_orthogonal(
            confounded(rows, dimension, strength, run), request, Noise(SeededEntropy(run))
        )
        for run in range(runs)
    ]


@pytest.mark.audit
@pytest.mark.parametrize(
    ("rows", "dimension", "strength", "runs"), [(445, 3, 0.0, 300), (10_000, 5, 1.0, 80)]
)
@pytest.mark.parametrize("epsilon", ["1", "4"])
def test_intervals_cover_the_true_effect(rows, dimension, strength, runs, epsilon):
    covered = [
        one.interval[0] <= EFFECT <= one.interval[1]
        for one in estimates(rows, dimension, strength, epsilon, runs)
    ]

    assert np.mean(covered) >= LEAST_COVERAGE[runs]


@pytest.mark.audit
def test_adjustment_removes_nine_tenths_of_the_confounding():
    adjusted, compared = (
        np.mean([one.ate for one in estimates(10_000, 10, 1.0, "2", 20, adjust=adjust)]) - EFFECT
        for adjust in (True, False)
    )

    assert compared > 0.25 * EFFECT
    assert abs(adjusted) < 0.1 * compared


@pytest.mark.audit
def test_the_noise_interval_covers_the_last_step_as_often_as_it_says():
    study, request = confounded(400, 2, 0.5, 0), Request("sample", Fraction(1))
    drawn = [estimate_orthogonal(study, request, Noise(SeededEntropy(run))) for run in range(1500)]
    # The score hardly moves between runs, so the estimate without noise is nearly one number.
    centre = np.median([one.ate for one in drawn])

    covered = np.mean([one.noise_interval[0] <= centre <= one.noise_interval[1] for one in drawn])

    assert 0.92 < covered < 0.975


def test_a_confounded_study_is_adjusted_and_the_effect_found():
    [estimate] = estimates(20_000, 5, 1.0, "2", 1)

    assert estimate.settings.adjusted is True
    assert estimate.ate == pytest.approx(EFFECT, abs=0.02)  # the naive difference is off by 0.05
