"""Entries and columns as numbers or labels; whatever they hold, nothing raises or warns.

A column without a declared type is read through here, entry by entry, so that what one record says
decides about that record alone. Only plain kinds of values are looked at: any other object is a
missing value, and none of its own code runs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats
from private_ate.domain.column_types import TRUTH, label_text, parse_number

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

__all__ = [
    "MISSING", "TRUTH", "column_entries", "column_floats", "column_texts", "entry_texts",
    "equal_texts", "has_decimal_comma", "is_missing", "label_of", "number_of", "numbers_of",
    "parse_number", "parse_texts",
]  # fmt: skip

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


def column_floats(series: nw.Series[Any]) -> Floats:
    """Return a column of a numeric type as floats; no cast looks at values to succeed."""
    values: Floats | None = None
    with suppress(Exception):  # what is left to try goes entry by entry and gives the same
        values = _cast(series)
    return numbers_of(column_entries(series)) if values is None else values


def _cast(series: nw.Series[Any]) -> Floats | None:
    native = series.to_native()
    if series.implementation.is_polars():
        import polars as pl

        found = native.cast(pl.Float64, strict=False).to_numpy()
    elif series.implementation.is_pyarrow():
        found = _cast_arrow(native)
    elif isinstance(native.dtype, np.dtype):
        found = native.to_numpy(dtype=np.float64)
    elif hasattr(native.dtype, "pyarrow_dtype"):
        found = _cast_arrow(native.array.__arrow_array__())
    else:
        found = native.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(found, dtype=np.float64)


def _cast_arrow(column: Any) -> Any:  # noqa: ANN401  # an array or a chunked array
    """Cast without Arrow's check that whole numbers stay below 2⁵³."""
    import pyarrow as pa  # whoever hands over such a column has it
    import pyarrow.compute as pc  # as above

    cast = pc.cast(column, pa.float64(), safe=False)
    return cast.to_numpy() if isinstance(cast, pa.ChunkedArray) else cast.to_numpy(False)


def _point_numbers(texts: pl.Series, decimal: str) -> pl.Series:
    """Return texts as numbers are written with a point; what is none in the file is missing."""
    if decimal == ".":
        return texts
    import polars as pl

    text = pl.col("text")
    has_no_point = ~text.str.contains(".", literal=True)
    pointed = pl.when(has_no_point).then(text.str.replace(",", ".", literal=True))
    return pl.DataFrame({"text": texts}).select(pointed).to_series()


def parse_texts(series: nw.Series[Any], decimal: str) -> Floats:
    """Return a column of texts as floats; words for truth count, what is no number is NaN."""
    import polars as pl

    texts = _point_numbers(column_texts(series), decimal)
    values = texts.cast(pl.Float64, strict=False)
    truth = texts.str.to_lowercase().replace_strict(TRUTH, default=None)
    return values.fill_null(truth).to_numpy().astype(np.float64)


def equal_texts(series: nw.Series[Any], label: str, decimal: str) -> Bits:
    """Say for each row whether its text is the label, or the same number or word for truth."""
    import polars as pl

    texts = column_texts(series)
    hit = (texts == label).fill_null(value=False)
    number = parse_number(label)
    if number is not None:
        numbers = _point_numbers(texts, decimal).cast(pl.Float64, strict=False)
        hit |= (numbers == number).fill_null(value=False)
    if number in (0.0, 1.0):
        truth = "true" if number else "false"
        hit |= (texts.str.to_lowercase() == truth).fill_null(value=False)
    return hit.to_numpy().astype(np.bool_)


def column_texts(series: nw.Series[Any]) -> pl.Series:
    """Return a column of labels as stripped texts; entries that are no label are missing."""
    import polars as pl

    if series.implementation.is_polars() and str(series.dtype) != "Object":
        texts: pl.Series = series.to_native().cast(pl.String, strict=False)
    else:
        texts = pl.Series([label_of(entry) for entry in column_entries(series)], dtype=pl.String)
    return texts.str.strip_chars()


def entry_texts(series: nw.Series[Any]) -> pl.Series:
    """Return a column's entries as stripped texts whatever its type, for the curator only.

    Missing entries are missing; an object that is neither text, number nor date shows its type.
    """
    import polars as pl

    if series.implementation.is_polars() and str(series.dtype) != "Object":
        with suppress(Exception):  # lists and the like are no texts
            plain: pl.Series = series.to_native().cast(pl.String, strict=False)
            return plain.str.strip_chars()
    texts = pl.Series([_shown(entry) for entry in column_entries(series)], dtype=pl.String)
    return texts.str.strip_chars()


def _shown(entry: object) -> str | None:
    label = label_of(entry)
    kind = type(entry).__name__
    if label is not None or entry is None or kind in ("float", "float64", "NaTType", "NAType"):
        return label
    return entry.isoformat() if isinstance(entry, date) else f"({kind})"


def column_entries(series: nw.Series[Any]) -> list[object]:
    """Return a column's entries; one that cannot be had as a value is missing."""
    with suppress(Exception):  # such as bytes that are no text in a column of texts
        return list(series.to_list())
    native = series.to_native()
    return [_entry(native, row) for row in range(len(series))]


def _entry(native: Any, row: int) -> object:  # noqa: ANN401  # any column that counts its rows
    with suppress(Exception):  # as above
        return native[row].as_py() if hasattr(native[row], "as_py") else native.iloc[row]
    return None
