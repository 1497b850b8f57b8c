"""Tables in: any frame or file becomes columns of numbers and labels, value by value.

A file of comma-separated values has no types, so its entries are parsed one by one and what cannot
be parsed is a missing value. Whether reading succeeds never depends on a private value.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from private_ate.domain import Categories, Domain, Interval, Outcome, label_text
from private_ate.errors import ArgumentError, DomainError, SchemaError
from private_ate.files import Kind, read_file
from private_ate.privacy.sums import quantize_outcomes

if TYPE_CHECKING:
    import narwhals as nw
    import polars as pl

__all__ = [
    "Columns",
    "Table",
    "complete_domain",
    "covariate_names",
    "observe_columns",
    "read_table",
    "require_column",
    "table_of",
]

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]

_CACHED_ROWS = 1 << 16  # rows of a column that stay in the processor's cache
_MANY_ENTRIES = 1 << 23  # covariates of so many rows times columns are encoded on threads
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of a data frame; its repr shows names only."""

    frame: nw.DataFrame[Any] = field(repr=False)
    typed: bool
    names: tuple[str, ...]
    rows: int

    def require(self, name: str, role: str) -> None:
        """Check that a column exists."""
        require_column(self.names, name, role)

    def kind(self, name: str) -> Kind:
        """Say what a column holds, from its type alone.

        Narwhals calls a pandas column of objects a text column if all its values happen to be
        texts or missing; one record would then decide about an error. Objects stay objects.
        """
        column = self.frame.get_column(name)
        if str(getattr(column.to_native(), "dtype", "")) == "object":
            return "object"
        dtype = column.dtype
        if dtype.is_numeric() or str(dtype) == "Boolean":
            return "number"
        if str(dtype).startswith(("String", "Categorical", "Enum")):
            return "label"
        return "object" if str(dtype) in {"Object", "Unknown"} else "other"

    def numbers(self, name: str) -> Floats:
        """Return a column as floats, missing entries as NaN."""
        kind = self.kind(name)
        if kind == "object":
            return _parse_objects(self.frame.get_column(name).to_list())
        if kind == "label" and not self.typed:
            return _parse_texts(self.frame.get_column(name))
        if kind != "number":
            msg = f"column {name!r} is declared as numbers but its type is {self._type(name)}"
            raise SchemaError(msg)
        return _as_floats(self.frame.get_column(name))

    def equals(self, name: str, label: str) -> Bits:
        """Say for each row whether its entry is the given label."""
        kind = self.kind(name)
        if kind == "number":
            number = _number(label)
            if number is None:
                return np.zeros(self.rows, dtype=np.bool_)
            same: Bits = _as_floats(self.frame.get_column(name)) == number
            return same
        if kind == "other":
            msg = f"column {name!r} is declared by labels but its type is {self._type(name)}"
            raise SchemaError(msg)
        return _equal_texts(self.frame.get_column(name), label)

    def keeps_texts(self, name: str) -> bool:
        """Whether the column's type says that it holds labels, even if they look like numbers."""
        return self.typed and self.kind(name) == "label"

    def observe(self, names: Sequence[str]) -> dict[str, Interval | Categories]:
        """Look up the ranges or labels of some columns."""
        return observe_columns([self], names)

    def _type(self, name: str) -> str:
        return str(self.frame.schema[name]).lower()


class Columns(Protocol):
    """A table as far as its schema goes, in memory or not."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""

    def require(self, name: str, role: str) -> None:
        """Check that a column exists."""

    def kind(self, name: str) -> Kind:
        """Say what a column holds, from its type alone."""

    def observe(self, names: Sequence[str]) -> dict[str, Interval | Categories]:
        """Look up the ranges or labels of some columns."""


def require_column(names: Sequence[str], name: str, role: str) -> None:
    """Refuse a column that a table does not have."""
    if name not in names:
        known = ", ".join(map(str, names[:12])) + (", …" if len(names) > 12 else "")
        msg = f"the table has no {role} column {name!r}; its columns are {known}"
        raise SchemaError(msg)


def read_table(data: object) -> Table:
    """Read a data frame that narwhals knows, or the path of a CSV or Parquet file."""
    typed = True
    if isinstance(data, str | Path):
        data, typed = read_file(Path(data))
    return table_of(data, typed=typed)


def table_of(data: object, *, typed: bool) -> Table:
    """Wrap a data frame; texts of an untyped one may be numbers."""
    import narwhals as nw  # noqa: PLC0415  # keeps `import private_ate` light

    try:
        frame = nw.from_native(data)  # type: ignore[call-overload]  # decided at run time
    except TypeError as cause:
        msg = (
            f"data of type {type(data).__name__} cannot be read; "
            "give a pandas, polars or pyarrow table, or the path of a CSV or Parquet file"
        )
        raise ArgumentError(msg) from cause
    except nw.exceptions.DuplicateError as cause:
        msg = "the table has two columns of the same name; rename one of them"
        raise SchemaError(msg) from cause
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    names = tuple(frame.columns)
    if frame.shape[0] == 0:
        msg = "the table has no rows"
        raise SchemaError(msg)
    return Table(frame, typed, names, frame.shape[0])


def covariate_names(
    table: Columns, domain: Domain, wanted: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Decide which columns are covariates: as asked, as declared, or all others."""
    if wanted is None:
        others = (domain.treatment.column, domain.outcome.column)
        wanted = tuple(domain.covariates) or tuple(n for n in table.names if n not in others)
    for name in wanted:
        table.require(name, "covariate")
        if name in (domain.treatment.column, domain.outcome.column):
            msg = f"column {name!r} cannot be a covariate and the treatment or outcome too"
            raise ArgumentError(msg)
    return wanted


def complete_domain(
    table: Columns, domain: Domain, covariates: tuple[str, ...], *, outcome: bool, looked_up: bool
) -> Domain:
    """Restrict a domain to the covariates in use and fill in what may be looked up.

    Covariates without a declaration take their observed range if ``looked_up`` (they are public at
    label level, or the caller gave up the guarantee); otherwise they are an error. The outcome is
    looked up only if ``outcome`` says so, which voids the guarantee.
    """
    undeclared = [name for name in covariates if name not in domain.covariates]
    if undeclared and not looked_up:
        name = undeclared[0]
        msg = (
            f"covariate {name!r} has no declared bounds; "
            f"give --bounds {name}=LO:HI or --categories '{name}=a|b|c', or a domain"
        )
        raise DomainError(msg)
    bounds = domain.outcome.bounds
    if bounds is None and outcome:
        undeclared.append(domain.outcome.column)
    observed = table.observe(undeclared) if undeclared else {}
    known = {**observed, **domain.covariates}
    declared = {name: known[name] for name in covariates}
    if bounds is None and outcome:
        found = observed[domain.outcome.column]
        bounds = found if isinstance(found, Interval) else None
    completed = Domain(domain.treatment, Outcome(domain.outcome.column, bounds), declared)
    _ = completed.bounds  # an error that names the flag
    return completed


def encode_covariates(table: Table, domain: Domain) -> Floats:
    """Return the covariates in [0, 1], one row per feature, shape (d, n)."""
    encoded = np.empty((len(domain.features), table.rows))
    widths = [
        1 if isinstance(kind, Interval) else len(kind.labels) for kind in domain.covariates.values()
    ]
    firsts = accumulate(widths, initial=0)

    def encode(first: int, name: str) -> None:
        kind = domain.covariates[name]
        if isinstance(kind, Interval):
            _scale_into(encoded[first], table.numbers(name), kind)
        else:
            _one_hot_into(encoded, first, table, name, kind)

    jobs = zip(firsts, domain.covariates, strict=False)
    if encoded.size < _MANY_ENTRIES:
        for first, name in jobs:
            encode(first, name)
        return encoded
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for done in [pool.submit(encode, first, name) for first, name in jobs]:
            done.result()
    return encoded


def encode_treatment(table: Table, domain: Domain) -> Bits:
    """Return True where the entry is the treated label; everything else is control."""
    table.require(domain.treatment.column, "treatment")
    return table.equals(domain.treatment.column, label_text(domain.treatment.treated))


def encode_participation(table: Table, domain: Domain) -> Bits:
    """Return True where the entry is one of the two declared labels of treatment."""
    column = domain.treatment.column
    table.require(column, "treatment")
    labels = (domain.treatment.treated, domain.treatment.control)
    first, second = (table.equals(column, label_text(label)) for label in labels)
    return first | second


def encode_outcome(table: Table, domain: Domain) -> npt.NDArray[np.int32]:
    """Return the outcomes on the grid across their declared bounds."""
    table.require(domain.outcome.column, "outcome")
    bounds = domain.bounds
    values = table.numbers(domain.outcome.column)
    return quantize_outcomes(values, bounds.low, bounds.high, bounds.fill)


def _scale_into(out: Floats, values: Floats, bounds: Interval) -> None:
    if bounds.width <= 0:
        out[:] = 0.5
        return
    middle = (bounds.fill - bounds.low) / bounds.width
    for first in range(0, out.size, _CACHED_ROWS):
        part = out[first : first + _CACHED_ROWS]
        # Clipped first: a huge value over a narrow range would overflow, and numpy would say so.
        np.clip(values[first : first + _CACHED_ROWS], bounds.low, bounds.high, out=part)
        part -= bounds.low
        part /= bounds.width
        part[np.isnan(part)] = middle


def _one_hot_into(out: Floats, first: int, table: Table, name: str, kind: Categories) -> None:
    known = np.zeros(table.rows, dtype=np.bool_)
    for offset, label in enumerate(kind.labels):
        hit = table.equals(name, label)
        known |= hit
        out[first + offset] = hit
    out[first + kind.labels.index(kind.other)][~known] = 1.0


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
    holds_texts: bool = False
    low: float = np.inf
    high: float = -np.inf

    def look(self, table: Table, name: str) -> None:
        fresh = sorted(set(_observed_labels(table, name)) - self.labels)
        self.holds_texts |= table.keeps_texts(name) or any(_number(one) is None for one in fresh)
        # One label beyond two hundred is as many as it takes to refuse.
        self.labels.update(fresh[: 201 - len(self.labels)])
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
        if len(self.labels) > 200:
            msg = f"column {name!r} has more than 200 labels; leave it out or declare it"
            raise SchemaError(msg)
        return Categories(*sorted(self.labels)) if len(self.labels) > 1 else Interval(0, 1)


def _observed_labels(table: Table, name: str) -> list[str]:
    if table.kind(name) not in ("label", "object"):
        return []
    texts = _texts(table.frame.get_column(name)).unique().drop_nulls()
    return sorted(set(texts.to_list()) - {""})


def _as_floats(series: nw.Series[Any]) -> Floats:
    import narwhals as nw  # noqa: PLC0415  # keeps `import private_ate` light

    if series.dtype != nw.Float64:
        series = series.cast(nw.Float64)
    values: Floats = np.asarray(series.to_numpy(), dtype=np.float64)
    return values


def _parse_texts(series: nw.Series[Any]) -> Floats:
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    texts = pl.Series(series.to_native()).str.strip_chars()
    values = texts.cast(pl.Float64, strict=False)
    truth = texts.str.to_lowercase().replace_strict(_TRUTH, default=None)
    return values.fill_null(truth).to_numpy().astype(np.float64)


def _parse_objects(entries: list[object]) -> Floats:
    return np.array([_parse(entry) for entry in entries], dtype=np.float64)


def _parse(entry: object) -> float:
    if isinstance(entry, str):
        number = _number(entry)
        return float("nan") if number is None else number
    try:
        return float(entry)  # type: ignore[arg-type]  # whatever fails is a missing value
    except Exception:  # noqa: BLE001  # an object may fail in any way; its record must not show
        return float("nan")


def _number(label: str) -> float | None:
    """Read a text as a number as the file reader does; truth values count as 1 and 0."""
    word = label.strip().lower()
    if word in _TRUTH:
        return _TRUTH[word]
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def _equal_texts(series: nw.Series[Any], label: str) -> Bits:
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    texts = _texts(series)
    hit = (texts == label).fill_null(value=False)
    number = _number(label)
    if number is not None:
        hit |= (texts.cast(pl.Float64, strict=False) == number).fill_null(value=False)
    if number in (0.0, 1.0):
        truth = "true" if number else "false"
        hit |= (texts.str.to_lowercase() == truth).fill_null(value=False)
    return hit.to_numpy().astype(np.bool_)


def _texts(series: nw.Series[Any]) -> pl.Series:
    """Return a column of labels as stripped texts; entries that are no label are missing."""
    import polars as pl  # noqa: PLC0415  # keeps `import private_ate` light

    if series.implementation.is_polars() and str(series.dtype) != "Object":
        texts: pl.Series = series.to_native().cast(pl.String)
    else:
        texts = pl.Series([_entry_text(entry) for entry in series.to_list()], dtype=pl.String)
    return texts.str.strip_chars()


def _entry_text(entry: object) -> str | None:
    if isinstance(entry, str):
        return entry.encode("utf-8", "replace").decode()  # half a surrogate pair is no text
    try:
        return label_text(entry.item() if isinstance(entry, np.generic) else entry)
    except Exception:  # noqa: BLE001  # an object may fail in any way; its record must not show
        return None
