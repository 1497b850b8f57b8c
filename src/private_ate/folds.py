"""Kernels over short runs of rows, so that their work stays in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TypeVar

from private_ate.privacy.objective import SUM_ROWS
from private_ate.study import Block, Summable

__all__ = ["Total", "by_chunks", "rows_of"]

S = TypeVar("S", bound=Summable)


@dataclass(frozen=True, slots=True)
class Total:
    """One exact sum over rows, in steps of some grid."""

    steps: int

    def __add__(self, other: Total) -> Total:
        return Total(self.steps + other.steps)


def by_chunks(kernel: Callable[[Block], S], stride: int = 1) -> Callable[[Block], S]:
    """Return a kernel that adds up ``kernel`` over runs of 2¹² of every ``stride``-th row."""

    def chunked(block: Block) -> S:
        reach = SUM_ROWS * stride
        starts = range(0, max(block.treatment.size, 1), reach)
        parts = (kernel(rows_of(block, slice(start, start + reach, stride))) for start in starts)
        return reduce(add, parts)

    return chunked


def rows_of(block: Block, rows: slice) -> Block:
    """Return some of a block's rows as a block."""
    outcome = None if block.outcome is None else block.outcome[rows]
    start = block.first + (rows.start or 0)
    return Block(block.covariates[rows], block.treatment[rows], outcome, start)
