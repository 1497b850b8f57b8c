"""The site: its door, its style, its error page, and the pages of all roles."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from private_ate.report.markup import element
from private_ate.service.desk import Desk
from private_ate.service.pages import analyst, office, people, plans, policies
from private_ate.service.pages.doors import (
    Filled,
    RawForm,
    cookie_name,
    set_cookie,
    to,
)
from private_ate.service.pages.frame import SHEET, button, field, form, respond
from private_ate.service.refusals import Unauthorized
from private_ate.service.store.people import close_session, open_session, read_token
from private_ate.service.web.identity import desk_of, require_origin, settings_of

__all__ = ["add_pages", "error_page"]

router = APIRouter(include_in_schema=False)
At = Annotated[Desk, Depends(desk_of)]


def add_pages(app: FastAPI) -> None:
    """Add the pages to an application."""
    parts = (plans.router, analyst.router, office.router, people.router, policies.router)
    for part in (router, *parts):
        app.include_router(part)


def error_page(request: Request, status: int, detail: str) -> Response:
    """Show an error to a person; a stranger is led to the door."""
    if status == 401 and request.method == "GET":
        return to("/login")
    first = detail if "_" in detail.split(maxsplit=1)[0] else f"{detail[0].upper()}{detail[1:]}"
    words = element("p", f"{first}.", class_="warning", role="alert")
    again = "Go back in your browser to correct it, or " if request.method == "POST" else ""
    back = element("p", again, element("a", "go to the data sets", href="/"), ".")
    return respond("That did not work", words, back, status=status)


@router.get("/style.css")
def style() -> Response:
    """Serve the one style sheet."""
    return Response(SHEET, media_type="text/css", headers={"Cache-Control": "max-age=3600"})


@router.get("/favicon.ico")
def icon() -> Response:
    """Serve the picture that browsers ask for: a balance."""
    bar = element("path", d="M3 5h10M8 3v10M5 13h6", stroke="#0b4f8a", fill="none")
    pans = element("path", d="M1 9l2-4 2 4zM11 9l2-4 2 4z", fill="#0b4f8a")
    picture = element("svg", bar, pans, xmlns="http://www.w3.org/2000/svg", viewBox="0 0 16 16")
    keep = {"Cache-Control": "max-age=86400"}
    return Response(picture, media_type="image/svg+xml", headers=keep)


@router.get("/login")
def door() -> HTMLResponse:
    """Ask for a token."""
    words = "Paste the token that your curator gave you. It is not kept in the browser."
    entry = form(
        "/login", None,
        field("token", "Token", type="password", autocomplete="off", required="required"),
        button("Enter"),
    )  # fmt: skip
    return respond("Enter", element("p", words), entry)


@router.post("/login")
def enter(request: Request, fields: RawForm, desk: At) -> Response:
    """Turn a token into a session."""
    require_origin(request)
    settings = settings_of(request)
    address = request.client.host if request.client else "unknown"
    try:
        with desk.store.snapshot() as execute:
            actor = read_token(execute, fields.get("token", ""), desk.clock())
    except Unauthorized:
        settings.strangers.take(address)
        words = element(
            "p", "This token is not valid, or not any more.", class_="warning", role="alert"
        )
        again = element("p", element("a", "Try again", href="/login"))
        return respond("Enter", words, again, status=401)
    with desk.store.transaction() as execute:
        # Whatever the browser held before ends here, whoever put it there.
        close_session(execute, request.cookies.get(cookie_name(request), ""))
        secret = open_session(execute, actor, desk.clock())
    response = to("/")
    set_cookie(request, response, secret)
    return response


@router.post("/logout")
def leave(request: Request, fields: Filled, desk: At) -> Response:
    """End the session."""
    _ = fields
    with desk.store.transaction() as execute:
        close_session(execute, request.cookies.get(cookie_name(request), ""))
    response = to("/login")
    response.delete_cookie(cookie_name(request), path="/")
    return response
