"""Log in and out; the curator's page of users, whose tokens are issued once and can be revoked."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from private_ate.report.markup import Markup, element
from private_ate.service.store.users import close_session, open_session, read_token
from private_ate.service.vocabulary import Unauthorized
from private_ate.service.web import layout
from private_ate.service.web.authentication import (
    CurrentService,
    CurrentVisit,
    SubmittedForm,
    UncheckedForm,
    Visit,
    cookie_name,
    require_origin,
    set_cookie,
    settings_of,
)
from private_ate.service.web.layout import Field

router = APIRouter(include_in_schema=False)
_TOKEN: Final = Field(
    "token", "Token", attributes={"type": "password", "autocomplete": "off", **layout.REQUIRED}
)
_FIELDS: Final = (
    Field("owner", "Whose", "A name; all its spellings are one.", attributes=layout.REQUIRED),
    Field("role", "Role", options=[(role, role) for role in ("analyst", "curator", "auditor")]),
    Field("scope", "Scope", options=[("full", "full"), ("read", "read only")]),
    Field("days", "Days until it ends", "", "90", layout.read_whole, attributes=layout.WHOLE),
)


@router.get("/login")
def login_page() -> HTMLResponse:
    """Ask for a token."""
    words = "Paste the token that your curator gave you. It is not kept in the browser."
    entry = layout.form("/login", None, _TOKEN.show(""), layout.button("Enter"))
    return layout.respond("Enter", element("p", words), entry)


@router.post("/login")
def log_in(request: Request, fields: UncheckedForm, service: CurrentService) -> Response:
    """Turn a token into a session."""
    require_origin(request)
    address = request.client.host if request.client else "unknown"
    try:
        with service.store.snapshot() as execute:
            actor = read_token(execute, fields.get("token", ""), service.clock())
    except Unauthorized:
        settings_of(request).unauthenticated.take(address)
        words = layout.alert("This token is not valid, or not any more.")
        again = element("p", layout.link("Try again", "/login"))
        return layout.respond("Enter", words, again, status=401)
    with service.store.transaction() as execute:
        # Whatever the browser held before ends here, whoever put it there.
        close_session(execute, request.cookies.get(cookie_name(request), ""))
        secret = open_session(execute, actor, service.clock())
    response = layout.redirect("/")
    set_cookie(request, response, secret)
    return response


@router.post("/logout")
def log_out(request: Request, _: SubmittedForm, service: CurrentService) -> Response:
    """End the session."""
    with service.store.transaction() as execute:
        close_session(execute, request.cookies.get(cookie_name(request), ""))
    response = layout.redirect("/login")
    response.delete_cookie(cookie_name(request), path="/")
    return response


@router.get("/tokens")
def tokens(visit: CurrentVisit) -> HTMLResponse:
    """Show tokens without their secrets."""
    return _tokens(visit)


@router.post("/tokens")
def issue(fields: SubmittedForm, visit: CurrentVisit) -> HTMLResponse:
    """Issue a token and show it once."""
    visit.actor.require("curator", write=True)
    said = layout.read_fields(_FIELDS, {"scope": "full", **fields})
    return _tokens(visit, visit.service.issue_token(visit.actor, **said))


@router.post("/users/revoke")
def dismiss(fields: SubmittedForm, visit: CurrentVisit) -> Response:
    """Revoke somebody with all that has not started."""
    visit.service.revoke(visit.actor, fields.get("name", ""))
    return layout.redirect("/tokens")


def _tokens(visit: Visit, made: str = "") -> HTMLResponse:
    actor, service, session = visit.actor, visit.service, visit.session
    token_rows = [
        (
            item.owner, item.role, item.scope, item.expires[:10],
            element("code", item.id, class_="id"),
            _revoke(visit, f"/tokens/{item.id}/revoke", f"token {item.id}", item.revoked),
        )
        for item in service.tokens(actor)
    ]  # fmt: skip
    user_rows = [
        (
            item.name, item.role, str(item.tokens),
            "" if item.name == actor.name and not item.revoked
            else _revoke(visit, "/users/revoke", item.name, item.revoked, name=item.name),
        )
        for item in service.users(actor)
    ]  # fmt: skip
    parts: list[str] = []
    if made:
        parts = [
            layout.promise("Copy it now; it is not shown again:"),
            element("code", made, class_="token"),
        ]
    names = ("Owner", "Role", "Scope", "Until", "Id", "Action")
    parts.append(layout.table("Tokens", names, token_rows))
    if actor.may_change:
        entries = layout.show_fields(_FIELDS, {})
        parts += [
            element("h2", "Issue a token"),
            layout.form("/tokens", session, *entries, layout.button("Issue it")),
        ]
    words = (
        "Revoking somebody ends all tokens, sessions, approvals and requests that have not "
        "started, and cannot be undone"
    )
    of_users = ("User", "Role", "Valid tokens", "Action")
    parts += [element("h2", "Users"), layout.table(words, of_users, user_rows)]
    return layout.respond("Users and tokens", *parts, session=session, here="/tokens")


def _revoke(visit: Visit, path: str, what: str, revoked: bool, **hidden: str) -> str | Markup:  # noqa: FBT001  # a fact of a row
    """Return the button that revokes; what is revoked says so."""
    if revoked or not visit.actor.may_change:
        return "revoked" if revoked else ""
    press = layout.button("Revoke", quiet=True, aria_label=f"Revoke {what}")
    return layout.form(path, visit.session, press, **hidden)
