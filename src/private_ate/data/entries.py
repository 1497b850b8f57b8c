"""One entry of a column as a number or a label; whatever it holds, nothing raises or warns.

A column without a declared type is read through here, entry by entry, so that what one record says
decides about that record alone. Only plain kinds of values are looked at: any other object is a
missing value, and none of its own code runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.domain.column_types import TRUTH, label_text, parse_number

__all__ = [
    "MISSING",
    "TRUTH",
    "has_decimal_comma",
    "is_missing",
    "label_of",
    "number_of",
    "numbers_of",
    "parse_number",
]

# Words, in lower case, that programs write where there is no value; a dot is SAS's and Stata's.
MISSING: Final = frozenset(
    {"", ".", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "+nan", "null", "none", "nil",
     "nat"}
)  # fmt: skip
_NOTHING: Final = frozenset({"NoneType", "NAType", "NaTType"})
_DECIMAL_COMMA: Final = re.compile(r"[+-]?[0-9.\s']*[0-9],[0-9]+(?:[eE][+-]?[0-9]+)?")


def numbers_of(entries: Iterable[object]) -> npt.NDArray[np.float64]:
    """Return entries as floats, what is no number as NaN."""
    return np.array([number_of(entry) for entry in entries], dtype=np.float64)


def number_of(entry: object) -> float:
    """Return an entry as the nearest float, NaN if it is no number."""
    if isinstance(entry, str | bytes):
        number = parse_number(_text(entry))
        return math.nan if number is None else number
    plain = _plain(entry)
    return math.nan if plain is None else _float(plain)


def label_of(entry: object) -> str | None:
    """Return the text under which an entry is compared with labels, None if it is no label."""
    if isinstance(entry, str):
        return _text(entry)
    plain = _plain(entry)
    if plain is None:
        return None
    # A truth value or a whole number keeps its digits, anything else is its nearest float.
    label = plain if isinstance(plain, bool | int) else _float(plain)
    try:
        return label_text(label)
    except ValueError:  # not finite, or beyond 2⁶⁴
        return None


def is_missing(entry: object) -> bool:
    """Say whether an entry stands for no value at all, rather than for one that cannot be read."""
    if isinstance(entry, str | bytes):
        return _text(entry).strip().lower() in MISSING
    if type(entry).__name__ in _NOTHING:
        return True
    plain = _plain(entry)
    return plain is not None and math.isnan(_float(plain))


def has_decimal_comma(text: str) -> bool:
    """Say whether a text would be a number if its comma were a point."""
    return _DECIMAL_COMMA.fullmatch(text.strip()) is not None


def _plain(entry: object) -> bool | float | Decimal | Fraction | None:
    """Return a number of Python's own kinds, None for anything else.

    A single complex entry turns a whole numpy column complex, so an imaginary part of zero counts
    for nothing.
    """
    if isinstance(entry, complex | np.complexfloating):
        return float(entry.real) if entry.imag == 0 else None
    if isinstance(entry, np.timedelta64):  # numpy counts it among the whole numbers
        return None
    if isinstance(entry, np.bool_):
        return bool(entry)
    if isinstance(entry, np.integer):
        return int(entry)
    if isinstance(entry, np.floating):
        return float(entry)
    return entry if isinstance(entry, bool | int | float | Decimal | Fraction) else None


def _float(number: float | Decimal | Fraction) -> float:
    try:
        return float(number)
    except (ValueError, OverflowError):  # a signalling NaN, or beyond the largest float
        return math.nan


def _text(entry: str | bytes) -> str:
    """Return valid text; half a surrogate pair or a byte that is no text is replaced."""
    raw = entry.encode("utf-8", "replace") if isinstance(entry, str) else entry
    return raw.decode("utf-8", "replace")
