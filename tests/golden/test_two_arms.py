"""Releases of two arms as text, JSON and pages, byte for byte as they were last changed on purpose.

Run ``python tests/golden/test_two_arms.py`` to write the sums anew, and say why in the commit.
"""

import hashlib
import json
import pickle
from pathlib import Path

import pytest

from private_ate.release import Diagnostics, Overlap, Release

FOLDER = Path(__file__).parent
SUMS = json.loads((FOLDER / "two_arms" / "sums.json").read_text("utf-8"))
PICKLES = sorted((FOLDER / "two_arms").glob("*.pickle"))
DIAGNOSTICS = Diagnostics(
    exact_effect=1.25, limited_effect=1.5, plain_difference=-0.5, treated=40, control=60,
    effective_treated=30.5, effective_control=50.25,
    balance={"age": (0.4, 0.1), "x": (-0.3, 0.05)},
    weights={"treated": (1.0, 1.5, 2.0, 3.0, 4.0), "control": (1.0, 1.1, 1.2, 1.3, 1.4)},
    overlap=Overlap((0, 1, 2, 3), (3, 2, 1, 0)),
)  # fmt: skip


def golden(name: str) -> Release:
    plain = json.loads((FOLDER / "releases" / f"{name}.json").read_text("utf-8"))
    del plain["exact_effect"], plain["text"]
    return Release.from_json(json.dumps(plain))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def shown(name: str) -> dict[str, str]:
    """Return sums of everything that a release is shown as."""
    release = golden(name)
    texts = {
        "json": release.to_json(),
        "text": str(release),
        "page": release.to_html(),
        "card": release._repr_html_(),
        "curator": DIAGNOSTICS.to_html(release),
        "repr": repr(release),
    }
    return {kind: digest(text) for kind, text in texts.items()}


@pytest.mark.parametrize("name", list(SUMS))
def test_json_text_and_pages_of_two_arms_are_what_they_were(name):
    assert shown(name) == SUMS[name]


def test_a_step_of_a_mechanism_that_is_no_more_is_read_and_shown():
    plain = json.loads(golden("blocking").to_json())
    plain["steps"][0] |= {"mechanism": "objective_by_arm", "metric": "gradient by arm"}

    release = Release.from_json(json.dumps(plain))

    assert json.loads(release.to_json()) == plain
    assert "objective by arm" in release.to_html()


@pytest.mark.parametrize("path", PICKLES, ids=lambda path: path.stem)
def test_a_pickle_of_two_arms_is_read_and_written_as_it_was(path):
    kept = path.read_bytes()
    release = pickle.loads(kept)  # noqa: S301  # our own
    assert release == golden(path.stem)
    assert release.arms == ()
    assert pickle.dumps(release, protocol=4) == kept


def test_two_arms_have_one_contrast_whose_interval_is_simultaneous():
    release = golden("calibrated")
    (row,) = release.contrasts
    assert (row.effect, row.interval, row.simultaneous) == (
        release.ate, release.interval, release.interval,
    )  # fmt: skip
    control, treated = release.treatment.arms
    assert release.contrast(control, treated).effect == -release.ate
    half = release.combination({treated: 0.5, control: -0.5})
    assert half.estimate == release.ate / 2
    assert half.interval == (release.interval[0] / 2, release.interval[1] / 2)
    assert release.to_frame().height == 1


if __name__ == "__main__":
    anew = json.dumps({name: shown(name) for name in SUMS}, indent=2) + "\n"
    (FOLDER / "two_arms" / "sums.json").write_text(anew, "utf-8")
    for path in PICKLES:
        if pickle.loads(path.read_bytes()) != golden(path.stem):  # noqa: S301  # our own
            path.write_bytes(pickle.dumps(golden(path.stem), protocol=4))
