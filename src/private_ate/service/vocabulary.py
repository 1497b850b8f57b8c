"""Who asks, the states of a request, and what is refused, with an HTTP status.

``draft → planned → (waiting) → approved → queued → charged → done | lost``, or ``refused`` or
``cancelled`` on the way. There is no way back and no second try: a noisy job that ran twice would
be a second look for one price. The stores refuse every other step by a trigger. Refusals have a
code and a sentence made of public facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from private_ate.errors import PrivateAteError

Role = Literal["analyst", "curator", "auditor"]
Scope = Literal["full", "read"]


class ServiceRefusal(PrivateAteError):  # noqa: N818  # that is what it is
    """The service does not do what was asked; nothing was spent."""

    code: ClassVar[str] = "refused"
    status: ClassVar[int] = 400

    def __init_subclass__(cls, *, code: str, status: int) -> None:
        cls.code, cls.status = code, status


class Unauthorized(ServiceRefusal, code="unauthorized", status=401):
    """Who asks did not show a token that is valid now."""


class Forbidden(ServiceRefusal, code="forbidden", status=403):
    """The role or scope of a token does not allow it."""


class Missing(ServiceRefusal, code="missing", status=404):
    """There is no such thing, or not for who asks."""


class Conflict(ServiceRefusal, code="conflict", status=409):
    """The state of things does not allow it any more."""


class BudgetRefusal(Conflict, code="budget", status=409):
    """The budget does not allow the request."""


class NotReady(Conflict, code="not-ready", status=409):
    """The answer is not visible yet."""


class TooMany(ServiceRefusal, code="too-many", status=429):
    """More was asked than the service takes in a while."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: a user in a role; ``scope`` "read" changes nothing."""

    name: str
    role: Role
    scope: Scope = "full"
    token: str = ""

    @property
    def may_change(self) -> bool:
        """Whether forms are of use to this user."""
        return self.scope == "full"

    def require(self, *roles: Role, write: bool = False) -> None:
        """Refuse other roles, and a token that may only read where something is to change."""
        if self.role not in roles:
            msg = f"this is for {' and '.join(roles)}s; your token is of {with_article(self.role)}"
            raise Forbidden(msg)
        if write and not self.may_change:
            msg = "this token may only read; use one of scope 'full'"
            raise Forbidden(msg)


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that showed a token: whose it is, and the text that its forms must repeat."""

    actor: Actor
    form: str


def with_article(role: str) -> str:
    """Return a role's name with its article."""
    return f"an {role}" if role[0] == "a" else f"a {role}"


State = Literal[
    "draft", "planned", "waiting", "approved", "queued", "charged", "done", "lost", "refused",
    "cancelled",
]  # fmt: skip
FINAL: Final[frozenset[State]] = frozenset({"done", "lost", "refused", "cancelled"})
MOVES: Final[dict[State, frozenset[State]]] = {
    "draft": frozenset({"planned"}),
    "planned": frozenset({"waiting", "approved"}),
    "waiting": frozenset({"approved", "refused", "cancelled"}),
    "approved": frozenset({"queued"}),
    # Only a dummy request is done without a charge.
    "queued": frozenset({"charged", "done", "refused", "cancelled"}),
    "charged": frozenset({"done", "lost"}),
    "done": frozenset(),
    "lost": frozenset(),
    "refused": frozenset(),
    "cancelled": frozenset(),
}
# The same on pages, at the command line and in errors; a charged request is shown as queued.
_WORDS: Final[dict[str, str]] = {
    "waiting": "waits for a curator",
    "queued": "under way",
    "done": "answered",
}


def state_words(state: str) -> str:
    """Return the words for a state; most states, and those of a newer service, are their own."""
    return _WORDS.get(state, state)
