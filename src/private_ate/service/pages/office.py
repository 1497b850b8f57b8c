"""The curator's and the auditor's pages: queue, data sets, tokens, history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from private_ate.errors import ArgumentError
from private_ate.report.markup import Markup, element
from private_ate.service.desk import REASONS
from private_ate.service.heads import visible_heads
from private_ate.service.pages.analyst import At, DatasetName, RequestName, Skip, budget_bar
from private_ate.service.pages.doors import Filled, Here, to
from private_ate.service.pages.frame import (
    button,
    choice,
    clock_text,
    field,
    form,
    may_change,
    read_whole,
    respond,
    show_table,
    turn_pages,
)
from private_ate.service.store.catalogue import add_dataset, add_population, close_dataset
from private_ate.service.store.events import read_events
from private_ate.service.store.people import (
    Session,
)
from private_ate.service.store.requests import RequestRow
from private_ate.service.web.api import audit_lines, dataset_from, time_text
from private_ate.service.web.models import DatasetBody

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_EVENTS: Final = 100  # on a page
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
            element("a", "Policy", href=f"/datasets/{found.name}/policy"),
            "" if found.closed or not may_change(session.actor)
            else form(f"/datasets/{found.name}/close", session, button("Close", quiet=True)),
        )
        for found, _ in desk.datasets()
    ]  # fmt: skip
    parts = [
        element("h2", "Budgets"), *bars,
        element("h2", "Data sets"),
        show_table(
            "Closing cannot be undone", ("Data set", "Population", "State", "Policy", "Action"),
            rows,
        ),
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


@router.get("/history")
def history(session: Here, desk: At, skip: Skip = 0) -> HTMLResponse:
    """Show the newest events and heads, and whether both histories verify."""
    session.actor.require("curator", "auditor")
    with desk.store.snapshot() as execute:
        events = read_events(execute, _EVENTS + 1, skip)
    check = desk.checks.look()
    when = clock_text(time_text(check.at))
    words, look = f"A history does not verify: {check.problem}", "warning"
    if not check.problem:
        words = f"Both histories verify: {check.entries} entries, {check.events} events"
        look = "promise"
    export = element("a", "Export everything (one JSON object a line)", href="/audit.ndjson")
    heads = [
        (clock_text(head.at), str(head.entries), element("code", head.hash))
        for head in visible_heads(desk.store, desk.clock(), 5)
    ]
    shown = events[-_EVENTS:]
    rows = [
        (clock_text(event.at)[:-4], event.kind, element("code", event.subject), event.actor)
        for event in reversed(shown)
    ]
    return respond(
        "History",
        element("p", f"{words}. Checked at {when}.", class_=look),
        element("p", export),
        show_table("Newest public heads of the ledger", ("Since", "Entries", "Hash"), heads),
        show_table("Events, the newest first", ("At (UTC)", "What", "About", "By"), rows),
        turn_pages("/history", skip, _EVENTS, more=len(events) > _EVENTS),
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
            columns=columns, rows=read_whole(fields.get("rows", "")),
            source=fields.get("source", ""),
        )  # fmt: skip
    except ValidationError as cause:
        places = sorted({str(found["loc"][0]) for found in cause.errors()})
        msg = f"please look again at: {', '.join(places)}"
        raise ArgumentError(msg) from cause
