"""What to expect of a question from public sizes, and whether its answer can adjust at all.

Some methods compare arms as they are where n·ε is too small to adjust: then the answer is no effect
but a difference. That follows from public numbers, so a policy can know it before anything is
spent, whatever the request calls itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from private_ate.domain.subgroups import Cells
from private_ate.errors import PrivateAteError
from private_ate.planning import Plan, StudySizes, plan_ate
from private_ate.privacy.levels import has_public_covariates
from private_ate.service.question import Question, Settled, check_question
from private_ate.service.store.catalogue import Dataset

__all__ = ["plan_question", "settle_question"]

# Methods without a planner that compare arms as they are, or do where their noise is wide.
_MAY_NOT_ADJUST: Final = frozenset({"difference_in_means", "published"})
_REMEMBERED: Final = 256
_MOST_ROWS: Final = 200_000  # a larger study is predicted as one of this size would be, or better


@dataclass(frozen=True, slots=True)
class _Case:
    """A question about a data set, distinguished from others by the hash of its plan and n."""

    plan: str
    rows: int
    question: Question = field(compare=False)
    about: Dataset = field(compare=False)
    settled: Settled = field(compare=False)


def settle_question(question: Question, dataset: Dataset) -> Settled:
    """Check a question against a data set without opening it, and what its release may be about."""
    settled = check_question(question, dataset)
    return replace(settled, estimands=_judged_as(question, dataset, settled))


def _judged_as(question: Question, dataset: Dataset, settled: Settled) -> tuple[str, ...]:
    """Return all that a release may turn out to be about, a mere difference of arms included.

    Follows from n, ε, the domain and what is asked alone.
    """
    known = settled.estimands
    if settled.request.design == "randomized" or known == ("difference",):
        return known
    if settled.method.name in _MAY_NOT_ADJUST:
        return (*known, "difference")
    if has_public_covariates(settled.request.level):
        return known
    if settled.request.by:  # the smallest released subgroup decides, for all of them
        return (*known, "difference")
    adjusts = _adjusts(_Case(settled.bill.plan, dataset.size, question, dataset, settled))
    return known if adjusts else ("difference",)


@lru_cache(maxsize=_REMEMBERED)
def _adjusts(case: _Case) -> bool:
    """Ask the planner, which takes the steps of the method; remembered, as charges ask again."""
    try:
        plan = plan_question(case.question, case.about, case.settled, None)
    except PrivateAteError:  # refused by the estimate too, before it is charged
        return True
    return plan is None or plan.rows[0].adjusted


def plan_question(
    question: Question, dataset: Dataset, settled: Settled, half_width: float | None
) -> Plan | None:
    """Plan a question without opening its data set; None where the method has no plans.

    Subgroups are planned as one of as many equal ones: their sizes are not public, or nobody may
    look at them.
    """
    request, method = settled.request, settled.method
    if not method.predict_at:
        return None
    domain = dataset.domain
    if question.covariates is not None:
        kept = {name: domain.covariates[name] for name in question.covariates}
        domain = replace(domain, covariates=kept)
    cells = Cells.of(dataset.domain, request.by).count - 1
    rows = min(max(dataset.size // cells, 2), _MOST_ROWS)
    options = method.options() if request.options is None else request.options
    epsilon = request.epsilon / 2 if request.overall else request.epsilon
    # Half of ε goes to all units, so the ε for a width is not that of a plan for one subgroup.
    wanted = None if request.overall else half_width
    asked = request.arguments("plan_ate") | {"by": (), "overall": False, "options": options}
    sizes = StudySizes.declared(rows, len(domain.features), domain.bounds)
    plan = plan_ate(sizes, epsilons=[epsilon], domain=domain, half_width=wanted, **asked)
    caveat = plan.caveat
    if cells > 1:
        caveat += f"; it is one of {cells} subgroups as if they were of equal size"
    if domain.weights is not None:
        caveat += "; sampling weights are not opened for it and make it wider"
    return replace(plan, caveat=caveat)
