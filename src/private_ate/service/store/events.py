"""The service's history: who did what, in a chain like the ledger's.

The ledger records what was spent; events record who approved it, who held which token,
what became of a request. They carry no secret and no record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from private_ate.errors import LedgerError
from private_ate.ledger.chain import GENESIS, canonical, digest
from private_ate.ledger.store import Execute

__all__ = [
    "Event",
    "events_about",
    "last_event",
    "read_events",
    "time_text",
    "verify_events",
    "write_event",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the history: ``actor`` did something of a ``kind`` to a ``subject``."""

    sequence: int
    kind: str
    subject: str
    actor: str
    body: str
    at: str
    previous: str
    hash: str = ""

    def seal(self) -> str:
        """Return the hash that the event must carry."""
        content = [getattr(self, field.name) for field in fields(self) if field.name != "hash"]
        return digest(content)


_NAMES = ", ".join(field.name for field in fields(Event))
_PLACES = ", ".join("?" for _ in fields(Event))


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
    event = replace(draft, hash=draft.seal())
    execute(
        f"INSERT INTO service_events ({_NAMES}) VALUES ({_PLACES})",  # noqa: S608  # constants
        [getattr(event, field.name) for field in fields(Event)],
    )


def last_event(execute: Execute) -> tuple[int, str]:
    """Return the number and the hash of the last event."""
    rows = execute(
        "SELECT sequence, hash FROM service_events ORDER BY sequence DESC LIMIT 1", ()
    ).rows
    return (int(rows[0][0]), str(rows[0][1])) if rows else (0, GENESIS)


def read_events(execute: Execute, last: int | None = None, skip: int = 0) -> list[Event]:
    """Return the history in order: all of it, or its last entries but those to skip."""
    end = last_event(execute)[0] - skip
    after = 0 if last is None else end - last
    rows = execute(
        f"SELECT {_NAMES} FROM service_events "  # noqa: S608  # constants
        "WHERE sequence > ? AND sequence <= ? ORDER BY sequence",
        (after, end),
    ).rows
    return [Event(*row) for row in rows]


def events_about(execute: Execute, subject: str) -> list[Event]:
    """Return what happened to one subject, in order."""
    rows = execute(
        f"SELECT {_NAMES} FROM service_events WHERE subject = ? ORDER BY sequence",  # noqa: S608  # constants
        (subject,),
    ).rows
    return [Event(*row) for row in rows]


def verify_events(events: Sequence[Event], head: str | None = None) -> str:
    """Check every link and return the last hash; ``head`` must be the hash of an event."""
    for place, (event, previous) in enumerate(zip(events, _previous(events), strict=True), 1):
        if event.sequence != place or event.previous != previous or event.seal() != event.hash:
            msg = f"the service's history does not verify at event {place}: it was altered"
            raise LedgerError(msg)
    if head is not None and head not in {event.hash for event in events}:
        msg = f"no event has the hash {head[:64]!r}: the end of the history is missing"
        raise LedgerError(msg)
    return events[-1].hash if events else GENESIS


def _previous(events: Sequence[Event]) -> Iterator[str]:
    yield from (GENESIS, *(event.hash for event in events[:-1]))[: len(events)]
