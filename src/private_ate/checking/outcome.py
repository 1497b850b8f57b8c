"""What the counts of the outcome mean, and which labels of a binary one count as 1 and as 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.checking.column_counts import ColumnCounts, Entries, ValueCounts
from private_ate.checking.columns import judge_numbers, judge_type
from private_ate.checking.findings import Finding
from private_ate.checking.phrasing import amount, listed, number, quoted, share
from private_ate.data.encoding import read_outcome
from private_ate.data.tables import Table
from private_ate.domain import Domain, Interval, Outcome

__all__ = ["EventCounts", "judge_outcome", "missing_rule"]

_CLIPPED_OUTCOMES: Final = 0.01
_WIDE_BOUNDS: Final = 4  # times the span of outcomes from which bounds are called wide
_FEW_ARMS: Final = 5  # that a sentence lists


def judge_outcome(
    tally: ColumnCounts, domain: Domain, events: EventCounts | None
) -> Iterator[Finding]:
    """Yield what there is to say about the outcome; ``events`` are how its labels are read."""
    found = list(_outcome(tally, domain))
    yield from found
    if events is not None:
        yield from events.judge()
    if not found:
        yield Finding(
            "in order", tally.name, "ok",
            f"{tally.present:,} values, {number(tally.low.min())} to {number(tally.high.max())}",
        )  # fmt: skip


def _outcome(tally: ColumnCounts, domain: Domain) -> Iterator[Finding]:
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
    if tally.hashes.distinct == 1:
        yield Finding(
            "constant", tally.name, "bends", "every outcome is the same", "is it the right column?"
        )


def _wide_bounds(tally: ColumnCounts, bounds: Interval | None) -> Iterator[Finding]:
    """Say that outcomes lie in a small part of their bounds; what they are stays unsaid."""
    if bounds is None or bounds.is_binary or tally.hashes.distinct == 1:
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


def _missing_outcomes(tally: ColumnCounts, outcome: Outcome) -> Iterator[Finding]:
    missing, rows = tally.missing, tally.rows
    if not missing.any():
        return
    declared, rule = missing_rule(outcome)
    summary = amount(int(missing.sum()), int(rows.sum()), "outcomes") + " are missing"
    yield Finding(
        "missing", tally.name, "note" if declared else "bends",
        f"{', '.join([summary, *_missing_by_arm(tally)])}; {rule}",
        _missing_remedy(outcome, declared=declared),
        {"rows": int(missing.sum()), **tally.positions.counts(missing), "declared": declared},
    )  # fmt: skip


def _missing_remedy(outcome: Outcome, *, declared: bool) -> str:
    """Say how missing outcomes could be declared; of those that are left out, nothing is to do."""
    if outcome.missing is not None:
        return ""
    left_out = 'declare missing = "public" or "private", which leaves them out'
    return left_out if declared else f"{left_out}, or the number that a missing outcome stands for"


def _missing_by_arm(tally: ColumnCounts) -> list[str]:
    """Say how many outcomes each arm lacks; of many arms, those that lack most."""
    counted = [
        (int(gone), int(units), name)
        for gone, units, name in zip(
            tally.missing[:-1], tally.rows[:-1], tally.positions.names, strict=True
        )
        if units
    ]
    if len(counted) > _FEW_ARMS:
        worst = sorted(counted, key=lambda one: one[0] / one[1], reverse=True)
        counted = [one for one in worst if one[0]][:_FEW_ARMS]
    return [f"{gone:,} of {units:,} {name} ({share(gone, units)})" for gone, units, name in counted]


@dataclass(slots=True)
class EventCounts:
    """How often each entry of an outcome counts as 1, and as 0; ``places`` are arms and no arm."""

    outcome: Outcome
    places: int
    ones: ValueCounts = field(init=False)
    zeros: ValueCounts = field(init=False)
    holds_texts: bool = False

    def __post_init__(self) -> None:
        self.ones, self.zeros = ValueCounts(places=self.places), ValueCounts(places=self.places)

    def read(self, table: Table, entries: Entries, arms: Integers) -> Entries:
        """Count some rows; return their entries as the estimate reads them."""
        if table.kind(self.outcome.column) == "other":
            return entries
        numbers = read_outcome(table, self.outcome)
        self.holds_texts |= bool((entries.is_text & ~np.isnan(numbers)).any())
        self.ones.add(entries, numbers == 1, arms)
        self.zeros.add(entries, numbers == 0, arms)
        # Without an event label a text that says neither 0 nor 1 stays a text that is no number.
        return Entries(numbers, entries.texts if self.outcome.event_label is None else None)

    def judge(self) -> Iterator[Finding]:
        """Yield what would be read, where labels are."""
        label = self.outcome.event_label
        ones, zeros = self.ones.ordered(), self.zeros.ordered()
        if label is not None and not ones:
            yield Finding(
                "event", self.outcome.column, "bends",
                f"no entry is the event label {quoted(str(label))}; seen: {listed(zeros)}",
                "declare the label as the data spell it (case counts)", {"zeros": zeros},
            )  # fmt: skip
        elif label is not None or self.holds_texts:
            many = len(zeros) > 1
            yield Finding(
                "event", self.outcome.column, "note" if many else "ok",
                f"1: {listed(ones) or 'no entry'}; 0: {listed(zeros) or 'no entry'}",
                "is every one of the labels that count as 0 no event?" if many else "",
                {"ones": ones, "zeros": zeros},
            )  # fmt: skip
