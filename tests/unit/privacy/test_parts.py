"""Choke points for disjoint parts of the rows: what they cost together."""

from fractions import Fraction

import pytest

from private_ate.errors import NumericRangeError
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.parts import Parts

ONE = Fraction(1)


def test_parts_cost_what_the_dearest_costs_and_a_run_on_all_rows_adds_to_it():
    noise = Noise(SeededEntropy(1))
    parts = Parts(noise)
    for name, epsilon in (("a", ONE), ("b", ONE / 2)):
        parts.within(name).staircase("sum", 5, sensitivity=3, epsilon=epsilon)
    assert noise.cost.epsilon == ONE
    noise.staircase("sum", 5, sensitivity=3, epsilon=ONE / 4)
    assert noise.cost.epsilon == ONE + ONE / 4
    assert [spend.part for spend in noise.spends] == ["a", "b", ""]


def test_the_first_draw_of_a_part_is_paid_for_once():
    paid = []
    parts = Parts(Noise(SeededEntropy(1), authorize=lambda: paid.append(1)))
    for name in ("a", "b"):
        parts.within(name).staircase("sum", 5, sensitivity=3, epsilon=ONE)
    assert paid == [1]


def test_parts_have_names_of_their_own_and_no_parts_themselves():
    parts = Parts(Noise(SeededEntropy(1)))
    first = parts.within("a")
    for name in ("", "a"):
        with pytest.raises(NumericRangeError, match="a name of its own"):
            parts.within(name)
    with pytest.raises(NumericRangeError, match="already"):
        first.laplace("x", [1], sensitivity=1, epsilon=ONE, part="c")


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
