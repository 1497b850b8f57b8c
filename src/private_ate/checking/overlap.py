"""Overlap of the arms: inverse propensity weights from a model without noise, and what they mean.

Two arms are weighted by a logistic model, several by a multinomial one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Codes, Floats
from private_ate.checking.arms import FEW_UNITS
from private_ate.checking.findings import Arms, ArmsSupport, Finding, Severity, Support
from private_ate.checking.phrasing import amount, first_few, named, quoted
from private_ate.data.encoding import encode_arms
from private_ate.data.tables import Table
from private_ate.diagnostics.exact import effective_size, standardized_differences
from private_ate.diagnostics.overlap import bin_scores, count_arm_overlap
from private_ate.domain import Domain
from private_ate.engines.local import LocalStudy, Progress
from private_ate.engines.threads import single_threaded_blas
from private_ate.models.propensity import PropensityModel, fit_propensity

__all__ = ["judge_support", "weigh_arms"]

# A hundredth of what the label level uses: that much would leave an imbalance of its own making.
_RIDGE: Final = 0.01
_RUN: Final = 1 << 16  # rows whose scores are made at a time
_FEW_ARMS: Final = 5  # that a sentence lists
_TENTH: Final = 0.1
_IMBALANCE: Final = 0.1
_LARGE_IMBALANCE: Final = 0.25  # beyond what chance leaves in two hundred rows


def weigh_arms(
    table: Table,
    domain: Domain,
    left_out: tuple[str, ...],
    progress: Progress | None,
    *,
    all_in_arms: bool,
) -> Support | ArmsSupport:
    """Fit the propensity model on all rows of the arms and weigh each row by its inverse.

    Unless ``all_in_arms`` is in one of the arms, rows of none are left out.
    """
    study = LocalStudy.encode_public(table, domain, progress)
    if not all_in_arms:
        study = study.reordered(np.flatnonzero(_participation(table, domain)))
    if study.arms > 2:
        return _weigh_several(study, domain, left_out)
    return _weigh_pair(study, domain, left_out)


def _weigh_pair(study: LocalStudy, domain: Domain, left_out: tuple[str, ...]) -> Support:
    with single_threaded_blas():
        coefficients = fit_propensity(study, _RIDGE / study.size).coordinates
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
        model = fit_propensity(study, _RIDGE / study.size)
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


def _scores(study: LocalStudy, model: PropensityModel, code: int) -> Floats:
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


def _participation(table: Table, domain: Domain) -> Bits:
    chunks = table.chunks([domain.treatment.column])
    return np.concatenate([encode_arms(chunk, domain)[1] for chunk in chunks])


def _outside(scores: Floats, treated: Bits) -> Bits:
    """Return True where a score lies beyond all scores of the other arm."""
    outside = np.zeros(scores.size, dtype=np.bool_)
    for arm in (treated, ~treated):
        others = scores[~arm]
        beyond = (scores < others.min()) | (scores > others.max())
        outside |= arm & beyond
    return outside


@dataclass(frozen=True, slots=True)
class _Weighed:
    """One arm under inverse propensity weights."""

    units: str  # what sentences call its units
    count: int
    effective: float
    outside: int

    @property
    def is_thin(self) -> bool:
        """Whether few units carry most of the weight, or nobody is comparable."""
        return (
            self.effective < min(FEW_UNITS, self.count / 2)
            or self.effective < _TENTH * self.count
            or self.outside > self.count / 2
        )


def _weighed(support: Support | ArmsSupport, arms: Arms) -> list[_Weighed]:
    if isinstance(support, Support):
        return [
            _Weighed("treated units", arms.treated, support.effective_treated,
                     support.outside_treated),
            _Weighed("control units", arms.control, support.effective_control,
                     support.outside_control),
        ]  # fmt: skip
    found = [
        _Weighed(f"units of {quoted(label)}", arms.counts[label], effective, support.outside[label])
        for label, effective in support.effective.items()
    ]
    return sorted(found, key=lambda arm: arm.effective / arm.count)


def judge_support(support: Support | ArmsSupport | None, arms: Arms) -> Iterator[Finding]:
    """Yield how well the arms overlap, and whom the comparison rests on; of many the worst."""
    if support is None:
        fewest = min(arms.counts.values())
        why = {0: "an arm is empty", 1: "an arm has one row"}.get(
            fewest, "no covariate can be used"
        )
        yield Finding(
            "overlap", None, "note", f"not looked at, as {why}",
            "settle the other findings, then check again",
        )  # fmt: skip
        return
    weighed = _weighed(support, arms)
    summary = ", ".join(
        f"{arm.count:,} {arm.units} have an effective sample size of {arm.effective:,.0f}"
        for arm in weighed[:_FEW_ARMS]
    )
    outside = [
        amount(arm.outside, arm.count, arm.units.removesuffix(" units"))
        for arm in weighed
        if arm.outside > _TENTH * arm.count
    ]
    name, (before, after) = max(
        support.balance.items(), key=lambda item: abs(item[1][1]), default=("", (0.0, 0.0))
    )
    is_off = abs(after) > _IMBALANCE
    is_problem = any(arm.is_thin for arm in weighed) or (
        bool(outside) and abs(after) > _LARGE_IMBALANCE
    )
    several = isinstance(support, ArmsSupport)
    sentence = f"the arms hardly overlap: {summary}" if is_problem else summary
    if outside:
        beyond = "some other arm" if several else "the other arm"
        sentence += f"; beyond every score of {beyond}: {first_few(outside)}"
    if is_off:
        pair = " between two arms" if several else ""
        sentence += (
            f"; {name} differs by {abs(before):.2g} standard deviations{pair}, {abs(after):.2g} "
            "after weighting"
        )
    if support.left_out:
        sentence += f"; without {', '.join(map(named, support.left_out[:5]))}"
    severity: Severity = "bends" if is_problem else "note" if outside or is_off else "ok"
    remedy = "" if severity == "ok" else _remedy_for_overlap(several=several)
    yield Finding(
        "overlap", None, severity, sentence, remedy,
        {**_effective(support), "largest_imbalance": abs(after)},
    )  # fmt: skip


def _remedy_for_overlap(*, several: bool) -> str:
    if several:
        return (
            "ask for effects among the units of one arm (among), leave out or merge the arms that "
            "nobody else could have been in, or keep rows that could have been in any arm"
        )
    return (
        "ask for the effect on the treated (att) or on those who overlap (ato), or keep rows "
        "that could have been in either arm"
    )


def _effective(support: Support | ArmsSupport) -> dict[str, object]:
    if isinstance(support, ArmsSupport):
        return {"effective": dict(support.effective)}
    return {
        "effective_treated": support.effective_treated,
        "effective_control": support.effective_control,
    }
