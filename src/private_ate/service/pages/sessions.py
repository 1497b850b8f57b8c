"""Sessions: log in and out, a cookie no script can read, and forms that prove their session."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from private_ate.report.markup import element
from private_ate.service.pages.layout import button, field, form, redirect, respond
from private_ate.service.refusals import Forbidden, Unauthorized
from private_ate.service.store.users import (
    SESSION,
    Session,
    close_session,
    find_session,
    find_user,
    open_session,
    read_token,
)
from private_ate.service.web.authentication import (
    CurrentService,
    WebSettings,
    require_origin,
    service_of,
    settings_of,
    trusted_user,
)

__all__ = ["CurrentSession", "SubmittedForm", "router"]

router = APIRouter(include_in_schema=False)

_MOST_FIELDS: Final = 100


def cookie_name(request: Request) -> str:
    """Return the cookie's name; over TLS it is bound to the host."""
    return "__Host-pate" if settings_of(request).is_secure else "pate"


def session_of(request: Request) -> Session:
    """Return the session of a browser, or of the user whom a trusted proxy names.

    A proxy says who it is with every request, so nothing is kept for it; the text of its forms
    follows from the shared secret.
    """
    service, settings = service_of(request), settings_of(request)
    name = trusted_user(request)
    secret = request.cookies.get(cookie_name(request), "")
    with service.store.snapshot() as execute:
        if name:
            found: Session | None = Session(find_user(execute, name), _form_text(settings, name))
        else:
            found = find_session(execute, secret, service.clock()) if secret else None
    if found is None:
        msg = "show a token first"
        raise Unauthorized(msg)
    settings.users.take(found.actor.name)
    return found


def _form_text(settings: WebSettings, name: str) -> str:
    key = settings.proxy.secret.encode()
    return hmac.new(key, f"form of {name}".encode(), hashlib.sha256).hexdigest()


async def read_form(request: Request) -> Mapping[str, str]:
    """Return the fields of a form, each once."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        msg = "a form is sent as application/x-www-form-urlencoded"
        raise Forbidden(msg)
    try:
        text = (await request.body()).decode("ascii")
        fields = parse_qs(
            text, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError as cause:
        msg = "this form cannot be read"
        raise Forbidden(msg) from cause
    if any("\0" in value for values in fields.values() for value in values):
        msg = "this form cannot be read"
        raise Forbidden(msg)
    return {name: values[0].strip() for name, values in fields.items()}


def filled_form(
    request: Request,
    session: Annotated[Session, Depends(session_of)],
    fields: Annotated[Mapping[str, str], Depends(read_form)],
) -> Mapping[str, str]:
    """Return a form of this session from this site, or refuse."""
    require_origin(request)
    shown = fields.get("form", "").encode("utf-8", "surrogatepass")
    if not hmac.compare_digest(shown, session.form.encode()):
        msg = "this form is not of your session; go back and load the page again"
        raise Forbidden(msg)
    return fields


def set_cookie(request: Request, response: Response, secret: str) -> None:
    """Hand a session to the browser."""
    response.set_cookie(
        cookie_name(request), secret, max_age=SESSION // 1000, path="/", httponly=True,
        secure=settings_of(request).is_secure, samesite="strict",
    )  # fmt: skip


CurrentSession = Annotated[Session, Depends(session_of)]
SubmittedForm = Annotated[Mapping[str, str], Depends(filled_form)]
UncheckedForm = Annotated[Mapping[str, str], Depends(read_form)]


@router.get("/login")
def login_page() -> HTMLResponse:
    """Ask for a token."""
    words = "Paste the token that your curator gave you. It is not kept in the browser."
    entry = form(
        "/login", None,
        field("token", "Token", type="password", autocomplete="off", required="required"),
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
        words = element(
            "p", "This token is not valid, or not any more.", class_="warning", role="alert"
        )
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
