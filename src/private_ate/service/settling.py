"""A question about a data set: its request, its method, its plan's hash, and what to expect of it.

The same question gives the arguments of the estimate in the worker and, from the names of columns
alone, the plan's hash in the web process. What to expect of it is predicted from public sizes. Some
methods compare arms as they are where n·ε is too small to adjust: then the answer is no effect but
a difference. That follows from public numbers, so a policy can know it before anything is spent,
whatever the request calls itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final, Self, cast

from private_ate.arguments import shown
from private_ate.charging import Bill, bill_for_columns
from private_ate.domain import Treatment
from private_ate.domain.domain import Cells
from private_ate.errors import ArgumentError, PrivateAteError
from private_ate.methods.composition import method_for, refuse_gaps
from private_ate.methods.options import options_from_values, with_deviations
from private_ate.methods.registry import AUTO, Method
from private_ate.planning import Plan, PlanRow, StudySizes, plan_ate
from private_ate.privacy.levels import has_public_covariates
from private_ate.request import Request, among_arm
from private_ate.service.policy import Balance, Budget, Dataset, Question, Wish
from private_ate.service.release_times import JobSize

# Methods without a planner that compare arms as they are, or do where their noise is wide.
_MAY_NOT_ADJUST: Final = frozenset({"difference_in_means", "published"})
_REMEMBERED: Final = 256
_MOST_ROWS: Final = 200_000  # a larger study is predicted as one of this size would be, or better
# What a question hands on to a request as it is; an arm and options are settled first.
_HANDED_ON: Final = {item.name for item in fields(Question)} & {
    item.name for item in fields(Request)
} - {"among", "options"}


@dataclass(frozen=True, slots=True)
class Settled:
    """A question about a data set, checked: its request, its method, and what it would cost."""

    dataset: Dataset
    request: Request
    method: Method
    bill: Bill
    asks: Wish  # what a policy looks at, without what was asked before

    def stated(self) -> dict[str, Any]:
        """Say what is asked, from the very object whose hash is approved.

        Main facts come first and always; all others that are not at their usual value follow, with
        the method's own options by their names.
        """
        words = dict(self.bill.words)
        asked = dict(words.pop("request"))
        options = asked.pop("options") or {}
        own = self.method.options
        usual = {item.name: item.default for item in fields(Request)}
        if is_dataclass(own):
            usual |= {item.name: item.default for item in fields(own)}
        found = {name: words.pop(name) for name in ("method", "treatment", "outcome", "covariates")}
        found |= {name: asked.pop(name) for name in ("level", "estimand", "confidence")}
        for name in ("options", "binding"):  # a class, and what the data set itself declares
            del words[name]
        del asked["epsilon"]  # the cost
        rest = {**words, **asked, **options}
        return found | {
            name: value
            for name, value in rest.items()
            if name not in usual or not _same(value, usual[name])
        }


def settle_question(question: Question, dataset: Dataset) -> Settled:
    """Check a question against a data set without opening it, and what its release may be about."""
    covariates, domain = question.covariates, dataset.domain
    unknown = next((name for name in covariates or () if name not in domain.covariates), None)
    if unknown is not None:
        msg = f"covariate {shown(unknown)} is not declared in data set {dataset.name!r}"
        raise ArgumentError(msg, parameter="covariates")
    chance = question.probability
    if isinstance(chance, str) and chance not in (covariates or domain.covariates):
        msg = (
            "the probability of treatment is a number or a covariate of the question, not "
            f"{shown(chance)}"
        )
        raise ArgumentError(msg)
    options = None
    if question.options:
        options = options_from_values(question.method, dataset.level, question.options)
    asked: dict[str, Any] = {
        "level": dataset.level, "rows_per_person": dataset.rows_per_person,
        **{name: getattr(question, name) for name in _HANDED_ON}, "options": options,
    }  # fmt: skip
    request = among_arm(Request(**asked), domain.treatment, question.among)
    method = method_for(question.method, request)
    request = with_deviations(request, question.outcome_sd, domain, method)
    # What the estimate would refuse from the request and the domain alone is refused here.
    refuse_gaps(method, request, domain)
    bill = bill_for_columns(dataset.columns, request, method, domain, covariates)
    columns = tuple(one.column for one in Cells.of(domain, request.by).partitions)
    asks = Wish(
        method.name, _possible_estimands(method, request, domain.treatment), bill.cost.epsilon,
        bill.cost.delta, request.confidence, outcomes=(domain.outcome.column,),
        subgroups=tuple(dict.fromkeys(columns)),
    )  # fmt: skip
    settled = Settled(dataset, request, method, bill, asks)
    return replace(settled, asks=replace(asks, estimands=_judged_as(settled)))


def job_size(settled: Settled) -> JobSize:
    """Return the size of a question's job."""
    request, dataset = settled.request, settled.dataset
    return JobSize(
        settled.method.name, dataset.level, dataset.size, len(dataset.domain.features),
        dataset.domain.treatment.size, len(request.by),
        getattr(request.options, "partitions", None), request.target == "track",
    )  # fmt: skip


def _possible_estimands(method: Method, request: Request, treatment: Treatment) -> tuple[str, ...]:
    """Return all that a release may turn out to be about; follows from public facts alone.

    Options can decide about it, the units of one of several arms are an ATT or an ATC, and some
    methods choose among estimands by what they have released.
    """
    if request.among is not None:
        return ("atc" if request.among == treatment.coded[0] else "att",)
    adjusts = getattr(request.options, "adjust", None)
    if adjusts is False and request.design != "randomized":
        return ("difference",)
    if getattr(request.options, "model", None) == "overlap":
        return ("ato",)
    return tuple(dict.fromkeys((request.estimand, *method.turns_to)))


def _same(plain: object, usual: object) -> bool:
    """Whether a plain value of a plan is the usual value of a parameter."""
    listed = [str(item) for item in usual] if isinstance(usual, tuple) else usual
    return plain in (usual, listed, str(usual)) if usual is not None else plain is None


@dataclass(frozen=True, slots=True)
class _Case:
    """A settled question, distinguished from others by the hash of its plan and n."""

    plan: str
    rows: int
    settled: Settled = field(compare=False)


def _judged_as(settled: Settled) -> tuple[str, ...]:
    """Return all that a release may turn out to be about, a mere difference of arms included.

    Follows from n, ε, the domain and what is asked alone.
    """
    known, request = settled.asks.estimands, settled.request
    if request.design == "randomized" or known == ("difference",):
        return known
    if settled.method.name in _MAY_NOT_ADJUST:
        return (*known, "difference")
    if has_public_covariates(request.level):
        return known
    if request.by:  # the smallest released subgroup decides, for all of them
        return (*known, "difference")
    adjusts = _adjusts(_Case(settled.bill.plan, settled.dataset.size, settled))
    return known if adjusts else ("difference",)


@lru_cache(maxsize=_REMEMBERED)
def _adjusts(case: _Case) -> bool:
    """Ask the planner, which takes the steps of the method; remembered, as charges ask again."""
    try:
        plan = plan_question(case.settled)
    except PrivateAteError:  # refused by the estimate too, before it is charged
        return True
    return plan is None or plan.rows[0].adjusted


def plan_question(settled: Settled, half_width: float | None = None) -> Plan | None:
    """Plan a question without opening its data set; None where the method has no plans.

    Subgroups are planned as one of as many equal ones: their sizes are not public, or nobody may
    look at them.
    """
    request, method, dataset = settled.request, settled.method, settled.dataset
    if not method.predict_at:
        return None
    domain = dataset.domain
    if request.covariates is not None:
        kept = {
            name: domain.covariates[name] for name in cast("tuple[str, ...]", request.covariates)
        }
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


@dataclass(frozen=True, slots=True)
class Expected:
    """What to expect of an answer, in units of the outcome."""

    error: float
    noise_error: float
    sampling_error: float
    half_width: float
    detectable_effect: float
    adjusted: bool
    note: str
    arm: str | None = None
    against: str | None = None

    @classmethod
    def of(cls, row: PlanRow) -> Self:
        """Return a row of a plan as it is shown."""
        rest = (getattr(row, item.name) for item in fields(cls)[1:])
        return cls(row.expected_error, *rest)


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan: its hash, its cost, what to expect of it, and who would decide."""

    plan: str
    method: str
    epsilon: str
    delta: str
    expected: Expected | None
    contrasts: list[Expected]
    answer: str
    epsilon_needed: float | None
    caveat: str
    automatic: bool
    objections: list[str]
    budget: Budget
    answers_left: int
    affordable: bool

    @classmethod
    def of(
        cls, settled: Settled, plan: Plan | None, balance: Balance, objections: tuple[str, ...]
    ) -> Self:
        """Return what is shown of a question before it is put."""
        method, cost = settled.method.name, settled.bill.cost
        arms = settled.dataset.domain.treatment
        rows = () if plan is None else plan.rows
        headline = next((row for row in rows if row.arm == arms.treated), rows[0] if rows else None)
        planned = AUTO[settled.request.level]
        return cls(
            settled.bill.plan, method, cost.epsilon_text, cost.delta_text,
            None if headline is None else Expected.of(headline),
            [Expected.of(row) for row in rows if arms.size > 2],
            "" if plan is None else plan.answer, None if plan is None else plan.epsilon_needed,
            f"methods {planned} can be planned; {method!r} cannot" if plan is None else plan.caveat,
            not objections, list(objections), balance.budget, balance.answers(cost),
            cost.fits(balance.left),
        )  # fmt: skip
