"""Choke points for disjoint parts of the rows: what they cost together, what they add up to."""

from fractions import Fraction

import pytest

from private_ate.errors import NumericRangeError
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.parts import Parts

ONE = Fraction(1)


def test_parts_cost_what_the_dearest_costs_and_a_total_is_beyond_it():
    noise = Noise(SeededEntropy(1))
    parts = Parts(noise)
    for name, epsilon in (("a", ONE), ("b", ONE / 2)):
        parts.within(name).staircase("sum", 5, sensitivity=3, epsilon=epsilon)
    assert noise.cost.epsilon == ONE
    parts.total("all", "sum", epsilon=ONE / 4, factors={"a": 1, "b": 1})
    assert noise.cost.epsilon == ONE + ONE / 4
    assert [spend.part for spend in noise.spends] == ["a", "b", ""]


@pytest.mark.parametrize(
    ("factors", "sums", "sizes"),
    [({"a": 1, "b": 1}, [4, 60], (5, 7)), ({"a": 2, "b": 10}, [32, 440], (10, 70))],
)
def test_a_total_adds_inputs_and_takes_the_largest_sensitivity(factors, sums, sizes):
    heard = []

    class Ear:
        def hear(self, spend, values, draw):
            heard.append((spend, values))
            return draw()

    parts = Parts(Noise(SeededEntropy(1), Ear()))
    for name, values, reach in (("a", [1, 20], [5, 2]), ("b", [3, 40], [1, 7])):
        parts.within(name).staircase_disjoint("s", values, sensitivities=reach, epsilon=ONE)
    total = parts.total("all", "s", epsilon=ONE, factors=factors)
    assert heard[-1][1] == sums
    assert heard[-1][0].sensitivity == total.sensitivities == sizes


@pytest.mark.parametrize("factors", [{}, {"a": 0}, {"a": -1}, {"a": 1, "b": 1}])
def test_every_part_counts_by_a_factor_above_zero(factors):
    parts = Parts(Noise(SeededEntropy(1)))
    parts.within("a").staircase("sum", 5, sensitivity=3, epsilon=ONE)
    with pytest.raises(NumericRangeError, match="a factor of its own"):
        parts.total("all", "sum", epsilon=ONE, factors=factors)


def test_the_first_draw_of_a_part_is_paid_for_once():
    paid = []
    parts = Parts(Noise(SeededEntropy(1), authorize=lambda: paid.append(1)))
    for name in ("a", "b"):
        parts.within(name).staircase("sum", 5, sensitivity=3, epsilon=ONE)
    assert paid == [1]


def test_what_is_not_one_sum_of_every_part_is_refused():
    parts = Parts(Noise(SeededEntropy(1)))
    first = parts.within("a")
    first.staircase("sum", 5, sensitivity=3, epsilon=ONE)
    second = parts.within("b")
    factors = {"a": 1, "b": 1}
    with pytest.raises(NumericRangeError, match="once in every part"):
        parts.total("all", "sum", epsilon=ONE, factors=factors)
    second.staircase_disjoint("sum", [1, 2], sensitivities=[1, 1], epsilon=ONE)
    with pytest.raises(NumericRangeError, match="once in every part"):
        parts.total("all", "sum", epsilon=ONE, factors=factors)
    for name in ("", "a"):
        with pytest.raises(NumericRangeError, match="a name of its own"):
            parts.within(name)
    with pytest.raises(NumericRangeError, match="already"):
        second.laplace("x", [1], sensitivity=1, epsilon=ONE, part="c")


def test_a_part_shows_no_sum():
    parts = Parts(Noise(SeededEntropy(1)))
    parts.within("a").staircase("sum", 123457, sensitivity=3, epsilon=ONE)
    assert "123457" not in repr(parts)


def test_where_rows_may_move_between_parts_every_call_costs_all_moves():
    noise = Noise(SeededEntropy(1))
    parts = Parts(noise, moves=2)
    for name, epsilon in (("a", ONE), ("b", ONE / 2)):
        within = parts.within(name)
        within.staircase("sum", 5, sensitivity=3, epsilon=epsilon)
        assert within.spent == 2 * epsilon
    assert noise.cost.epsilon == 2 * ONE
    assert [spend.moves for spend in noise.spends] == [2, 2]


def test_a_call_without_a_pure_cost_is_refused_where_rows_may_move():
    within = Parts(Noise(SeededEntropy(1)), moves=2).within("a")
    with pytest.raises(NumericRangeError, match="no pure cost"):
        within.gaussian("g", [1], sensitivity=1, epsilon=ONE, delta=Fraction(1, 1000))


def test_sums_over_parts_are_refused_where_rows_may_move():
    parts = Parts(Noise(SeededEntropy(1)), moves=2)
    parts.within("a").staircase("sum", 5, sensitivity=3, epsilon=ONE)
    with pytest.raises(NumericRangeError, match="may move between"):
        parts.total("all", "sum", epsilon=ONE, factors={"a": 1})
