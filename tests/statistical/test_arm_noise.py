"""Noise of several arms: generalised response and the staircases of sums by arm.

The staircases are audited where it matters: a row leaves one arm for another, both sums move, and
the likelihood of what is released may change by e^ε and no more.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

from oracles import staircase_probabilities
from private_ate.audit.bounds import epsilon_bound
from private_ate.audit.samplers import check_responses
from private_ate.privacy import noise as noise_module
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise, stair_width
from private_ate.privacy.samplers import uniform_rows

ACCEPT, REJECT = 1e-4, 1e-9
ROWS = 60_000


def responses(code, arms, epsilon, changes=1, seed=1, rows=ROWS):
    codes = np.full(rows, code, dtype=np.uint8)
    noise = Noise(SeededEntropy(seed))
    return noise.generalized_response("test", codes, arms=arms, changes=changes, epsilon=epsilon)


def goodness(drawn, shares):
    counts = np.bincount(drawn, minlength=len(shares))
    return stats.chisquare(counts, np.array(shares) * drawn.size / sum(shares)).pvalue


@pytest.mark.parametrize(
    ("arms", "epsilon", "changes"), [(2, "1", 1), (3, "0.3", 1), (4, "3", 2), (20, "2.1", 3)]
)
def test_a_code_is_kept_by_its_budget_and_the_others_are_equally_likely(arms, epsilon, changes):
    for code in (0, arms - 1):
        drawn = responses(code, arms, Fraction(epsilon), changes)
        shares = [1.0] * arms
        shares[code] = math.exp(float(epsilon) / changes)

        assert drawn.dtype == np.uint8
        assert goodness(drawn, shares) > ACCEPT
        shares[code] *= 1.25
        assert goodness(drawn, shares) < (REJECT if arms < 20 else 1e-3)


def test_the_response_of_two_arms_is_randomised_response_bit_for_bit():
    bits = np.arange(5000) % 3 == 0
    flipped = Noise(SeededEntropy(3)).randomized_response("t", bits, epsilon=Fraction(1))
    noise = Noise(SeededEntropy(3))
    codes = noise.generalized_response("t", bits.view(np.uint8), arms=2, epsilon=Fraction(1))

    np.testing.assert_array_equal(codes.view(bool), flipped)


def test_the_audit_finds_a_response_of_the_wrong_budget(monkeypatch):
    assert check_responses(Fraction(1), ROWS, SeededEntropy(4)).passed

    honest = noise_module._rate
    monkeypatch.setattr(noise_module, "_rate", lambda epsilon, size: honest(epsilon, size) * 5 / 4)

    assert not check_responses(Fraction(1), ROWS, SeededEntropy(4)).passed


@pytest.mark.parametrize("bound", [1, 2, 3, 19, 100, 254])
def test_other_arms_are_drawn_uniformly_whatever_their_number(bound):
    drawn = uniform_rows(bound, ROWS, SeededEntropy(bound))

    assert drawn.max() < bound
    assert bound == 1 or goodness(drawn, [1.0] * bound) > ACCEPT


def largest_loss(scales, moves, epsilon, budgets):
    """Return the largest log ratio over outputs and neighbours, from the laws of the proof.

    ``scales`` are the staircases' sensitivities; ``moves`` the neighbours' differences.
    """
    loss = 0.0
    for difference in moves:
        total = 0.0
        for scale, step in zip(scales, difference, strict=True):
            reach = 14 * max(scales)
            inner = stair_width(scale, Fraction(budgets))
            law = staircase_probabilities(scale, float(budgets), inner, reach)
            ratios = [
                abs(math.log(law[point] / law[point - 2 * step]))
                for point in law
                if point - 2 * step in law
            ]
            total += max(ratios)  # coordinates are independent, so their worst cases meet
        loss = max(loss, total)
    return loss / epsilon


def replacements(bounds, changes=1):
    """Return all differences of the sums that replacing rows can make."""
    rows = [(arm, value) for arm, bound in enumerate(bounds) for value in range(-bound, bound + 1)]
    single = set()
    for (out_arm, gone), (in_arm, new) in product(rows, rows):
        difference = [0] * len(bounds)
        difference[out_arm] -= gone
        difference[in_arm] += new
        single.add(tuple(difference))
    return {tuple(map(sum, zip(*pair, strict=True))) for pair in product(single, repeat=changes)}


@pytest.mark.parametrize(("bounds", "changes"), [((3, 5), 1), ((2, 3, 4), 1), ((1, 2), 2)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_replacing_rows_costs_the_whole_budget_at_worst_and_no_more(bounds, changes, epsilon):
    moves = replacements(bounds, changes)

    loss = largest_loss(bounds, moves, epsilon, epsilon / (2 * changes))

    assert loss == pytest.approx(1.0, abs=1e-9)


def test_a_staircase_of_twice_the_sensitivity_would_cost_twice_the_budget():
    moves = replacements((3, 5))

    assert largest_loss((6, 10), moves, 1.0, 1.0) == pytest.approx(2.0, abs=1e-9)


def log_ratio(outputs, bounds, difference, epsilon):
    """Return the optimal test of two neighbours under the law of the faulty declaration.

    Both sums may move across the edge of a stair at once; the number of edges crossed is what
    an attacker counts.
    """
    level = np.zeros(len(outputs))
    for column, (bound, step) in enumerate(zip(bounds, difference, strict=True)):
        inner = stair_width(2 * bound, epsilon)
        sizes = (np.abs(outputs[:, column]) - 1) // 2
        moved = (np.abs(outputs[:, column] - 2 * step) - 1) // 2
        stairs = [(size + 2 * bound - inner) // (2 * bound) for size in (moved, sizes)]
        level += stairs[0] - stairs[1]
    return level


def test_a_row_that_changes_its_arm_does_not_show_beyond_the_budget():
    """A staircase of twice the sensitivity at ε in place of one at ε/2 is found here."""
    epsilon, bounds, difference = Fraction(2), (1, 1), (-1, 1)
    noise = Noise(SeededEntropy(9))

    def draw(values):
        return np.array([
            noise.staircase_by_arm("test", values, sensitivities=bounds, moves=2, epsilon=epsilon)
            for _ in range(8000)
        ])  # fmt: skip

    outputs = [
        log_ratio(draw(values), bounds, difference, epsilon) for values in ((0, 0), difference)
    ]

    bound = epsilon_bound(outputs[0], outputs[1])
    assert bound <= float(epsilon)
    assert bound > 0.3  # the test does tell neighbours apart
