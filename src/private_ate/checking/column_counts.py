"""What one pass counts of each column, chunk by chunk; the same however rows are cut into chunks.

Entries are read exactly as the estimate reads them. What the estimate cannot read counts as missing
there, in silence; here such texts are kept apart, and the common reasons for them are recognised by
their shape. Counts stay small however many rows there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from private_ate.arrays import Bits, Floats, Integers, Words
from private_ate.checking.findings import quoted
from private_ate.data.encoding import read_arms
from private_ate.data.tables import Table
from private_ate.domain import Categories, Interval, Treatment, label_text

if TYPE_CHECKING:
    import polars as pl

_FEW_HASHES: Final = 1 << 16
# The first shape that fits is a text's.
SHAPES: Final = {
    "date": r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ].*)?$",
    "comma": r"^[+-]?(\d+,\d+|\d{1,3}(\.\d{3})+,\d+|\d{1,3}(,\d{3})+(\.\d+)?)([eE][+-]?\d+)?$",
    "word": r"(?i)^(n\.?/?a\.?|<na>|null|none|nil|missing|unknown|refused|\.|-|--|\?|#n/a)$",
    "unit": r"^[<>≤≥~=$€£]*\s*[+-]?\d+([.,]\d+)?\s*[%°a-zA-Z/$€£]*$",
}
_MOST_VALUES: Final = 1000
_MOST_HASHES: Final = 1 << 22
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


class Beyond:
    """Values outside declared bounds: how many, how far, and which ones most often."""

    def __init__(self, places: int) -> None:
        """Begin to count, in ``places`` arms and no arm."""
        self.values = ValueCounts(places=places)
        self.below = self.above = 0
        self.furthest = 0.0  # in units of the column
        self.between = 0  # of a column declared to be 0 or 1

    @property
    def count(self) -> int:
        """How many values are clipped."""
        return self.below + self.above

    def add(self, entries: Entries, bounds: Interval, arms: Integers) -> None:
        """Compare some rows with their bounds."""
        numbers = entries.numbers
        below, above = numbers < bounds.low, numbers > bounds.high
        self.below += int(np.count_nonzero(below))
        self.above += int(np.count_nonzero(above))
        for apart in (bounds.low - numbers[below], numbers[above] - bounds.high):
            self.furthest = max(self.furthest, float(apart.max(initial=0.0)))
        if bounds.is_binary:
            self.between += int(np.count_nonzero((numbers > 0) & (numbers < 1)))
        self.values.add(entries, below | above, arms)


class ColumnCounts:
    """The counts of one column so far; arrays count each arm, and last the rows of none."""

    kind = ""
    type_name = ""
    is_typed = False
    keeps_texts = False

    def __init__(
        self, name: str, declared: Interval | Categories | None, positions: ArmPositions
    ) -> None:
        """Begin to count."""
        self.name, self.declared, self.positions = name, declared, positions
        places = positions.size
        self.rows, self.missing = np.zeros(places, np.int64), np.zeros(places, np.int64)
        self.texts = 0
        self.text_counts = ValueCounts(places=places)
        self.shapes = Counter[str]()
        self.low, self.high = np.full(places, np.inf), np.full(places, -np.inf)
        self.is_whole, self.rises, self.last = True, True, -np.inf
        self.hashes = HashCounts(_FEW_HASHES)
        self.values = ValueCounts(gives_up=True, places=places)
        self.beyond = Beyond(places)
        self.undeclared = 0
        self.undeclared_labels = ValueCounts(places=places)
        self.seen_labels = set[str]()

    @property
    def present(self) -> int:
        """How many rows have an entry."""
        return int(self.rows.sum() - self.missing.sum())

    @property
    def holds_numbers(self) -> bool:
        """Whether the column is one of numbers, judged by its type and most entries."""
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
        self.rows += np.bincount(arms, minlength=self.positions.size)
        self.missing += np.bincount(arms[missing], minlength=self.positions.size)
        self._add_texts(entries, arms)
        self._add_numbers(entries.numbers, arms)
        self.hashes.add(hash_entries(entries)[~missing])
        self.values.add(entries, ~missing, arms)
        if isinstance(self.declared, Interval):
            self.beyond.add(entries, self.declared, arms)
        elif isinstance(self.declared, Categories):
            self._add_labels(table, entries, self.declared.labels, arms)

    def _add_texts(self, entries: Entries, arms: Integers) -> None:
        is_text = entries.is_text
        import polars as pl  # slow to load

        if entries.texts is None or not is_text.any():
            return
        self.texts += int(np.count_nonzero(is_text))
        if not isinstance(self.declared, Categories):  # labels are counted below
            self.text_counts.add(entries, is_text, arms)
        self.shapes.update(count_shapes(entries.texts.filter(pl.Series(is_text))))

    def _add_numbers(self, numbers: Floats, arms: Integers) -> None:
        finite = np.isfinite(numbers)
        for arm in range(self.positions.size):
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


@dataclass(frozen=True, slots=True)
class Entries:
    """Some rows of a column.

    ``numbers`` are what the estimate would compute with, NaN where it reads none; ``texts`` are
    the stripped entries, None for a column of a numeric type. ``is_missing`` where there is no
    entry (the text NaN is none either), ``is_text`` where there is one that is no number.
    """

    numbers: Floats = field(repr=False)
    texts: pl.Series | None = field(repr=False)
    is_missing: Bits = field(init=False, repr=False)
    is_text: Bits = field(init=False, repr=False)

    def __post_init__(self) -> None:
        no_number = np.isnan(self.numbers)
        missing = no_number
        if self.texts is not None and no_number.any():
            texts = self.texts.fill_null("")
            missing = no_number & ((texts == "") | (texts.str.to_lowercase() == "nan")).to_numpy()
        object.__setattr__(self, "is_missing", missing)
        object.__setattr__(self, "is_text", no_number & ~missing)


def read_entries(table: Table, name: str) -> Entries:
    """Read a column of some rows, whatever its type."""
    kind = table.kind(name)
    if kind == "number":
        return Entries(table.numbers(name), None)
    texts = table.texts(name)
    if kind == "other":  # dates and the like are never numbers
        return Entries(np.full(table.rows, np.nan), texts)
    # A typed column of texts is refused where numbers are declared; here its texts are looked at.
    return Entries(replace(table, typed=False).numbers(name), texts)


def count_shapes(texts: pl.Series) -> dict[str, int]:
    """Count texts by the first shape that fits."""
    import polars as pl

    left = pl.DataFrame({"text": texts}).group_by("text").len()
    counts: dict[str, int] = {}
    for shape, pattern in SHAPES.items():
        fits = left["text"].str.contains(pattern)
        counts[shape] = int(left["len"].filter(fits).sum())
        left = left.filter(~fits)
    return counts


@dataclass(slots=True)
class ValueCounts:
    """How often each value occurs in which arm; of very many values, those that came first.

    A number and its texts ("1", "1.0") are one value. With ``gives_up`` nothing more is counted
    once there are too many.
    """

    gives_up: bool = False
    most: int = _MOST_VALUES
    places: int = 3  # arms, and rows of none
    numbers: dict[float, Integers] = field(default_factory=dict)
    texts: dict[str, Integers] = field(default_factory=dict)
    is_whole: bool = True  # whether every value that was seen is counted

    def add(self, entries: Entries, chosen: Bits, arms: Integers) -> None:
        """Count the chosen rows but for missing entries."""
        import polars as pl

        if self.gives_up and not self.is_whole:
            return
        numbers = chosen & ~np.isnan(entries.numbers)
        self._count(self.numbers, pl.Series(entries.numbers[numbers]), arms[numbers])
        if entries.texts is not None:
            texts = chosen & entries.is_text
            self._count(self.texts, entries.texts.filter(pl.Series(texts)), arms[texts])

    def ordered(self) -> dict[str, int]:
        """Return the counts by label, the most frequent first."""
        counts = {name: int(count.sum()) for name, count in self.by_arm().items()}
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))

    def by_arm(self) -> dict[str, Integers]:
        """Return the counts by label: in each arm, and in none of them."""
        return {value_text(value): count for value, count in (self.numbers | self.texts).items()}

    def _count(self, counts: dict[Any, Integers], values: pl.Series, arms: Integers) -> None:
        import polars as pl

        if values.is_empty():
            return
        fresh = [
            value
            for value in values.unique(maintain_order=True).head(2 * self.most).to_list()
            if value not in counts
        ]
        room = self.most - len(counts)
        known = len(counts) + min(len(fresh), room)
        for value in fresh[:room]:
            counts[value] = np.zeros(self.places, dtype=np.int64)
        frame = pl.DataFrame({"value": values.alias("value"), "arm": arms})
        if len(fresh) > room or values.n_unique() > known:
            self.is_whole = False
            frame = frame.filter(pl.col("value").is_in(list(counts)))
        for value, arm, count in frame.group_by("value", "arm").len().iter_rows():
            counts[value][arm] += count


def value_text(value: float | str) -> str:
    """Return a value as a label is written."""
    if isinstance(value, str):
        return value
    return label_text(value) if np.isfinite(value) else str(value)


@dataclass(slots=True)
class HashCounts:
    """How many rows share a hash.

    Beyond four million different hashes only every second one is kept, then every fourth and so on,
    always with all of its rows: counts are then estimates, and the memory in use stays bounded.
    """

    most: int = _MOST_HASHES
    thinned: int = 0  # halvings so far
    hashes: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    counts: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    waiting: list[Words] = field(default_factory=list)

    def add(self, hashes: Words) -> None:
        """Take in some rows."""
        self.waiting.append(self._kept(hashes))
        if sum(part.size for part in self.waiting) > self.most:
            self._settled()

    @property
    def distinct(self) -> int:
        """About how many different hashes there are; exact until thinned."""
        return self._settled().size << self.thinned

    @property
    def repeated(self) -> int:
        """About how many hashes are shared by several rows."""
        return int(np.count_nonzero(self._settled() > 1)) << self.thinned

    @property
    def surplus(self) -> int:
        """About how many rows repeat an earlier one."""
        return int((self._settled() - 1).sum()) << self.thinned

    @property
    def largest(self) -> int:
        """The most rows that share a hash, among those kept."""
        return int(self._settled().max(initial=0))

    def _kept(self, hashes: Words) -> Words:
        if not self.thinned:
            return hashes
        chosen: Words = hashes[hashes >> np.uint64(64 - self.thinned) == 0]
        return chosen

    def _settled(self) -> Integers:
        """Return how many rows each of the hashes has, those that wait among them."""
        if self.waiting:
            fresh, times = np.unique(np.concatenate(self.waiting), return_counts=True)
            self.waiting = []
            hashes, places = np.unique(np.concatenate([self.hashes, fresh]), return_inverse=True)
            counts = np.zeros(hashes.size, dtype=np.int64)
            np.add.at(counts, places, np.concatenate([self.counts, times]))
            while hashes.size > self.most:
                self.thinned += 1
                # Sorted, so that the kept ones come first.
                end = np.uint64(1) << np.uint64(64 - self.thinned)
                size = int(np.searchsorted(hashes, end))
                hashes, counts = hashes[:size], counts[:size]
            self.hashes, self.counts = hashes, counts
        return self.counts


def hash_entries(entries: Entries) -> Words:
    """Return a hash per entry: of its number if it has one, else of its text or of nothing."""
    numbers = entries.numbers + 0.0  # −0 is 0
    hashes = spread_bits(np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    if entries.texts is None or not entries.is_text.any():
        return hashes
    texts = entries.texts.fill_null("").hash(seed=1).to_numpy()
    return np.where(entries.is_text, texts, hashes)


def spread_bits(words: Words) -> Words:
    """Spread the bits of whole numbers evenly (the finaliser of SplitMix64)."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    spread: Words = words ^ (words >> np.uint64(31))
    return spread


@dataclass(frozen=True, slots=True)
class ArmPositions:
    """The arms in the order in which they are counted; rows of no declared arm come last.

    Two arms are treated and control; several are in the order of their codes, the reference first.
    """

    treatment: Treatment

    @property
    def is_pair(self) -> bool:
        """Whether two arms are compared."""
        return self.treatment.size == 2

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms' labels."""
        coded = self.treatment.coded
        return coded[::-1] if self.is_pair else coded

    @property
    def names(self) -> tuple[str, ...]:
        """What sentences call the arms."""
        return ("treated", "control") if self.is_pair else tuple(map(quoted, self.labels))

    @property
    def size(self) -> int:
        """The length of an array of counts: one for each arm, one for rows of none."""
        return self.treatment.size + 1

    @property
    def outside(self) -> int:
        """The place of rows of no declared arm."""
        return self.treatment.size

    def place(self, table: Table) -> Integers:
        """Return the place of each row by its own entry."""
        codes, known = read_arms(table, self.treatment)
        places = codes.astype(np.int64)
        return np.where(known, 1 - places if self.is_pair else places, self.outside)

    def take_part(self, places: Integers) -> Integers:
        """Return where rows take part; the domain may name the arm of any other label."""
        other = self.treatment.other_code
        if other is None:
            return places
        return np.where(places == self.outside, 1 - other if self.is_pair else other, places)

    def counts(self, values: Sequence[float] | Integers) -> dict[str, Any]:
        """Return whole numbers by arm as plain values: two by name, several by label."""
        numbers = [int(value) for value in values[: self.outside]]
        if self.is_pair:
            return dict(zip(self.names, numbers, strict=True))
        return {"arms": dict(zip(self.labels, numbers, strict=True))}
