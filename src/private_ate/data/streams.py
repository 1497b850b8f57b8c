"""Files that are larger than memory: read in chunks, as often as it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from private_ate.data.csv_file import CsvFile
from private_ate.data.csv_records import count_records, read_header, read_lines
from private_ate.data.files import (
    Kind,
    file_of,
    require_counted_records,
    unreadable,
    without_words,
)
from private_ate.data.formats import (
    ForeignShape,
    foreign_chunks,
    foreign_shape,
    is_foreign,
    value_codes,
)
from private_ate.data.tables import (
    Table,
    observe_columns,
    read_table,
    require_column,
    schema_of,
    table_of,
)
from private_ate.data.workbooks import ExcelFile
from private_ate.domain import Categories, Interval
from private_ate.errors import SchemaError
from private_ate.privacy.levels import Level

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MEMORY_LIMIT", "StreamedTable", "open_schema", "open_table"]

MEMORY_LIMIT: Final = 1 << 30
_SMALLEST_CHUNK: Final = 1 << 14
_LARGEST_CHUNK: Final = 1 << 18
_TEXT_COPIES: Final = 4  # texts of a CSV take this many times their size on disk once they are read


@dataclass(frozen=True, slots=True)
class StreamedTable:
    """A file that is read in chunks of rows; nothing of it is kept.

    Attributes
    ----------
    schema : Table
        The columns without a row.
    capacity : int
        The number of rows; of a CSV file, its lines after the first.
    chunk : int
        Rows, or bytes of a CSV file, to a chunk.
    csv : CsvFile, optional
        How a CSV file separates fields and decimals.
    """

    path: Path
    schema: Table
    capacity: int
    chunk: int
    csv: CsvFile | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return self.schema.names

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.capacity

    def require(self, name: str, role: str, asked: Collection[str] = ()) -> None:
        """Check that a column exists; see `require_column`."""
        require_column(self.names, name, role, asked)

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
        frames = self._frames(wanted)
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
                decimal = "." if self.csv is None else self.csv.decimal
                yield table_of(frame, typed=self.typed, decimal=decimal, codes=self.schema.codes)

    def numbers(self, name: str) -> npt.NDArray[np.float64]:
        """Return a whole column as floats, missing entries as NaN."""
        return np.concatenate([chunk.numbers(name) for chunk in self.chunks([name])])

    def observe(self, names: Sequence[str]) -> dict[str, Interval | Categories]:
        """Look up the ranges or labels of some columns in one pass over the file."""
        return observe_columns(self.chunks(names), names)

    def _frames(self, columns: list[str]) -> Iterator[pl.DataFrame]:
        import polars as pl

        if self.csv is not None:
            return read_lines(self.csv, self.chunk, columns)
        if is_foreign(self.path):
            return foreign_chunks(self.path, columns, self.chunk)
        rows = pl.scan_parquet(self.path).select(columns)
        return iter(rows.collect_batches(chunk_size=self.chunk, maintain_order=True))


def open_table(
    data: object,
    memory_limit: int = MEMORY_LIMIT,
    columns: Sequence[str] | None = None,
    *,
    public: Sequence[str] = (),
) -> Table | StreamedTable:
    """Read a table, or open it for streaming if it is a file that would not fit the limit.

    A sheet does not give its number of records: the last one is the last with an entry in one of
    the ``public`` columns, if some are named, so that n follows from no private entry.
    """
    file = file_of(data)
    if file is None:
        return read_table(data, columns)
    if isinstance(file, ExcelFile):  # no limit divides a sheet
        table = read_table(file, columns)
        return table.until_last(public) if public else table
    shape = foreign_shape(file) if isinstance(file, Path) and is_foreign(file) else None
    if _bytes_in_memory(file, shape) > memory_limit:
        return _open_stream(file, shape, memory_limit)
    return read_table(file, columns)


def open_schema(data: object, level: Level | None = None) -> Table:
    """Return a table's names and types; of a file or a lazy frame no record is read.

    At sample level a file that does not give its number of records is refused.
    """
    file = file_of(data)
    if file is None:
        return without_words(lambda: schema_of(data))
    require_counted_records(file, level)
    if isinstance(file, CsvFile):
        return _schema(_header(file), typed=False)
    if isinstance(file, ExcelFile) or is_foreign(file):
        return _schema(foreign_shape(file).empty, typed=isinstance(file, Path))
    return _schema(_parquet_shape(file)[1], typed=True)


def _bytes_in_memory(file: Path | CsvFile, shape: ForeignShape | None) -> int:
    """Return about how much memory the table and its encoded copy would take.

    R's files have to be read as a whole, so that no limit divides them.
    """
    if isinstance(file, CsvFile):
        return _TEXT_COPIES * file.file.stat().st_size
    if shape is not None:
        return 2 * 8 * (shape.rows or 0) * shape.empty.width
    rows, empty = _parquet_shape(file)
    return 2 * 8 * rows * empty.width


def _open_stream(
    file: Path | CsvFile, shape: ForeignShape | None, memory_limit: int
) -> StreamedTable:
    if isinstance(file, CsvFile):
        path, empty = file.file, _schema(_header(file), typed=False)
        chunk = min(max(memory_limit // 16, 1 << 20), 1 << 26)
        return StreamedTable(path, empty, count_records(file), chunk, file)
    rows, columns = _parquet_shape(file) if shape is None else (shape.rows or 0, shape.empty)
    fitting = memory_limit // (16 * 8 * max(columns.width, 1))
    chunk = min(max(fitting, _SMALLEST_CHUNK), _LARGEST_CHUNK)
    schema = replace(_schema(columns, typed=True), codes=value_codes(file))
    return StreamedTable(file, schema, rows, chunk)


def _header(file: CsvFile) -> pl.DataFrame:
    header: Any = None
    try:
        header = read_header(file)
    except SchemaError:
        raise
    except Exception:  # noqa: BLE001, S110  # whatever the reader says could quote a record
        pass
    if header is None:
        raise unreadable(file.file)
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
