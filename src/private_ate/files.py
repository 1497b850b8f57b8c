"""Files in: CSV and Parquet as frames, and their schemas without reading a value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from private_ate.errors import ArgumentError, SchemaError
from private_ate.lines import read_header, read_lines

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Kind", "check_path", "is_parquet", "read_file", "read_schema", "unreadable"]

Kind = Literal["number", "label", "object", "other"]


def read_file(path: Path) -> tuple[pl.DataFrame, bool]:
    """Return a file's frame, and whether its columns have types of their own.

    A line of a CSV file is a record by itself, whatever it holds; see ``lines``.
    """
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    check_path(path)
    frame: pl.DataFrame | None = None
    try:
        if is_parquet(path):
            return pl.read_parquet(path), True
        frame = pl.concat([read_header(path), *read_lines(path)])
    # A reader's panic on a damaged file is no Exception; what either says could quote a record.
    except (Exception, pl.exceptions.PanicException):  # noqa: BLE001, S110
        pass
    if frame is None:
        raise unreadable(path)
    return frame, False


def read_schema(path: Path) -> dict[str, Kind | None]:
    """Return a file's column names and, for Parquet, their kinds; no value is read."""
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    check_path(path)
    try:
        if is_parquet(path):
            schema = pl.read_parquet_schema(path)
            return {name: _kind_of_polars(str(dtype)) for name, dtype in schema.items()}
        header = read_header(path)
    except (Exception, pl.exceptions.PanicException) as cause:
        raise unreadable(path) from cause
    return dict.fromkeys(header.columns)


def check_path(path: Path) -> None:
    """Refuse a path that is no CSV or Parquet file."""
    if not path.is_file():
        msg = f"there is no file {str(path)!r}"
        raise ArgumentError(msg)
    if path.suffix.lower() not in {".csv", ".parquet", ".pq", ".txt"}:
        msg = f"the file {path.name!r} is neither .csv nor .parquet"
        raise ArgumentError(msg)


def is_parquet(path: Path) -> bool:
    """Say whether a file's name ends as Parquet files do."""
    return path.suffix.lower() in {".parquet", ".pq"}


def unreadable(path: Path) -> SchemaError:
    """Return the error for a file that is not what its name says; quotes nothing of it."""
    kind = "Parquet" if is_parquet(path) else "comma-separated values with a header line"
    return SchemaError(f"the file {path.name!r} cannot be read as {kind}")


def _kind_of_polars(dtype: str) -> Kind:
    if dtype.startswith(("Int", "UInt", "Float", "Decimal", "Boolean")):
        return "number"
    return "label" if dtype.startswith(("String", "Categorical", "Enum")) else "other"
