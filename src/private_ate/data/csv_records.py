"""Comma-separated values: one physical line is one record, whatever the line holds.

The comma stands for whatever separates fields: a semicolon, a tab or a bar in other files.

A reader that lets a quoted field run on beyond its line lets one record decide how many others
there are. Here a line ends at a line feed, one carriage return before it is dropped, and nothing
else ends a line; quotes are read within the line and never reach beyond it. A line without a
character is a record too. So the number of records is the number of line feeds, and replacing a
line changes that record alone. Nothing that a line holds can fail.

Within a line, a field that begins with a quotation mark runs to the next single one, or to the
line's end; two in a row stand for one. Quotation marks elsewhere are characters like any other.
Fields that a line lacks are missing, fields beyond the header's are left out. A carriage return
inside a line is read as a blank, bytes that are no UTF-8 as U+FFFD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "count_records",
    "find_long_lines",
    "parse_lines",
    "read_header",
    "read_lines",
    "split_header",
]

_READ_BYTES: Final = 1 << 24
_MARK: Final = b"\xef\xbb\xbf"  # a byte order mark, as spreadsheets write it


@dataclass(frozen=True, slots=True)
class _Grammar:
    """How a line is cut at a separator: one field, and lines that every reader cuts alike."""

    field: re.Pattern[bytes]
    proper_lines: re.Pattern[bytes]


@cache
def _grammar(sep: str) -> _Grammar:
    sign = re.escape(sep).encode()
    other = b"[^" + sign + b"]"
    field = (
        rb'(?:"(?P<quoted>[^"]*+(?:""[^"]*+)*+)(?:"(?P<tail>' + other + rb"*+)|\Z)"
        rb"|(?P<bare>" + other + rb"*+))(?P<more>" + sign + rb"|\Z)"
    )
    # Fields have no quotation mark, or one at either end and inner ones doubled.
    bare = rb'[^"\n' + sign + rb']*+(?!")'
    proper = rb"(?:" + bare + rb'|"[^"\n]*+(?:""[^"\n]*+)*+"(?=[\n' + sign + rb"]))"
    lines = rb"(?:" + proper + rb"(?:" + sign + proper + rb")*+\n)*+"
    return _Grammar(re.compile(field), re.compile(lines))


def count_records(path: Path) -> int:
    """Return the number of records: lines after the first, the last with or without its end."""
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        for part in iter(lambda: file.read(_READ_BYTES), b""):
            lines += part.count(b"\n")
            last = part[-1:]
    return max(lines + (last != b"\n") - 1, 0)


def read_header(path: Path, sep: str = ",") -> pl.DataFrame:
    """Return a frame of texts without rows, named as the first line says."""
    import polars as pl

    with path.open("rb") as file:
        names = split_header(file.readline(), sep)
    return pl.DataFrame(schema=dict.fromkeys(names, pl.String))


def read_lines(
    path: Path, size: int = _READ_BYTES, columns: Sequence[str] | None = None, *, sep: str = ","
) -> Iterator[pl.DataFrame]:
    """Yield frames of texts, each from about ``size`` bytes of whole lines."""
    with path.open("rb") as file:
        names = split_header(file.readline(), sep)
        for text in _whole_lines(file, size):
            yield parse_lines(text, names, names if columns is None else columns, sep)


def find_long_lines(path: Path, size: int = _READ_BYTES, sep: str = ",") -> tuple[int, int]:
    """Return how many lines hold more fields than the header, and the number of the first.

    Such fields are left out by every reader here; for the curator, who may ask why they are there.
    """
    found, first, before = 0, 0, 1
    with path.open("rb") as file:
        names = split_header(file.readline(), sep)
        for text in _whole_lines(file, size):
            beyond = parse_lines(text, [*names, ""], [""], sep).to_series().is_not_null()
            if not found and beyond.any():
                first = before + 1 + int(beyond.arg_max() or 0)
            found += int(beyond.sum())
            before += len(beyond)
    return found, first


def split_header(line: bytes, sep: str = ",") -> tuple[str, ...]:
    """Return the names in a header line, a repeated one with a suffix."""
    if not line:
        msg = "there is no header line"
        raise ValueError(msg)
    text = _plain((line.removesuffix(b"\n") + b"\n").removeprefix(_MARK))
    names: list[str] = []
    for field in _split(text[:-1], sep):
        name = "" if field is None else field.decode()
        suffixed = (f"{name}_duplicated_{index}" for index in count())
        names.append(name if name not in names else next(n for n in suffixed if n not in names))
    return tuple(names)


def parse_lines(
    text: bytes, names: Sequence[str], columns: Sequence[str], sep: str = ","
) -> pl.DataFrame:
    """Return some columns of whole lines as texts, a row for each line feed.

    The fast reader sees lines that leave it no choice. Should it fail on them all the same, or
    count otherwise, the fields are cut one by one.
    """
    import polars as pl

    text = _plain(text)
    has_quotes = b'"' in text
    if has_quotes:
        text = _properly_quoted(text, sep)
    places = {name: str(place) for place, name in enumerate(names)}
    wanted = [places[name] for name in columns]
    frame: pl.DataFrame | None = None
    with suppress(Exception, pl.exceptions.PanicException):  # what it says could quote a record
        frame = pl.read_csv(
            BytesIO(sep.join(places.values()).encode() + b"\n" + text),
            columns=wanted, infer_schema=False, truncate_ragged_lines=True,
            quote_char='"' if has_quotes else None, separator=sep,
        )  # fmt: skip
    if frame is None or frame.height != text.count(b"\n"):
        frame = _cut_one_by_one(text, wanted, sep)
    frame = frame[wanted]
    frame.columns = list(columns)
    return frame


def _whole_lines(file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield runs of lines, each line with its end, the last line whether it has one or not."""
    parts: list[bytes] = []
    while part := file.read(size):
        end = part.rfind(b"\n") + 1
        if end:
            yield b"".join([*parts, part[:end]])
            parts = []
        if end < len(part):
            parts.append(part[end:])
    if parts:
        yield b"".join([*parts, b"\n"])


def _plain(text: bytes) -> bytes:
    """Return lines that end in a line feed alone, without carriage returns, in proper UTF-8."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    # What ends fields and lines is no part of a longer character, so none is swallowed.
    return text if text.isascii() else text.decode("utf-8", "replace").encode()


def _properly_quoted(text: bytes, sep: str) -> bytes:
    """Return the lines with those that are oddly quoted written anew."""
    parts: list[bytes] = []
    place, proper_lines = 0, _grammar(sep).proper_lines
    while place < len(text):
        found = proper_lines.match(text, place)
        end = place if found is None else found.end()
        parts.append(text[place:end])
        if end < len(text):
            place = text.index(b"\n", end) + 1
            parts += [sep.encode().join(map(_quoted, _split(text[end : place - 1], sep))), b"\n"]
        else:
            place = end
    return b"".join(parts)


def _split(line: bytes, sep: str) -> Iterator[bytes | None]:
    """Yield the fields of one line; a bare field without a character is missing."""
    place, has_more, one_field = 0, True, _grammar(sep).field
    while has_more:
        # One of the two ways to read a field always fits.
        found = one_field.match(line, place)
        if found is None:  # pragma: no cover
            return
        quoted, tail, bare, more = found.group("quoted", "tail", "bare", "more")
        yield (bare or None) if quoted is None else quoted.replace(b'""', b'"') + (tail or b"")
        place, has_more = found.end(), bool(more)


def _quoted(field: bytes | None) -> bytes:
    return b"" if field is None else b'"' + field.replace(b'"', b'""') + b'"'


def _cut_one_by_one(text: bytes, wanted: Sequence[str], sep: str) -> pl.DataFrame:
    """Read lines without the fast reader; the columns are named by their places."""
    import polars as pl

    columns: dict[str, list[str | None]] = {place: [] for place in wanted}
    for line in text.split(b"\n")[:-1]:
        fields = list(_split(line, sep))
        for place, entries in columns.items():
            field = fields[int(place)] if int(place) < len(fields) else None
            entries.append(None if field is None else field.decode())
    return pl.DataFrame(columns, schema=dict.fromkeys(wanted, pl.String))
