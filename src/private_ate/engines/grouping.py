"""Groups of rows by shuffled positions: which places a stack of groups takes up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Integers
from private_ate.study import Grouping

__all__ = ["GroupPlaces", "group_places", "groups_of", "groups_per_stack"]


_STACK_ROWS: Final = 1 << 14  # as long as a block of a fold


@dataclass(frozen=True, slots=True)
class GroupPlaces:
    """Shuffled places of some groups, shape (g, b), and which of them are not padding.

    Padding repeats the group's own first place, so that nothing of another group comes in.
    """

    places: Integers
    inside: npt.NDArray[np.bool_]


def groups_per_stack(grouping: Grouping) -> int:
    """Return how many groups are worked on at once."""
    return max(_STACK_ROWS * grouping.count // grouping.size, 1)


def group_places(grouping: Grouping, start: int, stop: int) -> GroupPlaces:
    """Return the places of the groups from ``start`` up to ``stop``."""
    size, count = grouping.size, grouping.count
    edges = np.arange(start, stop + 1, dtype=np.int64) * size // count
    offsets = np.arange(-(-size // count))
    inside = offsets < np.diff(edges)[:, None]
    return GroupPlaces(edges[:-1, None] + np.where(inside, offsets, 0), inside)


def groups_of(grouping: Grouping, places: Integers) -> Integers:
    """Return the group of each place: the largest g with ``g·n // count ≤ place``."""
    groups: Integers = ((places + 1) * grouping.count - 1) // grouping.size
    return groups
