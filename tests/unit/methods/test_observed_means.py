"""Two noisy sums per arm become a mean: exact without noise, covered with it, never wild."""

from fractions import Fraction

import numpy as np
import pytest

from private_ate.methods.calibrated.clipping import DECLARED_RANGE, OutcomeRange
from private_ate.methods.calibrated.private import release_observed_means
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS, quantize_weights, weighted_sum

SIZE = 500


def arm(share, mean, weight=2.0, rows=SIZE // 2):
    """Return the sums of an arm of equal weights and equal outcomes, some of them missing."""
    steps = quantize_weights(np.full(rows, weight))
    centred = np.full(rows, round(mean * OUTCOME_STEPS), dtype=np.int32)
    seen = (np.arange(rows) < round(share * rows)).astype(np.int64)
    return weighted_sum(steps, centred * seen), weighted_sum(steps, seen)


def released(sums, epsilon, seed=0, kept=DECLARED_RANGE, rows=1):
    noise, largest = Noise(SeededEntropy(seed)), (int(quantize_weights(np.array([2.0]))[0]),) * 2
    treated, control = sums
    return release_observed_means(
        (control, treated), largest, kept, SIZE, epsilon=Fraction(epsilon), rows=rows, noise=noise
    )


@pytest.mark.parametrize("kept", [DECLARED_RANGE, OutcomeRange(0, OUTCOME_STEPS - 1)])
def test_with_little_noise_the_ratios_are_those_of_the_observed_rows(kept):
    found = released((arm(0.8, 0.3), arm(0.4, -0.2)), "100000", kept=kept)

    assert found.treated.mean == pytest.approx(0.3, abs=1e-4)
    assert found.control.mean == pytest.approx(-0.2, abs=1e-4)
    assert (found.treated.share, found.control.share) == pytest.approx((0.8, 0.4), abs=1e-4)
    assert found.effect == pytest.approx(0.5, abs=2e-4)


@pytest.mark.parametrize("epsilon", ["0.3", "1", "5"])
@pytest.mark.parametrize("shares", [(0.8, 0.9), (0.5, 0.95)])
def test_the_noise_interval_covers_the_ratio_without_noise(epsilon, shares):
    sums = arm(shares[0], 0.3), arm(shares[1], -0.1)

    runs = [released(sums, epsilon, seed) for seed in range(200)]
    covered = np.mean([abs(one.effect - 0.4) <= one.half_width(0.95) for one in runs])

    assert 0.9 <= covered <= 0.995  # three standard errors below 95 % for 200 runs


@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_the_interval_covers_a_normal_error_beside_the_noise(epsilon):
    rng, spread = np.random.default_rng(1), 0.03
    sums = arm(0.8, 0.3), arm(0.9, -0.1)

    runs = [released(sums, epsilon, seed) for seed in range(200)]
    covered = np.mean([
        abs(one.effect - 0.4 + spread * rng.standard_normal())
        <= one.half_width(0.95, np.full(40, spread))
        for one in runs
    ])  # fmt: skip

    assert 0.9 <= covered <= 0.995
    assert runs[0].half_width(0.95, np.zeros(40)) == pytest.approx(runs[0].half_width(0.95))


@pytest.mark.parametrize("epsilon", ["0.001", "1", "1000"])
@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
def test_nothing_observed_or_little_budget_keeps_means_within_their_range(epsilon, share):
    for seed in range(20):
        found = released((arm(share, 0.5), arm(share, -0.5)), epsilon, seed)

        for one in (found.treated, found.control):
            assert -0.5 <= one.mean <= 0.5
            assert 0.02 <= one.share <= 1.0
        assert np.isfinite(found.half_width(0.95, np.array([0.1])))


def test_an_odd_range_splits_into_a_longer_and_a_shorter_half():
    """The longer half of the outcome and the shorter of the weight make up the whole range."""
    kept = OutcomeRange(0, 7)
    ends = kept.centre(np.array([0, 7], dtype=np.int32))

    assert int(np.abs(ends).max()) + kept.width // 2 == kept.width
