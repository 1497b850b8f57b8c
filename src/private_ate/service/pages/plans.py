"""The page of a plan: what to expect of a question, and its price; the question is its address."""

from __future__ import annotations

import secrets
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import HTMLResponse

from private_ate.domain import Domain, label_text
from private_ate.errors import ArgumentError, DomainError
from private_ate.report.markup import Markup, element, join
from private_ate.service.desk import Desk
from private_ate.service.pages.doors import Here
from private_ate.service.pages.frame import button, form, respond, show_table
from private_ate.service.pages.questions import (
    FIELDS,
    ask_plainly,
    question_fields,
    question_form,
    question_text,
    read_number,
)
from private_ate.service.question import Question
from private_ate.service.web.api import plan_out
from private_ate.service.web.identity import desk_of
from private_ate.service.web.models import PlanOut

__all__ = ["plan_path", "router"]

router = APIRouter(include_in_schema=False)
At = Annotated[Desk, Depends(desk_of)]
DatasetName = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


@router.get("/datasets/{name}/plan")
def plan(name: DatasetName, request: Request, session: Here, desk: At) -> HTMLResponse:
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
        told = plan_out(session.actor, desk, asked, wanted)
    except (ArgumentError, DomainError) as error:
        found, _ = desk.dataset(name)
        return respond(
            f"Data set {name}", element("h2", "Plan a question"),
            question_form(found, fields, error), session=session, status=400,
        )  # fmt: skip
    written = {key: text for key, text in fields.items() if text}
    hidden = {**written, "dataset": name}
    found, _ = desk.dataset(name)
    question = f"{_compared(found.domain)}: {question_text(asked)}."
    parts: list[str] = [element("p", question), _expected(told), _price(told)]
    if desk.looks().get(name):
        words = (
            "The data set's file is not as declared; curators see what is wrong. Until it is "
            "repaired, made-up people alone can be asked."
        )
        parts.append(element("p", words, class_="warning", role="alert"))
    elif not told.affordable:
        words = (
            f"It costs more than is left of the budget: ε = {told.budget.left}. Ask for less, or "
            "ask made-up people, who cost nothing."
        )
        parts.append(element("p", words, class_="warning", role="alert"))
    else:
        if not told.automatic:
            why = "; ".join(told.objections)
            parts.append(element("p", f"A curator will look at it first: {why}.", class_="promise"))
        parts.append(form("/requests", session, button("Ask, and spend this budget"), **hidden,
                          key=secrets.token_hex(16)))  # fmt: skip
    parts += [
        form("/requests", session, button("Try it on made-up people first", quiet=True), **hidden,
             dummy="yes", key=secrets.token_hex(16)),
        element("p", element("a", "Change the question",
                             href=f"/datasets/{name}?{urlencode(written)}")),
    ]  # fmt: skip
    return respond("Your plan", *parts, session=session)


def plan_path(asked: Question) -> str:
    """Return the address of a question's plan."""
    return f"/datasets/{asked.dataset}/plan?{urlencode(question_fields(asked))}"


def _compared(domain: Domain) -> str:
    """Say which arms are compared, and on what."""
    treatment = domain.treatment
    outcomes = ", ".join(outcome.column for outcome in domain.outcomes)
    if treatment.size > 2:
        return f"Effects of {treatment.column} ({', '.join(treatment.labels)}) on {outcomes}"
    treated, control = label_text(treatment.treated), label_text(treatment.control)
    return f"Effect of {treatment.column}, {treated} against {control}, on {outcomes}"


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
