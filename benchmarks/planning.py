"""Planned half-widths beside released ones, at both levels.

Run: python benchmarks/planning.py [--draws 21] [--seed 4000] [--only NAME]

A plan is told the outcome's standard deviation within an arm and, at sample level, the share of
treated units; everything else is its own guess. An estimate at label level is told the same
standard deviation. Releases are seeded: nothing is private.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from private_ate import Domain, Interval, Treatment, estimate_ate, plan_ate
from private_ate.datasets import Confounded, generate, load
from private_ate.datasets.clinic import draw_clinic

EPSILONS = ("0.5", "1", "2", "4")
LEVELS = ("label", "sample")
FEW_ROWS = 1000


@dataclass(frozen=True)
class Study:
    """A table, its domain, and what a planner is told about it."""

    name: str
    frame: pl.DataFrame
    domain: Domain
    explained: float | None = None

    @property
    def outcome_sd(self) -> float:
        """The standard deviation of the outcome within an arm, clipped to its bounds."""
        bounds = self.domain.bounds
        column = self.frame[self.domain.outcome.column].cast(pl.Float64)
        values = np.clip(column.to_numpy(), bounds.low, bounds.high)
        arms = (self._is_treated, ~self._is_treated)
        return float(np.sqrt(sum(arm.mean() * values[arm].var() for arm in arms)))

    @property
    def treated_share(self) -> float:
        """The share of treated units."""
        return float(self._is_treated.mean())

    @property
    def _is_treated(self) -> np.ndarray:
        column = self.frame[self.domain.treatment.column]
        return (column == self.domain.treatment.treated).to_numpy()


def earnings(rows: int, seed: int) -> Study:
    """Make up people of whom two in five earn nothing and the others a skewed amount."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(18, 60, rows)
    school = np.clip(rng.normal(12, 2.5, rows), 0, 20).round()
    earned = np.where(rng.random(rows) < 0.3, 0.0, rng.lognormal(9.2, 0.7, rows))
    before = np.clip(earned, 0, 60_000)
    lean = -0.3 - 0.4 * (school - 12) / 2.5 - 0.5 * (before / 10_000 - 1)
    trained = rng.random(rows) < 1 / (1 + np.exp(-lean))
    odds = 0.2 + 0.3 * (school - 12) / 2.5 + 0.5 * (before > 0) + 0.3 * trained
    works = rng.random(rows) < 1 / (1 + np.exp(-odds))
    level = 9.1 + 0.08 * (school - 12) / 2.5 + 0.15 * np.log1p(before / 10_000) + 0.1 * trained
    after = np.where(works, np.clip(rng.lognormal(level, 0.7), 0, 60_000), 0.0)
    columns = {"trained": trained * 1, "after": after, "age": age, "school": school}
    domain = Domain(
        Treatment("trained", 1, 0), ("after", Interval(0, 60_000)),
        {"age": Interval(18, 60), "school": Interval(0, 20), "before": Interval(0, 60_000)},
    )  # fmt: skip
    return Study("earnings, many zeros", pl.DataFrame(columns | {"before": before}), domain)


def studies(seed: int) -> Iterator[Study]:
    """Yield the data sets of the paper, the bundled study, and generated ones."""
    for name, title in (("lalonde", "NSW"), ("ihdp", "IHDP"), ("acic", "ACIC")):
        known = load(name)
        yield Study(title, known.frame, known.domain)
    clinic = draw_clinic()
    yield Study("clinic", clinic.frame, clinic.domain)
    binary = generate(Confounded(size=5000, dimension=5, binary=True), seed)
    yield Study("binary", binary.frame, binary.domain)
    yield earnings(4000, seed)
    tight = generate(Confounded(size=5000, dimension=5), seed)
    half = 5 * tight.domain.bounds.width / 2
    outcome = (tight.domain.outcome.column, Interval(-half, half))
    domain = Domain(tight.domain.treatment, outcome, tight.domain.covariates)
    yield Study("bounds 5 times too wide", tight.frame, domain)
    # Covariates explain half of what the recipe varies, far more than five usually do.
    yield Study("the same, told `explained=0.5`", tight.frame, domain, 0.5)


def planned_half_width(study: Study, level: str, epsilon: str) -> float:
    """Return what the planner says about the default method."""
    plan = plan_ate(
        study.frame, domain=study.domain, level=level, epsilons=[epsilon],
        outcome_sd=study.outcome_sd, treated_share=study.treated_share, explained=study.explained,
    )  # fmt: skip
    return plan.rows[0].half_width


def released_half_width(study: Study, level: str, epsilon: str, draws: int, seed: int) -> float:
    """Return the median half-width of releases of the default method.

    Few rows make half-widths vary, and are fast: they get five times as many draws.
    """
    draws *= 5 if study.frame.height < FEW_ROWS else 1
    told = study.outcome_sd if level == "label" else None
    pairs = [
        estimate_ate(
            study.frame, domain=study.domain, level=level, epsilon=epsilon, seed=seed + draw,
            outcome_sd=told,
        ).interval
        for draw in range(draws)
    ]  # fmt: skip
    return float(np.median([(high - low) / 2 for low, high in pairs]))


def main() -> None:
    """Print a table: a line per study and level, a cell per ε."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=21)
    parser.add_argument("--seed", type=int, default=4000)
    parser.add_argument("--only", help="a part of a study's name")
    parser.add_argument("--level", choices=LEVELS)
    asked = parser.parse_args()
    print("planned / median released half-width (ratio)\n")
    print("| study | level | " + " | ".join(f"ε = {epsilon}" for epsilon in EPSILONS) + " |")
    print("|---" * (2 + len(EPSILONS)) + "|")
    ratios = []
    for study in studies(asked.seed):
        if asked.only is not None and asked.only not in study.name:
            continue
        for level in LEVELS if asked.level is None else (asked.level,):
            cells = []
            for epsilon in EPSILONS:
                planned = planned_half_width(study, level, epsilon)
                released = released_half_width(study, level, epsilon, asked.draws, asked.seed)
                ratios.append(planned / released)
                cells.append(f"{planned:.3g} / {released:.3g} ({ratios[-1]:.2f})")
            print(f"| {study.name} | {level} | " + " | ".join(cells) + " |", flush=True)
    far = sum(not 0.85 <= ratio <= 1.15 for ratio in ratios)
    print(f"\n{far} of {len(ratios)} cells are off by more than 15 %; ", end="")
    print(f"ratios from {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
