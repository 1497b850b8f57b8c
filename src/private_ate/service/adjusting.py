"""Whether an answer can adjust for covariates at all: then it is an effect, else a difference.

Some methods compare arms as they are where n·ε is too small to adjust. That follows from public
numbers, so a policy can know it before anything is spent, whatever the request calls itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from private_ate.errors import PrivateAteError
from private_ate.privacy.levels import has_public_covariates
from private_ate.service.planner import expect
from private_ate.service.question import Question, Settled, check_question
from private_ate.service.store.catalogue import Dataset

__all__ = ["settle_question"]

# Methods without a planner that compare arms as they are, or do where their noise is wide.
_MAY_NOT_ADJUST: Final = frozenset({"difference_in_means", "published"})
_REMEMBERED: Final = 256


@dataclass(frozen=True, slots=True)
class _Case:
    """A question about a data set, told apart from others by the hash of its plan and n."""

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
    adjusts = _adjusts(_Case(settled.bill.plan, dataset.size, question, dataset, settled))
    return known if adjusts else ("difference",)


@lru_cache(maxsize=_REMEMBERED)
def _adjusts(case: _Case) -> bool:
    """Ask the planner, which takes the steps of the method; remembered, as charges ask again."""
    try:
        row = expect(case.question, case.about, case.settled, None).row
    except PrivateAteError:  # refused by the estimate too, before it is charged
        return True
    return row is None or row.adjusted
