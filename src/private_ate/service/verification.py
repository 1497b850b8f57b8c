"""Checks of a service's records: hash chains, budgets, and each request's state in the ledger.

A check reads everything, which takes longer the longer a history is. Pages show one that is a
minute old at most. It is never repeated because a history grew: its time would show, before an
answer is visible, how far the work has come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from private_ate.errors import LedgerError
from private_ate.ledger.chain import Entry
from private_ate.ledger.cost import NOTHING, BudgetUnits
from private_ate.ledger.ledger import Ledger
from private_ate.ledger.store import Store, read_entries
from private_ate.service.store.catalogue import list_datasets, list_populations
from private_ate.service.store.events import CLOSED, REVOKED, Event, read_events, verify_events
from private_ate.service.store.request_states import FINAL, MOVES
from private_ate.service.store.requests import RequestRow, list_requests, state_of_events
from private_ate.service.store.users import list_users


@dataclass(frozen=True, slots=True)
class Found:
    """What verified: how much of it, and the ends of both chains."""

    entries: int
    head: str
    events: int
    event_head: str
    requests: int


def verify_service(store: Store, head: str | None = None) -> Found:
    """Check everything that the store claims; an error says what does not hold."""
    checked = Ledger(store).verify(head)
    with store.snapshot() as execute:
        events = read_events(execute)
        end = verify_events(events)
        rows = list_requests(execute, last=1 << 40)
        datasets = list_datasets(execute)
        members = {item.name: item.population for item in datasets}
        open_ones = {(CLOSED, item.name) for item in datasets if not item.closed}
        there = {(REVOKED, item.name) for item in list_users(execute, 0) if not item.revoked}
        totals = {item.name: item.total for item in list_populations(execute)}
        # Of the same moment as the rows: workers may go on meanwhile.
        entries: dict[tuple[str, str], Entry] = {
            (entry.kind, entry.request): entry for entry in read_entries(execute)
        }
    spent: dict[str, BudgetUnits] = dict.fromkeys(totals, NOTHING)
    for (kind, _), entry in entries.items():
        if kind == "charge" and entry.dataset in members:
            population = members[entry.dataset]
            spent[population] += entry.cost
    for name, amount in spent.items():
        if not amount.fits(totals[name]):
            _differs(f"population {name!r} has spent more than its budget")
    about: dict[str, list[Event]] = {}
    for event in events:
        about.setdefault(event.subject, []).append(event)
        if (event.kind, event.subject) in open_ones | there:
            _differs(f"of {event.subject!r} the history says {event.kind!r}, and it was undone")
    for row in rows:
        _check_request(row, entries)
        _check_history(row, about.get(row.id, []))
    return Found(checked.entries, checked.head, len(events), end, len(rows))


def _check_request(row: RequestRow, entries: dict[tuple[str, str], Entry]) -> None:
    """Compare a request's state with what the ledger holds of it."""
    charge, release = entries.get(("charge", row.id)), entries.get(("release", row.id))
    paid = row.state in ("charged", "done", "lost") and not row.dummy
    if paid != (charge is not None) or (release is not None) != (paid and row.state == "done"):
        _differs(f"request {row.id} is {row.state}, which the ledger does not bear out")
    if charge is not None and charge.plan != row.plan:
        _differs(f"request {row.id} was charged for another plan than was approved")


def _check_history(row: RequestRow, events: list[Event]) -> None:
    """Compare a request's state with its events; a worker's steps may not be public yet."""
    last = state_of_events(events)
    is_hidden = last == "queued" and bool(row.claim) and row.state in MOVES["queued"] | FINAL
    if last != row.state and not is_hidden:
        _differs(f"request {row.id} is {row.state}, and its history says {last or 'nothing'}")


def _differs(what: str) -> NoReturn:
    msg = f"the service's tables and its histories differ: {what}"
    raise LedgerError(msg)
