"""The noise of several outcomes: its law, and how much smaller it is than that of splitting ε."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

import replay
from private_ate.engines.threads import single_threaded_blas
from private_ate.methods.outcomes import estimate_outcomes
from private_ate.methods.registry import METHODS
from private_ate.privacy.distributions import (
    SharedNoise,
    linf_variance,
    staircase_variance,
    sum_noise,
)
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import linf_cdf, linf_log_density, linf_quantile
from private_ate.release.intervals import half_width, noise_draws, noise_half_width, noise_quantile
from private_ate.request import Request
from several_outcomes import outcome_study

ONE = Fraction(1)
DRAWS = 1500
# The standard deviation beside that of Laplace noise with a part of ε for each outcome.
SHARES = {2: 0.71, 5: 0.53, 10: 0.47}


def drawn(sizes, draws=DRAWS, seed=3, epsilon=ONE):
    """Return draws for zeros, in sensitivities over ε."""
    noise = Noise(SeededEntropy(seed))
    rows = [
        noise.cubes("x", [[0] * len(sizes)], sensitivities=[sizes], epsilon=epsilon)[0]
        for _ in range(draws)
    ]
    return np.array(rows, dtype=float) / 2 / np.array(sizes, dtype=float) * float(epsilon)


@pytest.mark.parametrize("outcomes", [2, 5, 10])
def test_the_deviation_is_that_share_of_splitting(outcomes):
    sizes = [10**6 * (place + 1) for place in range(outcomes)]

    measured = drawn(sizes).std(axis=0) / (math.sqrt(2) * outcomes)

    assert measured == pytest.approx(SHARES[outcomes], rel=0.08)
    assert measured.mean() == pytest.approx(SHARES[outcomes], rel=0.03)
    assert math.sqrt(linf_variance(outcomes) / 2) / outcomes == pytest.approx(
        SHARES[outcomes], abs=0.005
    )


@pytest.mark.parametrize("outcomes", [2, 5, 10])
def test_a_release_carries_that_noise_in_every_outcome(outcomes):
    study = outcome_study(2, outcomes, rows=60)
    request = Request("label", ONE, confidence=None, target="track")

    def run(held, asked, noise):
        with single_threaded_blas():
            return estimate_outcomes(held, asked, METHODS["calibrated"], noise)

    recorded = replay.record(run, study, request)
    (call,) = recorded.calls
    again = np.array([call.draw() for _ in range(DRAWS)], dtype=float)
    noise = (again - 2 * np.array(call.values, dtype=float)) / 2
    measured = noise.reshape(DRAWS, outcomes).std(axis=0) / np.array(call.spend.sensitivity, float)

    assert measured == pytest.approx(math.sqrt(linf_variance(outcomes)), rel=0.08)
    assert (measured < 0.85 * math.sqrt(staircase_variance(1 / outcomes))).all()  # of a split ε
    laws = [one.quantities[0].noise for _, one in recorded.estimate.further]
    told = [law.unit * math.sqrt(linf_variance(outcomes)) for (law,) in laws]
    widths = [place.bounds.width for place in study.domain.further]
    unit = np.array(widths) / study.size / 2.0 ** (30 + 24)
    assert told == pytest.approx(
        unit * measured[1:] * np.array(call.spend.sensitivity[1:]), rel=0.1
    )


@pytest.mark.parametrize("outcomes", [2, 3, 7])
def test_one_coordinate_follows_the_law_that_intervals_are_made_of(outcomes):
    noise = drawn([5 << 20] * outcomes)

    for place in range(outcomes):
        assert stats.kstest(noise[:, place], lambda x: linf_cdf(x, outcomes)).pvalue > 1e-4
        assert stats.kstest(1.5 * noise[:, place], lambda x: linf_cdf(x, outcomes)).pvalue < 1e-4


def test_coordinates_share_their_reach_and_nothing_else():
    noise = drawn([1 << 30, 1 << 40, 1 << 20])

    reach = np.abs(noise).max(axis=1)
    assert stats.kstest(reach, stats.gamma(3).cdf).pvalue > 1e-4
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.15
    assert np.corrcoef(np.abs(noise.T)).min() > 0.15


def test_rows_of_a_table_are_drawn_apart():
    noise = Noise(SeededEntropy(4))
    table = np.array(
        [
            noise.cubes("x", [[0, 0]] * 2, sensitivities=[[1 << 20] * 2] * 2, epsilon=ONE)
            for _ in range(DRAWS)
        ],
        dtype=float,
    )
    reach = np.abs(table).max(axis=2)
    assert abs(np.corrcoef(reach.T)[0, 1]) < 0.15


def test_inputs_and_sensitivities_of_one_step_are_served():
    noise = Noise(SeededEntropy(5))
    answers = [
        noise.cubes("x", [[7, -3]], sensitivities=[[1, 1]], epsilon=ONE)[0] for _ in range(400)
    ]
    assert np.mean(answers, axis=0) == pytest.approx([14, -6], abs=1.0)


@pytest.mark.parametrize("outcomes", [1, 2, 6])
def test_the_law_agrees_with_itself(outcomes):
    total, _ = integrate.quad(lambda x: math.exp(linf_log_density(np.array(x), outcomes)), -80, 80)
    square, _ = integrate.quad(
        lambda x: x * x * math.exp(linf_log_density(np.array(x), outcomes)), -80, 80
    )
    assert total == pytest.approx(1)
    assert square == pytest.approx(linf_variance(outcomes))
    for coverage in (0.5, 0.95, 0.999):
        point = np.array(linf_quantile(coverage, outcomes))
        assert 2 * linf_cdf(point, outcomes) - 1 == pytest.approx(coverage)


def test_one_outcome_of_the_law_is_laplace():
    assert linf_quantile(0.95, 1) == pytest.approx(-math.log(0.05))
    assert linf_variance(1) == 2


def test_intervals_of_shared_noise_cover_what_was_drawn():
    law = SharedNoise("laplace", 2.0, Fraction(1, 2), 3)
    uniform = (np.arange(100_000) + 0.5) / 100_000
    values = noise_draws(law, uniform)

    assert values.std() == pytest.approx(2.0 / 0.5 * math.sqrt(linf_variance(3)), rel=0.01)
    half = noise_half_width(0.9, [law])
    assert half == pytest.approx(2.0 * noise_quantile(law, 0.9))
    assert np.mean(np.abs(values) <= half) == pytest.approx(0.9, abs=0.002)
    rng = np.random.default_rng(1)
    both = rng.permutation(values) + rng.permutation(values) + rng.normal(0, 5, values.size)
    wide = half_width(0.9, [law, law], [(25.0,)], "convolved")
    assert np.mean(np.abs(both) <= wide) == pytest.approx(0.9, abs=0.006)


def test_the_quieter_law_is_taken():
    assert sum_noise(1, ONE).name == "staircase"
    for outcomes in (2, 5, 10):
        for epsilon in ("0.1", "1", "4", "20", "100"):
            law = sum_noise(outcomes, Fraction(epsilon))
            split = staircase_variance(float(Fraction(epsilon) / outcomes))
            cube = linf_variance(outcomes) / float(Fraction(epsilon)) ** 2
            assert law.variance == pytest.approx(min(split, cube))
    assert sum_noise(2, ONE).outcomes == 2
    assert sum_noise(2, Fraction(60)).name == "staircase"
