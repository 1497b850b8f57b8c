"""The curator's and the auditor's pages: queue, data sets, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from private_ate.errors import ArgumentError, DomainError, PrivateAteError, SchemaError
from private_ate.report.markup import Markup, element
from private_ate.service.chain_heads import visible_heads
from private_ate.service.operations import REASONS, Service
from private_ate.service.pages.analyst import Skip, budget_bar
from private_ate.service.pages.layout import (
    button,
    choice,
    clock_text,
    field,
    form,
    may_change,
    read_whole,
    redirect,
    respond,
    show_table,
    turn_pages,
)
from private_ate.service.pages.questions import field_of, sentence_of
from private_ate.service.pages.sessions import CurrentSession, SubmittedForm
from private_ate.service.refusals import Conflict, Missing, ServiceRefusal
from private_ate.service.sources import write_source
from private_ate.service.store.catalogue import (
    add_dataset,
    add_population,
    close_dataset,
    usual_policy,
)
from private_ate.service.store.events import read_events, time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.store.users import (
    Session,
)
from private_ate.service.web.api import audit_lines, dataset_from
from private_ate.service.web.authentication import CurrentService
from private_ate.service.web.models import DatasetBody, DatasetName, RequestName

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_EVENTS: Final = 100  # on a page
_SEPARATORS: Final = (
    ("", "as usual: commas, tabs in .tsv"), (";", "semicolons"), ("tab", "tabs"), ("|", "bars"),
)  # fmt: skip
_DECIMALS: Final = (("", "a point"), (",", "a comma"))
_ENCODINGS: Final = (
    ("", "UTF-8, or as its first bytes say"), ("cp1252", "Windows-1252 (Latin-1)"),
    ("utf-16", "UTF-16"),
)  # fmt: skip
_READING: Final = ("sep", "decimal", "encoding", "sheet", "header_row")
# Fields of a new data set that are written; an error about another stands above the form.
_WRITTEN: Final = (
    "name", "population", "epsilon", "source", "sheet", "header_row", "rows", "columns", "domain",
)  # fmt: skip
_LEVELS: Final = (("label", "outcomes are private"), ("sample", "whole records are private"))


@router.get("/queue")
def queue(session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Show the plans that wait for a decision; no diagnostics, only what was asked."""
    session.actor.require("curator")
    cards = [
        _waiting(row, session, service) for row in service.requests(session.actor, ("waiting",))
    ]
    words = (
        "You approve a plan, never a result. What you know about the records must not decide: "
        "go by the question and its price."
    )
    none = element("p", "Nothing waits.")
    cards = [*_troubles(service), *cards]
    return respond(
        "Plans that wait", element("p", words), *(cards or [none]), session=session, here="/queue"
    )


@router.post("/requests/{name}/approve")
def approve(
    name: RequestName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Approve the plan that was shown."""
    service.approve(session.actor, name, fields.get("plan", ""))
    return redirect("/queue")


@router.post("/requests/{name}/refuse")
def refuse(
    name: RequestName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Refuse a plan."""
    service.refuse(session.actor, name, fields.get("reason", ""))
    return redirect("/queue")


@router.get("/manage")
def manage(session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Show data sets and budgets, with the forms that add and close."""
    session.actor.require("curator")
    return _manage(session, service)


def _manage(
    session: Session,
    service: Service,
    before: Mapping[str, str] | None = None,
    error: PrivateAteError | None = None,
) -> HTMLResponse:
    """Return the page; the form that adds is filled in as it was ``before`` its error."""
    bars = [budget_bar(population.name, balance) for population, balance in service.populations()]
    looks = service.file_problems()
    rows = [
        (
            found.name, found.population, "closed" if found.closed else "open",
            "" if found.closed else file_words(looks[found.name]),
            element("a", "Policy", href=f"/datasets/{found.name}/policy"),
            "" if found.closed or not may_change(session.actor)
            else form(f"/datasets/{found.name}/close", session, button("Close", quiet=True)),
        )
        for found, _ in service.datasets()
    ]  # fmt: skip
    parts = [
        element("h2", "Budgets"), *bars,
        element("h2", "Data sets"),
        show_table(
            "Closing cannot be undone",
            ("Data set", "Population", "State", "File", "Policy", "Action"), rows,
        ),
    ]  # fmt: skip
    if any(looks.values()):
        words = (
            "A data set is never declared anew. Repair the file, or close the data set and add "
            "its file again under another name."
        )
        parts.append(element("p", words, class_="warning"))
    if may_change(session.actor) and service.manages:
        form_of_data = _dataset_form(session, before or {}, error)
        parts += [element("h2", "Add a data set", id="add"), form_of_data]
    status = 400 if error else 200
    if isinstance(error, ServiceRefusal):
        status = error.status
    return respond("Manage", *parts, session=session, here="/manage", status=status)


@router.post("/manage")
def add(fields: SubmittedForm, session: CurrentSession, service: CurrentService) -> Response:
    """Register a data set."""
    session.actor.require("curator", write=True)
    service.require_management()
    try:
        body = _dataset_body(fields)
        with service.store.transaction() as execute:
            new = dataset_from(body, usual_policy(execute, body.population))
            if body.epsilon is not None:
                add_population(
                    execute, body.population, body.level, body.epsilon, "0", session.actor.name
                )
            add_dataset(execute, new, session.actor.name)
    except (ArgumentError, DomainError, SchemaError, Missing, Conflict) as error:
        return _manage(session, service, fields, error)
    return redirect("/manage")


@router.post("/datasets/{name}/close")
def close(
    name: DatasetName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Close a data set."""
    _ = fields
    session.actor.require("curator", write=True)
    with service.store.transaction() as execute:
        close_dataset(execute, name, session.actor.name, service.clock())
    return redirect("/manage")


@router.get("/history")
def history(session: CurrentSession, service: CurrentService, skip: Skip = 0) -> HTMLResponse:
    """Show the newest events and heads, and whether both histories verify."""
    session.actor.require("curator", "auditor")
    with service.store.snapshot() as execute:
        events = read_events(execute, _EVENTS + 1, skip)
    check, newest = service.checks.newest(), visible_heads(service.store, service.clock(), 5)
    when = clock_text(time_text(check.at))
    words, look = f"A history does not verify: {check.problem}", "warning"
    if not check.problem:
        public = newest[0].entries if newest else 0
        words = f"Both histories verify: {public} public entries, {check.events} events"
        look = "promise"
    export = element("a", "Export everything (one JSON object a line)", href="/audit.ndjson")
    heads = [
        (clock_text(head.at), str(head.entries), element("code", head.hash)) for head in newest
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
def audit(session: CurrentSession, service: CurrentService) -> Response:
    """Export ledger and events."""
    session.actor.require("curator", "auditor")
    return audit_lines(service)


def _waiting(row: RequestRow, session: Session, service: CurrentService) -> Markup:
    plan, stated = "", {}
    try:
        _, settled = service.settle(row.asked)
    except PrivateAteError as error:  # of an earlier version, which answered it
        stated = {"cannot be answered": str(error)}
    else:
        # The hash of what is shown, which is compared with that of what waits.
        plan, stated = settled.bill.plan, settled.stated()
    facts: list[tuple[str, str]] = [
        ("Analyst", row.analyst), ("Data set", row.dataset), ("Cost", str(row.cost)),
        *((name.replace("_", " ").capitalize(), _shown(value)) for name, value in stated.items()),
        *((("Purpose, in the analyst's words", row.asked.purpose),) * bool(row.asked.purpose)),
        ("Why it waits", row.reason), ("Plan", element("code", plan)),
        ("Approved by", ", ".join(row.has_approved) or "nobody yet"),
    ]  # fmt: skip
    parts = [element("h2", f"From {row.analyst}"), show_table("The plan", ("Fact", "Value"), facts)]
    if may_change(session.actor):
        reasons = choice("reason", "Reason", REASONS.items(), place=f"reason-{row.id}")
        approve = form(
            f"/requests/{row.id}/approve", session, button("Approve this plan"), plan=plan
        )
        command = f"private-ate serve approve FOLDER {row.id} --plan {plan} --curator NAME"
        here = element("p", "Approve it on the worker's side: ", element("code", command))
        parts += [
            approve if service.manages else here,
            form(f"/requests/{row.id}/refuse", session, reasons, button("Refuse", quiet=True)),
        ]
    return element("section", *parts, class_="card")


def _shown(value: object) -> str:
    """Return a plain value of a plan as a person reads it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def file_words(problem: str | None) -> str:
    """Say whether a data set's file is as declared."""
    if problem is None:
        return "no worker has looked at it yet"
    return problem or "as declared"


def _troubles(service: Service) -> list[Markup]:
    """Return a warning for each data set whose file is not as declared."""
    return [
        element("p", f"Data set {name}: {problem}.", class_="warning")
        for name, problem in service.file_problems().items()
        if problem
    ]


def _dataset_form(
    session: Session, before: Mapping[str, str], error: PrivateAteError | None
) -> Markup:
    """Return the form of a new data set, filled in as it was ``before``; an error at its field."""
    wrong = "" if error is None else field_of(error, _WRITTEN)
    sentence = "" if error is None else sentence_of(error)

    def entry(name: str, label: str, hint: str = "", **attributes: str) -> Markup:
        said = sentence if name == wrong else ""
        return field(name, label, hint, before.get(name, ""), error=said, **attributes)

    def listed(name: str, label: str, options: Sequence[tuple[str, str]]) -> Markup:
        return choice(name, label, options, chosen=before.get(name, ""))

    heading = (
        [] if wrong or not sentence else [element("p", sentence, class_="warning", role="alert")]
    )
    return form(
        "/manage", session, *heading,
        entry("name", "Name", required="required"),
        entry("population", "Population", "The persons; their budget is shared by all their data "
              "sets.", required="required"),
        entry("epsilon", "Total ε of a new population", "Leave empty if the population is there. "
              "Never raised afterwards.", inputmode="decimal"),
        listed("level", "What is private", _LEVELS),
        entry("source", "File below the worker's folder", "For example 2026/clinic.csv. The "
              "worker compares it with what you declare here.", required="required"),
        listed("sep", "Fields of a text file are separated by", _SEPARATORS),
        listed("decimal", "Decimals of a text file have", _DECIMALS),
        listed("encoding", "A text file is written in", _ENCODINGS),
        entry("sheet", "Sheet of an Excel file", "Its name or number; the first if empty."),
        entry("header_row", "Row of the header", "The first if empty.", inputmode="numeric"),
        entry("rows", "Rows", inputmode="numeric", required="required"),
        entry("columns", "Columns of the file", "All of them, with commas.", required="required"),
        entry("domain", "Domain (TOML)", "What private-ate domain drafts, filled in.",
              rows="9", required="required"),
        button("Add it"),
    )  # fmt: skip


def _dataset_body(fields: Mapping[str, str]) -> DatasetBody:
    columns = [name.strip() for name in fields.get("columns", "").split(",") if name.strip()]
    try:
        return DatasetBody(
            name=fields.get("name", ""), population=fields.get("population", ""),
            level=fields.get("level", ""),  # type: ignore[arg-type]  # checked by the model
            epsilon=fields.get("epsilon") or None, domain=fields.get("domain", ""),
            columns=columns, rows=read_whole(fields, "rows"),
            source=write_source(
                fields.get("source", ""), **{name: fields.get(name) for name in _READING}
            ),
        )  # fmt: skip
    except ValidationError as cause:
        places = sorted({str(found["loc"][0]) for found in cause.errors()})
        msg = f"please look again at: {', '.join(places)}"
        raise ArgumentError(msg) from cause
