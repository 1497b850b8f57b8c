"""The non-private reference: matching without limits and without noise. Cannot return a release."""

from __future__ import annotations

import numpy as np

from private_ate.arrays import Integers
from private_ate.data.encoding import encode_rows
from private_ate.data.inputs import PreparedTable, prepare_table
from private_ate.data.streams import StreamedTable
from private_ate.data.tables import Covariates, Table
from private_ate.domain import Domain, Treatment
from private_ate.engines.local import LocalPool, LocalStudy, LocalWeights, single_threaded_blas
from private_ate.errors import SchemaError
from private_ate.estimators.overlap import count_overlap
from private_ate.estimators.published.method import (
    PublishedOptions,
    plan_for,
    require_both_arms,
)
from private_ate.estimators.request import Request
from private_ate.models.logistic import fit_logistic
from private_ate.privacy.budget import parse_epsilon
from private_ate.release import Diagnostics

__all__ = ["diagnose_ate", "effective_size", "exact_effect", "standardized_differences"]


def exact_effect(
    data: object,
    *,
    treatment: str | Treatment | None = None,
    outcome: str | None = None,
    covariates: Covariates = None,
    domain: Domain | None = None,
    neighbors: int = 5,
) -> float:
    """Return the matching estimate without limits and noise; **not private**.

    Units at equal distance share their mass, so the order of rows does not matter. Outcomes are
    clipped to the declared bounds, or taken as they are if the domain declares none. Rows with an
    undeclared treatment, or with text where a number was declared, are left out; rows without an
    outcome where the domain says so, whether that is public or private.
    """
    table = prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="label", from_data=True,
    )  # fmt: skip
    study = LocalStudy.encode_public(table.table, table.domain, None, table.lenient)
    bounds = table.domain.bounds
    values = table.table.numbers(table.domain.outcome.column)
    if values.size > study.size:
        values = values[_kept_rows(table)]
    if table.domain.outcome.missing is not None:
        kept = np.flatnonzero(~np.isnan(values))
        study, values = _some_rows(study, kept), values[kept]
    pool = _public_pool(study)
    weights = 1.0 + pool.shared_mass(neighbors)
    values = np.clip(np.where(np.isnan(values), bounds.fill, values), bounds.low, bounds.high)
    # Centred, so that rounding follows the range of the outcome and not its level.
    signed = np.where(study.treatment, weights, -weights)
    return float(signed @ (values - bounds.middle) / study.size)


def diagnose_ate(
    data: object,
    *,
    treatment: str | Treatment | None = None,
    outcome: str | None = None,
    covariates: Covariates = None,
    domain: Domain | None = None,
    epsilon: str | float = "1.0",
    neighbors: int = 5,
) -> Diagnostics:
    """Look at a study with the curator's eyes; nothing here is private or may be shared.

    The limits are those that the published method would use at this ε. Rows without an outcome are
    left out where the domain says so.
    """
    request = Request("label", parse_epsilon(epsilon), neighbors)
    table = prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="label", from_data=True,
    )  # fmt: skip
    study = LocalStudy.encode(table.table, table.domain, None, table.lenient)
    if study.observed is not None:
        study = _some_rows(study, np.flatnonzero(study.observed))
    pool = _public_pool(study)
    plan = plan_for(pool, request, PublishedOptions())
    limited = pool.match(request.neighbors, plan.limits)
    shared = pool.match_sharing_ties(request.neighbors)
    unit = table.domain.bounds.width / study.size
    plain = LocalWeights.summarize(_equal_weights(study), study.treated)
    effects = [study.effect(weights) * unit for weights in (shared, limited, plain)]
    arms = [limited.values[arm] for arm in (study.treated, ~study.treated)]
    features = study.domain.features
    balance = {
        name: standardized_differences(column, study.treatment, limited.values)
        for name, column in zip(features, study.covariates, strict=True)
    }
    return Diagnostics(
        exact_effect=effects[0],
        limited_effect=effects[1],
        plain_difference=effects[2],
        treated=pool.arms.treated,
        control=pool.arms.control,
        effective_treated=effective_size(arms[0]),
        effective_control=effective_size(arms[1]),
        balance=balance,
        weights={"treated": _quantiles(arms[0]), "control": _quantiles(arms[1])},
        overlap=count_overlap(study.public()),
    )


def _kept_rows(prepared: PreparedTable[Table | StreamedTable]) -> np.ndarray:
    """Return which rows an encoding keeps, by another look at them."""
    table, domain = prepared.table, prepared.domain
    columns = [domain.treatment.column, *domain.covariates]
    chunks = table.chunks(columns) if isinstance(table, StreamedTable) else [table]
    kept = []
    for chunk in chunks:
        found = encode_rows(chunk, domain, prepared.lenient, outcome=False).found
        rows = None if found is None else found.kept
        kept.append(np.ones(chunk.rows, dtype=np.bool_) if rows is None else rows)
    return np.concatenate(kept)


def _some_rows(study: LocalStudy, rows: Integers) -> LocalStudy:
    """Return some rows of a study, in order."""
    if rows.size == 0:
        msg = "no unit has an outcome: check the outcome column"
        raise SchemaError(msg)
    return study.reordered(rows)


def _public_pool(study: LocalStudy) -> LocalPool:
    public = study.public()
    with single_threaded_blas():
        pool = public.pool(fit_logistic(public, 1.0 / study.size).coefficients)
    require_both_arms(pool.arms)
    return pool


def _equal_weights(study: LocalStudy) -> np.ndarray:
    """Return the weights under which the weighted difference is that of the arms' means."""
    treated = np.count_nonzero(study.treatment)
    sizes = np.where(study.treatment, treated, study.size - treated)
    weights: np.ndarray = study.size / sizes
    return weights


def _quantiles(weights: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in np.quantile(weights, (0, 0.5, 0.9, 0.99, 1)))


def effective_size(weights: np.ndarray) -> float:
    """Return Kish's effective sample size."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def standardized_differences(
    column: np.ndarray, treatment: np.ndarray, weights: np.ndarray
) -> tuple[float, float]:
    """Return the standardised mean difference before and after weighting."""
    spread = np.sqrt((column[treatment].var() + column[~treatment].var()) / 2) or 1.0
    before = column[treatment].mean() - column[~treatment].mean()
    after = np.average(column[treatment], weights=weights[treatment]) - np.average(
        column[~treatment], weights=weights[~treatment]
    )
    return float(before / spread), float(after / spread)
