"""Noisy marginals made to agree: equal totals, equal shared marginals, nothing negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from private_ate.arrays import Floats

__all__ = ["NoisyMarginal", "agree", "common_total", "project"]


_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class NoisyMarginal:
    """A noisy marginal in the shape of its columns (sorted) and the ρ that it was paid with."""

    columns: tuple[int, ...]
    values: Floats
    rho: float

    def onto(self, columns: tuple[int, ...]) -> Floats:
        """Return the marginal of some of its columns."""
        summed: Floats = self.values.sum(axis=self._other_axes(columns))
        return summed

    def moved(self, columns: tuple[int, ...], difference: Floats) -> NoisyMarginal:
        """Spread a difference of a marginal evenly over the cells that add up to it."""
        spread = difference / (self.values.size / difference.size)
        shape = [
            n if c in columns else 1 for c, n in zip(self.columns, self.values.shape, strict=True)
        ]
        return replace(self, values=self.values + spread.reshape(shape))

    def _other_axes(self, columns: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(axis for axis, column in enumerate(self.columns) if column not in columns)


def common_total(tables: Sequence[NoisyMarginal]) -> float:
    """Return the mean of the totals, weighted by the inverse of their variance."""
    weights = np.array([table.rho / table.values.size for table in tables])
    totals = np.array([table.values.sum() for table in tables])
    return float(weights @ totals / weights.sum())


def agree(tables: Sequence[NoisyMarginal], total: float) -> list[NoisyMarginal]:
    """Return tables that share a total and their common marginals and hold no negative count."""
    current = [table.moved((), np.asarray(total - table.values.sum())) for table in tables]
    shared = _intersections([set(table.columns) for table in tables])
    for _ in range(_ROUNDS):
        for columns in shared:
            current = _align(current, columns)
        if min(float(table.values.min()) for table in current) >= -1e-9 * total:
            break
        current = [replace(table, values=project(table.values, total)) for table in current]
    return [replace(table, values=project(table.values, total)) for table in current]


def project(values: Floats, total: float) -> Floats:
    """Return the nearest table without negative counts that adds up to the total."""
    falling = np.sort(values.ravel())[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    last = int(np.flatnonzero(falling > excess)[-1]) if total > 0 else 0
    projected: Floats = np.maximum(values - excess[last], 0.0)
    return projected


def _align(tables: list[NoisyMarginal], columns: tuple[int, ...]) -> list[NoisyMarginal]:
    """Give all tables that hold the columns the same marginal of them."""
    holds = [set(columns) <= set(table.columns) for table in tables]
    holders = [table for table, held in zip(tables, holds, strict=True) if held]
    marginals = [table.onto(columns) for table in holders]
    weights = np.array([table.rho / table.values.size for table in holders])
    target = np.tensordot(weights / weights.sum(), np.stack(marginals), axes=1)
    return [
        table.moved(columns, target - table.onto(columns)) if held else table
        for table, held in zip(tables, holds, strict=True)
    ]


def _intersections(sets: list[set[int]]) -> list[tuple[int, ...]]:
    """Return the column sets that two tables share, smallest first."""
    found = {tuple(sorted(one & two)) for one, two in combinations(sets, 2)}
    return sorted(found - {()}, key=lambda columns: (len(columns), columns))
