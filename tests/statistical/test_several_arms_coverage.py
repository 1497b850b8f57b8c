"""Intervals of several arms under strong confounding."""

from fractions import Fraction

import numpy as np
import pytest

from private_ate.data.files import read_table
from private_ate.datasets.several_arms import SeveralArms, generate_several_arms
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.request import Request

STUDIES = 20
LEAST_COVERAGE = 0.85


def covered(epsilon, arms=3, size=10_000):
    """Return how often an interval holds its contrast, over fresh studies and all pairs."""
    found = []
    for seed in range(STUDIES):
        data = generate_several_arms(SeveralArms(size, arms), 40_000 + seed)
        study = LocalStudy.encode(read_table(data.frame), data.domain)
        request = Request("sample", Fraction(epsilon))
        estimate = estimate_blocks(study, request, Noise(SeededEntropy(seed)))
        assert estimate.settings.adjusted
        true_means = [data.true_means[label] for label in data.domain.treatment.coded]
        for row in estimate.rows:
            true = true_means[row.arm] - true_means[row.against]
            found.append(row.interval[0] <= true <= row.interval[1])
    return np.mean(found)


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("arms", [3, 4])
def test_intervals_of_several_arms_cover_under_strong_confounding(arms, epsilon):
    assert covered(epsilon, arms) >= LEAST_COVERAGE
