"""What to expect of a time to an event: pseudo-values under two guesses, before ε is spent.

The guesses are the risk by the horizon and the share that is censored before it. Under constant
hazards the same tables as in a release give the range and the variance of pseudo-values, so that
a plan is that of a plain outcome with these bounds and this deviation, at what curves leave of ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arguments import real_number
from private_ate.domain import Interval, Outcome, Survival
from private_ate.methods.survival.curves import Hazards
from private_ate.methods.survival.label import LABEL_SHARE
from private_ate.methods.survival.method import SAMPLE_SHARE
from private_ate.methods.survival.pseudo import Quantity, pseudo_table
from private_ate.privacy.levels import Level, has_public_covariates

__all__ = ["ForeseenSurvival", "foresee"]

_BINS: Final = 8
_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True)
class ForeseenSurvival:
    """The plain outcome that stands for a time to an event in a plan.

    Attributes
    ----------
    outcome : Outcome
        Pseudo-values as an outcome with bounds.
    deviation : float
        Their standard deviation, in units of the outcome.
    rest : float
        The share of ε that curves leave to the effect.
    caveat : str
        What the plan rests on.
    """

    outcome: Outcome
    deviation: float
    rest: float
    caveat: str


def foresee(
    outcome: Survival, level: Level, quantity: Quantity, risk: float, censored: float
) -> ForeseenSurvival:
    """Return the outcome of a plan under guesses of the risk and of the share censored."""
    risk = real_number("the guessed risk by the horizon", risk, 1e-4, 0.99)
    censored = real_number("the guessed share censored before the horizon", censored, 0.0, 0.95)
    table = pseudo_table(_constant(risk, censored), quantity)
    unit = outcome.horizon if quantity == "rmst" else 1.0
    bounds = Interval(unit * table.low, unit * table.high)
    share: Fraction = LABEL_SHARE if has_public_covariates(level) else SAMPLE_SHARE
    return ForeseenSurvival(
        Outcome(outcome.column, bounds, outcome.missing, unit=outcome.unit),
        unit * float(np.sqrt(table.variance)),
        float(1 - share),
        f"rests on a guessed risk of {risk:g} by the horizon and a guessed share of {censored:g} "
        f"censored before it, and leaves {float(share):.0%} of ε to the curves; it ",
    )


def _constant(risk: float, censored: float) -> Hazards:
    """Return constant hazards with this risk, of which this share is censored first."""
    event = -np.log1p(-risk)
    low, high = 0.0, 50.0
    for _ in range(_HALVINGS):
        exit_ = (low + high) / 2
        lost = exit_ / (event + exit_) * -np.expm1(-(event + exit_))
        low, high = (exit_, high) if lost < censored else (low, exit_)
    return Hazards(np.full(_BINS, event), np.full(_BINS, low))
