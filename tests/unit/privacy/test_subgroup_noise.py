"""Choke points for disjoint subgroups of the rows: what they cost together."""

from fractions import Fraction

import pytest

from private_ate.errors import NumericRangeError
from private_ate.privacy.composed_noise import SubgroupNoise, named_noise
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise

ONE = Fraction(1)


def test_subgroups_cost_what_the_dearest_costs_and_a_run_on_all_rows_adds_to_it():
    noise = Noise(SeededEntropy(1))
    divided = SubgroupNoise(noise)
    for name, epsilon in (("a", ONE), ("b", ONE / 2)):
        divided.within(name).staircase("sum", 5, sensitivity=3, epsilon=epsilon)
    assert noise.cost.epsilon == ONE
    noise.staircase("sum", 5, sensitivity=3, epsilon=ONE / 4)
    assert noise.cost.epsilon == ONE + ONE / 4
    assert [spend.part for spend in noise.spends] == ["a", "b", ""]


def test_the_first_draw_of_a_subgroup_is_paid_for_once():
    paid = []
    divided = SubgroupNoise(Noise(SeededEntropy(1), authorize=lambda: paid.append(1)))
    for name in ("a", "b"):
        divided.within(name).staircase("sum", 5, sensitivity=3, epsilon=ONE)
    assert paid == [1]


def test_subgroups_have_names_of_their_own_and_are_not_divided_again():
    divided = SubgroupNoise(Noise(SeededEntropy(1)))
    first = divided.within("a")
    for name in ("", "a"):
        with pytest.raises(NumericRangeError, match="a name of its own"):
            divided.within(name)
    with pytest.raises(NumericRangeError, match="again"):
        first.laplace("x", [1], sensitivity=1, epsilon=ONE, part="c")


def test_a_subgroup_shows_no_sum():
    divided = SubgroupNoise(Noise(SeededEntropy(1)))
    divided.within("a").staircase("sum", 123457, sensitivity=3, epsilon=ONE)
    assert "123457" not in repr(divided)


def test_a_named_run_is_written_down_by_the_whole_under_its_name():
    noise = Noise(SeededEntropy(1))
    named_noise(noise, "all units").staircase("sum", 5, sensitivity=3, epsilon=ONE)
    assert [spend.step for spend in noise.spends] == ["all units: sum"]
