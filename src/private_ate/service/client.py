"""A client for a service, with nothing but the standard library.

``Client(url, token).plan("clinic", epsilon="0.3").ask().wait()`` is a release.
"""

from __future__ import annotations

import json
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from ipaddress import ip_address
from typing import Any, Final, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener
from urllib.request import Request as HttpRequest

from private_ate.errors import ArgumentError, BudgetError, PrivateAteError
from private_ate.release.release import Release
from private_ate.service.vocabulary import state_words

_SHOWN: Final = {
    "half-width": "half_width", "error": "error", "noise": "noise_error",
    "detectable": "detectable_effect",
}  # fmt: skip
_REDIRECTS: Final = (301, 302, 303, 307, 308)


class ServiceError(PrivateAteError):
    """The service refused; ``status`` and ``problem`` say how."""

    code = "service"

    def __init__(self, text: str, status: int = 0, problem: str = "") -> None:
        super().__init__(text)
        self.status, self.problem = status, problem


@dataclass(frozen=True, slots=True)
class Client:
    """A service at an address, and a token for it.

    Attributes
    ----------
    url : str
        Where the service is, such as ``https://ate.example.org``; plain ``http://`` on this
        computer alone (127.0.0.1, localhost).
    token : str
        A token that its curator gave.
    timeout : float
        Seconds to wait for an answer.
    """

    url: str
    token: str = field(repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not _is_safe(self.url):
            msg = (
                "the service's address begins with https://; http:// would show the token on the "
                "way and is for this computer alone (127.0.0.1, localhost)"
            )
            raise ArgumentError(msg)

    def datasets(self) -> list[dict[str, Any]]:
        """Return the catalogue."""
        return cast("list[dict[str, Any]]", self._json("GET", "/v1/datasets"))

    def dummy(self, dataset: str, rows: int = 1000) -> str:
        """Return made-up data of a data set's domain as CSV."""
        return self._text("GET", f"/v1/datasets/{quote(dataset, safe='')}/dummy.csv?rows={rows}")

    def plan(
        self,
        dataset: str,
        *,
        epsilon: str | float,
        half_width: float | None = None,
        **question: object,
    ) -> Planned:
        """Say what a question would cost and what to expect of it; spends nothing.

        ``question`` may hold what the service's description lists: method, estimand, among,
        target, design, probability, by, overall, confidence, neighbors, covariates, outcome_sd,
        options, leave_out_undeclared, dummy, purpose.
        """
        asked = {"dataset": dataset, "epsilon": str(epsilon), **question}
        plan = self._json("POST", "/v1/plans", {**asked, "half_width": half_width})
        return Planned(self, asked, cast("dict[str, Any]", plan))

    def request(self, name: str) -> Asked:
        """Return a request that was made before."""
        return Asked(self, cast("dict[str, Any]", self._json("GET", f"/v1/requests/{name}")))

    def heads(self) -> list[dict[str, Any]]:
        """Return the published ends of the ledger's history."""
        return cast("list[dict[str, Any]]", self._json("GET", "/v1/heads"))

    def verify(self, head: str | None = None) -> dict[str, Any]:
        """Let the service check its ledger, and that it holds a hash that you kept."""
        query = "" if head is None else f"?head={quote(head, safe='')}"
        return cast("dict[str, Any]", self._json("GET", f"/v1/ledger/verify{query}"))

    def _json(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> object:
        return json.loads(self._text(method, path, body, headers))

    def _text(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> str:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.token}", **(headers or {})}
        if data is not None:
            sent["Content-Type"] = "application/json"
        call = HttpRequest(self.url.rstrip("/") + path, data, sent, method=method)  # noqa: S310  # checked
        # Plain HTTP never leaves this computer through a proxy.
        direct = [ProxyHandler({})] if urlsplit(self.url).scheme == "http" else []
        opener = build_opener(_NoRedirects, *direct)
        try:
            with opener.open(call, timeout=self.timeout) as answer:
                return cast("bytes", answer.read()).decode()
        except HTTPError as error:
            with error:
                raise _refusal(self.url, error) from None
        except (URLError, HTTPException, OSError) as cause:
            msg = f"the service at {self.url} does not answer"
            raise ServiceError(msg) from cause


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with what to expect of it; ``ask`` puts it, ``print`` shows it as a table.

    Attributes
    ----------
    client : Client
        The service that was asked.
    question : dict
        The question, as it would be put.
    told : dict
        What the service expects of it, in plain values.
    """

    client: Client
    question: dict[str, Any]
    told: dict[str, Any]

    def __str__(self) -> str:
        plan = self.told
        budget = plan["budget"]
        asked = f"{self.question['dataset']} at ε = {plan['epsilon']}, method {plan['method']}"
        lines = [f"what to expect of {asked}"]
        rows = plan["contrasts"] or [plan["expected"]] * (plan["expected"] is not None)
        if rows:
            lines.append(" " * 30 + "".join(f"{name:>12}" for name in _SHOWN))
        for row in rows:
            about = "effect" if row["arm"] is None else f"{row['arm']} against {row['against']}"
            numbers = [row[key] for key in _SHOWN.values()]
            lines.append(f"  {about:<28}" + "".join(f"{number:>12.3g}" for number in numbers))
        lines += [text for text in (plan["answer"], plan["caveat"]) if text]
        left = f"ε = {budget['left']} of {budget['epsilon']} is left"
        if not plan["affordable"]:
            lines.append(f"it costs more than the budget has: {left}")
        else:
            lines.append(f"{left}, enough for {plan['answers_left']} such answers")
        if plan["objections"]:
            lines.append(f"a curator looks at it first: {'; '.join(plan['objections'])}")
        return "\n".join(lines)

    def ask(self, key: str | None = None) -> Asked:
        """Put the question; with the same ``key`` again it is the same request."""
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        # A connection that breaks is tried again with the same key: it is one request.
        for left in (2, 1, 0):
            try:
                answer = self.client._json("POST", "/v1/requests", self.question, headers)  # noqa: SLF001
                return Asked(self.client, cast("dict[str, Any]", answer))
            except ServiceError as error:
                if error.status or not left:
                    raise
                time.sleep(1)
        raise AssertionError  # the loop returns or raises


@dataclass(slots=True)
class Asked:
    """A request that was put; :meth:`wait` gives its release.

    Attributes
    ----------
    client : Client
        The service that was asked.
    told : dict
        What the service last said of the request, in plain values.
    """

    client: Client
    told: dict[str, Any]

    @property
    def state(self) -> str:
        """The state as it was last reported."""
        return str(self.told["state"])

    def look(self) -> str:
        """Ask for the state."""
        self.told = self.client.request(str(self.told["id"])).told
        return self.state

    def wait(self, timeout: float = 3600.0) -> Release:
        """Wait for the release; an end without one is an error that says why."""
        give_up = time.monotonic() + timeout
        while self.look() in ("planned", "waiting", "approved", "queued"):
            if time.monotonic() > give_up:
                msg = f"request {self.told['id']}: {state_words(self.state)}; look again later"
                raise ServiceError(msg)
            time.sleep(1.0)
        if self.state != "done":
            why = self.told.get("reason") or "no reason is given"
            msg = f"request {self.told['id']}: {state_words(self.state)}: {why}"
            raise ServiceError(msg, problem=str(self.told.get("code", "")))
        text = self.client._text("GET", f"/v1/releases/{self.told['id']}.json")  # noqa: SLF001
        return Release.from_json(text)


def _is_safe(url: str) -> bool:
    """Say whether an address keeps a token secret on the way: TLS, or this computer alone."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.username is not None or not url.isprintable() or not host:
        return False
    with suppress(ValueError):
        return parts.scheme == "https" or (parts.scheme == "http" and ip_address(host).is_loopback)
    return parts.scheme == "http" and host == "localhost"


class _NoRedirects(HTTPRedirectHandler):
    """Leaves a redirect unfollowed: urllib would send the token along to the other address."""

    def redirect_request(self, *_: object) -> None:
        """Follow none."""


def _refusal(url: str, error: HTTPError) -> PrivateAteError:
    """Return a service's problem as an error; its budget's as the library's own."""
    if error.code in _REDIRECTS:
        address = str(error.headers.get("Location", ""))[:200]
        msg = (
            f"the service at {url} sends the request on to {address!a}; the token was not sent "
            "there. Give that address instead if you trust it"
        )
        return ServiceError(msg, error.code, "redirect")
    try:
        plain = json.loads(error.read())
        code, detail = str(plain["code"]), str(plain["detail"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answered {error.code} without a reason", error.code)
    return BudgetError(detail) if code == "budget" else ServiceError(detail, error.code, code)
