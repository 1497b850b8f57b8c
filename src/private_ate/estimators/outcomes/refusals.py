"""What several outcomes are refused for before a record is read, and what each is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from private_ate.domain import Domain
from private_ate.errors import ArgumentError
from private_ate.estimators.calibrated.options import CalibratedOptions
from private_ate.estimators.refusals import with_outcome_sd
from private_ate.estimators.registry import METHODS, Method
from private_ate.estimators.request import Request
from private_ate.privacy.levels import has_public_covariates

__all__ = ["refuse_outcomes", "request_for", "with_spreads"]


def refuse_outcomes(method: Method, request: Request, domain: Domain | None) -> None:
    """Refuse several outcomes that a method cannot draw together; reads no record."""
    if domain is None or not domain.further:
        return
    if request.level not in method.outcomes_at:
        able = [
            f"{other.name!r} ({level} level)"
            for other in METHODS.values()
            for level in other.outcomes_at
        ]
        msg = (
            f"method {method.name!r} takes one outcome at a time at {request.level} level; "
            f"{' and '.join(able)} takes several, or ask for each with its part of ε"
        )
        raise ArgumentError(msg, parameter="outcome")
    private = [one.column for one in domain.outcomes if one.missing == "private"]
    if private:
        msg = (
            f"several outcomes cannot leave out private missing ones ({private[0]!r}); declare "
            "them public, or the number that a missing outcome counts as"
        )
        raise ArgumentError(msg, parameter="missing outcomes")
    options: Any = request.options
    if getattr(options, "clip_fraction", 0):
        msg = (
            "several outcomes are not clipped to private ranges; declare tighter bounds, and leave "
            "out clip_share"
        )
        raise ArgumentError(msg, parameter="outcome bounds")
    if getattr(options, "outcome_sd", None) is not None:
        msg = (
            "one standard deviation does not serve several outcomes; give one by column: "
            f"outcome_sd={{{domain.outcome.column!r}: …}}"
        )
        raise ArgumentError(msg, parameter="outcome")
    columns = {one.column for one in domain.outcomes}
    unknown = next((name for name, _ in request.spreads if name not in columns), None)
    if unknown is not None:
        msg = f"a standard deviation is given for {unknown!r}, which is none of the outcomes"
        raise ArgumentError(msg, parameter="outcome")


def with_spreads(
    request: Request,
    outcome_sd: float | Mapping[str, float] | None,
    domain: Domain | None,
    method: Method,
) -> Request:
    """Return the request with guessed spreads: of one outcome a number, of several by column."""
    if outcome_sd is None:
        return request
    told = method.options() if request.options is None else request.options
    if not isinstance(outcome_sd, Mapping):
        return replace(request, options=with_outcome_sd(told, outcome_sd))
    if domain is None or not domain.further:
        column = "" if domain is None else domain.outcome.column
        if list(outcome_sd) != [column]:
            msg = "of one outcome the standard deviation is a number, not a mapping from columns"
            raise ArgumentError(msg, parameter="outcome")
        return replace(request, options=with_outcome_sd(told, outcome_sd[column]))
    return replace(request, spreads=tuple(outcome_sd.items()))


def request_for(request: Request, domain: Domain, place: int) -> Request:
    """Return what one of several outcomes is asked for: its guessed spread, and no clipping."""
    options = request.options
    if options is None and has_public_covariates(request.level):
        options = CalibratedOptions()
    if isinstance(options, CalibratedOptions):
        # Never clipped: all of ε goes to steps that are drawn together.
        spread = dict(request.spreads).get(domain.outcomes[place].column)
        options = replace(options, outcome_sd=spread, clip_share="0")
    return replace(request, options=options, spreads=(), outcomes=len(domain.outcomes))
