"""Who asks: a token, a session, or a proxy that is believed; and how often.

A proxy in front may say who somebody is (after OIDC, for example). Its header counts only if the
connection comes from a configured address and carries a shared secret; otherwise it is dropped, and
the log says so. The proxy knows users by a cookie, which browsers send with what a page of another
site asks for: what changes something with the proxy's header must come from our own pages. A
browser that showed a token has a cookie that no script can read, and forms with its session's text.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, cast
from urllib.parse import parse_qs

from fastapi import Depends, Request, Response

from private_ate.service.operations import Service
from private_ate.service.store.users import SESSION, find_session, find_user, read_token
from private_ate.service.vocabulary import Actor, Forbidden, Session, TooMany, Unauthorized

log = logging.getLogger("private_ate.service.web")

USER: Final = "x-private-ate-user"
SECRET: Final = "x-private-ate-secret"  # noqa: S105  # the name of a header
_SAFE: Final = ("GET", "HEAD")
_MOST_CALLERS: Final = 10_000
_MOST_FIELDS: Final = 100


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy that may say who somebody is; nobody may without addresses and a secret."""

    addresses: tuple[str, ...] = ()
    secret: str = field(default="", repr=False)


@dataclass(slots=True)
class Buckets:
    """How much each caller may ask: a bucket that fills at a rate, emptied by one a request."""

    rate: float
    burst: float
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def take(self, name: str) -> None:
        """Take one request, or refuse."""
        moment = time.monotonic()
        with self._lock:
            # Taken out and put back, so that the first is who was silent for longest.
            level, last = self._levels.pop(name, (self.burst, moment))
            if len(self._levels) >= _MOST_CALLERS:
                del self._levels[next(iter(self._levels))]
            level = min(self.burst, level + (moment - last) * self.rate)
            is_refused = level < 1
            self._levels[name] = (level if is_refused else level - 1, moment)
        if is_refused:
            msg = "more requests than the service takes in a while; wait a moment"
            raise TooMany(msg)


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Settings of the web process: its address, its trusted proxy, its limits."""

    origin: str = "http://127.0.0.1:8470"
    proxy: Proxy = field(default_factory=Proxy)
    most_bytes: int = 1 << 18
    patience: float = 20.0  # seconds for a body to come
    users: Buckets = field(default_factory=lambda: Buckets(200.0, 1000.0))
    unauthenticated: Buckets = field(default_factory=lambda: Buckets(5.0, 60.0))
    everybody: Buckets = field(default_factory=lambda: Buckets(20.0, 200.0))
    health: Buckets = field(default_factory=lambda: Buckets(20.0, 200.0))

    @property
    def is_secure(self) -> bool:
        """Whether cookies travel over TLS alone."""
        return self.origin.startswith("https://")


def service_of(request: Request) -> Service:
    """Return the service of the application."""
    return cast("Service", request.app.state.service)


def settings_of(request: Request) -> WebSettings:
    """Return the settings of the application."""
    return cast("WebSettings", request.app.state.settings)


def actor_of(request: Request) -> Actor:
    """Return who asks, by token or by a trusted proxy; others wait before they try again."""
    settings, service = settings_of(request), service_of(request)
    mark, _, token = request.headers.get("authorization", "").partition(" ")
    try:
        with service.store.snapshot() as execute:
            name = "" if mark.lower() == "bearer" else trusted_user(request)
            if name:
                if request.method not in _SAFE:
                    require_origin(request)
                actor = find_user(execute, name)
            else:
                actor = read_token(execute, token.strip(), service.clock())
    except Unauthorized:
        settings.unauthenticated.take(_address(request))
        raise
    settings.users.take(actor.name)
    return actor


def anybody(request: Request) -> None:
    """Let everybody in who does not ask too often."""
    settings_of(request).everybody.take(_address(request))


def health_check(request: Request) -> None:
    """Let everybody ask whether the service answers, however often the rest is asked."""
    settings_of(request).health.take(_address(request))


def require_origin(request: Request) -> None:
    """Refuse what a page of another site sent; a browser says which it was, and no page can lie."""
    origin = request.headers.get("origin")
    known = settings_of(request).origin
    if origin is None:
        is_ours = request.headers.get("sec-fetch-site") == "same-origin"
    else:
        is_ours = bool(known) and origin in (known, known.replace("//127.0.0.1:", "//localhost:"))
    if not is_ours:
        msg = "this came from another site, or the service's origin is not set"
        raise Forbidden(msg)


def trusted_user(request: Request) -> str:
    """Return the user that a trusted proxy names, "" if there is none or it is not trusted."""
    name = request.headers.get(USER, "")
    if not name:
        return ""
    proxy = settings_of(request).proxy
    shown = request.headers.get(SECRET, "").encode("utf-8", "surrogatepass")
    same = hmac.compare_digest(shown, proxy.secret.encode())
    if not proxy.secret or not same or _address(request) not in proxy.addresses:
        log.warning("a proxy's header was dropped: wrong address or secret")
        return ""
    return name


def _address(request: Request) -> str:
    return request.client.host if request.client else "unknown"


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
            key = settings.proxy.secret.encode()
            text = hmac.new(key, f"form of {name}".encode(), hashlib.sha256).hexdigest()
            found: Session | None = Session(find_user(execute, name), text)
        else:
            found = find_session(execute, secret, service.clock()) if secret else None
    if found is None:
        msg = "show a token first"
        raise Unauthorized(msg)
    settings.users.take(found.actor.name)
    return found


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


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that is asked for: whose browser asks, and which service."""

    session: Session
    service: Service

    @property
    def actor(self) -> Actor:
        """Who asks."""
        return self.session.actor


def visit_of(request: Request, session: Annotated[Session, Depends(session_of)]) -> Visit:
    """Return who asks for a page, and of which service."""
    return Visit(session, service_of(request))


CurrentActor = Annotated[Actor, Depends(actor_of)]
CurrentService = Annotated[Service, Depends(service_of)]
CurrentVisit = Annotated[Visit, Depends(visit_of)]
SubmittedForm = Annotated[Mapping[str, str], Depends(filled_form)]
UncheckedForm = Annotated[Mapping[str, str], Depends(read_form)]
