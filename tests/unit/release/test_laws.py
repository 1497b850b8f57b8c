"""Laws of sums of noises and normals, against closed forms and simulations."""

import numpy as np
import pytest

from private_ate.privacy.distributions import NoiseDistribution, staircase_variance
from private_ate.privacy.quantiles import (
    staircase_and_normal_quantile,
    two_laplace_quantile,
    two_staircase_quantile,
)
from private_ate.release.intervals import (
    _convolved,
    expected_size,
    half_width,
    noise_draws,
    noise_half_width,
)

LIKELY = tuple(np.linspace(0.5, 2.0, 20).tolist())


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 4])
@pytest.mark.parametrize("unit", [1.0, 0.3, 0.01])
def test_the_grid_agrees_with_closed_forms_of_two_noises(epsilon, unit):
    laplace = [NoiseDistribution("laplace", one, epsilon) for one in (1.0, unit)]
    exact = two_laplace_quantile(0.95, 1 / epsilon, unit / epsilon)
    assert _convolved(0.95, laplace, ()) == pytest.approx(exact, rel=1e-4)
    assert noise_half_width(0.95, laplace) == exact

    stairs = [NoiseDistribution("staircase", one, epsilon) for one in (1.0, unit)]
    sliced = two_staircase_quantile(0.95, epsilon, 1.0, unit)
    assert _convolved(0.95, stairs, ()) == pytest.approx(sliced, rel=1e-4)
    assert noise_half_width(0.95, stairs) == pytest.approx(sliced, rel=1e-4)


def test_steep_staircases_go_by_their_own_quantile():
    stairs = [NoiseDistribution("staircase", one, 20) for one in (1.0, 0.3)]
    assert noise_half_width(0.95, stairs) == two_staircase_quantile(0.95, 20, 1.0, 0.3)


def test_the_expected_size_is_the_mean_of_the_law():
    laplace = NoiseDistribution("laplace", 3.0, 2)
    assert expected_size([laplace], ()) == pytest.approx(1.5, rel=1e-3)
    assert expected_size([], [(4.0,)]) == pytest.approx(2 * np.sqrt(2 / np.pi), rel=1e-3)
    assert expected_size([], [(0.0,)]) == 0.0


def test_noise_and_a_normal_of_unknown_variance_agree_with_the_binary_quantile():
    law = NoiseDistribution("staircase", 1.5, 0.9)
    known = staircase_and_normal_quantile(0.95, 0.9, 1.5, np.sqrt(LIKELY))
    assert half_width(0.95, [law], [LIKELY], "convolved") == pytest.approx(known, rel=3e-3)


def test_the_law_of_several_errors_is_that_of_their_simulated_sum():
    laws = [
        NoiseDistribution("staircase", 1.0, 1),
        NoiseDistribution("staircase", 0.5, 1),
        NoiseDistribution("laplace", 1, 2),
    ]
    rng = np.random.default_rng(1)
    size = 400_000
    drawn = sum(noise_draws(law, rng.random(size)) for law in laws)
    drawn += np.sqrt(rng.choice(LIKELY, size)) * rng.normal(size=size)
    found = half_width(0.95, laws, [LIKELY], "convolved")
    assert np.mean(np.abs(drawn) <= found) == pytest.approx(0.95, abs=0.0015)
    wider = half_width(0.95, laws, [LIKELY], "in_squares")
    assert found < wider < 1.2 * found


def test_draws_have_the_variance_of_their_law():
    uniform = (np.arange(200_000) + 0.5) / 200_000
    for epsilon in (0.5, 2.0):
        drawn = noise_draws(NoiseDistribution("staircase", 3.0, epsilon), uniform)
        assert np.mean(drawn**2) == pytest.approx(9 * staircase_variance(epsilon), rel=0.01)
        assert abs(drawn.mean()) < 1e-9
        drawn = noise_draws(NoiseDistribution("laplace", 3.0, epsilon), uniform)
        assert np.mean(drawn**2) == pytest.approx(9 * 2 / epsilon**2, rel=0.01)


def test_without_any_error_the_half_width_is_zero():
    assert noise_half_width(0.95, [NoiseDistribution("staircase", 1.0, 1e6)] * 2) == 0.0
    assert noise_half_width(0.95, [NoiseDistribution("laplace", 0.0, 1)]) == 0.0
    assert half_width(0.95, [NoiseDistribution("laplace", 0.0, 1)], [(0.0,)], "convolved") == 0.0
    assert half_width(0.95, [NoiseDistribution("staircase", 1.0, 1e6)], [(1.0,)], "convolved") == (
        pytest.approx(1.96, abs=1e-3)
    )


def test_errors_that_are_rounding_alone_change_no_half_width():
    laws = [NoiseDistribution("staircase", 0.5, 0.7), NoiseDistribution("staircase", 0.2, 0.7)]
    alone = half_width(0.95, laws, [(1.0, 2.0)], "convolved")
    residue = NoiseDistribution("staircase", 1e-17, 0.7)

    assert half_width(0.95, [*laws, residue], [(1.0, 2.0), (1e-17,)], "convolved") == alone
    assert half_width(0.95, laws, [(1.0, 2.0), (1e-3,)], "convolved") > alone
