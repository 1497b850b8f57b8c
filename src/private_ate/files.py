"""Files in: CSV and Parquet as frames, and their schemas without reading a value."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from private_ate.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Kind", "read_file", "read_schema"]

Kind = Literal["number", "label", "object", "other"]


def read_file(path: Path) -> tuple[pl.DataFrame, bool]:
    """Return a file's frame, and whether its columns have types of their own.

    A stray quotation mark in one record must not turn a run into an error: what the fast reader
    refuses is read again line by line, where nothing that a line holds can fail.
    """
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    _check_path(path)
    frame: pl.DataFrame | None = None
    try:
        if _is_parquet(path):
            return pl.read_parquet(path), True
        frame = pl.read_csv(
            path, infer_schema=False, encoding="utf8-lossy", truncate_ragged_lines=True
        )
    except Exception:  # noqa: BLE001, S110  # whatever the reader says could quote a record
        pass
    if frame is None and not _is_parquet(path):
        frame = _read_lines(path)
    if frame is None:
        raise _unreadable(path)
    return frame, False


def read_schema(path: Path) -> dict[str, Kind | None]:
    """Return a file's column names and, for Parquet, their kinds; no value is read."""
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    _check_path(path)
    try:
        if _is_parquet(path):
            schema = pl.read_parquet_schema(path)
            return {name: _kind_of_polars(str(dtype)) for name, dtype in schema.items()}
        with path.open("rb") as file:
            header = pl.read_csv(file.readline(), infer_schema=False, encoding="utf8-lossy")
    except Exception as cause:
        raise _unreadable(path) from cause
    return dict.fromkeys(header.columns)


def _read_lines(path: Path) -> pl.DataFrame | None:
    """Read a line as a record, whatever it holds; None if there is no usable header."""
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    lines = path.read_text("utf-8-sig", errors="replace").split("\n")
    if not lines[-1]:
        lines.pop()
    names = _distinct(_split(lines[0])) if lines else []
    if not names:
        return None
    rows = [_split(line) for line in lines[1:]]
    return pl.DataFrame(
        {
            name: [row[place] or None if place < len(row) else None for row in rows]
            for place, name in enumerate(names)
        },
        schema=dict.fromkeys(names, pl.String),
    )


def _distinct(names: list[str]) -> list[str]:
    """Rename repeated columns as the fast reader does, so that both give the same table."""
    return [
        f"{name}_duplicated_{names[:place].count(name) - 1}" if name in names[:place] else name
        for place, name in enumerate(names)
    ]


def _split(line: str) -> list[str]:
    try:
        return next(csv.reader([line.rstrip("\r")]), [])
    except csv.Error:  # a field beyond the reader's limit, a bare carriage return
        return []


def _check_path(path: Path) -> None:
    if not path.is_file():
        msg = f"there is no file {str(path)!r}"
        raise ArgumentError(msg)
    if path.suffix.lower() not in {".csv", ".parquet", ".pq", ".txt"}:
        msg = f"the file {path.name!r} is neither .csv nor .parquet"
        raise ArgumentError(msg)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in {".parquet", ".pq"}


def _unreadable(path: Path) -> SchemaError:
    kind = "Parquet" if _is_parquet(path) else "comma-separated values with a header line"
    return SchemaError(f"the file {path.name!r} cannot be read as {kind}")


def _kind_of_polars(dtype: str) -> Kind:
    if dtype.startswith(("Int", "UInt", "Float", "Decimal", "Boolean")):
        return "number"
    return "label" if dtype.startswith(("String", "Categorical", "Enum")) else "other"
