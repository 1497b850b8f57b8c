from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from private_ate import NumericRangeError
from private_ate.privacy.entropy import (
    GENERATOR_BYTES,
    SecureEntropy,
    SeededEntropy,
    generator_from,
)
from private_ate.privacy.noise import Noise
from private_ate.privacy.rejection_samplers import (
    discrete_gaussian,
    discrete_gaussian_rows,
    draw_index,
)

# Fixed seeds: a right sampler fails with the probability of these thresholds, once and for all.
SURELY_RIGHT, SURELY_WRONG = 1e-4, 1e-12


def _fit(drawn, variance):
    """Return the χ² p-value of draws against the discrete Gaussian law."""
    reach = int(8 * float(variance) ** 0.5) + 3
    points = np.arange(-reach, reach + 1)
    law = np.exp(-(points**2) / (2 * float(variance)))
    law /= law.sum()
    counts = np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=points.size)
    common = law * drawn.size > 10
    observed = np.append(counts[common], counts[~common].sum() + 1e-9)
    expected = np.append(law[common], law[~common].sum()) * drawn.size + 1e-9
    return chisquare(observed, expected * observed.sum() / expected.sum()).pvalue


@pytest.mark.parametrize(
    "variance", [Fraction(1, 3), Fraction(2), Fraction(1000, 7), Fraction(900)]
)
def test_discrete_gaussian_rows_follow_their_law_and_not_a_nearby_one(variance):
    drawn = discrete_gaussian_rows(variance, 400_000, SeededEntropy(11))

    assert _fit(drawn, variance) > SURELY_RIGHT
    assert _fit(drawn, variance * Fraction(105, 100)) < SURELY_WRONG


def test_single_draws_follow_the_same_law_as_rows():
    variance = Fraction(17, 3)
    entropy = SeededEntropy(12)
    drawn = np.array([discrete_gaussian(variance, entropy) for _ in range(3_000)])

    assert _fit(drawn, variance) > SURELY_RIGHT


def test_a_discrete_gaussian_wider_than_the_fast_path_is_drawn_exactly():
    entropy = SeededEntropy(13)
    drawn = (discrete_gaussian_rows(Fraction(1 << 100), 2000, entropy) / 2.0**50).astype(float)

    assert kstest(drawn, "norm").pvalue > SURELY_RIGHT


def test_proposals_too_close_to_call_are_settled_exactly(monkeypatch):
    monkeypatch.setattr("private_ate.privacy.rejection_samplers._UNSURE", 2.0)
    variance = Fraction(9, 2)
    drawn = discrete_gaussian_rows(variance, 4000, SeededEntropy(14))

    assert _fit(drawn, variance) > SURELY_RIGHT


def test_selection_follows_the_exponential_law_and_not_one_of_double_rate():
    scores, entropy = [0, 5, 10, -4000], SeededEntropy(15)
    counts = np.bincount(
        [draw_index(scores, Fraction(1, 5), entropy) for _ in range(5_000)], minlength=4
    )
    law = np.exp(np.array([0.0, 1.0, 2.0]))
    double = law**2

    assert counts[3] == 0
    assert chisquare(counts[:3], law / law.sum() * 5_000).pvalue > SURELY_RIGHT
    assert chisquare(counts[:3], double / double.sum() * 5_000).pvalue < SURELY_WRONG


def test_the_selection_rate_follows_from_rho_and_the_sensitivity():
    noise = Noise(SeededEntropy(16))
    rho = Fraction(1, 2)  # epsilon = 2, so the odds of a gap of one sensitivity are e
    picks = [noise.select("pick", [0, 7], sensitivity=7, rho=rho) for _ in range(5_000)]

    assert np.mean(picks) == pytest.approx(np.e / (1 + np.e), abs=0.025)
    assert noise.cost.rho == 5_000 * rho


def test_cauchy_noise_has_the_quartiles_of_its_scale():
    noise = Noise(SeededEntropy(17))
    drawn = np.array(
        [noise.smooth_cauchy("x", 0, smooth=1 << 20, epsilon=Fraction(2)) for _ in range(4000)]
    )

    assert kstest(drawn / 2 / 2**20, "cauchy").pvalue > SURELY_RIGHT


def test_costs_of_disjoint_parts_count_once_and_others_add_up():
    noise = Noise(SecureEntropy())
    half, small = Fraction(1, 2), Fraction(1, 10**6)
    for part in ("first", "second", "second"):
        noise.gaussian("x", [0], sensitivity=1 << 40, epsilon=half, delta=small, part=part)
    noise.laplace("y", [0], sensitivity=1, epsilon=Fraction(1, 4))

    assert noise.cost.epsilon == noise.spent == Fraction(5, 4)
    assert noise.cost.delta == 2 * small
    assert noise.cost.rho == 0


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1)])
def test_cells_need_a_positive_budget(rho):
    with pytest.raises(NumericRangeError):
        Noise(SecureEntropy()).gaussian_cells(
            "x", np.zeros(3, np.int64), squared_sensitivity=1, rho=rho
        )


@pytest.mark.system_bytes
def test_seeded_generators_repeat_and_secure_ones_do_not():
    first, second, third, fourth = (
        generator_from(entropy.draw(GENERATOR_BYTES)).integers(1 << 60)
        for entropy in (SeededEntropy(5), SeededEntropy(5), SecureEntropy(), SecureEntropy())
    )

    assert first == second
    assert third != fourth
