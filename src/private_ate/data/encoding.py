"""Columns as a study holds them: covariates in [0, 1], arms as bits, outcomes on their grid.

Nothing here raises for a value. Rows of public columns are looked over on the way, so that a table
is parsed once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats
from private_ate.data.public_columns import PublicRows, look_over
from private_ate.data.rules import Reading
from private_ate.data.tables import Table
from private_ate.domain import Categories, Domain, Interval, label_text
from private_ate.privacy.sums import quantize_outcomes

__all__ = [
    "EncodedRows",
    "encode_covariates",
    "encode_observed",
    "encode_outcome",
    "encode_participation",
    "encode_rows",
    "encode_treatment",
    "mark_missing",
]

_CACHED_ROWS = 1 << 16  # rows of a column that stay in the processor's cache
_MANY_ENTRIES = 1 << 23  # covariates of so many rows times columns are encoded on threads


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Encoded rows of a table or of a chunk of one; ``found`` tells of public columns."""

    covariates: Floats = field(repr=False)
    treatment: Bits = field(repr=False)
    outcome: npt.NDArray[np.int32] | None = field(repr=False)
    takes_part: Bits = field(repr=False)
    observed: Bits | None = field(default=None, repr=False)
    found: PublicRows | None = field(default=None, repr=False)


def encode_covariates(table: Table, domain: Domain, gaps: dict[str, Bits] | None = None) -> Floats:
    """Return the covariates in [0, 1], one row per feature but indicators, shape (d, n).

    ``gaps``, if given, is filled with the columns that hold entries which are no number or no
    declared label, and where; for public columns only.
    """
    widths = [
        1 if isinstance(kind, Interval) else len(kind.labels) for kind in domain.covariates.values()
    ]
    encoded = np.empty((sum(widths), table.rows))
    firsts = accumulate(widths, initial=0)

    def encode(first: int, name: str) -> None:
        kind = domain.covariates[name]
        if isinstance(kind, Interval):
            values = table.numbers(name)
            _scale_into(encoded[first], values, kind)
            gap = None if gaps is None else np.isnan(values)
        else:
            gap = ~_one_hot_into(encoded, first, table, name, kind)
        if gaps is not None and gap is not None and gap.any():
            gaps[name] = gap

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
    """Return True where the entry is the treated label, or any but control's if so declared.

    Everything else is control, or takes no part; see ``encode_participation``.
    """
    treatment = domain.treatment
    table.require(treatment.column, "treatment")
    if treatment.treats_others:
        return ~table.equals(treatment.column, label_text(treatment.control))
    return table.equals(treatment.column, label_text(treatment.treated))


def encode_participation(table: Table, domain: Domain) -> Bits:
    """Return True where the entry is one of the two declared labels of treatment.

    Everywhere, if the domain says which arm any other entry is in.
    """
    column = domain.treatment.column
    table.require(column, "treatment")
    if domain.treatment.other is not None:
        return np.ones(table.rows, dtype=np.bool_)
    labels = (domain.treatment.treated, domain.treatment.control)
    first, second = (table.equals(column, label_text(label)) for label in labels)
    return first | second


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
    treatment = encode_treatment(table, domain)
    takes_part = encode_participation(table, domain)
    steps = encode_outcome(table, domain) if outcome else None
    leaves_out = outcome and domain.outcome.missing is not None
    observed = encode_observed(table, domain) if leaves_out else None
    if reading is None or gaps is None:
        return EncodedRows(covariates, treatment, steps, takes_part, observed)
    found = look_over(table, domain, reading, takes_part=takes_part, gaps=gaps, first=first)
    kept = found.kept
    if kept is not None:
        covariates, treatment, takes_part = covariates[:, kept], treatment[kept], takes_part[kept]
        steps = None if steps is None else steps[kept]
        observed = None if observed is None else observed[kept]
    return EncodedRows(covariates, treatment, steps, takes_part, observed, found)


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
    table.require(domain.outcome.column, "outcome")
    bounds = domain.bounds
    values = table.numbers(domain.outcome.column)
    return quantize_outcomes(values, bounds.low, bounds.high, bounds.fill)


def encode_observed(table: Table, domain: Domain) -> Bits:
    """Return True where there is an outcome; what cannot be read as a number is none."""
    table.require(domain.outcome.column, "outcome")
    return ~np.isnan(table.numbers(domain.outcome.column))


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
