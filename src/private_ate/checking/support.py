"""Overlap of the arms under inverse propensity weights, from a model of the public kind."""

from __future__ import annotations

from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.checking.findings import Support
from private_ate.data.encoding import encode_participation
from private_ate.data.streams import StreamedTable
from private_ate.data.tables import Table
from private_ate.domain import Domain
from private_ate.engines.local import LocalStudy, Progress, single_threaded_blas
from private_ate.estimators.exact import effective_size, standardized_differences
from private_ate.estimators.overlap import bin_scores
from private_ate.models.logistic import fit_logistic

__all__ = ["weigh_arms"]

# A hundredth of what the label level uses: that much would leave an imbalance of its own making.
_RIDGE: Final = 0.01


def weigh_arms(
    table: Table | StreamedTable,
    domain: Domain,
    left_out: tuple[str, ...],
    progress: Progress | None,
    *,
    everyone: bool,
) -> Support:
    """Fit the propensity model on all rows of both arms and weigh each row by its inverse.

    Unless ``everyone`` is in one of the arms, rows of neither are left out.
    """
    study = LocalStudy.encode_public(table, domain, progress)
    if not everyone:
        study = study.reordered(np.flatnonzero(_participation(table, domain)))
    with single_threaded_blas():
        coefficients = fit_logistic(study, _RIDGE / study.size).coefficients
    linear = np.full(study.size, coefficients[0])
    for slope, feature in zip(coefficients[1:], study.covariates, strict=True):
        linear += slope * feature
    treated = study.treated
    outside = _outside(linear, treated)
    np.negative(linear, out=linear, where=treated)
    np.clip(linear, -700.0, 300.0, out=linear)
    weights = 1.0 + np.exp(linear, out=linear)
    return Support(
        overlap=bin_scores(study, coefficients),
        effective_treated=effective_size(weights[treated]),
        effective_control=effective_size(weights[~treated]),
        outside_treated=int(np.count_nonzero(outside & treated)),
        outside_control=int(np.count_nonzero(outside & ~treated)),
        balance={
            name: standardized_differences(column, treated, weights)
            for name, column in zip(domain.features, study.covariates, strict=True)
        },
        left_out=left_out,
    )


def _participation(table: Table | StreamedTable, domain: Domain) -> Bits:
    if isinstance(table, Table):
        return encode_participation(table, domain)
    chunks = table.chunks([domain.treatment.column])
    return np.concatenate([encode_participation(chunk, domain) for chunk in chunks])


def _outside(scores: Floats, treated: Bits) -> Bits:
    """Return True where a score lies beyond all scores of the other arm."""
    outside = np.zeros(scores.size, dtype=np.bool_)
    for arm in (treated, ~treated):
        others = scores[~arm]
        beyond = (scores < others.min()) | (scores > others.max())
        outside |= arm & beyond
    return outside
