"""Files in: CSV and Parquet as frames, and their schemas without reading a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from private_ate.data.csv_records import read_header, read_lines
from private_ate.errors import ArgumentError, PrivateAteError, RecordsError, SchemaError

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Kind",
    "check_path",
    "is_parquet",
    "read_file",
    "read_schema",
    "unreadable",
    "without_words",
    "write_whole",
]

T = TypeVar("T")
Kind = Literal["number", "label", "object", "other"]
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


def read_file(path: Path, columns: Sequence[str] | None = None) -> tuple[pl.DataFrame, bool]:
    """Return a file's frame, and whether its columns have types of their own.

    A line of a CSV file is a record by itself, whatever it holds; see ``lines``. Of Parquet only
    the ``columns`` in use are read, so that no other can stop the reader.
    """
    import polars as pl

    check_path(path)
    frame: pl.DataFrame | None = None
    try:
        if is_parquet(path):
            wanted = None if columns is None else list(dict.fromkeys(columns))
            return pl.read_parquet(path, columns=wanted), True
        frame = pl.concat([read_header(path), *read_lines(path)])
    # A reader's panic on a damaged file is no Exception; what either says could quote a record.
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001, S110
        pass
    if frame is None:
        raise unreadable(path)
    return frame, False


def read_schema(path: Path) -> dict[str, Kind | None]:
    """Return a file's column names and, for Parquet, their kinds; no value is read."""
    import polars as pl

    check_path(path)
    try:
        if is_parquet(path):
            schema = pl.read_parquet_schema(path)
            return {name: _kind_of_polars(str(dtype)) for name, dtype in schema.items()}
        header = read_header(path)
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001  # could quote a record
        header = None
    if header is None:
        raise SchemaError(str(unreadable(path)))
    return dict.fromkeys(header.columns)


def check_path(path: Path) -> None:
    """Refuse a path that is no CSV or Parquet file."""
    if not path.is_file():
        msg = f"there is no file {str(path)!r}"
        raise ArgumentError(msg)
    if path.suffix.lower() not in {".csv", ".parquet", ".pq", ".txt"}:
        msg = f"the file {path.name!r} is neither .csv nor .parquet"
        raise ArgumentError(msg)


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half of it."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as cause:
        partial.unlink(missing_ok=True)
        msg = f"the file {str(path)!r} cannot be written"
        raise ArgumentError(msg) from cause


def is_parquet(path: Path) -> bool:
    """Say whether a file's name ends as Parquet files do."""
    return path.suffix.lower() in {".parquet", ".pq"}


def unreadable(path: Path) -> RecordsError:
    """Return the error for a file that is not what its name says; quotes nothing of it."""
    kind = "Parquet" if is_parquet(path) else "comma-separated values with a header line"
    return RecordsError(f"the file {path.name!r} cannot be read as {kind}")


def _kind_of_polars(dtype: str) -> Kind:
    if dtype.startswith(("Int", "UInt", "Float", "Decimal", "Boolean")):
        return "number"
    return "label" if dtype.startswith(("String", "Categorical", "Enum")) else "other"
