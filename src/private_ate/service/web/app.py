"""The web application: endpoints, pages, limits on bodies, safety headers, errors by RFC 9457.

Errors are sentences of our own: never a value, never another package's text.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, cast

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from private_ate._version import VERSION
from private_ate.errors import PrivateAteError
from private_ate.service.operations import Service
from private_ate.service.vocabulary import ServiceRefusal
from private_ate.service.web import analyst, curator, layout, users
from private_ate.service.web.api import router
from private_ate.service.web.authentication import WebSettings
from private_ate.service.web.models import Problem

_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without one, a form's Origin would be null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# What any endpoint may answer besides its own; those that are open to everybody know no 401.
_PROBLEMS: Final = {
    400: "an argument cannot be used",
    401: "no valid token was shown",
    403: "the role or scope does not allow it",
    404: "there is no such thing",
    408: "the body did not come in time",
    409: "the state of things does not allow it",
    413: "the body is too large",
    422: "the body, the path or a header is not as described",
    429: "too many requests",
    503: "the store cannot be used",
}
_OPEN: Final = frozenset({"/v1/heads", "/v1/healthz"})
log = logging.getLogger("private_ate.service.web")
_TELLING: Final = frozenset({"argument", "domain", "schema", "undeclared", "range"})
_UNUSABLE: Final = "the service's store cannot be used at the moment; its curator can see why"
_SLOW: Final = "the body did not come in time"
_UNEXPECTED: Final = "something went wrong that nobody foresaw; nothing more is shown, see the id"


def make_app(service: Service, settings: WebSettings | None = None) -> FastAPI:
    """Return the application of a service."""
    app = FastAPI(
        title="private-ate", version=VERSION, docs_url=None, redoc_url=None,
        redirect_slashes=False,  # such a redirect would repeat the caller's Host header
        description="Average treatment effects under differential privacy: ask by plan, "
        "pay from a ledger, read at a fixed time.",
    )  # fmt: skip
    chosen = settings or WebSettings()
    app.state.service, app.state.settings = service, chosen
    app.include_router(router)
    for pages in (layout, analyst, curator, users):
        app.include_router(pages.router)
    add_handlers(app, layout.error_page)
    app.add_middleware(
        Guard, most_bytes=chosen.most_bytes, patience=chosen.patience, headers=_HEADERS
    )
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description with our errors in place of FastAPI's."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    described = FastAPI.openapi(app)
    schemas = described["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for path, operations in described["paths"].items():
        for operation in operations.values():
            if path not in _OPEN:
                operation["security"] = [{"token": []}]
            operation["responses"].pop("422", None)
            for status, text in _PROBLEMS.items():
                answer = {"description": text, "content": content}
                operation["responses"][str(status)] = answer
    app.openapi_schema = described
    return described


def problem(
    status: int,
    code: str,
    detail: str,
    instance: str = "",
    headers: dict[str, str] | None = None,
) -> Response:
    """Return an error as application/problem+json."""
    body = {
        "type": f"urn:private-ate:{code}", "title": HTTPStatus(status).phrase, "status": status,
        "detail": detail, "code": code, "instance": instance,
    }  # fmt: skip
    text = json.dumps(body, ensure_ascii=True)
    return Response(text, status, headers=headers, media_type="application/problem+json")


def add_handlers(app: FastAPI, page: Callable[[Request, int, str], Response]) -> None:
    """Turn every foreseen error into a problem, or into a page where a person asked."""

    async def respond(request: Request, error: Exception) -> Response:
        status, code, detail, headers = _answer(error)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = _allowed(app, request.url.path)
        if not request.url.path.startswith("/v1"):
            return page(request, status, detail)
        return problem(status, code, detail, headers=headers)

    for kind in (PrivateAteError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, respond)


def _allowed(app: FastAPI, path: str) -> str:
    """Name every method that a path knows; the framework names those of one endpoint."""
    known: set[str] = set()
    for template, operations in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path):
            known |= {method.upper() for method in operations}
    return ", ".join(sorted(known))


def _answer(error: Exception) -> tuple[int, str, str, dict[str, str]]:
    """Return the status, the code, the sentence and the headers of an error as it is shown."""
    if isinstance(error, ServiceRefusal):
        headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
        if error.code in ("not-ready", "too-many"):
            headers["Retry-After"] = "1"
        return error.status, error.code, str(error), headers
    if isinstance(error, PrivateAteError):
        if error.code in _TELLING:
            return 400, error.code, str(error), {}
        if error.code == "budget":
            return 409, error.code, str(error), {}
        log.error("the store refused: %s", error.code)
        return 503, "unavailable", _UNUSABLE, {"Retry-After": "5"}
    if isinstance(error, RequestValidationError):
        # The fields that are wrong are named; what they hold is never quoted.
        places = sorted(
            {".".join(str(part)[:40] for part in found["loc"][:3]) for found in error.errors()}
        )
        detail = f"cannot be used: {', '.join(places[:5])}; see /openapi.json"
        return 422, "invalid", detail, {}
    found = cast("HTTPException", error)
    phrase = HTTPStatus(found.status_code).phrase.lower()
    return found.status_code, "http", f"{phrase}; see /openapi.json", dict(found.headers or {})


class Guard:
    """The outermost layer: a limits on bodies, headers of safety, a constant for the unforeseen."""

    def __init__(
        self, app: ASGIApp, *, most_bytes: int, patience: float, headers: dict[str, str]
    ) -> None:
        self.app, self.most_bytes, self.patience = app, most_bytes, patience
        self.headers = [(name.encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                present = {name.lower() for name, _ in message["headers"]}
                extra = [(name, text) for name, text in self.headers if name.lower() not in present]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        try:
            try:
                async with asyncio.timeout(self.patience):
                    body = await self._body(scope, receive)
            except TimeoutError:
                await problem(408, "too-slow", _SLOW)(scope, receive, guarded)
                return
            if body is None:
                response = problem(413, "too-large", f"at most {self.most_bytes} bytes are taken")
                await response(scope, receive, guarded)
                return
            await self.app(scope, _replayed(body, receive), guarded)
        except Exception as error:  # noqa: BLE001  # its text could hold a value
            name = secrets.token_hex(8)
            log.error("unforeseen %s, id %s", type(error).__name__, name)  # noqa: TRY400  # as above
            if not started:
                await problem(500, "unforeseen", _UNEXPECTED, name)(scope, receive, guarded)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the whole body; None if it is longer than allowed."""
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if not declared.isdigit() or int(declared[:20]) > self.most_bytes:
            return None
        body = b""
        while True:
            message: Any = await receive()
            if message["type"] != "http.request":
                return body
            body += bytes(message.get("body", b""))
            if len(body) > self.most_bytes:
                return None
            if not message.get("more_body", False):
                return body


def _replayed(body: bytes, receive: Receive) -> Callable[[], Awaitable[Message]]:
    """Give a body that was read to the layers below."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
