"""The analyst's pages: catalogue, ask, wait, read."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from private_ate.errors import ArgumentError, DomainError
from private_ate.privacy.levels import has_public_covariates
from private_ate.report.markup import Markup, element, folded, join
from private_ate.service.operations import Service
from private_ate.service.policy import Balance, Dataset, Policy, Question
from private_ate.service.store.events import time_text
from private_ate.service.store.requests import RequestRow
from private_ate.service.vocabulary import state_words
from private_ate.service.web import layout, questions
from private_ate.service.web.authentication import CurrentVisit, SubmittedForm
from private_ate.service.web.models import (
    DatasetName,
    ReleaseJson,
    RequestName,
    dummy_csv,
    release_page,
)

router = APIRouter(include_in_schema=False)
_ROWS: Final = 50  # on a page
_RECENT: Final = 10  # of a data set's own requests on its page
_DUMMIES: Final = 1000  # rows of made-up data in a file


@router.get("/")
def catalogue(visit: CurrentVisit) -> HTMLResponse:
    """Show the data sets with their budgets."""
    cards = [_card(found, balance) for found, balance in visit.service.datasets()]
    words = "Ask by plan: you see what to expect and what it costs before anything is spent."
    cards = cards or [element("p", "There is no data set yet.")]
    return layout.respond("Data sets", element("p", words), *cards, session=visit.session, here="/")


@router.get("/datasets/{name}")
def dataset(name: DatasetName, request: Request, visit: CurrentVisit) -> HTMLResponse:
    """Describe a data set, and let an analyst plan a question."""
    actor, service = visit.actor, visit.service
    found, balance = service.dataset(name)
    domain = found.domain
    facts = [
        ("Protected", _protection(found)),
        ("Rows", f"{found.size:,}"),
        ("Treatment", f"{domain.treatment.column}: {', '.join(domain.treatment.labels)}"),
        ("Outcome", f"{domain.outcome.column}, {domain.bounds.low:g} to {domain.bounds.high:g}"),
        ("Covariates", ", ".join(domain.covariates)),
        ("Approved at once", _at_once(found.policy)),
    ]
    if domain.weights is not None:
        facts.append(("Sampling weights", f"{domain.weights.column}, in force"))
    made_up = layout.link("Made-up data to test a script with (CSV)", f"/datasets/{name}/dummy.csv")
    parts = [
        layout.budget_bar(balance),
        layout.facts("What is public about it", facts),
        element("p", made_up),
        folded("The declared domain", element("pre", element("code", domain.to_toml()))),
    ]
    problem = "" if found.closed else service.file_problems()[name]
    if problem:
        words = "Its file is not as declared at the moment; curators see what is wrong."
        knows_why = actor.role == "curator"
        parts.append(layout.warning(f"The file: {problem}." if knows_why else words))
    if found.closed:
        parts.append(layout.warning("This data set is closed: it takes no more requests."))
    elif actor.role == "analyst" and actor.may_change:
        parts += [
            element("h2", "Plan a question"),
            questions.question_form(found, questions.written(request.query_params)),
        ]
        asked = [row for row in service.requests(actor) if row.dataset == name]
        if asked:
            parts += [element("h2", "You asked before"), _rows(asked[:_RECENT], service)]
    return layout.respond(f"Data set {name}", *parts, session=visit.session)


@router.get("/datasets/{name}/dummy.csv")
def dummy(name: DatasetName, visit: CurrentVisit) -> Response:
    """Hand out made-up data."""
    return dummy_csv(visit.service.draw_dummy(visit.actor, name, _DUMMIES))


@router.get("/datasets/{name}/plan")
def plan(name: DatasetName, request: Request, visit: CurrentVisit) -> HTMLResponse:
    """Show what to expect of a question, with the button that asks it.

    A plan spends nothing and keeps nothing, so its address can be kept, sent and gone back to.
    """
    actor, service, session = visit.actor, visit.service, visit.session
    actor.require("analyst")
    fields = questions.written(request.query_params)
    found, _ = service.dataset(name)
    try:
        asked = Question.read(questions.ask_plainly(name, fields))
        wanted = layout.read_number("half_width", fields.get("half_width", ""))
        planned = service.plan(actor, asked, wanted)
    except (ArgumentError, DomainError) as error:
        return layout.respond(
            f"Data set {name}", element("h2", "Plan a question"),
            questions.question_form(found, fields, error), session=session, status=400,
        )  # fmt: skip
    said = {key: text for key, text in fields.items() if text}
    question = f"{questions.compared(found.domain)}: {questions.question_text(asked)}."
    parts = [element("p", question), questions.expected(planned), questions.price(planned)]

    def asking(words: str, *, quiet: bool = False, **more: str) -> Markup:
        hidden = {**said, "dataset": name, **more, "key": secrets.token_hex(16)}
        return layout.form("/requests", session, layout.button(words, quiet=quiet), **hidden)

    if service.file_problems().get(name):
        words = (
            "The data set's file is not as declared; curators see what is wrong. Until it is "
            "repaired, only made-up data can be asked."
        )
        parts.append(layout.alert(words))
    elif not planned.affordable:
        words = (
            f"It costs more than is left of the budget: ε = {planned.budget.left}. Ask for less, "
            "or ask made-up data, which costs nothing."
        )
        parts.append(layout.alert(words))
    else:
        if not planned.automatic:
            why = "; ".join(planned.objections)
            parts.append(layout.promise(f"A curator will look at it first: {why}."))
        parts.append(asking("Ask, and spend this budget"))
    change = layout.link("Change the question", f"/datasets/{name}?{urlencode(said)}")
    parts += [
        asking("Try it on made-up data first", quiet=True, dummy="yes"),
        element("p", change),
    ]
    return layout.respond("Your plan", *parts, session=session)


@router.post("/requests")
def ask(fields: SubmittedForm, visit: CurrentVisit) -> Response:
    """Keep a request; a form that is sent twice is one request."""
    asked = questions.ask_plainly(fields.get("dataset", ""), fields)
    asked["dummy"] = fields.get("dummy", "") == "yes"
    row = visit.service.submit(visit.actor, Question.read(asked), fields.get("key", ""))
    return layout.redirect(f"/requests/{row.id}")


@router.get("/requests")
def requests(visit: CurrentVisit, skip: layout.Skip = 0) -> HTMLResponse:
    """List requests, some to a page."""
    rows = visit.service.requests(visit.actor, most=_ROWS + 1, skip=skip)
    title = "My requests" if visit.actor.role == "analyst" else "Requests"
    part = _rows(rows[:_ROWS], visit.service) if rows else element("p", "There is none.")
    turn = layout.turn_pages("/requests", skip, _ROWS, more=len(rows) > _ROWS)
    return layout.respond(title, part, turn, session=visit.session, here="/requests")


@router.get("/requests/{name}")
def show(name: RequestName, visit: CurrentVisit) -> HTMLResponse:
    """Show a request; the page looks again by itself when the answer is due."""
    actor, service, session = visit.actor, visit.service, visit.session
    row, moment = service.show(actor, name), service.clock()
    state, is_own = row.shown(moment), row.analyst == actor.name
    again = [" ", layout.link("What to expect", questions.plan_path(row.asked))] * is_own
    facts = [
        ("State", state_words(state)),
        ("Data set", row.dataset + (" (made-up data)" if row.dummy else "")),
        ("Cost", "nothing" if row.dummy else str(row.cost)),
        ("Question", questions.question_text(row.asked)),
        ("Asked", layout.clock_text(time_text(row.submitted))),
        ("Plan", join(element("code", row.plan), *again)),
    ]
    if row.asked.purpose:
        facts.append(("Purpose", row.asked.purpose))
    parts: list[str] = [layout.facts("The request", facts)]
    refresh = 0.0
    if state == "queued":
        left = (row.due - moment) / 1000 if moment < row.due else service.tick
        refresh = max(left + 0.5, 1)
        due = layout.clock_text(time_text(row.due))
        words = "whatever it takes. This page looks again by itself."
        parts.append(layout.promise(f"The answer appears at {due}, {words}"))
    elif state == "done":
        read = layout.link("Read the release", f"/releases/{row.id}")
        data = layout.link("as JSON", f"/releases/{row.id}.json")
        parts.append(layout.promise(read, " or take it ", data, "."))
        if row.dummy and is_own and actor.may_change:
            press = layout.button("Now ask the real data, and spend the budget")
            key = secrets.token_hex(16)
            parts.append(layout.form(f"/requests/{row.id}/real", session, press, key=key))
    elif row.reason:
        parts.append(layout.promise(f"{row.reason}."))
    early = state == "waiting" or (state == "queued" and moment < row.start)
    if early and actor.may_change and (is_own or actor.role == "curator"):
        press = layout.button("Cancel it", quiet=True)
        parts.append(layout.form(f"/requests/{row.id}/cancel", session, press))
    return layout.respond("A request", *parts, session=session, refresh=refresh)


@router.post("/requests/{name}/real")
def ask_real_data(name: RequestName, fields: SubmittedForm, visit: CurrentVisit) -> Response:
    """Ask the real data what was asked of made-up data."""
    asked = replace(visit.service.show(visit.actor, name).asked, dummy=False)
    row = visit.service.submit(visit.actor, asked, fields.get("key", ""))
    return layout.redirect(f"/requests/{row.id}")


@router.get("/releases/{name}.json")
def release_json(name: RequestName, visit: CurrentVisit) -> Response:
    """Hand out a release as data."""
    return ReleaseJson(visit.service.release(visit.actor, name))


@router.get("/releases/{name}")
def release(name: RequestName, visit: CurrentVisit) -> Response:
    """Show a release: the page that every release has."""
    return release_page(visit.service.release(visit.actor, name))


def _rows(rows: list[RequestRow], service: Service) -> Markup:
    """Return requests as a table, each with a link to its own page."""
    moment = service.clock()
    lines = [
        (
            layout.link(layout.clock_text(time_text(row.submitted))[:16], f"/requests/{row.id}",
                        class_="time"),
            row.dataset + (" (made-up)" if row.dummy else ""), row.analyst,
            "0" if row.dummy else row.cost.epsilon_text, state_words(row.shown(moment)),
        )
        for row in rows
    ]  # fmt: skip
    return layout.table("Newest first", ("Asked", "Data set", "Analyst", "ε", "State"), lines)


def _card(found: Dataset, balance: Balance) -> Markup:
    typical = found.policy.typical
    parts = [
        element("h2", layout.link(found.name, f"/datasets/{found.name}")),
        element("p", f"{found.size:,} rows. {_protection(found)}."),
        layout.budget_bar(balance),
    ]
    if found.closed:
        parts.append(layout.warning("Closed."))
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
