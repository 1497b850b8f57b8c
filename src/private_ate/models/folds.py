"""What folds add up, and kernels over short runs of rows that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

from private_ate.arrays import Floats
from private_ate.privacy.objective import SUM_ROWS
from private_ate.study import Added, Block, Summable

__all__ = ["LossSums", "by_chunks"]

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
