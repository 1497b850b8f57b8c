"""Synthetic records whose marginals approach given ones, changed a few at a time.

Rows leave cells that are too full and enter cells that are too empty, either as a copy of a row
that is there or by changing only the columns of the marginal. Works on released numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.baselines.synthesis.consistency import NoisyMarginal
from private_ate.privacy.entropy import Generator

__all__ = ["independent_rows", "synthesise"]


_DECAY, _DECAY_EVERY = 0.84, 20  # how the share of rows that may move falls with the rounds


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

    ``watch`` is told the number of finished rounds and says whether to go on.
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
