"""Balances: who pays for a request, and that balances and bindings agree with the history.

Every entry that changes a balance or a binding records the hash of all of them after it. Before
a charge the tables must have that hash, and the entries from there to the end of the chain must
link up: a balance that was reset by hand is refused when it is charged, at a cost that does not
grow with the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from private_ate.errors import BudgetError, LedgerError
from private_ate.ledger.binding import (
    Charge,
    Uncapped,
    read_body,
    replay_binding,
    same_binding,
)
from private_ate.ledger.chain import Account, Entry, digest, replay_accounts, verify_links
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.names import fold_name
from private_ate.ledger.store import Execute, read_accounts, read_entries, read_tail


def accounts_of(execute: Execute, dataset: str) -> list[Account]:
    """Return the accounts of a data set, or say which data sets there are."""
    accounts = read_accounts(execute)
    named = [account for account in accounts if account.dataset == dataset]
    if not named:
        known = ", ".join(repr(account.dataset) for account in accounts if not account.analyst)
        msg = f"the ledger has no data set {dataset!r}; it has {known or 'none'}"
        raise LedgerError(msg)
    return named


def paying_accounts(
    accounts: list[Account], charge: Charge, uncapped: Uncapped | None
) -> list[Account]:
    """Return the data set's account and the analyst's cap; without one, as the ledger says.

    All spellings of a name share its cap. Where somebody has a cap, an analyst without one, or
    without a name, is refused unless ``uncapped`` is "allowed": else a cap would hold only those
    who like to be held.
    """
    whole = [account for account in accounts if not account.analyst]
    caps = [account for account in accounts if account.analyst]
    folded = fold_name(charge.analyst)
    same = [account for account in caps if fold_name(account.analyst) == folded]
    # A ledger of version 0.1 may hold two caps that fold alike; then the spelling decides.
    exact = [account for account in same if account.analyst == charge.analyst]
    cap = (exact or same)[:1]
    if cap or not caps or uncapped == "allowed":
        return [*whole, *cap]
    if not folded:
        msg = (
            f"analysts of data set {charge.dataset!r} have caps: say who asks (analyst=); "
            "nothing was spent"
        )
        raise BudgetError(msg, parameter="analyst")
    msg = (
        f"analyst {charge.analyst!r} has no cap in data set {charge.dataset!r}, where analysts "
        "are capped; nothing was spent (its holder may allow others)"
    )
    raise BudgetError(msg, parameter="uncapped")


def add_account(execute: Execute, dataset: str, analyst: str, limit: BudgetUnits) -> None:
    """Open an account with nothing spent."""
    execute(
        "INSERT INTO accounts (dataset, analyst, epsilon_total, delta_total, epsilon_spent, "
        "delta_spent) VALUES (?, ?, ?, ?, 0, 0)",
        (dataset, analyst, limit.epsilon, limit.delta),
    )


def take(execute: Execute, account: Account, cost: BudgetUnits) -> bool:
    """Spend if it fits; the condition is part of the update."""
    answer = execute(
        "UPDATE accounts SET epsilon_spent = epsilon_spent + ?, delta_spent = delta_spent + ? "
        "WHERE dataset = ? AND analyst = ? AND epsilon_spent + ? <= epsilon_total "
        "AND delta_spent + ? <= delta_total",
        (cost.epsilon, cost.delta, account.dataset, account.analyst, cost.epsilon, cost.delta),
    )
    return answer.changed == 1


def refusal(charge: Charge, account: Account) -> BudgetError:
    """Say what was asked, what is left and what to do."""
    whose = f"data set {account.dataset!r}"
    if account.analyst:
        whose = f"analyst {account.analyst!r} in {whose}"
    left = account.left
    advice = "ask for no more than that" if left.epsilon > 0 else "nothing more can be released"
    return BudgetError(
        f"asked for {charge.cost} but {whose} has {left} left of {account.total}; "
        f"{advice}, nothing was spent"
    )


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
