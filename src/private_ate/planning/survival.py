"""Plans of a time to an event: those of its pseudo-values, at what curves leave of ε."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from private_ate.data.inputs import resolve_domain
from private_ate.domain import Domain, Survival, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.methods.survival.predict import ForeseenSurvival, foresee
from private_ate.planning.assumptions import StudySizes
from private_ate.planning.table import Planner
from private_ate.privacy.levels import has_public_covariates
from private_ate.request import Request

__all__ = ["StandIn", "stand_in"]


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
        return replace(
            planner,
            table=lambda size, epsilon: planner.table(size, foreseen.rest * epsilon),
            deciding=lambda size, epsilon: planner.deciding(size, foreseen.rest * epsilon),
            caveat=foreseen.caveat + planner.caveat,
        )


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
