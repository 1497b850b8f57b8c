"""What repeats: rows, persons, and columns that carry the outcome or another covariate.

Pairs of columns are compared on a sample of rows that is chosen by their positions alone, so
that it is the same however the rows are cut into chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from private_ate.arrays import Bits, Floats, Integers, Words
from private_ate.checking.column_counts import Entries, HashCounts, hash_entries, spread_bits
from private_ate.checking.findings import Finding, amount, quoted, share

if TYPE_CHECKING:
    import polars as pl

TELLS: Final = "tells the outcome"  # the topic of a covariate that determines it
_MOST_ROWS: Final = 10_000
_FEW_SAMPLED: Final = 20
_SAME: Final = 0.99  # rank correlation, or share of rows, from which on a column determines another
_CLOSE: Final = 0.95  # rank correlation from which on a covariate is reported
_BIN: Final = 5  # neighbours by rank of a column of numbers that stand for one value
_FEWEST_CLASSED: Final = 10  # rows outside of the most frequent class
_FEWEST_OTHERS: Final = 5  # rows that lack the most frequent outcome
_FEW_PERSONS: Final = 20


@dataclass(frozen=True, slots=True)
class _Values:
    """A column's entries in the sampled rows: numbers (NaN for none), hashes, and gaps."""

    numbers: Floats = field(repr=False)
    hashes: Words = field(repr=False)
    is_missing: Bits = field(repr=False)

    @classmethod
    def of(cls, entries: Entries, rows: Integers) -> _Values:
        texts: pl.Series | None = None if entries.texts is None else entries.texts[rows.tolist()]
        chosen = Entries(entries.numbers[rows], texts)
        return cls(chosen.numbers, hash_entries(chosen), chosen.is_missing)

    def joined(self, other: _Values) -> _Values:
        """Return these and others after them."""
        return _Values(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.is_missing, other.is_missing]),
        )

    def taken(self, rows: Bits | Integers) -> _Values:
        """Return some rows."""
        return _Values(self.numbers[rows], self.hashes[rows], self.is_missing[rows])

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.hashes.size

    @property
    def codes(self) -> Integers:
        """A code for each different entry, a gap among them, in the order of their hashes."""
        return np.unique(self.hashes, return_inverse=True)[1].astype(np.int64)

    @property
    def is_coarse(self) -> bool:
        """Whether entries repeat often enough to be compared value by value."""
        return 2 <= np.unique(self.hashes).size <= self.size / 4


@dataclass(slots=True)
class RowSample:
    """Some rows of the columns that are compared, at most ``most``."""

    most: int = _MOST_ROWS
    seen: int = 0
    order: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    columns: dict[str, _Values] = field(default_factory=dict)

    def add(self, entries: Mapping[str, Entries], rows: int) -> None:
        """Take in a chunk; of all rows those stay whose positions have the smallest hashes."""
        order = spread_bits(np.arange(self.seen, self.seen + rows, dtype=np.uint64))
        self.seen += rows
        limit = self.order.max() if self.order.size == self.most else np.uint64(2**64 - 1)
        fresh = np.flatnonzero(order <= limit)
        joined = np.concatenate([self.order, order[fresh]])
        kept = np.sort(np.argsort(joined)[: self.most])
        self.order = joined[kept]
        for name, column in entries.items():
            chosen, old = _Values.of(column, fresh), self.columns.get(name)
            self.columns[name] = (chosen if old is None else old.joined(chosen)).taken(kept)


def judge_copies(
    sample: RowSample, outcomes: Sequence[str], covariates: Sequence[str]
) -> dict[str, list[Finding]]:
    """Return findings by covariate: what determines an outcome, and what repeats a covariate."""
    found: dict[str, list[Finding]] = {name: [] for name in covariates}
    for name in covariates:
        for outcome in outcomes:
            found[name] += _judge_pair(sample, name, outcome)
    for first, later, how in _repeated_covariates(sample, covariates):
        found[later].append(
            Finding(
                "repeats a covariate", later, "note", f"it repeats {quoted(first)}: {how}",
                "keep one of them, unless it is a power or a logarithm that a model shall have",
                {"of": first},
            )
        )  # fmt: skip
    return found


def _judge_pair(sample: RowSample, name: str, outcome: str) -> Iterator[Finding]:
    has_outcome = ~sample.columns[outcome].is_missing
    covariate = sample.columns[name].taken(has_outcome)
    outcomes = sample.columns[outcome].taken(has_outcome)
    if outcomes.size < _FEW_SAMPLED:
        return
    correlation = _greatest_correlation(covariate.numbers, outcomes.numbers)
    close = f"its rank correlation with {quoted(outcome)} is {correlation:.3f}"
    how = close if abs(correlation) >= _SAME else _revealed(covariate, outcomes, quoted(outcome))
    if how:
        yield Finding(
            TELLS, name, "bends",
            "it determines the outcome; leave it out: at label level it would publish it "
            f"({how})",
            "keep what was measured before the treatment, and no other form of the outcome",
            {"outcome": outcome},
        )  # fmt: skip
    elif abs(correlation) >= _CLOSE:
        yield Finding(
            "close to the outcome", name, "note", close,
            "was it measured before the treatment? If not, leave it out",
            {"outcome": outcome, "rank_correlation": correlation},
        )  # fmt: skip


def _greatest_correlation(covariate: Floats, outcomes: Floats) -> float:
    """Return the rank correlation; of a square or an absolute value, that with its size."""
    both = np.isfinite(covariate) & np.isfinite(outcomes)
    if both.sum() < max(_FEW_SAMPLED, 0.1 * outcomes.size):
        return 0.0
    covariate, outcomes = covariate[both], outcomes[both]
    if min(np.unique(covariate).size, np.unique(outcomes).size) < 3:
        return 0.0  # compared value by value
    pairs = [(covariate, outcomes)]
    if outcomes.min() < 0 < outcomes.max():
        pairs.append((covariate, np.abs(outcomes)))
    if covariate.min() < 0 < covariate.max():
        pairs.append((np.abs(covariate), outcomes))
    return max((_correlation(_ranks(x), _ranks(y)) for x, y in pairs), key=abs)


def _revealed(covariate: _Values, outcomes: _Values, name: str) -> str:
    """Say how a column determines the outcome of that name; empty if it does not."""
    rows = _revealed_rows(covariate, outcomes)
    if rows is not None:
        return f"it determines {name} in {share(rows, outcomes.size)} of the rows"
    is_classed = _values_are_classes(covariate, outcomes)
    return f"its values are classes of {name}" if is_classed else ""


def _revealed_rows(covariate: _Values, outcomes: _Values) -> float | None:
    """Return in how many rows a column determines the outcome value by value, None if in few."""
    usual = int(np.bincount(outcomes.codes).max())
    others = outcomes.size - usual
    if others < _FEWEST_OTHERS or not outcomes.is_coarse:
        return None
    codes, tolerated = covariate.codes, 0.0
    if not covariate.is_coarse:
        if np.isnan(covariate.numbers[~covariate.is_missing]).any():
            return None  # texts of many kinds
        # A threshold cuts one run of neighbours at most for each further outcome.
        bins = np.floor(np.nan_to_num(_ranks(covariate.numbers), nan=-1.0) / _BIN)
        codes = np.unique(bins, return_inverse=True)[1].astype(np.int64)
        tolerated = _BIN / 2 * (np.unique(outcomes.hashes).size - 1)
    kinds = int(outcomes.codes.max()) + 1
    pairs, counts = np.unique(codes * kinds + outcomes.codes, return_counts=True)
    most = np.zeros(int(codes.max()) + 1, dtype=np.int64)
    np.maximum.at(most, pairs // kinds, counts)
    missed = outcomes.size - int(most.sum())
    allowed = (1 - _SAME) * outcomes.size + tolerated
    return outcomes.size - missed if missed <= allowed and missed < 0.1 * others else None


def _values_are_classes(covariate: _Values, outcomes: _Values) -> bool:
    """Say whether each value of a column stands for a range of outcomes that no other shares.

    A few rows can be apart by chance, so that ten have to lie outside of the most frequent class.
    """
    codes = covariate.codes
    others = covariate.size - int(np.bincount(codes).max())
    if (
        others < _FEWEST_CLASSED
        or not covariate.is_coarse
        or not np.isfinite(outcomes.numbers).all()
    ):
        return False
    kinds = int(codes.max()) + 1
    low, high = np.full(kinds, np.inf), np.full(kinds, -np.inf)
    np.minimum.at(low, codes, outcomes.numbers)
    np.maximum.at(high, codes, outcomes.numbers)
    order = np.argsort(low)
    return bool((high[order][:-1] < low[order][1:]).all())


def _repeated_covariates(sample: RowSample, names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield a covariate, a later one that says the same, and how it does; each later one once."""
    if min((sample.columns[name].size for name in names), default=0) < _FEW_SAMPLED:
        return
    first_of: dict[bytes, str] = {}
    ranks: dict[str, Floats] = {}
    for name in names:
        column = sample.columns[name]
        if column.is_coarse:
            first = first_of.setdefault(_by_appearance(column.codes), name)
            if first != name:
                yield first, name, "its values stand for each other's, one to one"
                continue
        if np.unique(column.numbers[np.isfinite(column.numbers)]).size < 3:
            continue
        own = _ranks(column.numbers)
        for earlier, others in ranks.items():
            both = np.isfinite(own) & np.isfinite(others)
            if both.sum() >= max(_FEW_SAMPLED, 0.5 * own.size):
                correlation = _correlation(own[both], others[both])
                if abs(correlation) >= _SAME:
                    yield earlier, name, f"their rank correlation is {correlation:.3f}"
                    break
        else:
            ranks[name] = own


def _by_appearance(codes: Integers) -> bytes:
    """Return codes numbered by their first row: equal for columns that are one to one."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    place = np.empty(first.size, dtype=np.int64)
    place[np.argsort(first)] = np.arange(first.size)
    return place[inverse].tobytes()


def _ranks(numbers: Floats) -> Floats:
    """Return ranks with ties in the middle, NaN for what is no number."""
    from scipy.stats import rankdata  # keeps imports fast

    ranks: Floats = rankdata(np.where(np.isfinite(numbers), numbers, np.nan), nan_policy="omit")
    return ranks


def _correlation(first: Floats, second: Floats) -> float:
    """Return Pearson's correlation, 0 where one of the two is constant."""
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / size if size else 0.0


def judge_persons(persons: HashCounts, column: str, rows: int, rows_per_person: int) -> Finding:
    """Say how many rows a person has."""
    about = "about " if persons.thinned else ""
    counts = {
        "persons": persons.distinct, "repeated": persons.repeated, "largest": persons.largest,
    }  # fmt: skip
    summary = f"{rows:,} rows of {about}{persons.distinct:,} persons"
    if persons.largest <= rows_per_person:
        return Finding(
            "duplicates", column, "ok", f"{summary}, at most {persons.largest} each", "", counts
        )
    return Finding(
        "duplicates", column, "bends",
        f"{summary}: {about}{persons.repeated:,} have several, the most {persons.largest}, "
        f"where {rows_per_person} is declared",
        f"keep one row a person, or declare rows_per_person={persons.largest}", counts,
    )  # fmt: skip


def judge_ids(ids: Mapping[str, HashCounts], rows_per_person: int) -> Iterator[Finding]:
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


def judge_repeats(hashes: HashCounts, rows: int) -> Finding:
    """Say how many rows are the same as an earlier one in every column."""
    about = "about " if hashes.thinned else ""
    counts = {"rows": hashes.surplus}
    if not hashes.surplus:
        return Finding("duplicates", None, "ok", "no two rows are the same", "", counts)
    return Finding(
        "duplicates", None, "note",
        f"{about}{amount(hashes.surplus, rows)} repeat an earlier row in every column",
        "one row is one person: if persons are named by a column, check by it", counts,
    )  # fmt: skip
