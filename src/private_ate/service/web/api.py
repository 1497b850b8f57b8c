"""The interface for programs, under /v1: each endpoint asks the desk and words its answer."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import StreamingResponse

from private_ate.domain import Domain
from private_ate.estimators.registry import AUTO
from private_ate.planning import PlanRow
from private_ate.privacy.ledger.chain import Entry
from private_ate.privacy.ledger.store import read_entries
from private_ate.release import Release
from private_ate.report.markup import STYLE
from private_ate.service.adjusting import plan_question
from private_ate.service.desk import Balance, Desk
from private_ate.service.heads import first_hidden, holds_head, visible_heads
from private_ate.service.policy import Policy
from private_ate.service.question import Question
from private_ate.service.store.catalogue import (
    Dataset,
    add_dataset,
    add_population,
    close_dataset,
    set_policy,
)
from private_ate.service.store.events import Event, read_events
from private_ate.service.store.people import (
    Actor,
    add_user,
    issue_token,
    list_tokens,
    list_users,
    revoke_token,
)
from private_ate.service.store.requests import RequestRow
from private_ate.service.web.identity import actor_of, anybody, desk_of, health_check
from private_ate.service.web.models import (
    ApprovalBody,
    BudgetOut,
    CloseOut,
    DatasetBody,
    DatasetOut,
    ExpectedOut,
    HeadOut,
    HealthOut,
    PlanBody,
    PlanOut,
    PolicyModel,
    QuestionBody,
    RefusalBody,
    RequestOut,
    TokenBody,
    TokenIssued,
    TokenOut,
    UserOut,
    VerifyOut,
)

__all__ = [
    "audit_lines",
    "dataset_from",
    "dummy_csv",
    "plan_out",
    "release_page",
    "request_out",
    "router",
    "time_text",
]

router = APIRouter(prefix="/v1")

Who = Annotated[Actor, Depends(actor_of)]
At = Annotated[Desk, Depends(desk_of)]
DatasetName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
RequestName = Annotated[str, Path(pattern=r"^r[0-9a-f]{31}$")]
UserName = Annotated[str, Path(pattern=r"^[^\x00-\x1f\x7f/]{1,200}$")]
TokenName = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$")]
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
HeadHash = Annotated[str | None, Query(pattern=r"^[0-9a-f]{64}$")]
Limit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
_MOST_DUMMIES: Final = 10_000


@router.get("/datasets")
def datasets(actor: Who, desk: At) -> list[DatasetOut]:
    """List the data sets with what is left of their budgets."""
    actor.require("analyst", "curator", "auditor")
    return [dataset_out(found, balance) for found, balance in desk.datasets()]


@router.get("/datasets/{name}")
def dataset(name: DatasetName, actor: Who, desk: At) -> DatasetOut:
    """Describe a data set: domain, size, budget, policy."""
    actor.require("analyst", "curator", "auditor")
    return dataset_out(*desk.dataset(name))


@router.get("/datasets/{name}/dummy.csv", response_class=Response)
def dummy(
    name: DatasetName,
    actor: Who,
    desk: At,
    rows: Annotated[int, Query(ge=2, le=_MOST_DUMMIES)] = 1000,
) -> Response:
    """Draw made-up people from the declared domain alone, with a known effect."""
    actor.require("analyst", "curator", "auditor")
    return dummy_csv(actor, desk, name, rows)


@router.post("/datasets", status_code=201)
def add(body: DatasetBody, actor: Who, desk: At) -> DatasetOut:
    """Register a data set, and its population if a budget is given."""
    actor.require("curator", write=True)
    desk.require_management()
    new = dataset_from(body)
    with desk.store.transaction() as execute:
        if body.epsilon is not None:
            add_population(
                execute, body.population, body.level, body.epsilon, body.delta, actor.name
            )
        add_dataset(execute, new, actor.name)
    return dataset_out(*desk.dataset(body.name))


@router.post("/datasets/{name}/close")
def close(name: DatasetName, actor: Who, desk: At) -> CloseOut:
    """Take no more requests for a data set."""
    actor.require("curator", write=True)
    with desk.store.transaction() as execute:
        close_dataset(execute, name, actor.name, desk.clock())
    return CloseOut(name=name, closed=True)


@router.put("/datasets/{name}/policy")
def policy(name: DatasetName, body: PolicyModel, actor: Who, desk: At) -> DatasetOut:
    """Replace what a data set's policy approves by itself; requests made before keep theirs.

    Where two persons decide, a looser policy is proposed until another curator sends the same.
    """
    actor.require("curator", write=True)
    desk.require_management()
    new = Policy.read(body.model_dump())
    with desk.store.transaction() as execute:
        is_held = set_policy(execute, name, new, actor.name)
    out = dataset_out(*desk.dataset(name))
    return out if is_held else out.model_copy(update={"proposed_policy": body})


@router.delete("/users/{name}", status_code=204, response_class=Response)
def revoke_person(name: UserName, actor: Who, desk: At) -> Response:
    """Revoke a user with all tokens, sessions, approvals and requests that have not started."""
    desk.revoke(actor, name)
    return Response(status_code=204)


@router.post("/plans")
def plan(body: PlanBody, actor: Who, desk: At) -> PlanOut:
    """Say what a question would cost and what to expect of its answer; spends nothing."""
    actor.require("analyst", "curator")
    plain = body.model_dump()
    half_width = plain.pop("half_width")
    return plan_out(actor, desk, Question.read(plain), half_width)


@router.get("/requests")
def requests(
    actor: Who, desk: At, response: Response, limit: Limit = 200, offset: Offset = 0
) -> list[RequestOut]:
    """List requests, the newest first: an analyst's own, or all; Link names the next ones."""
    actor.require("analyst", "curator", "auditor")
    rows = desk.requests(actor, most=limit + 1, skip=offset)
    if len(rows) > limit:
        following = f"/v1/requests?limit={limit}&offset={offset + limit}"
        response.headers["Link"] = f'<{following}>; rel="next"'
    return [request_out(row, desk) for row in rows[:limit]]


@router.post("/requests", status_code=202)
def submit(body: QuestionBody, key: Key, actor: Who, desk: At, response: Response) -> RequestOut:
    """Ask; the same key and plan give the same request, another plan is a conflict."""
    row = desk.submit(actor, Question.read(body.model_dump()), key)
    response.headers["Location"] = f"/v1/requests/{row.id}"
    return _waiting(row, desk, response)


@router.get("/requests/{name}")
def show(name: RequestName, actor: Who, desk: At, response: Response) -> RequestOut:
    """Show a request; Retry-After says when to look again."""
    return _waiting(desk.show(actor, name), desk, response)


@router.delete("/requests/{name}")
def cancel(name: RequestName, actor: Who, desk: At) -> RequestOut:
    """Cancel a request that has not started; afterwards its cost stays spent."""
    return request_out(desk.cancel(actor, name), desk)


@router.post("/requests/{name}/approve")
def approve(name: RequestName, body: ApprovalBody, actor: Who, desk: At) -> RequestOut:
    """Approve the plan with this hash."""
    return request_out(desk.approve(actor, name, body.plan), desk)


@router.post("/requests/{name}/refuse")
def refuse(name: RequestName, body: RefusalBody, actor: Who, desk: At) -> RequestOut:
    """Refuse a request for one of the listed reasons."""
    return request_out(desk.refuse(actor, name, body.reason), desk)


@router.get("/releases/{name}.html", response_class=Response)
def release_html(name: RequestName, actor: Who, desk: At) -> Response:
    """Return a release as its self-contained page."""
    return release_page(desk.release(actor, name))


@router.get("/releases/{name}", response_class=Response)
@router.get("/releases/{name}.json", response_class=Response)  # the lower one is found first
def release(name: RequestName, actor: Who, desk: At) -> Response:
    """Return a release as JSON; the ledger keeps it, so it is the same each time."""
    return Response(desk.release(actor, name), media_type="application/json")


@router.post("/tokens", status_code=201)
def token(body: TokenBody, actor: Who, desk: At) -> TokenIssued:
    """Issue a token; it is shown here and never again."""
    actor.require("curator", write=True)
    with desk.store.transaction() as execute:
        moment = desk.clock()
        add_user(execute, body.owner, body.role, actor.name, moment)
        made = issue_token(
            execute, body.owner, actor.name, moment, days=body.days, scope=body.scope
        )
    return TokenIssued(token=made)


@router.get("/users")
def users(actor: Who, desk: At) -> list[UserOut]:
    """List users, those who were revoked too."""
    actor.require("curator")
    with desk.store.snapshot() as execute:
        found = list_users(execute, desk.clock())
    return [
        UserOut(name=item.name, role=item.role, revoked=bool(item.revoked), tokens=item.tokens)
        for item in found
    ]


@router.get("/tokens")
def tokens(actor: Who, desk: At) -> list[TokenOut]:
    """List tokens without their secrets."""
    actor.require("curator")
    with desk.store.snapshot() as execute:
        found = list_tokens(execute)
    return [
        TokenOut(
            id=item.id, owner=item.owner, role=item.role, scope=item.scope,
            expires=time_text(item.expires), revoked=bool(item.revoked),
        )
        for item in found
    ]  # fmt: skip


@router.delete("/tokens/{name}", status_code=204, response_class=Response)
def revoke(name: TokenName, actor: Who, desk: At) -> Response:
    """Revoke a token with its sessions."""
    actor.require("curator", write=True)
    with desk.store.transaction() as execute:
        revoke_token(execute, name, actor.name, desk.clock())
    return Response(status_code=204)


@router.get("/ledger/verify")
def verify(actor: Who, desk: At, head: HeadHash = None) -> VerifyOut:
    """Check both histories, and that the ledger holds a hash that somebody kept.

    A check holds for a minute; ``checked`` says when it was made.
    """
    actor.require("analyst", "curator", "auditor")
    newest = visible_heads(desk.store, desk.clock(), 1)
    entries, end = (newest[0].entries, newest[0].hash) if newest else (0, "")
    check = desk.checks.look()
    reason = check.problem
    if not reason and head is not None and not holds_head(desk.store, head, entries):
        reason = f"no visible entry has the hash {head}: the end of the history is missing"
    return VerifyOut(
        verified=not reason, reason=reason, entries=entries, head=end, checked=time_text(check.at)
    )


@router.get("/audit.ndjson", response_class=Response)
def audit(actor: Who, desk: At) -> Response:
    """Export ledger and events, a JSON object a line; no records and no secrets."""
    actor.require("curator", "auditor")
    return audit_lines(desk)


@router.get("/heads", dependencies=[Depends(anybody)])
def heads(desk: At) -> list[HeadOut]:
    """Publish the ends of the ledger's history as far as answers are visible; for everybody."""
    found = visible_heads(desk.store, desk.clock())
    return [HeadOut(at=head.at, entries=head.entries, hash=head.hash) for head in found]


@router.get("/healthz", dependencies=[Depends(health_check)])
def healthz(desk: At) -> HealthOut:
    """Say that the service and its store answer."""
    with desk.store.snapshot() as execute:
        execute("SELECT 1", ())
    return HealthOut(status="ok")


def release_page(text: str) -> Response:
    """Return the self-contained page of a release: its own style by its hash, and no more."""
    mark = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{mark}'; frame-ancestors 'none'; sandbox"
    page = Release.from_json(text).to_html()
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})


def dummy_csv(actor: Actor, desk: Desk, name: str, rows: int) -> Response:
    """Return made-up people as a file, drawn in the actor's turn."""
    from private_ate.datasets.dummy import draw_dummy

    found, _ = desk.dataset(name)
    with desk.shares.turn(actor.name):
        study = draw_dummy(found.domain, rows)
        text = study.frame.write_csv()
    headers = {"X-Known-Effect": f"{study.effect:g}"}
    return Response(text, headers=headers, media_type="text/csv")


def dataset_out(found: Dataset, balance: Balance) -> DatasetOut:
    """Word a data set."""
    typical = found.policy.epsilon_per_request
    usable = typical if typical not in ("0", "") else "0.1"
    return DatasetOut(
        name=found.name, level=found.level, rows=found.size,
        rows_per_person=found.rows_per_person, closed=found.closed,
        budget=_budget(found, balance), typical_epsilon=usable,
        answers_left=balance.answers(usable), domain=found.domain.to_toml(),
        policy=PolicyModel(**found.policy.plain),
    )  # fmt: skip


def dataset_from(body: DatasetBody, policy: Policy | None = None) -> Dataset:
    """Read a data set from what a curator wrote, with a policy if her form has none."""
    return Dataset(
        body.name, body.population, body.level, Domain.from_toml(body.domain),
        tuple(body.columns), body.rows, body.rows_per_person, body.source, "", False,
        policy or Policy.read(body.policy.model_dump()),
    )  # fmt: skip


def plan_out(actor: Actor, desk: Desk, question: Question, half_width: float | None) -> PlanOut:
    """Word a plan."""
    found, settled = desk.settle(question)
    with desk.shares.turn(actor.name):
        plan = plan_question(question, found, settled, half_width)
    objections = desk.objections(actor, found, question)
    _, balance = desk.dataset(found.name)
    cost = settled.bill.cost
    rows = () if plan is None else plan.rows
    arms = found.domain.treatment
    headline = next((row for row in rows if row.arm == arms.treated), rows[0] if rows else None)
    planned = ", ".join(AUTO[settled.request.level])
    return PlanOut(
        plan=settled.bill.plan, method=settled.method.name, epsilon=cost.epsilon_text,
        delta=cost.delta_text, answer="" if plan is None else plan.answer,
        epsilon_needed=None if plan is None else plan.epsilon_needed,
        caveat=f"methods {planned} can be planned; {settled.method.name!r} cannot"
        if plan is None else plan.caveat,
        automatic=not objections, objections=list(objections),
        budget=_budget(found, balance), answers_left=max(balance.left.epsilon, 0) // cost.epsilon,
        expected=None if headline is None else _expected(headline),
        contrasts=[_expected(row) for row in rows if arms.size > 2],
        affordable=cost.fits(balance.left),
    )  # fmt: skip


def _expected(row: PlanRow) -> ExpectedOut:
    return ExpectedOut(
        error=row.expected_error, noise_error=row.noise_error,
        sampling_error=row.sampling_error, half_width=row.half_width,
        detectable_effect=row.detectable_effect, adjusted=row.adjusted, note=row.note,
        arm=row.arm, against=row.against,
    )  # fmt: skip


def request_out(row: RequestRow, desk: Desk) -> RequestOut:
    """Word a request as it may be told now."""
    moment = desk.clock()
    state = row.shown(moment)
    hidden = state == "queued"
    return RequestOut(
        id=row.id, dataset=row.dataset, analyst=row.analyst, plan=row.plan,
        epsilon=row.cost.epsilon_text, delta=row.cost.delta_text, dummy=bool(row.dummy),
        state=state, code="" if hidden else row.code, reason="" if hidden else row.reason,
        approved_by=list(row.has_approved), submitted=time_text(row.submitted),
        due=time_text(row.due) if row.due else None, question=json.loads(row.question),
    )  # fmt: skip


def time_text(moment: int) -> str:
    """Return milliseconds as ISO 8601, in whole seconds."""
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds")


def _waiting(row: RequestRow, desk: Desk, response: Response) -> RequestOut:
    """Word a request, and say when to look again: at its tick."""
    moment = desk.clock()
    told = request_out(row, desk)
    if told.state == "queued":
        left = max(row.due - moment, 0) if moment < row.due else 1000 * desk.tick
        response.headers["Retry-After"] = str(max(round(left / 1000 + 0.5), 1))
    elif told.state == "waiting":
        response.headers["Retry-After"] = "60"
    return told


def _budget(found: Dataset, balance: Balance) -> BudgetOut:
    return BudgetOut(
        population=found.population, epsilon=balance.total.epsilon_text,
        left=balance.left.epsilon_text, delta=balance.total.delta_text,
        delta_left=balance.left.delta_text,
    )  # fmt: skip


def audit_lines(desk: Desk) -> StreamingResponse:
    """Return the public part of ledger and events, a JSON object a line."""
    with desk.store.snapshot() as execute:
        events, end = read_events(execute), first_hidden(execute, desk.clock())
        entries = [entry for entry in read_entries(execute) if entry.sequence < end]
    return StreamingResponse(_chunks(_lines(entries, events)), media_type="application/x-ndjson")


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """Join lines by the thousand: each chunk is a step of a thread."""
    while chunk := "".join(islice(lines, 1000)):
        yield chunk


def _lines(entries: list[Entry], events: list[Event]) -> Iterator[str]:
    for name, items in (("ledger", entries), ("event", events)):
        for item in items:
            plain: dict[str, Any] = {"chain": name, **asdict(item)}
            yield json.dumps(plain, ensure_ascii=True) + "\n"
