"""Errors and intervals of studies of several arms, beside the figures they were designed with.

The studies are ``private_ate.datasets.SeveralArms``: five covariates, arms by a multinomial logit
with a square, outcomes in [0, 10]. An error is the mean over all contrasts of |error| divided by
the mean size of the true ones; in brackets the same against non-private matching on each arm's
score. Two tables:

- ``errors``: all methods at both levels;
- ``intervals``: coverage of single contrasts / of all pairs at once, and the mean half-width over
  1.96 root-mean-square errors; every repetition has its own study.

Each entry shows our figure, its standard error over studies, and the design's figure after
"design". A ``!`` marks an entry that is worse by more than three standard errors of the
difference, a ``+`` one that is better by as much; the design's figures come from few studies, whose
number is guessed from their range. Letters tell the path at sample level: - plain, p prognosis,
s score, m several.

Everything measured is appended to a file, and what the file holds is not measured again, so that
the tables can be made in pieces and a run that was stopped goes on:

    python benchmarks/accuracy_arms.py --table errors --rows 3x1000,4x1000 --file arms.jsonl
    python benchmarks/accuracy_arms.py --table intervals --quick
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from arms_figures import ERRORS, INTERVALS, NOT_PRIVATE

from private_ate import estimate_ate
from private_ate.datasets import Dataset, SeveralArms, generate
from private_ate.experiments.references import (
    REFERENCES,
    contrast_error,
    contrasts_of,
    matched_means,
    records_of,
)
from private_ate.methods.registry import METHODS

EPSILONS = ("0.5", "1", "2", "4")
SKEWED = (0.70, 0.15, 0.10, 0.05)
STUDIES = {
    "3x1000": SeveralArms(1000, 3),
    "4x1000": SeveralArms(1000, 4),
    "3x10000": SeveralArms(10_000, 3),
    "4x10000": SeveralArms(10_000, 4),
    "4x10000 skewed": SeveralArms(10_000, 4, shares=SKEWED),
    "6x10000": SeveralArms(10_000, 6),
    "5x20000": SeveralArms(20_000, 5),
    "3x10000 binary": SeveralArms(10_000, 3, binary=True),
    "3x10000 weak": SeveralArms(10_000, 3, strength=0.3),
    "3x100000": SeveralArms(100_000, 3),
    "4x100000": SeveralArms(100_000, 4),
    "3x1000 randomised": SeveralArms(1000, 3, strength=0.0),
    "3x10000 randomised": SeveralArms(10_000, 3, strength=0.0),
}
REQUESTS = {
    "label, published": {"level": "label", "method": "published"},
    "label, track": {"level": "label", "method": "calibrated", "target": "track"},
    "label, balance": {"level": "label", "method": "calibrated", "target": "balance"},
    "sample, published": {"level": "sample", "method": "published"},
    "sample, plain": {"level": "sample", "method": "blocks", "adjust": False},
    "sample, blocks": {"level": "sample", "method": "blocks"},
}
FIRST_SEED = 51  # of the studies; those below were looked at while the method was designed
DEVIATIONS = 3.0  # standard errors beyond which a figure is marked


@dataclass(frozen=True, slots=True)
class Job:
    """Releases of one study: the unit of work that is measured and stored."""

    table: str
    row: str
    method: str
    epsilon: str
    seed: int
    draws: int

    @property
    def key(self) -> str:
        """The job's name in the file."""
        return json.dumps([self.table, self.row, self.method, self.epsilon, self.seed, self.draws])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=("errors", "intervals"), default="errors")
    parser.add_argument(
        "--rows", help="studies by name, with commas; all of the table if not given"
    )
    parser.add_argument("--methods", help="methods by name, with semicolons")
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    parser.add_argument("--studies", type=int, help="studies a row instead of the default")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="seed of the first one")
    parser.add_argument("--quick", action="store_true", help="few studies, and none above 10 000")
    parser.add_argument("--file", type=Path, default=Path("accuracy_arms.jsonl"))
    arguments = parser.parse_args()
    store = Store(arguments.file)
    last_row = None
    for title, jobs in lines(arguments):
        if arguments.table != "intervals" and jobs[0].row != last_row:
            last_row = jobs[0].row
            print(beside(last_row, arguments), flush=True)
        for job in jobs:
            if not store.has(job):
                store.add(job, interval_runs(job) if job.table == "intervals" else error_runs(job))
        print(title, flush=True)
        print_line(jobs, store)


def lines(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Job]]]:
    """Yield every line of a table with its jobs; a line is a study and a method."""
    figures = {"errors": ERRORS, "intervals": INTERVALS}[arguments.table]
    rows = arguments.rows.split(",") if arguments.rows else None
    methods = arguments.methods.split(";") if arguments.methods else None
    for (row, method), told in figures.items():
        size = STUDIES[row].size
        if (rows and row not in rows) or (methods and method not in methods):
            continue
        if arguments.quick and size > 10_000:
            continue
        studies, draws = amount(arguments, size)
        jobs = [
            Job(arguments.table, row, method, epsilon, arguments.first_seed + study, draws)
            for epsilon in arguments.epsilons.split(",")
            if epsilon in told
            for study in range(studies)
        ]
        if jobs:
            yield f"{row}, {method}: {studies} studies, {draws} draws", jobs


def amount(arguments: argparse.Namespace, size: int) -> tuple[int, int]:
    """Return how many studies, and how many draws from each."""
    if arguments.table == "intervals":
        studies, draws = {1000: 200, 10_000: 60}.get(size, 20), 1
    else:
        studies, draws = {1000: (20, 5), 10_000: (8, 3), 20_000: (4, 3)}.get(size, (2, 2))
    if arguments.quick:
        studies, draws = (20 if arguments.table == "intervals" else 3), min(draws, 3)
    return arguments.studies or studies, draws


def beside(row: str, arguments: argparse.Namespace) -> str:
    """Return what is reached without privacy on the same studies, and the design's figures."""
    found = []
    for study in range(2 if STUDIES[row].size > 20_000 else 4):
        dataset = open_study(row, arguments.first_seed + study)
        truth, records = truth_of(dataset), records_of(dataset)
        found.append([contrast_error(contrasts_of(f(records)), truth) for f in REFERENCES.values()])
    ours = " / ".join(f"{value:.3f}" for value in np.mean(found, axis=0))
    told = " / ".join(f"{value:.3f}" for value in NOT_PRIVATE.get((arguments.table, row), ()))
    return f"{row}, not private, {' / '.join(REFERENCES)}: {ours} (design {told})"


@lru_cache(maxsize=4)
def open_study(row: str, seed: int) -> Dataset:
    return generate(STUDIES[row], seed)


@lru_cache(maxsize=4)
def matched_contrasts(row: str, seed: int) -> np.ndarray:
    return contrasts_of(matched_means(records_of(open_study(row, seed))))


def truth_of(dataset: Dataset) -> np.ndarray:
    return np.array(list(dataset.true_contrasts.values()))


def error_runs(job: Job) -> list[dict[str, object]]:
    dataset = open_study(job.row, job.seed)
    truth, matched = truth_of(dataset), matched_contrasts(job.row, job.seed)
    runs = []
    for draw in range(job.draws):
        release = release_of(job, dataset, draw, None)
        found = effects_of(release, dataset)
        runs.append({
            "error": contrast_error(found, truth), "matching": contrast_error(found, matched),
            "path": path_of(release),
        })  # fmt: skip
    return runs


def interval_runs(job: Job) -> list[dict[str, object]]:
    dataset = open_study(job.row, job.seed)
    truth = truth_of(dataset)
    runs = []
    for draw in range(job.draws):
        release = release_of(job, dataset, draw, 0.95)
        found = effects_of(release, dataset)
        single, together = (
            np.array([getattr(contrast, kind) for contrast in in_order(release, dataset)])
            for kind in ("interval", "simultaneous")
        )
        inside = (single[:, 0] <= truth) & (truth <= single[:, 1])
        everywhere = (together[:, 0] <= truth) & (truth <= together[:, 1])
        runs.append({
            "covered": float(inside.mean()), "together": bool(everywhere.all()),
            "half": float((single[:, 1] - single[:, 0]).mean() / 2),
            "square": float(((found - truth) ** 2).mean()), "path": path_of(release),
        })  # fmt: skip
    return runs


def release_of(job: Job, dataset: Dataset, draw: int, confidence: float | None):
    request = dict(REQUESTS[job.method])
    adjust = request.pop("adjust", None)
    options = None if adjust is None else METHODS["blocks"].options(adjust=adjust)
    text = hashlib.sha256(f"{job.key} {draw}".encode()).digest()
    return estimate_ate(
        dataset.frame, domain=dataset.domain, epsilon=job.epsilon, confidence=confidence,
        options=options, seed=int.from_bytes(text[:6], "big"), **request,
    )  # fmt: skip


def in_order(release, dataset: Dataset) -> list:
    """Return the contrasts in the order of the true ones."""
    by_pair = {(contrast.arm, contrast.against): contrast for contrast in release.contrasts}
    return [by_pair[pair] for pair in dataset.true_contrasts]


def effects_of(release, dataset: Dataset) -> np.ndarray:
    return np.array([contrast.effect for contrast in in_order(release, dataset)])


def path_of(release) -> str:
    return {"plain": "-", "prognosis": "p", "score": "s"}.get(
        str(release.settings.get("path", "")), ""
    )


def print_line(jobs: list[Job], store: Store) -> None:
    for epsilon in dict.fromkeys(job.epsilon for job in jobs):
        runs = [store.runs(job) for job in jobs if job.epsilon == epsilon]
        tell = tell_intervals if jobs[0].table == "intervals" else tell_errors
        print(f"  ε = {epsilon:<4}", tell(jobs[0], epsilon, runs), flush=True)


def tell_errors(job: Job, epsilon: str, runs: list[list[dict]]) -> str:
    mean, deviation = over_studies([[run["error"] for run in study] for study in runs])
    matching, spread = over_studies([[run["matching"] for run in study] for study in runs])
    told = ERRORS[job.row, job.method][epsilon]
    text = f"{mean:.3f} ± {deviation:.3f}{paths(runs)} (design {told.error:.3f}{told.path})"
    text += mark(mean, told.error, deviation, job, len(runs))
    if told.matching is not None:
        text += f"   [{matching:.3f} ± {spread:.3f} (design {told.matching:.3f})]"
        text += mark(matching, told.matching, spread, job, len(runs))
    return text


def tell_intervals(job: Job, epsilon: str, runs: list[list[dict]]) -> str:
    flat = [run for study in runs for run in study]
    covered, deviation = over_studies([[run["covered"] for run in study] for study in runs])
    together = np.mean([run["together"] for run in flat])
    error = math.sqrt(np.mean([run["square"] for run in flat]))
    width = np.mean([run["half"] for run in flat]) / (1.96 * error)
    told = INTERVALS[job.row, job.method][epsilon]
    text = f"{covered:.3f} ± {deviation:.3f} / {together:.3f}, width {width:.2f}{paths(runs)}"
    design = f"{told.single:.3f}"
    design += "" if told.together is None else f" / {told.together:.3f}"
    design += "" if told.width is None else f", width {told.width:.2f}"
    low = covered < told.single - DEVIATIONS * math.hypot(deviation, told.error)
    return f"{text} (design {design})" + (" !" if low else "")


def over_studies(runs: list[list[float]]) -> tuple[float, float]:
    """Return the mean and its standard error; studies differ, and draws within one do too."""
    means = np.array([np.mean(study) for study in runs])
    if len(means) < 2:
        return float(means.mean()), math.nan
    return float(means.mean()), float(means.std(ddof=1) / math.sqrt(len(means)))


def mark(ours: float, told: float, deviation: float, job: Job, studies: int) -> str:
    """Mark what is further from the design than both sides' Monte-Carlo error explains."""
    theirs = {1000: 10, 10_000: 5}.get(STUDIES[job.row].size, 2)
    error = deviation * math.sqrt(1 + studies / theirs)
    if math.isnan(error) or abs(ours - told) <= DEVIATIONS * error + 0.0005:  # figures are rounded
        return ""
    return " !" if ours > told else " +"


def paths(runs: list[list[dict]]) -> str:
    seen = {run["path"] for study in runs for run in study} - {""}
    return f" {seen.pop()}" if len(seen) == 1 else " m" if seen else ""


class Store:
    """What was measured, a line of JSON for each job."""

    def __init__(self, path: Path) -> None:
        self.path, self.known = path, {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                key, runs = json.loads(line)
                self.known[key] = runs

    def has(self, job: Job) -> bool:
        """Say whether a job was run before."""
        return job.key in self.known

    def runs(self, job: Job) -> list[dict]:
        """Return what a job found."""
        return self.known[job.key]

    def add(self, job: Job, runs: list[dict[str, object]]) -> None:
        """Keep what a job found, in memory and in the file."""
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([job.key, runs]) + "\n")
        self.known[job.key] = runs


if __name__ == "__main__":
    main()
