"""The analyst's pages: catalogue, ask, wait, read."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from private_ate.errors import ArgumentError, DomainError
from private_ate.privacy.levels import has_public_covariates
from private_ate.report.markup import Markup, element, join
from private_ate.service.operations import Service
from private_ate.service.policy import Balance, Dataset, Policy, Question
from private_ate.service.store.events import time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.vocabulary import Session, state_words
from private_ate.service.web.authentication import CurrentSession, SubmittedForm, service_of
from private_ate.service.web.layout import (
    Skip,
    alert,
    budget_bar,
    button,
    clock_text,
    form,
    promise,
    read_number,
    redirect,
    respond,
    show_facts,
    show_table,
    turn_pages,
    warning,
)
from private_ate.service.web.models import (
    DatasetName,
    ReleaseJson,
    RequestName,
    dummy_csv,
    release_page,
)
from private_ate.service.web.questions import (
    FIELDS,
    ask_plainly,
    compared,
    expected,
    plan_path,
    price,
    question_form,
    question_text,
)

router = APIRouter(include_in_schema=False)
CurrentService = Annotated[Service, Depends(service_of)]
_ROWS: Final = 50  # on a page
_RECENT: Final = 10  # of a data set's own requests on its page
_DUMMIES: Final = 1000  # rows of made-up data in a file


@router.get("/")
def catalogue(session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Show the data sets with their budgets."""
    cards = [_card(found, balance) for found, balance in service.datasets()]
    words = "Ask by plan: you see what to expect and what it costs before anything is spent."
    empty = element("p", "There is no data set yet.")
    return respond("Data sets", element("p", words), *(cards or [empty]), session=session, here="/")


@router.get("/datasets/{name}")
def dataset(
    name: DatasetName, request: Request, session: CurrentSession, service: CurrentService
) -> HTMLResponse:
    """Describe a data set, and let an analyst plan a question."""
    found, balance = service.dataset(name)
    domain = found.domain
    facts = [
        ("Protected", _protection(found)),
        ("Rows", f"{found.size:,}"),
        ("Treatment", f"{domain.treatment.column}: {', '.join(domain.treatment.labels)}"),
        ("Outcome", f"{domain.outcome.column}, {domain.bounds.low:g} to {domain.bounds.high:g}"),
        ("Covariates", ", ".join(domain.covariates)),
    ]
    facts.append(("Approved at once", _at_once(found.policy)))
    if domain.weights is not None:
        facts.append(("Sampling weights", f"{domain.weights.column}, in force"))
    parts = [
        budget_bar(balance),
        show_facts("What is public about it", facts),
        element("p", element("a", "Made-up data to test a script with (CSV)",
                             href=f"/datasets/{name}/dummy.csv")),
        element("details", element("summary", "The declared domain"),
                element("pre", element("code", domain.to_toml()))),
    ]  # fmt: skip
    problem = "" if found.closed else service.file_problems()[name]
    if problem and session.actor.role == "curator":
        parts.append(warning(f"The file: {problem}."))
    elif problem:
        words = "Its file is not as declared at the moment; curators see what is wrong."
        parts.append(warning(words))
    if found.closed:
        parts.append(warning("This data set is closed: it takes no more requests."))
    elif session.actor.role == "analyst" and session.actor.may_change:
        before = {key: text[:500] for key, text in request.query_params.items() if key in FIELDS}
        parts += [element("h2", "Plan a question"), question_form(found, before)]
        asked = [row for row in service.requests(session.actor) if row.dataset == name]
        if asked:
            parts += [element("h2", "You asked before"), request_rows(asked[:_RECENT], service)]
    return respond(f"Data set {name}", *parts, session=session)


@router.get("/datasets/{name}/dummy.csv")
def dummy(name: DatasetName, session: CurrentSession, service: CurrentService) -> Response:
    """Hand out made-up data."""
    return dummy_csv(service.draw_dummy(session.actor, name, _DUMMIES))


@router.get("/datasets/{name}/plan")
def plan(
    name: DatasetName, request: Request, session: CurrentSession, service: CurrentService
) -> HTMLResponse:
    """Show what to expect of a question, with the button that asks it.

    A plan spends nothing and keeps nothing, so its address can be kept, sent and gone back to.
    """
    session.actor.require("analyst")
    fields = {
        key: text[:500].strip() for key, text in request.query_params.items() if key in FIELDS
    }
    try:
        asked = Question.read(ask_plainly(name, fields))
        wanted = read_number("half_width", fields.get("half_width", ""))
        planned = service.plan(session.actor, asked, wanted)
    except (ArgumentError, DomainError) as error:
        found, _ = service.dataset(name)
        return respond(
            f"Data set {name}", element("h2", "Plan a question"),
            question_form(found, fields, error), session=session, status=400,
        )  # fmt: skip
    written = {key: text for key, text in fields.items() if text}
    hidden = {**written, "dataset": name}
    found, _ = service.dataset(name)
    question = f"{compared(found.domain)}: {question_text(asked)}."
    parts: list[str] = [element("p", question), expected(planned), price(planned)]
    if service.file_problems().get(name):
        words = (
            "The data set's file is not as declared; curators see what is wrong. Until it is "
            "repaired, only made-up data can be asked."
        )
        parts.append(alert(words))
    elif not planned.affordable:
        words = (
            f"It costs more than is left of the budget: ε = {planned.budget.left}. Ask for less, "
            "or ask made-up data, which costs nothing."
        )
        parts.append(alert(words))
    else:
        if not planned.automatic:
            why = "; ".join(planned.objections)
            parts.append(promise(f"A curator will look at it first: {why}."))
        parts.append(form("/requests", session, button("Ask, and spend this budget"), **hidden,
                          key=secrets.token_hex(16)))  # fmt: skip
    parts += [
        form("/requests", session, button("Try it on made-up data first", quiet=True), **hidden,
             dummy="yes", key=secrets.token_hex(16)),
        element("p", element("a", "Change the question",
                             href=f"/datasets/{name}?{urlencode(written)}")),
    ]  # fmt: skip
    return respond("Your plan", *parts, session=session)


@router.post("/requests")
def ask(fields: SubmittedForm, session: CurrentSession, service: CurrentService) -> Response:
    """Keep a request; a form that is sent twice is one request."""
    asked = ask_plainly(fields.get("dataset", ""), fields)
    asked["dummy"] = fields.get("dummy", "") == "yes"
    row = service.submit(session.actor, Question.read(asked), fields.get("key", ""))
    return redirect(f"/requests/{row.id}")


@router.get("/requests")
def requests(session: CurrentSession, service: CurrentService, skip: Skip = 0) -> HTMLResponse:
    """List requests, some to a page."""
    rows = service.requests(session.actor, most=_ROWS + 1, skip=skip)
    title = "My requests" if session.actor.role == "analyst" else "Requests"
    part = request_rows(rows[:_ROWS], service) if rows else element("p", "There is none.")
    turn = turn_pages("/requests", skip, _ROWS, more=len(rows) > _ROWS)
    return respond(title, part, turn, session=session, here="/requests")


@router.get("/requests/{name}")
def show(name: RequestName, session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Show a request; the page looks again by itself when the answer is due."""
    row = service.show(session.actor, name)
    moment = service.clock()
    state = row.shown(moment)
    facts = [
        ("State", state_words(state)),
        ("Data set", row.dataset + (" (made-up data)" if row.dummy else "")),
        ("Cost", "nothing" if row.dummy else str(row.cost)),
        ("Question", question_text(row.asked)),
        ("Asked", clock_text(time_text(row.submitted))),
        ("Plan", join(element("code", row.plan), *_plan_link(row, session))),
    ]
    if row.asked.purpose:
        facts.append(("Purpose", row.asked.purpose))
    parts: list[str] = [show_facts("The request", facts)]
    refresh = 0.0
    if state == "queued":
        left = (row.due - moment) / 1000 if moment < row.due else service.tick
        refresh = max(left + 0.5, 1)
        due = clock_text(time_text(row.due))
        words = "whatever it takes. This page looks again by itself."
        parts.append(promise(f"The answer appears at {due}, {words}"))
    elif state == "done":
        read = element("a", "Read the release", href=f"/releases/{row.id}")
        data = element("a", "as JSON", href=f"/releases/{row.id}.json")
        parts.append(promise(read, " or take it ", data, "."))
        if row.dummy and row.analyst == session.actor.name and session.actor.may_change:
            parts.append(form(f"/requests/{row.id}/real", session,
                              button("Now ask the real data, and spend the budget"),
                              key=secrets.token_hex(16)))  # fmt: skip
    elif row.reason:
        parts.append(promise(f"{row.reason}."))
    own = row.analyst == session.actor.name or session.actor.role == "curator"
    early = state == "waiting" or (state == "queued" and moment < row.start)
    if own and early and session.actor.may_change:
        parts.append(form(f"/requests/{row.id}/cancel", session, button("Cancel it", quiet=True)))
    return respond("A request", *parts, session=session, refresh=refresh)


@router.post("/requests/{name}/real")
def ask_real_data(
    name: RequestName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Ask the real data what was asked of made-up data."""
    asked = service.show(session.actor, name).asked
    row = service.submit(session.actor, replace(asked, dummy=False), fields.get("key", ""))
    return redirect(f"/requests/{row.id}")


@router.post("/requests/{name}/cancel")
def cancel(
    name: RequestName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Cancel a request that has not started."""
    _ = fields
    service.cancel(session.actor, name)
    return redirect(f"/requests/{name}")


@router.get("/releases/{name}.json")
def release_json(name: RequestName, session: CurrentSession, service: CurrentService) -> Response:
    """Hand out a release as data."""
    return ReleaseJson(service.release(session.actor, name))


@router.get("/releases/{name}")
def release(name: RequestName, session: CurrentSession, service: CurrentService) -> Response:
    """Show a release: the page that every release has."""
    return release_page(service.release(session.actor, name))


def request_rows(rows: list[RequestRow], service: Service) -> Markup:
    """Return requests as a table, each with a link to its own page."""
    moment = service.clock()
    lines = [
        (
            element(
                "a",
                time_text(row.submitted)[:16].replace("T", " "),
                href=f"/requests/{row.id}",
                class_="time",
            ),
            row.dataset + (" (made-up)" if row.dummy else ""),
            row.analyst,
            "0" if row.dummy else row.cost.epsilon_text,
            state_words(row.shown(moment)),
        )
        for row in rows
    ]
    return show_table("Newest first", ("Asked", "Data set", "Analyst", "ε", "State"), lines)


def _plan_link(row: RequestRow, session: Session) -> list[str]:
    """Return a link to the plan of a request of one's own."""
    if row.analyst != session.actor.name:
        return []
    return [" ", element("a", "What to expect", href=plan_path(row.asked))]


def _card(found: Dataset, balance: Balance) -> Markup:
    typical = found.policy.typical
    parts = [
        element("h2", element("a", found.name, href=f"/datasets/{found.name}")),
        element("p", f"{found.size:,} rows. {_protection(found)}."),
        budget_bar(balance),
    ]
    if found.closed:
        parts.append(warning("Closed."))
    elif typical is not None:
        count = balance.answers(typical)
        parts.append(element("p", f"Enough for {count} more answers at {typical}."))
    return element("section", *parts, class_="card")


def _protection(found: Dataset) -> str:
    public = has_public_covariates(found.level)
    return "Outcomes are private" if public else "Whole records are private"


def _at_once(policy: Policy) -> str:
    """Say what waits for nobody."""
    if not policy.automatic:
        return "nothing; a curator looks at every plan"
    return (
        f"up to ε = {policy.epsilon_per_request} a request and {policy.epsilon_per_month} in "
        "thirty days; the rest waits for a curator"
    )
