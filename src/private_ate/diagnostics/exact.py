"""The non-private reference: matching without limits and without noise. Cannot return a release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from private_ate.arrays import Integers
from private_ate.data.encoding import encode_rows, read_outcome
from private_ate.data.inputs import Covariates, PreparedTable, prepare_table
from private_ate.data.missing_rules import Reading
from private_ate.diagnostics.lost_values import count_lost
from private_ate.diagnostics.noiseless import noiseless_estimate
from private_ate.diagnostics.overlap import count_arm_overlap, count_overlap
from private_ate.diagnostics.reweighting import used_weights
from private_ate.diagnostics.table_one import tabulate_arms
from private_ate.domain import Domain, Treatment, require_one_outcome
from private_ate.engines.local import LocalStudy
from private_ate.engines.matching_pools import LocalArmPool, LocalPool, LocalWeights
from private_ate.engines.threads import single_threaded_blas
from private_ate.errors import ArgumentError, SchemaError
from private_ate.methods.composition import takes
from private_ate.methods.public_arms import count_arms, measure_arms
from private_ate.methods.published.method import (
    PublishedOptions,
    plan_for,
)
from private_ate.methods.registry import METHODS
from private_ate.models.propensity import PropensityModel, fit_propensity
from private_ate.privacy.budget import parse_epsilon
from private_ate.privacy.levels import has_public_covariates
from private_ate.privacy.quantization import OUTCOME_BITS, WEIGHT_BITS
from private_ate.release.curator import ArmDiagnostics, Diagnostics, WithoutNoise
from private_ate.release.release import Release
from private_ate.request import Request

__all__ = [
    "diagnose_ate",
    "effective_size",
    "exact_effect",
    "exact_means",
    "standardized_differences",
]


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
    outcome where the domain says so, whether that is public or private. Of three arms or more it
    is the headline: the last declared other than the reference, against it; see ``exact_means``.
    """
    _refuse_weights(domain)
    _refuse_outcomes(domain, outcome)
    table = prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="label", from_data=True,
    )  # fmt: skip
    study, values = _with_outcomes(table)
    if study.arms > 2:
        means = _shared_means(study, values, neighbors)
        return means[study.domain.treatment.coded[-1]] - means[study.domain.treatment.coded[0]]
    weights = 1.0 + _pool(study)[0].shared_mass(neighbors)
    # Centred, so that rounding follows the range of the outcome and not its level.
    signed = np.where(study.treatment, weights, -weights)
    return float(signed @ (values - table.domain.bounds.middle) / study.size)


def exact_means(
    data: object,
    *,
    treatment: str | Treatment | None = None,
    outcome: str | None = None,
    covariates: Covariates = None,
    domain: Domain | None = None,
    neighbors: int = 5,
) -> dict[str, float]:
    """Return every arm's mean by matching without limits and noise; **not private**.

    For each arm every unit outside it is matched to its nearest neighbours in the arm by the
    arm's own propensity score, so that all means are about all units. Rows and outcomes as for
    ``exact_effect``.
    """
    _refuse_weights(domain)
    _refuse_outcomes(domain, outcome)
    table = prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="label", from_data=True,
    )  # fmt: skip
    study, values = _with_outcomes(table)
    return _shared_means(study, values, neighbors)


def _refuse_weights(domain: Domain | None) -> None:
    """Refuse declared sampling weights: matching takes none, and would speak of the sample."""
    if isinstance(domain, Domain) and domain.weights is not None:
        msg = (
            "matching takes no sampling weights; for a look at the sample as it is, declare the "
            f"domain without {domain.weights.column!r}"
        )
        raise ArgumentError(msg)


def _refuse_outcomes(domain: Domain | None, outcome: str | None) -> None:
    """Refuse several outcomes: what records say is shown of one at a time."""
    if isinstance(domain, Domain) and outcome is None:
        require_one_outcome(domain, "a look at the records")


def _with_outcomes(
    table: PreparedTable,
) -> tuple[LocalStudy, np.ndarray]:
    """Return the public study of rows that have an outcome, and those clipped to their bounds."""
    study = LocalStudy.encode_public(table.table, table.domain, None, table.lenient)
    bounds = table.domain.bounds
    outcome = table.domain.outcome
    chunks = table.table.chunks([outcome.column])
    values = np.concatenate([read_outcome(chunk, outcome) for chunk in chunks])
    if values.size > study.size:
        values = values[_kept_rows(table)]
    if table.domain.outcome.missing is not None:
        kept = np.flatnonzero(~np.isnan(values))
        study, values = _some_rows(study, kept), values[kept]
    filled = np.where(np.isnan(values), bounds.fill, values)
    return study, np.clip(filled, bounds.low, bounds.high)


def _shared_means(study: LocalStudy, values: np.ndarray, neighbors: int) -> dict[str, float]:
    """Return weighted means of all arms under matching without limits."""
    pool = _pool(study)[0]
    weights = 1.0 + pool.shared_mass(neighbors)
    middle, arm = study.domain.bounds.middle, study.arm
    return {
        label: float(weights[arm == code] @ (values - middle)[arm == code] / study.size) + middle
        for code, label in enumerate(study.domain.treatment.coded)
    }


def diagnose_ate(  # noqa: PLR0913  # one keyword per question a curator answers
    data: object,
    *,
    treatment: str | Treatment | None = None,
    outcome: str | None = None,
    covariates: Covariates = None,
    domain: Domain | None = None,
    epsilon: str | float = "1.0",
    neighbors: int = 5,
    release: Release | None = None,
    options: object | None = None,
) -> Diagnostics | ArmDiagnostics:
    """Look at a study with the curator's eyes; nothing here is private or may be shared.

    The limits are those that the published method would use at this ε. Rows without an outcome are
    left out where the domain says so. Three arms or more have ``ArmDiagnostics``. Of a ``release``
    made from these data, with its method's ``options`` if they were not the usual ones, its own
    estimator is shown without noise.
    """
    request = Request("label", parse_epsilon(epsilon), neighbors)
    _refuse_weights(domain)
    _refuse_outcomes(domain, outcome)
    table = prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="label", from_data=True,
    )  # fmt: skip
    study = LocalStudy.encode(table.table, table.domain, None, table.lenient)
    without_noise = None if release is None else _without_noise(study, table, release, options)
    lost = count_lost(table.table, table.domain)
    if study.observed is not None:
        study = _some_rows(study, np.flatnonzero(study.observed))
    if study.arms > 2:
        return replace(_diagnose_arms(study, request), without_noise=without_noise, lost=lost)
    pool = _pool(study)[0]
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
        without_noise=without_noise,
        lost=lost,
    )


def _without_noise(
    study: LocalStudy,
    prepared: PreparedTable,
    release: Release,
    options: object | None,
) -> WithoutNoise | None:
    """Return the released estimator without noise: by its own weights, or else run silently."""
    weights = used_weights(study, release, options)
    if weights is None:
        return _run_silently(study, prepared, release, options)
    labels = study.domain.treatment.coded
    shown = {label: _quantiles(weights[study.arm == code]) for code, label in enumerate(labels)}
    table = tabulate_arms(study.public(), weights)
    is_ratio = study.domain.outcome.missing == "private"
    if is_ratio or release.facts.clipped_to is not None:
        silent = _run_silently(study, prepared, release, options)
        return None if silent is None else replace(silent, weights=shown, table=table)
    held = LocalWeights.summarize(weights, study.treatment, study.arms)
    means = dict(zip(labels, _means(study, held), strict=True))
    headline = release.contrasts[0]
    note = release.facts.headline
    arm, against = (headline.arm, headline.against) if note is None else (note.arm, note.against)
    effect = means[arm] - means[against]
    return WithoutNoise(effect, means, by_weights=True, weights=shown, table=table)


def _run_silently(
    study: LocalStudy,
    prepared: PreparedTable,
    release: Release,
    options: object | None,
) -> WithoutNoise | None:
    """Run the release's method without noise, on rows read as at its level."""
    if not has_public_covariates(release.level):
        named, level = release.method, release.level
        leaves_out = takes(named, level, "undeclared") if named in METHODS else True
        reading = Reading(release.level, leaves_out, leave_out_undeclared=False)
        study = LocalStudy.encode(prepared.table, prepared.domain, None, reading)
    found = noiseless_estimate(study, release, options)
    if found is None:
        return None
    means = {arm.label: arm.mean for arm in found.arms if arm.mean is not None}
    return WithoutNoise(found.ate, means)


def _diagnose_arms(study: LocalStudy, request: Request) -> ArmDiagnostics:
    """Look at three arms or more."""
    pool, model = _pool(study)
    plan = plan_for(pool, request, PublishedOptions())
    limited = pool.match(request.neighbors, plan.limits)
    shared = pool.match_sharing_ties(request.neighbors)
    sizes = np.array(pool.arms.counts)
    plain = LocalWeights.summarize((study.size / sizes)[study.arm], study.arm, study.arms)
    labels = study.domain.treatment.coded
    exact, within, as_they_are = (
        dict(zip(labels, _means(study, weights), strict=True))
        for weights in (shared, limited, plain)
    )
    balance = measure_arms(study.public(), limited)
    values = limited.values
    return ArmDiagnostics(
        exact_means=exact,
        limited_means=within,
        plain_means=as_they_are,
        sizes=dict(zip(labels, pool.arms.counts, strict=True)),
        effective=dict(zip(labels, balance.effective, strict=True)),
        balance=balance.greatest,
        arm_balance=balance.by_arm,
        weights={label: _quantiles(values[study.arm == code]) for code, label in enumerate(labels)},
        overlap=count_arm_overlap(study.public(), model),
    )


def _means(study: LocalStudy, weights: LocalWeights) -> list[float]:
    """Return the weighted mean of each arm's outcomes."""
    bounds = study.domain.bounds
    unit = bounds.width / study.size / (1 << (OUTCOME_BITS + WEIGHT_BITS))
    return [bounds.middle + total * unit for total in study.arm_sums(weights).totals]


def _pool(study: LocalStudy) -> tuple[LocalPool | LocalArmPool, PropensityModel]:
    """Return rows in order along the score, or every arm's; an empty arm is refused."""
    public = study.public()
    count_arms(public)
    with single_threaded_blas():
        model = fit_propensity(public, 1.0 / study.size)
    return public.pool(model.coordinates if model.arms == 2 else model.coefficients), model


def _kept_rows(prepared: PreparedTable) -> np.ndarray:
    """Return which rows an encoding keeps, by another look at them."""
    table, domain = prepared.table, prepared.domain
    kept = []
    for chunk in table.chunks(domain.public_columns):
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
