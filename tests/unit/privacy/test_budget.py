"""Exact budgets and the words of a guarantee."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_ate.errors import ArgumentError
from private_ate.privacy.budget import Guarantee, parse_epsilon, split_epsilon
from private_ate.privacy.levels import adjacency_of


@pytest.mark.parametrize(
    ("given_as", "exact"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Fraction(1, 10), Fraction(1, 10)),
        (" 2 ", Fraction(2)),
        (3, Fraction(3)),
        ("1e-12", Fraction(1, 10**12)),
        ("1e6", Fraction(10**6)),
        ("1.00000000000000000000", Fraction(1)),
    ],
)
def test_a_budget_is_what_its_decimal_text_says(given_as, exact):
    assert parse_epsilon(given_as) == exact


@pytest.mark.parametrize(
    "bad",
    ["0", "-1", "nan", "inf", "-inf", "sNaN", "1e-13", "1000001", "one", "", True, None, "1e400",
     "1e999999999", "1e-999999999", float("nan"), float("inf"), Fraction(1, 3), Fraction(-1, 2),
     "0.1234567890123456", 1 / 3, [1], 10**400, Fraction(10**400), Fraction(1, 10**400)],
)  # fmt: skip
def test_a_budget_that_cannot_be_kept_exactly_is_refused_with_a_sentence(bad):
    with pytest.raises(ArgumentError, match="epsilon"):
        parse_epsilon(bad)


@given(st.decimals(min_value="1e-12", max_value="1e6", allow_nan=False, places=9))
def test_every_accepted_budget_survives_a_json_number(decimal):
    try:
        exact = parse_epsilon(decimal)
    except ArgumentError:
        return
    assert parse_epsilon(float(exact)) == exact
    assert f"{float(exact):.15g}" in str(Guarantee("label", exact, ""))


def test_shares_add_up_exactly_or_are_refused():
    tenths = tuple(Fraction(share) for share in ("0.05", "0.05", "0.7", "0.2"))
    assert sum(split_epsilon(Fraction(1, 3), tenths)) == Fraction(1, 3)
    for bad in ((Fraction(1, 2),), (Fraction(2), Fraction(-1)), (Fraction(1), Fraction(0))):
        with pytest.raises(ArgumentError, match="add up to 1 exactly"):
            split_epsilon(Fraction(1), bad)


def test_a_guarantee_states_all_digits_of_its_budget():
    assert str(Guarantee("label", parse_epsilon("1.0000004"), "")) == (
        "pure 1.0000004-DP, label level"
    )
    approximate = Guarantee("sample", Fraction(1), "", delta=1e-6)
    assert str(approximate) == "(1, 1e-06)-DP, sample level"
    assert str(Guarantee("label", Fraction(1), "", void="none (seeded)")) == "none (seeded)"


def test_neighbours_are_worded_for_units_and_for_persons():
    assert adjacency_of("label") == "replace-one: same n, one unit's outcome differs"
    assert adjacency_of("sample") == "replace-one: same n, one unit's record differs"
    assert adjacency_of("sample", 3) == (
        "replace-one: same n, one person (up to 3 rows)'s records differ"
    )
