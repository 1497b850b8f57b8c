"""Overlap of the arms: inverse propensity weights from a model without noise, and what they mean.

Two arms are weighted by a logistic model, several by a multinomial one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.checking.arms import FEW_UNITS
from private_ate.checking.findings import Arms, Finding, Severity, Support
from private_ate.checking.phrasing import amount, first_few, named, quoted
from private_ate.data.encoding import encode_participation
from private_ate.data.streams import StreamedTable
from private_ate.data.tables import Table
from private_ate.diagnostics.overlap import count_overlap, effective_size, fit_public
from private_ate.domain import Domain
from private_ate.engines.local import LocalStudy, Progress
from private_ate.engines.threads import single_threaded_blas
from private_ate.models.multinomial import MultinomialModel

__all__ = ["judge_support", "weigh_arms"]

# A hundredth of what the label level uses: that much would leave an imbalance of its own making.
_RIDGE: Final = 0.01
_RUN: Final = 1 << 16  # rows whose scores are made at a time
_FEW_ARMS: Final = 5  # that a sentence lists
_TENTH: Final = 0.1
_IMBALANCE: Final = 0.1
_LARGE_IMBALANCE: Final = 0.25  # beyond what chance leaves in two hundred rows
_REMEDY: Final = (
    "ask for the effect on the treated (att) or on those who overlap (ato), or keep rows that "
    "could have been in either arm"
)
_REMEDY_OF_SEVERAL: Final = (
    "ask for effects among the units of one arm (among), leave out or merge the arms that nobody "
    "else could have been in, or keep rows that could have been in any arm"
)


def weigh_arms(
    table: Table | StreamedTable,
    domain: Domain,
    left_out: tuple[str, ...],
    progress: Progress | None,
    *,
    all_in_arms: bool,
) -> Support:
    """Fit the propensity model on all rows of the arms and weigh each row by its inverse.

    Unless ``all_in_arms`` is in one of the arms, rows of none are left out.
    """
    study = LocalStudy.encode_public(table, domain, progress)
    if not all_in_arms:
        study = study.reordered(np.flatnonzero(_participation(table, domain)))
    with single_threaded_blas():
        model = fit_public(study, _RIDGE / study.size)
    arm = study.arm
    weights, outside = np.empty(study.size), np.zeros(study.size, dtype=np.bool_)
    members = [arm == code for code in range(study.arms)]
    for code, own in enumerate(members):
        scores = _scores(study, model, code)
        outside |= (scores < scores[own].min()) | (scores > scores[own].max())
        weights[own] = 1.0 + np.exp(-np.clip(scores[own], -300.0, 700.0))
    labels = domain.treatment.coded
    return Support(
        {label: effective_size(weights[own]) for label, own in zip(labels, members, strict=True)},
        {label: int(outside[own].sum()) for label, own in zip(labels, members, strict=True)},
        {
            name: (_difference(column, members, None), _difference(column, members, weights))
            for name, column in zip(domain.features, study.covariates, strict=True)
        },
        count_overlap(study, model),
        left_out,
    )


def _scores(study: LocalStudy, model: MultinomialModel, code: int) -> Floats:
    """Return the log odds of one arm for every row, a run of rows at a time."""
    scores = np.empty(study.size)
    for first in range(0, study.size, _RUN):
        rows = slice(first, first + _RUN)
        scores[rows] = model.scores(np.ascontiguousarray(study.covariates[:, rows].T), code)
    return scores


def _difference(column: Floats, members: Sequence[Bits], weights: Floats | None) -> float:
    """Return the standardised difference of two arms, of several the greatest of any pair.

    A pair is standardised by the spread within its two arms.
    """
    means = np.array(
        [np.average(column[own], weights=None if weights is None else weights[own])
         for own in members]
    )  # fmt: skip
    variances = np.array([column[own].var() for own in members])
    spread = np.sqrt((variances[:, np.newaxis] + variances) / 2)
    spread[spread == 0] = 1.0
    differences = (means - means[:, np.newaxis]) / spread
    return float(differences[0, 1] if len(members) == 2 else differences.max())


def _participation(table: Table | StreamedTable, domain: Domain) -> Bits:
    if isinstance(table, Table):
        return encode_participation(table, domain)
    chunks = table.chunks([domain.treatment.column])
    return np.concatenate([encode_participation(chunk, domain) for chunk in chunks])


def _is_thin(count: int, effective: float, outside: int) -> bool:
    """Say whether few units of an arm carry most of the weight, or nobody is comparable."""
    least = max(min(FEW_UNITS, count / 2), _TENTH * count)
    return effective < least or outside > count / 2


def judge_support(support: Support | None, arms: Arms) -> Iterator[Finding]:
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
    several = len(support.effective) > 2
    labels = list(reversed(support.effective))  # of two, the treated first
    names = dict(zip(labels, ("treated", "control"), strict=False))
    if several:
        labels = sorted(
            support.effective, key=lambda one: support.effective[one] / arms.counts[one]
        )
        names = {label: f"units of {quoted(label)}" for label in labels}
    weighed = [
        (names[label], arms.counts[label], support.effective[label], support.outside[label])
        for label in labels
    ]
    units = "" if several else " units"
    summary = ", ".join(
        f"{count:,} {name}{units} have an effective sample size of {effective:,.0f}"
        for name, count, effective, _ in weighed[:_FEW_ARMS]
    )
    outside = [
        amount(beyond, count, name) for name, count, _, beyond in weighed if beyond > _TENTH * count
    ]
    name, (before, after) = max(
        support.balance.items(), key=lambda item: abs(item[1][1]), default=("", (0.0, 0.0))
    )
    is_off = abs(after) > _IMBALANCE
    is_thin = any(_is_thin(count, effective, beyond) for _, count, effective, beyond in weighed)
    is_problem = is_thin or (bool(outside) and abs(after) > _LARGE_IMBALANCE)
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
    remedy = _REMEDY_OF_SEVERAL if several else _REMEDY
    plain = support.to_dict()
    counts = {key: plain[key] for key in plain if key.startswith("effective")}
    yield Finding(
        "overlap", None, severity, sentence, "" if severity == "ok" else remedy,
        {**counts, "largest_imbalance": abs(after)},
    )  # fmt: skip
