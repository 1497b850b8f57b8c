"""What the counts of treatment, outcome and whole rows mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from private_ate.checking.columns import judge_numbers, judge_type
from private_ate.checking.findings import Arms, Finding, Severity, Support
from private_ate.checking.reading import SHAPES
from private_ate.checking.sketches import Alike
from private_ate.checking.tally import CONTROL, TREATED, ColumnTally
from private_ate.checking.words import amount, listed, number, quoted, share
from private_ate.domain import Domain, Outcome, Treatment, label_text

__all__ = [
    "judge_arms",
    "judge_lines",
    "judge_outcome",
    "judge_persons",
    "judge_repeats",
    "judge_support",
    "missing_rule",
]

_FEW_UNITS: Final = 30
_CLIPPED_OUTCOMES: Final = 0.01
_MISSING_OUTCOMES: Final = 0.01
_SPELLING: Final = "write decimal points, not commas"
_TENTH: Final = 0.1
_IMBALANCE: Final = 0.1
_LARGE_IMBALANCE: Final = 0.25  # beyond what chance leaves in two hundred rows


def judge_arms(arms: Arms, treatment: Treatment, *, leaves_out: bool) -> Iterator[Finding]:
    """Yield how large the arms are, and which rows belong to neither."""
    rows = arms.treated + arms.control + arms.neither
    names = {
        "treated": (quoted(label_text(treatment.treated)), arms.treated),
        "control": (quoted(label_text(treatment.control)), arms.control),
    }
    told = ", ".join(f"{count:,} {arm} ({label})" for arm, (label, count) in names.items())
    unseen = [f"the {arm} label {label}" for arm, (label, count) in names.items() if not count]
    if unseen:
        found = listed(arms.undeclared)
        yield Finding(
            "arms", treatment.column, "bends",
            f"no row has {' or '.join(unseen)}" + (f"; found: {found}" if found else ""),
            _SPELLING if _has_commas(arms) else "declare the labels as the data spell them",
            arms.to_dict(),
        )  # fmt: skip
    else:
        is_small = min(arms.treated, arms.control) < _FEW_UNITS
        yield Finding(
            "arms", treatment.column, "note" if is_small else "ok", told,
            "so small an arm makes wide intervals" if is_small else "", arms.to_dict(),
        )  # fmt: skip
    if len(unseen) < len(names) or arms.missing:
        yield from _neither(arms, treatment, rows, leaves_out=leaves_out)


def _has_commas(arms: Arms) -> bool:
    return any(re.fullmatch(SHAPES["comma"], label) for label in arms.undeclared)


def _neither(arms: Arms, treatment: Treatment, rows: int, *, leaves_out: bool) -> Iterator[Finding]:
    fate = "take no part" if leaves_out else "belong to neither arm"
    if treatment.other is not None:
        fate = f"count as {quoted(label_text(treatment.other))}, as declared"
    severity: Severity = "note" if leaves_out or treatment.other is not None else "bends"
    if arms.missing:
        yield Finding(
            "missing", treatment.column, severity,
            f"{amount(arms.missing, rows)} have no treatment and {fate}",
            "find out, or leave such rows out on purpose",
            {"rows": arms.missing, "share": arms.missing / rows},
        )  # fmt: skip
    strange = arms.neither - arms.missing
    if strange:
        yield Finding(
            "undeclared labels", treatment.column, severity,
            f"{amount(strange, rows)} have a treatment that is not declared and {fate}: "
            f"{listed(arms.undeclared)}",
            "keep the two arms that are to be compared, or correct the labels",
            {"rows": strange, "share": strange / rows, "labels": dict(arms.undeclared)},
        )  # fmt: skip


def judge_outcome(tally: ColumnTally, domain: Domain) -> Iterator[Finding]:
    """Yield what there is to say about the outcome."""
    found = list(_outcome(tally, domain))
    yield from found
    if not found:
        yield Finding(
            "in order", tally.name, "ok",
            f"{tally.present:,} values, {number(tally.low.min())} to {number(tally.high.max())}",
        )  # fmt: skip


def _outcome(tally: ColumnTally, domain: Domain) -> Iterator[Finding]:
    if not tally.present:
        yield Finding("missing", tally.name, "bends", "every outcome is missing", "find them")
        return
    bounds = domain.outcome.bounds
    if bounds is None:
        yield Finding(
            "declaration", tally.name, "bends",
            "it has no declared bounds: the estimate refuses to run without",
            "declare them from the code book; lines are proposed below",
        )  # fmt: skip
    yield from judge_type(tally)
    yield from _missing_outcomes(tally, domain.outcome)
    yield from judge_numbers(tally, _CLIPPED_OUTCOMES)
    if tally.beyond.between:
        yield Finding(
            "not binary", tally.name, "bends",
            f"it is declared as 0 or 1, and {amount(tally.beyond.between, tally.present, 'values')}"
            " lie between", "declare bounds instead", {"rows": tally.beyond.between},
        )  # fmt: skip
    if tally.alike.distinct == 1:
        yield Finding(
            "constant", tally.name, "bends", "every outcome is the same", "is it the right column?"
        )


def missing_rule(outcome: Outcome) -> tuple[bool, str]:
    """Return whether it is declared what a missing outcome counts as, and what it counts as."""
    if outcome.missing is not None:
        return True, "they are left out, as declared"
    bounds = outcome.bounds
    if bounds is None:
        return False, "what they count as is not declared"
    if bounds.missing is None:
        return False, f"nothing is declared, so they count as {number(bounds.fill)}"
    return True, f"they count as {number(bounds.fill)}, as declared"


def _missing_outcomes(tally: ColumnTally, outcome: Outcome) -> Iterator[Finding]:
    missing, rows = tally.missing, tally.rows
    if not missing.any():
        return
    parts = [
        amount(int(missing.sum()), int(rows.sum()), "outcomes") + " are missing",
        *(
            f"{int(missing[arm]):,} of {int(rows[arm]):,} {name} ({share(missing[arm], rows[arm])})"
            for arm, name in ((TREATED, "treated"), (CONTROL, "control"))
            if rows[arm]
        ),
    ]
    declared, rule = missing_rule(outcome)
    shares = missing[:2] / np.maximum(rows[:2], 1)
    is_many = missing.sum() >= _MISSING_OUTCOMES * rows.sum() or shares.max() >= _MISSING_OUTCOMES
    yield Finding(
        "missing", tally.name, "bends" if is_many and not declared else "note",
        f"{', '.join(parts)}; {rule}",
        'declare missing = "public" or "private", which leaves them out'
        + ("" if declared else ", or the number that a missing outcome stands for"),
        {
            "rows": int(missing.sum()), "treated": int(missing[TREATED]),
            "control": int(missing[CONTROL]), "declared": declared,
        },
    )  # fmt: skip


def judge_persons(persons: Alike, column: str, rows: int, rows_per_person: int) -> Finding:
    """Say how many rows a person has."""
    about = "about " if persons.thinned else ""
    counts = {
        "persons": persons.distinct, "repeated": persons.repeated, "largest": persons.largest,
    }  # fmt: skip
    told = f"{rows:,} rows of {about}{persons.distinct:,} persons"
    if persons.largest <= rows_per_person:
        return Finding(
            "duplicates", column, "ok", f"{told}, at most {persons.largest} each", "", counts
        )
    return Finding(
        "duplicates", column, "bends",
        f"{told}: {about}{persons.repeated:,} have several, the most {persons.largest}, "
        f"where {rows_per_person} is declared",
        f"keep one row a person, or declare rows_per_person={persons.largest}", counts,
    )  # fmt: skip


def judge_lines(count: int, first: int, rows: int) -> Iterator[Finding]:
    """Yield a finding if lines of a CSV file hold more fields than its header."""
    if count:
        yield Finding(
            "fields", None, "bends",
            f"{amount(count, rows, 'lines')} hold more fields than the header names, line "
            f"{first:,} first: what is too much is left out, and values may stand in the wrong "
            "column",
            "write decimal points, or put fields that hold commas in quotes",
            {"rows": count, "first_line": first},
        )  # fmt: skip


def judge_repeats(alike: Alike, rows: int) -> Finding:
    """Say how many rows are the same as an earlier one in every column."""
    about = "about " if alike.thinned else ""
    counts = {"rows": alike.surplus}
    if not alike.surplus:
        return Finding("duplicates", None, "ok", "no two rows are the same", "", counts)
    return Finding(
        "duplicates", None, "note",
        f"{about}{amount(alike.surplus, rows)} repeat an earlier row in every column",
        "one row is one person: if persons are named by a column, check by it", counts,
    )  # fmt: skip


def judge_support(support: Support | None, arms: Arms) -> Iterator[Finding]:
    """Yield how well the arms overlap, and whom the comparison rests on."""
    if support is None:
        why = "no covariate can be used" if arms.treated and arms.control else "an arm is empty"
        yield Finding(
            "overlap",
            None,
            "note",
            f"not looked at, as {why}",
            "settle the other findings, then check again",
        )
        return
    sizes = {
        "treated": (support.effective_treated, arms.treated, support.outside_treated),
        "control": (support.effective_control, arms.control, support.outside_control),
    }
    told = ", ".join(
        f"{count:,} {arm} units weigh as much as {effective:,.0f}"
        for arm, (effective, count, _) in sizes.items()
    )
    outside = [
        amount(beyond, count, arm)
        for arm, (_, count, beyond) in sizes.items()
        if beyond > _TENTH * count
    ]
    name, (before, after) = max(
        support.balance.items(), key=lambda item: abs(item[1][1]), default=("", (0.0, 0.0))
    )
    is_off = abs(after) > _IMBALANCE
    bends = _is_thin(sizes.values()) or (bool(outside) and abs(after) > _LARGE_IMBALANCE)
    sentence = f"the arms hardly overlap: {told}" if bends else told
    if outside:
        sentence += f"; beyond every score of the other arm: {', '.join(outside)}"
    if is_off:
        sentence += (
            f"; {name} differs by {abs(before):.2g} standard deviations, {abs(after):.2g} after "
            "weighting"
        )
    if support.left_out:
        sentence += f"; without {', '.join(quoted(name)[1:-1] for name in support.left_out[:5])}"
    remedy = (
        "ask for the effect on the treated (att) or on those who overlap (ato), or keep rows "
        "that could have been in either arm"
    )
    severity: Severity = "bends" if bends else "note" if outside or is_off else "ok"
    counts = {
        "effective_treated": support.effective_treated,
        "effective_control": support.effective_control,
        "largest_imbalance": abs(after),
    }
    yield Finding("overlap", None, severity, sentence, remedy, counts)


def _is_thin(sizes: Iterable[tuple[float, int, int]]) -> bool:
    """Whether few units of an arm carry most of its weight, or nobody is comparable."""
    return any(
        effective < min(_FEW_UNITS, count / 2) or effective < _TENTH * count or beyond > count / 2
        for effective, count, beyond in sizes
    )
