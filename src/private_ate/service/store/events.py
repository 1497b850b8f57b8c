"""The service's history: who did what, in a chain like the ledger's.

The ledger records what was spent; events record who approved it, who held which token,
what became of a request. They carry no secret and no record. A table can be changed by whoever
took over a process that writes it; events are never changed, so they say who is still there and
who may be one person with another.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from typing import Any, Final

from private_ate.ledger.accounts import last_hash
from private_ate.ledger.chain import Link, canonical, verify_chain
from private_ate.ledger.stores import Execute, one, read_rows, write_row

REVOKED: Final = "revoke user"  # kinds of events
CLOSED: Final = "close"
_TABLE: Final = "service_events"


@dataclass(frozen=True, slots=True)
class Event(Link):
    """One line of the history: ``actor`` did something of a ``kind`` to a ``subject``."""

    sequence: int
    kind: str
    subject: str
    actor: str
    body: str
    at: str
    previous: str
    hash: str = ""


def now() -> int:
    """Return the time in milliseconds."""
    return time.time_ns() // 1_000_000


def time_text(moment: int, precision: str = "seconds") -> str:
    """Return a time in milliseconds as ISO 8601."""
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec=precision)


def write_event(  # who did what to whom, and when
    execute: Execute,
    kind: str,
    subject: str,
    actor: str,
    body: Mapping[str, Any] | None = None,
    *,
    at: str = "",
) -> None:
    """Append an event in the transaction of what it reports; at this moment, or at a public one."""
    sequence, previous = last_event(execute)
    at = at or datetime.now(UTC).isoformat(timespec="milliseconds")
    draft = Event(sequence + 1, kind, subject, actor, canonical(body or {}), at, previous)
    write_row(execute, _TABLE, replace(draft, hash=draft.seal()))


def last_event(execute: Execute) -> tuple[int, str]:
    """Return the number and the hash of the last event."""
    return last_hash(execute, _TABLE)


def read_events(execute: Execute, last: int | None = None, skip: int = 0) -> list[Event]:
    """Return the history in order: all of it, or its last entries but those to skip."""
    end = last_event(execute)[0] - skip
    after = 0 if last is None else end - last
    rest = "FROM service_events WHERE sequence > ? AND sequence <= ? ORDER BY sequence"
    return read_rows(execute, Event, rest, after, end)


def events_about(execute: Execute, subject: str) -> list[Event]:
    """Return what happened to one subject, in order."""
    rest = "FROM service_events WHERE subject = ? ORDER BY sequence"
    return read_rows(execute, Event, rest, subject)


def verify_events(events: Sequence[Event], head: str | None = None) -> str:
    """Check every link and return the last hash; ``head`` must be the hash of an event."""
    return verify_chain(events, head, "service", "event")


def is_there(execute: Execute, name: str) -> bool:
    """Say whether a user is known and has never been revoked, by the table and by the history."""
    known = one(
        execute,
        "SELECT 1 FROM service_users u WHERE u.name = ? AND u.revoked = 0 AND NOT EXISTS "
        "(SELECT 1 FROM service_events e WHERE e.kind = ? AND e.subject = u.name)",
        name, REVOKED,
    )  # fmt: skip
    return known is not None


def are_two_persons(execute: Execute, names: Collection[str]) -> bool:
    """Say whether two of these curators are certainly two persons.

    Who issues an account or a token of a curator has seen its secret and can act in that name, and
    so can whoever can act in the issuer's. Two curators are two persons if nobody can act for
    both. What was issued on the machine itself was issued by no curator.
    """
    found = execute("SELECT name FROM service_users WHERE role = 'curator'", ()).rows
    curators = {str(name) for (name,) in found}
    issuers: dict[str, set[str]] = {}
    issued = "FROM service_events WHERE kind IN ('user', 'token')"
    for event in read_rows(execute, Event, issued):
        owner = event.subject if event.kind == "user" else str(json.loads(event.body)["owner"])
        if owner in curators and event.actor in curators:
            issuers.setdefault(owner, set()).add(event.actor)
    hands = [_can_act_for(name, issuers) for name in dict.fromkeys(names)]
    return any(first.isdisjoint(second) for first, second in combinations(hands, 2))


def _can_act_for(name: str, issuers: Mapping[str, set[str]]) -> set[str]:
    """Return a curator with all who issued to this curator, or to one of them."""
    found, fresh = {name}, {name}
    while fresh:
        fresh = {issuer for one_of_them in fresh for issuer in issuers.get(one_of_them, ())} - found
        found |= fresh
    return found
