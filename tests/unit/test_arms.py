"""Declared arms: two labels, several, or bins of a dose, and the codes that rows get."""

import pickle

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, Treatment, estimate_ate
from private_ate.data.encoding import encode_arms
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError, DomainError, UndeclaredError
from private_ate.methods.composition import takes
from private_ate.methods.registry import METHODS
from private_ate.study import ArmSizes, Block

THREE = Treatment("t", arms=("none", "low", "high"))
OUTCOME = ("y", Interval(0, 1))


def coded(treatment, entries):
    table = read_table(pl.DataFrame({"t": entries}, strict=False))
    return encode_arms(table, Domain(treatment, OUTCOME))


def test_two_arms_by_name_are_the_binary_treatment():
    by_name = Treatment("t", arms=("a", "b"))
    assert by_name == Treatment("t", treated="b", control="a")
    assert repr(by_name) == "Treatment(column='t', treated='b', control='a', other=None)"
    assert by_name.labels == by_name.coded == ("a", "b")
    turned = Treatment("t", arms=("a", "b"), reference="b")
    assert turned == Treatment("t", treated="a", control="b")


def test_the_reference_has_code_zero_and_the_others_follow_as_declared():
    arms = Treatment("t", arms=("none", "low", "high"), reference="low")
    assert arms.labels == ("none", "low", "high")
    assert (arms.coded, arms.codes, arms.size) == (("low", "none", "high"), (1, 0, 2), 3)
    assert (arms.reference_index, arms.treated, arms.control) == (1, "high", "low")
    assert Treatment("t", arms=("a", "b", "c"), reference="c").treated == "b"


def test_labels_become_codes_and_other_entries_take_no_part_unless_an_arm_is_named_for_them():
    entries = ["low", "high", " none ", None, "LOW", "high"]
    codes, known = coded(THREE, entries)
    assert codes.dtype == np.uint8
    assert codes.tolist() == [1, 2, 0, 0, 0, 2]
    assert known.tolist() == [True, True, True, False, False, True]
    other = Treatment("t", arms=("none", "low", "high"), other="high")
    codes, known = coded(other, entries)
    assert codes.tolist() == [1, 2, 0, 2, 2, 2]
    assert known.all()


def test_doses_go_into_half_open_bins_and_beyond_the_edges_into_the_nearest():
    dose = Treatment("t", bins=(0, 1, 6, 11, 100))
    assert dose.labels == ("[0, 1)", "[1, 6)", "[6, 11)", "[11, 100]")
    codes, known = coded(dose, [-5.0, 0.0, 0.99, 1.0, 5.9, 6.0, 11.0, 100.0, 1e9, None])
    assert codes.tolist() == [0, 0, 0, 1, 1, 2, 3, 3, 3, 0]
    assert known.tolist() == [True] * 9 + [False]
    named = Treatment("t", bins=(0, 1, 6, 100), labels=("none", "few", "many"), reference=1)
    assert (named.control, named.coded) == ("few", ("few", "none", "many"))
    assert coded(named, [0, 3, 50])[0].tolist() == [1, 0, 2]


def test_two_bins_are_a_binary_treatment():
    codes, known = coded(Treatment("t", bins=(0, 5, 10)), [1, 5, 9, None])
    assert codes.dtype == np.bool_
    assert codes.tolist() == [False, True, True, False]
    assert known.tolist() == [True, True, True, False]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"arms": ("a",)}, "at least two arms"),
        ({"arms": ("a", "b", "a")}, "'a' is declared twice"),
        ({"arms": (1, "1.0", 2, 1.0)}, "'1' is declared twice"),
        ({"arms": ("2", "1", "1.0")}, "'1' and '1.0' are the same number"),
        ({"arms": ("a", 1, "TRUE")}, "'1' and 'TRUE' are the same number"),
        ({"treated": "1e0", "control": "1"}, "'1' and '1e0' are the same number"),
        ({"arms": tuple(range(21))}, "declare bins or merge arms"),
        ({"arms": "abc"}, "arms are a list"),
        ({"arms": ("a", "b", "c"), "reference": "d"}, "reference 'd' is none of"),
        ({"arms": ("a", "b", "c"), "other": "d"}, "'d', is none of the declared"),
        ({"arms": ("a", "b"), "bins": (0, 1, 2)}, "keep one of them"),
        ({"arms": ("a", "b"), "treated": "b"}, "keep one of them"),
        ({"bins": (0, 1)}, "at least two arms"),
        ({"bins": (0, 2, 2, 3)}, "rise"),
        ({"bins": (0, float("nan"), 3)}, "finite"),
        ({"bins": tuple(range(22))}, "merge arms"),
        ({"bins": (0, 1, 2), "labels": ("a", "b", "c")}, "2 bins have 3 labels"),
        ({"bins": (0, 1, 2), "reference": 2}, "reference '2' is none of"),
        ({"labels": ("a", "b")}, "labels name the bins"),
        ({"reference": "a"}, "control is the reference"),
    ],
)
def test_inconsistent_arms_are_refused_by_arguments_alone(declared, message):
    with pytest.raises(DomainError, match=message):
        Treatment("t", **declared)


@pytest.mark.parametrize(
    "treatment",
    [
        THREE,
        Treatment("t", arms=(0, 1, 2), reference=2, other=0),
        Treatment("t", bins=(0, 1.5, 6, 100), labels=("none", "few", 'ma"ny'), reference="few"),
        Treatment("t", bins=(0, 1, 6)),
        Treatment("t", "yes", "no", "no"),
    ],
)
def test_arms_come_back_from_toml_and_pickles(treatment):
    domain = Domain(treatment, OUTCOME)
    assert Domain.from_toml(domain.to_toml()) == domain
    assert pickle.loads(pickle.dumps(treatment)) == treatment  # noqa: S301  # our own
    assert "treated" not in domain.to_toml() or treatment.arms is None


def test_a_block_of_more_than_two_arms_has_no_treated_rows():
    arm = np.array([0, 2, 1], dtype=np.uint8)
    block = Block(np.zeros((3, 1)), arm, None, arms=3)
    with pytest.raises(TypeError, match="compares two arms; 3 are declared"):
        _ = block.treatment
    pair = Block(np.zeros((2, 1)), np.array([True, False]), None)
    assert pair.arm.tolist() == [1, 0]
    assert np.shares_memory(pair.arm, pair.treatment)


def test_a_block_shows_no_value_of_its_rows():
    block = Block(np.full((2, 1), 0.4711), np.array([True, False]), np.full(2, 4711, np.int32))
    assert repr(block) == "Block(first=0, arms=2)"


def test_sizes_of_arms_add_up_and_name_the_smallest_that_is_not_empty():
    sizes = ArmSizes.count(np.array([0, 2, 2], np.uint8), 4) + ArmSizes((1, 0, 3, 0))
    assert sizes == ArmSizes((2, 0, 5, 0))
    assert (sizes.total, sizes.smaller, sizes.others, sizes[2]) == (7, 2, 5, 5)
    pair = ArmSizes((8, 3))
    assert (pair.smaller, pair.others) == (3, 8)


def test_undeclared_labels_of_several_arms_are_an_error_that_counts_them():
    frame = pl.DataFrame({"t": ["none", "low", "high", "odd"], "y": [0.0, 1.0, 0.5, 0.2]})
    from private_ate.data.missing_rules import Reading

    with pytest.raises(UndeclaredError, match=r"none of 'none', 'low', 'high' in 1 of 4 rows"):
        LocalStudy.encode(read_table(frame), Domain(THREE, OUTCOME), None, Reading("label"))


def test_methods_for_two_arms_refuse_more_before_a_record_is_read():
    class Unread:
        def __getattr__(self, name):
            raise AssertionError(name)

    for method in METHODS.values():
        if takes(method.name, method.levels[0], "arms"):
            continue
        with pytest.raises(ArgumentError, match=f"'{method.name}' compares two arms; 3 are decl"):
            estimate_ate(
                Unread(), domain=Domain(THREE, OUTCOME), level=method.levels[0], epsilon=1,
                method=method.name,
            )  # fmt: skip


def test_among_names_an_arm_and_is_the_att_or_atc_of_two():
    frame = pl.DataFrame(
        {"t": ["a", "b"] * 20, "y": [0.0, 1.0] * 20, "x": [0.1, 0.9, 0.5, 0.2] * 10}
    )
    domain = Domain(Treatment("t", arms=("a", "b")), OUTCOME, {"x": Interval(0, 1)})
    asked = {"domain": domain, "level": "label", "epsilon": 1, "seed": 3}
    for among, estimand in (("b", "att"), ("a", "atc")):
        first = estimate_ate(frame, among=among, **asked)
        assert first == estimate_ate(frame, estimand=estimand, **asked)
    with pytest.raises(ArgumentError, match="among names one of the arms: 'a', 'b'"):
        estimate_ate(frame, among="c", **asked)
    with pytest.raises(ArgumentError, match="keep one"):
        estimate_ate(frame, among="a", estimand="ato", **asked)
