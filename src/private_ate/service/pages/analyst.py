"""The analyst's pages: catalogue, plan, ask, wait, read."""

from __future__ import annotations

import secrets
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import HTMLResponse, Response

from private_ate.privacy.levels import has_public_covariates
from private_ate.report.markup import Markup, element, join
from private_ate.service.desk import Balance, Desk
from private_ate.service.pages.doors import Filled, Here, to
from private_ate.service.pages.frame import (
    button,
    clock_text,
    form,
    may_change,
    respond,
    show_table,
    turn_pages,
)
from private_ate.service.pages.questions import (
    FIELDS,
    ask_plainly,
    question_form,
    question_text,
    read_number,
)
from private_ate.service.policy import Policy
from private_ate.service.question import Question
from private_ate.service.store.catalogue import Dataset
from private_ate.service.store.requests import RequestRow
from private_ate.service.web.api import plan_out, release_page, time_text
from private_ate.service.web.identity import desk_of
from private_ate.service.web.models import PlanOut

__all__ = ["budget_bar", "request_rows", "router"]

router = APIRouter(include_in_schema=False)
At = Annotated[Desk, Depends(desk_of)]
DatasetName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
RequestName = Annotated[str, Path(pattern=r"^r[0-9a-f]{31}$")]
Skip = Annotated[int, Query(ge=0, le=10**9)]
_ROWS: Final = 50  # on a page

STATES: Final = {
    "waiting": "waits for a curator",
    "approved": "approved",
    "queued": "under way",
    "done": "answered",
    "lost": "lost",
    "refused": "refused",
    "cancelled": "cancelled",
}


@router.get("/")
def catalogue(session: Here, desk: At) -> HTMLResponse:
    """Show the data sets with their budgets."""
    cards = [_card(found, balance) for found, balance in desk.datasets()]
    words = "Ask by plan: you see what to expect and what it costs before anything is spent."
    empty = element("p", "There is no data set yet.")
    return respond("Data sets", element("p", words), *(cards or [empty]), session=session, here="/")


@router.get("/datasets/{name}")
def dataset(name: DatasetName, request: Request, session: Here, desk: At) -> HTMLResponse:
    """Describe a data set, and let an analyst plan a question."""
    found, balance = desk.dataset(name)
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
        budget_bar(found.population, balance),
        show_table("What is public about it", ("Fact", "Value"), facts),
        element("p", element("a", "Made-up people to test a script with (CSV)",
                             href=f"/datasets/{name}/dummy.csv")),
        element("details", element("summary", "The declared domain"),
                element("pre", element("code", domain.to_toml()))),
    ]  # fmt: skip
    if found.closed:
        parts.append(element("p", "This data set is closed: it takes no more requests.",
                             class_="warning"))  # fmt: skip
    elif session.actor.role == "analyst" and may_change(session.actor):
        before = {key: text[:500] for key, text in request.query_params.items() if key in FIELDS}
        parts += [element("h2", "Plan a question"), question_form(found, session, before)]
    return respond(f"Data set {name}", *parts, session=session)


@router.get("/datasets/{name}/dummy.csv")
def dummy(name: DatasetName, session: Here, desk: At) -> Response:
    """Hand out made-up people."""
    from private_ate.datasets.dummy import draw_dummy

    _ = session
    found, _balance = desk.dataset(name)
    return Response(draw_dummy(found.domain).frame.write_csv(), media_type="text/csv")


@router.post("/datasets/{name}/plan")
def plan(name: DatasetName, fields: Filled, session: Here, desk: At) -> HTMLResponse:
    """Show what to expect of a question, with the button that asks it."""
    session.actor.require("analyst")
    asked = ask_plainly(name, fields)
    wanted = read_number("half-width", fields.get("half_width", ""))
    told = plan_out(session.actor, desk, Question.read(asked), wanted)
    parts: list[str] = [_expected(told), _price(told)]
    if not told.automatic:
        why = "; ".join(told.objections)
        parts.append(element("p", f"A curator will look at it first: {why}.", class_="promise"))
    hidden = {key: str(value) for key, value in fields.items() if key in FIELDS}
    before = urlencode({key: text for key, text in hidden.items() if text and key in FIELDS})
    hidden |= {"dataset": name, "key": secrets.token_hex(16)}
    parts += [
        form("/requests", session, button("Ask, and spend this budget"), **hidden),
        form("/requests", session, button("Try it on made-up people first", quiet=True),
             **{**hidden, "dummy": "yes", "key": secrets.token_hex(16)}),
        element("p", element("a", "Change the question", href=f"/datasets/{name}?{before}")),
    ]  # fmt: skip
    return respond("Your plan", *parts, session=session)


@router.post("/requests")
def ask(fields: Filled, session: Here, desk: At) -> Response:
    """Keep a request; a form that is sent twice is one request."""
    asked = ask_plainly(fields.get("dataset", ""), fields)
    asked["dummy"] = fields.get("dummy", "") == "yes"
    row = desk.submit(session.actor, Question.read(asked), fields.get("key", ""))
    return to(f"/requests/{row.id}")


@router.get("/requests")
def requests(session: Here, desk: At, skip: Skip = 0) -> HTMLResponse:
    """List requests, some to a page."""
    rows = desk.requests(session.actor, most=_ROWS + 1, skip=skip)
    title = "My requests" if session.actor.role == "analyst" else "Requests"
    part = request_rows(rows[:_ROWS], desk) if rows else element("p", "There is none.")
    turn = turn_pages("/requests", skip, _ROWS, more=len(rows) > _ROWS)
    return respond(title, part, turn, session=session, here="/requests")


@router.get("/requests/{name}")
def show(name: RequestName, session: Here, desk: At) -> HTMLResponse:
    """Show a request; the page looks again by itself when the answer is due."""
    row = desk.show(session.actor, name)
    moment = desk.clock()
    state = row.shown(moment)
    facts = [
        ("State", STATES.get(state, state)),
        ("Data set", row.dataset + (" (made-up people)" if row.dummy else "")),
        ("Cost", "nothing" if row.dummy else str(row.cost)),
        ("Question", question_text(row.asked)),
        ("Asked", clock_text(time_text(row.submitted))),
        ("Plan", element("code", row.plan)),
    ]
    parts: list[str] = [show_table("The request", ("Fact", "Value"), facts)]
    refresh = 0.0
    if state == "queued":
        left = (row.due - moment) / 1000 if moment < row.due else desk.tick
        refresh = max(left + 0.5, 1)
        due = clock_text(time_text(row.due))
        parts.append(element("p", f"The answer appears at {due}, whatever it takes. "
                             "This page looks again by itself.", class_="promise"))  # fmt: skip
    elif state == "done":
        read = element("a", "Read the release", href=f"/releases/{row.id}")
        data = element("a", "as JSON", href=f"/releases/{row.id}.json")
        parts.append(element("p", read, " or take it ", data, ".", class_="promise"))
    elif row.reason:
        parts.append(element("p", f"{row.reason}.", class_="promise"))
    own = row.analyst == session.actor.name or session.actor.role == "curator"
    early = state == "waiting" or (state == "queued" and moment < row.start)
    if own and early and may_change(session.actor):
        parts.append(form(f"/requests/{row.id}/cancel", session, button("Cancel it", quiet=True)))
    return respond("A request", *parts, session=session, refresh=refresh)


@router.post("/requests/{name}/cancel")
def cancel(name: RequestName, fields: Filled, session: Here, desk: At) -> Response:
    """Cancel a request that has not started."""
    _ = fields
    desk.cancel(session.actor, name)
    return to(f"/requests/{name}")


@router.get("/releases/{name}.json")
def release_json(name: RequestName, session: Here, desk: At) -> Response:
    """Hand out a release as data."""
    return Response(desk.release(session.actor, name), media_type="application/json")


@router.get("/releases/{name}")
def release(name: RequestName, session: Here, desk: At) -> Response:
    """Show a release: the page that every release has."""
    return release_page(desk.release(session.actor, name))


def budget_bar(population: str, balance: Balance) -> Markup:
    """Return a population's budget as a bar with its words."""
    total, left = balance.total, balance.left
    words = f"Budget of {population}: ε = {left.epsilon_text} left of {total.epsilon_text}"
    bar = element(
        "meter", words, min="0", max=str(total.epsilon), value=str(max(left.epsilon, 0)),
        aria_label=words,
    )  # fmt: skip
    return element("div", element("p", words), bar)


def request_rows(rows: list[RequestRow], desk: Desk) -> Markup:
    """Return requests as a table, each with a link to its own page."""
    moment = desk.clock()
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
            STATES.get(row.shown(moment), row.shown(moment)),
        )
        for row in rows
    ]
    return show_table("Newest first", ("Asked", "Data set", "Analyst", "ε", "State"), lines)


def _card(found: Dataset, balance: Balance) -> Markup:
    typical = found.policy.epsilon_per_request
    parts = [
        element("h2", element("a", found.name, href=f"/datasets/{found.name}")),
        element("p", f"{found.size:,} rows. {_protection(found)}."),
        budget_bar(found.population, balance),
    ]
    if found.closed:
        parts.append(element("p", "Closed.", class_="warning"))
    elif typical != "0":
        count = balance.answers(typical)
        parts.append(element("p", f"Enough for {count} more answers at ε = {typical}."))
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


def _expected(told: PlanOut) -> Markup:
    row = told.expected
    if row is None:
        return element("p", told.caveat)
    facts = [
        ("Half-width of the interval", f"{row.half_width:.3g}"),
        ("Expected error", f"{row.error:.3g}"),
        ("… of which privacy noise", f"{row.noise_error:.3g}"),
        ("Smallest effect that would show", f"{row.detectable_effect:.3g}"),
        ("Adjusted for covariates", "yes" if row.adjusted else "no"),
    ]
    table = show_table("What to expect, in units of the outcome", ("Number", "Value"), facts)
    if told.contrasts:
        rows = [
            (f"{each.arm} against {each.against}", f"{each.half_width:.3g}", f"{each.error:.3g}")
            for each in told.contrasts
        ]
        table = show_table(
            "What to expect of each contrast, in units of the outcome",
            ("Contrast", "Half-width", "Expected error"), rows,
        )  # fmt: skip
    answer = [element("p", _sentence(told), class_="promise")] if told.answer else []
    return join(*answer, table, element("p", f"It {told.caveat}.", class_="soft"))


def _sentence(told: PlanOut) -> str:
    words = f"{told.answer[0].upper()}{told.answer[1:]}"
    if told.epsilon_needed:
        more = int(float(told.budget.left) / told.epsilon_needed + 1e-9)
        return f"{words}; the budget then allows {more} such answers."
    return f"{words}."


def _price(told: PlanOut) -> Markup:
    return element(
        "p",
        f"It costs ε = {told.epsilon}"
        + (f", δ = {told.delta}" if told.delta != "0" else "")
        + f"; {told.budget.left} is left of {told.budget.epsilon}, enough for "
        f"{told.answers_left} such answers. A repeat shows the same release and costs nothing.",
    )
