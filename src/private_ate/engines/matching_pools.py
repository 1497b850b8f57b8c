"""Rows in order along a score, and the weights that matching gives them; kept by the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from private_ate.arrays import Bits, Codes, Floats, Integers
from private_ate.privacy.quantization import WEIGHT_BITS, quantize_weights
from private_ate.study import ArmSizes, MatchingLimits

__all__ = ["LocalArmPool", "LocalPool", "LocalWeights"]

_Order = tuple[Any, int | None, int | None]


@dataclass(frozen=True, slots=True)
class LocalWeights:
    """One weight per row on the grid of 2⁻²⁴, and the arm each row was matched in.

    ``treatment`` is True for treated rows of two arms, or the code of the arm.
    """

    steps: Integers = field(repr=False)
    treatment: Bits | Codes = field(repr=False)
    largest: tuple[int, ...]
    imbalance: float

    @classmethod
    def summarize(cls, weights: Floats, arm: Codes | Bits, arms: int = 2) -> LocalWeights:
        """Quantise weights and note the largest of each arm."""
        steps, codes = quantize_weights(weights), arm.view(np.uint8)
        largest = [int(np.max(steps, where=codes == each, initial=0)) for each in range(arms)]
        return cls(steps, arm, tuple(largest), _imbalance(weights, codes, arms))

    @property
    def arm(self) -> Codes:
        """The code of each row's arm."""
        return self.treatment.view(np.uint8)

    @property
    def values(self) -> Floats:
        """The weights as they are used."""
        return self.steps / (1 << WEIGHT_BITS)


class _Pool(ABC):
    """What a pool answers from the orders of its rows; only one order is held at a time."""

    arm: Codes
    count: int

    @abstractmethod
    def _orders(self, limits: MatchingLimits) -> Iterator[_Order]:
        """Yield orders, each with the limits of those it calls treated and of all others."""

    @property
    def arms(self) -> ArmSizes:
        """How many rows each arm holds."""
        return ArmSizes.count(self.arm, self.count)

    def peak_reuse(self, neighbors: int) -> int:
        """Return how often the most used unit of any arm is among the first neighbours (M)."""
        orders = self._orders((None,) * self.count)
        return max(int(order.count_uses(neighbors).max(initial=0)) for order, *_ in orders)

    def match(self, neighbors: int, limits: MatchingLimits) -> LocalWeights:
        """Match greedily in row order within the limits and return the weights."""
        orders = self._orders(limits)
        mass = sum(order.match_greedily(neighbors, *within) for order, *within in orders)
        return LocalWeights.summarize(1.0 + mass, self.arm, self.count)

    def match_sharing_ties(self, neighbors: int) -> LocalWeights:
        """Match without limits, units at equal distance sharing their mass."""
        return LocalWeights.summarize(1.0 + self.shared_mass(neighbors), self.arm, self.count)

    def shared_mass(self, neighbors: int) -> Floats:
        """Return the mass each row receives when equal distances share, unrounded."""
        orders = self._orders((None,) * self.count)
        mass: Floats = sum(order.match_sharing_ties(neighbors) for order, *_ in orders)
        return mass


@dataclass(frozen=True, slots=True)
class LocalPool(_Pool):
    """Rows of two arms in one order along the score, by which either arm finds the other."""

    arm: Codes = field(repr=False)
    order: Any = field(repr=False)
    count: int = 2

    @classmethod
    def sort(cls, scores: Integers, treatment: Bits) -> LocalPool:
        """Sort the rows along their scores, equal scores by row index."""
        return cls(treatment.view(np.uint8), _sorted(scores, treatment))

    def _orders(self, limits: MatchingLimits) -> Iterator[_Order]:
        control, treated = limits
        yield self.order, treated, control


@dataclass(frozen=True, slots=True)
class LocalArmPool(_Pool):
    """Rows of several arms, put in order along the score of one arm after another.

    Candidates for arm t are its members, and everybody else looks for neighbours among them by
    the distance of their scores for arm t.

    Attributes
    ----------
    arm : array of uint8, shape (n,)
        The code of each row's arm.
    scores : callable
        Returns the integer scores of all rows for one arm.
    count : int
        How many arms there are (K).
    """

    arm: Codes = field(repr=False)
    scores: Callable[[int], Integers] = field(repr=False)
    count: int

    def _orders(self, limits: MatchingLimits) -> Iterator[_Order]:
        for arm, limit in zip(range(self.count), limits, strict=True):
            yield _sorted(self.scores(arm), self.arm == arm, one_way=True), limit, None


def _sorted(scores: Integers, treatment: Bits, *, one_way: bool = False) -> Any:  # noqa: ANN401  # numba loads with its class
    from private_ate.engines.matching import ScoreOrder

    return ScoreOrder.sort(scores, treatment, one_way=one_way)


def _imbalance(weights: Floats, arm: Codes, arms: int) -> float:
    """Return the largest of all arms' total variation from equal weights."""
    distances = [0.0]
    for each in range(arms):
        members = weights[arm == each]
        if members.size:
            mean = float(members.mean())
            distances.append(float(np.abs(members - mean).sum() / (2 * members.sum())))
    return max(distances)
