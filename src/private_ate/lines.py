"""Comma-separated values in runs of whole lines, every line a record of its own.

A reader that lets a quoted field run over line ends lets one odd record swallow its neighbours.
Here a quote never reaches beyond its line: lines whose quotes do not add up lose them, so what one
record says changes how that record is read and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

__all__ = ["count_lines", "read_header", "read_lines"]

_READ_BYTES: Final = 1 << 24
# Fields without quotes, or quoted from end to end with inner quotes doubled.
_WELL_QUOTED: Final = re.compile(rb'(?:[^",]*|"(?:[^"]|"")*")(?:,(?:[^",]*|"(?:[^"]|"")*"))*')


def count_lines(path: Path) -> int:
    """Return an upper bound on the number of lines in a file, counting its line ends."""
    with path.open("rb") as file:
        return 1 + sum(part.count(b"\n") for part in iter(lambda: file.read(_READ_BYTES), b""))


def read_header(path: Path) -> pl.DataFrame:
    """Return a frame of texts without rows, named as the first line says."""
    with path.open("rb") as file:
        return _parse(_repair(file.readline()))


def read_lines(path: Path, size: int = _READ_BYTES) -> Iterator[pl.DataFrame]:
    """Yield frames of texts, each from about ``size`` bytes of whole lines."""
    with path.open("rb") as file:
        header = _repair(file.readline())
        if not header.endswith(b"\n"):
            header += b"\n"
        rest = b""
        while part := file.read(size):
            whole, end, rest = (rest + part).rpartition(b"\n")
            if whole + end:
                yield _parse(header + _repair(whole + end))
        if rest.strip():
            yield _parse(header + _repair(rest))


def _repair(text: bytes) -> bytes:
    """Take the quotes out of every line that is not well quoted."""
    if b'"' not in text:
        return text
    return b"\n".join(
        line
        if b'"' not in line or _WELL_QUOTED.fullmatch(line.rstrip(b"\r"))
        else line.replace(b'"', b"")
        for line in text.split(b"\n")
    )


def _parse(text: bytes) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    return pl.read_csv(
        BytesIO(text), infer_schema=False, encoding="utf8-lossy", truncate_ragged_lines=True
    )
