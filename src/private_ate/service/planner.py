"""What to expect of a question: predicted from public sizes, without a record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from private_ate.domain import Domain
from private_ate.domain.subgroups import Cells
from private_ate.estimators.registry import AUTO
from private_ate.planning import Plan, PlanRow, StudySizes, plan_ate
from private_ate.privacy.levels import has_public_covariates
from private_ate.service.question import Question, Settled
from private_ate.service.store.catalogue import Dataset

__all__ = ["Expectation", "expect"]

_GUESSED_SHARE: Final = 0.5  # the mean of private sampling weights over their bound
_MOST_ROWS: Final = 200_000  # a larger study is predicted as one of this size would be, or better


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a plan says about one ε, and about a wanted half-width; None where nothing is known."""

    row: PlanRow | None
    answer: str
    epsilon_needed: float | None
    caveat: str
    contrasts: tuple[PlanRow, ...] = ()  # of three arms or more, every one that is planned


def expect(
    question: Question, dataset: Dataset, settled: Settled, half_width: float | None
) -> Expectation:
    """Predict error and width of an answer; methods kept for comparison have no planner."""
    request = settled.request
    planned = AUTO[request.level]
    if settled.method.name not in planned:
        told = f"methods {', '.join(planned)} can be planned; {settled.method.name!r} cannot"
        return Expectation(None, "", None, told)
    options = request.options
    if options is None and settled.method.name != planned[0]:
        options = settled.method.options()
    used = _used(dataset.domain, question.covariates)
    # Where the sizes of subgroups are not public, and where nobody may look: of equal size.
    cells = Cells.of(dataset.domain, request.by).count - 1
    if request.overall:  # half of ε goes to all units, so the ε for a width is not that of a plan
        half_width = None
    plan = _plan(used, max(dataset.size // cells, 2), settled, options, half_width)
    caveat = plan.caveat
    if cells > 1:
        caveat += f"; it is one of {cells} subgroups as if they were of equal size"
    if used.weights is not None:
        caveat += "; sampling weights are not opened for it and make it wider"
    arms = used.treatment
    row = next((row for row in plan.rows if row.arm == arms.treated), plan.rows[0])
    rest = plan.rows if arms.size > 2 else ()
    return Expectation(row, plan.answer, plan.epsilon_needed, caveat, rest)


def _plan(
    used: Domain, rows: int, settled: Settled, options: object, half_width: float | None
) -> Plan:
    request = settled.request
    is_private = not has_public_covariates(request.level)
    share = _GUESSED_SHARE if used.weights is not None and is_private else 1.0
    sizes = StudySizes.declared(min(rows, _MOST_ROWS), len(used.features), used.bounds, share)
    epsilon = request.epsilon / 2 if request.overall else request.epsilon
    asked = request.arguments("plan_ate") | {"by": (), "overall": False, "options": options}
    domain = replace(used, weights=None)
    return plan_ate(
        sizes, epsilons=[Fraction(epsilon)], domain=domain, half_width=half_width, **asked
    )


def _used(domain: Domain, names: tuple[str, ...] | None) -> Domain:
    if names is None:
        return domain
    return replace(domain, covariates={name: domain.covariates[name] for name in names})
