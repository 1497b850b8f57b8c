"""What folds add up, and kernels over short runs of rows that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

from private_ate.arrays import Floats
from private_ate.privacy.objective import SUM_ROWS
from private_ate.study import Block, Summable

__all__ = ["LossSums", "Total", "by_chunks", "rows_of"]

S = TypeVar("S", bound=Summable)


@dataclass(frozen=True, slots=True)
class Total:
    """One exact sum over rows, in steps of some grid."""

    steps: int

    def __add__(self, other: Total) -> Total:
        return Total(self.steps + other.steps)


@dataclass(frozen=True, slots=True)
class LossSums:
    """Sums over rows of the logistic loss and its derivatives; they add up over blocks."""

    rows: int
    loss: float
    gradient: Floats
    hessian: Floats

    def __add__(self, other: LossSums) -> LossSums:
        return LossSums(
            self.rows + other.rows,
            self.loss + other.loss,
            self.gradient + other.gradient,
            self.hessian + other.hessian,
        )


def by_chunks(kernel: Callable[[Block], S]) -> Callable[[Block], S]:
    """Return a kernel that adds up ``kernel`` over runs of 2¹² rows."""

    def chunked(block: Block) -> S:
        starts = range(0, max(block.treatment.size, 1), SUM_ROWS)
        parts = (kernel(rows_of(block, slice(start, start + SUM_ROWS))) for start in starts)
        return reduce(add, parts)

    return chunked


def rows_of(block: Block, rows: slice) -> Block:
    """Return some of a block's rows as a block."""
    outcome = None if block.outcome is None else block.outcome[rows]
    start = block.first + (rows.start or 0)
    takes_part = None if block.takes_part is None else block.takes_part[rows]
    observed = None if block.observed is None else block.observed[rows]
    return Block(
        block.covariates[rows], block.treatment[rows], outcome, start, takes_part, observed
    )
