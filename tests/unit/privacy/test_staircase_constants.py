"""The closed forms of the staircase law against its density and against the sampler."""

import math
from fractions import Fraction

import numpy as np
import pytest

from private_ate.errors import ArgumentError
from private_ate.privacy.distributions import staircase_variance
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_quantile

EPSILONS = (0.01, 0.3, 1.0, 2.7, 6.0, 30.0)


def density_parts(epsilon):
    """The law of |X| as intervals (from, to, mass), written down from its definition."""
    inner, decay = 1 / (1 + math.exp(epsilon / 2)), math.exp(-epsilon)
    first = inner / (inner + (1 - inner) * decay)
    stairs = math.ceil(60 / epsilon) + 2
    for whole in range(stairs):
        mass = (1 - decay) * decay**whole
        yield whole, whole + inner, mass * first
        yield whole + inner, whole + 1, mass * (1 - first)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_variance_is_that_of_the_density(epsilon):
    exact = sum(
        mass * (high**3 - low**3) / (3 * (high - low)) for low, high, mass in density_parts(epsilon)
    )

    assert staircase_variance(epsilon) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("coverage", [0.001, 0.5, 0.9, 0.95, 0.9999])
def test_the_quantile_holds_exactly_its_coverage(epsilon, coverage):
    size = staircase_quantile(coverage, epsilon)

    inside = sum(
        mass * min(max((size - low) / (high - low), 0.0), 1.0)
        for low, high, mass in density_parts(epsilon)
    )

    assert inside == pytest.approx(coverage, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1e-12, 1e6])
def test_extreme_budgets_give_finite_constants(epsilon):
    assert math.isfinite(staircase_variance(epsilon))
    assert math.isfinite(staircase_quantile(0.95, epsilon))


def test_a_coverage_outside_the_unit_interval_is_refused():
    with pytest.raises(ArgumentError, match="coverage"):
        staircase_quantile(1.0, 1.0)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_the_sampler_has_the_stated_variance_and_coverage(epsilon):
    noise, grid = Noise(SeededEntropy(7)), 1 << 30
    draws = (
        np.array(
            [noise.staircase("x", 0, sensitivity=grid, epsilon=epsilon) for _ in range(8000)],
            dtype=float,
        )
        / grid
        / 2
    )

    size = staircase_quantile(0.9, float(epsilon))

    # Four standard errors of a share and of a mean square; kurtosis is at most 15 here.
    assert abs(np.mean(np.abs(draws) <= size) - 0.9) < 4 * math.sqrt(0.09 / 8000)
    assert np.mean(draws**2) == pytest.approx(staircase_variance(float(epsilon)), rel=0.17)
