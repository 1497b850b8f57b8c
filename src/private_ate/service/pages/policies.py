"""The page of a data set's policy: what is approved by itself, as a form."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse, Response

from private_ate.domain.column_types import parse_number
from private_ate.methods.registry import METHODS
from private_ate.report.markup import Markup, element
from private_ate.service.operations import Service
from private_ate.service.pages.layout import (
    Field,
    button,
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
)
from private_ate.service.policy import Policy, judged_estimands
from private_ate.service.web.authentication import CurrentSession, SubmittedForm, service_of
from private_ate.service.web.models import DatasetName

router = APIRouter(include_in_schema=False)
CurrentService = Annotated[Service, Depends(service_of)]
_SAME: Final = "all data sets about the same persons."
_DECIMAL: Final = {"inputmode": "decimal", "required": "required"}
_WHOLE: Final = {"inputmode": "numeric", "required": "required"}


def _read_amount(_: str, text: str) -> str:
    return text


_FIELDS: Final = (
    Field("automatic", "Approve within the limits below", read=read_switch),
    Field("epsilon_per_request", "Most ε of one request", read=_read_amount, attributes=_DECIMAL),
    Field("epsilon_per_month", "Most ε of one analyst in thirty days", f"Of {_SAME}",
          read=_read_amount, attributes=_DECIMAL),
    Field("epsilon_at_least", "Least ε of one request", read=_read_amount, attributes=_DECIMAL),
    Field("requests_per_day", "Requests of one analyst in 24 hours", f"To {_SAME}",
          read=read_whole, attributes=_WHOLE),
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
    entries = show_fields(_FIELDS, _written(found.policy), covariates=covariates)
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
    is_held = service.set_policy(session.actor, name, Policy.read(read_fields(_FIELDS, fields)))
    return redirect("/manage" if is_held else f"/datasets/{name}/policy")


def _written(held: Policy) -> dict[str, str]:
    """Return a policy as the fields of the form that would say it."""
    return {one.name: one.write(getattr(held, one.name)) for one in _FIELDS}


def _policy_table(held: Policy) -> Markup:
    words = {"yes": "yes", "": "no"}
    rows = []
    for one in _FIELDS:
        text = one.write(getattr(held, one.name))
        shown = words[text] if one.read is read_switch else text or "none"
        rows.append((one.name.replace("_", " "), shown))
    return show_facts("What is approved at once", rows, "Limit")
