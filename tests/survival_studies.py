"""Small studies of a time to an event, for tests of every kind."""

from dataclasses import replace

import numpy as np

from private_ate.domain import Domain, Interval, Survival, Treatment
from private_ate.engines.local import LocalStudy

HORIZON = 365.0
LABELS = ("none", "low", "high")


def survival_domain(arms=2, **declared):
    """Return a domain with two covariates, of which the first may make strata."""
    treatment = Treatment("t", 1, 0) if arms == 2 else Treatment("t", arms=LABELS[:arms])
    outcome = Survival("days", "status", event_label="dead", horizon=HORIZON, **declared)
    return Domain(treatment, outcome, {"a": Interval(0, 1), "b": Interval(0, 1)})


def draw_times(rng, rows, arm, a, rate=0.9, censoring=0.5):
    """Return times and whether they ended in an event; arms after the first live longer."""
    event = rng.exponential(size=rows) / (rate * np.exp(a - 0.5 - 0.5 * arm))
    exit_ = rng.exponential(size=rows) / max(censoring, 1e-9)
    return HORIZON * np.minimum(event, exit_), event <= exit_


def survival_study(
    seed=0, rows=300, arms=2, rate=0.9, censoring=0.5, *, weighted=False, **declared
):
    """Return an encoded study in which the first covariate confounds."""
    rng = np.random.default_rng(seed)
    domain = survival_domain(arms, **declared)
    covariates = rng.random((2, rows))
    odds = np.exp(np.outer(np.arange(arms), covariates[0] - 0.5))
    share = odds / odds.sum(axis=0)
    arm = (rng.random(rows) > share.cumsum(axis=0)[:-1]).sum(axis=0).astype(np.uint8)
    arm[:arms] = np.arange(arms)
    times, ended = draw_times(rng, rows, arm, covariates[0], rate, censoring)
    weights = None
    if weighted:
        domain, weights = replace(domain, weights=("w", Interval(0, 3))), rng.random(rows)
    return LocalStudy(
        domain, covariates, arm.view(np.bool_) if arms == 2 else arm,
        domain.outcome.encode(times, ended), weights=weights,
    )  # fmt: skip


def with_record(study, row, time, ended, *, arm=None, covariates=None):
    """Return the study with one row's time and event replaced, and at will the rest of it."""
    outcome, treatment, places = (
        study.outcome.copy(), study.treatment.copy(), study.covariates.copy()
    )  # fmt: skip
    outcome[row] = study.domain.outcome.encode(np.array([float(time)]), np.array([ended]))[0]
    if arm is not None:
        treatment[row] = arm
    if covariates is not None:
        places[:, row] = covariates
    return replace(study, outcome=outcome, treatment=treatment, covariates=places)


# Times and events at every edge of what a record can hold.
RECORDS = [
    (time, ended)
    for time in (0.0, 1e-9, 91.25, 182.5, 364.999, HORIZON, 365.001, 9e99, np.inf, -1.0, np.nan)
    for ended in (False, True)
]
