"""Mean relative error of the sample-level method, on benchmarks and on confounded studies.

Each line shows, for every ε, the mean over the runs of |estimate/reference − 1| against exact
matching with five neighbours and, after the slash, against the true effect; a star marks runs that
adjusted for covariates. The benchmarks come from ``private_ate.datasets`` and are left out where
that cannot load them. The confounded studies are generated here: d independent covariates, uniform
on [0, 1]; log odds of treatment of standard deviation ``strength`` along their sum; an outcome that
follows the same sum, with an effect of 0.15 in units of its declared range.

    python benchmarks/accuracy_sample.py --runs 100 --sets lalonde,ihdp,confounded-10000
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from private_ate import Domain, Interval, Treatment, datasets, estimate_ate, exact_effect
from private_ate.datasets import Dataset, acic

EFFECT = 0.15
EPSILONS = ("0.5", "1", "2", "4")
BENCHMARKS = ("lalonde", "ihdp", "synth", "acic")
CONFOUNDED = {
    "confounded-10000": (10_000, 10, 1.0),
    "confounded-100000": (100_000, 10, 1.5),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A study and what its estimates are held against."""

    name: str
    frame: pl.DataFrame
    domain: Domain
    true_effect: float | None
    naive: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--sets", default=",".join((*BENCHMARKS, *CONFOUNDED)))
    parser.add_argument("--method", default="auto")
    parser.add_argument("--confidence", type=float, default=None)
    arguments = parser.parse_args()
    print("set".ljust(20), "naive".rjust(8), *(f"ε = {e}".rjust(14) for e in EPSILONS))
    for case in cases(arguments.sets.split(",")):
        exact = exact_effect(case.frame, domain=case.domain)
        entries = [
            entry(case, exact, epsilon, arguments.runs, arguments.method, arguments.confidence)
            for epsilon in EPSILONS
        ]
        naive = f"{abs(case.naive / exact - 1):.3f}"
        print(case.name.ljust(20), naive.rjust(8), *(text.rjust(14) for text in entries))


def entry(  # one cell of the table
    case: Case, exact: float, epsilon: str, runs: int, method: str, confidence: float | None
) -> str:
    releases = [
        estimate_ate(
            case.frame, domain=case.domain, level="sample", epsilon=epsilon, method=method,
            confidence=confidence, seed=run,
        )
        for run in range(runs)
    ]  # fmt: skip
    estimates = np.array([release.ate for release in releases])
    text = f"{np.abs(estimates / exact - 1).mean():.3f}"
    if case.true_effect is not None:
        text += f"/{np.abs(estimates / case.true_effect - 1).mean():.3f}"
    return text + ("*" if releases[0].settings.get("adjusted") else "")


def cases(names: list[str]) -> Iterator[Case]:
    for name in names:
        if name in CONFOUNDED:
            yield confounded(name, *CONFOUNDED[name])
            continue
        try:
            dataset = load(name)
        except (ImportError, LookupError, OSError) as cause:
            print(name.ljust(20), f"left out: {cause}")
            continue
        naive = difference(dataset.frame, dataset.domain)
        yield Case(name, dataset.frame, dataset.domain, dataset.true_effect, naive)


def load(name: str) -> Dataset:
    """Load a benchmark; ``acic-codes-2`` to ``-10`` are ACIC settings with letters as numbers."""
    setting = re.fullmatch(r"acic-codes-(\d+)", name)
    if setting is None:
        return datasets.load(name)
    return acic.with_coded_letters(acic.load(int(setting[1])))


def confounded(name: str, size: int, dimension: int, strength: float) -> Case:
    rng = np.random.default_rng(size)
    covariates = rng.random((size, dimension))
    total = (covariates - 0.5).sum(axis=1) * np.sqrt(12 / dimension)  # of unit variance
    treated = rng.random(size) < 1 / (1 + np.exp(-strength * total))
    outcome = 0.5 + 0.06 * total + EFFECT * (treated - 0.5) + 0.08 * rng.standard_normal(size)
    names = [f"x{j}" for j in range(dimension)]
    frame = pl.DataFrame(
        {"t": treated.astype(np.int8), "y": np.clip(outcome, 0, 1)}
        | dict(zip(names, covariates.T, strict=True))
    )
    domain = Domain(
        Treatment("t", 1, 0), ("y", Interval(0, 1)), dict.fromkeys(names, Interval(0, 1))
    )
    return Case(name, frame, domain, EFFECT, difference(frame, domain))


def difference(frame: pl.DataFrame, domain: Domain) -> float:
    outcome = frame[domain.outcome.column].to_numpy()
    treated = frame[domain.treatment.column].to_numpy() == 1
    return float(outcome[treated].mean() - outcome[~treated].mean())


if __name__ == "__main__":
    main()
