"""The curator's and the auditor's pages: queue, data sets, policies, history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from private_ate.domain.column_types import parse_number
from private_ate.errors import ArgumentError, DomainError, PrivateAteError, SchemaError
from private_ate.methods.registry import METHODS
from private_ate.report.markup import Markup, element
from private_ate.service.histories import visible_heads
from private_ate.service.operations import REASONS, Service
from private_ate.service.policy import Policy, judged_estimands
from private_ate.service.store.catalogue import READING, write_source
from private_ate.service.store.events import read_events, time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.vocabulary import Conflict, Missing, ServiceRefusal, Session
from private_ate.service.web.authentication import CurrentSession, SubmittedForm, service_of
from private_ate.service.web.layout import (
    Fault,
    Field,
    Skip,
    budget_bar,
    button,
    clock_text,
    form,
    read_fields,
    read_list,
    read_open_list,
    read_switch,
    read_whole,
    redirect,
    respond,
    show_facts,
    show_fields,
    show_table,
    turn_pages,
    warning,
)
from private_ate.service.web.models import DatasetBody, DatasetName, RequestName, audit_lines

router = APIRouter(include_in_schema=False)
CurrentService = Annotated[Service, Depends(service_of)]
_EVENTS: Final = 100  # on a page
_REQUIRED: Final = {"required": "required"}
_WHOLE: Final = {"inputmode": "numeric"}
_FIELDS: Final = (
    Field("name", "Name", attributes=_REQUIRED),
    Field("population", "Population", "The persons; their budget is shared by all their data sets.",
          attributes=_REQUIRED),
    Field("epsilon", "Total ε of a new population",
          "Leave empty if the population is there. Never raised afterwards.",
          attributes={"inputmode": "decimal"}),
    Field("level", "What is private",
          options=(("label", "outcomes are private"), ("sample", "whole records are private"))),
    Field("source", "File below the worker's folder",
          "For example 2026/clinic.csv. The worker compares it with what you declare here.",
          attributes=_REQUIRED),
    Field("sep", "Fields of a text file are separated by", options=(
        ("", "as usual: commas, tabs in .tsv"), (";", "semicolons"), ("tab", "tabs"), ("|", "bars"),
    )),
    Field("decimal", "Decimals of a text file have", options=(("", "a point"), (",", "a comma"))),
    Field("encoding", "A text file is written in", options=(
        ("", "UTF-8, or as its first bytes say"), ("cp1252", "Windows-1252 (Latin-1)"),
        ("utf-16", "UTF-16"),
    )),
    Field("sheet", "Sheet of an Excel file", "Its name or number; the first if empty."),
    Field("header_row", "Row of the header", "The first if empty.", attributes=_WHOLE),
    Field("rows", "Rows", read=read_whole, attributes={**_WHOLE, **_REQUIRED}),
    Field("columns", "Columns of the file", "All of them, with commas.", read=read_list,
          attributes=_REQUIRED),
    Field("domain", "Domain (TOML)", "What private-ate domain drafts, filled in.",
          attributes={"rows": "9", **_REQUIRED}),
)  # fmt: skip


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
    bars = [budget_bar(balance) for balance in service.populations()]
    looks = service.file_problems()
    rows = [
        (
            found.name, found.population, "closed" if found.closed else "open",
            "" if found.closed else file_words(looks[found.name]),
            element("a", "Policy", href=f"/datasets/{found.name}/policy"),
            "" if found.closed or not session.actor.may_change
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
        parts.append(warning(words))
    if session.actor.may_change and service.manages:
        fault = Fault.of(error, _FIELDS)
        entries = [*fault.above, *show_fields(_FIELDS, before or {}, fault), button("Add it")]
        parts += [element("h2", "Add a data set", id="add"), form("/manage", session, *entries)]
    status = 400 if error else 200
    if isinstance(error, ServiceRefusal):
        status = error.status
    return respond("Manage", *parts, session=session, here="/manage", status=status)


@router.post("/manage")
def add(fields: SubmittedForm, session: CurrentSession, service: CurrentService) -> Response:
    """Register a data set."""
    service.require_management(session.actor)
    try:
        body = _dataset_body(fields)
        new = body.dataset(service.usual_policy(body.population))
        service.add_dataset(session.actor, new, body.epsilon)
    except (ArgumentError, DomainError, SchemaError, Missing, Conflict) as error:
        return _manage(session, service, fields, error)
    return redirect("/manage")


@router.post("/datasets/{name}/close")
def close(
    name: DatasetName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Close a data set."""
    _ = fields
    service.close_dataset(session.actor, name)
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
    return audit_lines(*service.histories(session.actor))


def _waiting(row: RequestRow, session: Session, service: CurrentService) -> Markup:
    plan, stated = "", {}
    try:
        settled = service.settle(row.asked)
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
    parts = [element("h2", f"From {row.analyst}"), show_facts("The plan", facts)]
    if session.actor.may_change:
        reasons = Field("reason", "Reason", options=tuple(REASONS.items()))
        why = reasons.show("", place=f"reason-{row.id}")
        approve = form(
            f"/requests/{row.id}/approve", session, button("Approve this plan"), plan=plan
        )
        command = f"private-ate serve approve FOLDER {row.id} --plan {plan} --curator NAME"
        here = element("p", "Approve it on the worker's side: ", element("code", command))
        parts += [
            approve if service.manages else here,
            form(f"/requests/{row.id}/refuse", session, why, button("Refuse", quiet=True)),
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
        warning(f"Data set {name}: {problem}.")
        for name, problem in service.file_problems().items()
        if problem
    ]


def _dataset_body(fields: Mapping[str, str]) -> DatasetBody:
    said = read_fields(_FIELDS, fields)
    reading = {name: said.pop(name) for name in READING if name in said}
    source = write_source(said.pop("source") or "", **reading)
    try:
        return DatasetBody(source=source, **said)
    except ValidationError as cause:
        places = sorted({str(found["loc"][0]) for found in cause.errors()})
        msg = f"please look again at: {', '.join(places)}"
        raise ArgumentError(msg) from cause


_SAME: Final = "all data sets about the same persons."
_DECIMAL: Final = {"inputmode": "decimal", "required": "required"}
_ONE_WHOLE: Final = {"inputmode": "numeric", "required": "required"}


def _read_amount(_: str, text: str) -> str:
    return text


_POLICY: Final = (
    Field("automatic", "Approve within the limits below", read=read_switch),
    Field("epsilon_per_request", "Most ε of one request", read=_read_amount, attributes=_DECIMAL),
    Field("epsilon_per_month", "Most ε of one analyst in thirty days", f"Of {_SAME}",
          read=_read_amount, attributes=_DECIMAL),
    Field("epsilon_at_least", "Least ε of one request", read=_read_amount, attributes=_DECIMAL),
    Field("requests_per_day", "Requests of one analyst in 24 hours", f"To {_SAME}",
          read=read_whole, attributes=_ONE_WHOLE),
    Field("methods", "Methods", f"With commas, of {', '.join(METHODS)}.", read=read_list),
    Field("estimands", "Estimands", f"With commas, of {', '.join(judged_estimands())}.",
          read=read_list),
    Field("outcomes", "Outcomes", "With commas; all for every one that is declared.",
          read=read_open_list),
    Field("subgroups", "Columns that units may be divided by",
          "With commas, of {covariates}; all for every one, empty for none.",
          read=read_open_list),
    Field("needs_interval", "Only with a confidence interval", read=read_switch),
    Field("confidence_at_least", "Least confidence of an interval",
          read=lambda _, text: parse_number(text), attributes=_DECIMAL),
    Field("two_persons", "Two curators approve what waits", read=read_switch),
)  # fmt: skip


@router.get("/datasets/{name}/policy")
def policy(name: DatasetName, session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Show a policy, and let a curator replace it."""
    session.actor.require("curator", "auditor")
    found, _ = service.dataset(name)
    words = (
        "Plans within these limits are approved at once; all others wait for a curator. What was "
        "asked before keeps what was decided. Where two curators approve, a looser policy needs "
        "two persons."
    )
    changes = session.actor.role == "curator" and session.actor.may_change and service.manages
    action = f"/datasets/{name}/policy"
    covariates = ", ".join(found.domain.covariates)
    entries = show_fields(_POLICY, _written(found.policy), covariates=covariates)
    parts = [
        form(action, session, *entries, button("Replace the policy"))
        if changes
        else _policy_table(found.policy)
    ]
    proposed = service.proposed_policy(name)
    if proposed is not None:
        who = f"{proposed[0]} proposes another policy. A second person confirms it."
        parts += [element("h2", "Proposed"), element("p", who), _policy_table(proposed[1])]
        if changes:
            confirm = button("Confirm this policy")
            parts.append(form(action, session, confirm, **_written(proposed[1])))
    return respond(f"Policy of {name}", element("p", words), *parts, session=session)


@router.post("/datasets/{name}/policy")
def replace_policy(
    name: DatasetName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Replace a policy."""
    service.require_management(session.actor)
    is_held = service.set_policy(session.actor, name, Policy.read(read_fields(_POLICY, fields)))
    return redirect("/manage" if is_held else f"/datasets/{name}/policy")


def _written(held: Policy) -> dict[str, str]:
    """Return a policy as the fields of the form that would say it."""
    return {one.name: one.write(getattr(held, one.name)) for one in _POLICY}


def _policy_table(held: Policy) -> Markup:
    words = {"yes": "yes", "": "no"}
    rows = []
    for one in _POLICY:
        text = one.write(getattr(held, one.name))
        shown = words[text] if one.read is read_switch else text or "none"
        rows.append((one.name.replace("_", " "), shown))
    return show_facts("What is approved at once", rows, "Limit")
