"""How large the arms are, in all rows and in subgroups, which rows belong to none, and overlap.

Two arms are called treated and control, several by their labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats, Integers
from private_ate.checking.column_counts import SHAPES, ArmPositions
from private_ate.checking.findings import (
    Arms,
    Finding,
    Severity,
    Support,
    amount,
    first_few,
    listed,
    named,
    number,
    quoted,
)
from private_ate.data.encoding import encode_arms, encode_covariates
from private_ate.data.tables import Table
from private_ate.diagnostics.overlap import count_overlap, effective_size
from private_ate.domain import Domain, Interval, Outcome, Treatment, label_text
from private_ate.domain.column_types import MOST_ARMS
from private_ate.domain.domain import Cells
from private_ate.engines.local import LocalStudy, Progress
from private_ate.engines.threads import single_threaded_blas
from private_ate.models.propensity import PropensityModel, fit_propensity

FEW_UNITS: Final = 30
_SPELLING: Final = "write decimal points, not commas"
_MANY: Final = 3  # subgroups above which a direct estimate for all units is less noisy


def judge_arms(arms: Arms, treatment: Treatment, *, leaves_out: bool) -> Iterator[Finding]:
    """Yield how large the arms are, and which rows belong to none of them."""
    empty = [label for label, count in arms.counts.items() if not count]
    small = [label for label, count in arms.counts.items() if count < FEW_UNITS]
    if empty:
        found = listed(arms.undeclared)
        yield Finding(
            "arms", treatment.column, "bends",
            f"no row has {_unseen(treatment, empty)}" + (f"; found: {found}" if found else ""),
            _remedy_for_empty(arms, treatment), arms.to_dict(),
        )  # fmt: skip
    else:
        remedy = "so small an arm makes wide intervals" if small else ""
        if small and treatment.size > 2:
            remedy += f": merge {first_few(map(quoted, small))} with another arm, or leave it out"
        yield Finding(
            "arms", treatment.column, "note" if small else "ok", _sizes(arms, treatment), remedy,
            arms.to_dict(),
        )  # fmt: skip
    if len(empty) < len(arms.counts) or arms.missing:
        yield from _of_no_arm(arms, treatment, leaves_out=leaves_out)
    if arms.beyond and treatment.bins is not None:
        low, high = treatment.bins[0], treatment.bins[-1]
        yield Finding(
            "beyond the bins", treatment.column, "note",
            f"{amount(arms.beyond, arms.rows)} have a dose below {number(low)} or above "
            f"{number(high)} and count in the nearest bin",
            "widen the outer edges if such doses belong there; correct them if they cannot be",
            {"rows": arms.beyond, "share": arms.beyond / arms.rows},
        )  # fmt: skip


def _sizes(arms: Arms, treatment: Treatment) -> str:
    if treatment.size == 2:
        names = zip(("treated", "control"), ArmPositions(treatment).labels, strict=True)
        return ", ".join(f"{arms.counts[label]:,} {arm} ({quoted(label)})" for arm, label in names)
    reference = label_text(treatment.control)
    return ", ".join(
        f"{count:,} {quoted(label)}" + (" (reference)" if label == reference else "")
        for label, count in arms.counts.items()
    )


def _unseen(treatment: Treatment, empty: list[str]) -> str:
    if treatment.bins is not None:
        return f"a dose in {first_few(map(quoted, empty), ' or ')}"
    if treatment.size > 2:
        return f"the arm {first_few(map(quoted, empty), ' or ')}"
    roles = dict(zip(ArmPositions(treatment).labels, ("treated", "control"), strict=True))
    return " or ".join(f"the {roles[label]} label {quoted(label)}" for label in empty)


def _remedy_for_empty(arms: Arms, treatment: Treatment) -> str:
    if has_commas(arms):
        return _SPELLING
    if treatment.bins is not None:
        return "merge the bin with the next one"
    if treatment.size == 2:
        return "declare the labels as the data spell them"
    return "remove it from the declared arms, or declare the label as the data spell it"


def has_commas(arms: Arms) -> bool:
    """Whether some labels look like numbers with decimal commas."""
    return any(re.fullmatch(SHAPES["comma"], label) for label in arms.undeclared)


def _of_no_arm(arms: Arms, treatment: Treatment, *, leaves_out: bool) -> Iterator[Finding]:
    none = "belong to neither arm" if treatment.size == 2 else "belong to no declared arm"
    fate = "take no part" if leaves_out else none
    if treatment.other is not None:
        fate = f"count as {quoted(label_text(treatment.other))}, as declared"
    severity: Severity = "note" if leaves_out or treatment.other is not None else "bends"
    if arms.missing:
        yield Finding(
            "missing", treatment.column, severity,
            f"{amount(arms.missing, arms.rows)} have no treatment and {fate}",
            "find out, or leave such rows out on purpose",
            {"rows": arms.missing, "share": arms.missing / arms.rows},
        )  # fmt: skip
    strange = arms.neither - arms.missing
    if strange:
        unread = treatment.bins is not None
        what = "a dose that is no number" if unread else "a treatment that is not declared"
        yield Finding(
            "unreadable" if unread else "undeclared labels", treatment.column, severity,
            f"{amount(strange, arms.rows)} have {what} and {fate}: {listed(arms.undeclared)}",
            _remedy_for_strange(arms, treatment, leaves_out=leaves_out),
            {"rows": strange, "share": strange / arms.rows, "labels": dict(arms.undeclared)},
        )  # fmt: skip


def _remedy_for_strange(arms: Arms, treatment: Treatment, *, leaves_out: bool) -> str:
    if has_commas(arms):
        return _SPELLING
    if leaves_out or treatment.other is not None:
        return "declare the labels that are arms of their own, or correct them"
    if treatment.bins is not None:
        return "write numbers alone, name the arm of such rows as other, or leave them out"
    if treatment.size + len(arms.undeclared) <= MOST_ARMS:
        return (
            "correct the labels, or declare all arms that are to be compared: arms = [...], see "
            "the lines below; or leave rows of other arms out on purpose"
        )
    return f"correct the labels; a dose of more than {MOST_ARMS} values is declared by bins = [...]"


@dataclass(frozen=True, slots=True)
class SubgroupCounts:
    """How many rows of every arm are in every subgroup that holds any."""

    positions: ArmPositions
    counts: dict[str, tuple[int, ...]]

    @property
    def lacking(self) -> list[str]:
        """Subgroups without rows of some arm."""
        return [name for name, sizes in self.counts.items() if min(sizes) == 0]

    @property
    def small(self) -> list[str]:
        """Subgroups of which an arm has few rows."""
        return [name for name, sizes in self.counts.items() if 0 < min(sizes) < FEW_UNITS]

    def described(self, name: str) -> str:
        """Say how large the arms of one subgroup are."""
        arms = zip(self.counts[name], self.positions.names, strict=True)
        return f"{named(name)} ({', '.join(f'{size:,} {arm}' for size, arm in arms)})"


def count_subgroups(chunks: Iterable[Table], domain: Domain, by: tuple[str, ...]) -> SubgroupCounts:
    """Count the rows of every arm in every subgroup; rows of no arm are in none."""
    columns = dict.fromkeys(one.column for one in Cells.of(domain, by).partitions)
    # Only the columns that make subgroups are read.
    known = Domain(
        domain.treatment,
        Outcome(domain.outcome.column, Interval(0, 1)),
        {name: domain.covariates[name] for name in columns},
    )
    cells, positions = Cells.of(known, by), ArmPositions(domain.treatment)
    counts: Integers = np.zeros((cells.count, positions.size), dtype=np.int64)
    for chunk in chunks:
        gaps: dict[str, Bits] = {}
        codes = cells.codes(encode_covariates(chunk, known, gaps).T).astype(np.int64)
        for gap in gaps.values():
            codes[gap] = cells.count - 1
        places = positions.take_part(positions.place(chunk))
        counts += np.bincount(codes * positions.size + places, minlength=counts.size).reshape(
            counts.shape
        )
    held = counts[:, : positions.outside]
    return SubgroupCounts(
        positions,
        {
            name: tuple(int(size) for size in sizes)
            for name, sizes in zip(cells.names, held, strict=True)
            if sizes.sum()
        },
    )


def judge_subgroups(counted: SubgroupCounts) -> Iterator[Finding]:
    """Yield how large subgroups are, which lack an arm, and which are small."""
    sizes = [sum(arms) for arms in counted.counts.values()]
    by_arm = {name: dict(zip(counted.positions.labels, arms, strict=True))
              for name, arms in counted.counts.items()}  # fmt: skip
    if counted.lacking:
        yield Finding(
            "subgroups", None, "bends",
            f"an arm is missing in {first_few(map(counted.described, counted.lacking), '; ')}: "
            "such a subgroup has no effect, and its units are in no row of the table",
            "make coarser subgroups", {"cells": counted.lacking},
        )  # fmt: skip
    if counted.small:
        yield Finding(
            "subgroups", None, "note",
            f"an arm has fewer than {FEW_UNITS} units in "
            f"{first_few(map(counted.described, counted.small), '; ')}",
            "make coarser subgroups; so small an arm makes wide intervals",
            {"cells": counted.small},
        )  # fmt: skip
    usable = len(sizes) - len(counted.lacking)
    sentence = (
        f"{len(sizes)} subgroups of {min(sizes):,} to {max(sizes):,} units"
        if sizes
        else ("no row is in a subgroup")
    )
    if usable > _MANY:
        sentence += (
            f"; an effect of all units that is rolled up from {usable} is about {usable**0.5:.1f} "
            "times as noisy as one asked for alone, so that overall=True is recommended"
        )
    yield Finding("subgroups", None, "ok" if sizes else "bends", sentence, "", {"cells": by_arm})


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
    table: Table,
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
        chunks = table.chunks([domain.treatment.column])
        inside = np.concatenate([encode_arms(chunk, domain)[1] for chunk in chunks])
        study = study.reordered(np.flatnonzero(inside))
    with single_threaded_blas():
        model = fit_propensity(study, _RIDGE / study.size)
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


def _scores(study: LocalStudy, model: PropensityModel, code: int) -> Floats:
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


def _is_thin(count: int, effective: float, outside: int) -> bool:
    """Say whether few units of an arm carry most of the weight, or nobody is comparable."""
    least = max(min(FEW_UNITS, count / 2), _TENTH * count)
    return effective < least or outside > count / 2


def judge_support(support: Support | None, arms: Arms) -> Iterator[Finding]:
    """Yield how well the arms overlap, and whom the comparison rests on; of many the worst."""
    if support is None:
        why = {0: "an arm is empty", 1: "an arm has one row"}.get(
            min(arms.counts.values()), "no covariate can be used"
        )
        yield Finding(
            "overlap", None, "note", f"not looked at, as {why}",
            "settle the other findings, then check again",
        )  # fmt: skip
        return
    several = len(support.effective) > 2
    labels, names, units = list(support.effective)[::-1], ["treated", "control"], " units"
    if several:
        labels = sorted(
            support.effective, key=lambda one: support.effective[one] / arms.counts[one]
        )
        names, units = [f"units of {quoted(label)}" for label in labels], ""
    weighed = [
        (name, arms.counts[label], support.effective[label], support.outside[label])
        for name, label in zip(names, labels, strict=True)
    ]
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
    counts = {key: held for key, held in support.to_dict().items() if key.startswith("effective")}
    yield Finding(
        "overlap", None, severity, sentence, "" if severity == "ok" else remedy,
        {**counts, "largest_imbalance": abs(after)},
    )  # fmt: skip
