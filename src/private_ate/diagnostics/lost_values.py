"""Counts of entries that the declared domain cut off or that are missing. Not private."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from private_ate.arrays import Floats
from private_ate.data.encoding import read_arms, read_outcome
from private_ate.data.tables import Table
from private_ate.domain import Domain, Interval
from private_ate.release.curator import LostValues

__all__ = ["count_lost"]


def count_lost(table: Table, domain: Domain) -> dict[str, LostValues]:
    """Return for each column in use how many of its entries were not used as they are."""
    columns = [domain.treatment.column, domain.outcome.column, *domain.covariates]
    chunks = table.chunks(columns)
    totals: dict[str, Counter[str]] = {name: Counter() for name in columns}
    for chunk in chunks:
        for name, found in _chunk(chunk, domain).items():
            totals[name].update(found)
    return {name: LostValues(**found) for name, found in totals.items()}


def _chunk(table: Table, domain: Domain) -> dict[str, Mapping[str, int]]:
    _, known = read_arms(table, domain.treatment)
    outcome = domain.outcome
    found: dict[str, Mapping[str, int]] = {
        domain.treatment.column: {"undeclared": int(np.count_nonzero(~known))},
        outcome.column: _numbers(read_outcome(table, outcome), outcome.bounds),
    }
    for name, kind in domain.covariates.items():
        if isinstance(kind, Interval):
            found[name] = _numbers(table.numbers(name), kind)
        else:
            hits = [table.equals(name, label) for label in kind.labels]
            declared = np.logical_or.reduce(hits)
            found[name] = {"undeclared": int(np.count_nonzero(~declared))}
    return found


def _numbers(values: Floats, bounds: Interval | None) -> dict[str, int]:
    counts = {"missing": int(np.count_nonzero(np.isnan(values)))}
    if bounds is not None:
        counts["below"] = int(np.count_nonzero(values < bounds.low))
        counts["above"] = int(np.count_nonzero(values > bounds.high))
    return counts
