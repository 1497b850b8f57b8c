"""The non-private reference: matching without limits and without noise. Cannot return a release."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.data.encoding import encode_rows, read_arms, read_outcome
from private_ate.data.inputs import Covariates, PreparedTable, prepare_table
from private_ate.data.missing_rules import Reading
from private_ate.data.tables import Table
from private_ate.diagnostics.noiseless import noiseless_estimate, used_weights
from private_ate.diagnostics.overlap import count_overlap
from private_ate.diagnostics.table_one import tabulate_arms
from private_ate.domain import Domain, Interval, Treatment, require_one_outcome
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
from private_ate.release.curator import ArmDiagnostics, Diagnostics, LostValues, WithoutNoise
from private_ate.release.public_facts import ArmOverlap
from private_ate.release.release import Release
from private_ate.request import Request


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
    table = _prepare(data, treatment, outcome, covariates, domain)
    means = _matched_means(table, neighbors)[1]
    return float(means[-1] - means[0])


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
    table = _prepare(data, treatment, outcome, covariates, domain)
    study, means = _matched_means(table, neighbors)
    middle = study.domain.bounds.middle
    return dict(zip(study.domain.treatment.coded, (means + middle).tolist(), strict=True))


def _matched_means(table: PreparedTable, neighbors: int) -> tuple[LocalStudy, Floats]:
    """Return the public study of rows with an outcome, and its means less the bounds' middle.

    Centred, so that rounding follows the range of the outcome and not its level.
    """
    study, values = _with_outcomes(table)
    weights = 1.0 + _pool(study)[0].shared_mass(neighbors)
    weighted = weights * (values - study.domain.bounds.middle)
    return study, np.bincount(study.arm, weighted, study.arms) / study.size


def _prepare(
    data: object,
    treatment: str | Treatment | None,
    outcome: str | None,
    covariates: Covariates,
    domain: Domain | None,
) -> PreparedTable:
    """Open a table for a look at its records, of one outcome at a time."""
    if isinstance(domain, Domain) and domain.weights is not None:
        # Matching takes no sampling weights, and would speak of the sample.
        msg = (
            "matching takes no sampling weights; for a look at the sample as it is, declare the "
            f"domain without {domain.weights.column!r}"
        )
        raise ArgumentError(msg)
    if isinstance(domain, Domain) and outcome is None:
        require_one_outcome(domain, "a look at the records")
    return prepare_table(
        data, treatment=treatment, outcome=outcome, covariates=covariates, domain=domain,
        level="label", from_data=True,
    )  # fmt: skip


def _with_outcomes(table: PreparedTable) -> tuple[LocalStudy, Floats]:
    """Return the public study of rows that have an outcome, and those clipped to their bounds."""
    study = LocalStudy.encode_public(table.table, table.domain, None, table.lenient)
    bounds, outcome = table.domain.bounds, table.domain.outcome
    chunks = table.table.chunks([outcome.column])
    values = np.concatenate([read_outcome(chunk, outcome) for chunk in chunks])
    if values.size > study.size:
        values = values[_kept_rows(table)]
    if outcome.missing is not None:
        kept = np.flatnonzero(~np.isnan(values))
        study, values = _some_rows(study, kept), values[kept]
    filled = np.where(np.isnan(values), bounds.fill, values)
    return study, np.clip(filled, bounds.low, bounds.high)


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
    table = _prepare(data, treatment, outcome, covariates, domain)
    study = LocalStudy.encode(table.table, table.domain, None, table.lenient)
    about: dict[str, Any] = {
        "without_noise": None
        if release is None
        else _without_noise(study, table, release, options),
        "lost": count_lost(table.table, table.domain),
    }
    if study.observed is not None:
        study = _some_rows(study, np.flatnonzero(study.observed))
    labels, arm = study.domain.treatment.coded, study.arm
    pool, model = _pool(study)
    limited = pool.match(neighbors, plan_for(pool, request, PublishedOptions()).limits)
    shared = pool.match_sharing_ties(neighbors)
    sizes = np.bincount(arm, minlength=study.arms)
    plain = LocalWeights.summarize((study.size / sizes)[arm], arm, study.arms)
    exact, within, as_they_are = (
        dict(zip(labels, _means(study, weights), strict=True))
        for weights in (shared, limited, plain)
    )
    balance = measure_arms(study.public(), limited)
    weights = _weights_by_arm(study, limited.values)
    overlap = count_overlap(study.public(), model)
    if isinstance(overlap, ArmOverlap):
        return ArmDiagnostics(
            exact_means=exact, limited_means=within, plain_means=as_they_are,
            sizes=dict(zip(labels, sizes.tolist(), strict=True)),
            effective=dict(zip(labels, balance.effective, strict=True)),
            balance=balance.greatest, arm_balance=balance.by_arm, weights=weights,
            overlap=overlap, **about,
        )  # fmt: skip
    control, treated = labels
    before, after = (side[1] - side[0] for side in (balance.before, balance.after))
    return Diagnostics(
        exact_effect=exact[treated] - exact[control],
        limited_effect=within[treated] - within[control],
        plain_difference=as_they_are[treated] - as_they_are[control],
        treated=int(sizes[1]), control=int(sizes[0]),
        effective_treated=balance.effective[1], effective_control=balance.effective[0],
        balance=dict(zip(balance.features, zip(before.tolist(), after.tolist(), strict=True),
                         strict=True)),
        weights={"treated": weights[treated], "control": weights[control]},
        overlap=overlap, **about,
    )  # fmt: skip


def _without_noise(
    study: LocalStudy, prepared: PreparedTable, release: Release, options: object | None
) -> WithoutNoise | None:
    """Return the released estimator without noise: by its own weights, or else run silently."""
    weights = used_weights(study, release, options)
    if weights is None:
        return _run_silently(study, prepared, release, options)
    shown = _weights_by_arm(study, weights)
    table = tabulate_arms(study.public(), weights)
    is_ratio = study.domain.outcome.missing == "private"
    if is_ratio or release.facts.clipped_to is not None:
        silent = _run_silently(study, prepared, release, options)
        return None if silent is None else replace(silent, weights=shown, table=table)
    held = LocalWeights.summarize(weights, study.treatment, study.arms)
    means = dict(zip(study.domain.treatment.coded, _means(study, held), strict=True))
    headline = release.facts.headline or release.contrasts[0]
    effect = means[headline.arm] - means[headline.against]
    return WithoutNoise(effect, means, by_weights=True, weights=shown, table=table)


def _run_silently(
    study: LocalStudy, prepared: PreparedTable, release: Release, options: object | None
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


def _means(study: LocalStudy, weights: LocalWeights) -> list[float]:
    """Return the weighted mean of each arm's outcomes."""
    bounds = study.domain.bounds
    unit = bounds.width / study.size / (1 << (OUTCOME_BITS + WEIGHT_BITS))
    return [bounds.middle + total * unit for total in study.arm_sums(weights)]


def _pool(study: LocalStudy) -> tuple[LocalPool | LocalArmPool, PropensityModel]:
    """Return rows in order along the scores of arms, and their model; an empty arm is refused."""
    public = study.public()
    count_arms(public)
    with single_threaded_blas():
        model = fit_propensity(public, 1.0 / study.size)
    return public.pool(model.coordinates if model.arms == 2 else model.coefficients), model


def _kept_rows(prepared: PreparedTable) -> Floats:
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


def _weights_by_arm(study: LocalStudy, weights: Floats) -> dict[str, tuple[float, ...]]:
    """Return smallest, median, 90 %, 99 % and largest weight of each arm."""
    return {
        label: tuple(np.quantile(weights[study.arm == code], (0, 0.5, 0.9, 0.99, 1)).tolist())
        for code, label in enumerate(study.domain.treatment.coded)
    }


def count_lost(table: Table, domain: Domain) -> dict[str, LostValues]:
    """Return for each column in use how many of its entries were not used as they are."""
    outcome = domain.outcome
    columns = [domain.treatment.column, outcome.column, *domain.covariates]
    totals: dict[str, Counter[str]] = {name: Counter() for name in columns}
    for chunk in table.chunks(columns):
        _, known = read_arms(chunk, domain.treatment)
        totals[domain.treatment.column]["undeclared"] += int(np.count_nonzero(~known))
        totals[outcome.column].update(_lost(read_outcome(chunk, outcome), outcome.bounds))
        for name, kind in domain.covariates.items():
            if isinstance(kind, Interval):
                totals[name].update(_lost(chunk.numbers(name), kind))
            else:
                hits = [chunk.equals(name, label) for label in kind.labels]
                undeclared = ~np.logical_or.reduce(hits)
                totals[name]["undeclared"] += int(np.count_nonzero(undeclared))
    return {name: LostValues(**found) for name, found in totals.items()}


def _lost(values: Floats, bounds: Interval | None) -> dict[str, int]:
    """Count numbers that are missing, or clipped to their bounds."""
    lost = {"missing": np.isnan(values)}
    if bounds is not None:
        lost |= {"below": values < bounds.low, "above": values > bounds.high}
    return {name: int(np.count_nonzero(rows)) for name, rows in lost.items()}
