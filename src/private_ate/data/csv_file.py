"""A file of separated values: its separator, decimal sign, encoding and header line."""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from private_ate.arguments import settle, whole_number
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CsvFile", "point_numbers", "rows_before_header"]

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


def point_numbers(texts: pl.Series, decimal: str) -> pl.Series:
    """Return texts as numbers are written with a point; what is none in the file is missing."""
    if decimal == ".":
        return texts
    import polars as pl

    text = pl.col("text")
    has_no_point = ~text.str.contains(".", literal=True)
    pointed = pl.when(has_no_point).then(text.str.replace(",", ".", literal=True))
    return pl.DataFrame({"text": texts}).select(pointed).to_series()
