"""Choke points for disjoint parts of the rows.

A person is in one part. Where it is public which one, costs of different parts do not add up.
Where it is private, a replaced record leaves one part and enters one: two moves, in one part or
in two, each at half of what a part costs. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from private_ate.errors import NumericRangeError
from private_ate.privacy.noise import Noise, Spend

__all__ = ["Parts"]

Output = TypeVar("Output")


@dataclass(slots=True)
class _PartNoise(Noise):
    """A choke point whose calls are those of one part, drawn and written down by the whole's."""

    part: str = ""
    moves: int = 1
    whole: Noise | None = field(default=None, repr=False)

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
        )  # fmt: skip
