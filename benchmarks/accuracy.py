"""Error and coverage of the defaults of both levels beside boosted AIPW without privacy.

A line for each family of `private_ate.experiments.families`, size, ε and level. Errors, biases and
half-widths are in units of the true effect (studies without confounding: of the outcome's standard
deviation). ``bias left`` is the share of the bias of a plain difference that an estimate keeps;
``absurd`` counts releases that are off by more than three units; ``hears shapes`` and ``hears
overlap`` are shares of releases that say so. The reference is a cross-fitted AIPW with
scikit-learn's HistGradientBoosting (60 rounds of trees with 8 leaves, five folds, chances clipped
to .02); for studies without confounding it is the difference of means.

Every study is fresh. The part of a release that is free of noise is computed once per study and the
noise is drawn again and again: the weights' features at label level, the block effects of one
partition into blocks at sample level. What each part of the blocks is worth: `ablation.py`. All is
seeded: nothing here is private.

    python benchmarks/accuracy.py --families linear,tree-3 --sizes 1000,10000 --studies 4,2
"""

from __future__ import annotations

import argparse
import csv
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from private_ate import estimate_ate
from private_ate.experiments.families import FAMILIES, Study, make_study
from private_ate.experiments.references import (
    boosted_contrasts,
    plain_contrasts,
    records_of,
)
from private_ate.methods.blocks import method as blocks
from private_ate.methods.calibrated import method as calibrated

ABSURD = 3.0
FREE_DRAWS = 4  # times as many at sample level, where they take next to no time


@dataclass
class Tally:
    """What all releases of a line came to, in units of the study."""

    studies: int = 0
    errors: list[np.ndarray] = field(default_factory=list)
    covered: list[np.ndarray] = field(default_factory=list)
    halves: list[np.ndarray] = field(default_factory=list)
    shapes: list[bool] = field(default_factory=list)
    overlap: list[bool] = field(default_factory=list)
    overlap_covered: list[bool] = field(default_factory=list)
    left: float = 0.0
    naive: float = 0.0

    def add(self, errors: np.ndarray, halves: np.ndarray, naive: np.ndarray) -> None:
        """Add the releases of a study, of shape (draws, contrasts)."""
        self.studies += 1
        self.errors.append(errors)
        self.halves.append(halves)
        self.covered.append(np.abs(errors) <= halves)
        self.left += float(np.sum(np.sign(naive) * errors.mean(axis=0)))
        self.naive += float(np.abs(naive).sum())

    def entries(self) -> dict[str, object]:
        """Return the cells of a line."""
        errors, halves = np.concatenate(self.errors), np.concatenate(self.halves)
        return {
            "bias left": f"{self.left / self.naive:.2f}",
            "rmse": f"{np.sqrt(np.mean(errors**2)):.3f}",
            "coverage": f"{np.concatenate(self.covered).mean():.2f}",
            "half-width": f"{halves.mean():.3f}",
        }


def main() -> None:
    asked = parse()
    remember_public_halves()
    writer = None
    sizes = list(map(int, asked.sizes.split(",")))
    counts = list(map(int, asked.studies.split(",")))
    for family, (size, studies) in itertools.product(
        asked.families.split(","), zip(sizes, counts, strict=True)
    ):
        for row in lines(family, size, studies, asked):
            if writer is None:
                writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
            sys.stdout.flush()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = ",".join(name for name in FAMILIES if not name.startswith("quiet-"))
    parser.add_argument("--families", default=usual)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--studies", default="4,2", help="for each size")
    parser.add_argument("--draws", type=int, default=10, help="of the noise, for each study")
    parser.add_argument("--dimension", type=int, default=20)
    parser.add_argument("--epsilons", default="1,2")
    parser.add_argument("--levels", default="label,sample")
    parser.add_argument("--first-seed", type=int, default=50_000)
    return parser.parse_args()


def lines(
    family: str, size: int, studies: int, asked: argparse.Namespace
) -> Iterator[dict[str, object]]:
    """Measure one family and size; every level and ε sees the same studies."""
    grid = list(itertools.product(asked.levels.split(","), map(float, asked.epsilons.split(","))))
    tallies, reference = {key: Tally() for key in grid}, Tally()
    for seed in range(asked.first_seed, asked.first_seed + studies):
        study = make_study(family, size, asked.dimension, None, seed)
        records = records_of(study)
        naive = plain_contrasts(records)
        effects, halves = naive
        if not family.startswith("quiet-"):
            with threadpool_limits(1):  # threads that wait for each other take time
                effects, halves = boosted_contrasts(records, study.probability)
        truth, unit = np.array(list(study.contrasts.values())), study.unit
        away = (naive[0] - truth) / unit
        reference.add(((effects - truth) / unit)[None], (halves / unit)[None], away)
        forget()
        for level, epsilon in grid:
            release_many(study, level, epsilon, asked, seed, away, tallies[level, epsilon])
    beside = {f"AIPW {name}": value for name, value in reference.entries().items()}
    for (level, epsilon), tally in tallies.items():
        found, errors = tally.entries(), np.concatenate(tally.errors)
        width = float(found["half-width"]) / float(beside["AIPW half-width"])
        yield {
            "family": family, "n": size, "epsilon": f"{epsilon:g}", "level": level,
            "studies": studies, "releases": len(errors),
            "naive bias": f"{tally.naive / errors.shape[1] / studies:.2f}", **found, **beside,
            "width ratio": f"{width:.2f}",
            "absurd": int((np.abs(errors) > ABSURD).any(axis=1).sum()),
            "hears shapes": share(tally.shapes), "hears overlap": share(tally.overlap),
            "ATO covered where heard": share(tally.overlap_covered),
        }  # fmt: skip


def share(values: list[bool]) -> str:
    return f"{np.mean(values):.2f}" if values else ""


def release_many(
    study: Study, level: str, epsilon: float, asked: argparse.Namespace, seed: int,
    away: np.ndarray, tally: Tally,
) -> None:  # fmt: skip
    """Release a study again and again with fresh noise."""
    truth = np.array(list(study.contrasts.values()))
    errors, halves = [], []
    for draw in range(asked.draws * (FREE_DRAWS if level == "sample" else 1)):
        design = "unknown" if study.probability is None else "randomized"
        release = estimate_ate(
            study.frame, domain=study.domain, level=level, epsilon=epsilon, design=design,
            probability=study.probability, seed=1000 * seed + draw,
        )  # fmt: skip
        found = {
            (one.arm, one.against): (one.effect, one.interval) for one in release.contrasts or ()
        }
        pairs = [found[pair] for pair in study.contrasts] if len(truth) > 1 else [
            (release.ate, release.interval)
        ]  # fmt: skip
        ends = np.array([interval for _, interval in pairs])
        half = (ends[:, 1] - ends[:, 0]) / 2
        settings = release.settings
        errors.append((np.array([effect for effect, _ in pairs]) - truth) / study.unit)
        halves.append(half / study.unit)
        if "models_differ" in settings:
            tally.shapes.append(settings["models_differ"] is True)
        heard = settings.get("arms_overlap") is False
        if level == "label":
            heard = any("overlap" in warning for warning in release.warnings)
        tally.overlap.append(heard)
        if heard and "ato" in study.effects:
            low, high = release.interval
            tally.overlap_covered.append(low <= study.effects["ato"] <= high)
    tally.add(np.array(errors), np.array(halves), away)


# The halves of the methods that are free of noise, once per study.

_KNOWN: dict[object, object] = {}


def forget() -> None:
    _KNOWN.clear()


def remember_public_halves() -> None:
    """Let redraws of the noise share what does not depend on it.

    Block effects are kept by the number of blocks: released counts that change the plan make new
    ones, those that move only the bounds of deviations do not.
    """
    cut, pose = blocks._block_table, calibrated.pose

    def block_table(run, plan, keys):
        key = ("blocks", plan.blocks, plan.partitions, plan.inside)
        if key not in _KNOWN:
            _KNOWN[key] = cut(run, plan, keys)
        return _KNOWN[key]

    def posed(public, request, learned=None):
        if "label" not in _KNOWN:
            _KNOWN["label"] = pose(public, request, learned)
        return _KNOWN["label"]

    blocks._block_table, calibrated.pose = block_table, posed


if __name__ == "__main__":
    main()
