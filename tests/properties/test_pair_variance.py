"""Squared differences of pairs: what one outcome can move, and that the declared bound is met."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from private_ate.estimators.calibrated.pair_variance import add_pairs
from private_ate.privacy.sums import OUTCOME_STEPS

HALF = OUTCOME_STEPS // 2


def arm(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 9))
    outcomes = rng.integers(-HALF, HALF, size, endpoint=True).astype(np.int32)
    extreme = rng.random(size) < 0.5
    outcomes[extreme] = np.where(rng.random(size) < 0.5, -HALF, HALF)[extreme]
    return rng.random(size) * 3, outcomes


@given(seed=st.integers(0, 2**32 - 1))
def test_no_outcome_moves_the_sum_by_more_than_the_sensitivity(seed):
    values, outcomes = arm(seed)
    before = add_pairs(values, outcomes, OUTCOME_STEPS)
    for row in range(values.size):
        for end in (-HALF, 0, HALF):
            moved = outcomes.copy()
            moved[row] = end
            after = add_pairs(values, moved, OUTCOME_STEPS)
            assert abs(after.total - before.total) <= before.sensitivity
            assert after.sensitivity == before.sensitivity


def test_the_middle_of_three_moves_both_of_its_differences():
    values = np.ones(3)
    low, middle = np.full(3, -HALF, dtype=np.int32), np.array([-HALF, HALF, -HALF], dtype=np.int32)

    before, after = (add_pairs(values, one, OUTCOME_STEPS) for one in (low, middle))

    assert before.total == 0
    assert after.total == after.sensitivity == before.sensitivity


def test_a_pair_at_both_bounds_uses_the_sensitivity_up():
    values = np.array([1.0, 2.0, 1.0, 1.0])
    low, high = np.full(4, -HALF, dtype=np.int32), np.array([-HALF, HALF, -HALF, -HALF], np.int32)

    before, after = (add_pairs(values, one, OUTCOME_STEPS) for one in (low, high))

    assert after.total - before.total == before.sensitivity


def test_one_unit_alone_has_no_difference_and_nobody_has_none():
    alone = add_pairs(np.array([2.0]), np.array([5], dtype=np.int32), OUTCOME_STEPS)
    nobody = add_pairs(np.zeros(0), np.zeros(0, dtype=np.int32), OUTCOME_STEPS)

    assert (alone.total, alone.sensitivity, alone.unpaired) == (0, 0, 4.0)
    assert (nobody.total, nobody.sensitivity, nobody.unpaired) == (0, 0, 0.0)
