"""Noisy marginals made to agree, and synthetic records whose marginals approach them.

Marginals get equal totals and equal shared marginals, and nothing negative. Rows then leave entries
that are too full and enter entries that are too empty, as a copy of a row that is there or by a
change of the marginal's columns alone. Works on released numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.privacy.entropy import Generator

__all__ = ["NoisyMarginal", "agree", "common_total", "independent_rows", "project", "synthesise"]

_ROUNDS = 50
_DECAY, _DECAY_EVERY = 0.84, 20  # how the share of rows that may move falls with the rounds


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


def independent_rows(
    tables: Sequence[NoisyMarginal], columns: int, rows: int, rng: Generator
) -> Integers:
    """Draw each column by itself from the first table that holds it."""
    codes = np.zeros((rows, columns), dtype=np.int64)
    for column in range(columns):
        table = next(table for table in tables if column in table.columns)
        weights = np.maximum(table.onto((column,)), 0.0)
        whole = weights.sum()
        share = weights / whole if whole > 0 else np.full(weights.size, 1 / weights.size)
        counts = _round_up_some(share * rows, rng)
        drawn = np.repeat(np.arange(weights.size), counts)
        codes[:, column] = rng.permutation(
            np.resize(drawn, rows) if drawn.size else codes[:, column]
        )
    return codes


def synthesise(
    codes: Integers,
    tables: Sequence[NoisyMarginal],
    *,
    iterations: int,
    rng: Generator,
    watch: Callable[[int], bool],
) -> Integers:
    """Move rows until their marginals are near those of the tables.

    ``watch`` gets the number of finished rounds and returns whether to go on.
    """
    rows = len(codes)
    current = codes.copy()
    targets = [table.values.ravel() * (rows / max(table.values.sum(), 1e-9)) for table in tables]
    for iteration in range(iterations):
        share = _DECAY ** (iteration // _DECAY_EVERY)
        errors = [
            np.abs(_count(current, table) - target).sum()
            for table, target in zip(tables, targets, strict=True)
        ]
        copied = 0.5 if iteration % 2 == 0 else 1.0
        for place in np.argsort(errors)[::-1]:
            _update(current, tables[place], targets[place], share, copied, rng)
        if not watch(iteration + 1):
            break
    return current


def _update(
    codes: Integers,
    table: NoisyMarginal,
    target: Floats,
    share: float,
    copied: float,
    rng: Generator,
) -> None:
    """Move rows of one marginal from cells that are too full to cells that are too empty."""
    index = _index(codes, table)
    counts = np.bincount(index, minlength=target.size)
    missing = np.where(counts > 0, np.minimum(target - counts, share * counts), share * target)
    arriving = _round_up_some(np.maximum(missing, 0.0), rng)
    leaving = _round_up_some(_leaving(counts, target, float(arriving.sum())), rng)
    order = rng.permutation(len(codes))
    cells = index[order].astype(np.uint16 if target.size < 1 << 16 else np.int64)
    order = order[np.argsort(cells, kind="stable")]  # rows by cell, in random order within
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    rank = np.arange(len(codes)) - np.repeat(starts, counts)
    freed = rng.permutation(order[rank < np.repeat(leaving, counts)])
    wanted = rng.permutation(np.repeat(np.arange(target.size), arriving))
    moved = min(freed.size, wanted.size)
    freed, wanted = freed[:moved], wanted[:moved]
    copies = (counts[wanted] > 0) & (rng.random(moved) < copied)
    chosen = wanted[copies]
    source = starts[chosen] + (rng.random(chosen.size) * counts[chosen]).astype(np.int64)
    codes[freed[copies]] = codes[order[source]]
    changed = np.unravel_index(wanted[~copies], table.values.shape)
    for column, values in zip(table.columns, changed, strict=True):
        codes[freed[~copies], column] = values


def _leaving(counts: Integers, target: Floats, arriving: float) -> Floats:
    """Return how many rows leave each cell: at most a common share, as many as arrive."""
    excess = np.maximum(counts - target, 0.0)
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if np.minimum(excess, middle * counts).sum() < arriving:
            low = middle
        else:
            high = middle
    leaving: Floats = np.minimum(excess, high * counts)
    return leaving


def _round_up_some(values: Floats, rng: Generator) -> Integers:
    """Round at random so that expectations stay."""
    rounded: Integers = np.floor(values + rng.random(values.shape)).astype(np.int64)
    return rounded


def _index(codes: Integers, table: NoisyMarginal) -> Integers:
    flat = codes[:, table.columns[0]]
    for column, size in zip(table.columns[1:], table.values.shape[1:], strict=True):
        flat = flat * size + codes[:, column]
    return flat


def _count(codes: Integers, table: NoisyMarginal) -> Integers:
    return np.bincount(_index(codes, table), minlength=table.values.size)
