"""Log in and out; the curator's page of users, whose tokens are issued once and can be revoked."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from private_ate.report.markup import element
from private_ate.service.operations import Service
from private_ate.service.store.users import (
    Token,
    User,
    close_session,
    open_session,
    read_token,
)
from private_ate.service.vocabulary import Session, Unauthorized
from private_ate.service.web.authentication import (
    CurrentSession,
    SubmittedForm,
    UncheckedForm,
    cookie_name,
    require_origin,
    service_of,
    set_cookie,
    settings_of,
)
from private_ate.service.web.layout import (
    Field,
    alert,
    button,
    form,
    promise,
    read_fields,
    read_whole,
    redirect,
    respond,
    show_fields,
    show_table,
)
from private_ate.service.web.models import TokenName

router = APIRouter(include_in_schema=False)
CurrentService = Annotated[Service, Depends(service_of)]
_REQUIRED: Final = {"required": "required"}
_TOKEN: Final = Field(
    "token", "Token", attributes={"type": "password", "autocomplete": "off", **_REQUIRED}
)
_FIELDS: Final = (
    Field("owner", "Whose", "A name; all its spellings are one.", attributes=_REQUIRED),
    Field("role", "Role", options=[(role, role) for role in ("analyst", "curator", "auditor")]),
    Field("scope", "Scope", options=[("full", "full"), ("read", "read only")]),
    Field("days", "Days until it ends", "", "90", read_whole, attributes={"inputmode": "numeric"}),
)


@router.get("/login")
def login_page() -> HTMLResponse:
    """Ask for a token."""
    words = "Paste the token that your curator gave you. It is not kept in the browser."
    entry = form(
        "/login", None,
        _TOKEN.show(""),
        button("Enter"),
    )  # fmt: skip
    return respond("Enter", element("p", words), entry)


@router.post("/login")
def log_in(request: Request, fields: UncheckedForm, service: CurrentService) -> Response:
    """Turn a token into a session."""
    require_origin(request)
    settings = settings_of(request)
    address = request.client.host if request.client else "unknown"
    try:
        with service.store.snapshot() as execute:
            actor = read_token(execute, fields.get("token", ""), service.clock())
    except Unauthorized:
        settings.unauthenticated.take(address)
        words = alert("This token is not valid, or not any more.")
        again = element("p", element("a", "Try again", href="/login"))
        return respond("Enter", words, again, status=401)
    with service.store.transaction() as execute:
        # Whatever the browser held before ends here, whoever put it there.
        close_session(execute, request.cookies.get(cookie_name(request), ""))
        secret = open_session(execute, actor, service.clock())
    response = redirect("/")
    set_cookie(request, response, secret)
    return response


@router.post("/logout")
def log_out(request: Request, fields: SubmittedForm, service: CurrentService) -> Response:
    """End the session."""
    _ = fields
    with service.store.transaction() as execute:
        close_session(execute, request.cookies.get(cookie_name(request), ""))
    response = redirect("/login")
    response.delete_cookie(cookie_name(request), path="/")
    return response


@router.get("/tokens")
def tokens(session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Show tokens without their secrets."""
    return _tokens(session, service)


@router.post("/tokens")
def issue(fields: SubmittedForm, session: CurrentSession, service: CurrentService) -> HTMLResponse:
    """Issue a token and show it once."""
    session.actor.require("curator", write=True)
    said = read_fields(_FIELDS, {"scope": "full", **fields})
    return _tokens(session, service, service.issue_token(session.actor, **said))


@router.post("/tokens/{name}/revoke")
def revoke(
    name: TokenName, fields: SubmittedForm, session: CurrentSession, service: CurrentService
) -> Response:
    """Revoke a token."""
    _ = fields
    service.revoke_token(session.actor, name)
    return redirect("/tokens")


@router.post("/users/revoke")
def dismiss(fields: SubmittedForm, session: CurrentSession, service: CurrentService) -> Response:
    """Revoke somebody with all that has not started."""
    service.revoke(session.actor, fields.get("name", ""))
    return redirect("/tokens")


def _tokens(session: Session, service: CurrentService, made: str = "") -> HTMLResponse:
    found, users = service.tokens(session.actor), service.users(session.actor)
    parts: list[str] = []
    if made:
        parts += [
            promise("Copy it now; it is not shown again:"),
            element("code", made, class_="token"),
        ]
    parts.append(
        show_table(
            "Tokens", ("Owner", "Role", "Scope", "Until", "Id", "Action"),
            [_token_row(item, session) for item in found],
        )
    )  # fmt: skip
    if session.actor.may_change:
        parts += [
            element("h2", "Issue a token"),
            form("/tokens", session, *show_fields(_FIELDS, {}), button("Issue it")),
        ]
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


def _user_row(item: User, session: Session) -> tuple[str, ...]:
    act: str = "revoked" if item.revoked else ""
    if not item.revoked and session.actor.may_change and item.name != session.actor.name:
        act = form(
            "/users/revoke", session,
            button("Revoke", quiet=True, aria_label=f"Revoke {item.name}"), name=item.name,
        )  # fmt: skip
    return (item.name, item.role, str(item.tokens), act)


def _token_row(item: Token, session: Session) -> tuple[str, ...]:
    act: str = "revoked" if item.revoked else ""
    if not item.revoked and session.actor.may_change:
        act = form(
            f"/tokens/{item.id}/revoke", session,
            button("Revoke", quiet=True, aria_label=f"Revoke token {item.id}"),
        )  # fmt: skip
    return (
        item.owner,
        item.role,
        item.scope,
        item.expires[:10],
        element("code", item.id, class_="id"),
        act,
    )
