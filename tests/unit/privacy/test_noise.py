"""The choke point: what it writes down, what it refuses, what it adds."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from private_ate.errors import NumericRangeError
from private_ate.privacy.entropy import SecureEntropy, SeededEntropy
from private_ate.privacy.metrics import Metric, Spend
from private_ate.privacy.noise import Noise

ONE = Fraction(1)


def fresh() -> Noise:
    return Noise(SeededEntropy(1))


def test_every_call_writes_its_cost_down_before_it_draws():
    noise = fresh()
    noise.laplace("a", [1, 2], sensitivity=3, epsilon=Fraction("0.1"))
    noise.laplace_disjoint("b", [1, 2], sensitivities=[4, 5], epsilon=Fraction("0.2"))
    noise.laplace_rows("c", np.arange(3), sensitivity=6, epsilon=Fraction("0.3"))
    noise.randomized_response("d", np.zeros(4, bool), changes=2, epsilon=Fraction("0.4"))
    noise.staircase("e", 1, sensitivity=7, epsilon=Fraction("0.5"))

    assert noise.spends == [
        Spend("a", "laplace", Fraction("0.1"), (3,), 2, metric=Metric.L1),
        Spend("b", "laplace_disjoint", Fraction("0.2"), (4, 5), 2, metric=Metric.SHARES),
        Spend("c", "laplace_rows", Fraction("0.3"), (6,), 3, metric=Metric.L1),
        Spend("d", "randomized_response", Fraction("0.4"), (2,), 4, metric=Metric.L1),
        Spend("e", "staircase", Fraction("0.5"), (7,), 1, metric=Metric.L1),
    ]
    assert noise.spent == Fraction("1.5")


def test_a_failing_source_of_randomness_has_still_cost_its_budget():
    class Broken:
        def draw(self, _count):
            raise OSError

    noise = Noise(Broken())
    with pytest.raises(OSError):
        noise.laplace("a", [0], sensitivity=1, epsilon=ONE)
    assert noise.spent == 1


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(0, ONE), (-1, ONE), (1, Fraction(0))])
def test_a_mechanism_without_sensitivity_or_budget_is_refused_and_costs_nothing(
    sensitivity, epsilon
):
    noise = fresh()
    for call in (
        lambda: noise.laplace("a", [0], sensitivity=sensitivity, epsilon=epsilon),
        lambda: noise.laplace_disjoint("a", [0], sensitivities=[sensitivity], epsilon=epsilon),
        lambda: noise.laplace_rows("a", np.zeros(1, int), sensitivity=sensitivity, epsilon=epsilon),
        lambda: noise.staircase("a", 0, sensitivity=sensitivity, epsilon=epsilon),
        lambda: noise.staircase_by_arm(
            "a", [0], sensitivities=[sensitivity], moves=2, epsilon=epsilon
        ),
    ):
        with pytest.raises(NumericRangeError, match="positive"):
            call()
    assert noise.spends == []


@pytest.mark.parametrize(("changes", "epsilon"), [(0, ONE), (-1, ONE), (1, Fraction(0))])
def test_randomized_response_without_changes_or_budget_is_refused(changes, epsilon):
    noise = fresh()
    with pytest.raises(NumericRangeError, match="positive"):
        noise.randomized_response("a", np.zeros(1, bool), changes=changes, epsilon=epsilon)
    assert noise.spends == []


@pytest.mark.parametrize(("changes", "epsilon"), [(0, ONE), (-1, ONE), (1, Fraction(0))])
def test_noise_of_several_arms_without_changes_or_budget_is_refused(changes, epsilon):
    noise, codes = fresh(), np.zeros(1, np.uint8)
    with pytest.raises(NumericRangeError, match="positive"):
        noise.generalized_response("a", codes, arms=3, changes=changes, epsilon=epsilon)
    with pytest.raises(NumericRangeError, match="positive"):
        noise.staircase_by_arm("a", [0], sensitivities=[1], moves=changes, epsilon=epsilon)
    assert noise.spends == []


@pytest.mark.parametrize("arms", [0, 1, 256])
def test_a_response_among_fewer_than_two_arms_or_more_than_a_byte_holds_is_refused(arms):
    with pytest.raises(NumericRangeError, match="2 to 255 arms"):
        fresh().generalized_response("a", np.zeros(1, np.uint8), arms=arms, epsilon=ONE)


def test_the_moves_of_several_rows_share_the_budget():
    noise = fresh()
    noise.staircase_by_arm("a", [1, 2], sensitivities=[4, 5], moves=6, epsilon=ONE)
    assert noise.spends == [
        Spend("a", "staircase_by_arm", ONE, (4, 5), 2, metric=Metric.MOVES, moves=6)
    ]


def test_disjoint_sums_need_a_sensitivity_each_before_anything_is_spent():
    noise = fresh()
    by_arm = partial(noise.staircase_by_arm, moves=2)
    for mechanism in (noise.laplace_disjoint, noise.staircase_disjoint, by_arm):
        with pytest.raises(NumericRangeError, match="one sensitivity each"):
            mechanism("a", [1, 2], sensitivities=[1], epsilon=ONE)
    assert noise.spends == []


@pytest.mark.parametrize("value", [0, 1, -1, 1 << 20, -(1 << 60), (1 << 61) - 1])
def test_the_answer_is_twice_the_value_plus_an_odd_number(value):
    noise = fresh()
    rows = noise.laplace_rows("a", np.full(99, value), sensitivity=1, epsilon=Fraction(20))
    answers = [
        noise.laplace("a", [value], sensitivity=1, epsilon=Fraction(20))[0],
        noise.staircase("a", value, sensitivity=1, epsilon=Fraction(20)),
        *rows.tolist(),
    ]
    assert {abs(answer - 2 * value) for answer in answers} <= {1, 3}


def test_rows_beyond_the_exact_range_are_refused():
    with pytest.raises(NumericRangeError, match="coarser grid"):
        fresh().laplace_rows("a", np.array([1 << 61]), sensitivity=1, epsilon=ONE)


def test_no_rows_are_no_trouble():
    noise = fresh()
    empty = np.zeros(0, dtype=np.int64)
    assert noise.laplace_rows("a", empty, sensitivity=1, epsilon=ONE).shape == (0,)
    assert noise.randomized_response("b", empty.astype(bool), epsilon=ONE).shape == (0,)
    assert noise.laplace("c", [], sensitivity=1, epsilon=ONE) == []
    codes = empty.astype(np.uint8)
    assert noise.generalized_response("d", codes, arms=3, epsilon=ONE).shape == (0,)


def test_values_that_are_noised_are_not_changed_in_place():
    values, bits = np.arange(1000), np.arange(1000) % 2 == 0
    noise = fresh()
    noise.laplace_rows("a", values, sensitivity=5, epsilon=ONE)
    noise.randomized_response("b", bits, epsilon=ONE)
    assert values.tolist() == list(range(1000))
    assert bits.tolist() == [row % 2 == 0 for row in range(1000)]


@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1e-12", 1 << 60), ("1e6", 1)])
def test_extreme_scales_are_drawn_exactly(epsilon, sensitivity):
    noise = Noise(SecureEntropy())
    exact = Fraction(epsilon)
    rows = noise.laplace_rows(
        "a", np.full(20, (1 << 61) - 1), sensitivity=sensitivity, epsilon=exact
    )
    stairs = [noise.staircase("b", 0, sensitivity=sensitivity, epsilon=exact) for _ in range(20)]
    sizes = [abs(int(row) - (1 << 62) + 2) for row in rows] + [abs(stair) for stair in stairs]
    assert all(size % 2 == 1 for size in sizes)
    assert (max(sizes) > 1 << 80) is (sensitivity > 1)


def test_a_recorder_observes_the_input_and_may_answer_instead():
    class Echo:
        def record(self, spend, values, draw):
            self.heard = (spend.step, values, draw() != [42])
            return [42]

    echo = Echo()
    noise = Noise(SeededEntropy(1), echo)
    assert noise.laplace("a", [7], sensitivity=1, epsilon=ONE) == [42]
    assert echo.heard == ("a", [7], True)
    assert noise.spent == 1


def test_the_repr_of_the_choke_point_shows_no_entropy():
    assert "Seeded" not in repr(fresh())
