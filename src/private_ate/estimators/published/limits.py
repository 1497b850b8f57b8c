"""Matching limits: how often a unit may stand in for others (k in the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from private_ate.study import ArmSizes, MatchingLimits

__all__ = ["LimitPlan", "plan_limits"]

FixedLimit = int | None | Literal["adaptive"]


@dataclass(frozen=True, slots=True)
class LimitPlan:
    """The limits in use, per neighbour (k) and per match (k times N)."""

    treated: int | None
    control: int | None
    neighbors: int

    @property
    def limits(self) -> MatchingLimits:
        """How often a unit of either arm may be matched in all."""
        return MatchingLimits(*(None if k is None else k * self.neighbors for k in self.pair))

    @property
    def pair(self) -> tuple[int | None, int | None]:
        """The limits k of the treated and of the control arm."""
        return self.treated, self.control


def plan_limits(  # the quantities of Equations 7 and 8
    arms: ArmSizes,
    *,
    neighbors: int,
    peak_reuse: int,
    epsilon: float,
    coefficient: float,
    cap_at_peak: bool,
    k: FixedLimit = "adaptive",
) -> LimitPlan:
    """Choose the limits of both arms from public or released quantities only.

    Adaptive: ``k* = sqrt(ε c n₁ M₁ / 2)`` with ``M₁ = M/N``; the label level never goes above
    M₁, the sample level does not know it (Equations 7 and 8). An integer fixes the limit of the
    smaller arm; None turns limits off. The smaller arm's limit is raised to
    ``ceil(n_larger/n_smaller)``, below which units would find no match at all.
    """
    if k is None or arms.smaller == 0:
        return LimitPlan(None, None, neighbors)
    if k == "adaptive":
        reuse = peak_reuse / neighbors
        ideal: float = round(math.sqrt(epsilon * coefficient * arms.larger * reuse / 2))
        smaller = max(1, math.ceil(min(ideal, reuse) if cap_at_peak else ideal))
    else:
        smaller = k
    smaller = max(smaller, -(-arms.larger // arms.smaller))
    larger = max(1, round(smaller * arms.smaller / arms.larger))
    if arms.treated <= arms.control:
        return LimitPlan(smaller, larger, neighbors)
    return LimitPlan(larger, smaller, neighbors)
