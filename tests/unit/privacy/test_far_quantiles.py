"""Quantiles far out, where intervals of a confidence near one are read off."""

import numpy as np
import pytest
from scipy.special import ndtr

from private_ate.privacy.quantiles import (
    staircase_and_normal_quantile,
    staircase_cdf,
    two_staircase_quantile,
)

COVERAGES = (0.95, 0.99, 0.995, 0.999, 0.9999)


def chances(epsilon, reach=60.0, cells=600_001):
    """A fine grid over staircase noise and the chance of each of its cells."""
    edges = np.linspace(-reach, reach, cells)
    return (edges[1:] + edges[:-1]) / 2, np.diff(staircase_cdf(edges, epsilon))


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("deviation", [0.05, 1.0, 5.0])
def test_noise_and_sampling_are_covered_as_often_as_is_said(coverage, deviation):
    noise, chance = chances(0.7)
    half = staircase_and_normal_quantile(coverage, 0.7, 1.0, deviation)
    inside = ndtr((half - noise) / deviation) - ndtr((-half - noise) / deviation)
    assert 1 - chance @ inside == pytest.approx(1 - coverage, rel=0.03)


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("second", [0.1, 1.0])
def test_two_noises_are_covered_as_often_as_is_said(coverage, second):
    noise, chance = chances(0.7)
    half = two_staircase_quantile(coverage, 0.7, 1.0, second)
    upper = staircase_cdf((half - noise) / second, 0.7)
    inside = upper - staircase_cdf((-half - noise) / second, 0.7)
    assert 1 - chance @ inside == pytest.approx(1 - coverage, rel=0.03)


@pytest.mark.parametrize("epsilon", [1e4, 1e6])
def test_the_largest_budgets_have_quantiles_without_a_warning(epsilon):
    half = two_staircase_quantile(0.95, epsilon, 1.0, 1.0)

    assert 0 <= half < 1e-9
    assert staircase_cdf(np.array([-1.0, 0.0, 1.0]), epsilon) == pytest.approx([0.0, 0.5, 1.0])
