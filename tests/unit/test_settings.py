"""Settings as typed values: how they are written, and how readers see those of any release."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_ate import Release
from private_ate.codec import encode
from private_ate.report.phrasing import estimand_name, publishable_sentence, python_call
from private_ate.report.to_polars import budget_frame
from private_ate.settings import (
    ABSENT,
    Absent,
    ArmCounts,
    ArmNumbers,
    Facts,
    Settings,
    public_use,
    with_notes,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "releases"


def golden(name: str) -> Release:
    plain = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    del plain["exact_effect"], plain["text"]
    return Release.from_json(json.dumps(plain))


@dataclass(frozen=True, slots=True, kw_only=True)
class Some(Settings):
    population: str
    limit: float | None
    arms: ArmCounts | Absent = ABSENT
    pairs: dict[str, tuple[float, float]]
    confidence: float
    notes: tuple[str, ...] | Absent = ABSENT


def test_settings_are_written_in_the_order_of_their_fields_without_what_is_absent():
    some = Some(population="all", limit=None, pairs={"x": (1.0, 2.0)}, confidence=0.9)
    full = replace(some, arms=ArmCounts(3, 4), notes=("odd",))

    assert json.dumps(encode(some)) == (
        '{"population": "all", "limit": null, "pairs": {"x": [1.0, 2.0]}, "confidence": 0.9}'
    )
    assert json.dumps(encode(full)) == (
        '{"population": "all", "limit": null, "arms": {"treated": 3, "control": 4}, '
        '"pairs": {"x": [1.0, 2.0]}, "confidence": 0.9, "notes": ["odd"]}'
    )


def test_notes_are_added_after_those_of_the_method_and_in_their_place():
    some = Some(population="all", limit=None, pairs={}, confidence=0.9, notes=("odd",))

    assert with_notes(some, ()) is some
    assert with_notes(some, ("more",)) == replace(some, notes=("odd", "more"))
    assert with_notes(replace(some, notes=ABSENT), ("more",)) == replace(some, notes=("more",))
    assert with_notes({"notes": ["odd"], "n": 1}, ("more",)) == {"notes": ["odd", "more"], "n": 1}


def test_readers_see_what_a_method_wrote():
    facts = Facts.of(golden("calibrated-means").settings)

    assert (facts.estimand, facts.target, facts.neighbors) == ("ate", "balance", None)
    assert facts.arms == ArmCounts(468, 532)
    assert facts.means == ArmNumbers(13.46587690097803, 5.548281325182303)
    assert facts.balance["weight"] == pytest.approx((0.0349240839, 0.0008517533), rel=1e-6)
    assert facts.budget == {"variance": 0.225, "outcome sums": 1.275}
    assert not facts.is_binary
    assert facts.interval_covers.startswith("privacy noise, sampling")
    assert len(facts.notes) == 1  # what every release says about missing outcomes
    assert facts.adjusted is None
    assert Facts.of(golden("orthogonal").settings).adjusted is False


def test_readers_of_an_empty_release_see_defaults():
    assert Facts.of({}) == Facts()
    assert (Facts().estimand, Facts().confidence, Facts().rows_per_person) == ("ate", 0.95, 1)


WRONG = [None, True, "x", -1, 0, 1.5, 10**400, [], [1], ["a", 2], {}, {"treated": 1},
         {"treated": "a", "control": None}, {"x": [1]}, {"x": ["a", "b"]}]  # fmt: skip


@pytest.mark.parametrize("name", ["calibrated-means", "orthogonal", "published-label", "aim"])
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_release_with_odd_settings_can_still_be_shown(name, value):
    release = golden(name)
    for key in (*release.settings, "risk_ratio", "odds_ratio", "means", "estimand"):
        odd = replace(release, settings={**release.settings, key: value})

        assert "released by private-ate" in str(odd)
        assert odd.to_html()
        assert python_call(odd)
        assert publishable_sentence(odd)
        assert budget_frame(odd).columns == ["step", "epsilon", "share"]


def test_an_estimand_that_nobody_knows_yet_is_named_as_it_is():
    release = replace(golden("calibrated"), schema=1, settings={"estimand": "xyz"})

    assert estimand_name(release) == "treatment effect (XYZ)"
    assert "effect (XYZ)" in str(release)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*Facts.__slots__, "other"]), json_values))
def test_any_settings_can_be_read(settings):
    facts = Facts.of(settings)

    assert 0 < facts.confidence < 1
    assert facts.rows_per_person >= 1
    assert all(len(pair) == 2 for pair in facts.balance.values())


def test_the_use_of_columns_is_read_strictly():
    assert public_use({"rows_per_person": 2, "balance": {"age": [0, 0]}}) == (2, ("age",))
    assert public_use({}) == (1, ())
    for wrong in (None, [], {"rows_per_person": True}, {"rows_per_person": "2"}, {"balance": [1]}):
        assert public_use(wrong) is None
