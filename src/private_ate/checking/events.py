"""A binary outcome of labels as the estimate reads it: which entries count as 1, and which as 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from private_ate.arrays import Integers
from private_ate.checking.findings import Finding
from private_ate.checking.reading import Entries
from private_ate.checking.sketches import ValueCounts
from private_ate.checking.words import listed, quoted
from private_ate.data.encoding import read_outcome
from private_ate.data.tables import Table
from private_ate.domain import Outcome

__all__ = ["EventCounts"]


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
