"""A client for a service, with nothing but the standard library.

``Client(url, token).plan("clinic", epsilon="0.3").ask().wait()`` is a release.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

from private_ate.errors import ArgumentError, BudgetError, PrivateAteError
from private_ate.release import Release

__all__ = ["Asked", "Client", "Planned", "ServiceError"]


class ServiceError(PrivateAteError):
    """The service refused; ``status`` and ``problem`` tell how it said so."""

    code = "service"

    def __init__(self, text: str, status: int = 0, problem: str = "") -> None:
        super().__init__(text)
        self.status, self.problem = status, problem


@dataclass(frozen=True, slots=True)
class Client:
    """A service at an address, and a token for it.

    Parameters
    ----------
    url : str
        Where the service is, such as ``https://ate.example.org``.
    token : str
        A token that its curator gave.
    """

    url: str
    token: str = field(repr=False)
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("https://", "http://")):
            msg = "the service's address begins with https:// or http://"
            raise ArgumentError(msg)

    def datasets(self) -> list[dict[str, Any]]:
        """Return the catalogue."""
        return cast("list[dict[str, Any]]", self._json("GET", "/v1/datasets"))

    def dummy(self, dataset: str, rows: int = 1000) -> str:
        """Return made-up people of a data set's domain as CSV."""
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
        options, leave_out_undeclared, dummy.
        """
        asked = {"dataset": dataset, "epsilon": str(epsilon), **question}
        told = self._json("POST", "/v1/plans", {**asked, "half_width": half_width})
        return Planned(self, asked, cast("dict[str, Any]", told))

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
        try:
            with urlopen(call, timeout=self.timeout) as answer:  # noqa: S310  # as above
                return cast("bytes", answer.read()).decode()
        except HTTPError as error:
            with error:
                raise _refusal(error.code, error.read()) from None
        except (URLError, HTTPException, OSError) as cause:
            msg = f"the service at {self.url} does not answer"
            raise ServiceError(msg) from cause


@dataclass(frozen=True, slots=True)
class Planned:
    """A question with what to expect of it; :meth:`ask` puts it."""

    client: Client
    question: dict[str, Any]
    told: dict[str, Any]

    def ask(self, key: str | None = None) -> Asked:
        """Put the question; with the same ``key`` again it is the same request."""
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        # A connection that breaks is tried again with the same key: it is one request.
        for left in (2, 1, 0):
            try:
                told = self.client._json("POST", "/v1/requests", self.question, headers)  # noqa: SLF001
                return Asked(self.client, cast("dict[str, Any]", told))
            except ServiceError as error:
                if error.status or not left:
                    raise
                time.sleep(1)
        raise AssertionError  # the loop returns or raises


@dataclass(slots=True)
class Asked:
    """A request that was put; :meth:`wait` gives its release."""

    client: Client
    told: dict[str, Any]

    @property
    def state(self) -> str:
        """The state as it was last told."""
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
                msg = f"request {self.told['id']} is {self.state} still; look again later"
                raise ServiceError(msg)
            time.sleep(1.0)
        if self.state != "done":
            why = self.told.get("reason") or "no reason is told"
            msg = f"request {self.told['id']} is {self.state}: {why}"
            raise ServiceError(msg, problem=str(self.told.get("code", "")))
        text = self.client._text("GET", f"/v1/releases/{self.told['id']}.json")  # noqa: SLF001
        return Release.from_json(text)


def _refusal(status: int, body: bytes) -> PrivateAteError:
    """Return a service's problem as an error; its budget's as the library's own."""
    try:
        plain = json.loads(body)
        code, detail = str(plain["code"]), str(plain["detail"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answered {status} without a reason", status)
    return BudgetError(detail) if code == "budget" else ServiceError(detail, status, code)
