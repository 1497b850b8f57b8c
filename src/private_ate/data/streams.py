"""Files that are larger than memory: read in chunks, as often as it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from private_ate.data.csv_records import count_records, read_header, read_lines
from private_ate.data.files import Kind, check_path, is_parquet, unreadable, without_words
from private_ate.data.tables import (
    Table,
    observe_columns,
    read_table,
    require_column,
    schema_of,
    table_of,
)
from private_ate.domain import Categories, Interval
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MEMORY_LIMIT", "StreamedTable", "open_schema", "open_table", "parse_memory"]

MEMORY_LIMIT: Final = 1 << 30
_SMALLEST_CHUNK: Final = 1 << 14
_LARGEST_CHUNK: Final = 1 << 18
_TEXT_COPIES: Final = 4  # texts of a CSV take this many times their size on disk once they are read
_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """A CSV or Parquet file that is read in chunks of rows; nothing of it is kept.

    Attributes
    ----------
    schema : Table
        The columns without a row.
    capacity : int
        The number of rows; of a CSV file, its lines after the first.
    chunk : int
        Rows (Parquet) or bytes (CSV) to a chunk.
    """

    path: Path
    schema: Table
    capacity: int
    chunk: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return self.schema.names

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.capacity

    def require(self, name: str, role: str) -> None:
        """Check that a column exists."""
        require_column(self.names, name, role)

    def kind(self, name: str) -> Kind:
        """Say what a column holds, from its type alone."""
        return self.schema.kind(name)

    @property
    def typed(self) -> bool:
        """Whether the file has types of its own."""
        return self.schema.typed

    def type_name(self, name: str) -> str:
        """Name a column's type."""
        return self.schema.type_name(name)

    def chunks(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, each chunk with these columns."""
        wanted = list(dict.fromkeys(columns))
        frames = self._parquet(wanted) if is_parquet(self.path) else self._lines(wanted)
        while True:
            try:
                frame = next(frames)
            except StopIteration:
                return
            except Exception:  # noqa: BLE001  # whatever the reader says could quote a record
                frame = None
            if frame is None:
                raise unreadable(self.path)
            if frame.height:
                yield table_of(frame, typed=is_parquet(self.path))

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """Return a whole column as floats, missing entries as NaN."""
        return np.concatenate([chunk.numbers(name) for chunk in self.chunks([name])])

    def observe(self, names: Sequence[str]) -> dict[str, Interval | Categories]:
        """Look up the ranges or labels of some columns in one pass over the file."""
        return observe_columns(self.chunks(names), names)

    def _parquet(self, columns: list[str]) -> Iterator[pl.DataFrame]:
        import polars as pl

        rows = pl.scan_parquet(self.path).select(columns)
        return iter(rows.collect_batches(chunk_size=self.chunk, maintain_order=True))

    def _lines(self, columns: list[str]) -> Iterator[pl.DataFrame]:
        return read_lines(self.path, self.chunk, columns)


def open_table(
    data: object, memory_limit: int = MEMORY_LIMIT, columns: Sequence[str] | None = None
) -> Table | StreamedTable:
    """Read a table, or open it for streaming if it is a file that would not fit the limit."""
    if isinstance(data, str | Path):
        path = Path(data)
        check_path(path)
        if _bytes_in_memory(path) > memory_limit:
            return _open_stream(path, memory_limit)
    return read_table(data, columns)


def open_schema(data: object) -> Table:
    """Return a table's names and types; of a file or a lazy frame no record is read."""
    if not isinstance(data, str | Path):
        return without_words(lambda: schema_of(data))
    path = Path(data)
    check_path(path)
    if is_parquet(path):
        return _schema(_parquet_shape(path)[1], typed=True)
    return _schema(_header(path), typed=False)


def parse_memory(limit: str | float) -> int:
    """Read an amount of memory such as ``"500MB"``, ``"1.5 GB"`` or a number of bytes."""
    text = str(limit).strip().upper().removesuffix("B").removesuffix("I")
    unit = text[-1:] if text[-1:] in _UNITS else ""
    try:
        size = float(text.removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        size = math.nan
    if not 0 <= size < math.inf:
        msg = "the memory limit is a text such as 500MB or 2GB, or a number of bytes"
        raise ArgumentError(msg)
    return int(size)


def _bytes_in_memory(path: Path) -> int:
    """Return about how much memory the table and its encoded copy would take."""
    if not is_parquet(path):
        return _TEXT_COPIES * path.stat().st_size
    rows, empty = _parquet_shape(path)
    return 2 * 8 * rows * empty.width


def _open_stream(path: Path, memory_limit: int) -> StreamedTable:
    if is_parquet(path):
        rows, empty = _parquet_shape(path)
        fitting = memory_limit // (16 * 8 * max(empty.width, 1))
        chunk = min(max(fitting, _SMALLEST_CHUNK), _LARGEST_CHUNK)
        return StreamedTable(path, _schema(empty, typed=True), rows, chunk)
    chunk = min(max(memory_limit // 16, 1 << 20), 1 << 26)
    return StreamedTable(path, _schema(_header(path), typed=False), count_records(path), chunk)


def _header(path: Path) -> pl.DataFrame:
    header: Any = None
    with suppress(Exception):  # whatever the reader says could quote a record
        header = read_header(path)
    if header is None:
        raise unreadable(path)
    frame: pl.DataFrame = header
    return frame


def _schema(frame: pl.DataFrame, *, typed: bool) -> Table:
    import narwhals as nw

    return Table(nw.from_native(frame), typed, tuple(frame.columns), 0)


def _parquet_shape(path: Path) -> tuple[int, pl.DataFrame]:
    """Return the number of rows and a frame without any, from the file's last few bytes."""
    import polars as pl

    shape = None
    with suppress(Exception):  # whatever the reader says could quote a record
        empty = pl.DataFrame(schema=pl.read_parquet_schema(path))
        shape = int(pl.scan_parquet(path).select(pl.len()).collect().item()), empty
    if shape is None:
        raise unreadable(path)
    return shape
