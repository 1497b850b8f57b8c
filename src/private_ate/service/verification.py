"""Checks a whole service: both chains, the budgets, and that every state is the ledger's word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from private_ate.errors import LedgerError
from private_ate.privacy.ledger.chain import Entry
from private_ate.privacy.ledger.cost import NOTHING, BudgetUnits
from private_ate.privacy.ledger.ledger import Ledger
from private_ate.privacy.ledger.store import Store
from private_ate.service.store.catalogue import list_datasets, list_populations
from private_ate.service.store.events import read_events, verify_events
from private_ate.service.store.requests import RequestRow, list_requests

__all__ = ["Found", "verify_service"]


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
    ledger = Ledger(store)
    checked = ledger.verify(head)
    with store.snapshot() as execute:
        events = read_events(execute)
        end = verify_events(events)
        rows = list_requests(execute, last=1 << 40)
        members = {item.name: item.population for item in list_datasets(execute)}
        totals = {item.name: item.total for item in list_populations(execute)}
    spent: dict[str, BudgetUnits] = dict.fromkeys(totals, NOTHING)
    entries: dict[tuple[str, str], Entry] = {
        (entry.kind, entry.request): entry for entry in ledger.history()
    }
    for (kind, _), entry in entries.items():
        if kind == "charge" and entry.dataset in members:
            population = members[entry.dataset]
            spent[population] += entry.cost
    for name, amount in spent.items():
        if not amount.fits(totals[name]):
            _differs(f"population {name!r} has spent more than its budget")
    for row in rows:
        _check_request(row, entries)
    return Found(checked.entries, checked.head, len(events), end, len(rows))


def _check_request(row: RequestRow, entries: dict[tuple[str, str], Entry]) -> None:
    """Compare a request's state with what the ledger holds of it."""
    charge, release = entries.get(("charge", row.id)), entries.get(("release", row.id))
    paid = row.state in ("charged", "done", "lost") and not row.dummy
    if paid != (charge is not None) or (release is not None) != (paid and row.state == "done"):
        _differs(f"request {row.id} is {row.state}, which the ledger does not bear out")
    if charge is not None and charge.plan != row.plan:
        _differs(f"request {row.id} was charged for another plan than was approved")


def _differs(what: str) -> NoReturn:
    msg = f"the service's tables and its ledger differ: {what}"
    raise LedgerError(msg)
