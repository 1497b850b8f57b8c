"""Phrases that findings share: counts with shares, and labels without control characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["amount", "first_few", "listed", "named", "number", "quoted", "share"]

_LONGEST: Final = 32
_SHOWN: Final = 5


def amount(count: int, total: int, what: str = "rows") -> str:
    """Say how many of how many, and their share."""
    return f"{count:,} of {total:,} {what} ({share(count, total)})"


def share(count: float, total: float) -> str:
    """Return a share in per cent; never 0 for what is there, nor 100 for what is not all."""
    part = 100 * count / total if total else 0.0
    if 0 < part < 0.1:
        return "below 0.1 %"
    if 99.9 < part < 100:
        return "above 99.9 %"
    return f"{part:.3g} %" if part < 10 else f"{part:.0f} %"


def quoted(text: str) -> str:
    """Return a label of the data, short and without characters that move a cursor."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    plain = "".join(letter if letter.isprintable() else "·" for letter in short)
    return f'"{plain}"'


def named(column: str) -> str:
    """Return the name of a column, short and without characters that move a cursor."""
    return quoted(column)[1:-1] or "(no name)"


def listed(counts: Mapping[str, int], *, is_whole: bool = True) -> str:
    """Return labels with their counts, the most frequent first, and how many more there are."""
    names = [f"{quoted(label)} ({count:,})" for label, count in counts.items()]
    rest = len(names) - _SHOWN
    if rest <= 0:
        return ", ".join(names)
    more = f"{rest:,}" if is_whole else f"more than {rest:,}"
    return f"{', '.join(names[:_SHOWN])}, … {more} more"


def first_few(names: Iterable[str], between: str = ", ") -> str:
    """Return the first names, and how many more there are."""
    every = list(names)
    more = f", … {len(every) - _SHOWN:,} more" if len(every) > _SHOWN else ""
    return between.join(every[:_SHOWN]) + more


def number(value: float) -> str:
    """Return a number as a reader expects it: whole ones whole, others to six digits."""
    if abs(value) < 1e15 and value == int(value):
        return f"{int(value):,}"
    return f"{value:,.6g}"
