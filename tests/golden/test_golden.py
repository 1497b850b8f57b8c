"""Seeded releases as they were when they were last changed on purpose.

Run ``python tests/golden/test_golden.py`` to write them anew, and say why in the commit.
"""

import json
from pathlib import Path

import pytest

from private_ate import estimate_ate, exact_effect
from private_ate.datasets.clinic import draw_clinic

FOLDER = Path(__file__).parent
LEVELS = ("label", "sample")


def golden_release(level: str) -> dict[str, object]:
    study = draw_clinic(patients=1000, seed=7)
    release = estimate_ate(
        study.frame, domain=study.domain, level=level, epsilon="1.5", method="published", seed=42
    )
    plain = release.to_dict() | {"version": "any"}
    plain["exact_effect"] = exact_effect(study.frame, domain=study.domain)
    return plain


def golden_file(level: str) -> Path:
    return FOLDER / f"published-{level}.json"


@pytest.mark.parametrize("level", LEVELS)
def test_a_seeded_release_is_what_it_was(level):
    assert close(golden_release(level), json.loads(golden_file(level).read_text("utf-8")))


def close(found: object, kept: object) -> bool:
    """Compare plain values; numbers may differ by what another processor rounds differently."""
    if isinstance(found, dict) and isinstance(kept, dict):
        return found.keys() == kept.keys() and all(close(found[key], kept[key]) for key in kept)
    if isinstance(found, list) and isinstance(kept, list):
        return len(found) == len(kept) and all(map(close, found, kept))
    if isinstance(found, float):
        return found == pytest.approx(kept, rel=1e-9)
    return found == kept


if __name__ == "__main__":
    for name in LEVELS:
        text = json.dumps(golden_release(name), indent=2, ensure_ascii=False)
        golden_file(name).write_text(text + "\n", "utf-8")
