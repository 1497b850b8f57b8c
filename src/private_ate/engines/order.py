"""Neighbours along a score: exact, linear after the sort, with limits on reuse.

Scores are integers, so distances and ties are exact. Each arm is kept sorted by score and then by
row; units of equal score form a group. A unit looks outward from its place, group by group. Units
of a group are always taken in row order, so the exhausted ones are a prefix of the group, and
groups that are exhausted are skipped by pointers that shorten as they are followed: matching costs
O(n N) after a sort of O(n log n), in O(n) memory.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numba
import numpy as np
import numpy.typing as npt

__all__ = ["ScoreOrder"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Bits = npt.NDArray[np.bool_]

_NO_LIMIT = np.iinfo(np.int32).max
_kernel = numba.njit(cache=True, nogil=True, boundscheck=False)


@dataclass(frozen=True, slots=True)
class _Arm:
    """One arm in score order: its rows, and where each group of equal scores begins."""

    rows: Indices = field(repr=False)
    group_score: Integers = field(repr=False)
    group_start: Indices = field(repr=False)


@dataclass(frozen=True, slots=True)
class ScoreOrder:
    """Both arms sorted along a score, and the place of every row in the opposite arm."""

    treatment: Bits = field(repr=False)
    scores: Integers = field(repr=False)
    treated: _Arm = field(repr=False)
    control: _Arm = field(repr=False)
    place: Indices = field(repr=False)

    @classmethod
    def sort(cls, scores: Integers, treatment: Bits) -> ScoreOrder:
        """Sort rows by score and row index, in one stable sort."""
        order = _stable_order(scores)
        arm_of = treatment[order]
        treated, control = (_group(order[arm_of], scores), _group(order[~arm_of], scores))
        place = np.empty(scores.size, dtype=np.int32)
        _locate(treated.rows, scores, control.group_score, place)
        _locate(control.rows, scores, treated.group_score, place)
        return cls(treatment, scores, treated, control, place)

    def count_uses(self, neighbors: int) -> Indices:
        """Return how often each row is among the first neighbours of an opposite unit."""
        counts = np.zeros(self.scores.size, dtype=np.int32)

        def count(arms: tuple[_Arm, _Arm]) -> None:
            units, others = arms
            # Any order of the units gives the same counts; along the score is cheapest.
            uses, _ = _match(
                units.rows, self.scores, self.place,
                others.rows, others.group_score, others.group_start, neighbors, _NO_LIMIT,
            )  # fmt: skip
            counts[others.rows] = uses

        self._both_ways(count)
        return counts

    def match_greedily(
        self, neighbors: int, treated_limit: int | None, control_limit: int | None
    ) -> Floats:
        """Return the mass each row receives when units are matched in row order."""
        mass = np.zeros(self.scores.size)
        limits = {id(self.treated): treated_limit, id(self.control): control_limit}

        def match(arms: tuple[_Arm, _Arm]) -> None:
            units, others = arms
            limit = limits[id(others)]
            _, received = _match(
                np.flatnonzero(self.treatment == (units is self.treated)), self.scores, self.place,
                others.rows, others.group_score, others.group_start,
                neighbors, _NO_LIMIT if limit is None else min(limit, _NO_LIMIT),
            )  # fmt: skip
            mass[others.rows] = received

        self._both_ways(match)
        return mass

    def match_sharing_ties(self, neighbors: int) -> Floats:
        """Return the mass each row receives without limits, equal distances sharing."""
        mass = np.zeros(self.scores.size)

        def match(arms: tuple[_Arm, _Arm]) -> None:
            units, others = arms
            received = _share(
                units.rows, self.scores, self.place,
                others.group_score, others.group_start, neighbors,
            )  # fmt: skip
            sizes = np.diff(others.group_start)
            mass[others.rows] = np.repeat(received, sizes)

        self._both_ways(match)
        return mass

    def _both_ways(self, job: object) -> None:
        """Run a job for treated among controls and for controls among treated, side by side."""
        directions = [(self.treated, self.control), (self.control, self.treated)]
        if self.scores.size < 20_000:
            for direction in directions:
                job(direction)  # type: ignore[operator]  # a callable of two arms
            return
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(job, directions))  # type: ignore[arg-type]  # as above


def _stable_order(scores: Integers) -> Indices:
    """Return row indices by score and then by row.

    Where score and row fit one machine word together, sorting the words is several times faster
    than a stable argsort.
    """
    lowest = int(scores.min(initial=0))
    row_bits = int(scores.size).bit_length()
    if (int(scores.max(initial=0)) - lowest).bit_length() + row_bits > 64:
        return np.argsort(scores, kind="stable").astype(np.int32)
    words = (scores - lowest).view(np.uint64) << np.uint64(row_bits)
    words |= np.arange(scores.size, dtype=np.uint64)
    words.sort()
    words &= np.uint64((1 << row_bits) - 1)
    return words.astype(np.int32)


def _group(rows: Indices, scores: Integers) -> _Arm:
    sorted_scores = scores[rows]
    fresh = np.ones(rows.size, dtype=np.bool_)
    np.not_equal(sorted_scores[1:], sorted_scores[:-1], out=fresh[1:])
    start = np.flatnonzero(fresh).astype(np.int32)
    return _Arm(rows, sorted_scores[start], np.append(start, np.int32(rows.size)))


@_kernel
def _locate(rows, scores, group_score, place):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # compiled
    """Write for each row the first group of the other arm whose score is not below its own."""
    group = 0
    for row in rows:
        while group < group_score.size and group_score[group] < scores[row]:
            group += 1
        place[row] = group


@_kernel
def _find(pointers, index):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # compiled
    """Follow pointers to a group that is left, halving the path."""
    while pointers[index] != index:
        pointers[index] = pointers[pointers[index]]
        index = pointers[index]
    return index


@_kernel
def _match(units, scores, place, rows, group_score, group_start, neighbors, limit):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, C901, PLR0912, PLR0913, PLR0915  # compiled
    """Give each unit its nearest available candidates; return uses and mass by position.

    Pointers are shifted by one: index 0 stands for "nothing to the left", the last for "nothing
    to the right"; both point to themselves.
    """
    groups = group_score.size
    leftward = np.arange(groups + 2).astype(np.int32)
    rightward = np.arange(groups + 2).astype(np.int32)
    head = group_start[:-1].copy()
    uses = np.zeros(rows.size, dtype=np.int32)
    mass = np.zeros(rows.size)
    picked = np.empty(neighbors, dtype=np.int32)
    picked_group = np.empty(neighbors, dtype=np.int32)
    for unit in units:
        score = scores[unit]
        left = _find(leftward, place[unit])  # group place − 1, shifted
        right = _find(rightward, place[unit] + 1)
        found = 0
        while found < neighbors and (left > 0 or right <= groups):
            if right > groups:
                side = -1
            elif left == 0:
                side = 1
            else:
                nearer = (score - group_score[left - 1]) - (group_score[right - 1] - score)
                side = 0 if nearer == 0 else (-1 if nearer < 0 else 1)
            if side != 0:
                group = (left if side < 0 else right) - 1
                position = head[group]
                while found < neighbors and position < group_start[group + 1]:
                    picked[found] = position
                    picked_group[found] = group
                    found += 1
                    position += 1
            else:
                first, second = head[left - 1], head[right - 1]
                first_end, second_end = group_start[left], group_start[right]
                while found < neighbors and (first < first_end or second < second_end):
                    if second >= second_end or (first < first_end and rows[first] < rows[second]):
                        picked[found] = first
                        picked_group[found] = left - 1
                        first += 1
                    else:
                        picked[found] = second
                        picked_group[found] = right - 1
                        second += 1
                    found += 1
            if found < neighbors:
                if side <= 0:
                    left = _find(leftward, left - 1)
                if side >= 0:
                    right = _find(rightward, right + 1)
        if found == 0:
            continue
        share = 1.0 / found
        for index in range(found):
            position, group = picked[index], picked_group[index]
            uses[position] += 1
            mass[position] += share
            if uses[position] == limit:
                head[group] = position + 1
                if head[group] == group_start[group + 1]:
                    leftward[group + 1] = group
                    rightward[group + 1] = group + 2
    return uses, mass


@_kernel
def _share(units, scores, place, group_score, group_start, neighbors):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202  # compiled
    """Return the mass that each member of a group receives when equal distances share."""
    groups = group_score.size
    received = np.zeros(groups)
    candidates = group_start[groups]
    wanted = min(neighbors, candidates)
    if wanted == 0:
        return received
    for unit in units:
        score = scores[unit]
        left, right = place[unit] - 1, place[unit]
        missing = wanted
        while missing > 0:
            reach_left = left >= 0
            reach_right = right < groups
            if reach_left and reach_right:
                nearer = (score - group_score[left]) - (group_score[right] - score)
                reach_left = nearer <= 0
                reach_right = nearer >= 0
            size = 0
            if reach_left:
                size += group_start[left + 1] - group_start[left]
            if reach_right:
                size += group_start[right + 1] - group_start[right]
            taken = min(size, missing)
            share = taken / (size * wanted)
            if reach_left:
                received[left] += share
                left -= 1
            if reach_right:
                received[right] += share
                right += 1
            missing -= taken
    return received
