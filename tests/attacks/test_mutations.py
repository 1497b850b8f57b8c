"""The attacks can fail: each planted flaw turns its check red."""

import math
from fractions import Fraction

import numpy as np
import pytest
from studies import check_neighbours, make_study, move, neighbours

from private_ate.api import METHODS
from private_ate.audit import samplers
from private_ate.audit.samplers import check_flips, check_rate, check_samplers
from private_ate.methods.published import effect
from private_ate.privacy import noise, quantization
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS

PUBLISHED = METHODS["published"]


def replay_all(level="label"):
    for first, second in neighbours(level, 0):
        check_neighbours(PUBLISHED, level, first, second)


def test_the_honest_method_passes_what_the_mutants_fail():
    replay_all()
    assert all(test.passed for test in check_samplers(4_000, SeededEntropy(1)))


def test_an_outcome_that_is_not_clipped_moves_a_sum_too_far(monkeypatch):
    def unclipped(values, low, high, missing):
        del missing
        return np.rint((values - low) / (high - low) * OUTCOME_STEPS).astype(np.int64)

    honest = quantization.quantize_outcomes(np.array([3.0]), 0.0, 1.0, 0.5)
    study = make_study()
    check_neighbours(
        PUBLISHED, "label", study, move(study, 0, outcome=int(honest[0])),
    )  # fmt: skip
    monkeypatch.setattr(quantization, "quantize_outcomes", unclipped)
    wild = quantization.quantize_outcomes(np.array([3.0]), 0.0, 1.0, 0.5)
    wide = np.array(study.outcome, dtype=np.int64)
    wide[0] = 0
    beyond = wide.copy()
    beyond[0] = wild[0]
    pair = [type(study)(study.domain, study.covariates, study.treatment, y) for y in (wide, beyond)]
    with pytest.raises(AssertionError, match="of what it declares"):
        largest_moves(pair)


def largest_moves(pair):
    """Look at the row that carries the largest weight, wherever it is."""
    first, second = pair
    for shift in range(first.size):
        turned = [
            type(s)(s.domain, s.covariates, s.treatment, np.roll(s.outcome, shift))
            for s in (first, second)
        ]
        check_neighbours(PUBLISHED, "label", *turned)


def test_half_the_sensitivity_is_found_by_replay(monkeypatch):
    honest = Noise.laplace_disjoint

    def halved(self, step, values, *, sensitivities, epsilon):
        return honest(
            self, step, values, sensitivities=[s // 2 for s in sensitivities], epsilon=epsilon
        )

    monkeypatch.setattr(Noise, "laplace_disjoint", halved)
    study = make_study()
    zeros = np.zeros_like(study.outcome)
    spike = zeros.copy()
    spike[0] = OUTCOME_STEPS
    pair = [type(study)(study.domain, study.covariates, study.treatment, y) for y in (zeros, spike)]
    with pytest.raises(AssertionError, match="of what it declares"):
        largest_moves(pair)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_step_that_is_not_paid_for_is_found(monkeypatch, level):
    honest = effect.release_arm_sums

    def twice(study, weights, epsilon, rows, choke_point):
        honest(study, weights, epsilon, rows, choke_point)
        return honest(study, weights, epsilon, rows, choke_point)

    monkeypatch.setattr(effect, "release_arm_sums", twice)
    with pytest.raises(AssertionError, match="add up"):
        replay_all(level)


def test_three_per_cent_less_noise_is_found_by_the_sampler_tests(monkeypatch):
    honest = noise._rate
    monkeypatch.setattr(noise, "_rate", lambda e, s: honest(e, s) * Fraction(100, 97))
    rate = Fraction(1, 1000)
    tests = check_rate(rate, samplers._rows(rate, 400_000, SeededEntropy(1)))
    assert not tests[0].passed
    monkeypatch.undo()
    assert all(t.passed for t in check_rate(rate, samplers._rows(rate, 400_000, SeededEntropy(1))))


def test_a_bit_that_is_never_flipped_is_found(monkeypatch):
    honest = noise.flip_rows

    def lazy(coin, rows, entropy):
        flips = honest(coin, rows, entropy)
        flips[::64] = False
        return flips

    assert check_flips(Fraction(1), 100_000, SeededEntropy(2)).passed
    monkeypatch.setattr(noise, "flip_rows", lazy)
    assert flip_rate_of_lane(0) < flip_rate_of_lane(1) - 0.2


def flip_rate_of_lane(lane, rows=64 * 2000):
    bits = np.zeros(rows, dtype=np.bool_)
    flipped = Noise(SeededEntropy(3)).randomized_response("t", bits, epsilon=Fraction(1))
    return float(flipped.reshape(-1, 64)[:, lane].mean())


def test_every_lane_flips_as_often_as_it_should():
    expected = 1 / (1 + math.e)
    rates = [flip_rate_of_lane(lane) for lane in range(64)]
    spread = math.sqrt(expected * (1 - expected) / 2000)
    assert max(abs(rate - expected) for rate in rates) < 5 * spread
