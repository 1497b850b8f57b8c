"""Both histories, the ledger's and the service's: their published ends, and whether they verify.

A backup that is restored gives budget back, and its chains are valid. So a worker writes the newest
heads to a file of its own after each job, and neither process starts on a store that lacks them.
What the public sees is the ledger's history as far as its answers are visible.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from private_ate.errors import LedgerError
from private_ate.ledger.accounts import last_hash, read_entries
from private_ate.ledger.chain import Entry
from private_ate.ledger.ledger import Ledger
from private_ate.ledger.stores import Execute, Store, one
from private_ate.service.store.catalogue import list_datasets, list_populations
from private_ate.service.store.events import (
    CLOSED,
    REVOKED,
    Event,
    last_event,
    read_events,
    time_text,
    verify_events,
)
from private_ate.service.store.requests import list_requests, spent_of, state_of_events
from private_ate.service.store.users import list_users
from private_ate.service.vocabulary import FINAL, MOVES

_HOLDS: Final = 60_000  # milliseconds


@dataclass(frozen=True, slots=True)
class Head:
    """An end of the ledger's history: since when it is public, how many entries, the last hash."""

    at: str
    entries: int
    hash: str


def publish_heads(store: Store, path: Path) -> None:
    """Append the newest heads to a file, durably."""
    with store.snapshot() as execute:
        entries, head = last_hash(execute)
        events, event = last_event(execute)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    line = {"at": at, "entries": entries, "head": head, "events": events, "event": event}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
        file.flush()
        os.fsync(file.fileno())


def require_heads(store: Store, path: Path) -> None:
    """Refuse a store that does not hold the newest published heads; without a file, any will do."""
    if not path.is_file():
        return
    lines = path.read_text("utf-8").splitlines()
    try:
        newest = json.loads(lines[-1]) if lines else None
    except ValueError:  # a line that was cut by a power failure; the one before is whole
        newest = json.loads(lines[-2]) if len(lines) > 1 else None
    if newest is None:
        return
    with store.snapshot() as execute:
        found = (
            newest["entries"] == 0
            or one(execute, "SELECT 1 FROM entries WHERE hash = ?", newest["head"]),
            newest["events"] == 0
            or one(execute, "SELECT 1 FROM service_events WHERE hash = ?", newest["event"]),
        )
    if not all(found):
        msg = (
            f"the database lacks the head that was published at {newest['at']}: it is an older "
            "copy, whose budget was spent since; restore the newest one"
        )
        raise LedgerError(msg)


def first_hidden(execute: Execute, moment: int) -> int:
    """Return the number of the ledger's first entry that is not public yet, or one after all."""
    found = one(
        execute,
        "SELECT MIN(e.sequence) FROM entries e JOIN service_requests r ON r.id = e.request "
        "WHERE e.kind IN ('charge', 'release') AND NOT "
        "(r.state IN ('done', 'lost', 'refused', 'cancelled') AND r.visible <= ?)",
        moment,
    )
    return 1 << 60 if found is None or found[0] is None else int(found[0])


def visible_heads(store: Store, moment: int, last: int = 100) -> list[Head]:
    """Return the newest heads of the part of the ledger whose answers are visible.

    The part ends before the first entry of a request that is not visible yet: an entry's place
    would show how far the work has come.
    """
    with store.snapshot() as execute:
        end = first_hidden(execute, moment)
        rows = execute(
            "SELECT e.sequence, e.hash, e.at, r.visible FROM entries e "
            "LEFT JOIN service_requests r ON r.id = e.request AND e.kind IN ('charge', 'release') "
            "WHERE e.sequence < ? ORDER BY e.sequence DESC LIMIT ?",
            (end, last),
        ).rows
    return [
        Head(time_text(visible) if visible else at, number, hash_)
        for number, hash_, at, visible in rows
    ]


def holds_head(store: Store, head: str, entries: int) -> bool:
    """Say whether one of the first entries has this hash."""
    with store.snapshot() as execute:
        found = one(
            execute, "SELECT 1 FROM entries WHERE hash = ? AND sequence <= ?", head, entries
        )
    return found is not None


@dataclass(frozen=True, slots=True)
class Check:
    """How both histories were found, and when; ``problem`` is empty if they verify."""

    events: int
    problem: str
    at: int


@dataclass(slots=True)
class RecentCheck:
    """Makes checks of a store, and remembers the last."""

    store: Store
    clock: Callable[[], int]
    _last: Check | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def newest(self) -> Check:
        """Return a check that is a minute old at most."""
        with self._lock:  # one at a time: who comes meanwhile gets the same
            moment, known = self.clock(), self._last
            if known is None or not 0 <= moment - known.at < _HOLDS:
                known = self._last = self._check(moment)
            return known

    def _check(self, moment: int) -> Check:
        with self.store.snapshot() as execute:
            events = read_events(execute)
        try:
            Ledger(self.store).verify()
            verify_events(events)
        except LedgerError as error:
            return Check(len(events), str(error), moment)
        return Check(len(events), "", moment)


@dataclass(frozen=True, slots=True)
class Found:
    """What verified: how much of it, and the end of the ledger."""

    entries: int
    head: str
    events: int
    requests: int


def verify_service(store: Store, head: str | None = None) -> Found:
    """Check everything that the store claims; an error says what does not hold."""
    checked = Ledger(store).verify(head)
    with store.snapshot() as execute:
        events = read_events(execute)
        verify_events(events)
        rows = list_requests(execute, last=1 << 40)
        undone = {(CLOSED, item.name) for item in list_datasets(execute) if not item.closed}
        undone |= {(REVOKED, item.name) for item in list_users(execute, 0) if not item.revoked}
        overspent = [
            item.name
            for item in list_populations(execute)
            if not spent_of(execute, item.name).fits(item.total)
        ]
        # Of the same moment as the rows: workers may go on meanwhile.
        entries: dict[tuple[str, str], Entry] = {
            (entry.kind, entry.request): entry for entry in read_entries(execute)
        }
    for name in overspent:
        _differs(f"population {name!r} has spent more than its budget")
    about: dict[str, list[Event]] = {}
    for event in events:
        about.setdefault(event.subject, []).append(event)
        if (event.kind, event.subject) in undone:
            _differs(f"of {event.subject!r} the history says {event.kind!r}, and it was undone")
    for row in rows:
        charge, release = entries.get(("charge", row.id)), entries.get(("release", row.id))
        paid = row.state in ("charged", "done", "lost") and not row.dummy
        if paid != (charge is not None) or (release is not None) != (paid and row.state == "done"):
            _differs(f"request {row.id} is {row.state}, which the ledger does not bear out")
        if charge is not None and charge.plan != row.plan:
            _differs(f"request {row.id} was charged for another plan than was approved")
        # A worker's steps may not be public yet.
        last = state_of_events(about.get(row.id, []))
        is_hidden = last == "queued" and bool(row.claim) and row.state in MOVES["queued"] | FINAL
        if last != row.state and not is_hidden:
            _differs(f"request {row.id} is {row.state}, and its history says {last or 'nothing'}")
    return Found(checked.entries, checked.head, len(events), len(rows))


def _differs(what: str) -> NoReturn:
    msg = f"the service's tables and its histories differ: {what}"
    raise LedgerError(msg)
