"""Small studies of several outcomes, encoded or as a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from private_ate.data.encoding import FurtherOutcome
from private_ate.domain import Binary, Categories, Domain, Interval, Outcome, Treatment
from private_ate.privacy.quantization import OUTCOME_STEPS
from several_arms import arm_study

__all__ = ["clinic_domain", "clinic_table", "outcome_study", "replaced"]


def outcome_study(arms=2, outcomes=2, rows=151, seed=0, missing=None):
    """Return an encoded study of outcomes y, y1, y2, … with bounds of their own.

    With ``missing`` that rule holds for all outcomes, and each lacks other rows.
    """
    study = arm_study(arms, rows, seed)
    rng = np.random.default_rng(seed + 1000)
    declared = [Outcome("y", Interval(0, 1), missing)]
    declared += [Outcome(f"y{k}", Interval(0, 10.0**k), missing) for k in range(1, outcomes)]
    domain = Domain(study.domain.treatment, declared, study.domain.covariates)

    def seen():
        return None if missing is None else rng.random(rows) < 0.8

    further = tuple(
        FurtherOutcome(rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32), seen())
        for _ in range(1, outcomes)
    )
    return replace(study, domain=domain, observed=seen(), further=further)


def replaced(study, row, values):
    """Return the study with all outcomes of one row replaced, by one value each."""
    first, *others = values

    def changed(steps, value):
        new = steps.copy()
        new[row] = value
        return new

    return replace(
        study,
        outcome=changed(study.outcome, first),
        further=tuple(
            replace(one, steps=changed(one.steps, value))
            for one, value in zip(study.further, others, strict=True)
        ),
    )


def clinic_domain(arms=2, **asked):
    """Return the domain of `clinic_table`."""
    labels = ("none", "low", "high")[:arms]
    return Domain(
        Treatment("drug", arms=labels),
        [
            Outcome("pressure", Interval(60, 220), unit="mmHg", **asked),
            Outcome("died", Binary(), **asked),
        ],
        {
            "age": Interval(20, 90),
            "sex": Categories("female", "male"),
            "site": Categories("north", "south"),
        },
    )


def clinic_table(rows=1200, arms=2, seed=0, *, effects=(-6.0, 0.05)):
    """Return people whose drug depends on age, with known effects of every step of dose."""
    rng = np.random.default_rng(seed)
    age, male, south = rng.uniform(20, 90, rows), rng.random(rows) < 0.5, rng.random(rows) < 0.4
    lean = (age - 55) / 35
    odds = np.outer(np.arange(arms) / max(arms - 1, 1), lean) + rng.gumbel(size=(arms, rows))
    arm = odds.argmax(axis=0)
    dose = arm / max(arms - 1, 1)
    pressure = 130 + 12 * lean + 4 * male + effects[0] * dose + rng.normal(0, 9, rows)
    died = rng.random(rows) < 0.15 + 0.08 * lean + effects[1] * dose
    return pl.DataFrame(
        {
            "drug": np.array(("none", "low", "high"))[arm],
            "pressure": pressure,
            "died": died.astype(np.int64),
            "age": age,
            "sex": np.where(male, "male", "female"),
            "site": np.where(south, "south", "north"),
        }
    )
