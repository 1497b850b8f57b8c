"""Encoded columns on disk: a file larger than memory is encoded once and mapped.

The arrays live in temporary files that have no name and no reader but this process; the system
takes them back when the process ends, however it ends.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits
from private_ate.data.encoding import EncodedRows, columns_of, encode_rows, map_columns
from private_ate.data.files import StreamedTable
from private_ate.data.missing_rules import MissingRules, Reading
from private_ate.data.tables import Table
from private_ate.data.validate_public import PublicCounts, settle_public
from private_ate.domain import Domain, Interval
from private_ate.errors import ArgumentError, SchemaError

__all__ = ["CompactColumns", "encode_columns", "reorder_rows", "tell_rows"]

_TITLE = "reading the rows"
_REPORTED_ROWS = 1 << 14  # rows between two reports of progress


@dataclass(frozen=True, slots=True)
class CompactColumns:
    """Covariates of shape (d, n): numbers as floats, indicators of labels as single bytes."""

    numbers: npt.NDArray[np.float64] = field(repr=False)
    indicators: npt.NDArray[np.bool_] = field(repr=False)
    is_number: npt.NDArray[np.bool_]

    @classmethod
    def of_numbers(cls, numbers: npt.NDArray[np.float64]) -> CompactColumns:
        """Return columns without an indicator yet."""
        none = np.empty((0, numbers.shape[1]), np.bool_)
        return cls(numbers, none, np.ones(len(numbers), np.bool_))

    @property
    def shape(self) -> tuple[int, int]:
        """The number of features and of rows."""
        return self.is_number.size, self.numbers.shape[1]

    def __getitem__(
        self, rows: tuple[slice | EllipsisType, slice | npt.NDArray[np.int64]]
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

    def with_marks(self, marks: Sequence[npt.NDArray[np.bool_]]) -> CompactColumns:
        """Return the same columns and further indicators at the end, on disk if these are."""
        known, rows = self.indicators.shape
        indicators = _room_like(self.numbers, (known + len(marks), rows), np.bool_)
        indicators[:known] = self.indicators
        for place, mark in enumerate(marks, known):
            indicators[place] = mark[:rows]
        is_number = np.append(self.is_number, np.zeros(len(marks), np.bool_))
        return CompactColumns(self.numbers, indicators, is_number)

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Go through the features."""
        numbers, indicators = iter(self.numbers), iter(self.indicators)
        return (next(numbers if is_number else indicators) for is_number in self.is_number)


def encode_columns(
    table: Table,
    domain: Domain,
    *,
    outcome: bool,
    progress: Callable[[str, int, int], None] | None,
    reading: Reading | None = None,
) -> tuple[Domain, MissingRules | None, EncodedRows]:
    """Encode a table in memory, or a file chunk by chunk into columns on disk.

    Covariates are of shape (d, n), in memory or mapped. The domain has an indicator for each public
    covariate with missing entries, and the rules say what missing entries count as. ``takes_part``
    is None where every row does, as far as is public.
    """
    if isinstance(table, StreamedTable):
        rows, marks, counts = _encode_stream(
            table, domain, outcome=outcome, progress=progress, reading=reading
        )
    else:
        rows = encode_rows(table, domain, reading, outcome=outcome)
        tell_rows(progress, 0, table.rows, table.rows)
        marks, counts = _found(rows)
    settled, rules = settle_public(domain, reading, lambda: counts, by_lines=not table.typed)
    covariates = rows.covariates
    if settled.indicators:
        if not isinstance(covariates, CompactColumns):
            covariates = CompactColumns.of_numbers(covariates)
        covariates = covariates.with_marks([marks[name] for name in settled.indicators])
    # Whether every row that was kept has an arm, whatever the records are.
    everyone = domain.treatment.other is not None or (reading is not None and reading.looks)
    takes_part = None if everyone else rows.takes_part
    return settled, rules, replace(rows, covariates=covariates, takes_part=takes_part, found=None)


def _encode_stream(
    table: StreamedTable,
    domain: Domain,
    *,
    outcome: bool,
    progress: Callable[[str, int, int], None] | None,
    reading: Reading | None,
) -> tuple[EncodedRows, Mapping[str, Bits], PublicCounts]:
    """Encode a file chunk by chunk; the memory in use is that of a chunk."""
    columns = domain.columns if outcome else domain.public_columns
    for name in columns:
        table.require(name, "declared")
    capacity = table.rows
    covariates = _compact(domain, capacity)
    marks: dict[str, Bits] = {}
    counts, room = PublicCounts(), None
    read = size = 0
    for chunk in table.chunks(columns):
        encoded = encode_rows(chunk, domain, reading, outcome=outcome, first=read)
        if room is None:
            room = map_columns(
                encoded, lambda column: _on_disk((capacity,), column.dtype.type), found=None
            )
        place = slice(size, size + encoded.treatment.size)
        covariates[:, place] = encoded.covariates
        for space, one in zip((room, *room.further), (encoded, *encoded.further), strict=True):
            held = columns_of(one)
            for name, column in columns_of(space).items():
                column[place] = held[name]
        missing, found = _found(encoded)
        for name, mark in missing.items():
            if name not in marks:
                marks[name] = _on_disk((capacity,), np.bool_)  # all false
            marks[name][place] = mark
        counts += found
        tell_rows(progress, read, read + chunk.rows, table.rows)
        read += chunk.rows
        size = place.stop
    if room is None:
        msg = "the table has no rows"
        raise SchemaError(msg)
    filled = CompactColumns(
        covariates.numbers[:, :size], covariates.indicators[:, :size], covariates.is_number
    )
    # Numbers alone need no unpacking.
    plain = filled.numbers if filled.is_number.all() else filled
    return map_columns(room, lambda column: column[:size], covariates=plain), marks, counts


def _found(rows: EncodedRows) -> tuple[Mapping[str, Bits], PublicCounts]:
    """Return where public entries are missing, and what was found in public columns."""
    if rows.found is None:
        return {}, PublicCounts()
    return rows.found.missing, rows.found.counts


def reorder_rows(columns: Any, order: npt.NDArray[np.int64]) -> Any:  # noqa: ANN401  # an array or compact columns
    """Return a copy of columns with their last axis in another order, on disk if they were."""
    if isinstance(columns, CompactColumns):
        numbers = reorder_rows(columns.numbers, order)
        return CompactColumns(numbers, reorder_rows(columns.indicators, order), columns.is_number)
    copy = _room_like(columns, (*columns.shape[:-1], order.size), columns.dtype.type)
    for source, target in zip(np.atleast_2d(columns), np.atleast_2d(copy), strict=True):
        np.take(source, order, out=target, mode="clip")  # other modes would copy once more
    return copy


def _room_like(columns: npt.NDArray[Any], shape: tuple[int, ...], kind: type) -> npt.NDArray[Any]:
    """Return room for an array, on disk if another one is there."""
    return _on_disk(shape, kind) if _is_mapped(columns) else np.empty(shape, kind)


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
    kinds = domain.covariates
    is_number = np.array(
        [
            isinstance(kinds[name], Interval)
            for name, place in domain.places.items()
            for _ in range(place.start, place.stop)
        ],
        np.bool_,
    )
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
