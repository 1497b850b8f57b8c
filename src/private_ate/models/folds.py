"""What folds add up, and kernels over short runs of rows that stay in the processor's cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final, Protocol, TypeVar

import numpy as np

from private_ate.arrays import Floats
from private_ate.privacy.objective import SUM_ROWS
from private_ate.study import Block, Summable

__all__ = [
    "FEATURE_ROWS",
    "FewRows",
    "Folds",
    "LossSums",
    "Total",
    "by_chunks",
    "few_rows",
    "rows_of",
    "runs",
    "scatter",
]

S = TypeVar("S", bound=Summable)

FEATURE_ROWS: Final = 1 << 11  # rows of which a few hundred features stay in the cache


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


class Folds(Protocol):
    """What a solver asks of rows."""

    def fold(self, kernel: Callable[[Block], LossSums], *, title: str = "") -> LossSums:
        """Return the sum of the kernel over all blocks."""


@dataclass(frozen=True, slots=True)
class FewRows:
    """Public rows gathered from all blocks, at hand for as many passes as it takes."""

    blocks: tuple[Block, ...]

    def __add__(self, other: FewRows) -> FewRows:
        return FewRows(self.blocks + other.blocks)

    def joined(self) -> FewRows:
        """Return the rows as one piece."""
        covariates = np.concatenate([block.covariates for block in self.blocks])
        arm = np.concatenate([block.arm for block in self.blocks])
        return FewRows((Block(covariates, arm, None, arms=self.blocks[0].arms),))

    def fold(self, kernel: Callable[[Block], LossSums], *, title: str = "") -> LossSums:  # noqa: ARG002
        """Return the sum of the kernel over the gathered rows."""
        return reduce(add, map(kernel, self.blocks))


def few_rows(stride: int) -> Callable[[Block], FewRows]:
    """Return a kernel that gathers covariates and arms of one row in ``stride``."""

    def kernel(block: Block) -> FewRows:
        # Copies: views would keep the whole block alive.
        covariates, arm = block.covariates[::stride].copy(), block.arm[::stride].copy()
        return FewRows((Block(covariates, arm, None, arms=block.arms),))

    return kernel


def by_chunks(kernel: Callable[[Block], S]) -> Callable[[Block], S]:
    """Return a kernel that adds up ``kernel`` over runs of `SUM_ROWS` rows."""

    def chunked(block: Block) -> S:
        return reduce(add, (kernel(rows_of(block, run)) for run in runs(block, SUM_ROWS)))

    return chunked


def runs(block: Block, rows: int) -> Iterator[slice]:
    """Go through a block in runs of ``rows`` rows; an empty block is one run."""
    for start in range(0, max(block.arm.size, 1), rows):
        yield slice(start, start + rows)


def rows_of(block: Block, rows: slice) -> Block:
    """Return some of a block's rows as a block."""
    outcome = None if block.outcome is None else block.outcome[rows]
    start = block.first + (rows.start or 0)
    return Block(
        block.covariates[rows],
        block.arm[rows],
        outcome,
        start,
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
