"""The curator's page of users: tokens that are issued once, and users who can be revoked."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from private_ate.report.markup import element
from private_ate.service.pages.layout import (
    button,
    choice,
    field,
    form,
    may_change,
    read_whole,
    redirect,
    respond,
    show_table,
)
from private_ate.service.pages.sessions import CurrentSession, SubmittedForm
from private_ate.service.store.events import time_text
from private_ate.service.store.users import (
    Session,
    TokenNote,
    UserNote,
    add_user,
    issue_token,
    list_tokens,
    list_users,
    revoke_token,
)
from private_ate.service.web.authentication import CurrentService
from private_ate.service.web.models import TokenName

__all__ = ["router"]

router = APIRouter(include_in_schema=False)
_ROLES: Final = (("analyst", "analyst"), ("curator", "curator"), ("auditor", "auditor"))
_SCOPES: Final = (("full", "full"), ("read", "read only"))


@router.get("/tokens")
def tokens(session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Show tokens without their secrets."""
    session.actor.require("curator")
    return _tokens(session, service)


@router.post("/tokens")
def issue(fields: SubmittedForm, session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Issue a token and show it once."""
    session.actor.require("curator", write=True)
    owner = fields.get("owner", "")
    with service.store.transaction() as execute:
        moment = service.clock()
        add_user(execute, owner, fields.get("role", ""), session.actor.name, moment)
        made = issue_token(
            execute, owner, session.actor.name, moment, days=read_whole(fields, "days"),
            scope=fields.get("scope", "full"),
        )  # fmt: skip
    return _tokens(session, service, made)


@router.post("/tokens/{name}/revoke")
def revoke(
    name: TokenName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Revoke a token."""
    _ = fields
    session.actor.require("curator", write=True)
    with service.store.transaction() as execute:
        revoke_token(execute, name, session.actor.name, service.clock())
    return redirect("/tokens")


@router.post("/users/revoke")
def dismiss(fields: SubmittedForm, session: CurrentSession, service: CurrentService) -> Response:
    """Revoke somebody with all that has not started."""
    service.revoke(session.actor, fields.get("name", ""))
    return redirect("/tokens")


def _tokens(session: Session, service: CurrentService, made: str = "") -> HTMLResponse:
    with service.store.snapshot() as execute:
        found, users = list_tokens(execute), list_users(execute, service.clock())
    parts: list[str] = []
    if made:
        parts += [
            element("p", "Copy it now; it is not shown again:", class_="promise"),
            element("code", made, class_="token"),
        ]
    parts.append(
        show_table(
            "Tokens", ("Owner", "Role", "Scope", "Until", "Id", "Action"),
            [_token_row(item, session) for item in found],
        )
    )  # fmt: skip
    if may_change(session.actor):
        parts += [
            element("h2", "Issue a token"),
            form(
                "/tokens", session,
                field("owner", "Whose", "A name; all its spellings are one.", required="required"),
                choice("role", "Role", _ROLES), choice("scope", "Scope", _SCOPES),
                field("days", "Days until it ends", value="90", inputmode="numeric"),
                button("Issue it"),
            ),
        ]  # fmt: skip
    parts += [
        element("h2", "Users"),
        show_table(
            "Revoking somebody ends all tokens, sessions, approvals and requests that have not "
            "started, and cannot be undone",
            ("User", "Role", "Valid tokens", "Action"),
            [_user_row(item, session) for item in users],
        ),
    ]
    return respond("Users and tokens", *parts, session=session, here="/tokens")


def _user_row(item: UserNote, session: Session) -> tuple[str, ...]:
    act: str = "revoked" if item.revoked else ""
    if not item.revoked and may_change(session.actor) and item.name != session.actor.name:
        act = form(
            "/users/revoke", session,
            button("Revoke", quiet=True, aria_label=f"Revoke {item.name}"), name=item.name,
        )  # fmt: skip
    return (item.name, item.role, str(item.tokens), act)


def _token_row(item: TokenNote, session: Session) -> tuple[str, ...]:
    act: str = "revoked" if item.revoked else ""
    if not item.revoked and may_change(session.actor):
        act = form(
            f"/tokens/{item.id}/revoke", session,
            button("Revoke", quiet=True, aria_label=f"Revoke token {item.id}"),
        )  # fmt: skip
    return (
        item.owner,
        item.role,
        item.scope,
        time_text(item.expires)[:10],
        element("code", item.id, class_="id"),
        act,
    )
