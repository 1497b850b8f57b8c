"""The page of a data set's policy: what is approved by itself, as a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from private_ate.domain.column_types import parse_number
from private_ate.methods.registry import METHODS
from private_ate.report.markup import Markup, element
from private_ate.service.pages.layout import (
    button,
    checkbox,
    field,
    form,
    may_change,
    read_whole,
    redirect,
    respond,
    show_table,
)
from private_ate.service.pages.sessions import CurrentSession, SubmittedForm
from private_ate.service.policy import Policy, judged_estimands
from private_ate.service.store.catalogue import Dataset, proposed_policy, set_policy
from private_ate.service.store.users import Session
from private_ate.service.web.authentication import CurrentService
from private_ate.service.web.models import DatasetName

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_SWITCHES = ("automatic", "needs_interval", "two_persons")
_LISTS = ("methods", "estimands", "outcomes", "subgroups")
_AMOUNTS = ("epsilon_per_request", "epsilon_per_month", "epsilon_at_least")
_NUMBERS = (*_AMOUNTS, "requests_per_day", "confidence_at_least")


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
    changes = session.actor.role == "curator" and may_change(session.actor) and service.manages
    parts = [_policy_form(found, session) if changes else _policy_table(found.policy)]
    with service.store.snapshot() as execute:
        proposed = proposed_policy(execute, name)
    if proposed is not None:
        who = f"{proposed[0]} proposes another policy. A second person confirms it."
        parts += [element("h2", "Proposed"), element("p", who), _policy_table(proposed[1])]
        if changes:
            parts.append(
                form(
                    f"/datasets/{name}/policy", session, button("Confirm this policy"),
                    **_hidden(proposed[1]),
                )
            )  # fmt: skip
    return respond(f"Policy of {name}", element("p", words), *parts, session=session)


@router.post("/datasets/{name}/policy")
def replace_policy(
    name: DatasetName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Replace a policy."""
    session.actor.require("curator", write=True)
    service.require_management()
    new = Policy.read(_plain(fields))
    with service.store.transaction() as execute:
        is_held = set_policy(execute, name, new, session.actor.name)
    return redirect("/manage" if is_held else f"/datasets/{name}/policy")


def _policy_form(found: Dataset, session: Session) -> Markup:
    held, columns = found.policy, ", ".join(found.domain.covariates)
    return form(
        f"/datasets/{found.name}/policy", session,
        checkbox("automatic", "Approve within the limits below", checked=held.automatic),
        field("epsilon_per_request", "Most ε of one request", value=held.epsilon_per_request,
              inputmode="decimal", required="required"),
        field("epsilon_per_month", "Most ε of one analyst in thirty days",
              "Of all data sets about the same persons.", held.epsilon_per_month,
              inputmode="decimal", required="required"),
        field("epsilon_at_least", "Least ε of one request", value=held.epsilon_at_least,
              inputmode="decimal", required="required"),
        field("requests_per_day", "Requests of one analyst in 24 hours",
              "To all data sets about the same persons.", str(held.requests_per_day),
              inputmode="numeric", required="required"),
        field("methods", "Methods", f"With commas, of {', '.join(METHODS)}.",
              ", ".join(held.methods)),
        field("estimands", "Estimands", f"With commas, of {', '.join(judged_estimands())}.",
              ", ".join(held.estimands)),
        field("outcomes", "Outcomes", "With commas; all for every one that is declared.",
              _listed(held.outcomes)),
        field("subgroups", "Columns that units may be divided by",
              f"With commas, of {columns}; all for every one, empty for none.",
              _listed(held.subgroups)),
        checkbox("needs_interval", "Only with a confidence interval", checked=held.needs_interval),
        field("confidence_at_least", "Least confidence of an interval",
              value=f"{held.confidence_at_least:g}", inputmode="decimal", required="required"),
        checkbox("two_persons", "Two curators approve what waits", checked=held.two_persons),
        button("Replace the policy"),
    )  # fmt: skip


def _policy_table(held: Policy) -> Markup:
    rows = []
    for name, value in held.plain.items():
        text = {True: "yes", False: "no", None: "all"}.get(value) if _is_word(value) else value
        shown = ", ".join(text) if isinstance(text, list) else str(text)
        rows.append((name.replace("_", " "), shown or "none"))
    return show_table("What is approved at once", ("Limit", "Value"), rows)


def _is_word(value: object) -> bool:
    return value is None or isinstance(value, bool)


def _hidden(held: Policy) -> dict[str, str]:
    """Return a policy as the fields of the form that would say it."""
    return {
        **{name: "yes" for name in _SWITCHES if getattr(held, name)},
        **{name: _listed(getattr(held, name)) for name in _LISTS},
        **{name: str(getattr(held, name)) for name in _NUMBERS},
    }


def _listed(names: tuple[str, ...] | None) -> str:
    return "all" if names is None else ", ".join(names)


def _plain(fields: Mapping[str, str]) -> dict[str, Any]:
    """Read the form as the values of a policy."""
    plain: dict[str, Any] = {name: fields.get(name, "") == "yes" for name in _SWITCHES}
    for name in _LISTS:
        text = fields.get(name, "")
        parts = [part.strip() for part in text.split(",") if part.strip()]
        open_list = name in ("outcomes", "subgroups") and parts == ["all"]
        plain[name] = None if open_list else parts
    for name in _AMOUNTS:
        plain[name] = fields.get(name, "")
    plain["requests_per_day"] = read_whole(fields, "requests_per_day")
    plain["confidence_at_least"] = parse_number(fields.get("confidence_at_least", ""))
    return plain
