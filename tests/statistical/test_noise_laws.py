"""Released noise against its exact law, with a test that is shown to have the power it needs.

A right law is rejected once in 10⁹ runs of a check, so a red test is a finding; the same check must
reject a scale that is 3 % too small, which proves that it could have found one.
"""

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from oracles import (
    discrete_laplace,
    half_step_laplace_probabilities,
    staircase_probabilities,
)
from private_ate.privacy.entropy import SecureEntropy, SeededEntropy
from private_ate.privacy.noise import Noise, stair_width

REJECT = 1e-9
DRAWS = 400_000
ONE = Fraction(1)


def law_p_value(draws: np.ndarray, law: dict[int, float]) -> float:
    """Return the chi-square p value of integer draws against a law, rare values pooled."""
    values, counts = np.unique(draws, return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    assert sum(law.values()) > 1 - 1e-9
    common = {value: share for value, share in law.items() if share * draws.size >= 20}
    observed = [seen.pop(value, 0) for value in common]
    expected = [share * draws.size for share in common.values()]
    observed.append(sum(seen.values()))
    expected.append(max(draws.size - sum(expected), 1e-9))
    if expected[-1] < 20:
        observed[-2:] = [observed[-2] + observed[-1]]
        expected[-2:] = [expected[-2] + expected[-1]]
    statistic = float(((np.array(observed) - expected) ** 2 / expected).sum())
    return float(stats.chi2.sf(statistic, len(expected) - 1))


def magnitude_p_value(draws: np.ndarray, rate: float) -> float:
    """Return the p value of a likelihood-based z test for the mean size of the noise.

    The mean size is sufficient for the scale, so this is the sharpest test of 3 %.
    """
    sizes = (np.abs(draws.astype(np.float64)) - 1) / 2
    mean = 1 / math.expm1(rate)
    deviation = math.sqrt(mean * (1 + mean) / draws.size)
    return float(2 * stats.norm.sf(abs(sizes.mean() - mean) / deviation))


def fine_scale_p_value(draws: np.ndarray, rate: float) -> float:
    """Return the Kolmogorov–Smirnov p value against the Laplace law of a fine grid."""
    assert rate < 1e-4
    return float(stats.kstest(draws / 2, stats.laplace(scale=1 / rate).cdf).pvalue)


def row_noise(epsilon: Fraction, sensitivity: int, rows: int, seed: int) -> np.ndarray:
    noise = Noise(SeededEntropy(seed))
    zeros = np.zeros(rows, dtype=np.int64)
    return noise.laplace_rows("test", zeros, sensitivity=sensitivity, epsilon=epsilon)


def scalar_noise(epsilon: Fraction, sensitivity: int, count: int, seed: int) -> np.ndarray:
    noise = Noise(SeededEntropy(seed))
    drawn = noise.laplace("test", [0] * count, sensitivity=sensitivity, epsilon=epsilon)
    return np.array(drawn, dtype=np.int64)


def check_laplace(draws: np.ndarray, rate: float) -> None:
    reach = math.ceil(40 / rate)
    assert np.all(draws % 2 == 1), "the noise is odd in half steps"
    assert magnitude_p_value(draws, rate) > REJECT
    assert magnitude_p_value(draws, rate / 0.97) < REJECT
    if reach < 100_000:
        assert law_p_value(draws, half_step_laplace_probabilities(rate, reach)) > REJECT
        wrong = half_step_laplace_probabilities(rate / 0.97, reach)
        # Thousands of cells dilute the chi-square; there the mean size alone finds 3 %.
        assert rate < 0.01 or law_p_value(draws, wrong) < REJECT
    else:
        assert fine_scale_p_value(draws, rate) > REJECT
        assert fine_scale_p_value(draws, rate / 0.97) < REJECT
    signs = np.count_nonzero(draws > 0)
    assert stats.binomtest(signs, draws.size).pvalue > REJECT
    lag = np.count_nonzero((draws[1:] > 0) == (draws[:-1] > 0))
    assert stats.binomtest(lag, draws.size - 1).pvalue > REJECT


SCALES = [
    (Fraction(1), 3),
    (Fraction(7, 10), 1),
    (Fraction(1, 3), 5),
    (Fraction(1), 1 << 20),
    (Fraction(1, 20), 1 << 18),
]
AUDIT_SCALES = SCALES + [
    (Fraction(text), sensitivity)
    for text, sensitivity in [
        ("0.9", 2), ("0.1", 1), ("0.1", 7), ("0.3", 10), ("1.1", 11), ("0.7", 13), ("0.013", 1),
        ("1", 17), ("1", 64), ("0.123456789", 3), ("2.5", 1000), ("0.01", 12345), ("4", 999_983),
        ("0.05", 1 << 24),
    ]
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "sensitivity"), SCALES)
def test_row_noise_follows_the_discrete_laplace_law(epsilon, sensitivity):
    draws = row_noise(epsilon, sensitivity, DRAWS, seed=11)
    check_laplace(draws, float(epsilon / sensitivity))


@pytest.mark.audit
@pytest.mark.parametrize(("epsilon", "sensitivity"), AUDIT_SCALES)
def test_row_and_scalar_noise_follow_the_law_at_nineteen_scales(epsilon, sensitivity):
    assert len(AUDIT_SCALES) == 19
    rate = float(epsilon / sensitivity)
    zeros = np.zeros(DRAWS, dtype=np.int64)
    secure = Noise(SecureEntropy())
    drawn = secure.laplace_rows("test", zeros, sensitivity=sensitivity, epsilon=epsilon)
    check_laplace(drawn, rate)
    check_laplace(scalar_noise(epsilon, sensitivity, DRAWS, seed=5), rate)


def test_a_large_rate_still_follows_the_law():
    draws = row_noise(Fraction(50), 1, DRAWS, seed=3)
    assert set(np.unique(draws).tolist()) == {-1, 1}
    law = half_step_laplace_probabilities(2.5, 40)
    assert law_p_value(row_noise(Fraction(5, 2), 1, DRAWS, seed=3), law) > REJECT


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(ONE, 3), (Fraction(2, 7), 5)])
def test_scalar_noise_follows_the_same_law(epsilon, sensitivity):
    rate = float(epsilon / sensitivity)
    draws = scalar_noise(epsilon, sensitivity, 30_000, seed=12)

    law = half_step_laplace_probabilities(rate, math.ceil(40 / rate))
    assert law_p_value(draws, law) > REJECT
    assert magnitude_p_value(draws, rate) > REJECT
    assert magnitude_p_value(draws, rate / 0.95) < REJECT  # 3 % needs the draws of the audit


def test_disjoint_sums_carry_noise_of_their_own_sensitivities():
    noise = Noise(SeededEntropy(13))
    pairs = np.array(
        [
            noise.laplace_disjoint("test", [0, 10], sensitivities=[2, 40], epsilon=ONE)
            for _ in range(10_000)
        ]
    ) - [0, 20]

    for column, sensitivity in ((0, 2), (1, 40)):
        assert magnitude_p_value(pairs[:, column], 1 / sensitivity) > REJECT
        assert magnitude_p_value(pairs[:, column], 1 / (sensitivity * 0.9)) < REJECT
    assert abs(stats.spearmanr(pairs[:, 0], pairs[:, 1]).statistic) < 0.06


def fold_sizes(draws: np.ndarray) -> np.ndarray:
    """Return G of ±(2G + 1)."""
    return (np.abs(draws) - 1) // 2


def two_sample_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Return the chi-square p value for two samples of integers, rare values pooled."""
    top = int(min(np.quantile(first, 0.999), np.quantile(second, 0.999)))
    bins = [np.bincount(np.minimum(sample, top), minlength=top + 1) for sample in (first, second)]
    return float(stats.chi2_contingency(np.array(bins)).pvalue)


def sizes_given_nonzero(draws: np.ndarray) -> np.ndarray:
    """Return |z| − 1 for z ≠ 0: geometric with the same rate as G, free of the zero's share."""
    return np.abs(draws[draws != 0]) - 1


def canonne_kamath_steinke(rate: Fraction, count: int) -> np.ndarray:
    rng = random.Random(17)
    return np.array([discrete_laplace(1 / rate, rng) for _ in range(count)])


def opendp_laplace(rate: Fraction, count: int) -> np.ndarray:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    mechanism = dp.m.make_laplace(*space, scale=float(1 / rate))
    return np.array(mechanism([0] * count))


@pytest.mark.parametrize("oracle", [canonne_kamath_steinke, opendp_laplace])
@pytest.mark.parametrize("rate", [Fraction(1, 4), Fraction(3, 10)])
def test_noise_sizes_agree_with_an_independent_sampler(
    oracle: Callable[[Fraction, int], np.ndarray], rate: Fraction
):
    """Ours is ±(G + ½) steps, theirs a sign times G with one zero: given |z| ≥ 1, |z| − 1 is G."""
    theirs = sizes_given_nonzero(oracle(rate, 40_000))
    ours = fold_sizes(row_noise(rate, 1, DRAWS, seed=19))
    scalars = fold_sizes(scalar_noise(rate, 1, 20_000, seed=19))
    tight = fold_sizes(row_noise(rate / Fraction(90, 100), 1, DRAWS, seed=19))

    assert two_sample_p_value(ours, theirs) > REJECT
    assert two_sample_p_value(scalars, theirs) > REJECT
    assert two_sample_p_value(tight, theirs) < REJECT


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 1000])
def test_randomized_response_flips_every_lane_at_its_rate(rows):
    noise = Noise(SeededEntropy(rows))
    epsilon = Fraction(11, 10)
    rounds = min(max(200_000 // rows, 500), 1_500)
    bits = np.arange(rows) % 3 == 0

    flips = np.zeros(rows, dtype=np.int64)
    for _ in range(rounds):
        flips += noise.randomized_response("test", bits, epsilon=epsilon) ^ bits

    rate = 1 / (1 + math.exp(1.1))
    assert stats.binomtest(int(flips.sum()), rows * rounds, rate).pvalue > REJECT
    lanes = [stats.binomtest(int(flip), rounds, rate).pvalue for flip in flips]
    assert min(lanes) * rows > REJECT


@pytest.mark.parametrize(("epsilon", "changes"), [("0.3", 1), ("2.1", 3), ("0.001", 1)])
def test_randomized_response_keeps_a_bit_with_probability_of_its_budget(epsilon, changes):
    noise = Noise(SeededEntropy(8))
    bits = np.zeros(DRAWS, dtype=bool)

    kept = noise.randomized_response("test", bits, changes=changes, epsilon=Fraction(epsilon))

    rate = 1 / (1 + math.exp(float(epsilon) / changes))
    assert stats.binomtest(int(kept.sum()), DRAWS, rate).pvalue > REJECT
    assert stats.binomtest(int(kept.sum()), DRAWS, rate * 0.97).pvalue < REJECT


def check_staircase(sensitivity: int, epsilon: Fraction, count: int, wrong: float) -> None:
    noise = Noise(SeededEntropy(sensitivity))
    inner = stair_width(sensitivity, epsilon)

    draws = np.array(
        [noise.staircase("test", 0, sensitivity=sensitivity, epsilon=epsilon) for _ in range(count)]
    )

    reach = math.ceil(45 * sensitivity / float(epsilon))
    law = staircase_probabilities(sensitivity, float(epsilon), inner, reach)
    other = staircase_probabilities(sensitivity, wrong * float(epsilon), inner, reach)
    assert law_p_value(draws, law) > REJECT
    assert law_p_value(draws, other) < REJECT


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, "0.5"), (5, "0.7"), (30, "2")])
def test_staircase_noise_follows_its_law(sensitivity, epsilon):
    check_staircase(sensitivity, Fraction(epsilon), 10_000, wrong=1.3)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("sensitivity", "epsilon"), [(1, "0.5"), (2, "1"), (5, "0.7"), (12, "2"), (30, "4")]
)
def test_staircase_noise_follows_its_law_in_many_draws(sensitivity, epsilon):
    check_staircase(sensitivity, Fraction(epsilon), 200_000, wrong=1.06)


@pytest.mark.parametrize("sensitivity", [1, 2, 7, 30])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_laws_themselves_keep_their_promise(sensitivity, epsilon):
    """On paper: shifting by up to Δ grid steps changes no probability by more than exp(ε)."""
    reach = math.ceil(60 * sensitivity / epsilon) + 2 * sensitivity
    inner = stair_width(sensitivity, Fraction(epsilon))
    laws = [
        staircase_probabilities(sensitivity, epsilon, inner, reach),
        half_step_laplace_probabilities(epsilon / sensitivity, reach),
    ]
    for law in laws:
        assert sum(law.values()) == pytest.approx(1, abs=1e-9)
        for shift in range(1, sensitivity + 1):
            ratios = [
                abs(math.log(law[value] / law[value + 2 * shift]))
                for value in law
                if value + 2 * shift in law
            ]
            assert max(ratios) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "2", "30", "2000"])
@pytest.mark.parametrize("sensitivity", [1, 2, 50])
def test_the_inner_width_of_a_stair_is_the_best_or_next_to_it(sensitivity, epsilon):
    chosen = stair_width(sensitivity, Fraction(epsilon))
    assert 1 <= chosen <= sensitivity
    power = math.exp(-float(epsilon))

    def size(inner: int) -> float:
        stair = inner + (sensitivity - inner) * power
        within = (inner**2 + (sensitivity**2 - inner**2) * power) / (2 * stair)
        return within + sensitivity * power / (1 - power)

    best = min(size(inner) for inner in range(1, sensitivity + 1))
    assert size(chosen) <= best * 1.01 + 1e-9
