"""The ledger's tables, who pays for a request, and that balances agree with the history.

Every entry that changes a balance or a binding records the hash of all of them after it. Before
a charge the tables must have that hash, and the entries from there to the end of the chain must
link up: a balance that was reset by hand is refused when it is charged, at a cost that does not
grow with the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

from private_ate.arguments import fold_name
from private_ate.errors import BudgetError, LedgerError
from private_ate.ledger.binding import (
    Charge,
    Uncapped,
    read_body,
    replay_binding,
    same_binding,
)
from private_ate.ledger.chain import (
    GENESIS,
    Account,
    Entry,
    digest,
    replay_accounts,
    verify_chain,
)
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.stores import Execute, append_only, one, read_one, read_rows

TABLES: Final = (
    (
        "CREATE TABLE IF NOT EXISTS entries (sequence BIGINT PRIMARY KEY, kind TEXT NOT NULL, "
        "dataset TEXT NOT NULL, request TEXT NOT NULL, analyst TEXT NOT NULL, plan TEXT NOT NULL, "
        "epsilon BIGINT NOT NULL, delta BIGINT NOT NULL, body TEXT NOT NULL, at TEXT NOT NULL, "
        "previous TEXT NOT NULL UNIQUE, hash TEXT NOT NULL UNIQUE, "
        "UNIQUE (dataset, request, kind))"
    ),
    (
        "CREATE TABLE IF NOT EXISTS accounts (dataset TEXT NOT NULL, analyst TEXT NOT NULL, "
        "epsilon_total BIGINT NOT NULL, delta_total BIGINT NOT NULL, "
        "epsilon_spent BIGINT NOT NULL, delta_spent BIGINT NOT NULL, "
        "PRIMARY KEY (dataset, analyst), "
        "CHECK (epsilon_spent >= 0 AND epsilon_spent <= epsilon_total), "
        "CHECK (delta_spent >= 0 AND delta_spent <= delta_total))"
    ),
    "CREATE TABLE IF NOT EXISTS bindings (dataset TEXT PRIMARY KEY, body TEXT NOT NULL)",
)
GUARDS: Final = append_only("entries")


def last_hash(execute: Execute, table: str = "entries") -> tuple[int, str]:
    """Return the number and the hash of the last entry of a chain."""
    found = one(execute, f"SELECT sequence, hash FROM {table} ORDER BY sequence DESC LIMIT 1")  # noqa: S608  # a name of our own
    return (0, GENESIS) if found is None else (int(found[0]), str(found[1]))


def find_entry(execute: Execute, dataset: str, request: str, kind: str) -> Entry | None:
    """Return the entry of a kind that a request has made, if any."""
    rest = "FROM entries WHERE dataset = ? AND request = ? AND kind = ?"
    return read_one(execute, Entry, rest, dataset, request, kind)


def read_entries(execute: Execute, dataset: str | None = None) -> list[Entry]:
    """Return the history in order, of all data sets or of one."""
    if dataset is None:
        return read_rows(execute, Entry, "FROM entries ORDER BY sequence")
    rest = "FROM entries WHERE dataset = ? ORDER BY sequence"
    return read_rows(execute, Entry, rest, dataset)


def read_accounts(execute: Execute, dataset: str | None = None) -> list[Account]:
    """Return the balances: of each data set, then of the analysts capped in it."""
    rows = execute(
        "SELECT dataset, analyst, epsilon_total, delta_total, epsilon_spent, delta_spent "
        "FROM accounts ORDER BY dataset, analyst",
        (),
    ).rows
    return [
        Account(row[0], row[1], BudgetUnits(row[2], row[3]), BudgetUnits(row[4], row[5]))
        for row in rows
        if dataset is None or row[0] == dataset
    ]


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


def require_left(account: Account, cost: BudgetUnits) -> None:
    """Refuse what an account cannot pay: say what was asked, what is left and what to do."""
    if (account.spent + cost).fits(account.total):
        return
    whose = f"data set {account.dataset!r}"
    if account.analyst:
        whose = f"analyst {account.analyst!r} in {whose}"
    left = account.left
    advice = "ask for no more than that" if left.epsilon > 0 else "nothing more can be released"
    msg = (
        f"asked for {cost} but {whose} has {left} left of {account.total}; "
        f"{advice}, nothing was spent"
    )
    raise BudgetError(msg)


def take(execute: Execute, account: Account, cost: BudgetUnits) -> None:
    """Spend from an account that was read in this transaction; the table too refuses more."""
    require_left(account, cost)
    execute(
        "UPDATE accounts SET epsilon_spent = epsilon_spent + ?, delta_spent = delta_spent + ? "
        "WHERE dataset = ? AND analyst = ?",
        (cost.epsilon, cost.delta, account.dataset, account.analyst),
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
    tail = read_rows(
        execute, Entry,
        "FROM entries WHERE sequence >= "
        "(SELECT sequence FROM entries WHERE kind <> 'release' ORDER BY sequence DESC LIMIT 1) "
        "ORDER BY sequence",
    )  # fmt: skip
    recorded = None
    if tail:
        verify_chain(tail, is_whole=False)
        recorded = read_body(tail[0].body).get("state")
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
