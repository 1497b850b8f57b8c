"""Plans of several outcomes: a planner for each, and one table of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from private_ate.data.inputs import resolve_domain
from private_ate.domain import Domain, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.planning.answers import Planner
from private_ate.planning.plan import PlanRow
from private_ate.planning.sizes import StudySizes

__all__ = ["declared_outcomes", "one_outcome", "plan_together", "spread_of"]


def declared_outcomes(
    data: object, domain: Domain | None, treatment: str | Treatment | None, outcome: object
) -> Domain | None:
    """Return a domain with several outcomes that are meant; None where it is one."""
    if isinstance(data, LocalStudy):
        return data.domain if data.domain.further else None
    named = None if outcome is None or isinstance(outcome, str) else list(outcome)  # type: ignore[call-overload]  # names, checked there
    if domain is None and named is not None and treatment is not None:
        domain = Domain(treatment, named)
    if domain is None:
        return None
    known = resolve_domain(domain, None, named if named is not None else _text(outcome))
    return known if known.further else None


def one_outcome(data: object, domain: Domain, place: int) -> object:
    """Return what a plan of one of several outcomes reads: the same people, its own bounds."""
    if isinstance(data, LocalStudy):
        if data.further:
            return data.with_outcome(place)
        return replace(data.public(), domain=domain.of_outcome(place))
    if isinstance(data, StudySizes):
        bounds = domain.of_outcome(place).bounds
        return StudySizes.declared(data.rows, data.covariates, bounds)
    return data


def spread_of(outcome_sd: float | Mapping[str, float] | None, column: str | None) -> float | None:
    """Return the guessed standard deviation of one outcome."""
    if isinstance(outcome_sd, Mapping):
        if column is None and len(outcome_sd) == 1:
            return next(iter(outcome_sd.values()))
        return None if column is None else outcome_sd.get(column)
    if outcome_sd is not None and column is not None:
        msg = (
            "one standard deviation does not serve several outcomes; give one by column: "
            f"outcome_sd={{{column!r}: …}}"
        )
        raise ArgumentError(msg, parameter="outcome")
    return outcome_sd


def plan_together(planners: Mapping[str, Planner]) -> Planner:
    """Return one planner of all outcomes; a wanted half-width is that of the first."""
    headline, first = next(iter(planners.items()))

    def table(size: int, epsilon: float) -> tuple[PlanRow, ...]:
        return tuple(
            replace(row, outcome=column)
            for column, planner in planners.items()
            for row in planner.rows(size, epsilon)
        )

    caveat = (
        f"is of {len(planners)} outcomes that are drawn together at one ε; for {headline!r} it "
        f"{first.caveat}"
    )
    return replace(first, caveat=caveat, table=table, whose=f"{first.wanted_of} of {headline}")


def _text(outcome: object) -> str | None:
    return outcome if isinstance(outcome, str) else None
