"""Encoded columns on disk: a file larger than memory is encoded once and mapped.

The arrays live in temporary files that have no name and no reader but this process; the system
takes them back when the process ends, however it ends.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from private_ate.domain import Domain
from private_ate.errors import ArgumentError, SchemaError
from private_ate.streams import StreamedTable
from private_ate.tables import encode_covariates, encode_outcome, encode_treatment

__all__ = ["EncodedColumns", "encode_stream"]

_TITLE = "reading the file"


@dataclass(frozen=True, slots=True)
class EncodedColumns:
    """Covariates of shape (d, n), treatment and outcomes of shape (n,), mapped from disk."""

    covariates: npt.NDArray[np.float64] = field(repr=False)
    treatment: npt.NDArray[np.bool_] = field(repr=False)
    outcome: npt.NDArray[np.int32] | None = field(repr=False)


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
    covariates = _on_disk((len(domain.features), table.capacity), np.float64)
    treatment = _on_disk((table.capacity,), np.bool_)
    steps = _on_disk((table.capacity,), np.int32) if outcome else None
    size = 0
    for chunk in table.chunks(columns):
        rows = slice(size, size + chunk.rows)
        covariates[:, rows] = encode_covariates(chunk, domain)
        treatment[rows] = encode_treatment(chunk, domain)
        if steps is not None:
            steps[rows] = encode_outcome(chunk, domain)
        size += chunk.rows
        if progress is not None:
            progress(_TITLE, size, table.capacity)
    if size == 0:
        msg = "the table has no rows"
        raise SchemaError(msg)
    whole = None if steps is None else steps[:size]
    return EncodedColumns(covariates[:, :size], treatment[:size], whole)


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
