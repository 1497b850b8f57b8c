"""A file of separated values whose separator or decimal sign is not the usual one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["CsvFile", "point_numbers"]

SEPARATORS: Final = (",", ";", "\t", "|", ":")
_NAMED: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "bar": "|", "colon": ":"}


@dataclass(frozen=True, slots=True)
class CsvFile:
    """The path of a file of separated values, its separator and its decimal sign.

    Given in place of a path wherever a path is taken. One physical line is one record, whatever
    separates its fields. With a decimal comma a text with a point is no number: nobody could tell
    1.234 from 1234. Nor are marks between thousands read.

    Attributes
    ----------
    path : str
        The file; on Spark also a folder of files or an address.
    sep : str
        A comma, a semicolon, a tab (also written ``tab``), a bar or a colon.
    decimal : str
        A point or a comma.

    Examples
    --------
    >>> CsvFile("study.csv", sep=";", decimal=",")
    CsvFile(path='study.csv', sep=';', decimal=',')
    """

    path: str
    sep: str = ","
    decimal: str = "."

    def __init__(self, path: str | Path, sep: str = ",", decimal: str = ".") -> None:
        object.__setattr__(self, "path", str(path))
        object.__setattr__(self, "sep", _NAMED.get(sep, sep))
        object.__setattr__(self, "decimal", decimal)
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


def point_numbers(texts: pl.Series, decimal: str) -> pl.Series:
    """Return texts as numbers are written with a point; what is none in the file is missing."""
    if decimal == ".":
        return texts
    import polars as pl

    text = pl.col("text")
    has_no_point = ~text.str.contains(".", literal=True)
    pointed = pl.when(has_no_point).then(text.str.replace(",", ".", literal=True))
    return pl.DataFrame({"text": texts}).select(pointed).to_series()
