"""Whether an answer can adjust for covariates at all: then it is an effect, else a difference.

Some methods compare arms as they are where n·ε is too small to adjust. That follows from public
numbers, so a policy can know it before anything is spent, whatever the request calls itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from private_ate.errors import PrivateAteError
from private_ate.privacy.levels import has_public_covariates

if TYPE_CHECKING:
    from private_ate.service.question import Question, Settled
    from private_ate.service.store.catalogue import Dataset

__all__ = ["judged_as"]

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


def judged_as(question: Question, dataset: Dataset, settled: Settled) -> tuple[str, ...]:
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
    from private_ate.service.planner import expect  # it is about questions itself

    try:
        row = expect(case.question, case.about, case.settled, None).row
    except PrivateAteError:  # refused by the estimate too, before it is charged
        return True
    return row is None or row.adjusted
