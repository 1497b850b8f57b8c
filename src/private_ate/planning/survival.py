"""Plans of a time to an event: those of its pseudo-values, at what curves leave of ε.

The guesses are the risk by the horizon and the share that is censored before it. Under constant
hazards the same tables as in a release give the range and the variance of pseudo-values, so that
a plan is that of a plain outcome with these bounds and this deviation, at what curves leave of ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.optimize import brentq

from private_ate.arguments import real_number
from private_ate.domain import Domain, Interval, Outcome, Survival
from private_ate.errors import ArgumentError
from private_ate.methods.survival.curves import (
    LABEL_SHARE,
    SAMPLE_SHARE,
    Hazards,
    pseudo_table,
)
from private_ate.privacy.levels import has_public_covariates
from private_ate.request import Request

__all__ = ["ForeseenSurvival", "foresee"]

_BINS: Final = 8


@dataclass(frozen=True, slots=True)
class ForeseenSurvival:
    """The plain outcome that stands for a time to an event in a plan.

    Attributes
    ----------
    outcome : Outcome
        Pseudo-values as an outcome with bounds.
    deviation : float
        Their standard deviation, in units of the outcome.
    explained : float or None
        What covariates are taken to explain: nothing at label level, where intervals take no
        credit for it.
    rest : float
        The share of ε that curves leave to the effect.
    caveat : str
        What the plan rests on.
    """

    outcome: Outcome
    deviation: float
    explained: float | None
    rest: float
    caveat: str


def foresee(
    domain: Domain, request: Request, outcome_sd: object, risk: float, censored: float
) -> ForeseenSurvival | None:
    """Return the outcome of a plan under guesses of the risk and of the share censored.

    None where the outcome is none of time to an event.
    """
    outcome = domain.outcome
    if not isinstance(outcome, Survival) or domain.further:
        return None
    if outcome_sd is not None:
        msg = "the spread of survival follows from the guessed risk and censoring; leave it out"
        raise ArgumentError(msg)
    risk = real_number("the guessed risk by the horizon", risk, 1e-4, 0.99)
    censored = real_number("the guessed share censored before the horizon", censored, 0.0, 0.95)
    table = pseudo_table(_constant(risk, censored), request.quantity)
    unit = outcome.horizon if request.quantity == "rmst" else 1.0
    bounds = Interval(unit * table.low, unit * table.high)
    is_public = has_public_covariates(request.level)
    share: Fraction = LABEL_SHARE if is_public else SAMPLE_SHARE
    return ForeseenSurvival(
        Outcome(outcome.column, bounds, outcome.missing, unit=outcome.unit),
        unit * float(np.sqrt(table.variance)),
        0.0 if is_public else None,
        float(1 - share),
        f"rests on a guessed risk of {risk:g} by the horizon and a guessed share of {censored:g} "
        f"censored before it, and leaves {float(share):.0%} of ε to the curves; it ",
    )


def _constant(risk: float, censored: float) -> Hazards:
    """Return constant hazards with this risk, of which this share is censored first."""
    event = -np.log1p(-risk)

    def excess(exit_: float) -> float:
        return float(exit_ / (event + exit_) * -np.expm1(-(event + exit_)) - censored)

    exits = brentq(excess, 0.0, 50.0, xtol=1e-15)
    return Hazards(np.full(_BINS, event), np.full(_BINS, exits))
