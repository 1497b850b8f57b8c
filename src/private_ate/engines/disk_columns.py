"""Encoded columns on disk: a file larger than memory is encoded once and mapped.

The arrays live in temporary files that have no name and no reader but this process; the system
takes them back when the process ends, however it ends.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Codes
from private_ate.data.encoding import (
    EncodedRows,
    FurtherOutcome,
    code_type,
    encode_rows,
    mark_missing,
)
from private_ate.data.missing_rules import MissingRules, Reading, describe_rules
from private_ate.data.streams import StreamedTable
from private_ate.data.tables import Table
from private_ate.data.validate_public import PublicCounts, settle_public
from private_ate.domain import Domain, Interval
from private_ate.errors import ArgumentError, SchemaError

__all__ = [
    "CompactColumns",
    "EncodedColumns",
    "encode_stream",
    "encode_table",
    "reorder_rows",
]

_TITLE = "reading the rows"
_REPORTED_ROWS = 1 << 14  # rows between two reports of progress


@dataclass(frozen=True, slots=True)
class CompactColumns:
    """Covariates of shape (d, n): numbers as floats, indicators of labels as single bytes."""

    numbers: npt.NDArray[np.float64] = field(repr=False)
    indicators: npt.NDArray[np.bool_] = field(repr=False)
    is_number: npt.NDArray[np.bool_]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of features and of rows."""
        return self.is_number.size, self.numbers.shape[1]

    def __getitem__(
        self, rows: tuple[slice, slice | npt.NDArray[np.int64]]
    ) -> npt.NDArray[np.float64]:
        """Return some rows of all features as floats."""
        numbers, indicators = self.numbers[:, rows[1]], self.indicators[:, rows[1]]
        block = np.empty((self.is_number.size, numbers.shape[1]))
        block[self.is_number] = numbers
        block[~self.is_number] = indicators
        return block[rows[0]]

    def __setitem__(self, rows: tuple[slice, slice], values: npt.NDArray[np.float64]) -> None:
        """Write some rows of all features."""
        self.numbers[:, rows[1]] = values[self.is_number]
        self.indicators[:, rows[1]] = values[~self.is_number] > 0

    def reordered(self, order: npt.NDArray[np.int64]) -> CompactColumns:
        """Return a copy whose rows are in another order."""
        numbers, indicators = (
            reorder_rows(part, order) for part in (self.numbers, self.indicators)
        )
        return CompactColumns(numbers, indicators, self.is_number)

    def with_marks(self, marks: Sequence[npt.NDArray[np.bool_]]) -> CompactColumns:
        """Return the same columns and further indicators at the end, on disk."""
        if not marks:
            return self
        known, rows = self.indicators.shape
        indicators = _on_disk((known + len(marks), rows), np.bool_)
        indicators[:known] = self.indicators
        for place, mark in enumerate(marks, known):
            indicators[place] = mark[:rows]
        is_number = np.append(self.is_number, np.zeros(len(marks), np.bool_))
        return CompactColumns(self.numbers, indicators, is_number)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Go through the features."""
        numbers, indicators = iter(self.numbers), iter(self.indicators)
        return (next(numbers if is_number else indicators) for is_number in self.is_number)


@dataclass(frozen=True, slots=True)
class EncodedColumns:
    """Covariates of shape (d, n), treatment and outcomes of shape (n,), in memory or mapped.

    ``treatment`` is True for treated rows of two arms, the code of the arm where there are more.
    ``domain`` has an indicator for each public covariate with missing entries; ``rules`` says what
    missing entries count as. ``takes_part`` is None where every row does, as far as is public.
    ``weights`` are sampling weights as shares of their bound, None where none are declared.
    ``further`` are outcomes after the first.
    """

    domain: Domain
    covariates: npt.NDArray[np.float64] | CompactColumns = field(repr=False)
    treatment: Bits | Codes = field(repr=False)
    outcome: npt.NDArray[np.int32] | None = field(repr=False)
    takes_part: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    observed: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    rules: MissingRules | None = None
    weights: npt.NDArray[np.float64] | None = field(default=None, repr=False)
    further: tuple[FurtherOutcome, ...] = field(default=(), repr=False)


def encode_table(
    table: Table,
    domain: Domain,
    *,
    outcome: bool,
    progress: Callable[[str, int, int], None] | None,
    reading: Reading | None = None,
) -> EncodedColumns:
    """Encode a table in memory."""
    rows = encode_rows(table, domain, reading, outcome=outcome)
    tell_rows(progress, 0, table.rows, table.rows)
    counts = PublicCounts() if rows.found is None else rows.found.counts
    settled, rules = _settle(domain, reading, counts, by_lines=not table.typed)
    columns: npt.NDArray[np.float64] | CompactColumns = rows.covariates
    if settled.indicators:
        marks = mark_missing(rows, settled.indicators)
        is_number = np.arange(len(rows.covariates) + len(marks)) < len(rows.covariates)
        columns = CompactColumns(rows.covariates, marks, is_number)
    takes_part = None if _everyone(domain, reading) else rows.takes_part
    return EncodedColumns(
        settled,
        columns,
        rows.treatment,
        rows.outcome,
        takes_part,
        rows.observed,
        rules,
        rows.weights,
        rows.further,
    )


def encode_stream(
    table: StreamedTable,
    domain: Domain,
    *,
    outcome: bool,
    progress: Callable[[str, int, int], None] | None,
    reading: Reading | None = None,
) -> EncodedColumns:
    """Encode a file chunk by chunk; the memory in use is that of a chunk."""
    columns = [domain.treatment.column, *domain.covariates]
    if outcome:
        columns += domain.private_columns
    if domain.weights is not None:
        columns.append(domain.weights.column)
    for name in columns:
        table.require(name, "declared")
    covariates = _compact(domain, table.capacity)
    treatment = _on_disk((table.capacity,), code_type(domain))
    steps = _on_disk((table.capacity,), np.int32) if outcome else None
    takes_part = _on_disk((table.capacity,), np.bool_)
    marks: dict[str, npt.NDArray[np.bool_]] = {}
    counts = PublicCounts()
    left_out = outcome and domain.outcome.missing is not None
    observed = _on_disk((table.capacity,), np.bool_) if left_out else None
    weights = None if domain.weights is None else _on_disk((table.capacity,), np.float64)
    further = _room_for(domain, table.capacity) if outcome else ()
    read = size = 0
    for chunk in table.chunks(columns):
        encoded = encode_rows(chunk, domain, reading, outcome=outcome, first=read)
        rows = slice(size, size + encoded.treatment.size)
        covariates[:, rows] = encoded.covariates
        treatment[rows] = encoded.treatment
        takes_part[rows] = encoded.takes_part
        if steps is not None:
            steps[rows] = encoded.outcome
        if observed is not None:
            observed[rows] = encoded.observed
        if weights is not None:
            weights[rows] = encoded.weights
        _fill(further, encoded.further, rows)
        counts += _noted(encoded, marks, rows, table.capacity)
        tell_rows(progress, read, read + chunk.rows, table.rows)
        read += chunk.rows
        size = rows.stop
    if read == 0:
        msg = "the table has no rows"
        raise SchemaError(msg)
    settled, rules = _settle(domain, reading, counts, by_lines=not table.typed)
    whole = None if steps is None else steps[:size]
    filled = CompactColumns(
        covariates.numbers[:, :size], covariates.indicators[:, :size], covariates.is_number
    ).with_marks([marks[name] for name in settled.indicators])
    # Numbers alone need no unpacking.
    plain = filled.numbers if filled.is_number.all() else filled
    part = None if _everyone(domain, reading) else takes_part[:size]
    seen = None if observed is None else observed[:size]
    heavy = None if weights is None else weights[:size]
    others = tuple(one.taken(slice(size)) for one in further)
    return EncodedColumns(settled, plain, treatment[:size], whole, part, seen, rules, heavy, others)


def _fill(
    room: tuple[FurtherOutcome, ...], outcomes: tuple[FurtherOutcome, ...], rows: slice
) -> None:
    """Write a chunk's outcomes after the first into their room."""
    for space, one in zip(room, outcomes, strict=True):
        space.steps[rows] = one.steps
        if space.observed is not None:
            space.observed[rows] = one.observed


def _room_for(domain: Domain, capacity: int) -> tuple[FurtherOutcome, ...]:
    """Return room for the outcomes after the first."""
    return tuple(
        FurtherOutcome(
            _on_disk((capacity,), np.int32),
            None if one.missing is None else _on_disk((capacity,), np.bool_),
        )
        for one in domain.further
    )


def _noted(
    rows: EncodedRows,
    marks: dict[str, npt.NDArray[np.bool_]],
    place: slice,
    capacity: int,
) -> PublicCounts:
    """Write down where a chunk's entries are missing; return what was found in it."""
    if rows.found is None:
        return PublicCounts()
    for name, missing in rows.found.missing.items():
        if name not in marks:
            marks[name] = _on_disk((capacity,), np.bool_)  # all false
        marks[name][place] = missing
    return rows.found.counts


def _settle(
    domain: Domain, reading: Reading | None, counts: PublicCounts, *, by_lines: bool
) -> tuple[Domain, MissingRules | None]:
    if reading is None:
        return domain, None
    if not reading.looks:
        return domain, describe_rules(domain, reading)
    return settle_public(domain, reading, counts, by_lines=by_lines)


def _everyone(domain: Domain, reading: Reading | None) -> bool:
    """Say whether every row that was kept has an arm, whatever the records are."""
    return domain.treatment.other is not None or (reading is not None and reading.looks)


def reorder_rows(columns: npt.NDArray[Any], order: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return a copy of an array with its last axis in another order, on disk if it was there."""
    shape = (*columns.shape[:-1], order.size)
    on_disk = _is_mapped(columns)
    copy = _on_disk(shape, columns.dtype.type) if on_disk else np.empty(shape, columns.dtype)
    for source, target in zip(np.atleast_2d(columns), np.atleast_2d(copy), strict=True):
        np.take(source, order, out=target, mode="clip")  # other modes would copy once more
    return copy


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    owner: object = array
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    return isinstance(owner, np.memmap)


def tell_rows(
    progress: Callable[[str, int, int], None] | None, before: int, now: int, total: int
) -> None:
    """Report each step of 2¹⁴ rows that was passed, and the last row.

    How many rows a chunk holds follows the lengths of lines. What is reported follows from the
    number of rows alone, and is the same whether a table is streamed or held in memory.
    """
    if progress is None:
        return
    first = before - before % _REPORTED_ROWS + _REPORTED_ROWS
    for done in range(first, min(now + 1, total), _REPORTED_ROWS):
        progress(_TITLE, done, total)
    if now == total:
        progress(_TITLE, total, total)


def _compact(domain: Domain, capacity: int) -> CompactColumns:
    """Return room for the covariates; only labels are known to be indicators."""
    widths = [
        (isinstance(kind, Interval), 1 if isinstance(kind, Interval) else len(kind.labels))
        for kind in domain.covariates.values()
    ]
    is_number = np.array([number for number, width in widths for _ in range(width)], np.bool_)
    numbers = int(np.count_nonzero(is_number))
    return CompactColumns(
        _on_disk((numbers, capacity), np.float64),
        _on_disk((is_number.size - numbers, capacity), np.bool_),
        is_number,
    )


def _on_disk(shape: tuple[int, ...], kind: type) -> npt.NDArray[Any]:
    """Return an array over a nameless temporary file that only this user could read."""
    size = max(math.prod(shape) * np.dtype(kind).itemsize, 1)
    # Closing the file at once is fine: the mapping keeps it, and nothing else does.
    with tempfile.TemporaryFile(prefix="private-ate-") as file:
        _reserve(file.fileno(), size)
        mapped = np.memmap(file, dtype=np.uint8, mode="r+", shape=(size,))
    return np.frombuffer(mapped, dtype=kind, count=math.prod(shape)).reshape(shape)


def _reserve(file: int, size: int) -> None:
    """Take the room now: a mapped file that meets a full disk later ends the process."""
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:
            os.ftruncate(file, size)
    except OSError as cause:
        msg = (
            f"the temporary directory has no room for {size / 1e9:.1f} GB of encoded columns; "
            "point TMPDIR to a larger disk"
        )
        raise ArgumentError(msg) from cause
