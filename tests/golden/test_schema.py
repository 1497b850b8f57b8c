"""The published schema of a release holds for what is released, and refuses what is not."""

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from jsonschema import Draft202012Validator

import private_ate
from private_ate import (
    ArgumentError,
    Binary,
    BlocksOptions,
    CalibratedOptions,
    Domain,
    DoublyRobustOptions,
    Interval,
    Ledger,
    PublishedOptions,
    Release,
    Treatment,
    estimate_ate,
)
from private_ate.codec import decode
from private_ate.release.release import SURVIVAL_FIELDS, read_plain
from smoking import sample_settings, smoking_release

SCHEMA = json.loads((Path(private_ate.__file__).parent / "release.schema.json").read_text("utf-8"))
RELEASES = sorted((Path(__file__).parent / "releases").glob("*.json"))
VALIDATOR = Draft202012Validator(SCHEMA)
ENVELOPE = Draft202012Validator({"$ref": "#/$defs/envelope", "$defs": SCHEMA["$defs"]})


def golden(path: Path) -> dict:
    plain = json.loads(path.read_text("utf-8"))
    del plain["exact_effect"], plain["text"]
    return plain


def objections(plain: dict) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(plain)]


def can_be_read(plain: dict) -> bool:
    """Say whether every field has its shape; whether parts contradict each other is not asked."""
    try:
        decode(Release, read_plain(json.dumps(plain)), "a release")
    except ArgumentError:
        return False
    return True


def settings_schema(plain: dict) -> dict | None:
    """Return the definition that the schema holds this release's settings to, if it has one."""
    found = [
        rule["then"]["properties"]["settings"]["$ref"]
        for rule in SCHEMA["allOf"]
        if plain["method"] in rule["if"]["properties"]["method"]["enum"]
        and plain["level"] in rule["if"]["properties"]["level"]["enum"]
        and rule["if"]["properties"].get("arms", False)
        == ({"minItems": 3} if "arms" in plain else False)
    ]
    assert len(found) <= 1
    return SCHEMA["$defs"][found[0].rpartition("/")[2]] if found else None


SEVERAL = json.loads(smoking_release().to_json())
SOME = golden(Path(__file__).parent / "releases" / "calibrated.json")
_CURVE = {"time": [0.0, 9.0]} | {
    name: [1.0, 0.5] for name in ("survival", "low", "high", "low_each", "high_each", "uncensored")
}
_RISK = {
    "arm": "1", "against": "0", "difference": 0.1, "difference_interval": [0.0, 0.2],
    "ratio": 1.5, "ratio_interval": [1.0, None],
}  # fmt: skip
SURVIVAL = SOME | {
    "quantity": "rmst",
    "horizon": 9.0,
    "bins": 1,
    "curves": dict.fromkeys(("0", "1"), _CURVE | {"at_risk": [9, 4], "adjusted": True}),
    "risks": {
        "source": "curves", "adjusted": True, "by_arm": {"0": 0.2, "1": 0.3}, "contrasts": [_RISK],
    },
}  # fmt: skip
# tests/meta/test_settings.py lists the methods whose settings have no type yet.
TYPED = [path for path in RELEASES if settings_schema(golden(path)) is not None]
every_release = pytest.mark.parametrize("path", RELEASES, ids=lambda path: path.stem)
every_typed_release = pytest.mark.parametrize("path", TYPED, ids=lambda path: path.stem)


def test_most_releases_have_typed_settings():
    assert len(TYPED) >= 18


def test_the_schema_is_one_of_its_draft():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@every_release
def test_a_release_fits_the_schema(path):
    plain = golden(path)

    assert objections(plain) == []
    assert can_be_read(plain)
    listed = list(SCHEMA["$defs"]["envelope"]["properties"])
    several = "three-arms" in path.name
    listed = [name for name in listed if name not in SURVIVAL_FIELDS]
    assert list(plain) == [name for name in listed if name != "arms" or several]


@every_typed_release
def test_the_settings_stand_in_the_order_of_the_schema(path):
    plain = golden(path)
    listed = list(settings_schema(plain)["properties"])

    assert list(plain["settings"]) == [name for name in listed if name in plain["settings"]]


@every_typed_release
def test_settings_with_a_changed_key_are_refused_by_the_schema_and_can_still_be_read(path):
    plain = golden(path)
    required = settings_schema(plain)["required"]

    for name in plain["settings"]:
        wrong = plain | {"settings": plain["settings"] | {name: {"odd": True}}}
        lacking = {key: value for key, value in plain["settings"].items() if key != name}
        assert objections(wrong), name
        assert bool(objections(plain | {"settings": lacking})) is (name in required)
        assert can_be_read(wrong)
        assert can_be_read(plain | {"settings": lacking})
    assert objections(plain | {"settings": plain["settings"] | {"truth": 1.0}})


@every_typed_release
def test_settings_of_another_method_are_refused(path):
    plain = golden(path)
    others = [
        golden(other)["settings"]
        for other in TYPED
        if settings_schema(golden(other)) != settings_schema(plain)
        and (golden(other)["method"], golden(other)["level"]) != (plain["method"], plain["level"])
    ]

    assert len(others) > 5
    assert all(objections(plain | {"settings": settings}) for settings in others)


@pytest.mark.parametrize(
    "release",
    [
        smoking_release(),
        smoking_release(means=False, among="1-5 daily"),
        smoking_release(confidence=None),
        smoking_release(level="sample", settings=sample_settings(adjusted=True)),
    ],
    ids=["label", "among", "no interval", "sample"],
)
def test_a_release_of_several_arms_fits_the_schema_and_its_settings_are_held_to_it(release):
    plain = json.loads(release.to_json())

    assert objections(plain) == []
    listed = list(settings_schema(plain)["properties"])
    assert list(plain["settings"]) == [name for name in listed if name in plain["settings"]]
    for name in plain["settings"]:
        assert objections(plain | {"settings": plain["settings"] | {name: {"odd": True}}}), name
    assert objections(plain | {"settings": SOME["settings"]})
    assert objections(plain | {"arms": plain["arms"][:2]})
    two = {name: held for name, held in plain.items() if name != "arms"}
    assert objections(two)


def spoiled(value: object) -> list[object]:
    """Return a value with one of its parts changed or left out, deep inside."""
    if isinstance(value, list):
        return [[*value[1:], one] for one in spoiled(value[0])] if value else []
    if not isinstance(value, dict):
        return []
    odd = [None, 1, 1.5, "a", [], [1], [1, 2], ["a"], ["a", "b"], [1, None], {}, "difference"]
    changed = [value | {key: one} for key in list(value)[:12] for one in odd]
    lacking = [{k: held for k, held in value.items() if k != key} for key in list(value)[:12]]
    return [*changed, *lacking, value | {"truth": 1}]


@pytest.mark.parametrize("name", list(SCHEMA["$defs"]["envelope"]["properties"]))
def test_the_schema_and_from_json_refuse_the_same_fields(name):
    plain = SEVERAL if name == "arms" else SURVIVAL if name in SURVIVAL_FIELDS else SOME
    values = [
        None, True, False, 0, 1, -1, 0.5, -0.0, 0.999, 1e-13, 1e-12, 10**6, 1000001, 10**308,
        10**400, -(10**400), "", "1", "label", "sample", "Label", [], [1], [1, 2], [2, 1], [1, "a"],
        [1, True], [None, None], [1, 2, 3], [1, 10**400], {}, {"a": 1}, {"0": 1, "1": 2},
        2, 3, ["a"], ["a", None], [{}], "ate", "ATE", "difference", "randomized", plain[name],
        *spoiled(plain[name]),
    ]  # fmt: skip

    verdicts = {
        json.dumps(value)[-3000:]: (
            ENVELOPE.is_valid(plain | {name: value}),
            can_be_read(plain | {name: value}),
        )
        for value in values
    }

    assert {text: both for text, both in verdicts.items() if both[0] is not both[1]} == {}
    assert {both[0] for both in verdicts.values()} == {True, False}
    lacking = {key: value for key, value in plain.items() if key != name}
    for wrong in (lacking, plain | {"truth": 1}) if name != "arms" else (plain | {"truth": 1},):
        assert not ENVELOPE.is_valid(wrong)
        assert not can_be_read(wrong)


@pytest.mark.parametrize(("name", "value"), [("n", 5.0), ("epsilon", 0.12345678901234567)])
def test_what_a_schema_cannot_say_is_refused_by_from_json_alone(name, value):
    plain = SOME | {name: value}

    assert ENVELOPE.is_valid(plain)
    assert not can_be_read(plain)


def test_a_release_of_a_method_that_nobody_knows_yet_fits_the_schema():
    plain = SOME | {"method": "tomorrow", "settings": {"anything": [1, None]}}

    assert objections(plain) == []
    assert can_be_read(plain)


FRAME = pl.DataFrame(
    {"x": [i % 7 / 7 for i in range(120)], "t": [0, 1] * 60, "y": [i % 3 // 2 for i in range(120)]}
)
DOMAIN = Domain(Treatment("t", 1, 0), ("y", Binary()), {"x": Interval(0, 1)})


@pytest.mark.parametrize(
    ("level", "asked"),
    [
        ("label", {"options": CalibratedOptions(means=True)}),
        ("label", {"options": CalibratedOptions(means=True, clip_share="0.1"), "confidence": None}),
        ("label", {"estimand": "atc"}),
        ("label", {"method": "published", "options": PublishedOptions(k=1), "epsilon": "0.001"}),
        ("label", {"method": "published", "options": PublishedOptions(k=None)}),
        ("sample", {"method": "published", "options": PublishedOptions(k=None)}),
        ("sample", {"options": BlocksOptions(adjust=False)}),
        ("sample", {"method": "doubly_robust", "confidence": None}),
        ("sample", {"method": "doubly_robust",
                    "options": DoublyRobustOptions(nuisance="conditional")}),
        ("sample", {"method": "smooth_matching"}),
    ],
)  # fmt: skip
def test_releases_with_and_without_optional_keys_fit_the_schema(level, asked):
    release = estimate_ate(FRAME, domain=DOMAIN, level=level, **{"epsilon": "1", **asked})

    assert objections(json.loads(release.to_json())) == []
    assert Release.from_json(release.to_json()) == release


def test_a_release_with_the_note_of_a_ledger_fits_the_schema(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "clinic", epsilon="3")

    release = estimate_ate(
        FRAME, domain=DOMAIN, level="sample", epsilon="1", ledger=ledger, dataset="clinic"
    )

    plain = json.loads(release.to_json())
    assert release.epsilon == Fraction(1)
    assert list(plain["settings"]["ledger"]) == ["dataset", "request", "head", "left"]
    assert objections(plain) == []
    plain["settings"]["ledger"]["left"] = "2"
    assert objections(plain)
