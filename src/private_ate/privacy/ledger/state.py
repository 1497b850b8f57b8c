"""Balances and bindings beside the history: the tables agree with the chain before each charge.

Every entry that changes a balance or a binding records the hash of all of them after it. Before
a charge the tables must have that hash, and the entries from there to the end of the chain must
link up: a balance that was reset by hand is refused when it is charged, at a cost that does not
grow with the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from private_ate.errors import LedgerError
from private_ate.privacy.ledger.binding import read_body, replay_binding, same_binding
from private_ate.privacy.ledger.chain import Entry, digest, replay_accounts, verify_links
from private_ate.privacy.ledger.store import Execute, read_accounts, read_entries, read_tail

__all__ = ["require_intact", "require_replayed", "state_of"]


def state_of(execute: Execute) -> str:
    """Return the hash of all balances and bindings."""
    accounts = sorted(
        (
            account.dataset, account.analyst, account.total.epsilon, account.total.delta,
            account.spent.epsilon, account.spent.delta,
        )
        for account in read_accounts(execute)
    )  # fmt: skip
    return digest([accounts, sorted(_bindings(execute))])


def require_intact(execute: Execute) -> None:
    """Refuse a ledger whose balances or bindings are not those of the end of its chain.

    A history whose last such entry records no hash was written by version 0.1: it is added up
    from its beginning, once, because the next charge records one.
    """
    tail = read_tail(execute)
    verify_links(tail)
    recorded = read_body(tail[0].body).get("state") if tail else None
    if recorded is None:
        require_replayed(execute, read_entries(execute))
    elif recorded != state_of(execute):
        _differ("balances or bindings")


def require_replayed(execute: Execute, entries: Sequence[Entry]) -> None:
    """Add a history up again and compare with every balance and binding."""
    kept = {(account.dataset, account.analyst): account for account in read_accounts(execute)}
    if kept != replay_accounts(entries):
        _differ("balances")
    bindings = dict(_bindings(execute))
    of_dataset: dict[str, list[Entry]] = {}
    for entry in entries:
        of_dataset.setdefault(entry.dataset, []).append(entry)
    if set(bindings) != set(of_dataset) or not all(
        same_binding(body, replay_binding(of_dataset[name])) for name, body in bindings.items()
    ):
        _differ("bindings")


def _bindings(execute: Execute) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in execute("SELECT dataset, body FROM bindings", ()).rows]


def _differ(what: str) -> NoReturn:
    msg = (
        f"the ledger's {what} differ from what its history adds up to: it was altered, and "
        "nothing can be charged to it; restore it from a backup that verifies"
    )
    raise LedgerError(msg)
