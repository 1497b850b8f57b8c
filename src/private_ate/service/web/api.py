"""The interface for programs, under /v1: each endpoint calls an operation and shows its result."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import StreamingResponse

from private_ate.domain import Domain
from private_ate.ledger.chain import Entry
from private_ate.ledger.store import read_entries
from private_ate.methods.registry import AUTO
from private_ate.planning import PlanRow
from private_ate.release import Release
from private_ate.report.markup import STYLE
from private_ate.service.chain_heads import first_hidden, holds_head, visible_heads
from private_ate.service.operations import Balance, Service
from private_ate.service.policy import Policy
from private_ate.service.question import Question, plan_question
from private_ate.service.store.catalogue import (
    Dataset,
    add_dataset,
    add_population,
    close_dataset,
    set_policy,
)
from private_ate.service.store.events import Event, read_events, time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.store.users import (
    Actor,
    add_user,
    issue_token,
    list_tokens,
    list_users,
    revoke_token,
)
from private_ate.service.web.authentication import (
    CurrentActor,
    CurrentService,
    anybody,
    health_check,
)
from private_ate.service.web.models import (
    ApprovalBody,
    BudgetOut,
    CloseOut,
    DatasetBody,
    DatasetName,
    DatasetOut,
    ExpectedOut,
    HeadOut,
    HealthOut,
    PlanBody,
    PlanOut,
    PolicyModel,
    QuestionBody,
    RefusalBody,
    RequestName,
    RequestOut,
    TokenBody,
    TokenIssued,
    TokenName,
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
    "router",
]

router = APIRouter(prefix="/v1")

UserName = Annotated[str, Path(pattern=r"^[^\x00-\x1f\x7f/]{1,200}$")]
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
HeadHash = Annotated[str | None, Query(pattern=r"^[0-9a-f]{64}$")]
Limit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
_MOST_DUMMIES: Final = 10_000


@router.get("/datasets")
def datasets(actor: CurrentActor, service: CurrentService) -> list[DatasetOut]:
    """List the data sets with what is left of their budgets."""
    actor.require("analyst", "curator", "auditor")
    return [dataset_out(found, balance) for found, balance in service.datasets()]


@router.get("/datasets/{name}")
def dataset(name: DatasetName, actor: CurrentActor, service: CurrentService) -> DatasetOut:
    """Describe a data set: domain, size, budget, policy."""
    actor.require("analyst", "curator", "auditor")
    return dataset_out(*service.dataset(name))


@router.get("/datasets/{name}/dummy.csv", response_class=Response)
def dummy(
    name: DatasetName,
    actor: CurrentActor,
    service: CurrentService,
    rows: Annotated[int, Query(ge=2, le=_MOST_DUMMIES)] = 1000,
) -> Response:
    """Draw made-up data from the declared domain alone, with a known effect."""
    actor.require("analyst", "curator", "auditor")
    return dummy_csv(actor, service, name, rows)


@router.post("/datasets", status_code=201)
def add(body: DatasetBody, actor: CurrentActor, service: CurrentService) -> DatasetOut:
    """Register a data set, and its population if a budget is given."""
    actor.require("curator", write=True)
    service.require_management()
    new = dataset_from(body)
    with service.store.transaction() as execute:
        if body.epsilon is not None:
            add_population(
                execute, body.population, body.level, body.epsilon, body.delta, actor.name
            )
        add_dataset(execute, new, actor.name)
    return dataset_out(*service.dataset(body.name))


@router.post("/datasets/{name}/close")
def close(name: DatasetName, actor: CurrentActor, service: CurrentService) -> CloseOut:
    """Take no more requests for a data set."""
    actor.require("curator", write=True)
    with service.store.transaction() as execute:
        close_dataset(execute, name, actor.name, service.clock())
    return CloseOut(name=name, closed=True)


@router.put("/datasets/{name}/policy")
def policy(
    name: DatasetName, body: PolicyModel, actor: CurrentActor, service: CurrentService
) -> DatasetOut:
    """Replace what a data set's policy approves by itself; requests made before keep theirs.

    Where two persons decide, a looser policy is proposed until another curator sends the same.
    """
    actor.require("curator", write=True)
    service.require_management()
    new = Policy.read(body.model_dump())
    with service.store.transaction() as execute:
        is_held = set_policy(execute, name, new, actor.name)
    out = dataset_out(*service.dataset(name))
    return out if is_held else out.model_copy(update={"proposed_policy": body})


@router.delete("/users/{name}", status_code=204, response_class=Response)
def revoke_person(name: UserName, actor: CurrentActor, service: CurrentService) -> Response:
    """Revoke a user with all tokens, sessions, approvals and requests that have not started."""
    service.revoke(actor, name)
    return Response(status_code=204)


@router.post("/plans")
def plan(body: PlanBody, actor: CurrentActor, service: CurrentService) -> PlanOut:
    """Say what a question would cost and what to expect of its answer; spends nothing."""
    actor.require("analyst", "curator")
    plain = body.model_dump()
    half_width = plain.pop("half_width")
    return plan_out(actor, service, Question.read(plain), half_width)


@router.get("/requests")
def requests(
    actor: CurrentActor,
    service: CurrentService,
    response: Response,
    limit: Limit = 200,
    offset: Offset = 0,
) -> list[RequestOut]:
    """List requests, the newest first: an analyst's own, or all; Link names the next ones."""
    actor.require("analyst", "curator", "auditor")
    rows = service.requests(actor, most=limit + 1, skip=offset)
    if len(rows) > limit:
        following = f"/v1/requests?limit={limit}&offset={offset + limit}"
        response.headers["Link"] = f'<{following}>; rel="next"'
    return [request_out(row, service) for row in rows[:limit]]


@router.post("/requests", status_code=202)
def submit(
    body: QuestionBody, key: Key, actor: CurrentActor, service: CurrentService, response: Response
) -> RequestOut:
    """Ask; the same key and plan give the same request, another plan is a conflict."""
    row = service.submit(actor, Question.read(body.model_dump()), key)
    response.headers["Location"] = f"/v1/requests/{row.id}"
    return _waiting(row, service, response)


@router.get("/requests/{name}")
def show(
    name: RequestName, actor: CurrentActor, service: CurrentService, response: Response
) -> RequestOut:
    """Show a request; Retry-After says when to look again."""
    return _waiting(service.show(actor, name), service, response)


@router.delete("/requests/{name}")
def cancel(name: RequestName, actor: CurrentActor, service: CurrentService) -> RequestOut:
    """Cancel a request that has not started; afterwards its cost stays spent."""
    return request_out(service.cancel(actor, name), service)


@router.post("/requests/{name}/approve")
def approve(
    name: RequestName, body: ApprovalBody, actor: CurrentActor, service: CurrentService
) -> RequestOut:
    """Approve the plan with this hash."""
    return request_out(service.approve(actor, name, body.plan), service)


@router.post("/requests/{name}/refuse")
def refuse(
    name: RequestName, body: RefusalBody, actor: CurrentActor, service: CurrentService
) -> RequestOut:
    """Refuse a request for one of the listed reasons."""
    return request_out(service.refuse(actor, name, body.reason), service)


@router.get("/releases/{name}.html", response_class=Response)
def release_html(name: RequestName, actor: CurrentActor, service: CurrentService) -> Response:
    """Return a release as its self-contained page."""
    return release_page(service.release(actor, name))


@router.get("/releases/{name}", response_class=Response)
@router.get("/releases/{name}.json", response_class=Response)  # the lower one is found first
def release(name: RequestName, actor: CurrentActor, service: CurrentService) -> Response:
    """Return a release as JSON; the ledger keeps it, so it is the same each time."""
    return Response(service.release(actor, name), media_type="application/json")


@router.post("/tokens", status_code=201)
def token(body: TokenBody, actor: CurrentActor, service: CurrentService) -> TokenIssued:
    """Issue a token; it is shown here and never again."""
    actor.require("curator", write=True)
    with service.store.transaction() as execute:
        moment = service.clock()
        add_user(execute, body.owner, body.role, actor.name, moment)
        made = issue_token(
            execute, body.owner, actor.name, moment, days=body.days, scope=body.scope
        )
    return TokenIssued(token=made)


@router.get("/users")
def users(actor: CurrentActor, service: CurrentService) -> list[UserOut]:
    """List users, those who were revoked too."""
    actor.require("curator")
    with service.store.snapshot() as execute:
        found = list_users(execute, service.clock())
    return [
        UserOut(name=item.name, role=item.role, revoked=bool(item.revoked), tokens=item.tokens)
        for item in found
    ]


@router.get("/tokens")
def tokens(actor: CurrentActor, service: CurrentService) -> list[TokenOut]:
    """List tokens without their secrets."""
    actor.require("curator")
    with service.store.snapshot() as execute:
        found = list_tokens(execute)
    return [
        TokenOut(
            id=item.id, owner=item.owner, role=item.role, scope=item.scope,
            expires=time_text(item.expires), revoked=bool(item.revoked),
        )
        for item in found
    ]  # fmt: skip


@router.delete("/tokens/{name}", status_code=204, response_class=Response)
def revoke(name: TokenName, actor: CurrentActor, service: CurrentService) -> Response:
    """Revoke a token with its sessions."""
    actor.require("curator", write=True)
    with service.store.transaction() as execute:
        revoke_token(execute, name, actor.name, service.clock())
    return Response(status_code=204)


@router.get("/ledger/verify")
def verify(actor: CurrentActor, service: CurrentService, head: HeadHash = None) -> VerifyOut:
    """Check both histories, and that the ledger holds a hash that somebody kept.

    A check holds for a minute; ``checked`` says when it was made.
    """
    actor.require("analyst", "curator", "auditor")
    newest = visible_heads(service.store, service.clock(), 1)
    entries, end = (newest[0].entries, newest[0].hash) if newest else (0, "")
    check = service.checks.newest()
    reason = check.problem
    if not reason and head is not None and not holds_head(service.store, head, entries):
        reason = f"no visible entry has the hash {head}: the end of the history is missing"
    return VerifyOut(
        verified=not reason, reason=reason, entries=entries, head=end, checked=time_text(check.at)
    )


@router.get("/audit.ndjson", response_class=Response)
def audit(actor: CurrentActor, service: CurrentService) -> Response:
    """Export ledger and events, a JSON object a line; no records and no secrets."""
    actor.require("curator", "auditor")
    return audit_lines(service)


@router.get("/heads", dependencies=[Depends(anybody)])
def heads(service: CurrentService) -> list[HeadOut]:
    """Publish the ends of the ledger's history as far as answers are visible; for everybody."""
    found = visible_heads(service.store, service.clock())
    return [HeadOut(at=head.at, entries=head.entries, hash=head.hash) for head in found]


@router.get("/healthz", dependencies=[Depends(health_check)])
def healthz(service: CurrentService) -> HealthOut:
    """Say that the service and its store answer."""
    with service.store.snapshot() as execute:
        execute("SELECT 1", ())
    return HealthOut(status="ok")


def release_page(text: str) -> Response:
    """Return the self-contained page of a release: its own style by its hash, and no more."""
    mark = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{mark}'; frame-ancestors 'none'; sandbox"
    page = Release.from_json(text).to_html()
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})


def dummy_csv(actor: Actor, service: Service, name: str, rows: int) -> Response:
    """Return made-up data as a file, drawn in the actor's turn."""
    from private_ate.datasets.dummy import draw_dummy

    found, _ = service.dataset(name)
    with service.shares.turn(actor.name):
        study = draw_dummy(found.domain, rows)
        text = study.frame.write_csv()
    headers = {"X-Known-Effect": f"{study.effect:g}"}
    return Response(text, headers=headers, media_type="text/csv")


def dataset_out(found: Dataset, balance: Balance) -> DatasetOut:
    """Format a data set."""
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
    """Read a data set from what a curator wrote, with a policy if the form has none."""
    return Dataset(
        body.name, body.population, body.level, Domain.from_toml(body.domain),
        tuple(body.columns), body.rows, body.rows_per_person, body.source, "", False,
        policy or Policy.read(body.policy.model_dump()),
    )  # fmt: skip


def plan_out(
    actor: Actor, service: Service, question: Question, half_width: float | None
) -> PlanOut:
    """Format a plan."""
    found, settled = service.settle(question)
    with service.shares.turn(actor.name):
        plan = plan_question(question, found, settled, half_width)
    objections = service.objections(actor, found, question)
    _, balance = service.dataset(found.name)
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


def request_out(row: RequestRow, service: Service) -> RequestOut:
    """Format a request as it may be shown now."""
    moment = service.clock()
    state = row.shown(moment)
    hidden = state == "queued"
    return RequestOut(
        id=row.id, dataset=row.dataset, analyst=row.analyst, plan=row.plan,
        epsilon=row.cost.epsilon_text, delta=row.cost.delta_text, dummy=bool(row.dummy),
        state=state, code="" if hidden else row.code, reason="" if hidden else row.reason,
        approved_by=list(row.has_approved), submitted=time_text(row.submitted),
        due=time_text(row.due) if row.due else None, question=json.loads(row.question),
    )  # fmt: skip


def _waiting(row: RequestRow, service: Service, response: Response) -> RequestOut:
    """Format a request, and say when to look again: at its tick."""
    moment = service.clock()
    shown = request_out(row, service)
    if shown.state == "queued":
        left = max(row.due - moment, 0) if moment < row.due else 1000 * service.tick
        response.headers["Retry-After"] = str(max(round(left / 1000 + 0.5), 1))
    elif shown.state == "waiting":
        response.headers["Retry-After"] = "60"
    return shown


def _budget(found: Dataset, balance: Balance) -> BudgetOut:
    return BudgetOut(
        population=found.population, epsilon=balance.total.epsilon_text,
        left=balance.left.epsilon_text, delta=balance.total.delta_text,
        delta_left=balance.left.delta_text,
    )  # fmt: skip


def audit_lines(service: Service) -> StreamingResponse:
    """Return the public part of ledger and events, a JSON object a line."""
    with service.store.snapshot() as execute:
        events, end = read_events(execute), first_hidden(execute, service.clock())
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
