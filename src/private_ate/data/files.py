"""Files in: each as a table in memory, or in chunks of rows if it is larger than memory allows.

Whatever a reader says about a failure could quote a record: it is forgotten, with its warnings, and
the error names the file alone.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import numpy as np

from private_ate.arrays import Floats
from private_ate.data.csv_file import CsvFile, count_records, read_header, read_lines
from private_ate.data.formats import STATISTICAL, StatHead, frame_of_r, value_codes
from private_ate.data.tables import Kind, Table, ValueCodes, schema_of, table_of
from private_ate.data.workbooks import ExcelFile, read_sheet
from private_ate.errors import ArgumentError, PrivateAteError, RecordsError, SchemaError
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "FOREIGN", "MEMORY_LIMIT", "SUFFIXES", "DataFile", "StreamedTable", "described_file",
    "file_of", "open_schema", "open_table", "read_schema", "read_table", "require_counted_records",
    "without_words", "write_whole",
]  # fmt: skip

T = TypeVar("T")
DataFile = Path | CsvFile | ExcelFile
MEMORY_LIMIT: Final = 1 << 30
_TEXTS: Final = (".csv", ".tsv", ".txt")
_PARQUET: Final = (".parquet", ".pq")
# What files are, and which package of the extra reads them.
FOREIGN: Final = {
    ".dta": ("a Stata file", "pyreadstat"),
    ".sav": ("an SPSS file", "pyreadstat"),
    ".zsav": ("an SPSS file", "pyreadstat"),
    ".xlsx": ("an Excel workbook", None),
    ".rds": ("a data frame that R saved", "rdata"),
}
SUFFIXES: Final = (*_TEXTS, *_PARQUET, *FOREIGN)  # of files that can be read
_SMALLEST_CHUNK: Final = 1 << 14
_LARGEST_CHUNK: Final = 1 << 18
_TEXT_COPIES: Final = 4  # texts of a CSV take this many times their size on disk once they are read
_CONSTANT: Final = (
    "the records could not be read; nothing was released. What was said about it could quote a "
    "record and is not repeated: check how the table was made, or save it as Parquet"
)


@dataclass(frozen=True, slots=True)
class StreamedTable(Table):
    """A file that is read in chunks of rows; nothing of it is kept, and its frame is empty.

    Attributes
    ----------
    rows : int
        The number of rows; of a CSV file, its lines after the first.
    file : DataFile
        The file, and how it is read.
    chunk : int
        Rows, or bytes of a CSV file, to a chunk.
    """

    file: DataFile = field(kw_only=True)
    chunk: int = field(kw_only=True)

    def chunks(self, columns: Sequence[str]) -> Iterator[Table]:
        """Yield the rows in order, each chunk with these columns."""
        wanted = list(dict.fromkeys(columns))
        frames = _quietly(lambda: _frames(self.file, wanted, self.chunk), self.file)
        while (frame := _quietly(lambda: next(frames, None), self.file)) is not None:
            if frame.height:
                yield table_of(frame, typed=self.typed, decimal=self.decimal, codes=self.codes)

    def numbers(self, name: str) -> Floats:
        """Return a whole column as floats, missing entries as NaN."""
        return np.concatenate([chunk.numbers(name) for chunk in self.chunks([name])])


def open_table(
    data: object,
    memory_limit: int = MEMORY_LIMIT,
    columns: Sequence[str] | None = None,
    *,
    public: Sequence[str] = (),
) -> Table:
    """Read a table, or open it for streaming if it is a file that would not fit the limit.

    A sheet does not give its number of records: the last one is the last with an entry in one of
    the ``public`` columns, if some are named, so that n follows from no private entry.
    """
    file = file_of(data)
    if isinstance(file, ExcelFile):  # no limit divides a sheet
        table = read_table(file, columns)
        return table.until_last(public) if public else table
    if isinstance(file, CsvFile) and _TEXT_COPIES * file.file.stat().st_size > memory_limit:
        empty = schema_of(_shape_of(file).empty, typed=False)
        chunk = min(max(memory_limit // 16, 1 << 20), 1 << 26)
        rows, decimal = count_records(file), file.decimal
        return StreamedTable(
            empty.frame, empty.typed, empty.names, rows, decimal, file=file, chunk=chunk
        )
    if isinstance(file, Path):
        shape = _shape_of(file)
        empty, rows = schema_of(shape.empty), shape.rows or 0
        # The table and its encoded copy; R's files are read as a whole, and no limit divides them.
        if 2 * 8 * rows * len(empty.names) > memory_limit:
            fitting = memory_limit // (16 * 8 * max(len(empty.names), 1))
            chunk = min(max(fitting, _SMALLEST_CHUNK), _LARGEST_CHUNK)
            return StreamedTable(
                empty.frame, empty.typed, empty.names, rows,
                codes=_codes(file) or {}, file=file, chunk=chunk,
            )  # fmt: skip
    return read_table(data if file is None else file, columns)


def open_schema(data: object, level: Level | None = None) -> Table:
    """Return a table's names and types; of a file or a lazy frame no record is read.

    At sample level a file that does not give its number of records is refused.
    """
    file = file_of(data)
    if file is None:
        return without_words(lambda: schema_of(data))
    require_counted_records(file, level)
    return schema_of(_shape_of(file).empty, typed=isinstance(file, Path))


def read_schema(file: str | DataFile) -> dict[str, Kind | Literal["binary"] | None]:
    """Return a file's column names and, where it has types, their kinds; no value is read.

    A column whose type holds true and false alone is binary.
    """
    try:
        table = open_schema(file)
    except RecordsError as unreadable:
        raise SchemaError(str(unreadable)) from None
    if not table.typed:
        return dict.fromkeys(table.names)
    return {
        name: "binary" if table.type_name(name) == "boolean" else table.kind(name)
        for name in table.names
    }


def read_table(data: object, columns: Sequence[str] | None = None) -> Table:
    """Read a data frame that narwhals knows, or a file.

    Of a file that is no CSV only the ``columns`` in use are read, so that no other can stop the
    reader; a line of a CSV file is a record by itself, whatever it holds.
    """
    file = file_of(data)
    if file is None:
        return table_of(data, typed=True)
    wanted = None if columns is None else list(dict.fromkeys(columns))
    frame = _quietly(lambda: _frame_of(file, wanted), file)
    decimal = file.decimal if isinstance(file, CsvFile) else "."
    return table_of(frame, typed=isinstance(file, Path), decimal=decimal, codes=_codes(file))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The columns of a file without a row; ``rows`` where it can be read in parts, else None."""

    empty: pl.DataFrame
    rows: int | None = None


def _shape_of(file: DataFile) -> _Shape:
    """Return names and types, and the number of rows if the file's head gives it."""
    import polars as pl

    def look() -> _Shape:
        if isinstance(file, CsvFile):
            return _Shape(read_header(file))
        if isinstance(file, ExcelFile):
            return _Shape(read_sheet(file, header_only=True))
        if _ending(file) in STATISTICAL:
            head = StatHead.read(file)
            return _Shape(pl.DataFrame(schema=dict(head.types)), head.rows)
        if _ending(file) in FOREIGN:
            return _Shape(frame_of_r(file).clear())
        rows = pl.scan_parquet(file).select(pl.len()).collect().item()
        return _Shape(pl.DataFrame(schema=pl.read_parquet_schema(file)), int(rows))

    return _quietly(look, file)


def _frame_of(file: DataFile, columns: list[str] | None) -> pl.DataFrame:
    """Return the rows of a file, of some columns if named; of a CSV file of all."""
    import polars as pl

    if isinstance(file, CsvFile):
        return pl.concat([read_header(file), *read_lines(file)])
    if isinstance(file, ExcelFile):
        return read_sheet(file, columns)
    if _ending(file) in STATISTICAL:
        head = StatHead.read(file)
        return head.part(list(head.types) if columns is None else columns)
    if _ending(file) in FOREIGN:
        frame = frame_of_r(file)
        return frame if columns is None else frame.select(columns)
    return pl.read_parquet(file, columns=columns)


def _frames(file: DataFile, columns: list[str], size: int) -> Iterator[pl.DataFrame]:
    """Go through the rows of a file that is streamed."""
    import polars as pl

    if isinstance(file, CsvFile):
        return read_lines(file, size, columns)
    path = _path_of(file)
    if _ending(path) in STATISTICAL:
        return StatHead.read(path).parts(columns, size)
    rows = pl.scan_parquet(path).select(columns)
    return iter(rows.collect_batches(chunk_size=size, maintain_order=True))


def _codes(file: DataFile) -> ValueCodes | None:
    return _quietly(lambda: value_codes(file), file) if isinstance(file, Path) else None


def without_words(action: Callable[[], T], sentence: str = _CONSTANT) -> T:
    """Read or encode records; whatever another package says about a failure is not repeated.

    The error is raised after the other one is forgotten: not even a traceback leads back to it.
    """
    import polars as pl

    try:
        return action()
    except PrivateAteError:
        raise
    # A reader's panic is no Exception; what either says could quote a record.
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001, S110
        pass
    raise RecordsError(sentence)


def _quietly(action: Callable[[], T], file: DataFile) -> T:
    """Read a file without a word of its reader: neither its error, nor its warning."""
    path = _path_of(file)
    what, package = FOREIGN.get(_ending(path), ("Parquet", None))
    if isinstance(file, CsvFile):
        what, package = "comma-separated values with a header line", None

    def read() -> T:
        if package is None:
            return action()
        with warnings.catch_warnings(), suppress(ModuleNotFoundError):
            warnings.simplefilter("ignore")
            return action()
        msg = (
            f"reading {path.suffix} files needs the formats extra ({package}): "
            "pip install 'private-ate[formats]'"
        )
        raise ArgumentError(msg)

    return without_words(read, f"the file {path.name!r} cannot be read as {what}")


def _path_of(file: DataFile) -> Path:
    return file if isinstance(file, Path) else file.file


def _ending(path: Path) -> str:
    return path.suffix.lower()


def file_of(data: object) -> DataFile | None:
    """Return the file that is meant and how it is read; None for a table in memory."""
    if isinstance(data, CsvFile | ExcelFile):
        check_path(data.file, is_text=isinstance(data, CsvFile))
        return data
    if not isinstance(data, str | Path):
        return None
    path = Path(data)
    check_path(path)
    if path.suffix.lower() == ".xlsx":
        return ExcelFile(path)
    return CsvFile.of(path) if path.suffix.lower() in _TEXTS else path


def described_file(
    path: str | Path,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header_row: int | None = None,
    skip_rows: int | None = None,
    sheet: str | int | None = None,
) -> str | DataFile:
    """Return a file with what is said of its reading; as its name says where nothing is."""
    if all(one is None for one in (sep, decimal, encoding, header_row, skip_rows, sheet)):
        return path
    is_text = any(one is not None for one in (sep, decimal, encoding))
    if sheet is not None and is_text:
        msg = "a sheet has no separator, decimal sign or encoding; which of them is meant?"
        raise ArgumentError(msg, parameter="sheet")
    if sheet is not None or (not is_text and str(path).lower().endswith(".xlsx")):
        return ExcelFile(path, 1 if sheet is None else sheet, skip_rows, header_row)
    usual = CsvFile.of(path)
    return CsvFile(
        path, usual.sep if sep is None else sep, usual.decimal if decimal is None else decimal,
        encoding, skip_rows,
        header_row,
    )  # fmt: skip


def require_counted_records(file: DataFile, level: Level | None) -> None:
    """Refuse at sample level a file that does not give its number of records; reads nothing."""
    if level is None or has_public_covariates(level):
        return
    if isinstance(file, ExcelFile):
        msg = (
            f"at sample level n is public but a sheet such as {file.file.name!r} does not count a "
            "last record whose cells are empty; save the table as Parquet or CSV, where one row is "
            "one record"
        )
        raise ArgumentError(msg)


def check_path(path: Path, *, is_text: bool = False) -> None:
    """Refuse a path that is no file that can be read; texts may have any other name."""
    if not path.is_file():
        msg = f"there is no file {str(path)!r}"
        raise ArgumentError(msg)
    ending = path.suffix.lower()
    if is_text and ending in {*_PARQUET, *FOREIGN}:
        msg = (
            f"the file {path.name!r} is no CSV file; its separator, decimal sign, encoding and "
            "header line are not asked"
        )
        raise ArgumentError(msg)
    if not is_text and ending not in {*_TEXTS, *_PARQUET, *FOREIGN}:
        others = ", ".join((".tsv", *FOREIGN))
        msg = f"the file {path.name!r} is neither .csv nor .parquet (nor {others})"
        raise ArgumentError(msg)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of it."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    held = content.encode("utf-8") if isinstance(content, str) else content
    try:
        with partial.open("wb") as stream:
            stream.write(held)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as cause:
        partial.unlink(missing_ok=True)
        msg = f"the file {str(path)!r} cannot be written"
        raise ArgumentError(msg) from cause
