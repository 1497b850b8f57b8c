"""The curator's and the auditor's pages: queue, data sets, tokens, history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from private_ate.errors import ArgumentError, LedgerError
from private_ate.report.markup import Markup, element
from private_ate.service.desk import REASONS
from private_ate.service.heads import visible_heads
from private_ate.service.pages.analyst import At, DatasetName, RequestName, budget_bar
from private_ate.service.pages.doors import Filled, Here, to
from private_ate.service.pages.frame import (
    button,
    choice,
    clock_text,
    field,
    form,
    may_change,
    respond,
    show_table,
)
from private_ate.service.store.catalogue import add_dataset, add_population, close_dataset
from private_ate.service.store.events import read_events, verify_events
from private_ate.service.store.people import (
    Session,
    TokenNote,
    add_user,
    issue_token,
    list_tokens,
    revoke_token,
)
from private_ate.service.store.requests import RequestRow
from private_ate.service.web.api import audit_lines, dataset_from, time_text
from private_ate.service.web.models import DatasetBody

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
TokenName = Annotated[str, Path(pattern=r"^[0-9a-f]{12}$")]
_ROLES: Final = (("analyst", "analyst"), ("curator", "curator"), ("auditor", "auditor"))
_SCOPES: Final = (("full", "full"), ("read", "read only"))
_LEVELS: Final = (("label", "outcomes are private"), ("sample", "whole records are private"))


@router.get("/queue")
def queue(session: Here, desk: At) -> HTMLResponse:
    """Show the plans that wait for a decision; no diagnostics, only what was asked."""
    session.actor.require("curator")
    cards = [_waiting(row, session) for row in desk.requests(session.actor, ("waiting",))]
    words = (
        "You approve a plan, never a result. What you know about the records must not decide: "
        "go by the question and its price."
    )
    none = element("p", "Nothing waits.")
    return respond(
        "Plans that wait", element("p", words), *(cards or [none]), session=session, here="/queue"
    )


@router.post("/requests/{name}/approve")
def approve(name: RequestName, fields: Filled, session: Here, desk: At) -> Response:
    """Approve the plan that was shown."""
    desk.approve(session.actor, name, fields.get("plan", ""))
    return to("/queue")


@router.post("/requests/{name}/refuse")
def refuse(name: RequestName, fields: Filled, session: Here, desk: At) -> Response:
    """Refuse a plan."""
    desk.refuse(session.actor, name, fields.get("reason", ""))
    return to("/queue")


@router.get("/manage")
def manage(session: Here, desk: At) -> HTMLResponse:
    """Show data sets and budgets, with the forms that add and close."""
    session.actor.require("curator")
    bars = [budget_bar(population.name, balance) for population, balance in desk.populations()]
    rows = [
        (
            found.name, found.population, "closed" if found.closed else "open",
            "" if found.closed or not may_change(session.actor)
            else form(f"/datasets/{found.name}/close", session, button("Close", quiet=True)),
        )
        for found, _ in desk.datasets()
    ]  # fmt: skip
    parts = [
        element("h2", "Budgets"), *bars,
        element("h2", "Data sets"),
        show_table("Closing cannot be undone", ("Data set", "Population", "State", "Action"), rows),
    ]  # fmt: skip
    if may_change(session.actor):
        parts += [element("h2", "Add a data set"), _dataset_form(session)]
    return respond("Manage", *parts, session=session, here="/manage")


@router.post("/manage")
def add(fields: Filled, session: Here, desk: At) -> Response:
    """Register a data set."""
    session.actor.require("curator", write=True)
    body = _dataset_body(fields)
    new = dataset_from(body)
    with desk.store.transaction() as execute:
        if body.epsilon is not None:
            add_population(
                execute, body.population, body.level, body.epsilon, "0", session.actor.name
            )
        add_dataset(execute, new, session.actor.name)
    return to("/manage")


@router.post("/datasets/{name}/close")
def close(name: DatasetName, fields: Filled, session: Here, desk: At) -> Response:
    """Close a data set."""
    _ = fields
    session.actor.require("curator", write=True)
    with desk.store.transaction() as execute:
        close_dataset(execute, name, session.actor.name, desk.clock())
    return to("/manage")


@router.get("/tokens")
def tokens(session: Here, desk: At) -> HTMLResponse:
    """Show tokens without their secrets."""
    session.actor.require("curator")
    return _tokens(session, desk)


@router.post("/tokens")
def issue(fields: Filled, session: Here, desk: At) -> HTMLResponse:
    """Issue a token and show it once."""
    session.actor.require("curator", write=True)
    owner = fields.get("owner", "")
    with desk.store.transaction() as execute:
        moment = desk.clock()
        add_user(execute, owner, fields.get("role", ""), session.actor.name, moment)
        made = issue_token(
            execute, owner, session.actor.name, moment, days=_whole(fields.get("days", "")),
            scope=fields.get("scope", "full"),
        )  # fmt: skip
    return _tokens(session, desk, made)


@router.post("/tokens/{name}/revoke")
def revoke(name: TokenName, fields: Filled, session: Here, desk: At) -> Response:
    """Revoke a token."""
    _ = fields
    session.actor.require("curator", write=True)
    with desk.store.transaction() as execute:
        revoke_token(execute, name, session.actor.name, desk.clock())
    return to("/tokens")


@router.get("/history")
def history(session: Here, desk: At) -> HTMLResponse:
    """Show the newest events and heads, and whether both histories verify."""
    session.actor.require("curator", "auditor")
    with desk.store.snapshot() as execute:
        events = read_events(execute)
    try:
        found = desk.ledger().verify()
        verify_events(events)
        words, look = f"Both histories verify: {found.entries} entries, {len(events)} events.", ""
    except LedgerError as error:
        words, look = f"A history does not verify: {error}.", "warning"
    export = element("a", "Export everything (one JSON object a line)", href="/audit.ndjson")
    heads = [
        (clock_text(head.at), str(head.entries), element("code", head.hash))
        for head in visible_heads(desk.store, desk.clock(), 5)
    ]
    rows = [
        (clock_text(event.at), event.kind, element("code", event.subject), event.actor)
        for event in events[:-101:-1]
    ]
    return respond(
        "History",
        element("p", words, class_=look or "promise"),
        element("p", export),
        show_table("Newest public heads of the ledger", ("Since", "Entries", "Hash"), heads),
        show_table("The last hundred events", ("At", "What", "About", "By"), rows),
        session=session, here="/history",
    )  # fmt: skip


@router.get("/audit.ndjson")
def audit(session: Here, desk: At) -> Response:
    """Export ledger and events."""
    session.actor.require("curator", "auditor")
    return audit_lines(desk)


def _waiting(row: RequestRow, session: Session) -> Markup:
    asked = row.asked
    facts = [
        ("Analyst", row.analyst), ("Data set", row.dataset), ("Cost", str(row.cost)),
        ("Estimand", asked.estimand.upper()), ("Method", asked.method), ("Design", asked.design),
        ("Covariates", "all" if asked.covariates is None else ", ".join(asked.covariates)),
        *(
            (name, str(value))
            for name, value in (
                ("Among", asked.among), ("Subgroups", ", ".join(asked.by)),
                ("Probability of treatment", asked.probability),
                ("Confidence", "no interval" if asked.confidence is None else asked.confidence),
                ("Options", json.dumps(dict(asked.options)) if asked.options else ""),
            )
            if value
        ),
        ("Why it waits", row.reason), ("Plan", element("code", row.plan)),
        ("Approved by", ", ".join(row.has_approved) or "nobody yet"),
    ]  # fmt: skip
    parts = [element("h2", f"From {row.analyst}"), show_table("The plan", ("Fact", "Value"), facts)]
    if may_change(session.actor):
        reasons = choice("reason", "Reason", REASONS.items(), place=f"reason-{row.id}")
        parts += [
            form(
                f"/requests/{row.id}/approve", session, button("Approve this plan"), plan=row.plan
            ),
            form(f"/requests/{row.id}/refuse", session, reasons, button("Refuse", quiet=True)),
        ]
    return element("section", *parts, class_="card")


def _tokens(session: Session, desk: At, made: str = "") -> HTMLResponse:
    with desk.store.snapshot() as execute:
        found = list_tokens(execute)
    parts: list[str] = []
    if made:
        parts += [
            element("p", "Copy it now; it is not shown again:", class_="promise"),
            element("code", made, class_="token"),
        ]
    parts.append(
        show_table(
            "Tokens", ("Owner", "Role", "Scope", "Until", "Id", "Action"),
            [_token_row(item, session) for item in found],
        )
    )  # fmt: skip
    if may_change(session.actor):
        parts += [
            element("h2", "Issue a token"),
            form(
                "/tokens", session,
                field("owner", "Whose", "A name; all its spellings are one.", required="required"),
                choice("role", "Role", _ROLES), choice("scope", "Scope", _SCOPES),
                field("days", "Days until it ends", value="90", inputmode="numeric"),
                button("Issue it"),
            ),
        ]  # fmt: skip
    return respond("Tokens", *parts, session=session, here="/tokens")


def _token_row(item: TokenNote, session: Session) -> tuple[str, ...]:
    act: str = "revoked" if item.revoked else ""
    if not item.revoked and may_change(session.actor):
        act = form(f"/tokens/{item.id}/revoke", session, button("Revoke", quiet=True))
    return (
        item.owner,
        item.role,
        item.scope,
        time_text(item.expires)[:10],
        element("code", item.id),
        act,
    )


def _dataset_form(session: Session) -> Markup:
    return form(
        "/manage", session,
        field("name", "Name", required="required"),
        field("population", "Population", "The people; their budget is shared by all their data "
              "sets.", required="required"),
        field("epsilon", "Total ε of a new population", "Leave empty if the population is there. "
              "Never raised afterwards.", inputmode="decimal"),
        choice("level", "What is private", _LEVELS),
        field("source", "File below the worker's folder", "For example 2026/clinic.csv.",
              required="required"),
        field("rows", "Rows", inputmode="numeric", required="required"),
        field("columns", "Columns of the file", "All of them, with commas.", required="required"),
        element("label", "Domain (TOML)", for_="domain"),
        element("textarea", "", id="domain", name="domain", required="required"),
        button("Add it"),
    )  # fmt: skip


def _dataset_body(fields: Mapping[str, str]) -> DatasetBody:
    columns = [name.strip() for name in fields.get("columns", "").split(",") if name.strip()]
    try:
        return DatasetBody(
            name=fields.get("name", ""), population=fields.get("population", ""),
            level=fields.get("level", ""),  # type: ignore[arg-type]  # checked by the model
            epsilon=fields.get("epsilon") or None, domain=fields.get("domain", ""),
            columns=columns, rows=_whole(fields.get("rows", "")), source=fields.get("source", ""),
        )  # fmt: skip
    except ValidationError as cause:
        places = sorted({str(found["loc"][0]) for found in cause.errors()})
        msg = f"please look again at: {', '.join(places)}"
        raise ArgumentError(msg) from cause


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 13):
        msg = "a whole number is wanted"
        raise ArgumentError(msg)
    return int(text)
