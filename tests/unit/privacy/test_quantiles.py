"""Quantiles of the sum of two Laplace variables, against quadrature and against scipy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from private_ate.errors import ArgumentError
from private_ate.privacy.quantiles import two_laplace_quantile, two_laplace_tail

COVERAGES = [0.5, 0.9, 0.95, 0.999]


def convolved_coverage(reach: float, first: float, second: float) -> float:
    """Return P(|X + Y| ≤ reach) by integrating over Y."""
    outer = stats.laplace(scale=first)

    def inside(value: float) -> float:
        share = outer.cdf(reach - value) - outer.cdf(-reach - value)
        return math.exp(-value / second) / second * share

    # Y and −Y give the same share together, so half a line is enough.
    both = [integrate.quad(inside, *ends, limit=200) for ends in ((0, reach), (reach, np.inf))]
    return sum(value for value, _ in both)


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 0.5), (0.1, 3), (1, 0.999), (2, 1e-3)])
def test_the_quantile_has_the_coverage_it_says(coverage, first, second):
    reach = two_laplace_quantile(coverage, first, second)
    assert convolved_coverage(reach, first, second) == pytest.approx(coverage, abs=1e-7)


@pytest.mark.parametrize("coverage", COVERAGES)
def test_equal_scales_agree_with_a_difference_of_gamma_variables(coverage):
    """|X + Y| of equal scales: the tail is (1 + q/2) exp(−q), a mixture of gamma tails."""
    reach = two_laplace_quantile(coverage, 2.0, 2.0) / 2
    tail = (stats.gamma(1).sf(reach) + stats.gamma(2).sf(reach)) / 2
    assert tail == pytest.approx(1 - coverage, abs=1e-12)


@pytest.mark.parametrize("coverage", COVERAGES)
def test_a_single_scale_gives_the_laplace_quantile(coverage):
    expected = stats.laplace(scale=3).ppf((1 + coverage) / 2)
    assert two_laplace_quantile(coverage, 3, 0) == pytest.approx(expected, rel=1e-12)
    assert two_laplace_quantile(coverage, 0, 3) == pytest.approx(expected, rel=1e-12)
    assert two_laplace_quantile(coverage, 0, 0) == 0


@given(st.floats(0.01, 30), st.floats(1e-12, 1e-3))
def test_the_tail_is_continuous_where_the_scales_become_equal(size, gap):
    near, equal = two_laplace_tail(size, 1 - gap), two_laplace_tail(size, 1)
    assert near == pytest.approx(equal, rel=50 * gap * (1 + size) + 1e-12)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_any_two_scales_have_a_finite_quantile_that_grows_with_them(first, second):
    reach = two_laplace_quantile(0.95, first, second)
    largest = max(first, second)
    assert 2.99 * largest <= reach <= 5 * largest


@pytest.mark.parametrize("coverage", [0, 1, -1, 2, float("nan")])
def test_a_coverage_outside_its_range_is_refused(coverage):
    with pytest.raises(ArgumentError, match="coverage"):
        two_laplace_quantile(coverage, 1, 1)
