"""Error and coverage of `blocks` against `orthogonal` on confounded families, in the same run.

Each line shows a family, n, d, the treated share and ε; then, for both methods, the mean over
fresh studies of |estimate/truth − 1|, its standard error, how often the 95 % interval covers the
true effect and its mean half-width over the truth. A star marks cells that adjusted. Families:

- ``correlated``: correlated covariates of which every third is seen as yes or no only, so that a
  part of the confounding is unmeasured (``private_ate.datasets.Correlated``);
- ``measured``: the same with all covariates seen;
- ``curved``: strong logistic selection, outcomes that follow a normal distribution function of
  the covariates, effects that vary with the score;
- ``nonlinear``: selection and outcome through a product and an absolute value;
- ``randomized``: no selection, the design declared.

    python benchmarks/accuracy_blocks.py --runs 20 --sizes 1000,5000 --dimensions 5,20
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit, ndtr

from private_ate import Domain, Interval, estimate_ate
from private_ate.datasets import Correlated, generate

FAMILIES = ("correlated", "measured", "curved", "nonlinear", "randomized")
METHODS = ("blocks", "orthogonal")


@dataclass(frozen=True, slots=True)
class Study:
    """A generated study, what is declared of it and its true effect."""

    frame: pl.DataFrame
    domain: Domain
    effect: float


@dataclass(frozen=True, slots=True)
class Cell:
    """What a method did in one cell of the table."""

    errors: np.ndarray
    covered: float
    half_width: float
    adjusted: bool

    def __str__(self) -> str:
        error = self.errors.std() / np.sqrt(self.errors.size)
        star = "*" if self.adjusted else " "
        return (
            f"{self.errors.mean():6.3f} ± {error:.3f}{star} "
            f"{self.covered:4.2f} {self.half_width:6.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=50_000)
    parser.add_argument("--families", default="correlated,measured")
    parser.add_argument("--sizes", default="1000,2000,5000,10000")
    parser.add_argument("--dimensions", default="5,20,60")
    parser.add_argument("--shares", default="0.5")
    parser.add_argument("--epsilons", default="0.5,1,2,4")
    parser.add_argument("--methods", default=",".join(METHODS))
    arguments = parser.parse_args()
    methods = arguments.methods.split(",")
    head = "error ± s.e.     cov. half-w."
    print("family          n   d share   ε ", *(f"| {m:10} {head}" for m in methods))
    ratios = []
    grid = itertools.product(
        arguments.families.split(","),
        numbers(arguments.sizes),
        numbers(arguments.dimensions),
        map(float, arguments.shares.split(",")),
        arguments.epsilons.split(","),
    )
    for family, size, dimension, share, epsilon in grid:
        cells = measure(family, size, dimension, share, epsilon, methods, arguments)
        label = f"{family:10} {size:7} {dimension:3} {share:5.2f} {epsilon:>3} "
        print(label, *(f"| {'':10} {cell}" for cell in cells), flush=True)
        if len(cells) == len(METHODS):
            ratios.append(np.log(cells[0].errors.mean() / cells[1].errors.mean()))
    if ratios:
        mean = np.exp(np.mean(ratios))
        print(f"geometric mean of {methods[0]} over {methods[1]}: {mean:.2f} ({len(ratios)} cells)")


def measure(  # one cell of the table
    family: str,
    size: int,
    dimension: int,
    share: float,
    epsilon: str,
    methods: list[str],
    arguments: argparse.Namespace,
) -> list[Cell]:
    design = "randomized" if family == "randomized" else "unknown"
    found: dict[str, list[tuple[float, bool, float, bool]]] = {method: [] for method in methods}
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.runs):
        study = make_study(family, size, dimension, share, seed)
        for method in methods:
            release = estimate_ate(
                study.frame, domain=study.domain, level="sample", epsilon=epsilon, method=method,
                design=design, seed=seed,
            )  # fmt: skip
            low, high = release.interval
            found[method].append(
                (
                    abs(release.ate / study.effect - 1),
                    low <= study.effect <= high,
                    (high - low) / 2 / abs(study.effect),
                    bool(release.settings["adjusted"]),
                )
            )
    columns = [list(zip(*found[method], strict=True)) for method in methods]
    return [
        Cell(np.array(errors), float(np.mean(covered)), float(np.mean(halves)), any(adjusted))
        for errors, covered, halves, adjusted in columns
    ]


def make_study(family: str, size: int, dimension: int, share: float, seed: int) -> Study:
    if family in ("correlated", "measured", "randomized"):
        dataset = generate(
            Correlated(
                size, dimension, share,
                selection=0.0001 if family == "randomized" else 1.0,
                dichotomized=family == "correlated",
            ),
            seed,
        )  # fmt: skip
        return Study(dataset.frame, dataset.domain, float(dataset.true_effect))
    return {"curved": curved, "nonlinear": nonlinear}[family](size, dimension, share, seed)


def curved(size: int, dimension: int, share: float, seed: int) -> Study:
    rng = np.random.default_rng(seed)
    gaps = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    latent = rng.standard_normal((size, dimension)) @ np.linalg.cholesky(0.3**gaps).T
    score, other = (latent @ rng.standard_normal(dimension) for _ in range(2))
    score /= score.std()
    other -= (other @ score) / (score @ score) * score
    prognosis = 0.7 * score + np.sqrt(0.51) * other / other.std()
    treated = rng.random(size) < expit(1.6 * score + balance(1.6 * score, share))
    effects = 0.1 * (1 + 0.6 * np.tanh(score))
    outcome = 0.05 + 0.5 * ndtr(prognosis) + effects * treated + 0.3 * rng.random(size)
    return study_of(latent, treated, outcome, (0.0, 1.1), float(effects.mean()))


def nonlinear(size: int, dimension: int, share: float, seed: int) -> Study:
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((size, dimension))
    bent = latent[:, 0] * latent[:, 1] + (np.abs(latent[:, 2]) - 0.8) / 0.6
    bent = (bent - bent.mean()) / bent.std()
    straight = latent @ rng.standard_normal(dimension) / np.sqrt(dimension)
    score = 0.9 * bent + 0.44 * straight
    treated = rng.random(size) < expit(score + balance(score, share))
    outcome = 0.8 * bent + 0.5 * straight + treated + 0.7 * rng.standard_normal(size)
    return study_of(latent, treated, outcome, (-6.0, 6.0), 1.0)


def study_of(
    latent: np.ndarray,
    treated: np.ndarray,
    outcome: np.ndarray,
    bounds: tuple[float, float],
    effect: float,
) -> Study:
    names = [f"x{j}" for j in range(latent.shape[1])]
    columns = {"t": treated.astype(np.int8), "y": outcome}
    frame = pl.DataFrame(columns | dict(zip(names, latent.T.copy(), strict=True)))
    domain = Domain("t", ("y", Interval(*bounds)), dict.fromkeys(names, Interval(-4, 4)))
    return Study(frame, domain, effect)


def balance(score: np.ndarray, share: float) -> float:
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(score + middle).mean() > share else (middle, high)
    return (low + high) / 2


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
