"""What goes in and out of the interface for programs, as OpenAPI describes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

__all__ = [
    "ApprovalBody",
    "BudgetOut",
    "CloseOut",
    "DatasetBody",
    "DatasetName",
    "DatasetOut",
    "ExpectedOut",
    "HeadOut",
    "HealthOut",
    "PlanBody",
    "PlanOut",
    "PolicyModel",
    "Problem",
    "QuestionBody",
    "RefusalBody",
    "RequestName",
    "RequestOut",
    "TokenBody",
    "TokenIssued",
    "TokenName",
    "TokenOut",
    "UserOut",
    "VerifyOut",
]

DatasetName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
RequestName = Annotated[str, Path(pattern=r"^r[0-9a-f]{31}$")]
TokenName = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Plain = bool | int | float | str | None


def _no_number(value: object) -> object:
    """Keep ε exact: a number stands for its shortest decimal text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


Exact = Annotated[str, BeforeValidator(_no_number), Field(max_length=100)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class QuestionBody(_In):
    """What an analyst asks; ``epsilon`` is a decimal text, and is kept exactly."""

    dataset: Name
    epsilon: Exact = Field(examples=["0.3"])
    method: str = Field(default="auto", max_length=40)
    estimand: Literal["ate", "att", "atc", "ato"] = "ate"
    among: str | None = Field(default=None, max_length=200)
    target: Literal["balance", "track"] = "balance"
    design: Literal["unknown", "observational", "randomized"] = "unknown"
    probability: (
        Annotated[float, Field(gt=0, lt=1)] | Annotated[str, Field(max_length=200)] | None
    ) = None
    by: list[Annotated[str, Field(max_length=200)]] = Field(
        default_factory=list, max_length=20, examples=[["sex", "age<65"]]
    )
    overall: bool = False
    confidence: float | None = Field(default=0.95, ge=0.5, le=0.9999)
    neighbors: int = Field(default=5, ge=1, le=1000)
    covariates: list[Annotated[str, Field(max_length=200)]] | None = Field(
        default=None, max_length=1000
    )
    outcome_sd: float | None = Field(default=None, gt=0, lt=1e150)
    leave_out_undeclared: bool = False
    options: dict[str, Plain | list[Plain]] = Field(default_factory=dict, max_length=40)
    dummy: bool = False
    purpose: str = Field(default="", max_length=300)


class PlanBody(QuestionBody):
    """A question, and a half-width that is wanted."""

    half_width: float | None = Field(default=None, gt=0, lt=1e150)


class BudgetOut(BaseModel):
    """A population's budget: what it is, and what is left of it."""

    population: str
    epsilon: str
    left: str
    delta: str
    delta_left: str


class PolicyModel(_In):
    """What a data set's policy approves by itself."""

    automatic: bool = True
    methods: list[str] = Field(default=["calibrated", "blocks"], max_length=40)
    estimands: list[str] = Field(default=["ate", "att", "atc", "ato"], max_length=10)
    outcomes: list[Annotated[str, Field(max_length=200)]] | None = Field(
        default=None, max_length=1000
    )
    subgroups: list[Annotated[str, Field(max_length=200)]] | None = Field(
        default=None, max_length=1000
    )
    epsilon_per_request: Exact = "0.5"
    epsilon_per_month: Exact = "1"
    epsilon_at_least: Exact = "0.01"
    requests_per_day: int = Field(default=50, ge=0, le=10**6)
    needs_interval: bool = False
    confidence_at_least: float = Field(default=0.9, ge=0.5, le=0.9999)
    two_persons: bool = False


class DatasetOut(BaseModel):
    """A data set as far as it is public."""

    name: str
    level: str
    rows: int
    rows_per_person: int
    closed: bool
    budget: BudgetOut
    typical_epsilon: str
    answers_left: int
    domain: str
    policy: PolicyModel
    proposed_policy: PolicyModel | None = None  # waits for a second person


class DatasetBody(_In):
    """A new data set; ``epsilon`` makes a new population, without it the population is there."""

    name: Name
    population: Name
    level: Literal["label", "sample"]
    epsilon: Exact | None = None
    delta: Exact = "0"
    domain: str = Field(max_length=60_000)
    columns: list[Annotated[str, Field(max_length=200)]] = Field(min_length=1, max_length=5000)
    rows: int = Field(ge=2, le=1 << 40)
    rows_per_person: int = Field(default=1, ge=1, le=10**6)
    source: str = Field(max_length=500)
    policy: PolicyModel = Field(default_factory=PolicyModel)


class ExpectedOut(BaseModel):
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


class PlanOut(BaseModel):
    """A plan: its hash, its cost, what to expect of it, and who would decide."""

    plan: str
    method: str
    epsilon: str
    delta: str
    expected: ExpectedOut | None
    contrasts: list[ExpectedOut]
    answer: str
    epsilon_needed: float | None
    caveat: str
    automatic: bool
    objections: list[str]
    budget: BudgetOut
    answers_left: int
    affordable: bool


class RequestOut(BaseModel):
    """A request as it may be shown: from the queue on nothing more, until its tick."""

    id: str
    dataset: str
    analyst: str
    plan: str
    epsilon: str
    delta: str
    dummy: bool
    state: str
    code: str
    reason: str
    approved_by: list[str]
    submitted: str
    due: str | None
    question: dict[str, Any]


class ApprovalBody(_In):
    """The hash of the plan that is approved."""

    plan: str = Field(pattern=r"^[0-9a-f]{64}$")


class RefusalBody(_In):
    """Why: one of the listed reasons."""

    reason: Literal["purpose", "cost", "method", "again"]


class TokenBody(_In):
    """A new token, of a new user or of one that is there."""

    owner: str = Field(max_length=200)
    role: Literal["analyst", "curator", "auditor"]
    scope: Literal["full", "read"] = "full"
    days: int = Field(default=90, ge=1, le=366)


class TokenIssued(BaseModel):
    """The token, shown once."""

    token: str


class TokenOut(BaseModel):
    """A token without its secret."""

    id: str
    owner: str
    role: str
    scope: str
    expires: str
    revoked: bool


class UserOut(BaseModel):
    """A user, and how many valid tokens it has."""

    name: str
    role: str
    revoked: bool
    tokens: int


class CloseOut(BaseModel):
    """A data set that takes no more requests."""

    name: str
    closed: bool


class VerifyOut(BaseModel):
    """Whether both histories verify, and the ledger's end as far as answers are visible."""

    verified: bool
    reason: str
    entries: int
    head: str
    checked: str


class HeadOut(BaseModel):
    """An end of the ledger's history."""

    at: str
    entries: int
    hash: str


class HealthOut(BaseModel):
    """Whether the service answers."""

    status: Literal["ok"]


class Problem(BaseModel):
    """An error after RFC 9457: a stable code, one sentence, and an id where it was not foreseen."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    instance: str = ""
