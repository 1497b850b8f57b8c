"""Error and coverage of `blocks` beside `grouped` on generated families (`families.py`).

Every study is released at every ε by every method. Each line shows a family, n, d, the treated
share, an estimand and ε; then, for every method, the mean over fresh studies of
|estimate/truth − 1|, its standard error, the bias, how often the 95 % interval covers the true
effect and its mean half-width over the truth. A star marks cells that adjusted. With
``--monotone`` a second table follows: by how much the error rises from one ε to the next, paired
by study, in standard errors; a rise of more than three is marked. ``--save`` keeps every release
in a file as it is made, and a run that finds the file goes on where it ended; ``--runs 0``
prints what a file holds.

    python benchmarks/accuracy_blocks.py --runs 20 --sizes 1000,5000 --dimensions 5,20 --monotone
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from families import FAMILIES, make_study

from private_ate import estimate_ate

METHODS = ("blocks", "grouped")


class Place(NamedTuple):
    """A cell of the table but for ε."""

    family: str
    size: int
    dimension: int
    share: float
    estimand: str

    def __str__(self) -> str:
        return (
            f"{self.family:10} {self.size:6} {self.dimension:3} {self.share:5.2f} {self.estimand}"
        )


class Run(NamedTuple):
    """One release beside the truth."""

    seed: int
    truth: float
    effect: float
    low: float
    high: float
    adjusted: bool
    model: str

    @property
    def error(self) -> float:
        """The relative error."""
        return abs(self.effect / self.truth - 1)


Found = dict[tuple[Place, str, float], list[Run]]


def main() -> None:
    arguments = parse()
    found = load(arguments.save)
    methods = arguments.methods.split(",")
    for place in places(arguments):
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.runs):
            measure(place, seed, methods, arguments, found)
    show_errors(found, methods)
    if arguments.monotone:
        show_rises(found, methods[0])


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=50_000)
    parser.add_argument("--families", default="correlated,measured", help=", ".join(FAMILIES))
    parser.add_argument("--sizes", default="1000,2000,5000,10000")
    parser.add_argument("--dimensions", default="5,20,60")
    parser.add_argument("--shares", default="0.5")
    parser.add_argument("--epsilons", default="0.5,1,2,4")
    parser.add_argument("--estimands", default="ate")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--monotone", action="store_true")
    parser.add_argument("--save", type=Path)
    return parser.parse_args()


def places(arguments: argparse.Namespace) -> list[Place]:
    grid = itertools.product(
        arguments.families.split(","),
        map(int, arguments.sizes.split(",")),
        map(int, arguments.dimensions.split(",")),
        map(float, arguments.shares.split(",")),
        arguments.estimands.split(","),
    )
    return [Place(*cell) for cell in grid]


def measure(
    place: Place, seed: int, methods: list[str], arguments: argparse.Namespace, found: Found
) -> None:
    """Release one study at every ε, unless that was done before."""
    grid = itertools.product(methods, map(float, arguments.epsilons.split(",")))
    missing = [
        key for key in grid if all(run.seed != seed for run in found.get((place, *key), ()))
    ]  # fmt: skip
    if not missing:
        return
    study = make_study(place.family, place.size, place.dimension, place.share, seed)
    for method, epsilon in missing:
        release = estimate_ate(
            study.frame, domain=study.domain, level="sample", epsilon=epsilon, method=method,
            design=study.design, seed=seed, estimand=place.estimand,
        )  # fmt: skip
        low, high = release.interval
        model = str(release.settings.get("model", "-"))
        adjusted = bool(release.settings.get("adjusted", True))
        truth = study.effects[place.estimand]
        run = Run(seed, truth, release.ate, low, high, adjusted, model)
        found[place, method, epsilon].append(run)
        if arguments.save is not None:
            with arguments.save.open("a", newline="") as file:
                csv.writer(file).writerow([*place, method, epsilon, *run])


def load(path: Path | None) -> Found:
    found: Found = defaultdict(list)
    if path is None or not path.exists():
        return found
    with path.open(newline="") as file:
        for row in csv.reader(file):
            family, size, dimension, share, estimand, method, epsilon, seed, *rest = row
            *numbers, adjusted, model = rest
            place = Place(family, int(size), int(dimension), float(share), estimand)
            run = Run(int(seed), *map(float, numbers), adjusted == "True", model)
            found[place, method, float(epsilon)].append(run)
    return found


def show_errors(found: Found, methods: list[str]) -> None:
    head = "runs error ± s.e.     bias  cov. half-w."
    print("family          n   d share est   ε ", *(f"| {m:10} {head}" for m in methods))
    ratios = []
    for place, epsilon in dict.fromkeys((place, epsilon) for place, _, epsilon in found):
        cells = [found.get((place, method, epsilon), []) for method in methods]
        print(place, f"{epsilon:3g} ", *(f"| {'':10} {cell(runs)}" for runs in cells))
        if len(cells) == len(METHODS) and all(cells):
            first, second = (np.mean([run.error for run in runs]) for runs in cells)
            ratios.append(np.log(first / second))
    if ratios:
        mean = np.exp(np.mean(ratios))
        print(f"geometric mean of {methods[0]} over {methods[1]}: {mean:.2f} ({len(ratios)} cells)")


def cell(runs: list[Run]) -> str:
    if not runs:
        return f"{'':40}"
    errors = np.array([run.error for run in runs])
    bias = np.mean([run.effect / run.truth - 1 for run in runs])
    covered = np.mean([run.low <= run.truth <= run.high for run in runs])
    half = np.mean([(run.high - run.low) / 2 / abs(run.truth) for run in runs])
    star = "*" if any(run.adjusted for run in runs) else " "
    error = errors.std() / np.sqrt(errors.size)
    return (
        f"{errors.size:4} {errors.mean():6.3f} ± {error:.3f}{star} {bias:+6.3f} {covered:4.2f} "
        f"{half:6.3f}"
    )


def show_rises(found: Found, method: str) -> None:
    """Print by how much the error rises with ε, paired by study."""
    print("\nrise of the error from one ε to the next ± paired s.e. (runs); ! beyond three s.e.")
    rises, beyond = 0, 0
    for place in dict.fromkeys(place for place, *_ in found):
        steps = []
        epsilons = sorted({e for p, m, e in found if (p, m) == (place, method)})
        for less, more in itertools.pairwise(epsilons):
            first, second = (
                {run.seed: run for run in found[place, method, epsilon]} for epsilon in (less, more)
            )
            both = sorted(first.keys() & second.keys())
            gaps = np.array([second[seed].error - first[seed].error for seed in both])
            error = gaps.std(ddof=1) / np.sqrt(gaps.size) if gaps.size > 1 else np.inf
            high = gaps.mean() > 3 * error
            rises, beyond = rises + 1, beyond + high
            words = "→".join(short(runs) for runs in (first, second))
            mark = "!" if high else " "
            steps.append(f"{less:g}→{more:g} {gaps.mean():+.3f} ± {error:.3f}{mark} {words:9}")
        print(place, "|", " | ".join(steps), f"({len(both)})")
    print(f"{beyond} of {rises} steps rise by more than three standard errors")


def short(runs: dict[int, Run]) -> str:
    """Return the initials of the models that a cell used."""
    names = {
        "-": "A", "linear": "l", "doubly robust": "d", "overlap": "o",
        "doubly robust with products and hinges": "D", "overlap with products and hinges": "O",
    }  # fmt: skip
    used = {names.get(run.model, "?") for run in runs.values()}
    return "".join(sorted(used))


if __name__ == "__main__":
    main()
