"""Small studies of several arms, encoded or as a table, for tests of the label level."""

from __future__ import annotations

import numpy as np
import polars as pl

from private_ate.domain import Domain, Interval, Outcome, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.privacy.quantization import OUTCOME_STEPS

__all__ = ["arm_domain", "arm_study", "arm_table"]


def arm_domain(arms=3, covariates=3, **asked):
    """Return a domain whose arms are a0, a1, …, with the first as reference."""
    labels = tuple(f"a{arm}" for arm in range(arms))
    named = {f"x{j}": Interval(0, 1) for j in range(covariates)}
    return Domain(Treatment("t", arms=labels), Outcome("y", Interval(0, 1), **asked), named)


def arm_study(arms=3, rows=151, seed=0, covariates=3, *, values=None):
    """Return an encoded study in which covariates decide about the arm, and no arm is empty.

    With ``values`` covariates take so many different values, so that scores are tied.
    """
    rng = np.random.default_rng(seed)
    x = rng.random((covariates, rows))
    if values is not None:
        x = np.floor(x * values) / max(values - 1, 1)
    slopes = 2 * rng.standard_normal((arms, covariates))
    odds = slopes @ (x - 0.5) + rng.gumbel(size=(arms, rows))
    codes = odds.argmax(axis=0).astype(np.uint8)
    codes[:arms] = np.arange(arms)
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    treatment = codes.astype(np.bool_) if arms == 2 else codes
    return LocalStudy(arm_domain(arms, covariates), x, treatment, outcome)


def arm_table(study):
    """Return the rows of a study as a table that its domain describes."""
    labels = np.array(study.domain.treatment.coded)[study.arm]
    columns = {f"x{j}": column for j, column in enumerate(study.covariates)}
    return pl.DataFrame({"t": labels, "y": study.outcome / OUTCOME_STEPS} | columns)
