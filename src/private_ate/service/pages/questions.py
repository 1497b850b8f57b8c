"""The analyst's question: its form, how it is read back and worded, and the page of its plan."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from private_ate.domain import Categories, Domain, Interval, label_text
from private_ate.errors import ArgumentError, DomainError, PrivateAteError
from private_ate.methods.composition import takes
from private_ate.methods.registry import AUTO, METHODS
from private_ate.report.markup import Markup, element, join
from private_ate.service.pages.layout import (
    button,
    checkbox,
    choice,
    field,
    form,
    query_form,
    respond,
    show_table,
)
from private_ate.service.pages.sessions import CurrentSession
from private_ate.service.question import LONGEST_PURPOSE, Question
from private_ate.service.store.catalogue import Dataset
from private_ate.service.web.api import plan_out
from private_ate.service.web.authentication import CurrentService
from private_ate.service.web.models import DatasetName, PlanOut

__all__ = [
    "FIELDS",
    "ask_plainly",
    "field_of",
    "plan_path",
    "question_form",
    "question_text",
    "router",
    "sentence_of",
]

_ESTIMANDS: Final = (
    ("ate", "ATE: everybody"), ("att", "ATT: the treated"), ("atc", "ATC: the untreated"),
    ("ato", "ATO: where arms overlap"),
)  # fmt: skip
_DESIGNS: Final = (
    ("unknown", "I do not say"), ("observational", "observational"), ("randomized", "randomised"),
)  # fmt: skip
_MORE: Final = frozenset({"by", "overall", "probability", "covariates", "outcome_sd"})
FIELDS: Final = _MORE | {"epsilon", "half_width", "estimand", "among", "design", "confidence",
                          "method", "purpose"}  # fmt: skip
# Fields that are written in words or numbers; an error about another stands above the form.
_WRITTEN: Final = FIELDS - {"estimand", "among", "design", "method", "overall"}
router = APIRouter(include_in_schema=False)


def field_of(error: PrivateAteError, fields: Collection[str] = FIELDS) -> str:
    """Return the field that an error is about: the one it names, or the first in its sentence."""
    named = [error.parameter, *re.findall(r"\w+", str(error))]
    return next((word for word in named if word in fields), "")


def question_form(
    found: Dataset, before: Mapping[str, str], error: PrivateAteError | None = None
) -> Markup:
    """Return the form of a question, filled in as it was ``before``; an error is at its field."""
    wrong = "" if error is None else field_of(error)
    sentence = "" if error is None else sentence_of(error)

    def entry(name: str, label: str, hint: str, value: str, **attributes: str) -> Markup:
        said = sentence if name == wrong else ""
        return field(name, label, hint, before.get(name, value), error=said, **attributes)

    typical = found.policy.epsilon_per_request
    arms = found.domain.treatment
    whose = choice("estimand", "Whose effect", _ESTIMANDS, chosen=before.get("estimand", ""))
    if arms.size > 2:
        labels = (("", "everybody"), *((arm, arm) for arm in arms.labels))
        whose = choice("among", "Whose effect", labels, chosen=before.get("among", ""))
    more = {"open": "open"} if set(before) & _MORE or wrong in _MORE else {}
    heading = []
    if sentence and wrong not in _WRITTEN:
        heading.append(element("p", sentence, class_="warning", role="alert"))
    return query_form(
        f"/datasets/{found.name}/plan",
        *heading,
        entry("epsilon", "ε of the answer", "What it may cost, for example 0.3.",
              "0.1" if typical == "0" else typical, required="required", inputmode="decimal"),
        entry("half_width", "Wanted half-width of the interval",
              "Optional: the plan then says which ε it takes, in units of the outcome.", "",
              inputmode="decimal"),
        whose,
        choice("design", "How treatment was given", _DESIGNS, chosen=before.get("design", "")),
        entry("purpose", "Purpose", "Optional: what the answer is for. Curators read it, and it "
              "stays in the history.", "", maxlength=str(LONGEST_PURPOSE)),
        element("details", element("summary", "More choices"),
                *_more_choices(found, before, entry), **more),
        button("Show the plan"),
    )  # fmt: skip


def question_text(asked: Question) -> str:
    """Word a question in a line: what differs from the usual."""
    parts = [asked.estimand.upper() if asked.among is None else f"among {asked.among}"]
    parts += [f"method {asked.method}"] * (asked.method != "auto")
    parts += [f"subgroups by {', '.join(asked.by)}"] * bool(asked.by)
    parts += ["and everybody for half of ε"] * asked.overall
    parts += [f"{asked.design} design"] * (asked.design != "unknown")
    parts += [f"probability {asked.probability}"] * (asked.probability is not None)
    parts += [f"adjusted for {', '.join(asked.covariates or ())}"] * bool(asked.covariates)
    parts += ["no interval"] * (asked.confidence is None)
    parts += [f"outcome's standard deviation {asked.outcome_sd}"] * bool(asked.outcome_sd)
    return ", ".join(parts)


def ask_plainly(name: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Read a form as the plain values of a question."""
    probability = fields.get("probability", "")
    confidence = fields.get("confidence", "0.95")
    return {
        "dataset": name, "epsilon": fields.get("epsilon", ""),
        "estimand": fields.get("estimand", "ate"), "design": fields.get("design", "unknown"),
        "among": fields.get("among") or None, "method": fields.get("method") or "auto",
        "by": _list(fields.get("by", "")), "overall": fields.get("overall", "") == "yes",
        "probability": read_number("", probability)
        if _is_number(probability)
        else probability or None,
        "covariates": _list(fields.get("covariates", "")) or None,
        "confidence": None if confidence in ("", "none") else read_number("confidence", confidence),
        "outcome_sd": read_number("outcome_sd", fields.get("outcome_sd", "")),
        "purpose": fields.get("purpose", ""),
    }  # fmt: skip


def question_fields(asked: Question) -> dict[str, str]:
    """Return the fields of a form that ask this question again, without those at their defaults.

    Options of a method, a target and a number of neighbours have no field.
    """
    values = {
        "epsilon": asked.epsilon, "estimand": asked.estimand, "design": asked.design,
        "among": asked.among, "method": asked.method, "by": ", ".join(asked.by),
        "overall": "yes" if asked.overall else "", "probability": asked.probability,
        "covariates": ", ".join(asked.covariates or ()), "outcome_sd": asked.outcome_sd,
        "confidence": "none" if asked.confidence is None else asked.confidence,
        "purpose": asked.purpose,
    }  # fmt: skip
    usual = {"estimand": "ate", "design": "unknown", "method": "auto", "confidence": 0.95}
    return {
        name: str(value)
        for name, value in values.items()
        if value not in (None, "") and value != usual.get(name)
    }


def read_number(name: str, text: str) -> float | None:
    """Read a number with a point or a comma; nothing is None."""
    if not text:
        return None
    try:
        return float(text.replace(",", "."))
    except ValueError as cause:
        msg = f"{name} is a number such as 1.5"
        raise ArgumentError(msg, parameter=name) from cause


def _more_choices(
    found: Dataset, before: Mapping[str, str], entry: Callable[..., Markup]
) -> list[Markup]:
    """Return what most questions leave as it is."""
    domain = found.domain
    able = [name for name, method in METHODS.items() if found.level in method.levels]
    known = ", ".join(domain.covariates)
    parts = []
    if any(takes(name, found.level, "subgroups") for name in AUTO[found.level]):
        parts += [
            entry("by", "Subgroups", "Columns of labels, and numbers with a cut, with commas: "
                  f"{_example(domain)}. Each has an effect of its own.", ""),
            checkbox("overall", "Pay half of ε for the effect of everybody beside subgroups",
                     checked="overall" in before),
        ]  # fmt: skip
    if domain.treatment.size == 2:
        parts.append(entry("probability", "Probability of treatment in a trial",
                           "A number such as 0.5, or the column that holds everybody's; only for "
                           "a randomised design.", ""))  # fmt: skip
    return [
        *parts,
        entry("covariates", "Covariates to adjust for", f"With commas; empty for all: {known}.",
              ""),
        entry("outcome_sd", "Standard deviation of the outcome among persons treated alike",
              "A public guess, in units of the outcome; empty if you have none.", "",
              inputmode="decimal"),
        entry("confidence", "Confidence of the interval",
              "0.95, for example; none for no interval.", "0.95"),
        choice("method", "Method", (("auto", "auto: the recommended one"),
                                    *((name, name) for name in able)),
               chosen=before.get("method", "")),
    ]  # fmt: skip


def sentence_of(error: PrivateAteError) -> str:
    """Return what an error says as a sentence."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."


def _example(domain: Domain) -> str:
    """Return subgroups that the domain allows, as an example."""
    for name, kind in domain.covariates.items():
        if isinstance(kind, Categories) or kind.is_binary:
            return name
    name, kind = next(iter(domain.covariates.items()))
    return f"{name}<{cast('Interval', kind).middle:g}"


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_number(text: str) -> bool:
    return text[:1] in "0123456789.," and bool(text)


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
        planned = plan_out(session.actor, service, asked, wanted)
    except (ArgumentError, DomainError) as error:
        found, _ = service.dataset(name)
        return respond(
            f"Data set {name}", element("h2", "Plan a question"),
            question_form(found, fields, error), session=session, status=400,
        )  # fmt: skip
    written = {key: text for key, text in fields.items() if text}
    hidden = {**written, "dataset": name}
    found, _ = service.dataset(name)
    question = f"{_compared(found.domain)}: {question_text(asked)}."
    parts: list[str] = [element("p", question), _expected(planned), _price(planned)]
    if service.file_problems().get(name):
        words = (
            "The data set's file is not as declared; curators see what is wrong. Until it is "
            "repaired, only made-up data can be asked."
        )
        parts.append(element("p", words, class_="warning", role="alert"))
    elif not planned.affordable:
        words = (
            f"It costs more than is left of the budget: ε = {planned.budget.left}. Ask for less, "
            "or ask made-up data, which costs nothing."
        )
        parts.append(element("p", words, class_="warning", role="alert"))
    else:
        if not planned.automatic:
            why = "; ".join(planned.objections)
            parts.append(element("p", f"A curator will look at it first: {why}.", class_="promise"))
        parts.append(form("/requests", session, button("Ask, and spend this budget"), **hidden,
                          key=secrets.token_hex(16)))  # fmt: skip
    parts += [
        form("/requests", session, button("Try it on made-up data first", quiet=True), **hidden,
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


def _expected(planned: PlanOut) -> Markup:
    row = planned.expected
    if row is None:
        return element("p", planned.caveat)
    facts = [
        ("Half-width of the interval", f"{row.half_width:.3g}"),
        ("Expected error", f"{row.error:.3g}"),
        ("… of which privacy noise", f"{row.noise_error:.3g}"),
        ("Smallest effect that would show", f"{row.detectable_effect:.3g}"),
        ("Adjusted for covariates", "yes" if row.adjusted else "no"),
    ]
    table = show_table("What to expect, in units of the outcome", ("Number", "Value"), facts)
    if planned.contrasts:
        rows = [
            (f"{each.arm} against {each.against}", f"{each.half_width:.3g}", f"{each.error:.3g}")
            for each in planned.contrasts
        ]
        table = show_table(
            "What to expect of each contrast, in units of the outcome",
            ("Contrast", "Half-width", "Expected error"), rows,
        )  # fmt: skip
    answer = [element("p", _sentence(planned), class_="promise")] if planned.answer else []
    return join(*answer, table, element("p", f"It {planned.caveat}.", class_="soft"))


def _sentence(planned: PlanOut) -> str:
    words = f"{planned.answer[0].upper()}{planned.answer[1:]}"
    if planned.epsilon_needed:
        more = int(float(planned.budget.left) / planned.epsilon_needed + 1e-9)
        return f"{words}; the budget then allows {more} such answers."
    return f"{words}."


def _price(planned: PlanOut) -> Markup:
    return element(
        "p",
        f"It costs ε = {planned.epsilon}"
        + (f", δ = {planned.delta}" if planned.delta != "0" else "")
        + f"; {planned.budget.left} is left of {planned.budget.epsilon}, enough for "
        f"{planned.answers_left} such answers. A repeat shows the same release and costs nothing.",
    )
