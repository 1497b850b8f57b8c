"""Error and coverage of the blocks method on fresh confounded studies; mostly long runs."""

from itertools import pairwise

import numpy as np
import pytest

from private_ate import estimate_ate
from private_ate.datasets import Correlated, generate

# Four binomial standard errors below 95 % for forty runs, rounded down.
LEAST_COVERAGE = 0.81


def runs(size, dimension, epsilon, count, *, method="blocks", share=0.5):
    study = Correlated(size, dimension, share, dichotomized=False)
    for seed in range(count):
        data = generate(study, 70_000 + seed)
        release = estimate_ate(
            data.frame, domain=data.domain, level="sample", epsilon=epsilon, method=method,
            seed=seed,
        )  # fmt: skip
        yield release, data.true_effect


def mean_error(found):
    return np.mean([abs(release.ate / truth - 1) for release, truth in found])


@pytest.mark.audit
@pytest.mark.parametrize(
    ("size", "dimension", "epsilon"),
    [(2000, 5, 1), (5000, 20, 1), (5000, 60, 2), (10_000, 20, 0.5), (50_000, 5, 0.5)],
)
def test_intervals_cover_the_true_effect(size, dimension, epsilon):
    covered = [
        release.interval[0] <= truth <= release.interval[1]
        for release, truth in runs(size, dimension, epsilon, 40)
    ]

    assert np.mean(covered) >= LEAST_COVERAGE


def test_a_hundred_treated_rows_of_five_thousand_are_adjusted():
    assert mean_error(runs(5000, 5, 4, 5, share=0.02)) < 0.2  # 0.5 with interactions left free


@pytest.mark.audit
@pytest.mark.parametrize(
    ("size", "dimension", "share"),
    [(1000, 5, 0.5), (1000, 20, 0.5), (5000, 20, 0.5), (5000, 20, 0.1), (5000, 5, 0.02)],
)
def test_more_budget_does_not_mean_more_error(size, dimension, share):
    errors = [
        [
            abs(release.ate / truth - 1)
            for release, truth in runs(size, dimension, epsilon, 30, share=share)
        ]
        for epsilon in (0.5, 1, 2, 4)
    ]

    for less, more in pairwise(errors):
        gap = np.array(more) - np.array(less)
        assert gap.mean() <= 3 * gap.std() / np.sqrt(gap.size)
