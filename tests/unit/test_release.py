"""What leaves: JSON and back, texts, pickles; and nothing that was not paid for."""

import json
import pickle
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import ArgumentError, Domain, Interval, Release, Treatment, estimate_ate
from private_ate.release.release import SURVIVAL_FIELDS
from private_ate.report.phrasing import number_text, uncertainty
from private_ate.report.text import summarize

DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 1)})
FIELDS = ["schema", "warnings", "ate", "interval", "noise_interval", "estimand", "adjusted",
          "design", "treatment", "outcome", "covariates", "effects", "epsilon", "delta", "level",
          "adjacency", "guarantee", "not_protected", "steps", "method", "n", "missing", "dataset",
          "dataset_version", "released_at", "settings", "version"]  # fmt: skip


@pytest.fixture(params=["label", "sample"])
def release(request) -> Release:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"x": rng.random(80), "t": [0, 1] * 40, "y": rng.random(80) * 9})
    return estimate_ate(
        frame, domain=DOMAIN, level=request.param, epsilon="0.7", method="published"
    )


def test_a_release_survives_the_way_to_json_and_back(release):
    again = Release.from_json(release.to_json())
    assert again == release
    assert again.epsilon == Fraction(7, 10)
    assert again.to_json() == release.to_json()


def test_the_json_holds_exactly_the_promised_fields(release):
    plain = json.loads(release.to_json())
    assert list(plain) == FIELDS
    assert plain["epsilon"] == 0.7
    assert plain["delta"] == 0
    assert plain["noise_interval"] == list(release.noise_interval)


def test_a_release_is_pickled_and_shown_with_public_facts_only(release):
    assert pickle.loads(pickle.dumps(release)) == release  # noqa: S301  # our own bytes
    # The last are the settings once more, typed.
    held = {*FIELDS, "arms", *SURVIVAL_FIELDS, "_facts"}
    assert held == set(release.__slots__)
    plain = ("neighbors", "matching_limit", "ridge", "confidence", "rows_per_person", "population",
             "budget", "largest_weight", "noise_interval_covers", "matching_order")  # fmt: skip
    level = {
        "label": {"arms", "equals_difference_in_means"},
        "sample": {"noisy_arms", "notes"},
    }[release.level]
    assert set(release.settings) - {"notes"} == {*plain, *level} - {"notes"}


def test_the_summary_says_what_is_promised(release):
    text = str(release)
    assert text == summarize(release)
    assert f"pure 0.7-DP, {release.level} level" in text
    assert "by more than 2.01×" in " ".join(text.split())
    assert number_text(release.ate, uncertainty(release)) in text
    assert "same n, one unit's" in text


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain.pop("ate"),
        lambda plain: plain.update(truth=1),
        lambda plain: plain.update(epsilon=None),
        lambda plain: plain.update(epsilon=-1),
        lambda plain: plain.update(interval=5),
        lambda plain: plain.update(interval=[1]),
        lambda plain: plain.update(noise_interval=["a", "b"]),
    ],
)
def test_json_that_is_no_release_is_refused(release, change):
    plain = release.to_dict()
    change(plain)
    with pytest.raises(ArgumentError):
        Release.from_json(json.dumps(plain))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"ate"', "null", "[[1]]", "[" * 100_000])
def test_text_that_is_no_release_is_refused(text):
    with pytest.raises(ArgumentError, match="release"):
        Release.from_json(text)


def test_a_release_cannot_be_changed(release):
    with pytest.raises(AttributeError):
        release.ate = 3.0


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_refused_anywhere_in_a_release(release, number):
    text = release.to_json().replace('"settings": {', f'"settings": {{"odd": [{number}],', 1)
    with pytest.raises(ArgumentError):
        Release.from_json(text)
