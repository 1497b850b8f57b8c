"""Junction trees that grow by one pair of columns at a time.

A tree holds cliques of columns such that the cliques of any column are connected. Asking for a new
pair threads one of its columns along the path to the other, through cliques no larger than the
separators on the way need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Clique", "JunctionTree"]

Clique = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class JunctionTree:
    """Cliques in an order in which each comes after its parent; the root's parent is −1."""

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    @classmethod
    def single(cls, column: int) -> JunctionTree:
        """Return the tree of one column."""
        return cls(((column,),), (-1,))

    @property
    def columns(self) -> tuple[int, ...]:
        """All columns of the tree."""
        return tuple(sorted(set().union(*self.cliques)))

    def cells(self, sizes: Sequence[int]) -> float:
        """Return the number of cells of all cliques; a float, because products overflow."""
        return sum(cells_of(clique, sizes) for clique in self.cliques)

    def place_of(self, wanted: Iterable[int]) -> int | None:
        """Return the first clique that holds all wanted columns."""
        needed = set(wanted)
        for place, clique in enumerate(self.cliques):
            if needed <= set(clique):
                return place
        return None

    def neighbours(self) -> list[set[int]]:
        """Return the neighbours of each clique."""
        near: list[set[int]] = [set() for _ in self.cliques]
        for place, parent in enumerate(self.parents):
            if parent >= 0:
                near[place].add(parent)
                near[parent].add(place)
        return near

    def merged(self, other: JunctionTree, first: int, second: int) -> JunctionTree:
        """Join two trees by a new clique of a column of each."""
        offset = len(self.cliques)
        bridge = offset + len(other.cliques)
        cliques = [*map(set, self.cliques), *map(set, other.cliques), {first, second}]
        near = [*self.neighbours(), *({n + offset for n in one} for one in other.neighbours())]
        near.append(set())
        ends = (self.place_of((first,)), other.place_of((second,)))
        for end in (ends[0] or 0, (ends[1] or 0) + offset):
            near[bridge].add(end)
            near[end].add(bridge)
        return _rooted(cliques, near)

    def linked(self, first: int, second: int) -> JunctionTree:
        """Return a tree in which some clique holds both columns, ``first`` threaded along."""
        path = self._path(first, second)
        if len(path) == 1:
            return self
        cliques, near = [set(clique) for clique in self.cliques], self.neighbours()
        previous = path[0]
        for step, place in enumerate(path[1:], 1):
            before = cliques[path[step - 1]] & cliques[place]
            after = cliques[place] & cliques[path[step + 1]] if step + 1 < len(path) else {second}
            near[path[step - 1]].discard(place)
            near[place].discard(path[step - 1])
            new = len(cliques)
            cliques.append({first} | before | after)
            near.append({previous, place})
            near[previous].add(new)
            near[place].add(new)
            previous = new
        return _rooted(cliques, near)

    def _path(self, first: int, second: int) -> list[int]:
        """Return the shortest path from a clique with the first column to one with the second."""
        near = self.neighbours()
        came: dict[int, int] = {
            place: -1 for place, clique in enumerate(self.cliques) if first in clique
        }
        queue = list(came)
        for place in queue:
            if second in self.cliques[place]:
                path = [place]
                while came[path[-1]] >= 0:
                    path.append(came[path[-1]])
                return path[::-1]
            for other in near[place]:
                if other not in came:
                    came[other] = place
                    queue.append(other)
        msg = "both columns belong to the tree"
        raise ValueError(msg)


def cells_of(clique: Iterable[int], sizes: Sequence[int]) -> float:
    """Return the number of cells of a clique as a float."""
    return math.prod(float(sizes[column]) for column in clique)


def _rooted(cliques: list[set[int]], near: list[set[int]]) -> JunctionTree:
    """Drop cliques inside a neighbour and order the rest from a root."""
    alive = set(range(len(cliques)))
    pending = set(alive)
    while pending:
        place = pending.pop()
        larger = next((o for o in near[place] if cliques[place] <= cliques[o]), None)
        if larger is None:
            continue
        for other in near[place]:
            near[other].discard(place)
            if other != larger:
                near[other].add(larger)
                near[larger].add(other)
                pending.add(other)
        alive.discard(place)
        pending.discard(place)
        pending.add(larger)
    root = min(alive)
    order, parents = [root], {root: -1}
    for place in order:
        for other in sorted(near[place]):
            if other not in parents:
                parents[other] = place
                order.append(other)
    index = {place: new for new, place in enumerate(order)} | {-1: -1}
    return JunctionTree(
        tuple(tuple(sorted(cliques[place])) for place in order),
        tuple(index[parents[place]] for place in order),
    )
