"""What is counted of each column in one pass, chunk by chunk; the same however rows are cut."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from private_ate.arrays import Bits, Floats, Integers
from private_ate.checking.reading import Entries, count_shapes
from private_ate.checking.sketches import Alike, ValueCounts, hash_entries
from private_ate.checking.slots import ArmSlots
from private_ate.data.tables import Table
from private_ate.domain import Categories, Interval

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Beyond", "ColumnTally"]

_FEW_HASHES: Final = 1 << 16


@dataclass(slots=True)
class Beyond:
    """Values outside declared bounds: how many, how far, and which ones most often."""

    values: ValueCounts
    below: int = 0
    above: int = 0
    furthest_below: float = 0.0
    furthest_above: float = 0.0
    between: int = 0  # of a column declared to be 0 or 1

    @property
    def count(self) -> int:
        """How many values are clipped."""
        return self.below + self.above

    @property
    def furthest(self) -> float:
        """How far the furthest value lies outside, in units of the column."""
        return max(self.furthest_below, self.furthest_above)

    def add(self, entries: Entries, bounds: Interval, arms: Integers) -> None:
        """Compare some rows with their bounds."""
        numbers = entries.numbers
        below, above = numbers < bounds.low, numbers > bounds.high
        self.below += int(np.count_nonzero(below))
        self.above += int(np.count_nonzero(above))
        if below.any():
            furthest = bounds.low - float(numbers[below].min())
            self.furthest_below = max(self.furthest_below, furthest)
        if above.any():
            furthest = float(numbers[above].max()) - bounds.high
            self.furthest_above = max(self.furthest_above, furthest)
        if bounds.is_binary:
            self.between += int(np.count_nonzero((numbers > 0) & (numbers < 1)))
        self.values.add(entries, below | above, arms)


@dataclass(slots=True)
class ColumnTally:
    """The counts of one column so far; arrays count each arm, and last the rows of none."""

    name: str
    declared: Interval | Categories | None
    slots: ArmSlots
    kind: str = ""
    type_name: str = ""
    is_typed: bool = False
    keeps_texts: bool = False
    rows: Integers = field(init=False)
    missing: Integers = field(init=False)
    texts: int = 0
    text_counts: ValueCounts = field(init=False)
    shapes: Counter[str] = field(default_factory=Counter)
    low: Floats = field(init=False)
    high: Floats = field(init=False)
    is_whole: bool = True
    rises: bool = True
    last: float = -np.inf
    alike: Alike = field(default_factory=lambda: Alike(_FEW_HASHES))
    values: ValueCounts = field(init=False)
    beyond: Beyond = field(init=False)
    undeclared: int = 0
    undeclared_labels: ValueCounts = field(init=False)
    seen_labels: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        places = self.slots.size
        self.rows, self.missing = np.zeros(places, np.int64), np.zeros(places, np.int64)
        self.low, self.high = np.full(places, np.inf), np.full(places, -np.inf)
        self.text_counts = ValueCounts(places=places)
        self.values = ValueCounts(gives_up=True, places=places)
        self.beyond = Beyond(ValueCounts(places=places))
        self.undeclared_labels = ValueCounts(places=places)

    @property
    def present(self) -> int:
        """How many rows have an entry."""
        return int(self.rows.sum() - self.missing.sum())

    @property
    def holds_numbers(self) -> bool:
        """Whether the column is one of numbers, as far as its type and most entries tell."""
        if self.declared is not None:
            return isinstance(self.declared, Interval)
        # Numbers that were written for other readers are meant as numbers.
        others = self.texts - self.shapes["comma"] - self.shapes["unit"]
        return not self.keeps_texts and self.present > 0 and 2 * others < self.present

    def is_refused_as(self, kind: Interval | Categories | None) -> bool:
        """Whether the column's type alone makes an estimate refuse it."""
        is_text = self.kind == "label" and self.is_typed
        return self.kind == "other" or (is_text and isinstance(kind, Interval))

    def add(self, table: Table, entries: Entries, arms: Integers) -> None:
        """Count some rows."""
        self.kind, self.type_name = table.kind(self.name), table.type_name(self.name)
        self.is_typed, self.keeps_texts = table.typed, table.keeps_texts(self.name)
        missing = entries.is_missing
        self.rows += np.bincount(arms, minlength=self.slots.size)
        self.missing += np.bincount(arms[missing], minlength=self.slots.size)
        self._add_texts(entries, arms)
        self._add_numbers(entries.numbers, arms)
        self.alike.add(hash_entries(entries)[~missing])
        self.values.add(entries, ~missing, arms)
        if isinstance(self.declared, Interval):
            self.beyond.add(entries, self.declared, arms)
        elif isinstance(self.declared, Categories):
            self._add_labels(table, entries, self.declared.labels, arms)

    def _add_texts(self, entries: Entries, arms: Integers) -> None:
        if entries.texts is None:
            return
        is_text = entries.is_text
        if not is_text.any():
            return
        self.texts += int(np.count_nonzero(is_text))
        if not isinstance(self.declared, Categories):  # labels are counted below
            self.text_counts.add(entries, is_text, arms)
        self.shapes.update(count_shapes(_chosen(entries.texts, is_text)))

    def _add_numbers(self, numbers: Floats, arms: Integers) -> None:
        finite = np.isfinite(numbers)
        for arm in range(self.slots.size):
            own = numbers[finite & (arms == arm)]
            self.low[arm] = min(self.low[arm], own.min(initial=np.inf))
            self.high[arm] = max(self.high[arm], own.max(initial=-np.inf))
        found = numbers[finite]
        self.is_whole &= bool((found == np.rint(found)).all())
        if self.rises and found.size:
            self.rises = bool(found[0] > self.last and (np.diff(found) > 0).all())
            self.last = float(found[-1])

    def _add_labels(
        self, table: Table, entries: Entries, labels: tuple[str, ...], arms: Integers
    ) -> None:
        known: Bits = np.zeros(table.rows, dtype=np.bool_)
        # A type that cannot hold labels, such as dates, holds none of these.
        for label in labels if table.kind(self.name) != "other" else ():
            hits = table.equals(self.name, label)
            known |= hits
            if hits.any():
                self.seen_labels.add(label)
        strange = ~known & ~entries.is_missing
        self.undeclared += int(np.count_nonzero(strange))
        self.undeclared_labels.add(entries, strange, arms)


def _chosen(texts: pl.Series, rows: Bits) -> pl.Series:
    import polars as pl

    return texts.filter(pl.Series(rows))
