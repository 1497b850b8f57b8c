"""Seeded releases as they were when they were last changed on purpose.

Run ``python tests/golden/test_golden.py`` to write them anew, and say why in the commit;
``--exactly`` compares byte by byte instead, on the machine and packages that wrote them.
"""

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
import pytest

from private_ate import (
    AimOptions,
    BlocksOptions,
    CalibratedOptions,
    GroupedOptions,
    IpwOptions,
    PrivSynOptions,
    PublishedOptions,
    estimate_ate,
    exact_effect,
)
from private_ate.datasets.clinic import draw_clinic
from private_ate.domain import Domain, Interval, Treatment

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """One request to a method at a level."""

    name: str
    level: str
    method: str
    asked: dict = field(default_factory=dict)
    patients: int = 1000
    arms: tuple[str, ...] = ()  # smokers' labels, where those are compared
    weighted: bool = False  # by sampling weights that grow with age


SMOKERS = ("never", "former", "current")
CASES = (
    Case("published-label", "label", "published"),
    Case("published-sample", "sample", "published"),
    Case("published-label-fixed-limit", "label", "published", {"options": PublishedOptions(k=3)}),
    Case("calibrated", "label", "calibrated"),
    Case("calibrated-track", "label", "calibrated", {"target": "track"}),
    Case("calibrated-att", "label", "calibrated", {"estimand": "att", "rows_per_person": 2}),
    Case("calibrated-means", "label", "calibrated", {"options": CalibratedOptions(means=True)}),
    Case(
        "calibrated-clipped",
        "label",
        "calibrated",
        {"options": CalibratedOptions(clip_share="0.1")},
    ),
    Case("blocks", "sample", "blocks", {"options": BlocksOptions(adjust=False)}),
    Case("blocks-adjusting", "sample", "blocks", {"options": BlocksOptions(adjust=True)}),
    Case("blocks-trial", "sample", "blocks", {"design": "randomized"}),
    Case("blocks-overlap", "sample", "blocks", {"estimand": "ato", "rows_per_person": 2}),
    Case(
        "blocks-treated",
        "sample",
        "blocks",
        {"estimand": "att", "options": BlocksOptions(adjust=True)},
    ),
    Case("difference-in-means", "sample", "difference_in_means"),
    Case("ipw", "sample", "ipw"),
    Case("ipw-all-rows", "sample", "ipw", {"options": IpwOptions(split=False)}),
    Case("smooth-matching", "sample", "smooth_matching"),
    Case("doubly-robust", "sample", "doubly_robust"),
    Case("fold-split", "sample", "fold_split"),
    Case("grouped", "sample", "grouped"),
    Case("grouped-treated", "sample", "grouped", {"estimand": "att", "confidence": None}),
    Case(
        "grouped-winsorized",
        "sample",
        "grouped",
        {"options": GroupedOptions(groups=60, centre="winsorized")},
    ),
    Case("balancing", "sample", "balancing"),
    Case("balancing-overlap", "sample", "balancing", {"estimand": "ato", "confidence": None}),
    Case("blocking", "sample", "blocking"),
    Case("blocking-overlap", "sample", "blocking", {"estimand": "ato", "confidence": None}),
    Case("aim", "sample", "aim", {"options": AimOptions()}, patients=300),
    Case("privsyn", "sample", "privsyn", {"options": PrivSynOptions()}, patients=300),
    Case("published-label-three-arms", "label", "published", arms=SMOKERS),
    Case("published-sample-three-arms", "sample", "published", arms=SMOKERS),
    Case("blocks-three-arms", "sample", "blocks", arms=SMOKERS),
    Case(
        "blocks-adjusting-three-arms",
        "sample",
        "blocks",
        {"options": BlocksOptions(adjust=True, partitions=1)},
        arms=SMOKERS,
    ),
    Case(
        "blocks-subgroups",
        "sample",
        "blocks",
        {"by": ["age<60"], "options": BlocksOptions(adjust=True, partitions=2)},
    ),
    Case("calibrated-three-arms", "label", "calibrated", arms=SMOKERS),
    Case("calibrated-track-three-arms", "label", "calibrated", {"target": "track"}, arms=SMOKERS),
    Case(
        "calibrated-among-three-arms",
        "label",
        "calibrated",
        {"among": "current", "rows_per_person": 2},
        arms=SMOKERS,
    ),
    Case(
        "calibrated-subgroups",
        "label",
        "calibrated",
        {"by": ["age<60", "weight<85"], "overall": True},
    ),
    Case(
        "calibrated-subgroups-three-arms", "label", "calibrated", {"by": ["age<60"]}, arms=SMOKERS
    ),
    Case("calibrated-weighted", "label", "calibrated", weighted=True),
    Case("calibrated-weighted-three-arms", "label", "calibrated", arms=SMOKERS, weighted=True),
    Case(
        "calibrated-weighted-subgroups",
        "label",
        "calibrated",
        {"by": ["age<60"], "overall": True},
        weighted=True,
    ),
    Case(
        "blocks-weighted",
        "sample",
        "blocks",
        {"options": BlocksOptions(adjust=True)},
        weighted=True,
    ),
)


def golden_release(case: Case) -> dict[str, object]:
    study = draw_clinic(patients=case.patients, seed=7)
    domain = study.domain
    if case.arms:
        others = {name: kind for name, kind in domain.covariates.items() if name != "smoker"}
        domain = Domain(Treatment("smoker", arms=case.arms), domain.outcome, others)
    frame, declared = study.frame, domain
    if case.weighted:
        frame = frame.with_columns(stands_for=(pl.col("age") / 40) ** 2)
        declared = replace(domain, weights=("stands_for", Interval(0, 6)))
    release = estimate_ate(
        frame, domain=declared, level=case.level, epsilon="1.5", method=case.method,
        seed=42, **case.asked,
    )  # fmt: skip
    plain = release.to_dict() | {"version": "any"}
    plain["exact_effect"] = exact_effect(study.frame, domain=domain)
    plain["text"] = str(release)
    return plain


def golden_file(case: Case) -> Path:
    return FOLDER / "releases" / f"{case.name}.json"


def written(plain: dict[str, object]) -> str:
    return json.dumps(plain, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_seeded_release_is_what_it_was(case):
    found, kept = golden_release(case), json.loads(golden_file(case).read_text("utf-8"))

    assert found.pop("text").splitlines()[0] == kept.pop("text").splitlines()[0]
    assert close(found, kept)


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
    (FOLDER / "releases").mkdir(exist_ok=True)
    for one in CASES:
        text = written(golden_release(one))
        if "--exactly" not in sys.argv:
            golden_file(one).write_text(text, "utf-8")
        elif text != golden_file(one).read_text("utf-8"):
            print("changed:", one.name)  # noqa: T201  # a script's answer
