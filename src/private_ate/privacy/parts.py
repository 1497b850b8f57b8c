"""Choke points for disjoint parts of the rows, and sums over all of them.

A person is in one part. Where it is public which one, costs of different parts do not add up.
Where it is private, a replaced record leaves one part and enters one: two moves, in one part or
in two, each at half of what a part costs. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeVar

from private_ate.errors import NumericRangeError
from private_ate.privacy.metrics import Metric
from private_ate.privacy.noise import Noise, Spend

__all__ = ["Parts", "PartsTotal"]

Output = TypeVar("Output")

_SUMS = {"staircase": Metric.L1, "staircase_disjoint": Metric.ONE_OF}  # what can be added up


@dataclass(frozen=True, slots=True)
class PartsTotal:
    """Released sums over all parts in half steps, and the sensitivities behind their noise."""

    noisy: tuple[int, ...]
    sensitivities: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a step of one part got; it stays behind the choke point."""

    part: str
    values: tuple[int, ...] = field(repr=False)
    sensitivities: tuple[int, ...]


@dataclass(slots=True)
class _PartNoise(Noise):
    """A choke point whose calls are those of one part, drawn and written down by the whole's."""

    part: str = ""
    moves: int = 1
    whole: Noise | None = field(default=None, repr=False)
    heard: dict[str, list[_Heard]] = field(default_factory=dict, repr=False)

    def _release(self, spend: Spend, values: Any, draw: Callable[[], Output]) -> Output:  # noqa: ANN401  # whatever goes in
        if spend.part or self.whole is None:
            msg = f"step {spend.step!r} divides rows that are a part of others already"
            raise NumericRangeError(msg)
        if self.moves > 1 and (spend.delta or spend.rho):
            msg = f"step {spend.step!r} has no pure cost, of which several moves could have shares"
            raise NumericRangeError(msg)
        named = replace(
            spend, part=self.part,
            epsilon=self.moves * spend.epsilon, moves=self.moves * spend.moves,
        )  # fmt: skip
        if _SUMS.get(spend.mechanism) is spend.metric:
            held = (values,) if isinstance(values, int) else tuple(values)
            kept = _Heard(self.part, held, spend.sensitivity)
            self.heard.setdefault(spend.step, []).append(kept)
        self.spends.append(named)
        return self.whole._release(named, values, draw)  # noqa: SLF001  # the same choke point


@dataclass(slots=True)
class Parts:
    """The choke point of a study whose rows are divided, one row per person.

    Attributes
    ----------
    noise : Noise
        The choke point of the whole study.
    moves : int
        How many moves lead from one neighbour to the other, each of them in one part: 1 if rows
        stay where they are; 2 if a row may change its part, which it leaves and enters.
    """

    noise: Noise
    moves: int = 1
    _heard: dict[str, list[_Heard]] = field(default_factory=dict, repr=False)
    _names: set[str] = field(default_factory=set, repr=False)

    def within(self, part: str) -> Noise:
        """Return the choke point of one part, to be asked for once.

        Neighbours are ``moves`` moves apart, each of which changes one row of one part, so that
        parts cost together what the dearest of them costs. Every call is written down with the
        cost of all moves: ``moves`` times the ε at which it is drawn.
        """
        if not part or part in self._names:
            msg = "every part of the rows has a name of its own"
            raise NumericRangeError(msg)
        self._names.add(part)
        return _PartNoise(
            self.noise.entropy, self.noise.recorder,
            outcomes=self.noise.outcomes, part=part, moves=self.moves, whole=self.noise,
            heard=self._heard,
        )  # fmt: skip

    def total(
        self, step: str, of_step: str, *, epsilon: Fraction, factors: Mapping[str, int]
    ) -> PartsTotal:
        """Release what a staircase step got in all parts, times public factors, added up.

        What went into the parts is added up behind the choke point, so that no method holds it;
        ``factors`` are public whole numbers by which parts count.
        Neighbours: the input of one part moves, one coordinate of it by at most its sensitivity
        there; the sum moves by that times the part's factor, at most by the largest of these
        products. Cost: ε, beyond what the parts cost (docs/proofs/subgroups.md).
        """
        parts = self._heard.get(of_step, [])
        sizes = {(len(one.values), len(one.sensitivities)) for one in parts}
        names = [one.part for one in parts]
        if self.moves != 1:
            msg = "sums over parts that rows may move between have no noise of their own here"
            raise NumericRangeError(msg)
        if len(sizes) != 1 or set(names) != self._names or len(names) != len(self._names):
            msg = f"step {of_step!r} was not called once in every part of the rows, alike in all"
            raise NumericRangeError(msg)
        if set(factors) != self._names or not all(factor > 0 for factor in factors.values()):
            msg = "every part of the rows counts by a factor of its own, above zero"
            raise NumericRangeError(msg)
        counted = [[factors[one.part] * value for value in one.values] for one in parts]
        moved = [[factors[one.part] * size for size in one.sensitivities] for one in parts]
        totals = [sum(column) for column in zip(*counted, strict=True)]
        reach = [max(column) for column in zip(*moved, strict=True)]
        noisy = self.noise.staircase_disjoint(step, totals, sensitivities=reach, epsilon=epsilon)
        return PartsTotal(tuple(noisy), tuple(reach))
