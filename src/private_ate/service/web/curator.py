"""The curator's and the auditor's pages: queue, data sets, policies, history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response
from pydantic import ValidationError

from private_ate.errors import ArgumentError, DomainError, PrivateAteError, SchemaError
from private_ate.methods.registry import METHODS
from private_ate.report.markup import Markup, element
from private_ate.service.histories import visible_heads
from private_ate.service.operations import REASONS, Service
from private_ate.service.policy import Policy, judged_estimands
from private_ate.service.store.catalogue import READING, write_source
from private_ate.service.store.events import read_events, time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.vocabulary import Conflict, Missing, ServiceRefusal
from private_ate.service.web import layout
from private_ate.service.web.authentication import CurrentVisit, SubmittedForm, Visit
from private_ate.service.web.layout import Fault, Field
from private_ate.service.web.models import DatasetBody, DatasetName, audit_lines

router = APIRouter(include_in_schema=False)
_EVENTS: Final = 100  # on a page
_SAME: Final = "all data sets about the same persons."
_AMOUNT: Final = {**layout.DECIMAL, **layout.REQUIRED}
_COUNT: Final = {**layout.WHOLE, **layout.REQUIRED}
_FIELDS: Final = (
    Field("name", "Name", attributes=layout.REQUIRED),
    Field("population", "Population", "The persons; their budget is shared by all their data sets.",
          attributes=layout.REQUIRED),
    Field("epsilon", "Total ε of a new population",
          "Leave empty if the population is there. Never raised afterwards.",
          attributes=layout.DECIMAL),
    Field("level", "What is private",
          options=(("label", "outcomes are private"), ("sample", "whole records are private"))),
    Field("source", "File below the worker's folder",
          "For example 2026/clinic.csv. The worker compares it with what you declare here.",
          attributes=layout.REQUIRED),
    Field("sep", "Fields of a text file are separated by", options=(
        ("", "as usual: commas, tabs in .tsv"), (";", "semicolons"), ("tab", "tabs"), ("|", "bars"),
    )),
    Field("decimal", "Decimals of a text file have", options=(("", "a point"), (",", "a comma"))),
    Field("encoding", "A text file is written in", options=(
        ("", "UTF-8, or as its first bytes say"), ("cp1252", "Windows-1252 (Latin-1)"),
        ("utf-16", "UTF-16"),
    )),
    Field("sheet", "Sheet of an Excel file", "Its name or number; the first if empty."),
    Field("header_row", "Row of the header", "The first if empty.", attributes=layout.WHOLE),
    Field("rows", "Rows", read=layout.read_whole, attributes=_COUNT),
    Field("columns", "Columns of the file", "All of them, with commas.", read=layout.read_list,
          attributes=layout.REQUIRED),
    Field("domain", "Domain (TOML)", "What private-ate domain drafts, filled in.",
          attributes={"rows": "9", **layout.REQUIRED}),
)  # fmt: skip
_POLICY: Final = (
    Field("automatic", "Approve within the limits below", read=layout.read_switch),
    Field("epsilon_per_request", "Most ε of one request", attributes=_AMOUNT),
    Field("epsilon_per_month", "Most ε of one analyst in thirty days", f"Of {_SAME}",
          attributes=_AMOUNT),
    Field("epsilon_at_least", "Least ε of one request", attributes=_AMOUNT),
    Field("requests_per_day", "Requests of one analyst in 24 hours", f"To {_SAME}",
          read=layout.read_whole, attributes=_COUNT),
    Field("methods", "Methods", f"With commas, of {', '.join(METHODS)}.", read=layout.read_list),
    Field("estimands", "Estimands", f"With commas, of {', '.join(judged_estimands())}.",
          read=layout.read_list),
    Field("outcomes", "Outcomes", "With commas; all for every one that is declared.",
          read=layout.read_open_list),
    Field("subgroups", "Columns that units may be divided by",
          "With commas, of {covariates}; all for every one, empty for none.",
          read=layout.read_open_list),
    Field("needs_interval", "Only with a confidence interval", read=layout.read_switch),
    Field("confidence_at_least", "Least confidence of an interval", read=layout.read_number,
          attributes=_AMOUNT),
    Field("two_persons", "Two curators approve what waits", read=layout.read_switch),
)  # fmt: skip


# What a button does: its address, the operation and its field, and the page that follows.
_ACTS: Final = (
    ("/requests/{name}/approve", Service.approve, ("plan",), "/queue"),
    ("/requests/{name}/refuse", Service.refuse, ("reason",), "/queue"),
    ("/requests/{name}/cancel", Service.cancel, (), "/requests/{name}"),
    ("/datasets/{name}/close", Service.close_dataset, (), "/manage"),
    ("/tokens/{name}/revoke", Service.revoke_token, (), "/tokens"),
)


def _add_act(path: str, act: Callable[..., object], names: Sequence[str], after: str) -> None:
    @router.post(path)
    def run(name: DatasetName, fields: SubmittedForm, visit: CurrentVisit) -> Response:
        act(visit.service, visit.actor, name, *(fields.get(each, "") for each in names))
        return layout.redirect(after.format(name=name))


for _row in _ACTS:
    _add_act(*_row)


@router.get("/queue")
def queue(visit: CurrentVisit) -> HTMLResponse:
    """Show the plans that wait for a decision; no diagnostics, only what was asked."""
    visit.actor.require("curator")
    troubles = [
        layout.warning(f"Data set {name}: {problem}.")
        for name, problem in visit.service.file_problems().items()
        if problem
    ]
    cards = [_waiting(row, visit) for row in visit.service.requests(visit.actor, ("waiting",))]
    words = (
        "You approve a plan, never a result. What you know about the records must not decide: "
        "go by the question and its price."
    )
    parts = [*troubles, *cards] or [element("p", "Nothing waits.")]
    return layout.respond(
        "Plans that wait", element("p", words), *parts, session=visit.session, here="/queue"
    )


@router.get("/manage")
def manage(visit: CurrentVisit) -> HTMLResponse:
    """Show data sets and budgets, with the forms that add and close."""
    visit.actor.require("curator")
    return _manage(visit)


def _manage(
    visit: Visit, before: Mapping[str, str] | None = None, error: PrivateAteError | None = None
) -> HTMLResponse:
    """Return the page; the form that adds is filled in as it was ``before`` its error."""
    service, session = visit.service, visit.session
    looks = service.file_problems()
    seen = {None: "no worker has looked at it yet", "": "as declared"}
    shut = layout.button("Close", quiet=True)
    rows = [
        (
            found.name, found.population, "closed" if found.closed else "open",
            "" if found.closed else looks[found.name] or seen[looks[found.name]],
            layout.link("Policy", f"/datasets/{found.name}/policy"),
            "" if found.closed or not visit.actor.may_change
            else layout.form(f"/datasets/{found.name}/close", session, shut),
        )
        for found, _ in service.datasets()
    ]  # fmt: skip
    names = ("Data set", "Population", "State", "File", "Policy", "Action")
    parts = [
        element("h2", "Budgets"), *map(layout.budget_bar, service.populations()),
        element("h2", "Data sets"), layout.table("Closing cannot be undone", names, rows),
    ]  # fmt: skip
    if any(looks.values()):
        words = (
            "A data set is never declared anew. Repair the file, or close the data set and add "
            "its file again under another name."
        )
        parts.append(layout.warning(words))
    if visit.actor.may_change and service.manages:
        fault = Fault.of(error, _FIELDS)
        entries = [*fault.above, *layout.show_fields(_FIELDS, before or {}, fault)]
        add = layout.form("/manage", session, *entries, layout.button("Add it"))
        parts += [element("h2", "Add a data set", id="add"), add]
    status = 400 if error else 200
    if isinstance(error, ServiceRefusal):
        status = error.status
    return layout.respond("Manage", *parts, session=session, here="/manage", status=status)


@router.post("/manage")
def add(fields: SubmittedForm, visit: CurrentVisit) -> Response:
    """Register a data set."""
    visit.service.require_management(visit.actor)
    try:
        body = _dataset_body(fields)
        new = body.dataset(visit.service.usual_policy(body.population))
        visit.service.add_dataset(visit.actor, new, body.epsilon)
    except (ArgumentError, DomainError, SchemaError, Missing, Conflict) as error:
        return _manage(visit, fields, error)
    return layout.redirect("/manage")


@router.get("/datasets/{name}/policy")
def policy(name: DatasetName, visit: CurrentVisit) -> HTMLResponse:
    """Show a policy, and let a curator replace it."""
    actor, service, session = visit.actor, visit.service, visit.session
    actor.require("curator", "auditor")
    found, _ = service.dataset(name)
    words = (
        "Plans within these limits are approved at once; all others wait for a curator. What was "
        "asked before keeps what was decided. Where two curators approve, a looser policy needs "
        "two persons."
    )
    changes = actor.role == "curator" and actor.may_change and service.manages
    action = f"/datasets/{name}/policy"
    covariates = ", ".join(found.domain.covariates)
    entries = layout.show_fields(_POLICY, _written(found.policy), covariates=covariates)
    replacing = layout.form(action, session, *entries, layout.button("Replace the policy"))
    parts = [replacing if changes else _policy_table(found.policy)]
    proposed = service.proposed_policy(name)
    if proposed is not None:
        who = f"{proposed[0]} proposes another policy. A second person confirms it."
        parts += [element("h2", "Proposed"), element("p", who), _policy_table(proposed[1])]
        if changes:
            confirm = layout.button("Confirm this policy")
            parts.append(layout.form(action, session, confirm, **_written(proposed[1])))
    return layout.respond(f"Policy of {name}", element("p", words), *parts, session=session)


@router.post("/datasets/{name}/policy")
def replace_policy(name: DatasetName, fields: SubmittedForm, visit: CurrentVisit) -> Response:
    """Replace a policy."""
    visit.service.require_management(visit.actor)
    new = Policy.read(layout.read_fields(_POLICY, fields))
    is_held = visit.service.set_policy(visit.actor, name, new)
    return layout.redirect("/manage" if is_held else f"/datasets/{name}/policy")


@router.get("/history")
def history(visit: CurrentVisit, skip: layout.Skip = 0) -> HTMLResponse:
    """Show the newest events and heads, and whether both histories verify."""
    visit.actor.require("curator", "auditor")
    service = visit.service
    with service.store.snapshot() as execute:
        events = read_events(execute, _EVENTS + 1, skip)
    check, newest = service.checks.newest(), visible_heads(service.store, service.clock(), 5)
    words, look = f"A history does not verify: {check.problem}", "warning"
    if not check.problem:
        public = newest[0].entries if newest else 0
        words = f"Both histories verify: {public} public entries, {check.events} events"
        look = "promise"
    when = layout.clock_text(time_text(check.at))
    export = layout.link("Export everything (one JSON object a line)", "/audit.ndjson")
    heads = [
        (layout.clock_text(head.at), str(head.entries), element("code", head.hash))
        for head in newest
    ]
    rows = [
        (layout.clock_text(one.at)[:-4], one.kind, element("code", one.subject), one.actor)
        for one in reversed(events[-_EVENTS:])
    ]
    return layout.respond(
        "History",
        element("p", f"{words}. Checked at {when}.", class_=look),
        element("p", export),
        layout.table("Newest public heads of the ledger", ("Since", "Entries", "Hash"), heads),
        layout.table("Events, the newest first", ("At (UTC)", "What", "About", "By"), rows),
        layout.turn_pages("/history", skip, _EVENTS, more=len(events) > _EVENTS),
        session=visit.session, here="/history",
    )  # fmt: skip


@router.get("/audit.ndjson")
def audit(visit: CurrentVisit) -> Response:
    """Export ledger and events."""
    return audit_lines(*visit.service.histories(visit.actor))


def _waiting(row: RequestRow, visit: Visit) -> Markup:
    """Return a plan that waits, with the forms that decide about it."""
    service, session = visit.service, visit.session
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
    parts = [element("h2", f"From {row.analyst}"), layout.facts("The plan", facts)]
    if visit.actor.may_change:
        path = f"/requests/{row.id}"
        reasons = Field("reason", "Reason", options=tuple(REASONS.items()))
        why = reasons.show("", place=f"reason-{row.id}")
        press = layout.button("Approve this plan")
        command = f"private-ate serve approve FOLDER {row.id} --plan {plan} --curator NAME"
        parts += [
            layout.form(f"{path}/approve", session, press, plan=plan) if service.manages
            else element("p", "Approve it on the worker's side: ", element("code", command)),
            layout.form(f"{path}/refuse", session, why, layout.button("Refuse", quiet=True)),
        ]  # fmt: skip
    return element("section", *parts, class_="card")


def _shown(value: object) -> str:
    """Return a plain value of a plan as a person reads it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _dataset_body(fields: Mapping[str, str]) -> DatasetBody:
    said = layout.read_fields(_FIELDS, fields)
    reading = {name: said.pop(name) for name in READING if name in said}
    source = write_source(said.pop("source") or "", **reading)
    try:
        return DatasetBody(source=source, **said)
    except ValidationError as cause:
        places = sorted({str(found["loc"][0]) for found in cause.errors()})
        msg = f"please look again at: {', '.join(places)}"
        raise ArgumentError(msg) from cause


def _written(held: Policy) -> dict[str, str]:
    """Return a policy as the fields of the form that would say it."""
    return {one.name: one.write(getattr(held, one.name)) for one in _POLICY}


def _policy_table(held: Policy) -> Markup:
    rows = []
    for one in _POLICY:
        text = one.write(getattr(held, one.name))
        shown = {"yes": "yes", "": "no"}[text] if one.read is layout.read_switch else text or "none"
        rows.append((one.name.replace("_", " "), shown))
    return layout.facts("What is approved at once", rows, "Limit")
