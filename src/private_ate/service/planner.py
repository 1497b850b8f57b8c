"""What to expect of a question: predicted from public sizes, without a record."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, cast

from private_ate.domain import Domain
from private_ate.estimators.registry import AUTO
from private_ate.planning import Plan, PlanRow, StudySizes, plan_ate
from private_ate.privacy.levels import has_public_covariates
from private_ate.service.question import Question, Settled
from private_ate.service.store.catalogue import Dataset

__all__ = ["Expectation", "expect"]

_AT_ONCE: Final = threading.BoundedSemaphore(2)  # a search takes a second of a core
_GUESSED_SHARE: Final = 0.5  # the mean of private sampling weights over their bound
_MOST_ROWS: Final = 200_000  # a larger study is predicted as one of this size would be, or better


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a plan says about one ε, and about a wanted half-width; None where nothing is known."""

    row: PlanRow | None
    answer: str
    epsilon_needed: float | None
    caveat: str


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
    if dataset.domain.weights is not None and has_public_covariates(request.level):
        told = "what to expect under sampling weights is read off them, and no record is read here"
        return Expectation(None, "", None, told)
    with _AT_ONCE:
        plan = _plan(question, dataset, settled, options, half_width)
    return Expectation(plan.rows[0], plan.answer, plan.epsilon_needed, plan.caveat)


def _plan(
    question: Question,
    dataset: Dataset,
    settled: Settled,
    options: object,
    half_width: float | None,
) -> Plan:
    request = settled.request
    used = _used(dataset.domain, question.covariates)
    rows = min(dataset.size, _MOST_ROWS)
    share = 1.0 if used.weights is None else _GUESSED_SHARE
    sizes = StudySizes.declared(rows, len(used.features), used.bounds, share)
    return plan_ate(
        sizes, level=request.level, epsilons=[Fraction(request.epsilon)],
        half_width=half_width, target=request.target, neighbors=request.neighbors,
        estimand=request.estimand, confidence=request.confidence,
        rows_per_person=request.rows_per_person, design=request.design,
        options=cast("Any", options),
    )  # fmt: skip


def _used(domain: Domain, names: tuple[str, ...] | None) -> Domain:
    if names is None:
        return domain
    return replace(domain, covariates={name: domain.covariates[name] for name in names})
