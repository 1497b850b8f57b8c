"""Overlap of the arms under inverse propensity weights, from a model of the public kind.

Two arms are weighed by a logistic model, several by a multinomial one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from private_ate.arrays import Bits, Codes, Floats
from private_ate.checking.findings import ArmsSupport, Support
from private_ate.data.encoding import encode_participation
from private_ate.data.streams import StreamedTable
from private_ate.data.tables import Table
from private_ate.domain import Domain
from private_ate.engines.local import LocalStudy, Progress, single_threaded_blas
from private_ate.estimators.exact import effective_size, standardized_differences
from private_ate.estimators.overlap import bin_scores, count_arm_overlap
from private_ate.models.logistic import fit_logistic
from private_ate.models.multinomial import MultinomialModel, fit_multinomial

__all__ = ["weigh_arms"]

# A hundredth of what the label level uses: that much would leave an imbalance of its own making.
_RIDGE: Final = 0.01
_RUN: Final = 1 << 16  # rows whose scores are made at a time


def weigh_arms(
    table: Table | StreamedTable,
    domain: Domain,
    left_out: tuple[str, ...],
    progress: Progress | None,
    *,
    everyone: bool,
) -> Support | ArmsSupport:
    """Fit the propensity model on all rows of the arms and weigh each row by its inverse.

    Unless ``everyone`` is in one of the arms, rows of none are left out.
    """
    study = LocalStudy.encode_public(table, domain, progress)
    if not everyone:
        study = study.reordered(np.flatnonzero(_participation(table, domain)))
    if study.arms > 2:
        return _weigh_several(study, domain, left_out)
    return _weigh_pair(study, domain, left_out)


def _weigh_pair(study: LocalStudy, domain: Domain, left_out: tuple[str, ...]) -> Support:
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


def _weigh_several(study: LocalStudy, domain: Domain, left_out: tuple[str, ...]) -> ArmsSupport:
    """Weigh each unit by the inverse probability of its own arm."""
    with single_threaded_blas():
        model = fit_multinomial(study, _RIDGE / study.size)
    labels, arm = domain.treatment.coded, study.arm
    weights, outside = np.empty(study.size), np.zeros(study.size, dtype=np.bool_)
    for code in range(study.arms):
        scores, own = _scores(study, model, code), arm == code
        beyond = (scores < scores[own].min()) | (scores > scores[own].max())
        outside |= beyond
        weights[own] = 1.0 + np.exp(-np.clip(scores[own], -300.0, 700.0))
    sizes = {label: weights[arm == code] for code, label in enumerate(labels)}
    return ArmsSupport(
        overlap=count_arm_overlap(study, model),
        effective={label: effective_size(own) for label, own in sizes.items()},
        outside={
            label: int(np.count_nonzero(outside[arm == code]))
            for code, label in enumerate(labels)
        },
        balance={
            name: _greatest_differences(column, arm, weights, study.arms)
            for name, column in zip(domain.features, study.covariates, strict=True)
        },
        left_out=left_out,
    )  # fmt: skip


def _scores(study: LocalStudy, model: MultinomialModel, code: int) -> Floats:
    """Return the log odds of one arm for every row, a run of rows at a time."""
    scores = np.empty(study.size)
    for first in range(0, study.size, _RUN):
        rows = slice(first, first + _RUN)
        scores[rows] = model.scores(np.ascontiguousarray(study.covariates[:, rows].T), code)
    return scores


def _greatest_differences(
    column: Floats, arm: Codes, weights: Floats, arms: int
) -> tuple[float, float]:
    """Return the greatest standardised difference over pairs of arms, before and after weighting.

    A pair is standardised by the spread within its two arms, as two arms are.
    """
    rows = [arm == code for code in range(arms)]
    means = np.array([column[own].mean() for own in rows])
    weighted = np.array([np.average(column[own], weights=weights[own]) for own in rows])
    variances = np.array([column[own].var() for own in rows])
    spread = np.sqrt((variances[:, np.newaxis] + variances) / 2)
    spread[spread == 0] = 1.0
    before, after = (
        float((np.abs(values[:, np.newaxis] - values) / spread).max())
        for values in (means, weighted)
    )
    return before, after


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
