"""The interface for programs, under /v1: each endpoint calls an operation and shows its result."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import HTMLResponse

from private_ate.ledger.cost import BudgetUnits
from private_ate.service.histories import Head, holds_head, visible_heads
from private_ate.service.operations import Service
from private_ate.service.policy import Balance, Dataset
from private_ate.service.settling import Planned
from private_ate.service.store.events import time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.store.users import Token, User
from private_ate.service.web.authentication import (
    CurrentActor,
    CurrentService,
    actor_of,
    anybody,
    health_check,
)
from private_ate.service.web.models import (
    ApprovalBody,
    CloseOut,
    Csv,
    DatasetBody,
    DatasetName,
    DatasetOut,
    HealthOut,
    Lines,
    PlanBody,
    PolicyModel,
    QuestionBody,
    RefusalBody,
    ReleaseJson,
    RequestName,
    RequestOut,
    TokenBody,
    TokenIssued,
    TokenName,
    VerifyOut,
    audit_lines,
    dummy_csv,
    release_page,
)

router = APIRouter(prefix="/v1")

UserName = Annotated[str, Path(pattern=r"^[^\x00-\x1f\x7f/]{1,200}$")]
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
HeadHash = Annotated[str | None, Query(pattern=r"^[0-9a-f]{64}$")]
Limit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=10**9)]
_MOST_DUMMIES: Final = 10_000


@router.get("/datasets", dependencies=[Depends(actor_of)])
def datasets(service: CurrentService) -> list[DatasetOut]:
    """List the data sets with what is left of their budgets."""
    return [dataset_out(found, balance) for found, balance in service.datasets()]


@router.get("/datasets/{name}", dependencies=[Depends(actor_of)])
def dataset(name: DatasetName, service: CurrentService) -> DatasetOut:
    """Describe a data set: domain, size, budget, policy."""
    return dataset_out(*service.dataset(name))


@router.get("/datasets/{name}/dummy.csv", response_class=Csv)
def dummy(
    name: DatasetName,
    actor: CurrentActor,
    service: CurrentService,
    rows: Annotated[int, Query(ge=2, le=_MOST_DUMMIES)] = 1000,
) -> Response:
    """Draw made-up data from the declared domain alone, with a known effect."""
    return dummy_csv(service.draw_dummy(actor, name, rows))


@router.post("/datasets", status_code=201)
def add(body: DatasetBody, actor: CurrentActor, service: CurrentService) -> DatasetOut:
    """Register a data set, and its population if a budget is given."""
    service.require_management(actor)
    service.add_dataset(actor, body.dataset(body.policy.policy()), body.epsilon, body.delta)
    return dataset_out(*service.dataset(body.name))


@router.post("/datasets/{name}/close")
def close(name: DatasetName, actor: CurrentActor, service: CurrentService) -> CloseOut:
    """Take no more requests for a data set."""
    service.close_dataset(actor, name)
    return CloseOut(name=name, closed=True)


@router.put("/datasets/{name}/policy")
def policy(
    name: DatasetName, body: PolicyModel, actor: CurrentActor, service: CurrentService
) -> DatasetOut:
    """Replace what a data set's policy approves by itself; requests made before keep theirs.

    Where two persons decide, a looser policy is proposed until another curator sends the same.
    """
    service.require_management(actor)
    new = body.policy()
    is_held = service.set_policy(actor, name, new)
    out = dataset_out(*service.dataset(name))
    return out if is_held else replace(out, proposed_policy=new)


@router.delete("/users/{name}", status_code=204, response_class=Response)
def revoke_person(name: UserName, actor: CurrentActor, service: CurrentService) -> Response:
    """Revoke a user with all tokens, sessions, approvals and requests that have not started."""
    service.revoke(actor, name)
    return Response(status_code=204)


@router.post("/plans")
def plan(body: PlanBody, actor: CurrentActor, service: CurrentService) -> Planned:
    """Say what a question would cost and what to expect of its answer; spends nothing."""
    actor.require("analyst", "curator")
    return service.plan(actor, body.question(), body.half_width)


@router.get("/requests")
def requests(
    actor: CurrentActor,
    service: CurrentService,
    response: Response,
    limit: Limit = 200,
    offset: Offset = 0,
) -> list[RequestOut]:
    """List requests, the newest first: an analyst's own, or all; Link names the next ones."""
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
    row = service.submit(actor, body.question(), key)
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


@router.get("/releases/{name}.html", response_class=HTMLResponse)
def release_html(name: RequestName, actor: CurrentActor, service: CurrentService) -> Response:
    """Return a release as its self-contained page."""
    return release_page(service.release(actor, name))


@router.get("/releases/{name}", response_class=ReleaseJson)
@router.get("/releases/{name}.json", response_class=ReleaseJson)  # the lower one is found first
def release(name: RequestName, actor: CurrentActor, service: CurrentService) -> Response:
    """Return a release as JSON; the ledger keeps it, so it is the same each time."""
    return ReleaseJson(service.release(actor, name))


@router.post("/tokens", status_code=201)
def token(body: TokenBody, actor: CurrentActor, service: CurrentService) -> TokenIssued:
    """Issue a token; it is shown here and never again."""
    return TokenIssued(service.issue_token(actor, body.owner, body.role, body.scope, body.days))


@router.get("/users")
def users(actor: CurrentActor, service: CurrentService) -> list[User]:
    """List users, those who were revoked too."""
    return service.users(actor)


@router.get("/tokens")
def tokens(actor: CurrentActor, service: CurrentService) -> list[Token]:
    """List tokens without their secrets."""
    return service.tokens(actor)


@router.delete("/tokens/{name}", status_code=204, response_class=Response)
def revoke(name: TokenName, actor: CurrentActor, service: CurrentService) -> Response:
    """Revoke a token with its sessions."""
    service.revoke_token(actor, name)
    return Response(status_code=204)


@router.get("/ledger/verify", dependencies=[Depends(actor_of)])
def verify(service: CurrentService, head: HeadHash = None) -> VerifyOut:
    """Check both histories, and that the ledger holds a hash that somebody kept.

    A check holds for a minute; ``checked`` says when it was made.
    """
    newest = visible_heads(service.store, service.clock(), 1)
    entries, end = (newest[0].entries, newest[0].hash) if newest else (0, "")
    check = service.checks.newest()
    reason = check.problem
    if not reason and head is not None and not holds_head(service.store, head, entries):
        reason = f"no visible entry has the hash {head}: the end of the history is missing"
    return VerifyOut(
        verified=not reason, reason=reason, entries=entries, head=end, checked=time_text(check.at)
    )


@router.get("/audit.ndjson", response_class=Lines)
def audit(actor: CurrentActor, service: CurrentService) -> Response:
    """Export ledger and events, a JSON object a line; no records and no secrets."""
    return audit_lines(*service.histories(actor))


@router.get("/heads", dependencies=[Depends(anybody)])
def heads(service: CurrentService) -> list[Head]:
    """Publish the ends of the ledger's history as far as answers are visible; for everybody."""
    return visible_heads(service.store, service.clock())


@router.get("/healthz", dependencies=[Depends(health_check)])
def healthz(service: CurrentService) -> HealthOut:
    """Say that the service and its store answer."""
    with service.store.snapshot() as execute:
        execute("SELECT 1", ())
    return HealthOut(status="ok")


def dataset_out(found: Dataset, balance: Balance) -> DatasetOut:
    """Format a data set."""
    typical = found.policy.typical or BudgetUnits.limit("0.1")
    return DatasetOut(
        found.name, found.level, found.size, found.rows_per_person, found.closed, balance.budget,
        typical.epsilon_text, balance.answers(typical), found.domain.to_toml(), found.policy,
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
