"""Small studies for the attacks, and the replay of a method on two of them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate.api import METHODS, estimate_study
from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from replay import replay_findings

SLOW = {"aim", "privsyn"}  # synthesizers take seconds a run: their attacks are long audits
CASES = [
    pytest.param(
        method, level, id=f"{method.name}-{level}",
        marks=[pytest.mark.audit] if method.name in SLOW else [],
    )
    for method in METHODS.values()
    for level in method.levels
]  # fmt: skip
every_case = pytest.mark.parametrize(("method", "level"), CASES)
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(0, 1)), {"a": Interval(0, 1), "b": Interval(0, 1)}
)


def make_study(seed=0, rows=40, treated=0.3):
    """Return a study with both arms filled."""
    rng = np.random.default_rng(seed)
    treatment = rng.random(rows) < treated
    treatment[:2] = [True, False]
    return LocalStudy(
        DOMAIN,
        rng.random((2, rows)),
        treatment,
        rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32),
    )


def move(study, row, *, outcome, covariates=None, treated=None):
    """Return the study with one record replaced."""
    outcomes = study.outcome.copy()
    outcomes[row] = outcome
    places, treatment = study.covariates.copy(), study.treatment.copy()
    if covariates is not None:
        places[:, row] = covariates
    if treated is not None:
        treatment[row] = treated
    return replace(study, covariates=places, treatment=treatment, outcome=outcomes)


def neighbours(level, seed, rows=40):
    """Yield pairs of studies that differ in one record, at the ends of the domain."""
    study = make_study(seed, rows)
    places = (int(np.flatnonzero(study.treatment)[0]), int(np.flatnonzero(~study.treatment)[0]))
    for row in places:
        yield move(study, row, outcome=0), move(study, row, outcome=OUTCOME_STEPS)
        if level == "sample":
            yield (
                move(study, row, outcome=0, covariates=0.0, treated=False),
                move(study, row, outcome=OUTCOME_STEPS, covariates=1.0, treated=True),
            )
            yield (
                move(study, row, outcome=OUTCOME_STEPS, covariates=[0.0, 1.0], treated=True),
                move(study, row, outcome=OUTCOME_STEPS, covariates=[1.0, 0.0], treated=False),
            )


def check_neighbours(method, level, first, second, epsilon=Fraction(1), **asked):
    """Demand that no step tells the neighbours apart by more than it declares."""
    found = replay_findings(method.run, first, second, Request(level, epsilon, **asked), seed=1)
    assert not found, "; ".join(found)


def release_of(study, method, level, **asked):
    """Return a release of a study with the operating system's entropy."""
    return estimate_study(study, Request(level, Fraction(1), **asked), method)
