"""Plans of a time to an event: those of its pseudo-values, at what curves leave of ε.

The guesses are the risk by the horizon and the share that is censored before it. Under constant
hazards the same tables as in a release give the range and the variance of pseudo-values, so that
a plan is that of a plain outcome with these bounds and this deviation, at what curves leave of ε.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, cast

import numpy as np

from private_ate.arguments import real_number
from private_ate.data.inputs import resolve_domain
from private_ate.domain import Domain, Interval, Outcome, Survival, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.methods.survival.curves import (
    LABEL_SHARE,
    SAMPLE_SHARE,
    Hazards,
    Quantity,
    pseudo_table,
)
from private_ate.planning.assumptions import StudySizes
from private_ate.planning.plan import Planner
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.request import Request

__all__ = ["StandIn", "foresee", "stand_in"]

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


@dataclass(frozen=True, slots=True)
class StandIn:
    """What a plan is asked about, with pseudo-values in the place of a time to an event.

    ``foreseen`` is None for other outcomes, of which everything is as it was asked.
    """

    data: object
    domain: Domain | None
    request: Request
    outcome: str | Sequence[str] | None
    outcome_sd: float | Mapping[str, float] | None
    explained: float | None
    foreseen: ForeseenSurvival | None = None

    def finish(self, planner: Planner) -> Planner:
        """Return the planner at what the curves leave of ε; itself for other outcomes."""
        foreseen = self.foreseen
        if foreseen is None:
            return planner
        return planner.at(lambda epsilon: foreseen.rest * epsilon, foreseen.caveat)


def stand_in(
    asked: StandIn, treatment: str | Treatment | None, risk: float, censored: float
) -> StandIn:
    """Put pseudo-values in the place of a time to an event, by guesses of risk and censoring.

    At label level the interval takes no credit for what covariates explain, nor does the plan.
    """
    data, request = asked.data, asked.request
    known = data.domain if isinstance(data, LocalStudy) else asked.domain
    if known is None or not isinstance(known.outcome, Survival):
        return asked
    if asked.outcome_sd is not None:
        msg = "the spread of survival follows from the guessed risk and censoring; leave it out"
        raise ArgumentError(msg)
    if not isinstance(data, LocalStudy):
        known = resolve_domain(known, treatment, asked.outcome)
    found = foresee(
        cast("Survival", known.outcome), request.level, request.quantity, risk, censored
    )
    plain = known.with_outcome(found.outcome)
    if isinstance(data, StudySizes):
        bounds = found.outcome.declared_bounds
        data = StudySizes.declared(data.rows, data.covariates, bounds, data.weight_share)
    elif isinstance(data, LocalStudy):
        data = replace(data.public(), domain=plain)
    explained = asked.explained
    if explained is None and has_public_covariates(request.level):
        explained = 0.0
    plain_request = replace(request, quantity="rmst")
    return StandIn(data, plain, plain_request, None, found.deviation, explained, found)


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
