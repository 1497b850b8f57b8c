"""Intervals of several arms under strong confounding: limited weights leave a bias, and say so."""

from fractions import Fraction

import numpy as np
import pytest

from private_ate.data.tables import read_table
from private_ate.datasets.several_arms import SeveralArms, generate_several_arms
from private_ate.engines.local import LocalStudy
from private_ate.estimators.orthogonal.method import estimate_orthogonal
from private_ate.estimators.orthogonal.several_arms import limits
from private_ate.estimators.request import Request
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise

STUDIES = 20
LEAST_COVERAGE = 0.90


def covered(epsilon, arms=3, size=10_000):
    """Return how often an interval holds its contrast, over fresh studies and all pairs."""
    found = []
    for seed in range(STUDIES):
        data = generate_several_arms(SeveralArms(size, arms), 40_000 + seed)
        study = LocalStudy.encode(read_table(data.frame), data.domain)
        request = Request("sample", Fraction(epsilon))
        estimate = estimate_orthogonal(study, request, Noise(SeededEntropy(seed)))
        assert estimate.settings.path == "score"
        for contrast in estimate.comparison.contrasts:
            true = data.true_means[contrast.arm] - data.true_means[contrast.against]
            found.append(contrast.interval[0] <= true <= contrast.interval[1])
    return np.mean(found)


@pytest.mark.coverage_cell
def test_intervals_allow_for_rows_that_limited_weights_leave_behind(monkeypatch):
    assert covered("4") >= LEAST_COVERAGE

    monkeypatch.setattr(limits, "_DRIFT_TREND", 0.0)
    assert covered("4") < LEAST_COVERAGE


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("arms", [3, 4])
def test_intervals_of_several_arms_cover_under_strong_confounding(arms, epsilon):
    assert covered(epsilon, arms) >= LEAST_COVERAGE
