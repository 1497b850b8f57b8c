"""Maximum-entropy models of noisy marginals on a junction tree (after McKenna et al.).

A model is one connected component: a junction tree, log potentials on its cliques and the
measurements that it explains. Fitting is mirror descent over the potentials, marginals come from
belief propagation. It sees released numbers only, so all of it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.privacy.entropy import Generator

__all__ = ["Clique", "JunctionTree", "Measurement", "Model", "Sweep", "sample_rows", "sweep"]

Clique = tuple[int, ...]
_ENOUGH = 1e-6  # relative fall of the loss at which a fit stops
_HALVINGS = 30


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


@dataclass(frozen=True, slots=True)
class Measurement:
    """A noisy marginal in the shape of its columns, and the inverse of its variance."""

    values: Floats
    precision: float

    def __add__(self, other: Measurement) -> Measurement:
        precision = self.precision + other.precision
        values = (self.precision * self.values + other.precision * other.values) / precision
        return Measurement(values, precision)


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted component: potentials and marginals (in counts) by clique of the tree."""

    tree: JunctionTree
    sizes: tuple[int, ...]
    total: float
    measured: Mapping[Clique, Measurement]
    potentials: tuple[Floats, ...] = field(repr=False)
    marginals: tuple[Floats, ...] = field(repr=False, default=())

    @classmethod
    def single(
        cls, column: int, sizes: tuple[int, ...], total: float, measurement: Measurement
    ) -> Model:
        """Return the unfitted model of one column."""
        tree = JunctionTree.single(column)
        return cls(tree, sizes, total, {(column,): measurement}, (np.zeros(sizes[column]),))

    def regrown(
        self, tree: JunctionTree, measured: Mapping[Clique, Measurement], *others: Model
    ) -> Model:
        """Move the potentials of this and other models onto a tree that covers their cliques."""
        potentials = [np.zeros([self.sizes[c] for c in clique]) for clique in tree.cliques]
        for model in (self, *others):
            for clique, potential in zip(model.tree.cliques, model.potentials, strict=True):
                place = tree.place_of(clique) or 0
                potentials[place] += _lift(potential, clique, tree.cliques[place])
        return Model(tree, self.sizes, self.total, measured, tuple(potentials))

    def marginal(self, columns: Clique) -> Floats:
        """Return the marginal of columns that lie in one clique."""
        place = self.tree.place_of(columns) or 0
        return _onto(self.marginals[place], self.tree.cliques[place], columns)

    def fitted(self, iterations: int) -> Model:
        """Run mirror descent with backtracking from the present potentials."""
        plan = _MessageShapes.of(self)
        potentials = list(self.potentials)
        marginals = plan.propagate(potentials)
        loss, gradient = plan.compare(marginals)
        step = 1.0 / (self.total * sum(m.precision for m in self.measured.values()))
        for _ in range(iterations):
            for _ in range(_HALVINGS):
                tried = [
                    p if g is None else p - step * g
                    for p, g in zip(potentials, gradient, strict=True)
                ]
                moved = plan.propagate(tried)
                fallen, slope = plan.compare(moved)
                promise = sum(
                    float((g * (before - after)).sum())
                    for g, before, after in zip(gradient, marginals, moved, strict=True)
                    if g is not None
                )
                if loss - fallen >= 0.5 * promise:
                    break
                step /= 2
            done = loss - fallen <= _ENOUGH * max(abs(fallen), 1e-12)
            potentials, marginals, loss, gradient = tried, moved, fallen, slope
            if done:
                break
            step *= 1.2
        return replace(self, potentials=tuple(potentials), marginals=tuple(marginals))


@dataclass(frozen=True, slots=True)
class _MessageShapes:
    """Axes and shapes of every message and measurement, worked out once per fit."""

    total: float
    parents: tuple[int, ...]
    child_axes: tuple[tuple[int, ...], ...]
    child_shapes: tuple[tuple[int, ...], ...]
    parent_axes: tuple[tuple[int, ...], ...]
    parent_shapes: tuple[tuple[int, ...], ...]
    targets: tuple[tuple[int, tuple[int, ...], tuple[int, ...], Measurement], ...]

    @classmethod
    def of(cls, model: Model) -> _MessageShapes:
        tree, sizes = model.tree, model.sizes
        ends = [
            (clique, tree.cliques[parent] if parent >= 0 else ())
            for clique, parent in zip(tree.cliques, tree.parents, strict=True)
        ]
        shared = [set(clique) & set(parent) for clique, parent in ends]
        targets = []
        for columns, measurement in model.measured.items():
            place = tree.place_of(columns) or 0
            clique = tree.cliques[place]
            targets.append(
                (place, _outside(clique, columns), _shape(clique, columns, sizes), measurement)
            )
        pairs = list(zip(ends, shared, strict=True))
        return cls(
            model.total,
            tree.parents,
            tuple(_outside(clique, both) for (clique, _), both in pairs),
            tuple(_shape(clique, both, sizes) for (clique, _), both in pairs),
            tuple(_outside(parent, both) for (_, parent), both in pairs),
            tuple(_shape(parent, both, sizes) for (_, parent), both in pairs),
            tuple(targets),
        )

    def propagate(self, potentials: Sequence[Floats]) -> list[Floats]:
        """Return the marginals of all cliques: once towards the root, once back."""
        logs = [potential.copy() for potential in potentials]
        upward: list[Floats] = [np.zeros(())] * len(logs)
        for place in range(len(logs) - 1, 0, -1):
            upward[place] = _log_sum(logs[place], self.child_axes[place])
            logs[self.parents[place]] += upward[place].reshape(self.parent_shapes[place])
        for place in range(1, len(logs)):
            message = _log_sum(logs[self.parents[place]], self.parent_axes[place]) - upward[place]
            logs[place] += message.reshape(self.child_shapes[place])
        peak = logs[0].max()
        normal = peak + np.log(np.exp(logs[0] - peak).sum()) - np.log(self.total)
        return [np.exp(log - normal) for log in logs]

    def compare(self, marginals: Sequence[Floats]) -> tuple[float, list[Floats | None]]:
        """Return the weighted squared error and its gradient by clique."""
        loss = 0.0
        gradient: list[Floats | None] = [None] * len(marginals)
        for place, axes, shape, measurement in self.targets:
            error = marginals[place].sum(axis=axes) - measurement.values
            loss += 0.5 * measurement.precision * float((error * error).sum())
            slope = (measurement.precision * error).reshape(shape)
            known = gradient[place]
            gradient[place] = (
                np.broadcast_to(slope, marginals[place].shape) if known is None else known + slope
            )
        return loss, gradient


@dataclass(frozen=True, slots=True)
class Sweep:
    """From one column: pair marginals with all others, and what linking each would cost."""

    pairs: Mapping[int, Floats]
    costs: Mapping[int, float]


def sweep(model: Model, column: int) -> Sweep:
    """Walk the tree from a column and return its pair marginals (column first) and link costs."""
    tree, sizes, near = model.tree, model.sizes, model.tree.neighbours()
    start = tree.place_of((column,)) or 0
    pairs: dict[int, Floats] = {}
    costs: dict[int, float] = {}
    waiting = [(start, -1, model.marginals[start], 0.0, frozenset[int]())]
    while waiting:
        place, origin, table, cost, entry = waiting.pop()
        clique = tree.cliques[place]
        axes = tuple(sorted({*clique, column}))
        inside = column in clique
        for other in clique:
            if other != column and other not in pairs:
                pair = _onto(table, axes, tuple(sorted((column, other))))
                pairs[other] = pair if column < other else pair.T
                costs[other] = 0.0 if inside else cost + cells_of({column, other, *entry}, sizes)
        for following in near[place] - {origin}:
            shared = frozenset(clique) & frozenset(tree.cliques[following])
            if column in shared:
                waiting.append((following, place, model.marginals[following], 0.0, shared))
                continue
            grown = cost if inside else cost + cells_of({column, *entry, *shared}, sizes)
            passed = _pass_on(table, axes, model, following, column, shared)
            waiting.append((following, place, passed, grown, shared))
    return Sweep(pairs, costs)


def sample_rows(model: Model, rows: int, rng: Generator) -> dict[int, Integers]:
    """Draw synthetic codes from the model, clique by clique from the root."""
    drawn: dict[int, Integers] = {}
    for clique, marginal in zip(model.tree.cliques, model.marginals, strict=True):
        known = tuple(column for column in clique if column in drawn)
        fresh = tuple(column for column in clique if column not in drawn)
        order = [clique.index(column) for column in (*known, *fresh)]
        groups = int(np.prod([model.sizes[column] for column in known]))
        weights = np.maximum(marginal.transpose(order).reshape(groups, -1), 1e-300)
        running = np.cumsum(weights, axis=1)
        running /= running[:, -1:]
        group = np.zeros(rows, dtype=np.int64)
        for column in known:
            group = group * model.sizes[column] + drawn[column]
        stacked = (running + np.arange(groups)[:, None]).ravel()
        index = np.searchsorted(stacked, group + rng.random(rows), side="right")
        within = np.clip(index - group * weights.shape[1], 0, weights.shape[1] - 1)
        shape = tuple(model.sizes[column] for column in fresh)
        drawn.update(zip(fresh, np.unravel_index(within, shape), strict=True))
    return drawn


def _pass_on(
    table: Floats,
    axes: Clique,
    model: Model,
    following: int,
    column: int,
    shared: frozenset[int],
) -> Floats:
    """Return the joint marginal of the column and the following clique."""
    clique = model.tree.cliques[following]
    joint_axes = tuple(sorted({column, *shared}))
    joint = _onto(table, axes, joint_axes)
    below = _onto(table, axes, tuple(sorted(shared)))
    ratio = joint / np.maximum(_lift(below, tuple(sorted(shared)), joint_axes), 1e-300)
    target = tuple(sorted({column, *clique}))
    return _lift(ratio, joint_axes, target) * _lift(model.marginals[following], clique, target)


def _log_sum(log: Floats, axes: tuple[int, ...]) -> Floats:
    peak = log.max(axis=axes, keepdims=True)
    summed: Floats = np.log(np.exp(log - peak).sum(axis=axes)) + peak.squeeze(axis=axes)
    return summed


def _onto(table: Floats, axes: Clique, columns: Clique) -> Floats:
    """Sum a table over the columns that are not wanted; both are sorted."""
    summed: Floats = table.sum(axis=_outside(axes, columns))
    return summed


def _lift(table: Floats, axes: Clique, target: Clique) -> Floats:
    """Give a table axes of length one for the columns it lacks; both are sorted."""
    lengths = iter(table.shape)
    return table.reshape([next(lengths) if column in axes else 1 for column in target])


def _outside(clique: Clique, kept: Sequence[int] | set[int]) -> tuple[int, ...]:
    return tuple(place for place, column in enumerate(clique) if column not in kept)


def _shape(clique: Clique, kept: Sequence[int] | set[int], sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sizes[column] if column in kept else 1 for column in clique)
