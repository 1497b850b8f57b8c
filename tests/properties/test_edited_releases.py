"""Releases that somebody edited: combined if they still make sense, refused in words if not."""

import json
import random

import pytest

from private_ate import Combined, Release, combine
from private_ate.errors import PrivateAteError
from sites import made_up_site

ODD = (
    None, True, 0, -1, 0.5, 3.0, 1e100, 1e300, 1e-300, 5e-324, 10**400, "", "att", "\x1b[2J",
    [], {}, [0, 0], [1, 2], [-1e308, 1e308], [None], {"a": 1},
)  # fmt: skip
FACTORS = (-1, 0, 0.5, 2, 1e-5, 1e5, 1e120)


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


def test_an_empty_sentence_is_shown_as_one():
    combined = combine([made_up_site(3.0, not_protected=("",)), made_up_site(4.0)])

    assert "<li>.</li>" in combined.to_html()
