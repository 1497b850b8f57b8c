"""What the history says of a request, and the worker's steps, which enter it when they are public.

When a worker claims, charges and ends a request may depend on records, and so does an event's place
among others. So these steps are written together, with the time at which the answer appears.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from private_ate.errors import LedgerError
from private_ate.privacy.ledger.store import Execute
from private_ate.service.store.catalogue import CLOSED
from private_ate.service.store.events import Event, events_about, write_event
from private_ate.service.store.requests import RequestRow, find_request
from private_ate.service.store.states import FINAL, MOVES, State
from private_ate.service.store.tables import rows_of

__all__ = ["publish_steps", "require_queued", "state_of_events", "unpublished"]


def state_of_events(events: Iterable[Event]) -> State | None:
    """Return the state to which a request's events lead, None if there are none.

    Events that no request can have one after the other are an error.
    """
    state: State | None = None
    for event in events:
        if event.kind not in MOVES:
            continue
        if state is not None and event.kind not in MOVES[state]:
            msg = f"the history says that request {event.subject} was {event.kind} after {state}"
            raise LedgerError(msg)
        state = event.kind
    return state


def require_queued(execute: Execute, name: str, dataset: str) -> None:
    """Refuse a request of which the history does not say that it is queued, and was in time.

    A table can be changed by whoever took over a process that writes it; events are never changed.
    """
    events = [event for event in events_about(execute, name) if event.kind in MOVES]
    if any(event.seal() != event.hash for event in events) or state_of_events(events) != "queued":
        msg = f"the history does not say that request {name} is queued; nothing was spent"
        raise LedgerError(msg)
    closed = [event for event in events_about(execute, dataset) if event.kind == CLOSED]
    if closed and closed[0].sequence < events[0].sequence:
        msg = f"request {name} was made after its data set was closed; nothing was spent"
        raise LedgerError(msg)


def unpublished(execute: Execute, since: int, moment: int) -> list[str]:
    """Return requests that a worker ended, visible after ``since``, whose end no event tells."""
    ends = ", ".join(f"'{state}'" for state in sorted(FINAL))
    found = rows_of(
        execute,
        "SELECT r.id FROM service_requests r WHERE r.claim <> '' AND r.visible > ? "  # noqa: S608
        f"AND r.visible <= ? AND r.state IN ({ends}) AND NOT EXISTS (SELECT 1 FROM service_events "
        "e WHERE e.subject = r.id AND e.kind = r.state) ORDER BY r.visible, r.id",
        since, moment,
    )  # fmt: skip
    return [str(name) for (name,) in found]


def publish_steps(execute: Execute, since: int, moment: int) -> None:
    """Write the worker's steps of requests that are visible now and were not a moment ago."""
    for name in unpublished(execute, since, moment):
        row = find_request(execute, name)
        known = {event.kind for event in events_about(execute, name)}
        at = datetime.fromtimestamp(row.visible / 1000, UTC).isoformat(timespec="milliseconds")
        for kind, facts in _steps(row):
            if kind not in known:  # earlier versions wrote each step when it was made
                write_event(execute, kind, name, row.worker, facts, at=at)


def _steps(row: RequestRow) -> list[tuple[str, dict[str, str]]]:
    """Return the steps that a worker made with a request, and what is told of each."""
    paid = row.state in ("done", "lost") and not row.dummy
    charged = [("charged", {"plan": row.plan})] if paid else []
    why = {"why": row.code} if row.state == "refused" else {}
    return [("claim", {}), *charged, (row.state, why)]
