"""What goes in and out of the interface for programs, as OpenAPI describes it.

What a dataclass of the service says goes out as it is; what comes in has limits beside.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import Path, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

from private_ate.datasets.dummy import DummyStudy
from private_ate.domain import Domain
from private_ate.ledger.chain import Entry
from private_ate.parameters import Design, Estimand, Target
from private_ate.privacy.levels import Level
from private_ate.release.release import Release
from private_ate.report.markup import STYLE
from private_ate.service.policy import LONGEST_PURPOSE, Budget, Dataset, Policy, Question
from private_ate.service.store.events import Event
from private_ate.service.vocabulary import Role, Scope

_WORD = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
DatasetName = Annotated[str, Path(pattern=_WORD)]
RequestName = Annotated[str, Path(pattern=r"^r[0-9a-f]{31}$")]
TokenName = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$")]
Name = Annotated[str, Field(pattern=_WORD)]
Plain = bool | int | float | str | None


def _no_number(value: object) -> object:
    """Keep ε exact: a number stands for its shortest decimal text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


Exact = Annotated[str, BeforeValidator(_no_number), Field(max_length=100)]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _model_of(kind: type, limits: Mapping[str, Any]) -> Any:  # noqa: ANN401  # a model
    """Return a dataclass as a model: its names and defaults, and limits on what is sent."""
    made: dict[str, Any] = {}
    for item in fields(kind):
        usual = ... if item.default is MISSING else item.default
        if isinstance(usual, tuple):  # a list, as JSON has it
            usual = list(usual)
        if item.default_factory is not MISSING:
            usual = Field(default_factory=item.default_factory)
        made[item.name] = (limits.get(item.name, bool), usual)
    return create_model(kind.__name__, __base__=_In, **made)


_Columns = list[Annotated[str, Field(max_length=200)]]
_Chance = Annotated[float, Field(gt=0, lt=1)] | Annotated[str, Field(max_length=200)]
_Positive = Annotated[float, Field(gt=0, lt=1e150)]
_Coverage = Annotated[float, Field(ge=0.5, le=0.9999)]
_Question: Any = _model_of(
    Question,
    {
        "dataset": Name,
        "epsilon": Annotated[Exact, Field(examples=["0.3"])],
        "method": Annotated[str, Field(max_length=40)],
        "estimand": Estimand,
        "among": Annotated[str, Field(max_length=200)] | None,
        "target": Target,
        "design": Design,
        "probability": _Chance | None,
        "by": Annotated[_Columns, Field(max_length=20, examples=[["sex", "age<65"]])],
        "confidence": _Coverage | None,
        "neighbors": Annotated[int, Field(ge=1, le=1000)],
        "covariates": Annotated[_Columns, Field(max_length=1000)] | None,
        "outcome_sd": _Positive | None,
        "options": Annotated[dict[str, Plain | list[Plain]], Field(max_length=40)],
        "purpose": Annotated[str, Field(max_length=LONGEST_PURPOSE)],
    },
)
_Policy: Any = _model_of(
    Policy,
    {
        "methods": Annotated[list[str], Field(max_length=40)],
        "estimands": Annotated[list[str], Field(max_length=10)],
        "outcomes": Annotated[_Columns, Field(max_length=1000)] | None,
        "subgroups": Annotated[_Columns, Field(max_length=1000)] | None,
        "epsilon_per_request": Exact,
        "epsilon_per_month": Exact,
        "epsilon_at_least": Exact,
        "requests_per_day": Annotated[int, Field(ge=0, le=10**6)],
        "confidence_at_least": _Coverage,
    },
)


class QuestionBody(_Question):  # type: ignore[misc]  # made from the fields
    """What an analyst asks; ``epsilon`` is a decimal text, and is kept exactly."""

    def question(self) -> Question:
        """Return the question, read with the checks of the library."""
        return Question.read(self.model_dump(include={item.name for item in fields(Question)}))


class PlanBody(QuestionBody):
    """A question, and a half-width that is wanted."""

    half_width: _Positive | None = None


class PolicyModel(_Policy):  # type: ignore[misc]  # made from the fields
    """What a data set's policy approves by itself."""

    def policy(self) -> Policy:
        """Return the policy, checked."""
        return Policy.read(self.model_dump())


class DatasetBody(_In):
    """A new data set; ``epsilon`` makes a new population, without it the population is there."""

    name: Name
    population: Name
    level: Level
    epsilon: Exact | None = None
    delta: Exact = "0"
    domain: str = Field(max_length=60_000)
    columns: _Columns = Field(min_length=1, max_length=5000)
    rows: int = Field(ge=2, le=1 << 40)
    rows_per_person: int = Field(default=1, ge=1, le=10**6)
    source: str = Field(max_length=500)
    policy: PolicyModel = Field(default_factory=PolicyModel)

    def dataset(self, policy: Policy) -> Dataset:
        """Return the data set, with this policy."""
        return Dataset(
            self.name, self.population, self.level, Domain.from_toml(self.domain),
            tuple(self.columns), self.rows, self.rows_per_person, self.source, "", False, policy,
        )  # fmt: skip


class ApprovalBody(_In):
    """The hash of the plan that is approved."""

    plan: str = Field(pattern=r"^[0-9a-f]{64}$")


class RefusalBody(_In):
    """Why: one of the listed reasons."""

    reason: Literal["purpose", "cost", "method", "again"]


class TokenBody(_In):
    """A new token, of a new user or of one that is there."""

    owner: str = Field(max_length=200)
    role: Role
    scope: Scope = "full"
    days: int = Field(default=90, ge=1, le=366)


@dataclass(frozen=True, slots=True)
class DatasetOut:
    """A data set as far as it is public."""

    name: str
    level: str
    rows: int
    rows_per_person: int
    closed: bool
    budget: Budget
    typical_epsilon: str
    answers_left: int
    domain: str
    policy: Policy
    proposed_policy: Policy | None = None  # waits for a second person


@dataclass(frozen=True, slots=True)
class RequestOut:
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


@dataclass(frozen=True, slots=True)
class TokenIssued:
    """The token, shown once."""

    token: str


@dataclass(frozen=True, slots=True)
class CloseOut:
    """A data set that takes no more requests."""

    name: str
    closed: bool


@dataclass(frozen=True, slots=True)
class VerifyOut:
    """Whether both histories verify, and the ledger's end as far as answers are visible."""

    verified: bool
    reason: str
    entries: int
    head: str
    checked: str


@dataclass(frozen=True, slots=True)
class HealthOut:
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


class Csv(Response):
    """A table."""

    media_type = "text/csv"


class ReleaseJson(JSONResponse):
    """A release as JSON, as the ledger keeps it."""

    def render(self, content: str) -> bytes:
        """Return the text as it is."""
        return content.encode()


class Lines(StreamingResponse):
    """A JSON object a line."""

    media_type = "application/x-ndjson"


def release_page(text: str) -> HTMLResponse:
    """Return the self-contained page of a release: its own style by its hash, and no more."""
    mark = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{mark}'; frame-ancestors 'none'; sandbox"
    page = Release.from_json(text).to_html()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


def dummy_csv(study: DummyStudy) -> Csv:
    """Return made-up data as a file."""
    headers = {"X-Known-Effect": f"{study.effect:g}"}
    return Csv(study.frame.write_csv(), headers=headers)


def audit_lines(entries: list[Entry], events: list[Event]) -> Lines:
    """Return the public part of ledger and events, a JSON object a line."""
    return Lines(_chunks(_lines(entries, events)))


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """Join lines by the thousand: each chunk is a step of a thread."""
    while chunk := "".join(islice(lines, 1000)):
        yield chunk


def _lines(entries: list[Entry], events: list[Event]) -> Iterator[str]:
    for name, items in (("ledger", entries), ("event", events)):
        for item in items:
            plain: dict[str, Any] = {"chain": name, **asdict(item)}
            yield json.dumps(plain, ensure_ascii=True) + "\n"
