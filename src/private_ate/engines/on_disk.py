"""Encoded columns on disk: a file larger than memory is encoded once and mapped.

The arrays live in temporary files that have no name and no reader but this process; the system
takes them back when the process ends, however it ends.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from private_ate.data.encoding import (
    encode_covariates,
    encode_observed,
    encode_outcome,
    encode_participation,
    encode_treatment,
)
from private_ate.data.streams import StreamedTable
from private_ate.domain import Domain, Interval
from private_ate.errors import ArgumentError, SchemaError

__all__ = ["CompactColumns", "EncodedColumns", "encode_stream", "reorder_rows", "tell_rows"]

_TITLE = "reading the rows"
_TOLD_ROWS = 1 << 14  # rows between two reports of progress


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

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        """Go through the features."""
        numbers, indicators = iter(self.numbers), iter(self.indicators)
        return (next(numbers if is_number else indicators) for is_number in self.is_number)


@dataclass(frozen=True, slots=True)
class EncodedColumns:
    """Covariates of shape (d, n), treatment and outcomes of shape (n,), mapped from disk."""

    covariates: npt.NDArray[np.float64] | CompactColumns = field(repr=False)
    treatment: npt.NDArray[np.bool_] = field(repr=False)
    outcome: npt.NDArray[np.int32] | None = field(repr=False)
    takes_part: npt.NDArray[np.bool_] | None = field(default=None, repr=False)
    observed: npt.NDArray[np.bool_] | None = field(default=None, repr=False)


def encode_stream(
    table: StreamedTable,
    domain: Domain,
    *,
    outcome: bool,
    progress: Callable[[str, int, int], None] | None,
) -> EncodedColumns:
    """Encode a file chunk by chunk; the memory in use is that of a chunk."""
    columns = [domain.treatment.column, *domain.covariates]
    if outcome:
        columns.append(domain.outcome.column)
    for name in columns:
        table.require(name, "declared")
    covariates = _compact(domain, table.capacity)
    treatment = _on_disk((table.capacity,), np.bool_)
    steps = _on_disk((table.capacity,), np.int32) if outcome else None
    takes_part = _on_disk((table.capacity,), np.bool_)
    left_out = outcome and domain.outcome.missing is not None
    observed = _on_disk((table.capacity,), np.bool_) if left_out else None
    size = 0
    for chunk in table.chunks(columns):
        rows = slice(size, size + chunk.rows)
        covariates[:, rows] = encode_covariates(chunk, domain)
        treatment[rows] = encode_treatment(chunk, domain)
        takes_part[rows] = encode_participation(chunk, domain)
        if steps is not None:
            steps[rows] = encode_outcome(chunk, domain)
        if observed is not None:
            observed[rows] = encode_observed(chunk, domain)
        tell_rows(progress, size, size + chunk.rows, table.rows)
        size += chunk.rows
    if size == 0:
        msg = "the table has no rows"
        raise SchemaError(msg)
    whole = None if steps is None else steps[:size]
    filled = CompactColumns(
        covariates.numbers[:, :size], covariates.indicators[:, :size], covariates.is_number
    )
    # Numbers alone need no unpacking.
    plain = filled.numbers if covariates.is_number.all() else filled
    seen = None if observed is None else observed[:size]
    return EncodedColumns(plain, treatment[:size], whole, takes_part[:size], seen)


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

    How many rows a chunk holds follows the lengths of lines. What is told follows from the number
    of rows alone, and is the same whether a table is streamed or held in memory.
    """
    if progress is None:
        return
    first = before - before % _TOLD_ROWS + _TOLD_ROWS
    for done in range(first, min(now + 1, total), _TOLD_ROWS):
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
