"""Users, their tokens and sessions: only hashes are kept, and all of them can be revoked.

A token is ``pate_<id>_<256 random bits>`` and is shown once. Looking one up takes the same steps
whether its id is known or not: the first id that is not below it is read, of which there is always
one, and both its id and its secret are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, cast, get_args

from private_ate.arguments import one_of, whole_number
from private_ate.ledger.names import check_analyst, fold_name
from private_ate.ledger.store import Execute
from private_ate.service.refusals import Conflict, Forbidden, Missing, Unauthorized
from private_ate.service.store.events import write_event
from private_ate.service.store.tables import DECOY, one, rows_of

__all__ = [
    "REVOKED",
    "Actor",
    "Role",
    "Scope",
    "Session",
    "TokenNote",
    "UserNote",
    "add_user",
    "are_two_persons",
    "close_session",
    "find_session",
    "find_user",
    "is_there",
    "issue_token",
    "list_tokens",
    "list_users",
    "open_session",
    "read_token",
    "revoke_token",
    "revoke_user",
]

Role = Literal["analyst", "curator", "auditor"]
Scope = Literal["full", "read"]

_TOKEN: Final = re.compile(r"[0-9a-f]{12}")
_NO_TOKEN: Final = "0" * 12
# The row of the decoy comes after every id, so that something is always found.
_LOOK_UP: Final = (
    "SELECT t.secret, t.id, t.expires, t.revoked, u.revoked, u.name, u.role, t.scope "
    "FROM service_tokens t JOIN service_users u ON u.name = t.owner WHERE t.id >= ? "
    "ORDER BY t.id LIMIT 1"
)
_ACTORS: Final = frozenset({"setup", "policy", "nobody"})  # who acts in events and is no user
DAY: Final = 24 * 3600 * 1000
SESSION: Final = 8 * 3600 * 1000
REVOKED: Final = "revoke user"  # the event's kind


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks: a user in a role; ``scope`` "read" changes nothing."""

    name: str
    role: Role
    scope: Scope = "full"
    token: str = ""

    def require(self, *roles: Role, write: bool = False) -> None:
        """Refuse other roles, and a token that may only read where something is to change."""
        if self.role not in roles:
            msg = f"this is for {' and '.join(roles)}s; your token is of {_a(self.role)}"
            raise Forbidden(msg)
        if write and self.scope == "read":
            msg = "this token may only read; use one of scope 'full'"
            raise Forbidden(msg)


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that showed a token: whose it is, and the text that its forms must repeat."""

    actor: Actor
    form: str


@dataclass(frozen=True, slots=True)
class TokenNote:
    """A token without its secret."""

    id: str
    owner: str
    role: str
    scope: str
    created: int
    expires: int
    revoked: int


@dataclass(frozen=True, slots=True)
class UserNote:
    """A user: since when, until when if revoked, and how many tokens hold now."""

    name: str
    role: str
    created: int
    revoked: int
    tokens: int


def add_user(execute: Execute, name: str, role: str, actor: str, now: int) -> None:
    """Add a user; one who is there in another role is refused, all spellings are one name."""
    name = check_analyst(name)
    one_of("role", role, get_args(Role))
    if fold_name(name) in _ACTORS:
        msg = f"{name!r} stands for the service itself in its history; choose another name"
        raise Conflict(msg)
    same = [
        row
        for row in rows_of(execute, "SELECT name, role, revoked FROM service_users")
        if fold_name(str(row[0])) == fold_name(name)
    ]
    if same:
        if (same[0][0], same[0][1], same[0][2]) != (name, role, 0):
            msg = f"there is a user {same[0][0]!r} already, as {_a(str(same[0][1]))} or revoked"
            raise Conflict(msg)
        return
    execute("INSERT INTO service_users (name, role, created) VALUES (?, ?, ?)", (name, role, now))
    write_event(execute, "user", name, actor, {"role": role})


def revoke_user(execute: Execute, name: str, actor: str, now: int) -> None:
    """Revoke a user with all tokens and sessions; no curator revokes the own account."""
    if name == actor:
        msg = "another curator revokes you"
        raise Conflict(msg)
    if not name.isprintable():
        msg = "there is no such user"
        raise Missing(msg)
    done = execute(
        "UPDATE service_users SET revoked = ? WHERE name = ? AND revoked = 0", (now, name)
    )
    if done.changed != 1:
        msg = "there is no such user"
        raise Missing(msg)
    execute("UPDATE service_tokens SET revoked = ? WHERE owner = ? AND revoked = 0", (now, name))
    execute("DELETE FROM service_sessions WHERE owner = ?", (name,))
    write_event(execute, REVOKED, name, actor)


def are_two_persons(execute: Execute, names: Collection[str]) -> bool:
    """Say whether two of these curators are certainly two persons.

    Who issues an account or a token of a curator has seen its secret and can act in that name, and
    so can whoever can act in the issuer's. Two curators are two persons if nobody can act for
    both. What was issued on the machine itself was issued by no curator.
    """
    curators = {
        str(row[0])
        for row in rows_of(execute, "SELECT name FROM service_users WHERE role = 'curator'")
    }
    issuers: dict[str, set[str]] = {}
    for kind, subject, actor, body in rows_of(
        execute,
        "SELECT kind, subject, actor, body FROM service_events WHERE kind IN ('user', 'token')",
    ):
        owner = str(subject) if kind == "user" else str(json.loads(str(body))["owner"])
        if owner in curators and actor in curators:
            issuers.setdefault(owner, set()).add(str(actor))
    hands = [_can_act_for(name, issuers) for name in dict.fromkeys(names)]
    return any(first.isdisjoint(second) for first, second in combinations(hands, 2))


def _can_act_for(name: str, issuers: Mapping[str, set[str]]) -> set[str]:
    """Return a curator with all who issued to this curator, or to one of them."""
    found, fresh = {name}, {name}
    while fresh:
        fresh = {issuer for one_of_them in fresh for issuer in issuers.get(one_of_them, ())} - found
        found |= fresh
    return found


def issue_token(  # one value per fact about a token
    execute: Execute, owner: str, actor: str, now: int, *, days: int = 90, scope: str = "full"
) -> str:
    """Return a new token of a user; it is shown here and never again."""
    one_of("scope", scope, get_args(Scope))
    days = whole_number("days", days, 1, 366)
    found = one(execute, "SELECT revoked FROM service_users WHERE name = ?", owner)
    if found is None or found[0]:
        msg = "there is no such user"
        raise Missing(msg)
    name, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    execute(
        "INSERT INTO service_tokens (id, owner, secret, scope, created, expires) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (name, owner, _hash(secret), scope, now, now + days * DAY),
    )
    write_event(execute, "token", name, actor, {"owner": owner, "scope": scope, "days": days})
    return f"pate_{name}_{secret}"


def revoke_token(execute: Execute, name: str, actor: str, now: int) -> None:
    """Revoke a token and the sessions that were opened with it."""
    done = execute(
        "UPDATE service_tokens SET revoked = ? WHERE id = ? AND revoked = 0", (now, name)
    )
    if done.changed != 1:
        msg = "there is no such token"
        raise Missing(msg)
    execute("DELETE FROM service_sessions WHERE token = ?", (name,))
    write_event(execute, "revoke token", name, actor)


def list_tokens(execute: Execute) -> list[TokenNote]:
    """Return all tokens without their secrets."""
    found = rows_of(
        execute,
        "SELECT t.id, t.owner, u.role, t.scope, t.created, t.expires, t.revoked "
        "FROM service_tokens t JOIN service_users u ON u.name = t.owner WHERE t.id <> ? "
        "ORDER BY t.created, t.id",
        DECOY,
    )
    return [TokenNote(*cast("tuple[str, str, str, str, int, int, int]", row)) for row in found]


def list_users(execute: Execute, now: int) -> list[UserNote]:
    """Return all users; those who were revoked stay in the list."""
    found = rows_of(
        execute,
        "SELECT u.name, u.role, u.created, u.revoked, (SELECT COUNT(*) FROM service_tokens t "
        "WHERE t.owner = u.name AND t.revoked = 0 AND t.expires > ?) FROM service_users u "
        "WHERE u.name <> 'nobody' ORDER BY u.revoked, u.role, u.name",
        now,
    )
    return [UserNote(*cast("tuple[str, str, int, int, int]", row)) for row in found]


def read_token(execute: Execute, token: str, now: int) -> Actor:
    """Return whose token it is; every reason against it gives the same answer."""
    mark, _, rest = token.partition("_")
    name, _, secret = rest.partition("_")
    shown = name if _TOKEN.fullmatch(name) else _NO_TOKEN
    kept, known, expires, gone, left, owner, role, scope = execute(_LOOK_UP, (shown,)).rows[0]
    # Both in one text of one length: nothing shows which of them is wrong.
    same = hmac.compare_digest(shown + _hash(secret), f"{known}{kept}")
    if not same or mark != "pate" or cast("int", expires) <= now or gone or left:
        raise _unknown()
    return Actor(str(owner), cast("Role", role), cast("Scope", scope), name)


def find_user(execute: Execute, name: str) -> Actor:
    """Return a user by name, as a proxy that is trusted gives it."""
    if not name.isprintable():
        raise _unknown()
    found = one(execute, "SELECT role, revoked FROM service_users WHERE name = ?", name)
    if found is None or found[1]:
        raise _unknown()
    return Actor(name, cast("Role", found[0]))


def is_there(execute: Execute, name: str) -> bool:
    """Say whether a user is known and has never been revoked.

    The history is asked too: a table can be changed by whoever took over a process that writes it.
    """
    known = one(
        execute,
        "SELECT 1 FROM service_users u WHERE u.name = ? AND u.revoked = 0 AND NOT EXISTS "
        "(SELECT 1 FROM service_events e WHERE e.kind = ? AND e.subject = u.name)",
        name, REVOKED,
    )  # fmt: skip
    return known is not None


def open_session(execute: Execute, actor: Actor, now: int) -> str:
    """Return the secret of a new session; old ones are swept away."""
    secret = secrets.token_urlsafe(32)
    execute("DELETE FROM service_sessions WHERE expires <= ?", (now,))
    execute(
        "INSERT INTO service_sessions (secret, owner, token, scope, form, expires) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (
            _hash(secret), actor.name, actor.token, actor.scope, secrets.token_urlsafe(32),
            now + SESSION,
        ),
    )  # fmt: skip
    return secret


def find_session(execute: Execute, secret: str, now: int) -> Session | None:
    """Return a session that has not ended, whose token and user still hold."""
    found = one(
        execute,
        "SELECT s.owner, s.token, s.scope, s.form, u.role FROM service_sessions s "
        "JOIN service_users u ON u.name = s.owner "
        "LEFT JOIN service_tokens t ON t.id = s.token "
        "WHERE s.secret = ? AND s.expires > ? AND u.revoked = 0 "
        "AND (t.id IS NULL OR (t.revoked = 0 AND t.expires > ?))",
        _hash(secret), now, now,
    )  # fmt: skip
    if found is None:
        return None
    owner, token, scope, form, role = (str(value) for value in found)
    return Session(Actor(owner, cast("Role", role), cast("Scope", scope), token), form)


def close_session(execute: Execute, secret: str) -> None:
    """End a session."""
    execute("DELETE FROM service_sessions WHERE secret = ?", (_hash(secret),))


def _hash(secret: str) -> str:
    """Return what is kept of a secret of 256 random bits; no salt is needed for those."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _unknown() -> Unauthorized:
    return Unauthorized("show a valid token: Authorization: Bearer pate_…")


def _a(role: str) -> str:
    return f"an {role}" if role[0] == "a" else f"a {role}"
