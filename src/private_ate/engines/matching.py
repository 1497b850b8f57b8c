"""Neighbours along a score: exact, linear after the sort, with limits on reuse.

Scores are integers, so distances and ties are exact. Each arm is kept sorted by score and then by
row. Without limits the nearest candidates are a window that slides along with the units. With
limits, units of equal score form a group, and a unit looks outward from its place. Units
of a group are always taken in row order, so the exhausted ones are a prefix of the group, and
groups that are exhausted are skipped by pointers that shorten as they are followed: matching costs
O(n N) after a sort of O(n log n), in O(n) memory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats, Integers

__all__ = ["ScoreOrder"]

Indices = npt.NDArray[np.int32]

_NO_LIMIT = np.iinfo(np.int32).max
_kernel = numba.njit(cache=True, nogil=True, boundscheck=False)


@dataclass(frozen=True, slots=True)
class _Arm:
    """One arm in score order: its rows and their scores."""

    rows: Indices = field(repr=False)
    scores: Integers = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Where the groups of equal scores of an arm begin, and the score of each."""

    score: Integers = field(repr=False)
    start: Indices = field(repr=False)


@dataclass(frozen=True)  # without slots, which leave no room for what is cached
class ScoreOrder:
    """Both arms sorted along a score; groups and places are found when limits need them.

    An order that is ``one_way`` looks for treated neighbours of all others and not the other way
    round: with the members of one of several arms as the treated it finds who stands in for whom
    in that arm.
    """

    treatment: Bits = field(repr=False)
    scores: Integers = field(repr=False)
    treated: _Arm = field(repr=False)
    control: _Arm = field(repr=False)
    one_way: bool = False

    @classmethod
    def sort(cls, scores: Integers, treatment: Bits, *, one_way: bool = False) -> ScoreOrder:
        """Sort rows by score and row index, in one stable sort."""
        return cls(treatment, scores, *_sorted_arms(scores, treatment), one_way)

    @cached_property
    def _groups(self) -> tuple[_Groups, _Groups]:
        """The groups of the treated and of the control arm; of candidates alone if one way."""
        others = self.control.scores[:0] if self.one_way else self.control.scores
        return _group(self.treated.scores), _group(others)

    @cached_property
    def _place(self) -> Indices:
        """For each row, the first group of the other arm whose score is not below its own."""
        place = np.empty(self.scores.size, dtype=np.int32)
        treated, control = self._groups
        _locate(self.treated.rows, self.scores, control.score, place)
        _locate(self.control.rows, self.scores, treated.score, place)
        return place

    def count_uses(self, neighbors: int) -> Indices:
        """Return how often each row is among the first neighbours of an opposite unit."""
        counts, place = np.zeros(self.scores.size, dtype=np.int32), self._place

        def count(units: _Arm, others: _Arm) -> None:
            # Any order of the units gives the same counts; along the score is cheapest.
            counts[others.rows] = self._matched(units.rows, others, place, neighbors, None)[0]

        self._both_ways(count)
        return counts

    def match_greedily(
        self, neighbors: int, treated_limit: int | None, control_limit: int | None
    ) -> Floats:
        """Return the mass each row receives when units are matched in row order."""
        mass, place = np.zeros(self.scores.size), self._place

        def match(_: _Arm, others: _Arm) -> None:
            to_treated = others is self.treated
            units = np.flatnonzero(self.treatment != to_treated)
            limit = treated_limit if to_treated else control_limit
            mass[others.rows] = self._matched(units, others, place, neighbors, limit)[1]

        self._both_ways(match)
        return mass

    def _matched(
        self,
        units: npt.NDArray[np.integer],
        others: _Arm,
        place: Indices,
        neighbors: int,
        limit: int | None,
    ) -> tuple[Indices, Floats]:
        """Give units their nearest candidates of an arm; return uses and mass by its order."""
        groups = self._groups[0 if others is self.treated else 1]
        most = _NO_LIMIT if limit is None else min(limit, _NO_LIMIT)
        uses, mass = _match(
            units, self.scores, place, others.rows, groups.score, groups.start, neighbors, most
        )
        return uses, mass

    def match_sharing_ties(self, neighbors: int) -> Floats:
        """Return the mass each row receives without limits, equal distances sharing."""
        mass = np.zeros(self.scores.size)

        def match(units: _Arm, others: _Arm) -> None:
            _share(units.scores, others.scores, others.rows, neighbors, mass)

        self._both_ways(match)
        return mass

    def _both_ways(self, job: Callable[[_Arm, _Arm], None]) -> None:
        """Run a job for treated among controls and for controls among treated, side by side."""
        if self.one_way:
            job(self.control, self.treated)
            return
        if self.scores.size < 20_000:
            job(self.treated, self.control)
            job(self.control, self.treated)
            return
        with ThreadPoolExecutor(1) as other:
            backward = other.submit(job, self.control, self.treated)
            job(self.treated, self.control)
            backward.result()


def _sorted_arms(scores: Integers, treatment: Bits) -> tuple[_Arm, _Arm]:
    """Return both arms by score and then by row.

    Where score and row fit one machine word together, sorting the words is several times faster
    than a stable argsort, and they hold all that is needed afterwards.
    """
    lowest = int(scores.min(initial=0))
    row_bits = int(scores.size).bit_length()
    if (int(scores.max(initial=0)) - lowest).bit_length() + row_bits > 64:
        order = np.argsort(scores, kind="stable").astype(np.int32)
        arms = (order[treatment[order]], order[~treatment[order]])
        return _Arm(arms[0], scores[arms[0]]), _Arm(arms[1], scores[arms[1]])
    words = (scores - lowest).view(np.uint64)
    words <<= np.uint64(row_bits)
    words |= np.arange(scores.size, dtype=np.uint64)
    words.sort()
    treated = int(np.count_nonzero(treatment))
    first, second = (
        _Arm(np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int64))
        for size in (treated, scores.size - treated)
    )
    _split(
        words, np.uint64(row_bits), lowest, treatment,
        first.rows, first.scores, second.rows, second.scores,
    )  # fmt: skip
    return first, second


def _group(scores: Integers) -> _Groups:
    fresh = np.ones(scores.size, dtype=np.bool_)
    np.not_equal(scores[1:], scores[:-1], out=fresh[1:])
    start = np.flatnonzero(fresh).astype(np.int32)
    return _Groups(scores[start], np.append(start, np.int32(scores.size)))


@_kernel
def _split(words, row_bits, lowest, treatment, rows, scores, other_rows, other_scores):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0913  # compiled
    """Take sorted words apart into rows and scores of the treated and of the others."""
    low_bits = (np.uint64(1) << row_bits) - np.uint64(1)
    treated = control = 0
    for word in words:
        row = np.int64(word & low_bits)
        score = np.int64(word >> row_bits) + lowest
        if treatment[row]:
            rows[treated], scores[treated] = row, score
            treated += 1
        else:
            other_rows[control], other_scores[control] = row, score
            control += 1


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
def _share(units, scores, rows, neighbors, mass):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, C901  # compiled
    """Write the mass that each candidate receives when equal distances share.

    Units and candidates come in score order, so the window of a unit's nearest candidates only
    moves to the right. Whole windows are counted by where they begin and end. Where the distance
    of the last neighbour occurs outside the window too, all candidates at that distance share what
    the nearer ones leave.
    """
    size = scores.size
    wanted = min(neighbors, size)
    change = np.zeros(size + 1, dtype=np.int32)  # windows that begin minus windows that end
    shares = np.zeros(size)  # of the group that begins here
    first = 0
    begin = end = left = right = 0
    share = 0.0
    for index in range(units.size if wanted > 0 else 0):
        unit = units[index]
        if index == 0 or unit != units[index - 1]:
            while first + wanted < size and scores[first + wanted] - unit < unit - scores[first]:
                first += 1
            begin, end = first, first + wanted
            share = 0.0
            reach = max(unit - scores[begin], scores[end - 1] - unit)
            if (begin > 0 and unit - scores[begin - 1] == reach) or (
                end < size and scores[end] - unit == reach
            ):
                left = np.searchsorted(scores, unit - reach)
                begin = np.searchsorted(scores, unit - reach, side="right")
                end = right = begin
                tied = begin - left
                if reach > 0:
                    end = np.searchsorted(scores, unit + reach)
                    right = np.searchsorted(scores, unit + reach, side="right")
                    tied += right - end
                share = (wanted - (end - begin)) / (tied * wanted)
        change[begin] += 1
        change[end] -= 1
        if share > 0.0:
            if left < begin:
                shares[left] += share
            if end < right:
                shares[end] += share
    windows = group = 0
    for position in range(size):
        if position > 0 and scores[position] != scores[position - 1]:
            group = position
        windows += change[position]
        mass[rows[position]] = windows / wanted + shares[group]
