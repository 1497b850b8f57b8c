"""Record a run at the choke point, replay its outputs on a neighbour, measure what moved.

With the outputs of the earlier mechanisms replayed, every later input is the same function of the
records in both runs, so it may differ by what its call declares and no more; with frozen noise
alone later inputs would differ legitimately. ``Recording`` is the project's one recorder;
``moved_share`` measures distances in the metric that each ``Spend`` names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from private_ate.privacy.accounting import smoothing_rate
from private_ate.privacy.metrics import Metric, Spend
from private_ate.privacy.objective import Objective

_ROUNDING = 1e-7  # of a float gradient; every other input is an exact integer
_FAR = 50  # probes of a gradient also lie this many times further out than the answer


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the choke point: its cost, what went in, what came out, and how to draw again.

    ``values`` is a copy as an array of Python numbers; an objective is kept itself.
    """

    spend: Spend
    values: Any = field(repr=False)
    output: Any = field(repr=False)
    draw: Callable[[], Any] = field(repr=False, compare=False)


@dataclass(slots=True)
class Recording:
    """Records every call; answers with a fresh draw, an earlier recording's output, or ``steer``.

    Attributes
    ----------
    source : Recording or None
        An earlier run whose outputs are given again, as long as the calls are the same.
    steer : callable or None
        Asked with each spend and its input; what it returns is the answer unless it is None.
    """

    source: Recording | None = None
    steer: Callable[[Spend, Any], object] | None = None
    calls: list[Call] = field(default_factory=list)
    secrets: list[Any] = field(default_factory=list, repr=False)

    @property
    def spends(self) -> list[Spend]:
        """What each call cost."""
        return [call.spend for call in self.calls]

    @property
    def inputs(self) -> list[Any]:
        """What went into each call."""
        return [call.values for call in self.calls]

    @property
    def outputs(self) -> list[Any]:
        """What came out of each call."""
        return [call.output for call in self.calls]

    def record(self, spend: Spend, values: object, draw: Callable[[], object]) -> object:
        """Keep a copy of the input and answer."""
        kept = values if spend.metric is Metric.GRADIENT else np.array(values, object, copy=True)
        output = self._known(spend)
        if output is None and self.steer is not None:
            output = self.steer(spend, kept)
        if output is None:
            output = draw()
        self.calls.append(Call(spend, kept, output, draw))
        return output

    def secret(self, draw: Callable[[], Any]) -> Any:  # noqa: ANN401  # whatever is drawn
        """Draw a secret, or give the earlier recording's again: no record decides about it."""
        place = len(self.secrets)
        earlier = () if self.source is None else self.source.secrets
        self.secrets.append(earlier[place] if place < len(earlier) else draw())
        return self.secrets[-1]

    def _known(self, spend: Spend) -> object | None:
        place = len(self.calls)
        if self.source is None or place >= len(self.source.calls):
            return None
        known = self.source.calls[place]
        return known.output if known.spend == spend else None


def broken_promises(first: Recording, second: Recording) -> list[str]:
    """Return every way in which two runs on neighbours break what their calls declare.

    The second replays the first. Costs of different parts of the rows do not add up, so all
    moves that a part declares may be in it, or some in one and the others in another: the shares
    of moves in all parts add up to one at most. Where a part declares one, no other may move.
    """
    findings = []
    if first.spends != second.spends:
        findings.append("the runs call different mechanisms, sensitivities, sizes or budgets")
    moved_parts: dict[str, Fraction] = {}
    for one, other in zip(first.calls, second.calls, strict=False):
        if one.spend != other.spend:
            break
        share = moved_share(one, other)
        if share > 1:
            findings.append(
                f"step {one.spend.step!r} moves by {float(share):.3g} times its sensitivity, "
                "more than the whole of what it declares"
            )
        if share > 0 and one.spend.part and share < math.inf:
            part, whole = one.spend.part, Fraction(math.ceil(share * one.spend.moves))
            taken = moved_parts.get(part, Fraction(0))
            moved_parts[part] = max(taken, whole / one.spend.moves)
    if sum(moved_parts.values()) > 1 and len(moved_parts) > 1:
        findings.append(f"one record moves several parts of the rows: {sorted(moved_parts)}")
    return findings


def moved_share(one: Call, other: Call) -> Fraction | float:
    """Return how far two inputs are apart, as a share of what the mechanism declares.

    Where it declares several moves, moves are counted, and one that is begun counts as a whole.
    """
    if one.spend.metric is Metric.MOVES or one.spend.moves == 1:
        return _declared_share(one, other)
    if one.spend.metric is Metric.ONE_OF and one.values.shape == other.values.shape:
        return _moves_share(one.spend, _distances(one, other))
    share = _declared_share(one, other)
    return share if share == math.inf else Fraction(math.ceil(share), one.spend.moves)


def _distances(one: Call, other: Call) -> list[int]:
    pairs = zip(one.values.flat, other.values.flat, strict=True)
    return [abs(int(before) - int(after)) for before, after in pairs]


def _declared_share(one: Call, other: Call) -> Fraction | float:
    """Return how far two inputs are apart, as a share of the declared sensitivity."""
    if one.spend.metric is Metric.GRADIENT:
        return _gradient_share(one, other.values)
    if one.values.shape != other.values.shape:
        return math.inf
    if one.spend.metric is Metric.SMOOTH:
        return _smooth_share(one.spend, one.values, other.values)
    if one.spend.metric is Metric.ROWS:
        differ = int((one.values != other.values).any(axis=1).sum())
        return Fraction(differ, one.spend.sensitivity[0])
    moved = _distances(one, other)
    if one.spend.metric in _WITH_SPEND:
        return _WITH_SPEND[one.spend.metric](one.spend, moved)
    return _SHARES[one.spend.metric](moved, one.spend.sensitivity)


def _disjoint_shares(moved: list[int], declared: tuple[int, ...]) -> Fraction:
    pairs = zip(moved, declared, strict=True)
    return sum((Fraction(size, limit) for size, limit in pairs), Fraction(0))


def _one_of_share(moved: list[int], declared: tuple[int, ...]) -> Fraction | float:
    if sum(size > 0 for size in moved) > 1:
        return math.inf  # the smallest second move may cost all of ε again
    return _disjoint_shares(moved, declared)


def _moves_share(spend: Spend, moved: list[int]) -> Fraction:
    """Count the moves of one coordinate each that it takes, as a share of those declared."""
    pairs = zip(moved, spend.sensitivity, strict=True)
    return Fraction(sum(-(-size // limit) for size, limit in pairs), spend.moves)


def _group_share(spend: Spend, moved: list[int]) -> Fraction:
    """Add up over groups how far the coordinate moves that moves furthest of its sensitivity."""
    shares = [Fraction(size, limit) for size, limit in zip(moved, spend.sensitivity, strict=True)]
    width = len(shares) // spend.groups
    groups = (shares[first : first + width] for first in range(0, len(shares), width))
    return sum(map(max, groups), Fraction(0))


_WITH_SPEND = {Metric.MOVES: _moves_share, Metric.GROUPS: _group_share}
_SHARES: dict[Metric, Callable[[list[int], tuple[int, ...]], Fraction | float]] = {
    Metric.L1: lambda moved, declared: Fraction(sum(moved), declared[0]),
    Metric.L2: lambda moved, declared: _root(sum(d * d for d in moved), declared[0] ** 2),
    Metric.L2_SQUARED: lambda moved, declared: _root(sum(d * d for d in moved), declared[0]),
    Metric.LINF: lambda moved, declared: Fraction(max(moved, default=0), declared[0]),
    Metric.PLACES: lambda moved, declared: Fraction(sum(d > 0 for d in moved), declared[0]),
    Metric.SHARES: _disjoint_shares,
    Metric.ONE_OF: _one_of_share,
}


def _root(square: int, limit: int) -> float:
    """Return the root of a ratio, above one whenever the ratio is."""
    share = math.sqrt(Fraction(square, limit))
    return math.nextafter(1.0, 2.0) if square > limit and share <= 1 else share


def _gradient_share(call: Call, neighbour: Objective) -> float:
    """Compare gradients at zero, at the weights that were answered, and far outside."""
    weights = np.asarray(call.output, dtype=np.float64)
    probes = (np.zeros(weights.size), weights, _FAR * weights, -_FAR * weights)
    moved = [call.values.gradient(probe) - neighbour.gradient(probe) for probe in probes]
    largest = max(float(np.abs(difference).max()) for difference in moved)
    return largest / call.spend.sensitivity[0] / (1 + _ROUNDING)


def _smooth_share(
    spend: Spend, one: npt.NDArray[np.object_], other: npt.NDArray[np.object_]
) -> float:
    """Compare values by the smaller private bound, and the bounds by how fast they may grow."""
    (value, bound), (value_after, bound_after) = one.tolist(), other.tolist()
    growth = abs(math.log(Fraction(bound, bound_after)))
    away = Fraction(abs(value - value_after), min(bound, bound_after))
    return max(float(away), growth / smoothing_rate(spend.epsilon, spend.delta))
