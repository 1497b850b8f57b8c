"""The web application: the interface for programs and the pages, inside one guard."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from private_ate._version import VERSION
from private_ate.service.desk import Desk
from private_ate.service.web.api import router
from private_ate.service.web.identity import WebSettings
from private_ate.service.web.models import Problem
from private_ate.service.web.problems import Guard, add_handlers

__all__ = ["make_app"]

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


def make_app(desk: Desk, settings: WebSettings | None = None) -> FastAPI:
    """Return the application of a desk."""
    from private_ate.service.pages.site import add_pages, error_page

    app = FastAPI(
        title="private-ate", version=VERSION, docs_url=None, redoc_url=None,
        redirect_slashes=False,  # such a redirect would repeat the caller's Host header
        description="Average treatment effects under differential privacy: ask by plan, "
        "pay from a ledger, read at a fixed time.",
    )  # fmt: skip
    chosen = settings or WebSettings()
    app.state.desk, app.state.settings = desk, chosen
    app.include_router(router)
    add_pages(app)
    add_handlers(app, error_page)
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
    _name_contents(described)
    app.openapi_schema = described
    return described


def _name_contents(described: dict[str, Any]) -> None:
    """Say what the answers that are no JSON model hold."""
    kinds = {
        "/v1/datasets/{name}/dummy.csv": "text/csv",
        "/v1/releases/{name}.html": "text/html",
        "/v1/releases/{name}.json": "application/json",
        "/v1/releases/{name}": "application/json",
        "/v1/audit.ndjson": "application/x-ndjson",
    }
    for path, kind in kinds.items():
        answer = described["paths"][path]["get"]["responses"]["200"]
        schema = {} if kind == "application/json" else {"type": "string"}
        answer["content"] = {kind: {"schema": schema}}
