"""Table 1 from the rows of a study: moments of every covariate by arm, plain and weighted."""

from __future__ import annotations

import numpy as np

from private_ate.arrays import Floats
from private_ate.data.inputs import Covariates, resolve_domain
from private_ate.diagnostics.noiseless import used_weights
from private_ate.diagnostics.overlap import effective_size, public_study
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import has_public_covariates
from private_ate.release.public_facts import CovariateRow, Moments, TableOne
from private_ate.release.release import Release

__all__ = ["describe_arms", "tabulate_arms"]


def describe_arms(
    release: Release,
    data: object,
    *,
    domain: Domain,
    covariates: Covariates = None,
    options: object | None = None,
) -> TableOne:
    """Return Table 1 of a release at label level: public columns by arm, before and after.

    Parameters
    ----------
    release : Release
        The release whose weights are meant. Those of method "calibrated" are found again; of
        other methods, and of subgroups, the table shows arms as they are.
    data
        The table that the release was made from. Of its outcomes nothing is read but, where the
        domain says that this is public, who lacks one.
    domain : Domain
        What was declared.
    covariates : list of str or "all", optional
        As they were for the release.
    options
        The options of the method, if other than usual.
    """
    if not has_public_covariates(release.level):
        msg = "Table 1 by arm belongs to label level, where covariates and treatment are public"
        raise ArgumentError(msg)
    named = resolve_domain(domain, None, None)
    if named.weights is not None:
        msg = "Table 1 is not made of sampling weights"
        raise ArgumentError(msg)
    study = public_study(data, named, covariates, with_gaps=True)
    return tabulate_arms(study, used_weights(study, release, options))


def tabulate_arms(study: LocalStudy, weights: Floats | None) -> TableOne:
    """Return moments of every covariate by arm; rows that take part are those with an outcome."""
    labels = study.domain.treatment.coded
    seen = np.ones(study.size, dtype=np.bool_) if study.observed is None else study.observed
    members = [np.flatnonzero((study.arm == code) & seen) for code in range(len(labels))]
    scales = _scales(study.domain)
    rows = []
    for index, (name, column) in enumerate(
        zip(study.domain.features, study.covariates, strict=True)
    ):
        low, width = scales[index] or (0.0, 1.0)
        values = low + width * np.asarray(column, dtype=np.float64)
        before = tuple(_moments(values[rows_of], None) for rows_of in members)
        after: tuple[Moments, ...] = ()
        if weights is not None:
            after = tuple(_moments(values[rows_of], weights[rows_of]) for rows_of in members)
        rows.append(CovariateRow(name, scales[index] is None, before, after))
    effective = () if weights is None else tuple(effective_size(weights[held]) for held in members)
    return TableOne(labels, tuple(held.size for held in members), effective, tuple(rows))


def _scales(domain: Domain) -> list[tuple[float, float] | None]:
    """Return low end and width of every feature that is a number, None of one that is a share."""
    found: list[tuple[float, float] | None] = []
    for kind in domain.covariates.values():
        if isinstance(kind, Interval):
            found.append(None if kind.is_binary else (kind.low, kind.width))
        else:
            found += [None] * len(kind.labels)
    return found + [None] * len(domain.indicators)


def _moments(values: Floats, weights: Floats | None) -> Moments:
    mean = float(np.average(values, weights=weights))
    return Moments(mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weights))))
