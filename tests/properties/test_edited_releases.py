"""Releases that somebody edited: combined if they still make sense, refused in words if not."""

import json
import random
import re
from pathlib import Path

import polars as pl
import pytest

from private_ate import Combined, Release, combine
from private_ate.errors import PrivateAteError
from sites import made_up_site

ODD = (
    None, True, 0, -1, 0.5, 3.0, 1e100, 1e300, 1e-300, 5e-324, 10**400, "", "att", "\x1b[2J",
    [], {}, [0, 0], [1, 2], [-1e308, 1e308], [None], {"a": 1},
)  # fmt: skip
FACTORS = (-1, 0, 0.5, 2, 1e-5, 1e5, 1e120)
GOLDEN = Path(__file__).parents[1] / "golden"
SAVED = sorted([*GOLDEN.glob("releases/*.json"), *GOLDEN.glob("old/*.json")])
DELETED = object()
WRONG = (*ODD, -1e300, 10**30, "x", [[[]]], {"a": {"b": [1]}}, DELETED)
FORMS = {
    "text": lambda release: f"{release}\n{release.to_text('reference')}",
    "markdown": lambda release: release.to_markdown(p_values=True),
    "latex": lambda release: release.to_latex(p_values=True),
    "csv": lambda release: release.to_csv(p_values=True),
    "html": lambda release: release.to_html(),
    "json": lambda release: release.to_json(),
}
# What moves a cursor, ends a line or turns the direction of reading; a line feed ends ours.
UNSHOWN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def places(value, place=()):
    """Yield where a value holds other values."""
    pairs = enumerate(value) if isinstance(value, list) else ()
    for name, held in value.items() if isinstance(value, dict) else pairs:
        yield (*place, name)
        yield from places(held, (*place, name))


def edit(plain, rng):
    """Change one to three values, mostly keeping the headline equal to the first row."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        *folders, name = rng.choice(list(places(plain)))
        holder = plain
        for folder in folders:
            holder = holder[folder]
        if isinstance(holder[name], float) and rng.random() < 0.5:
            holder[name] *= rng.choice(FACTORS)
        else:
            holder[name] = json.loads(json.dumps(rng.choice(ODD)))
    row = plain["effects"][0] if plain["effects"] and isinstance(plain["effects"], list) else None
    if isinstance(row, dict) and rng.random() < 0.8:
        for name in ("interval", "noise_interval", "estimand"):
            plain[name] = row[name]
        plain["ate"] = row["estimate"]
    return plain


@pytest.mark.parametrize("seed", range(8))
def test_an_edited_release_is_combined_or_refused_in_words(seed):
    rng = random.Random(seed)
    outcomes = {"combined": 0, "refused": 0}
    for _ in range(60):
        plain = edit(json.loads(made_up_site(3.0).to_json()), rng)
        try:
            release = Release.from_json(json.dumps(plain))
            combined = combine([release, made_up_site(4.0)])
            assert Combined.from_json(combined.to_json()) == combined
            assert str(combined)
            assert combined.to_html()
            outcomes["combined"] += 1
        except PrivateAteError:
            outcomes["refused"] += 1

    assert min(outcomes.values()) > 0


def read_saved(path):
    """Return the plain values of a saved release, without what golden files hold beside it."""
    plain = json.loads(path.read_text("utf-8"))
    return {name: held for name, held in plain.items() if name not in ("text", "exact_effect")}


def saved_as(path, place, value):
    """Return a saved release with one value exchanged or deleted."""
    plain = read_saved(path)
    holder = plain
    for folder in place[:-1]:
        holder = holder[folder]
    if value is DELETED:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return json.dumps(plain)


def name_of(path):
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("path", SAVED, ids=name_of)
def test_an_edited_release_is_shown_in_every_form_or_refused_in_words(path):
    rng = random.Random(name_of(path))
    everywhere = list(places(read_saved(path)))
    above = [place for place in everywhere if len(place) < 3]
    for _ in range(12):
        place, value = rng.choice(rng.choice((everywhere, above))), rng.choice(WRONG)
        try:
            release = Release.from_json(saved_as(path, place, value))
            assert all(form(release) for form in FORMS.values())
        except PrivateAteError:
            continue
        except Exception as error:  # noqa: BLE001  # whatever it is, it is no error of ours
            pytest.fail(f"{place} = {value!r}: {error!r}")


@pytest.mark.parametrize("name", ["releases/calibrated.json", "old/blocks.json"])
def test_each_field_of_a_release_that_is_something_else_is_shown_or_refused(name):
    for field in read_saved(GOLDEN / name):
        for value in WRONG:
            try:
                release = Release.from_json(saved_as(GOLDEN / name, (field,), value))
                assert all(form(release) for form in FORMS.values())
            except PrivateAteError:
                continue


@pytest.mark.parametrize(
    "odd", ["\x1b[2J\x07", "\r\nforged: line", "\u202egnol\u2066", "\x9b2J\u2028"]
)
@pytest.mark.parametrize("name", ["calibrated-subgroups-three-arms", "orthogonal"])
def test_no_text_of_a_saved_release_moves_a_cursor_or_turns_a_line(name, odd):
    path = GOLDEN / "releases" / f"{name}.json"
    plain = read_saved(path)
    shown = 0
    for place in places(plain):
        holder = plain
        for folder in place:
            holder = holder[folder]
        if not isinstance(holder, str):
            continue
        try:
            release = Release.from_json(saved_as(path, place, f"{holder[:8]}{odd}"))
        except PrivateAteError:
            continue
        shown += 1
        for form in ("text", "markdown", "csv"):
            assert UNSHOWN.search(FORMS[form](release)) is None, (form, place)
        assert "\nforged" not in FORMS["csv"](release)

    assert shown > 10


@pytest.mark.parametrize(
    "label", ["=1+2", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", " =1", "-1", "+2.5"]
)
def test_a_text_that_a_spreadsheet_would_compute_is_quoted_in_a_csv(label):
    plain = read_saved(GOLDEN / "releases" / "calibrated.json")
    plain["effects"][0]["arm"] = label
    table = pl.read_csv(Release.from_json(json.dumps(plain)).to_csv().encode(), infer_schema=False)

    assert table["arm"][0] == (label if label in ("-1", "+2.5") else f"'{label}")


def test_an_empty_sentence_is_shown_as_one():
    combined = combine([made_up_site(3.0, not_protected=("",))])  # of several it is left out

    assert "<li>.</li>" in combined.to_html()
