"""Events of workers: what they found of a data set's file, and their steps with a request.

A check of a file compares its header, its separator and its number of rows, which are public, with
what was declared. When a worker claims, charges and ends a request may depend on records, and so
does an event's place among others: these steps are written together, when the answer appears.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from private_ate.errors import LedgerError
from private_ate.ledger.store import Execute
from private_ate.service.store.catalogue import CLOSED, Dataset, list_datasets
from private_ate.service.store.events import Event, events_about, time_text, write_event
from private_ate.service.store.request_states import FINAL, MOVES, State
from private_ate.service.store.requests import RequestRow, find_request
from private_ate.service.store.tables import one, rows_of

__all__ = [
    "last_file_problem",
    "publish_steps",
    "require_queued",
    "state_of_events",
    "unavailable_since",
    "unchecked_datasets",
    "unpublished",
    "write_file_check",
]

_CHECK: Final = "look"  # the kind that stored histories have


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
    """Return requests that a worker ended, visible after ``since``, whose end no event states."""
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
        at = time_text(row.visible, "milliseconds")
        for kind, facts in _steps(row):
            if kind not in known:  # earlier versions wrote each step when it was made
                write_event(execute, kind, name, row.worker, facts, at=at)


def _steps(row: RequestRow) -> list[tuple[str, dict[str, str]]]:
    """Return the steps that a worker made with a request, and the facts of each."""
    paid = row.state in ("done", "lost") and not row.dummy
    charged = [("charged", {"plan": row.plan})] if paid else []
    why = {"why": row.code} if row.state == "refused" else {}
    return [("claim", {}), *charged, (row.state, why)]


def last_file_problem(execute: Execute, name: str) -> str | None:
    """Return what is wrong with a data set's file, empty if nothing; None if not looked at yet."""
    found = one(
        execute,
        "SELECT body FROM service_events WHERE kind = ? AND subject = ? "
        "ORDER BY sequence DESC LIMIT 1",
        _CHECK, name,
    )  # fmt: skip
    return None if found is None else str(json.loads(str(found[0]))["problem"])


def write_file_check(execute: Execute, name: str, worker: str, problem: str, began: int) -> None:
    """Keep what a worker found, if it is news, with the time at which its look began.

    How long a look takes follows from the file's length, which records decide.
    """
    if last_file_problem(execute, name) != problem:
        at = time_text(began, "milliseconds")
        write_event(execute, _CHECK, name, worker, {"problem": problem}, at=at)


def unavailable_since(execute: Execute, name: str, moment: int) -> str:
    """Say that the newest answer about a data set's records could not be given; empty if it could.

    Only what is visible at this moment counts, so that it shows no running time.
    """
    found = one(
        execute,
        "SELECT code FROM service_requests WHERE dataset = ? AND dummy = 0 AND visible > 0 "
        "AND visible <= ? AND state IN ('done', 'lost', 'refused') "
        "ORDER BY visible DESC, id LIMIT 1",
        name, moment,
    )  # fmt: skip
    codes = {"schema": "its columns", "ledger": "its file or its budget", "records": "its records"}
    about = codes.get("" if found is None else str(found[0]), "")
    return f"the last answer could not be given, because of {about}" if about else ""


def unchecked_datasets(execute: Execute) -> list[Dataset]:
    """Return the open data sets that no worker has found to be as declared."""
    return [
        found
        for found in list_datasets(execute)
        if not found.closed and last_file_problem(execute, found.name) != ""
    ]
