"""How a trial's budget is split: by public numbers alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from private_ate.estimators.orthogonal.plan import plain_shares

__all__ = ["TrialPlan", "plan_trial"]

_SCALING_SHARE: Final = Fraction(5, 100)
_MODEL_SHARE: Final = Fraction(15, 100)
_COUNT_PART: Final = Fraction(1, 5)  # of what counting takes where the share of treated is unknown
# A prognosis costs a fifth of ε and widens the score, so noise doubles; what it saves is a part
# of the sampling variance. Both are compared as functions of the rarer arm's probability.
_LEAST_INFORMATION: Final = 2500.0
_LEAST_SIGNAL: Final = 8.0


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """Shares of ε; the effect gets what the others leave."""

    counts: Fraction
    scaling: Fraction
    model: Fraction
    sums: Fraction
    interval: Fraction
    stretch: float

    @property
    def has_prognosis(self) -> bool:
        """Whether outcomes are compared with what covariates say of them."""
        return self.model > 0

    @property
    def effect(self) -> Fraction:
        """What is left to the effect."""
        return 1 - self.counts - self.scaling - self.model - self.sums - self.interval


def plan_trial(
    size: int, dimension: int, epsilon: float, *, rarer: float, counted: bool, with_interval: bool
) -> TrialPlan:
    """Split ε between the steps of a trial; ``epsilon`` is the budget per row.

    ``rarer`` is the smallest probability of either arm; ``counted`` says that rows may take no
    part, so that their number is paid for.
    """
    plain = plain_shares(size, epsilon, with_interval=with_interval)
    signal = 0.0
    if dimension:
        signal = 0.0386 * size * epsilon / (math.sqrt(dimension) * (dimension + 1))
    pays = 2 * rarer * size * epsilon**2 >= _LEAST_INFORMATION and signal >= _LEAST_SIGNAL
    return TrialPlan(
        plain.counts * _COUNT_PART if counted else Fraction(0),
        _SCALING_SHARE if pays else Fraction(0),
        _MODEL_SHARE if pays else Fraction(0),
        plain.sums,
        plain.interval,
        2 * max(1.0, (signal / 10) ** 0.25),
    )
