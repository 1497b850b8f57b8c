"""The L∞ samplers against their exact laws; a scale that is 30 % off must be rejected."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.linf_noise import continuous_linf, discrete_linf

ACCEPT = 1e-4  # a right law is refused once in ten thousand seeds; seeds are fixed
REJECT = 1e-9  # a wrong scale has to be refused far beyond doubt


def shell_law(rate, dimension, shells):
    """P(max|v| = 2k − 1) by counting odd points: (2k)ᴰ − (2k − 2)ᴰ of weight exp(−rate·k)."""
    mass = [
        ((2 * k) ** dimension - (2 * k - 2) ** dimension) * math.exp(-rate * k)
        for k in range(1, shells + 1)
    ]
    return np.array(mass) / sum(mass)


def chi_square(counts, law):
    """Return the p-value, cells with fewer than ten expected draws pooled at the end."""
    expected = law * counts.sum()
    enough = int(np.argmax(np.cumsum(expected[::-1]) >= 10))
    last = expected.size - enough - 1
    pooled = [np.append(part[:last], part[last:].sum()) for part in (counts, expected)]
    return stats.chisquare(pooled[0], pooled[1] * pooled[0].sum() / pooled[1].sum()).pvalue


@pytest.mark.parametrize(("rate", "dimension"), [("0.7", 1), ("0.5", 2), ("0.3", 5)])
def test_the_discrete_law_is_exact_and_a_wrong_scale_is_rejected(rate, dimension):
    entropy, shells = SeededEntropy(3), 200
    draws = np.array([discrete_linf(Fraction(rate), dimension, entropy) for _ in range(3000)])
    shell = (np.abs(draws).max(axis=1) + 1) // 2

    counts = np.bincount(shell, minlength=shells + 1)[1:]

    assert chi_square(counts, shell_law(float(rate), dimension, shells)) > ACCEPT
    assert chi_square(counts, shell_law(1.3 * float(rate), dimension, shells)) < REJECT
    assert chi_square(counts, shell_law(float(rate) / 1.3, dimension, shells)) < REJECT


def test_every_point_of_a_shell_is_equally_likely():
    entropy = SeededEntropy(4)
    draws = [tuple(discrete_linf(Fraction(1), 2, entropy)) for _ in range(6000)]

    second = [point for point in draws if max(map(abs, point)) == 3]
    counts = [second.count(point) for point in set(second)]

    assert len(counts) == 12  # odd points with a largest coordinate of 3
    assert stats.chisquare(counts).pvalue > ACCEPT


def test_the_discrete_law_has_only_odd_coordinates():
    draws = np.array([discrete_linf(Fraction(1, 1000), 4, SeededEntropy(s)) for s in range(50)])

    assert np.all(draws % 2 == 1)


@pytest.mark.parametrize("dimension", [1, 4, 12])
def test_the_real_law_has_a_gamma_radius_and_a_wrong_scale_is_rejected(dimension):
    entropy = SeededEntropy(5)
    draws = np.array(
        [[float(x) for x in continuous_linf(dimension, entropy)] for _ in range(2000)], dtype=float
    )

    # The density ∝ exp(−max|v|) gives max|v| the density r^(D−1) e^(−r): a Gamma of shape D.
    radius = np.abs(draws).max(axis=1)

    assert stats.kstest(radius, stats.gamma(dimension).cdf).pvalue > ACCEPT
    assert stats.kstest(1.3 * radius, stats.gamma(dimension).cdf).pvalue < REJECT
    assert stats.binomtest(int((draws[:, 0] > 0).sum()), 2000).pvalue > ACCEPT


def test_a_coordinate_is_uniform_below_the_largest_one():
    entropy = SeededEntropy(6)
    draws = np.abs(
        np.array(
            [[float(x) for x in continuous_linf(2, entropy)] for _ in range(2000)], dtype=float
        )
    )

    share = draws.min(axis=1) / draws.max(axis=1)

    assert stats.kstest(share, "uniform").pvalue > ACCEPT


def test_neighbouring_points_have_probabilities_within_the_bound():
    # Exactly, from the law: a shift by one grid step moves the shell by one at most.
    rate = 0.25
    law = shell_law(rate, 1, 400)
    masses = law / 2  # two points in each shell of one dimension

    assert all(one / other <= math.exp(rate) * (1 + 1e-9) for one, other in pairwise(masses))
