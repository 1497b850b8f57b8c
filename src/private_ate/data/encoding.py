"""Columns as a study holds them: covariates in [0, 1], arms as codes, outcomes on their grid.

Nothing here raises for a value. Rows of public columns are looked over on the way, so that a table
is parsed once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Codes, Floats
from private_ate.data.missing_rules import Reading
from private_ate.data.tables import Table
from private_ate.data.validate_public import PublicRows, look_over
from private_ate.domain import Categories, Domain, Interval, Outcome, Survival, Treatment
from private_ate.privacy.quantization import quantize_outcomes

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = [
    "EncodedRows", "FurtherOutcome", "columns_of", "encode_arms", "encode_covariates",
    "encode_outcome", "encode_rows", "map_columns", "mark_missing",
    "read_arms", "read_outcome", "read_times",
]  # fmt: skip

_CACHED_ROWS = 1 << 16  # rows of a column that stay in the processor's cache
_MANY_ENTRIES = 1 << 23  # covariates of so many rows times columns are encoded on threads


@dataclass(frozen=True, slots=True)
class FurtherOutcome:
    """An outcome after the first: its steps, and who has one where others are left out."""

    steps: npt.NDArray[np.int32] = field(repr=False)
    observed: Bits | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Encoded rows of a table or of a chunk of one; ``found`` describes public columns.

    ``treatment`` is True for treated rows of two arms, the code of the arm where there are more.
    """

    covariates: Any = field(repr=False)  # floats, or what an engine holds in place of them
    treatment: Bits | Codes = field(repr=False)
    outcome: npt.NDArray[np.int32] | None = field(repr=False)
    takes_part: Bits | None = field(repr=False)
    observed: Bits | None = field(default=None, repr=False)
    weights: Floats | None = field(default=None, repr=False)
    further: tuple[FurtherOutcome, ...] = field(default=(), repr=False)
    found: PublicRows | None = field(default=None, repr=False)


R = TypeVar("R", bound="DataclassInstance")
_COLUMNS: Final = ("treatment", "outcome", "takes_part", "observed", "weights", "steps")


def columns_of(rows: object) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays with an entry per row that encoded rows hold, but further outcomes."""
    held = {name: getattr(rows, name, None) for name in _COLUMNS}
    return {name: column for name, column in held.items() if column is not None}


def map_columns(
    rows: R, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], **others: object
) -> R:
    """Return encoded rows with every array of `columns_of` changed, further outcomes' as well."""
    changed: dict[str, Any] = {name: change(held) for name, held in columns_of(rows).items()}
    if hasattr(rows, "further"):
        changed["further"] = tuple(map_columns(one, change) for one in rows.further)
    return replace(rows, **changed, **others)


def encode_covariates(table: Table, domain: Domain, gaps: dict[str, Bits] | None = None) -> Floats:
    """Return the covariates in [0, 1], one row per feature but indicators, shape (d, n).

    ``gaps``, if given, is filled with the columns that hold entries which are no number or no
    declared label, and where; for public columns only.
    """
    places = domain.places
    width = max((place.stop for place in places.values()), default=0)
    encoded = np.empty((width, table.rows))

    def encode(name: str) -> None:
        kind, first = domain.covariates[name], places[name].start
        if isinstance(kind, Interval):
            values = table.numbers(name)
            _scale_into(encoded[first], values, kind)
            gap = None if gaps is None else np.isnan(values)
        else:
            gap = ~_one_hot_into(encoded, first, table, name, kind)
        if gaps is not None and gap is not None and gap.any():
            gaps[name] = gap

    if encoded.size < _MANY_ENTRIES:
        for name in places:
            encode(name)
        return encoded
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        for _ in pool.map(encode, places):
            pass
    return encoded


def encode_arms(table: Table, domain: Domain) -> tuple[Bits | Codes, Bits]:
    """Return the arm of every row, and whether its entry says so.

    An entry that is missing or no declared label is in the arm that the domain names for others,
    and then says so; without one it takes no part, and its code is that of the reference.
    """
    treatment = domain.treatment
    table.require(treatment.column, "treatment")
    codes, known = read_arms(table, treatment)
    if treatment.other_code is not None:
        codes[~known] = treatment.other_code
        known = np.ones(table.rows, dtype=np.bool_)
    return (codes if treatment.size > 2 else codes.view(np.bool_)), known


def read_arms(table: Table, treatment: Treatment) -> tuple[Codes, Bits]:
    """Return the code of each row's arm and whether its own entry says so; if not, it is zero."""
    return _binned(table, treatment) if treatment.bins else _labelled(table, treatment)


def _labelled(table: Table, treatment: Treatment) -> tuple[Codes, Bits]:
    """Return the code of each row's label; rows with another have that of the reference."""
    codes = np.zeros(table.rows, dtype=np.uint8)
    known = np.zeros(table.rows, dtype=np.bool_)
    for code, label in enumerate(treatment.coded):
        hit = table.equals(treatment.column, label)
        codes[hit] = code
        known |= hit
    return codes, known


def _binned(table: Table, treatment: Treatment) -> tuple[Codes, Bits]:
    """Return the code of each dose's bin; beyond the outer edges it is that of the nearest."""
    doses = table.numbers(treatment.column)
    known = ~np.isnan(doses)
    inner = np.array(treatment.bins)[1:-1]
    bins = np.searchsorted(inner, np.where(known, doses, inner[0]), side="right")
    codes = np.array(treatment.codes, dtype=np.uint8)[bins]
    codes[~known] = 0
    return codes, known


def encode_rows(
    table: Table, domain: Domain, reading: Reading | None, *, outcome: bool, first: int = 0
) -> EncodedRows:
    """Encode some rows; public ones are looked over, and those that are not to be kept left out.

    ``first`` is the number of rows before these. At sample level, or without a reading, all rows
    are kept and none is looked at.
    """
    looks = reading is not None and reading.looks
    gaps: dict[str, Bits] | None = {} if looks else None
    covariates = encode_covariates(table, domain, gaps)
    treatment, takes_part = encode_arms(table, domain)
    outcomes = encode_outcomes(table, domain) if outcome else []
    weights, unweighted = encode_weights(table, domain)
    rows = EncodedRows(
        covariates, treatment, outcomes[0].steps if outcome else None, takes_part,
        outcomes[0].observed if outcome else None, weights, tuple(outcomes[1:]),
    )  # fmt: skip
    if reading is None or gaps is None:
        return rows
    found = look_over(
        table, domain, reading,
        takes_part=takes_part, gaps=gaps, first=first, unweighted=unweighted,
    )  # fmt: skip
    kept = found.kept
    if kept is None:
        return replace(rows, found=found)
    return map_columns(
        rows, lambda column: column[kept], covariates=covariates[:, kept], found=found
    )


def mark_missing(rows: EncodedRows, names: Sequence[str]) -> Bits:
    """Return where some covariates are missing, shape (k, m)."""
    marks = np.zeros((len(names), rows.treatment.size), dtype=np.bool_)
    missing = {} if rows.found is None else rows.found.missing
    for place, name in enumerate(names):
        if name in missing:
            marks[place] = missing[name]
    return marks


def encode_outcome(table: Table, domain: Domain) -> npt.NDArray[np.int32]:
    """Return the outcomes on the grid across their declared bounds."""
    for column in domain.outcome.columns:
        table.require(column, "outcome")
    if isinstance(domain.outcome, Survival):
        return domain.outcome.encode(*read_times(table, domain.outcome))
    bounds = domain.bounds
    values = read_outcome(table, domain.outcome)
    return quantize_outcomes(values, bounds.low, bounds.high, bounds.fill)


def encode_outcomes(table: Table, domain: Domain) -> list[FurtherOutcome]:
    """Return all outcomes, each on the grid across its own bounds, and who has one."""
    each = [domain.of_outcome(place) for place in range(len(domain.outcomes))]
    return [
        FurtherOutcome(
            encode_outcome(table, one),
            None if one.outcome.missing is None else encode_observed(table, one),
        )
        for one in each
    ]


def encode_observed(table: Table, domain: Domain) -> Bits:
    """Return True where there is an outcome; what cannot be read as a number is none."""
    for column in domain.outcome.columns:
        table.require(column, "outcome")
    if isinstance(domain.outcome, Survival):
        times, ended = read_times(table, domain.outcome)
        return ~np.isnan(times) & (ended | ~table.missing(domain.outcome.event))
    return ~np.isnan(read_outcome(table, domain.outcome))


def read_times(table: Table, outcome: Survival) -> tuple[Floats, Bits]:
    """Return times as numbers, NaN where there is none, and which of them ended in an event."""
    return table.numbers(outcome.column), table.equals(outcome.event, str(outcome.event_label))


def read_outcome(table: Table, outcome: Outcome) -> Floats:
    """Return an outcome as numbers, NaN where there is none; no entry can fail.

    With an event label an entry is 1 if it is that label and 0 if it is any other.
    """
    if outcome.event_label is not None:
        happened = table.equals(outcome.column, str(outcome.event_label))
        gone = table.missing(outcome.column) & ~happened
        return np.where(gone, np.nan, happened.astype(np.float64))
    read = table.truths if outcome.reads_labels else table.numbers
    return read(outcome.column)


def encode_weights(table: Table, domain: Domain) -> tuple[Floats | None, Bits | None]:
    """Return sampling weights as shares of their bound, and where they are none that is declared.

    Weights are clipped to [0, W], and a missing one is 0; None where none are declared.
    """
    if domain.weights is None:
        return None, None
    values = table.numbers(domain.weights.column)
    inside: Bits = (values >= 0) & (values <= domain.weights.high)
    clipped = np.clip(np.where(np.isnan(values), 0.0, values), 0.0, domain.weights.high)
    return clipped / domain.weights.high, ~inside


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


def _one_hot_into(out: Floats, first: int, table: Table, name: str, kind: Categories) -> Bits:
    """Mark each row's label; return which rows have a declared one."""
    known = np.zeros(table.rows, dtype=np.bool_)
    for offset, label in enumerate(kind.labels):
        hit = table.equals(name, label)
        known |= hit
        out[first + offset] = hit
    if kind.other is not None:
        out[first + kind.labels.index(kind.other)][~known] = 1.0
    return known
