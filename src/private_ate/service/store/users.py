"""Users, their tokens and sessions: only hashes are kept, and all of them can be revoked.

A token is ``pate_<id>_<256 random bits>`` and is shown once. Looking one up takes the same steps
whether its id is known or not: the first id that is not below it is read, of which there is always
one, and both its id and its secret are compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Final, NoReturn, cast, get_args

from private_ate.arguments import check_analyst, fold_name, one_of, whole_number
from private_ate.ledger.stores import Execute, insert, one, read_rows, update
from private_ate.service.store.events import REVOKED, time_text, write_event
from private_ate.service.vocabulary import (
    Actor,
    Conflict,
    Missing,
    Role,
    Scope,
    Session,
    Unauthorized,
    with_article,
)

_TOKEN: Final = re.compile(r"[0-9a-f]{12}")
_NO_TOKEN: Final = "0" * 12
DECOY: Final = "z" * 12  # after every token's id, which is hexadecimal
# The row of the decoy comes after every id, so that something is always found.
_LOOK_UP: Final = (
    "SELECT t.secret, t.id, t.expires, t.revoked, u.revoked, u.name, u.role, t.scope "
    "FROM service_tokens t JOIN service_users u ON u.name = t.owner WHERE t.id >= ? "
    "ORDER BY t.id LIMIT 1"
)
_ACTORS: Final = frozenset({"setup", "policy", "nobody"})  # who acts in events and is no user
DAY: Final = 24 * 3600 * 1000
SESSION: Final = 8 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

    id: str
    owner: str
    role: str
    scope: str
    expires: str = field(metadata={"read": time_text})
    revoked: bool = field(metadata={"column": "t.revoked", "read": bool})


@dataclass(frozen=True, slots=True)
class User:
    """A user, and how many valid tokens it has."""

    name: str
    role: str
    revoked: bool = field(metadata={"column": "u.revoked", "read": bool})
    tokens: int = field(
        metadata={
            "column": "(SELECT COUNT(*) FROM service_tokens t "
            "WHERE t.owner = u.name AND t.revoked = 0 AND t.expires > ?)"
        }
    )


def add_user(execute: Execute, name: str, role: str, actor: str, now: int) -> None:
    """Add a user; one who is there in another role is refused, all spellings are one name."""
    name = check_analyst(name)
    one_of("role", role, get_args(Role))
    if fold_name(name) in _ACTORS:
        msg = f"{name!r} stands for the service itself in its history; choose another name"
        raise Conflict(msg)
    for known, held, revoked in execute("SELECT name, role, revoked FROM service_users", ()).rows:
        if fold_name(known) != fold_name(name):
            continue
        if (known, held, revoked) != (name, role, 0):
            msg = f"there is a user {known!r} already, as {with_article(held)} or revoked"
            raise Conflict(msg)
        return
    insert(execute, "service_users", name=name, role=role, created=now)
    write_event(execute, "user", name, actor, {"role": role})


def revoke_user(execute: Execute, name: str, actor: str, now: int) -> None:
    """Revoke a user with all tokens and sessions; no curator revokes the own account."""
    if name == actor:
        msg = "another curator revokes you"
        raise Conflict(msg)
    if not name.isprintable():
        _missing("user")
    if update(execute, "service_users", "name = ? AND revoked = 0", name, revoked=now) != 1:
        _missing("user")
    update(execute, "service_tokens", "owner = ? AND revoked = 0", name, revoked=now)
    execute("DELETE FROM service_sessions WHERE owner = ?", (name,))
    write_event(execute, REVOKED, name, actor)


def issue_token(  # one value per fact about a token
    execute: Execute, owner: str, actor: str, now: int, *, days: int = 90, scope: str = "full"
) -> str:
    """Return a new token of a user; it is shown here and never again."""
    one_of("scope", scope, get_args(Scope))
    days = whole_number("days", days, 1, 366)
    found = one(execute, "SELECT revoked FROM service_users WHERE name = ?", owner)
    if found is None or found[0]:
        _missing("user")
    name, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    insert(
        execute, "service_tokens", id=name, owner=owner, secret=_hash(secret), scope=scope,
        created=now, expires=now + days * DAY,
    )  # fmt: skip
    write_event(execute, "token", name, actor, {"owner": owner, "scope": scope, "days": days})
    return f"pate_{name}_{secret}"


def revoke_token(execute: Execute, name: str, actor: str, now: int) -> None:
    """Revoke a token and the sessions that were opened with it."""
    if update(execute, "service_tokens", "id = ? AND revoked = 0", name, revoked=now) != 1:
        _missing("token")
    execute("DELETE FROM service_sessions WHERE token = ?", (name,))
    write_event(execute, "revoke token", name, actor)


def list_tokens(execute: Execute) -> list[Token]:
    """Return all tokens without their secrets."""
    rest = (
        "FROM service_tokens t JOIN service_users u ON u.name = t.owner WHERE t.id <> ? "
        "ORDER BY t.created, t.id"
    )
    return read_rows(execute, Token, rest, DECOY)


def list_users(execute: Execute, now: int) -> list[User]:
    """Return all users; those who were revoked stay in the list."""
    rest = "FROM service_users u WHERE u.name <> 'nobody' ORDER BY u.revoked, u.role, u.name"
    return read_rows(execute, User, rest, now)


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


def open_session(execute: Execute, actor: Actor, now: int) -> str:
    """Return the secret of a new session; old ones are swept away."""
    secret = secrets.token_urlsafe(32)
    execute("DELETE FROM service_sessions WHERE expires <= ?", (now,))
    insert(
        execute, "service_sessions", secret=_hash(secret), owner=actor.name, token=actor.token,
        scope=actor.scope, form=secrets.token_urlsafe(32), expires=now + SESSION,
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


def _missing(what: str) -> NoReturn:
    msg = f"there is no such {what}"
    raise Missing(msg)
