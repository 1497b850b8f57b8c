from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from private_ate import Categories, Domain, Interval
from private_ate.data.files import read_table
from private_ate.engines.local import LocalStudy


def synth_table(rows=1000, dimension=20, seed=89):
    """Uniform covariates, linear outcome; seed 89 has 489 treated and an effect of 0.48."""
    rng = np.random.default_rng(seed)
    covariates = rng.uniform(size=(rows, dimension))
    slopes, effects = rng.uniform(-0.5, 0.5, size=dimension), rng.uniform(size=dimension)
    score = 1 / (1 + np.exp(-(2 * covariates - 1) @ slopes))
    treatment = (rng.uniform(size=rows) < score).astype(int)
    outcome = covariates @ effects + 0.5 * treatment + rng.uniform(-0.5, 0.5, size=rows)
    columns = {f"x{column}": covariates[:, column] for column in range(dimension)}
    return pl.DataFrame({**columns, "t": treatment, "y": outcome})


def synth_domain(table):
    low, high = float(table["y"].min()), float(table["y"].max())
    covariates = {name: Interval(0, 1) for name in table.columns if name.startswith("x")}
    return Domain("t", ("y", Interval(low, high)), covariates)


def encode(table, domain):
    return LocalStudy.encode(read_table(table), domain)


@pytest.fixture(scope="session")
def synth():
    table = synth_table()
    return encode(table, synth_domain(table))


@pytest.fixture(scope="session")
def make_study():
    """Return a maker of small random studies over mixed covariates."""

    def make(rng, rows, *, domain=None):
        domain = domain or Domain(
            "t",
            ("y", Interval(-1, 3)),
            {"a": Interval(0, 1), "c": Categories("u", "v", "w"), "b": Interval(0, 2)},
        )
        table = pl.DataFrame(
            {
                "a": rng.uniform(size=rows),
                "c": rng.choice(["u", "v", "w"], size=rows),
                "b": rng.uniform(0, 2, size=rows),
                "t": rng.integers(0, 2, size=rows),
                "y": rng.uniform(-1, 3, size=rows),
            }
        )
        return encode(table, domain)

    return make


@pytest.fixture(scope="session")
def replace_record():
    """Return a function that replaces one row by a random, often extreme record."""

    def change(study, rng):
        row = int(rng.integers(study.size))
        covariates, treatment, outcome = (
            study.covariates.copy(),
            study.treatment.copy(),
            study.outcome.copy(),
        )
        covariates[:, row] = np.array([rng.uniform(), 0, 0, 0, rng.integers(2)])
        covariates[1 + rng.integers(3), row] = 1
        treatment[row] = bool(rng.integers(2))
        outcome[row] = rng.choice([0, 1 << 30, rng.integers(1 << 30)])
        return row, replace(study, covariates=covariates, treatment=treatment, outcome=outcome)

    return change
