"""Columns as a study holds them: covariates in [0, 1], arms as bits, outcomes on their grid."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats
from private_ate.data.tables import Table
from private_ate.domain import Categories, Domain, Interval, label_text
from private_ate.privacy.sums import quantize_outcomes

__all__ = [
    "encode_covariates",
    "encode_observed",
    "encode_outcome",
    "encode_participation",
    "encode_treatment",
]

_CACHED_ROWS = 1 << 16  # rows of a column that stay in the processor's cache
_MANY_ENTRIES = 1 << 23  # covariates of so many rows times columns are encoded on threads


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


def _one_hot_into(out: Floats, first: int, table: Table, name: str, kind: Categories) -> None:
    known = np.zeros(table.rows, dtype=np.bool_)
    for offset, label in enumerate(kind.labels):
        hit = table.equals(name, label)
        known |= hit
        out[first + offset] = hit
    out[first + kind.labels.index(kind.other)][~known] = 1.0
