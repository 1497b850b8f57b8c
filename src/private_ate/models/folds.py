"""What folds add up, and kernels over short runs of rows that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

import numpy as np

from private_ate.arrays import Floats
from private_ate.privacy.objective import SUM_ROWS
from private_ate.study import Added, Block, Summable

__all__ = ["LossSums", "by_chunks", "scatter"]

S = TypeVar("S", bound=Summable)


@dataclass(frozen=True, slots=True)
class LossSums(Added):
    """Sums over rows of the logistic loss and its derivatives; they add up over blocks."""

    rows: int
    loss: float
    gradient: Floats
    hessian: Floats


def by_chunks(kernel: Callable[[Block], S]) -> Callable[[Block], S]:
    """Return a kernel that adds up ``kernel`` over runs of `SUM_ROWS` rows."""

    def chunked(block: Block) -> S:
        starts = range(0, max(block.arm.size, 1), SUM_ROWS)  # an empty block is one run
        return reduce(add, (kernel(_rows_of(block, start, start + SUM_ROWS)) for start in starts))

    return chunked


def _rows_of(block: Block, start: int, stop: int) -> Block:
    """Return a run of a block's rows as a block."""
    rows = slice(start, stop)
    outcome = None if block.outcome is None else block.outcome[rows]
    return Block(
        block.covariates[rows],
        block.arm[rows],
        outcome,
        block.first + start,
        block.takes_part[rows],
        block.observed[rows],
        block.arms,
        block.weights[rows],
    )


def scatter(start: int, size: int) -> Floats:
    """Return a fixed number in [0, 1) for each of a run of rows, scattered like random ones.

    Every k-th row would meet any rhythm in the order of rows; the mixing is SplitMix64's.
    """
    word = np.arange(start + 1, start + size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((word ^ (word >> np.uint64(31))) >> np.uint64(11)) / 2.0**53
