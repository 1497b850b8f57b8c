"""The draw of a trimmed centre against its exact law; a rate that is off must be rejected."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.rejection_samplers import draw_by_level
from private_ate.privacy.trimmed_mean import CentreRule

ACCEPT = 1e-4  # a right law is refused once in ten thousand seeds; seeds are fixed
REJECT = 1e-9  # a wrong rate has to be refused far beyond doubt
DRAWS = 6000


def brute_level(values, candidate, rule):
    """Shift the window rank by rank until its mean passes the candidate; fractions only."""
    ordered, size = sorted(values), len(values)
    window = rule.window(size)
    low = (size - window) // 2

    def at(rank):
        return rule.bound if rank >= size else -rule.bound if rank < 0 else ordered[rank]

    for shift in range(size + 1):
        upper = Fraction(sum(at(low + i + shift) for i in range(window)), window)
        lower = Fraction(sum(at(low + i - shift) for i in range(window)), window)
        if lower <= candidate <= upper:
            return shift
    raise AssertionError


def law(levels, rate):
    mass = np.array([math.exp(-float(rate) * level) for level in levels])
    return mass / mass.sum()


def chi_square(counts, expected):
    kept = expected * counts.sum() >= 8
    seen = np.append(counts[kept], counts[~kept].sum())
    wanted = np.append(expected[kept], expected[~kept].sum())
    alive = wanted > 0
    return stats.chisquare(seen[alive], wanted[alive] * seen.sum()).pvalue


@pytest.mark.parametrize("size", [1, 2, 7, 12])
@pytest.mark.parametrize("trim", [0, 2, 100])
def test_levels_agree_with_shifting_the_window_rank_by_rank(size, trim):
    rng = np.random.default_rng(size + trim)
    values = rng.integers(-50, 51, size)
    rule = CentreRule(np.arange(-60, 61), 60, trim)

    levels = rule.levels(values)

    assert levels.tolist() == [brute_level(values.tolist(), c, rule) for c in range(-60, 61)]


@pytest.mark.parametrize("rate", ["1/3", "0.1", "7/2"])
def test_the_law_is_exact_and_a_wrong_rate_is_rejected(rate):
    exact = Fraction(rate)
    rng = np.random.default_rng(5)
    rule = CentreRule(np.arange(-40, 41), 40, 3)
    values = rng.integers(-15, 20, 30)
    levels = rule.levels(values)
    entropy = SeededEntropy(11)

    drawn = [draw_by_level(levels, exact, entropy) for _ in range(DRAWS)]
    counts = np.bincount(drawn, minlength=81)

    assert chi_square(counts, law(levels, exact)) > ACCEPT
    assert chi_square(counts, law(levels, exact * Fraction(3, 2))) < REJECT
    assert chi_square(counts, law(levels, exact / Fraction(3, 2))) < REJECT


def test_the_mechanism_halves_the_rate_and_divides_it_by_the_changes():
    rule = CentreRule(np.arange(-30, 31), 30, 1)
    values = np.random.default_rng(2).integers(-10, 11, 24)
    noise = Noise(SeededEntropy(6))

    drawn = [
        noise.trimmed_centre("test", values, rule=rule, changes=3, epsilon=Fraction(2))
        for _ in range(DRAWS)
    ]
    counts = np.bincount(np.array(drawn) + 30, minlength=61)

    assert chi_square(counts, law(rule.levels(values), Fraction(1, 3))) > ACCEPT
    assert chi_square(counts, law(rule.levels(values), Fraction(2, 3))) < REJECT
    assert noise.spends[0].sensitivity == (3,)


def test_no_event_on_neighbours_is_more_likely_than_the_budget_allows():
    rng = np.random.default_rng(8)
    rule = CentreRule(np.arange(-25, 26), 25, 2)
    epsilon = 0.8

    for changes in (1, 3):
        for _ in range(200):
            values = rng.integers(-25, 26, 21)
            other = values.copy()
            other[rng.choice(21, changes, replace=False)] = rng.choice([-25, 0, 25], changes)
            first, second = (
                law(rule.levels(one), epsilon / (2 * changes)) for one in (values, other)
            )
            assert np.abs(np.log(first / second)).max() <= epsilon + 1e-12


def test_levels_far_from_the_numbers_are_drawn_at_once():
    levels = np.full(1 << 12, 10**6)
    levels[17] = 3

    assert draw_by_level(levels, Fraction(1), SeededEntropy(0)) == 17


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(5)])
def test_the_audit_accepts_the_centre_and_finds_a_wrong_rate(monkeypatch, epsilon):
    from private_ate.audit.samplers import check_centre

    honest = check_centre(epsilon, 4000, SeededEntropy(1))
    monkeypatch.setattr(
        "private_ate.privacy.noise.draw_by_level",
        lambda levels, rate, entropy: draw_by_level(levels, 2 * rate, entropy),
    )
    faulty = check_centre(epsilon, 4000, SeededEntropy(1))

    assert honest.passed
    assert not faulty.passed
