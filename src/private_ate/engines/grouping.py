"""Groups of rows by shuffled positions: which places a stack takes up, and rows in that order.

Columns are read from their first row to their last, a batch of groups at a time, and put in order
within the batch: several times as fast as fetching rows in shuffled order, and the only order
that a disk is good at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Codes, Floats, Integers
from private_ate.study import Grouping, Groups

__all__ = [
    "GatheredRows", "RowOrder", "batches", "group_places", "groups_of",
    "groups_per_stack",
]  # fmt: skip


_STACK_ROWS: Final = 1 << 14  # as long as a block of a fold
_BATCHES: Final = 8  # parts in which rows are copied: each copy is an eighth of the columns
_FEWEST_STACKS: Final = 8  # of a batch


def groups_per_stack(grouping: Grouping) -> int:
    """Return how many groups are worked on at once."""
    return max(_STACK_ROWS * grouping.count // grouping.size, 1)


def group_places(grouping: Grouping, start: int, stop: int) -> tuple[Integers, Bits]:
    """Return the shuffled places of some groups, shape (g, b), and which are not padding.

    Padding repeats the group's own first place, so that nothing of another group comes in.
    """
    size, count = grouping.size, grouping.count
    edges = np.arange(start, stop + 1, dtype=np.int64) * size // count
    offsets = np.arange(-(-size // count))
    inside = offsets < np.diff(edges)[:, None]
    return edges[:-1, None] + np.where(inside, offsets, 0), inside


def batches(grouping: Grouping) -> Iterator[tuple[int, int]]:
    """Go through runs of groups, each a whole number of stacks but for the last."""
    stack = groups_per_stack(grouping)
    step = stack * max(-(-grouping.count // (_BATCHES * stack)), _FEWEST_STACKS)
    for first in range(0, grouping.count, step):
        yield first, min(first + step, grouping.count)


@dataclass(frozen=True, slots=True)
class RowOrder:
    """Where the rows of some groups are found, and how they follow each other by place.

    Attributes
    ----------
    start : int
        The first of their places.
    rows : array of int64, shape (m,)
        Their positions in the study, ascending.
    order : array of int64, shape (m,)
        For every place from ``start`` on, which of ``rows`` has it.
    """

    start: int
    rows: Integers = field(repr=False)
    order: Integers = field(repr=False)

    @classmethod
    def of(cls, grouping: Grouping, places: Integers, first: int, last: int) -> RowOrder:
        """Find the rows of the groups from ``first`` up to ``last`` among all rows' places."""
        start, stop = (group * grouping.size // grouping.count for group in (first, last))
        rows = np.flatnonzero((places >= start) & (places < stop))
        order = np.empty(rows.size, dtype=np.int64)
        order[places[rows] - start] = np.arange(rows.size)
        return cls(start, rows, order)

    def copy(self, column: npt.NDArray[Any], out: npt.NDArray[Any] | None = None) -> Any:  # noqa: ANN401  # an array of the type asked for
        """Return a column's entries in the order of their places."""
        found = np.take(column, self.rows, mode="clip")  # other modes would copy once more
        if out is not None:
            found = found.astype(out.dtype, copy=False)
        return np.take(found, self.order, out=out, mode="clip")


@dataclass(frozen=True, slots=True)
class GatheredRows:
    """Rows in the order of their places, the first of which is ``start``; covariates (d, m)."""

    start: int
    covariates: Floats = field(repr=False)
    arm: Codes = field(repr=False)
    outcome: npt.NDArray[np.int32] = field(repr=False)
    takes_part: Bits | None = field(repr=False)
    weights: Floats | None = field(default=None, repr=False)

    def groups(self, grouping: Grouping, first: int, last: int) -> Groups:
        """Stack some groups whose rows are all here."""
        places, inside = group_places(grouping, first, last)
        places -= self.start
        covariates = np.take(self.covariates, places.reshape(-1), axis=1, mode="clip")
        covariates = covariates.reshape(-1, *places.shape)
        if self.takes_part is not None:
            inside = inside & self.takes_part[places]
        groups = Groups(
            np.moveaxis(covariates, 0, -1), self.arm[places], self.outcome[places], inside
        )
        return groups if self.weights is None else replace(groups, weights=self.weights[places])


def groups_of(grouping: Grouping, places: Integers) -> Integers:
    """Return the group of each place: the largest g with ``g·n // count ≤ place``."""
    groups: Integers = ((places + 1) * grouping.count - 1) // grouping.size
    return groups
