"""Matching limits: how often a unit may stand in for others (k; Equations 9 to 12 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from private_ate.study import ArmSizes, MatchingLimits, MatchPool

__all__ = ["LimitRule", "LimitsInUse", "plan_limits"]

FixedLimit = int | None | Literal["adaptive"]


@dataclass(frozen=True, slots=True)
class LimitsInUse:
    """The limits in use, per neighbour (k) and per match (k times N), the reference arm first."""

    counts: tuple[int | None, ...]
    neighbors: int

    @property
    def limits(self) -> MatchingLimits:
        """How often a unit of each arm may be matched in all."""
        return tuple(None if k is None else k * self.neighbors for k in self.counts)


@dataclass(frozen=True, slots=True)
class LimitRule:
    """How the limits follow from a pool: by Equations 9 and 10, or 11 and 12, or as they are given.

    Attributes
    ----------
    k : "adaptive", int or None
        The limit of the smaller arm, or how it is found.
    epsilon : Fraction
        The budget of the sums: ε at label level, ε₃ at sample level.
    coefficient : float
        The error coefficient: c at label level, h at sample level.
    neighbors : int
        Units each unit is matched to (N).
    cap_at_peak : bool
        Whether M₁ bounds the limit: Equation 10 has it, Equation 12 does not.
    """

    k: FixedLimit
    epsilon: Fraction
    coefficient: float
    neighbors: int
    cap_at_peak: bool

    def plan(self, pool: MatchPool) -> LimitsInUse:
        """Return the limits in a pool."""
        return plan_limits(
            pool.arms,
            neighbors=self.neighbors,
            peak_reuse=pool.peak_reuse(self.neighbors) if self.k == "adaptive" else 0,
            epsilon=float(self.epsilon),
            coefficient=self.coefficient,
            cap_at_peak=self.cap_at_peak,
            k=self.k,
        )


def plan_limits(
    arms: ArmSizes,
    *,
    neighbors: int,
    peak_reuse: int,
    epsilon: float,
    coefficient: float,
    cap_at_peak: bool,
    k: FixedLimit = "adaptive",
) -> LimitsInUse:
    """Choose the limits of the arms from public or released quantities only.

    Adaptive: ``k* = sqrt(ε c n₁ M₁ / 2)`` with ``M₁ = M/N`` and n₁ the size of the larger arm (of
    several arms: what the smallest one has to stand in for), rounded and at least 1 (Equation 9;
    Equation 11 with ε₃ and h). The label level never goes above M₁ (Equation 10), the sample level
    does (Equation 12). An integer fixes the limit of the smallest arm; None turns limits off.
    Beyond the paper, the limit of an arm is raised to ``ceil((n − n_t)/n_t)``, below which units
    would find no match at all. Limits of larger arms are in proportion to the sizes, as in
    Algorithm 3. An arm that holds nobody has none.
    """
    occupied = [size for size in arms.counts if size]
    if k is None or len(occupied) < 2:
        return LimitsInUse((None,) * len(arms.counts), neighbors)
    if k == "adaptive":
        reuse = peak_reuse / neighbors
        ideal: float = round(math.sqrt(epsilon * coefficient * arms.others * reuse / 2))
        smallest = max(1, math.ceil(min(ideal, reuse) if cap_at_peak else ideal))
    else:
        smallest = k
    smallest = max(smallest, -(-arms.others // arms.smaller))

    def limit(size: int) -> int | None:
        if size == 0:
            return None
        return max(-(-(arms.total - size) // size), round(smallest * arms.smaller / size))

    return LimitsInUse(tuple(map(limit, arms.counts)), neighbors)
