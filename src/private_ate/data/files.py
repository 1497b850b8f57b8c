"""Files in: each as a frame, and its schema without reading a value."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from private_ate.data.csv_file import CsvFile
from private_ate.data.csv_records import read_header, read_lines
from private_ate.data.formats import FOREIGN, foreign_shape, has_types, is_foreign, read_foreign
from private_ate.errors import ArgumentError, PrivateAteError, RecordsError, SchemaError

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Kind",
    "check_path",
    "file_of",
    "is_parquet",
    "read_file",
    "read_schema",
    "unreadable",
    "without_words",
    "write_whole",
]

T = TypeVar("T")
Kind = Literal["number", "label", "object", "other"]
_TEXTS: Final = (".csv", ".tsv", ".txt")
_PARQUET: Final = (".parquet", ".pq")
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


def file_of(data: object) -> Path | CsvFile | None:
    """Return the file that is meant, texts with their separator; None for a table in memory."""
    if isinstance(data, CsvFile):
        check_path(data.file, is_text=True)
        return data
    if not isinstance(data, str | Path):
        return None
    path = Path(data)
    check_path(path)
    return CsvFile.of(path) if path.suffix.lower() in _TEXTS else path


def read_file(
    file: Path | CsvFile, columns: Sequence[str] | None = None
) -> tuple[pl.DataFrame, bool]:
    """Return a file's frame, and whether its columns have types of their own.

    A line of a CSV file is a record by itself, whatever it holds; see ``lines``. Of other files
    only the ``columns`` in use are read, so that no other can stop the reader.
    """
    import polars as pl

    meant, path = _with_path(file)
    if is_foreign(path) and not isinstance(meant, CsvFile):
        return read_foreign(path, columns), has_types(path)
    frame: pl.DataFrame | None = None
    try:
        if not isinstance(meant, CsvFile):
            wanted = None if columns is None else list(dict.fromkeys(columns))
            return pl.read_parquet(path, columns=wanted), True
        frame = pl.concat([read_header(path, meant.sep), *read_lines(path, sep=meant.sep)])
    # A reader's panic on a damaged file is no Exception; what either says could quote a record.
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001, S110
        pass
    if frame is None:
        raise unreadable(path)
    return frame, False


def read_schema(file: str | Path | CsvFile) -> dict[str, Kind | None]:
    """Return a file's column names and, where it has types, their kinds; no value is read."""
    import polars as pl

    meant, path = _with_path(file)
    header: pl.DataFrame | None = None
    try:
        if isinstance(meant, CsvFile):
            header = read_header(path, meant.sep)
        elif is_foreign(path):
            header = foreign_shape(path).empty
        else:
            header = pl.DataFrame(schema=pl.read_parquet_schema(path))
    except ArgumentError:
        raise
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001, S110  # could quote a record
        pass
    if header is None:
        raise SchemaError(str(unreadable(path)))
    if isinstance(meant, CsvFile) or not has_types(path):
        return dict.fromkeys(header.columns)
    return {name: _kind_of_polars(str(dtype)) for name, dtype in header.schema.items()}


def _with_path(file: str | Path | CsvFile) -> tuple[Path | CsvFile | None, Path]:
    path = file.file if isinstance(file, CsvFile) else Path(file)
    return file_of(file), path


def check_path(path: Path, *, is_text: bool = False) -> None:
    """Refuse a path that is no file that can be read; texts may have any other name."""
    if not path.is_file():
        msg = f"there is no file {str(path)!r}"
        raise ArgumentError(msg)
    ending = path.suffix.lower()
    if is_text and ending in {*_PARQUET, *FOREIGN}:
        msg = f"the file {path.name!r} is no CSV file; its separator and decimal sign are not asked"
        raise ArgumentError(msg)
    if not is_text and ending not in {*_TEXTS, *_PARQUET, *FOREIGN}:
        others = ", ".join((".tsv", *FOREIGN))
        msg = f"the file {path.name!r} is neither .csv nor .parquet (nor {others})"
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
    return path.suffix.lower() in _PARQUET


def unreadable(path: Path) -> RecordsError:
    """Return the error for a file that is not what its name says; quotes nothing of it."""
    kind = "Parquet" if is_parquet(path) else "comma-separated values with a header line"
    if is_foreign(path):
        kind = FOREIGN[path.suffix.lower()][0]
    return RecordsError(f"the file {path.name!r} cannot be read as {kind}")


def _kind_of_polars(dtype: str) -> Kind:
    if dtype.startswith(("Int", "UInt", "Float", "Decimal", "Boolean")):
        return "number"
    return "label" if dtype.startswith(("String", "Categorical", "Enum")) else "other"
