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
inside a line is read as a blank, bytes that are no text in the file's encoding as U+FFFD.

The encoding is what the caller says, or what a byte order mark says: the first bytes belong to the
first line, which is no record. UTF-16 is read in units of two bytes, and a line ends at the unit of
a line feed; half a character before it is replaced by itself and takes nothing along.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader, BytesIO, RawIOBase, TextIOWrapper
from itertools import count
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Self

from private_ate.arguments import settle, whole_number
from private_ate.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    import polars as pl
    from _typeshed import WriteableBuffer

__all__ = [
    "CsvFile", "count_records", "find_long_lines", "marked_encoding", "parse_lines",
    "read_header", "read_lines", "rows_before_header", "split_header",
]  # fmt: skip

SEPARATORS: Final = (",", ";", "\t", "|", ":")
_NAMED: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "colon": ":"}
# By Python's names. Texts that are said to be Latin-1 are read as cp1252, as browsers do: it has
# the same letters, and signs where Latin-1 has none.
_ENCODINGS: Final = {
    "utf-8": "utf-8",
    "cp1252": "cp1252",
    "iso8859-1": "cp1252",
    "utf-16": "utf-16",
}
_READ_BYTES: Final = 1 << 24
_UTF8_MARK: Final = b"\xef\xbb\xbf"
# Byte order marks, as spreadsheets write them.
_MARKS: Final = {_UTF8_MARK: "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


@dataclass(frozen=True, slots=True)
class CsvFile:
    """The path of a file of separated values and how its text is written.

    Given in place of a path wherever a path is taken. One physical line is one record, whatever
    separates its fields. With a decimal comma a text with a point is no number: 1.234 might
    mean 1234. Nor are marks between thousands read.

    Attributes
    ----------
    path : str
        The file; on Spark also a folder of files or an address.
    sep : str
        A comma, a semicolon, a tab (also written ``tab``), a bar or a colon.
    decimal : str
        A point or a comma.
    encoding : str, optional
        ``"utf-8"``, ``"cp1252"`` (Windows, Latin-1) or ``"utf-16"``. By default UTF-16 if the file
        begins with its byte order mark, UTF-8 otherwise: no record decides.
    skip_rows : int
        Lines before the header line; ``header_row``, the number of that line from 1, says the same.

    Examples
    --------
    >>> CsvFile("study.csv", sep=";", decimal=",").sep
    ';'
    >>> CsvFile("export.csv", encoding="cp1252", header_row=3).skip_rows
    2
    """

    path: str
    sep: str = ","
    decimal: str = "."
    encoding: str | None = None
    skip_rows: int = 0

    def __init__(
        self,
        path: str | Path,
        sep: str = ",",
        decimal: str = ".",
        encoding: str | None = None,
        skip_rows: int | None = None,
        header_row: int | None = None,
    ) -> None:
        settle(
            self,
            path=str(path),
            sep=_NAMED.get(sep, sep),
            decimal=decimal,
            encoding=None if encoding is None else _known_encoding(encoding),
            skip_rows=rows_before_header(skip_rows, header_row) or 0,
        )
        if self.sep not in SEPARATORS:
            msg = "the separator of fields is a comma, a semicolon, a tab, a bar or a colon"
            raise ArgumentError(msg, parameter="sep")
        if decimal not in {".", ","}:
            msg = "the decimal sign is a point or a comma"
            raise ArgumentError(msg, parameter="decimal")
        if self.sep == decimal:
            msg = "a comma cannot separate both fields and decimals; which of them is another sign?"
            raise ArgumentError(msg, parameter="sep")

    @classmethod
    def of(cls, path: str | Path) -> Self:
        """Return a file as its name says: tabs in ``.tsv``, commas in all others."""
        return cls(path, "\t" if str(path).lower().endswith(".tsv") else ",")

    @property
    def file(self) -> Path:
        """The path on this machine."""
        return Path(self.path)


def rows_before_header(skip_rows: int | None, header_row: int | None) -> int | None:
    """Return how many lines or rows come before the header, however it was said; None if not."""
    skipped = None if skip_rows is None else whole_number("skip_rows", skip_rows, 0)
    if header_row is None:
        return skipped
    before = whole_number("header_row", header_row, 1) - 1
    if skipped not in (None, before):
        msg = (
            f"row {header_row} is the header after {before} rows that are skipped, not after "
            f"{skipped}; say one of both"
        )
        raise ArgumentError(msg, parameter="header row")
    return before


def _known_encoding(encoding: str) -> str:
    found = None
    with suppress(LookupError, TypeError, ValueError):
        found = _ENCODINGS.get(codecs.lookup(encoding).name)
    if found is None:
        msg = "the encoding of a text file is utf-8, cp1252 or utf-16; save it as UTF-8 otherwise"
        raise ArgumentError(msg, parameter="encoding")
    return found


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


def count_records(file: CsvFile) -> int:
    """Return the number of records: lines after the header, the last with or without its end."""
    lines, last = 0, b"\n"
    with _opened(file) as stream:
        for part in iter(lambda: stream.read(_READ_BYTES), b""):
            lines += part.count(b"\n")
            last = part[-1:]
    return max(lines + (last != b"\n") - 1, 0)


def read_header(file: CsvFile) -> pl.DataFrame:
    """Return a frame of texts without rows, named as the header line says."""
    import polars as pl

    with _opened(file) as stream:
        names = split_header(stream.readline(), file)
    return pl.DataFrame(schema=dict.fromkeys(names, pl.String))


def read_lines(
    file: CsvFile, size: int = _READ_BYTES, columns: Sequence[str] | None = None
) -> Iterator[pl.DataFrame]:
    """Yield frames of texts, each from about ``size`` bytes of whole lines."""
    with _opened(file) as stream:
        names = split_header(stream.readline(), file)
        for text in _whole_lines(stream, size):
            yield parse_lines(text, names, names if columns is None else columns, file)


def find_long_lines(file: CsvFile, size: int = _READ_BYTES) -> tuple[int, int]:
    """Return how many lines hold more fields than the header, and the number of the first.

    Such fields are left out by every reader here; for the curator, who may ask why they are there.
    """
    found, first, before = 0, 0, file.skip_rows + 1
    with _opened(file) as stream:
        names = split_header(stream.readline(), file)
        more = "x" * (1 + max(map(len, names)))  # no column's name, not even an empty one
        for text in _whole_lines(stream, size):
            beyond = parse_lines(text, [*names, more], [more], file).to_series().is_not_null()
            if not found and beyond.any():
                first = before + 1 + int(beyond.arg_max() or 0)
            found += int(beyond.sum())
            before += len(beyond)
    return found, first


def marked_encoding(start: bytes) -> str | None:
    """Return the encoding that a file's first bytes name by a byte order mark."""
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)


def split_header(line: bytes, file: CsvFile) -> tuple[str, ...]:
    """Return the names in a header line; of columns without a name each later one has a suffix.

    A name that is repeated is an error: nobody could say which of the columns is meant.
    """
    if not line:
        msg = "there is no header line"
        raise ValueError(msg)
    text = _plain((line.removesuffix(b"\n") + b"\n").removeprefix(_UTF8_MARK), file)
    names: list[str] = []
    for field in _split(text[:-1], file.sep):
        name = "" if field is None else field.decode()
        if name.strip() and name in names:
            msg = (
                f"columns {names.index(name) + 1} and {len(names) + 1} of the header line have the "
                "same name; rename one of them"
            )
            raise SchemaError(msg)
        suffixed = (f"{name}_duplicated_{index}" for index in count())
        names.append(name if name not in names else next(n for n in suffixed if n not in names))
    return tuple(names)


def parse_lines(
    text: bytes, names: Sequence[str], columns: Sequence[str], file: CsvFile
) -> pl.DataFrame:
    """Return some columns of whole lines as texts, a row for each line feed.

    The fast reader sees lines that leave it no choice. Should it fail on them all the same, or
    count otherwise, the fields are cut one by one.
    """
    import polars as pl

    sep, text = file.sep, _plain(text, file)
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


@contextmanager
def _opened(file: CsvFile) -> Iterator[IO[bytes]]:
    """Open a file at its header line; UTF-16 comes as UTF-8."""
    with file.file.open("rb") as raw:
        start = raw.read(len(_UTF8_MARK))
        marked = marked_encoding(start)
        if marked and file.encoding and not marked.startswith(file.encoding):
            msg = f"the file begins with the byte order mark of {marked}, not of {file.encoding}"
            raise SchemaError(msg, parameter="encoding")
        encoding = marked or file.encoding or "utf-8"
        stream: IO[bytes] = raw
        if encoding.startswith("utf-16"):
            raw.seek(2 if marked else 0)
            # Without a mark the order of bytes is that of Windows.
            order = "utf-16-le" if encoding == "utf-16" else encoding
            stream = BufferedReader(_AsUtf8(TextIOWrapper(raw, order, "replace", newline="\n")))
        else:
            raw.seek(0)
        for _ in range(file.skip_rows):
            if not stream.readline():
                break
        yield stream


class _AsUtf8(RawIOBase):
    """The characters of a text as UTF-8."""

    def __init__(self, text: TextIOWrapper) -> None:
        self.text = text

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer)
        piece = self.text.read(len(room) // 4).encode()  # a character takes four bytes at most
        room[: len(piece)] = piece
        return len(piece)


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


def _plain(text: bytes, file: CsvFile) -> bytes:
    """Return lines that end in a line feed alone, without carriage returns, in proper UTF-8."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b" ")
    if text.isascii():
        return text
    # What ends fields and lines is no part of a longer character, so none is swallowed.
    return text.decode("cp1252" if file.encoding == "cp1252" else "utf-8", "replace").encode()


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
