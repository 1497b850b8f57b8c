"""Tables in: any frame or file becomes columns of numbers and labels, value by value.

A file of comma-separated values has no types, so its entries are parsed one by one and what cannot
be parsed is a missing value. Whether reading succeeds never depends on a private value.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.data.parse_values import (
    MISSING,
    column_entries,
    column_floats,
    column_texts,
    entry_texts,
    equal_texts,
    has_decimal_comma,
    is_missing,
    numbers_of,
    parse_number,
    parse_texts,
)  # fmt: skip
from private_ate.domain import Categories, Interval, label_text
from private_ate.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

__all__ = [
    "MOST_LABELS", "Columns", "Kind", "Table", "ValueCodes", "declare_labels", "observe_columns",
    "require_column", "require_labels", "require_numbers", "require_shared_labels", "schema_of",
    "table_of",
]  # fmt: skip

Kind = Literal["number", "label", "object", "other"]
ValueCodes = Mapping[str, Mapping[str, tuple[float, ...]]]

MOST_LABELS = 200  # of a column whose labels are looked up
_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_NO_TEXT = "\N{REPLACEMENT CHARACTER}"
_MOST_NAMES = 20  # that an error lists
_ANSWERS = {"yes": 1.0, "no": 0.0}
_FEW_LABELS = 10  # fewer never look like names


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of a data frame; its repr shows names only.

    ``decimal`` is the sign before decimals in texts that may be numbers. ``codes`` are the numbers
    that stand for labels, by column and label, where a file's dictionary holds such labels.
    """

    frame: nw.DataFrame[Any] = field(repr=False)
    typed: bool
    names: tuple[str, ...]
    rows: int
    decimal: str = "."
    codes: ValueCodes = field(default_factory=dict, repr=False)

    def require(self, name: str, role: str, asked: Collection[str] = ()) -> None:
        """Check that a column exists; see `require_column`."""
        require_column(self.names, name, role, asked)

    def kind(self, name: str) -> Kind:
        """Say what a column holds, from its type alone.

        A pandas column takes its type from its values, so that one odd record turns a column of
        numbers, texts or dates into objects. Whatever is not numbers is objects there, and objects
        are read entry by entry.
        """
        column = self.frame.get_column(name)
        is_pandas = column.implementation.is_pandas_like()
        if is_pandas and str(column.to_native().dtype) == "object":
            return "object"  # asking for more would look at the values
        dtype = column.dtype
        if dtype.is_numeric() or str(dtype) == "Boolean":
            return "number"
        if str(dtype).startswith(("Categorical", "Enum")):
            return "label"
        if is_pandas or str(dtype) in {"Object", "Unknown"}:
            return "object"
        return "label" if str(dtype).startswith("String") else "other"

    def numbers(self, name: str) -> Floats:
        """Return a column as floats, missing entries as NaN."""
        require_numbers(self, name)
        column = self.frame.get_column(name)
        kind = self.kind(name)
        if kind == "object":
            return numbers_of(column_entries(column))
        return column_floats(column) if kind == "number" else parse_texts(column, self.decimal)

    def truths(self, name: str) -> Floats:
        """Return a column of 0 and 1 as floats; words for truth, and yes and no, count as well."""
        require_labels(self, name)
        if self.kind(name) == "number":
            return self.numbers(name)
        import polars as pl

        numbers = replace(self, typed=False).numbers(name)
        words = column_texts(self.frame.get_column(name)).str.to_lowercase()
        said = words.replace_strict(_ANSWERS, default=None, return_dtype=pl.Float64).to_numpy()
        answers: Floats = np.where(np.isnan(numbers), said, numbers)
        return answers

    def equals(self, name: str, label: str) -> Bits:
        """Say for each row whether its entry is the given label."""
        require_labels(self, name)
        if self.kind(name) != "number":
            return equal_texts(self.frame.get_column(name), label, self.decimal)
        number = parse_number(label)
        codes = self.codes.get(name, {}).get(label, () if number is None else (number,))
        same: Bits = np.isin(column_floats(self.frame.get_column(name)), codes)
        return same

    def missing(self, name: str) -> Bits:
        """Say for each row whether its entry stands for no value at all."""
        column = self.frame.get_column(name)
        kind = self.kind(name)
        if kind == "number":
            absent: Bits = np.isnan(column_floats(column))
            return absent
        if kind == "object":
            return np.array([is_missing(entry) for entry in column_entries(column)], dtype=np.bool_)
        words = column_texts(column).str.to_lowercase()
        found: Bits = (words.is_null() | words.is_in(sorted(MISSING))).to_numpy().astype(np.bool_)
        return found

    def labels(self, name: str, rows: Bits) -> list[str]:
        """Return the entries of some rows as texts; those that are no label are left out."""
        column = self.frame.get_column(name)
        if self.kind(name) != "number":
            chosen = column_texts(column).filter(rows)
            return [text for text in chosen.to_list() if text is not None]
        values = column_floats(column)[rows]
        return [label_text(value) for value in values.tolist() if math.isfinite(value)]

    def keeps_texts(self, name: str) -> bool:
        """Whether the column's type says that it holds labels, even if they look like numbers."""
        column = self.frame.get_column(name)
        if self.kind(name) == "object":
            declared = str(getattr(column.to_native(), "dtype", "object")) != "object"
            return self.typed and declared and str(column.dtype).startswith("String")
        return self.typed and self.kind(name) == "label"

    def is_number(self, text: str) -> bool:
        """Say whether a text is a number as this table writes them."""
        if self.decimal == ",":
            return "." not in text and parse_number(text.replace(",", ".", 1)) is not None
        return parse_number(text) is not None

    def texts(self, name: str) -> pl.Series:
        """Return a column's entries as texts whatever its type, for the curator only."""
        return entry_texts(self.frame.get_column(name))

    def type_name(self, name: str) -> str:
        """Name a column's type without what it is made of: a category's labels are no schema."""
        return str(self.frame.schema[name]).partition("(")[0].lower()

    def chunks(self, columns: Sequence[str]) -> Iterator[Table]:  # noqa: ARG002  # of a file, what is read
        """Yield the rows in order, each chunk with these columns; in memory all at once."""
        yield self

    def observe(self, names: Sequence[str]) -> dict[str, Interval | Categories]:
        """Look up the ranges or labels of some columns in one pass over the rows."""
        return observe_columns(self.chunks(names), names)

    def until_last(self, names: Sequence[str]) -> Table:
        """Return the rows up to the last one with an entry in one of these columns."""
        held = [self.frame.get_column(name).is_null().to_numpy() for name in names]
        rows = np.flatnonzero(~np.logical_and.reduce(held))
        last = int(rows[-1]) + 1 if rows.size else 0
        return table_of(self.frame.head(last).to_native(), typed=self.typed, decimal=self.decimal)


class Columns(Protocol):
    """A table as far as its schema goes, in memory or not."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""

    @property
    def typed(self) -> bool:
        """Whether columns have types of their own; texts of others may be numbers."""

    def require(self, name: str, role: str, asked: Collection[str] = ()) -> None:
        """Check that a column exists; see `require_column`."""

    def kind(self, name: str) -> Kind:
        """Say what a column holds, from its type alone."""

    def type_name(self, name: str) -> str:
        """Name a column's type."""

    def observe(self, names: Sequence[str]) -> dict[str, Interval | Categories]:
        """Look up the ranges or labels of some columns."""


def require_column(names: Sequence[str], name: str, role: str, asked: Collection[str] = ()) -> None:
    """Refuse a column that a table does not have.

    The names that it has are quoted only if one of the columns ``asked`` for is among them: those
    of a file without a header line are a record.
    """
    if name in names:
        return
    msg = f"the table has no {role} column {name!r} among its {len(names)} columns; "
    names = [str(one) for one in names]  # pandas numbers columns
    if any("\0" in one for one in names):
        msg += "its first line holds zero bytes, as UTF-16 does: say its encoding"
        raise SchemaError(msg, parameter="encoding")
    fitting = [word for sign, word in _SIGNS.items() if sign in names[0]] if names else []
    if len(names) == 1 and fitting:
        msg += f"its first line holds {' and '.join(fitting)}: say what separates fields"
        raise SchemaError(msg, parameter="sep")
    if any(one in names for one in asked):
        more = f", … {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        msg += f"found: {', '.join(map(repr, names[:_MOST_NAMES]))}{more}"
        if any(_NO_TEXT in one for one in names):
            msg += "; some letters are not of this encoding: say which one it is"
            raise SchemaError(msg, parameter="encoding")
        raise SchemaError(msg)
    msg += "the first line of a file is taken for its header: check that it is one, and the name"
    raise SchemaError(msg, parameter="header row")


def require_numbers(columns: Columns, name: str) -> None:
    """Refuse a column whose type cannot hold numbers; looks at no value."""
    kind = columns.kind(name)
    if kind == "other" or (kind == "label" and columns.typed):
        msg = f"column {name!r} is declared as numbers but its type is {columns.type_name(name)}"
        raise SchemaError(msg)


def require_labels(columns: Columns, name: str) -> None:
    """Refuse a column whose type cannot hold labels; looks at no value."""
    if columns.kind(name) == "other":
        msg = f"column {name!r} is declared by labels but its type is {columns.type_name(name)}"
        raise SchemaError(msg)


def table_of(
    data: object, *, typed: bool, decimal: str = ".", codes: ValueCodes | None = None
) -> Table:
    """Wrap a data frame; texts of an untyped one may be numbers."""
    import narwhals as nw

    frame = _frame_of(data)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if frame.shape[0] == 0:
        msg = "the table has no rows"
        raise SchemaError(msg)
    return Table(frame, typed, tuple(frame.columns), frame.shape[0], decimal, codes or {})


def schema_of(data: object, *, typed: bool = True) -> Table:
    """Wrap a data frame for its names and types; a lazy one is not collected."""
    import narwhals as nw

    frame = _frame_of(data)
    if not isinstance(frame, nw.LazyFrame):
        return Table(frame, typed, tuple(frame.columns), frame.shape[0])
    if frame.implementation.is_polars():
        import polars as pl  # as above

        empty = nw.from_native(pl.DataFrame(schema=frame.to_native().collect_schema()))
    else:
        empty = frame.head(0).collect()
    return Table(empty, typed, tuple(empty.columns), 0)


def _frame_of(data: object) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    import narwhals as nw

    try:
        frame: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(data)
    except TypeError as cause:
        msg = (
            f"data of type {type(data).__name__} cannot be read; "
            "give a pandas, polars or pyarrow table, or the path of a CSV or Parquet file"
        )
        raise ArgumentError(msg) from cause
    except nw.exceptions.DuplicateError as cause:
        msg = "the table has two columns of the same name; rename one of them"
        raise SchemaError(msg) from cause
    return frame


def observe_columns(
    chunks: Iterable[Table], names: Sequence[str]
) -> dict[str, Interval | Categories]:
    """Read columns' ranges off a table; for public columns or without a guarantee."""
    seen = {name: _Seen() for name in names}
    for table in chunks:
        for name in names:
            table.require(name, "covariate")
            seen[name].look(table, name)
    return {name: one.declare(name) for name, one in seen.items()}


@dataclass(slots=True)
class _Seen:
    """What was seen of a column so far: labels, whether they are texts, and the range."""

    labels: set[str] = field(default_factory=set)
    labelled: int = 0
    holds_texts: bool = False
    low: float = np.inf
    high: float = -np.inf

    def look(self, table: Table, name: str) -> None:
        observed, labelled = _observed_labels(table, name)
        fresh = sorted(observed - self.labels)
        self.labelled += labelled
        is_text = any(x.lower() not in MISSING and not table.is_number(x) for x in fresh)
        self.holds_texts |= is_text or table.keeps_texts(name)
        # One label beyond two hundred is as many as it takes to refuse.
        self.labels.update(fresh[: MOST_LABELS + 1 - len(self.labels)])
        if not self.holds_texts:
            values = table.numbers(name)
            low, high = values.min(initial=np.inf), values.max(initial=-np.inf)
            if not (np.isfinite(low) and np.isfinite(high)):
                finite = values[np.isfinite(values)]
                low, high = finite.min(initial=np.inf), finite.max(initial=-np.inf)
            self.low, self.high = min(self.low, float(low)), max(self.high, float(high))

    def declare(self, name: str) -> Interval | Categories:
        if not self.holds_texts:
            return Interval(self.low, self.high) if self.low <= self.high else Interval(0, 1)
        return declare_labels(name, self.labels, self.labelled)


def declare_labels(name: str, labels: Collection[str], rows: int) -> Interval | Categories:
    """Return what the labels of a looked-up column make it; ``rows`` have one.

    Words for no value are no labels, as long as two others are left. A column with one label alone
    holds no information and counts as a constant.
    """
    _refuse_decimal_commas(name, labels)
    require_shared_labels(name, len(labels), rows)
    empty = MISSING - {"none"}  # of treatments and habits, none is one
    said = [label for label in sorted(labels) if label.lower() not in empty]
    kept = said if len(said) > 1 else sorted(labels)
    return Categories(*kept) if len(kept) > 1 else Interval(0, 1)


def _refuse_decimal_commas(name: str, labels: Collection[str]) -> None:
    """Refuse a column whose numbers a reader may take for labels; quotes none of them."""
    said = [label for label in labels if label.lower() not in MISSING]
    odd = [label for label in said if parse_number(label) is None]
    if odd and all(map(has_decimal_comma, odd)):
        msg = (
            f"column {name!r} holds numbers with a decimal comma, which would be read as labels; "
            "say that decimals follow a comma, save the table with decimal points, or declare the "
            "column's categories"
        )
        raise SchemaError(msg, parameter="decimal")


def require_shared_labels(name: str, labels: int, rows: int) -> None:
    """Refuse a column whose labels identify rows; names the column and never a label.

    Names, addresses and free texts are no categories: such a column has more than 200 labels, or
    ten and more of which there are more than half as many as labelled ``rows``.
    """
    if labels > MOST_LABELS:
        msg = f"column {name!r} has more than 200 labels; leave it out or declare it"
        raise SchemaError(msg)
    if labels >= _FEW_LABELS and 2 * labels > rows:
        msg = (
            f"column {name!r} has a label of its own for most rows, as names and ids do; leave it "
            "out of the covariates, or declare its categories"
        )
        raise SchemaError(msg)


def _observed_labels(table: Table, name: str) -> tuple[set[str], int]:
    """Return the labels of a column and how many rows have one."""
    if table.kind(name) not in ("label", "object"):
        return set(), 0
    texts = column_texts(table.frame.get_column(name)).drop_nulls()
    texts = texts.filter(texts != "")
    return set(texts.unique().to_list()), len(texts)
