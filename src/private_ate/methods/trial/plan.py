"""How a trial's budget is split: by public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from private_ate.methods.blocks.plan import plain_shares

__all__ = ["TrialPlan", "plan_trial"]

_COUNT_PART: Final = Fraction(1, 5)  # of what counting takes where the share of treated is unknown


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """Shares of ε; the effect gets what the others leave."""

    counts: Fraction
    sums: Fraction
    interval: Fraction

    @property
    def effect(self) -> Fraction:
        """What is left to the effect."""
        return 1 - self.counts - self.sums - self.interval


def plan_trial(size: int, epsilon: float, *, counted: bool, with_interval: bool) -> TrialPlan:
    """Split ε between the steps of a trial; ``epsilon`` is the budget per row.

    ``counted`` says that rows may take no part, so that their number is paid for.
    """
    plain = plain_shares(size, epsilon, with_interval=with_interval)
    counts = plain.counts * _COUNT_PART if counted else Fraction(0)
    return TrialPlan(counts, plain.means, plain.interval)
