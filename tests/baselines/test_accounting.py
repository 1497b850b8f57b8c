from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from private_ate import ArgumentError
from private_ate.privacy.accounting import (
    concentrated_budget,
    concentrated_delta,
    discrete_gaussian_variance,
    gaussian_delta,
    gaussian_scale,
    noise_delta,
    simple_concentrated_budget,
    smoothing_rate,
)

TABLE = [
    (0.5, 1e-5, 7.032), (1, 1e-5, 3.731), (2, 1e-5, 1.994), (3, 1e-5, 1.391), (4, 1e-5, 1.081),
    (1, 1e-6, 4.225), (4, 1e-6, 1.194),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta", "scale"), TABLE)
def test_analytic_gaussian_scale_equals_the_reference_table(epsilon, delta, scale):
    assert gaussian_scale(epsilon, delta) == pytest.approx(scale, abs=6e-4)


@pytest.mark.parametrize(("epsilon", "delta", "_"), TABLE)
def test_a_slightly_smaller_gaussian_scale_misses_delta(epsilon, delta, _):
    scale = gaussian_scale(epsilon, delta)

    assert gaussian_delta(epsilon, scale) <= delta
    assert gaussian_delta(epsilon, scale * 0.999) > delta


def test_gaussian_delta_equals_the_integral_of_the_excess_density():
    epsilon, scale = 1.5, 0.9
    points = np.linspace(-30, 30, 600_001)
    first = np.exp(-(((points - 1) / scale) ** 2) / 2)
    second = np.exp(-((points / scale) ** 2) / 2)
    excess = np.maximum(first - np.exp(epsilon) * second, 0).sum() / first.sum()

    assert gaussian_delta(epsilon, scale) == pytest.approx(excess, rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [(1, 1e-6, 0.01747), (4, 1e-6, 0.25394), (1, 1e-5, 0.02082), (4, 1e-5, 0.29765)],
)
def test_simple_conversion_of_concentrated_privacy_equals_the_table(epsilon, delta, rho):
    assert simple_concentrated_budget(epsilon, delta) == pytest.approx(rho, abs=6e-6)


def test_the_tight_conversion_gives_the_known_first_scale_of_aim():
    rounds, share = 16 * 8, 0.9
    tight = float(concentrated_budget(Fraction(1), Fraction("1e-6")))
    simple = simple_concentrated_budget(1, 1e-6)

    assert math.sqrt(rounds / (2 * share * tight)) == pytest.approx(54.0, abs=0.05)
    assert math.sqrt(rounds / (2 * share * simple)) == pytest.approx(63.8, abs=0.05)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "20", "1000000"])
def test_the_tight_conversion_never_gives_less_than_the_simple_one(epsilon):
    rho = concentrated_budget(Fraction(epsilon), Fraction("1e-6"))

    assert float(rho) >= simple_concentrated_budget(float(epsilon), 1e-6) * (1 - 1e-8)
    assert concentrated_delta(float(epsilon), float(rho)) <= 1e-6 * (1 + 1e-6)


def test_conversions_agree_with_dp_accounting():
    pytest.importorskip(
        "dp_accounting", reason="INDEPENDENT CHECK NOT RUN: install dp-accounting to run it"
    )
    from dp_accounting.pld.common import DifferentialPrivacyParameters
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
    from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

    orders = np.linspace(1.01, 60, 60_000)
    for epsilon, delta, _ in TABLE:
        theirs = GaussianPrivacyLoss.from_privacy_guarantee(
            DifferentialPrivacyParameters(epsilon, delta)
        )
        assert gaussian_scale(epsilon, delta) == pytest.approx(theirs.standard_deviation, rel=1e-6)
        rho = float(concentrated_budget(Fraction(epsilon), Fraction(delta)))
        implied, _ = compute_delta(orders, orders * rho, epsilon)
        assert implied == pytest.approx(delta, rel=1e-5)


def test_discrete_gaussian_variance_pays_for_the_distance_between_grid_and_line():
    fine = discrete_gaussian_variance(
        Fraction(1), Fraction("1e-6"), sensitivity=1 << 40, dimension=20
    )
    coarse = discrete_gaussian_variance(Fraction(1), Fraction("1e-6"), sensitivity=1, dimension=20)

    assert math.sqrt(fine) / (1 << 40) == pytest.approx(4.225, rel=1e-3)
    assert coarse == 1 / (2 * concentrated_budget(Fraction(1), Fraction("1e-6")))


@pytest.mark.parametrize("variance", [0.3, 2.0, 50.0])
def test_the_discrete_gaussian_is_as_near_to_the_rounded_one_as_the_proof_says(variance):
    deviation = math.sqrt(variance)
    points = np.arange(-200, 201)
    discrete = np.exp(-(points**2) / (2 * variance))
    discrete /= discrete.sum()
    edges = np.array(
        [math.erfc(-(p - 0.5) / (deviation * math.sqrt(2))) / 2 for p in (*points, 201)]
    )
    distance = np.abs(discrete - np.diff(edges)).sum() / 2

    assert distance <= 1 / (24 * variance)
    assert distance >= 1 / (200 * variance)  # the bound is not idle


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 10.0, 20.0])
@pytest.mark.parametrize("direction", [1, -1])
def test_noise_scaled_to_smooth_sensitivity_keeps_its_delta(epsilon, direction):
    delta = 1e-4
    beta = smoothing_rate(Fraction(epsilon), Fraction(delta))

    assert _smooth_delta(epsilon, direction * beta) <= delta


def test_the_textbook_smoothing_rate_is_too_large_for_a_large_epsilon():
    epsilon, delta = 60.0, 1e-3

    assert _smooth_delta(epsilon, epsilon / (2 * math.log(2 / delta))) > delta
    assert _smooth_delta(epsilon, smoothing_rate(Fraction(epsilon), Fraction(delta))) <= delta


def _smooth_delta(epsilon, change):
    """Return the exact δ of Laplace noise when the shift is S and the scale changes by e^change."""
    rate = epsilon / 2
    other = rate * math.exp(change)
    shift = 1.0 if change < 0 else math.exp(-change)  # the smaller smooth sensitivity bounds it
    points = np.linspace(-80 / rate, 80 / rate, 1_000_001)
    step = points[1] - points[0]
    first = np.log(rate / 2) - rate * np.abs(points)
    second = np.log(other / 2) - other * np.abs(points - shift) + epsilon
    excess = np.exp(first) * -np.expm1(np.minimum(second - first, 0.0))
    return float(excess.sum() * step)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_cauchy_noise_of_scale_two_over_epsilon_is_pure(epsilon):
    beta = smoothing_rate(Fraction(epsilon), Fraction(0))
    scale = 2 / epsilon
    points = np.concatenate((np.linspace(-50, 50, 200_001), np.logspace(2, 8, 1000)))

    for change in (-beta, 0.0, beta):
        wide = scale * math.exp(change)
        loss = np.log(scale) - np.log(wide)
        loss += np.log(((points - 1) ** 2 + wide**2) / (points**2 + scale**2))
        assert np.abs(loss).max() <= epsilon


@pytest.mark.parametrize("delta", ["none", -1, 0.5, "1e-20", True])
def test_an_impossible_delta_is_an_argument_error(delta):
    with pytest.raises(ArgumentError, match="delta"):
        noise_delta(delta)
