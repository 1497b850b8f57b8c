"""The zero-sum sampler against its law, and against one that throws points away."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.linf_noise import (
    _ball_point,
    continuous_linf,
    helmert,
    largest_column,
    zero_sum_linf,
)

ACCEPT, REJECT = 1e-4, 1e-9
# The standard deviation of an entry of a uniform point, for K arms, to three digits.
SPREADS = {2: 0.289, 3: 0.263, 4: 0.229, 5: 0.200, 6: 0.177, 8: 0.142, 10: 0.119}


def draw(arms, columns, count, seed=1):
    """Draw matrices of shape (K, columns)."""
    entropy = SeededEntropy(seed)
    return np.array([
        np.array(zero_sum_linf(arms, columns, entropy), dtype=float).T for _ in range(count)
    ])  # fmt: skip


def points(arms, count, seed=2):
    """Uniform points of the unit ball: a draw of one column over its random size."""
    entropy = SeededEntropy(seed)
    return np.array([_ball_point(arms, 50, entropy) for _ in range(count)], dtype=float)


def kept_points(arms, count, seed=3):
    """Uniform points of a box around the ball, of which those inside are kept."""
    rng, basis, kept = np.random.default_rng(seed), helmert(arms), []
    while len(kept) < count:
        tried = rng.uniform(-0.75, 0.75, (4000, arms - 1)) @ basis
        kept += list(tried[np.abs(tried).sum(axis=1) <= 1])
    return np.array(kept[:count])


@pytest.mark.parametrize(("arms", "columns"), [(2, 3), (3, 1), (3, 4), (5, 2)])
def test_the_largest_column_has_a_gamma_law_and_a_wrong_scale_is_rejected(arms, columns):
    drawn = draw(arms, columns, 1500)
    free = (arms - 1) * columns

    # The density ∝ exp(−N) in D dimensions gives N the density r^(D−1) e^(−r).
    sizes = np.abs(drawn).sum(axis=1).max(axis=1)

    assert np.abs(drawn.sum(axis=1)).max() < 1e-12
    assert stats.kstest(sizes, stats.gamma(free).cdf).pvalue > ACCEPT
    assert stats.kstest(1.3 * sizes, stats.gamma(free).cdf).pvalue < REJECT


def test_the_columns_of_a_draw_add_up_to_zero_exactly():
    for column in zero_sum_linf(6, 4, SeededEntropy(4)):
        assert sum(column, Fraction(0)) == 0


@pytest.mark.parametrize("arms", [2, 3, 4, 5])
def test_a_point_of_the_ball_is_as_uniform_as_one_that_was_thrown_at_it(arms):
    ours, thrown = points(arms, 3000), kept_points(arms, 3000)

    for measure in (
        lambda point: point[:, 0], lambda point: point[:, -1],
        lambda point: np.abs(point).sum(axis=1), lambda point: np.abs(point).max(axis=1),
        lambda point: point[:, 0] - point[:, 1],
    ):  # fmt: skip
        assert stats.ks_2samp(measure(ours), measure(thrown)).pvalue > ACCEPT
    counts = [np.bincount((part > 0).sum(axis=1), minlength=arms)[1:] for part in (ours, thrown)]
    assert arms == 2 or stats.chi2_contingency(counts).pvalue > ACCEPT


@pytest.mark.parametrize("arms", SPREADS)
def test_an_entry_spreads_as_the_table_of_the_proof_says(arms):
    weights = {a: math.comb(arms, a) * math.comb(arms - 2, a - 1) for a in range(1, arms)}
    mean = sum(w * (1 / (a + 1) + 1 / (arms - a + 1)) for a, w in weights.items())
    variance = (arms - 1) / (arms + 1) / (2 * arms) * mean / sum(weights.values())
    assert math.sqrt(variance) == pytest.approx(SPREADS[arms], abs=6e-4)

    drawn = points(arms, 4000)

    assert drawn.std() == pytest.approx(math.sqrt(variance), rel=0.03)
    assert drawn.std(axis=0) == pytest.approx(math.sqrt(variance), rel=0.08)


def test_two_arms_have_the_law_of_the_logistic_objective():
    entropy = SeededEntropy(5)
    ours = 2 * draw(2, 3, 1500, seed=6)[:, 1]
    theirs = np.array([continuous_linf(3, entropy) for _ in range(1500)], dtype=float)

    for measure in (lambda x: x[:, 0], lambda x: np.abs(x).max(axis=1)):
        assert stats.ks_2samp(measure(ours), measure(theirs)).pvalue > ACCEPT
    assert stats.ks_2samp(1.3 * np.abs(ours).max(axis=1), np.abs(theirs).max(axis=1)).pvalue < 1e-6


def test_the_largest_column_is_measured_in_coordinates_too():
    matrix = draw(4, 5, 1)[0]

    measured = largest_column((helmert(4) @ matrix).ravel(), 4)

    assert measured == pytest.approx(np.abs(matrix).sum(axis=0).max())
