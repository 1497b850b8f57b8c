"""Comma-separated values in runs of whole records.

A reader that lets a quoted field run on until the next quote lets one odd record swallow its
neighbours. Here lines are joined only if that makes a record of as many fields as the header has,
properly quoted; any other line whose quotes do not add up is a record by itself and is quoted
anew. What one record says changes how that record is read, and nothing can fail.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

__all__ = ["count_lines", "read_header", "read_lines"]

_READ_BYTES: Final = 1 << 24
_LONGEST: Final = 32  # lines that a properly quoted record may run over
# Fields without quotes, or quoted from end to end with inner quotes doubled.
_WELL_QUOTED: Final = re.compile(rb'(?:[^",]*|"(?:[^"]|"")*")(?:,(?:[^",]*|"(?:[^"]|"")*"))*')


def count_lines(path: Path) -> int:
    """Return an upper bound on the number of lines in a file, counting its line ends."""
    with path.open("rb") as file:
        return 1 + sum(part.count(b"\n") for part in iter(lambda: file.read(_READ_BYTES), b""))


def read_header(path: Path) -> pl.DataFrame:
    """Return a frame of texts without rows, named as the first line says."""
    with path.open("rb") as file:
        return _parse(_quoted_line(file.readline()))


def read_lines(path: Path, size: int = _READ_BYTES) -> Iterator[pl.DataFrame]:
    """Yield frames of texts, each from about ``size`` bytes of whole records."""
    with path.open("rb") as file:
        header = _quoted_line(file.readline()).rstrip(b"\r\n") + b"\n"
        fields = len(_fields(header) or ())
        kept = b""
        while part := file.read(size):
            whole, end, rest = (kept + part).rpartition(b"\n")
            run = _mend(whole, fields, is_last=False) if end else _Run(b"", b"")
            if run.text:
                yield _parse(header + run.text)
            kept = run.left + rest
        if kept:
            yield _parse(header + _mend(kept.removesuffix(b"\n"), fields, is_last=True).text)


@dataclass(frozen=True, slots=True)
class _Run:
    """Whole records, each ended by a line end, and lines that wait for the rest of theirs."""

    text: bytes
    left: bytes


def _mend(text: bytes, fields: int, *, is_last: bool) -> _Run:
    """Join the lines of records that run over several; quote other odd lines anew."""
    if b'"' not in text:
        return _Run(text + b"\n", b"")
    lines = text.split(b"\n")
    records: list[bytes] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        if b'"' not in line or _WELL_QUOTED.fullmatch(line.rstrip(b"\r")):
            records.append(line)
            place += 1
            continue
        length = _reach(lines[place : place + _LONGEST], fields)
        if length == 0 and not is_last and place + _LONGEST > len(lines):
            return _Run(_joined(records), _joined(lines[place:]))
        records.append(b"\n".join(lines[place : place + length]) if length else _quoted_line(line))
        place += max(length, 1)
    return _Run(_joined(records), b"")


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _reach(lines: list[bytes], fields: int) -> int:
    """Return how many lines make one proper record; zero if none do."""
    joined = lines[0]
    for length, line in enumerate(lines[1:], 2):
        joined += b"\n" + line
        if b'"' in line and _WELL_QUOTED.fullmatch(joined.rstrip(b"\r")):
            return length if len(_fields(joined) or ()) == fields else 0
    return 0


def _quoted_line(line: bytes) -> bytes:
    """Read the fields of one line, whatever they hold, and write them properly."""
    if b'"' not in line or _WELL_QUOTED.fullmatch(line.rstrip(b"\r\n")):
        return line
    fields = _fields(line)
    if fields is None:
        return line.replace(b'"', b"")
    out = StringIO()
    csv.writer(out, lineterminator="").writerow(fields)
    return out.getvalue().replace("\n", " ").encode("utf-8", errors="replace")


def _fields(record: bytes) -> list[str] | None:
    text = record.rstrip(b"\r\n").decode("utf-8", errors="replace")
    try:
        return next(csv.reader(StringIO(text, newline="")), [])
    except csv.Error:  # a field beyond the reader's limit, a bare carriage return
        return None


def _parse(text: bytes) -> pl.DataFrame:
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    return pl.read_csv(
        BytesIO(text), infer_schema=False, encoding="utf8-lossy", truncate_ragged_lines=True
    )
