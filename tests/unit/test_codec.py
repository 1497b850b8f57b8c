"""Frozen dataclasses go to JSON and back by their type hints, and errors name the key."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_ate import ArgumentError, Release
from private_ate.codec import (
    ABSENT,
    DECIMAL,
    NOT_NEGATIVE,
    OMITTED,
    Absent,
    at_least,
    decode,
    decode_known,
    encode,
    read_json,
    stored_as,
    write_json,
)
from private_ate.settings import Facts

GOLDEN = Path(__file__).parents[1] / "golden" / "releases"


@dataclass(frozen=True, slots=True)
class Arm:
    label: str
    units: Annotated[int, NOT_NEGATIVE] | None = None


@dataclass(frozen=True, slots=True)
class Study:
    arms: Annotated[tuple[Arm, ...], at_least(1)]
    level: Literal["label", "sample"]
    budget: Fraction
    interval: tuple[float, float] | None
    means: Mapping[str, float]
    dose: float | str = 0.0
    note: str | Absent = ABSENT
    limit: float | None = field(default=None, metadata=stored_as("limit_K", "old_limit"))
    other: Mapping[str, Any] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict, metadata=OMITTED)
    rows: int | None = field(default=None, metadata=OMITTED)


STUDY = Study((Arm("a", 3), Arm("b")), "label", Fraction(1, 10), (0.5, 1.0), {"a": 2.0}, "low")
PLAIN = {
    "arms": [{"label": "a", "units": 3}, {"label": "b", "units": None}], "level": "label",
    "budget": 0.1, "interval": [0.5, 1.0], "means": {"a": 2.0}, "dose": "low", "limit_K": None,
    "other": {},
}  # fmt: skip


def test_a_value_is_written_by_its_fields_without_what_is_absent():
    assert encode(STUDY) == PLAIN
    assert list(encode(STUDY)) == list(PLAIN)


def test_a_field_may_be_left_out_where_it_is_its_default():
    told = replace(STUDY, counts={"a": 1}, rows=0)

    assert encode(told) == PLAIN | {"counts": {"a": 1}, "rows": 0}
    assert decode(Study, encode(told), "a study") == told


def test_a_value_survives_the_way_to_json_and_back():
    text = write_json(encode(STUDY))

    assert decode(Study, read_json(text, "a study"), "a study") == STUDY


def test_scalars_of_numpy_are_written_as_numbers():
    assert write_json(encode({"n": np.int64(3), "share": np.float32(0.5)})) == (
        '{\n  "n": 3,\n  "share": 0.5\n}'
    )


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_neither_written_nor_read(number):
    with pytest.raises(ValueError, match="JSON"):
        write_json(encode({"n": number}))
    with pytest.raises(ArgumentError, match="not a study in JSON"):
        read_json(json.dumps({"n": number}), "a study")


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"b": [{"a": 1, "a": 1}]}'])
def test_an_object_with_a_key_twice_is_refused(text):
    with pytest.raises(ArgumentError, match="this is not a release in JSON"):
        read_json(text, "a release")


def test_missing_keys_take_defaults_and_older_names_are_read():
    needed = ("arms", "level", "budget", "interval", "means")
    plain = {key: PLAIN[key] for key in needed} | {"old_limit": 2.0}

    read = decode(Study, plain, "a study")

    assert (read.limit, read.dose, read.note, read.other) == (2.0, 0.0, ABSENT, {})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arms": []}, "arms is not of 1 entries or more"),
        ({"arms": 3}, "arms is not a list"),
        ({"arms": [{"label": 1}]}, r"arms\[0\].label is not a text"),
        ({"arms": [{"label": "a", "units": -1}]}, r"arms\[0\].units is not zero or above"),
        ({"arms": [{"label": "a", "units": True}]}, r"arms\[0\].units is not a whole number"),
        ({"arms": [{}]}, r"arms\[0\].label is missing"),
        ({"level": "row"}, "level is not label or sample"),
        ({"budget": "0.1"}, "budget is not a number"),
        ({"budget": 10**400}, "budget is not a number"),
        ({"interval": [1.0]}, "interval is not a list of 2"),
        ({"interval": [1.0, None]}, r"interval\[1\] is not a number"),
        ({"means": []}, "means is not an object"),
        ({"means": {"a": "b"}}, "means.'a' is not a number"),
        ({"dose": None}, "dose is not a text"),
        ({"odd": 1}, "it has no key 'odd'"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(change, words):
    with pytest.raises(ArgumentError, match=f"^this is not a study in JSON: {words}$"):
        decode(Study, PLAIN | change, "a study")


@dataclass(frozen=True, slots=True)
class Known:
    arms: tuple[Arm, ...] = ()
    means: Mapping[str, float] = field(default_factory=dict)
    interval: tuple[float, float] | None = None


def test_of_values_of_other_versions_what_is_known_is_read():
    plain = {
        "arms": [{"label": "a", "units": "many", "more": 1}, {"units": 2}, 3],
        "means": {"a": 1.0, "b": None}, "interval": [1.0, 2.0, 3.0], "later": True,
    }  # fmt: skip

    assert decode_known(Known, plain) == Known((Arm("a"),), {"a": 1.0})
    assert decode_known(Known, [1]) == Known()


def test_typed_values_are_read_as_they_are():
    assert decode_known(Known, STUDY) == Known(STUDY.arms, STUDY.means, STUDY.interval)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*PLAIN, "label", "units"]) | st.text(max_size=2), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*PLAIN]), json_values) | json_values)
def test_any_json_is_read_or_refused(plain):
    try:
        decode(Study, plain, "a study")
    except ArgumentError as error:
        assert str(error).startswith("this is not a study in JSON: ")  # noqa: PT017  # or it is read
    decode_known(Known, plain)


@pytest.mark.parametrize("name", ["calibrated", "calibrated-three-arms", "calibrated-subgroups"])
def test_printing_a_release_reads_its_settings_once(name, monkeypatch):
    plain = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    release = Release.from_json(
        json.dumps({key: plain[key] for key in plain if key not in ("exact_effect", "text")})
    )
    read = []
    real = Facts.of
    monkeypatch.setattr(Facts, "of", lambda settings: read.append(1) or real(settings))

    assert str(release)
    assert release.to_html()
    assert len(read) <= 1


def test_a_decimal_text_may_come_as_a_number():
    @dataclass(frozen=True)
    class Cost:
        epsilon: Annotated[str, DECIMAL]

    assert decode(Cost, {"epsilon": 0.1}, "a cost") == Cost("0.1")
    assert decode(Cost, {"epsilon": "0.10"}, "a cost") == Cost("0.10")
    with pytest.raises(ArgumentError, match="this is not a cost in a file: epsilon is not a text"):
        decode(Cost, {"epsilon": True}, "a cost", "a file")
