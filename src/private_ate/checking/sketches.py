"""Counts that stay small however many rows there are: values, and rows that are alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from private_ate.arrays import Bits, Integers, Words
from private_ate.checking.reading import Entries
from private_ate.domain import label_text

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Alike", "ValueCounts", "hash_entries", "mixed", "value_text"]

_MOST_VALUES: Final = 1000
_MOST_ALIKE: Final = 1 << 22
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


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
class Alike:
    """How many rows share a hash.

    Beyond four million different hashes only every second one is kept, then every fourth and so on,
    always with all of its rows: counts are then estimates, and the memory in use stays bounded.
    """

    most: int = _MOST_ALIKE
    thinned: int = 0  # halvings so far
    hashes: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    counts: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    waiting: list[Words] = field(default_factory=list)

    def add(self, hashes: Words) -> None:
        """Take in some rows."""
        self.waiting.append(self._kept(hashes))
        if sum(part.size for part in self.waiting) > self.most:
            self._settle()

    @property
    def distinct(self) -> int:
        """About how many different hashes there are; exact until thinned."""
        self._settle()
        return self.hashes.size << self.thinned

    @property
    def repeated(self) -> int:
        """About how many hashes are shared by several rows."""
        self._settle()
        return int(np.count_nonzero(self.counts > 1)) << self.thinned

    @property
    def surplus(self) -> int:
        """About how many rows repeat an earlier one."""
        self._settle()
        return int((self.counts - 1).sum()) << self.thinned

    @property
    def largest(self) -> int:
        """The most rows that share a hash, among those kept."""
        self._settle()
        return int(self.counts.max(initial=0))

    def _kept(self, hashes: Words) -> Words:
        if not self.thinned:
            return hashes
        chosen: Words = hashes[hashes >> np.uint64(64 - self.thinned) == 0]
        return chosen

    def _settle(self) -> None:
        if not self.waiting:
            return
        fresh, times = np.unique(np.concatenate(self.waiting), return_counts=True)
        self.waiting = []
        hashes, places = np.unique(np.concatenate([self.hashes, fresh]), return_inverse=True)
        counts = np.zeros(hashes.size, dtype=np.int64)
        np.add.at(counts, places, np.concatenate([self.counts, times]))
        while hashes.size > self.most:
            self.thinned += 1
            # Sorted, so that the kept ones come first.
            size = int(np.searchsorted(hashes, np.uint64(1) << np.uint64(64 - self.thinned)))
            hashes, counts = hashes[:size], counts[:size]
        self.hashes, self.counts = hashes, counts


def hash_entries(entries: Entries) -> Words:
    """Return a hash per entry: of its number if it has one, else of its text or of nothing."""
    numbers = entries.numbers + 0.0  # −0 is 0
    hashes = mixed(np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    if entries.texts is None or not entries.is_text.any():
        return hashes
    texts = entries.texts.fill_null("").hash(seed=1).to_numpy()
    return np.where(entries.is_text, texts, hashes)


def mixed(words: Words) -> Words:
    """Spread the bits of whole numbers evenly (the finaliser of SplitMix64)."""
    words = words + _GOLDEN
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    spread: Words = words ^ (words >> np.uint64(31))
    return spread
