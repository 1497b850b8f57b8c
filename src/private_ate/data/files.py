"""Files in: each as a frame, and its schema without reading a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from private_ate.data.csv_file import CsvFile
from private_ate.data.csv_records import read_header, read_lines
from private_ate.data.formats import FOREIGN, foreign_shape, is_foreign, read_foreign
from private_ate.data.workbooks import ExcelFile
from private_ate.errors import ArgumentError, PrivateAteError, RecordsError, SchemaError
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "SUFFIXES",
    "DataFile",
    "Kind",
    "check_path",
    "described_file",
    "file_of",
    "is_parquet",
    "read_file",
    "read_schema",
    "require_counted_records",
    "unreadable",
    "without_words",
    "write_whole",
]

T = TypeVar("T")
DataFile = Path | CsvFile | ExcelFile
Kind = Literal["number", "label", "object", "other"]
_TEXTS: Final = (".csv", ".tsv", ".txt")
_PARQUET: Final = (".parquet", ".pq")
SUFFIXES: Final = (*_TEXTS, *_PARQUET, *FOREIGN)  # of files that can be read
_CONSTANT: Final = (
    "the records could not be read; nothing was released. What was said about it could quote a "
    "record and is not repeated: check how the table was made, or save it as Parquet"
)


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


def read_file(
    file: str | DataFile, columns: Sequence[str] | None = None
) -> tuple[pl.DataFrame, bool]:
    """Return a file's frame, and whether its columns have types of their own.

    A line of a CSV file is a record by itself, whatever it holds; see ``lines``. Of other files
    only the ``columns`` in use are read, so that no other can stop the reader.
    """
    import polars as pl

    meant, path = _with_path(file)
    if not isinstance(meant, CsvFile) and is_foreign(path):
        return read_foreign(meant, columns), not isinstance(meant, ExcelFile)
    frame: pl.DataFrame | None = None
    try:
        if not isinstance(meant, CsvFile):
            wanted = None if columns is None else list(dict.fromkeys(columns))
            return pl.read_parquet(path, columns=wanted), True
        frame = pl.concat([read_header(meant), *read_lines(meant)])
    except SchemaError:
        raise
    # A reader's panic on a damaged file is no Exception; what either says could quote a record.
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001, S110
        pass
    if frame is None:
        raise unreadable(path)
    return frame, False


def read_schema(file: str | DataFile) -> dict[str, Kind | Literal["binary"] | None]:
    """Return a file's column names and, where it has types, their kinds; no value is read.

    A column whose type holds true and false alone is binary.
    """
    import polars as pl

    meant, path = _with_path(file)
    header: pl.DataFrame | None = None
    try:
        if isinstance(meant, CsvFile):
            header = read_header(meant)
        elif is_foreign(path):
            header = foreign_shape(meant).empty
        else:
            header = pl.DataFrame(schema=pl.read_parquet_schema(path))
    except (ArgumentError, SchemaError):
        raise
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001, S110  # could quote a record
        pass
    if header is None:
        raise SchemaError(str(unreadable(path)))
    if not isinstance(meant, Path):
        return dict.fromkeys(header.columns)
    return {name: _kind_of_polars(str(dtype)) for name, dtype in header.schema.items()}


def _with_path(file: str | DataFile) -> tuple[DataFile, Path]:
    meant = file_of(file)
    if meant is None:  # pragma: no cover  # a path is no table
        raise TypeError
    return meant, meant if isinstance(meant, Path) else meant.file


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


def is_parquet(path: Path) -> bool:
    """Say whether a file's name ends as Parquet files do."""
    return path.suffix.lower() in _PARQUET


def unreadable(path: Path) -> RecordsError:
    """Return the error for a file that is not what its name says; quotes nothing of it."""
    kind = "Parquet" if is_parquet(path) else "comma-separated values with a header line"
    if is_foreign(path):
        kind = FOREIGN[path.suffix.lower()][0]
    return RecordsError(f"the file {path.name!r} cannot be read as {kind}")


def _kind_of_polars(dtype: str) -> Kind | Literal["binary"]:
    if dtype == "Boolean":
        return "binary"
    if dtype.startswith(("Int", "UInt", "Float", "Decimal")):
        return "number"
    return "label" if dtype.startswith(("String", "Categorical", "Enum")) else "other"
