"""What the counts of the outcome and of whole rows mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from private_ate.checking.columns import judge_numbers, judge_type
from private_ate.checking.events import EventCounts
from private_ate.checking.findings import Finding
from private_ate.checking.sketches import Alike
from private_ate.checking.tally import ColumnTally
from private_ate.checking.words import amount, number, share
from private_ate.domain import Domain, Interval, Outcome

__all__ = [
    "judge_ids",
    "judge_lines",
    "judge_outcome",
    "judge_persons",
    "judge_repeats",
    "missing_rule",
]

_CLIPPED_OUTCOMES: Final = 0.01
_WIDE_BOUNDS: Final = 4  # times the span of outcomes from which bounds are called wide
_FEW_PERSONS: Final = 20
_FEW_ARMS: Final = 5  # that a sentence lists


def judge_outcome(
    tally: ColumnTally, domain: Domain, events: EventCounts | None
) -> Iterator[Finding]:
    """Yield what there is to say about the outcome; ``events`` tells how its labels are read."""
    found = list(_outcome(tally, domain))
    yield from found
    if events is not None:
        yield from events.judge()
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
    if not (domain.outcome.reads_labels and tally.kind == "label"):
        yield from judge_type(tally)
    yield from _missing_outcomes(tally, domain.outcome)
    yield from judge_numbers(
        tally, _CLIPPED_OUTCOMES, "the label that counts as 1 as the event label (event_label)",
        takes_words=missing_rule(domain.outcome)[0],
    )  # fmt: skip
    if tally.beyond.between:
        yield Finding(
            "not binary", tally.name, "bends",
            f"it is declared as 0 or 1, and {amount(tally.beyond.between, tally.present, 'values')}"
            " lie between", "declare bounds instead", {"rows": tally.beyond.between},
        )  # fmt: skip
    yield from _wide_bounds(tally, bounds)
    if tally.alike.distinct == 1:
        yield Finding(
            "constant", tally.name, "bends", "every outcome is the same", "is it the right column?"
        )


def _wide_bounds(tally: ColumnTally, bounds: Interval | None) -> Iterator[Finding]:
    """Say that outcomes lie in a small part of their bounds; what they are stays unsaid."""
    if bounds is None or bounds.is_binary or tally.alike.distinct == 1:
        return
    span = float(tally.high.max() - tally.low.min())
    if not 0 < span * _WIDE_BOUNDS <= bounds.width:
        return
    yield Finding(
        "wide bounds", tally.name, "note",
        f"the declared bounds are {_WIDE_BOUNDS} times as wide as what the outcomes span, or more: "
        "noise follows the bounds, and at sample level intervals do too",
        "ask the code book for narrower ones, never the file; at label level outcome_sd helps",
    )  # fmt: skip


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
    declared, rule = missing_rule(outcome)
    told = amount(int(missing.sum()), int(rows.sum()), "outcomes") + " are missing"
    yield Finding(
        "missing", tally.name, "note" if declared else "bends",
        f"{', '.join([told, *_missing_by_arm(tally)])}; {rule}",
        _missing_remedy(outcome, declared=declared),
        {"rows": int(missing.sum()), **tally.slots.counts(missing), "declared": declared},
    )  # fmt: skip


def _missing_remedy(outcome: Outcome, *, declared: bool) -> str:
    """Say how missing outcomes could be declared; of those that are left out, nothing is to do."""
    if outcome.missing is not None:
        return ""
    left_out = 'declare missing = "public" or "private", which leaves them out'
    return left_out if declared else f"{left_out}, or the number that a missing outcome stands for"


def _missing_by_arm(tally: ColumnTally) -> list[str]:
    """Say how many outcomes each arm lacks; of many arms, those that lack most."""
    counted = [
        (int(gone), int(units), name)
        for gone, units, name in zip(
            tally.missing[:-1], tally.rows[:-1], tally.slots.names, strict=True
        )
        if units
    ]
    if len(counted) > _FEW_ARMS:
        worst = sorted(counted, key=lambda one: one[0] / one[1], reverse=True)
        counted = [one for one in worst if one[0]][:_FEW_ARMS]
    return [f"{gone:,} of {units:,} {name} ({share(gone, units)})" for gone, units, name in counted]


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


def judge_ids(ids: Mapping[str, Alike], rows_per_person: int) -> Iterator[Finding]:
    """Yield which columns that are named as ids repeat: their persons have several rows."""
    for column, persons in ids.items():
        is_few = persons.distinct < _FEW_PERSONS  # a name for groups rather than for persons
        if is_few or persons.largest <= rows_per_person:
            continue
        each = persons.surplus == persons.distinct * (persons.largest - 1)
        how = f"{persons.largest} rows each" if each else f"up to {persons.largest} rows"
        yield Finding(
            "persons", column, "bends",
            f"it repeats as the id of persons would: {persons.distinct:,} persons with {how}, "
            f"where {rows_per_person} is declared",
            f"declare {persons.largest} rows per person, or check by the person {column!r}; if it "
            "names no persons, leave it out of the file",
            {"persons": persons.distinct, "largest": persons.largest},
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
