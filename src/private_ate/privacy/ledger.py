"""The budget ledger: charge before computing, store after, never forget either.

A ledger holds data sets with a total budget and an append-only history. One transaction checks
what is left, takes the cost and writes the entry, so two processes cannot both spend the last ε
and a crash afterwards loses budget, never the guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from private_ate.errors import ArgumentError, BudgetError, LedgerError
from private_ate.privacy.cost import NOTHING, Amount, Cost
from private_ate.privacy.ledger_binding import Binding, Charge, replay_bindings
from private_ate.privacy.ledger_chain import (
    Account,
    Entry,
    EntryKind,
    replay_accounts,
    verify_chain,
)
from private_ate.privacy.ledger_store import (
    TABLES,
    Execute,
    Store,
    append,
    find_entry,
    last_hash,
    read_accounts,
    read_entries,
    store_for,
)

__all__ = ["Binding", "Charge", "Ledger", "Receipt", "Verification", "check_name"]

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a charge: the hash of its entry and what the data set has left."""

    head: str
    left: Cost


@dataclass(frozen=True, slots=True)
class Verification:
    """A history that verifies: how many entries it has and its last hash."""

    entries: int
    head: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """Budgets of data sets, in a SQLite file or a PostgreSQL database.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(pathlib.Path(folder) / "budget.db", "trial", epsilon="1.0")
    ...     print(ledger.accounts()[0].left)
    ...     ledger.close()
    ε = 1
    """

    _store: Store

    @classmethod
    def open(cls, location: str | Path) -> Self:
        """Open a ledger that exists: the path of a file or a ``postgresql://`` URL."""
        ledger = cls(store_for(location, must_exist=True))
        try:
            ledger.accounts()
        except LedgerError:
            ledger.close()
            raise
        return ledger

    @classmethod
    def create(
        cls,
        location: str | Path,
        dataset: str,
        *,
        epsilon: Amount,
        delta: Amount = 0,
        caps: Mapping[str, Amount] | None = None,
        binding: Binding | None = None,
    ) -> Self:
        """Add a data set with its total budget, making the ledger if there is none.

        ``caps`` are smaller totals of ε per analyst, below the data set's; an analyst without a
        cap may spend all of it. A binding can be given now; otherwise the first use sets it.
        """
        name = check_name("dataset", dataset)
        total = Cost.limit(epsilon, delta)
        limits = {
            check_name("analyst", analyst): Cost.limit(cap, delta)
            for analyst, cap in (caps or {}).items()
        }
        if any(not limit.fits(total) for limit in limits.values()):
            msg = f"an analyst's cap is at most the data set's budget, {total}"
            raise ArgumentError(msg)
        ledger = cls(store_for(location, must_exist=False))
        body = (binding or Binding()).text
        try:
            ledger._store.initialize(TABLES)
            with ledger._store.transaction() as execute:
                _require_new(execute, name)
                _grant(execute, "create", name, "", total, body)
                execute("INSERT INTO bindings (dataset, body) VALUES (?, ?)", (name, body))
                for analyst, limit in limits.items():
                    _grant(execute, "cap", name, analyst, limit, "")
        except LedgerError:
            ledger.close()
            raise
        return ledger

    def stored(self, charge: Charge) -> str | None:
        """Return the stored release of a request that was answered before, or None.

        A request that was charged but has no release is refused: it is still running, or it was
        interrupted and its budget is lost.
        """
        with self._store.snapshot() as execute:
            charged = find_entry(execute, charge.dataset, charge.request, "charge")
            stored = find_entry(execute, charge.dataset, charge.request, "release")
        if charged is None:
            return None
        if charged.plan != charge.plan or charged.analyst != charge.analyst:
            msg = (
                f"request {charge.request!r} was made before with other parameters; "
                "use a new request id"
            )
            raise LedgerError(msg)
        if stored is None:
            msg = (
                f"request {charge.request!r} was charged {charged.cost} but has no release: it is "
                "still running or was interrupted; what it cost stays spent, use a new request id"
            )
            raise BudgetError(msg)
        return stored.body

    def check(self, charge: Charge) -> None:
        """Say now what :meth:`spend` would refuse; spends nothing and promises nothing."""
        with self._store.snapshot() as execute:
            accounts = _accounts_of(execute, charge)
            _bound(execute, charge)
        for account in accounts:
            if not (account.spent + charge.cost).fits(account.total):
                raise _refusal(charge, account)

    def spend(self, charge: Charge) -> Receipt:
        """Take the cost and write the entry, or refuse, in one durable transaction."""
        with self._store.transaction() as execute:
            accounts = _accounts_of(execute, charge)
            if find_entry(execute, charge.dataset, charge.request, "charge") is not None:
                msg = f"request {charge.request!r} was charged already; use a new request id"
                raise BudgetError(msg)
            merged = _bound(execute, charge)
            for account in accounts:
                if not _take(execute, account, charge.cost):
                    raise _refusal(charge, account)
            execute("UPDATE bindings SET body = ? WHERE dataset = ?", (merged, charge.dataset))
            head = _write(execute, "charge", charge, charge.binding.text)
        return Receipt(head, accounts[0].left - charge.cost)

    def store(self, charge: Charge, release: str) -> str:
        """Keep the release of a charged request; return the new end of the chain."""
        with self._store.transaction() as execute:
            charged = find_entry(execute, charge.dataset, charge.request, "charge")
            if charged is None or charged.plan != charge.plan:
                msg = f"request {charge.request!r} was never charged; nothing is stored"
                raise LedgerError(msg)
            return _write(execute, "release", charge, release, free=True)

    def accounts(self, dataset: str | None = None) -> list[Account]:
        """Return what each data set, and each capped analyst in it, has spent and has left."""
        with self._store.snapshot() as execute:
            return read_accounts(execute, dataset)

    def history(self, dataset: str | None = None) -> list[Entry]:
        """Return the entries in order, of all data sets or of one."""
        with self._store.snapshot() as execute:
            return read_entries(execute, dataset)

    def verify(self, head: str | None = None) -> Verification:
        """Check every entry and every balance; with ``head``, also that the end is not cut off.

        ``head`` is the hash that a release carries; it must be part of the chain.
        """
        with self._store.snapshot() as execute:
            entries = read_entries(execute)
            kept = {
                (account.dataset, account.analyst): account for account in read_accounts(execute)
            }
            bindings = execute("SELECT dataset, body FROM bindings", ()).rows
        last = verify_chain(entries, head)
        if kept != replay_accounts(entries):
            msg = "the ledger's balances differ from what its history adds up to"
            raise LedgerError(msg)
        if dict(bindings) != replay_bindings(entries):
            msg = "the ledger's bindings differ from what its history says"
            raise LedgerError(msg)
        return Verification(len(entries), last)

    def close(self) -> None:
        """Close the file or the connection."""
        self._store.close()


def check_name(role: str, name: object) -> str:
    """Return a name that can be printed and kept: 1 to 200 characters on one line."""
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        msg = f"the {role} is named by a printable text of 1 to {_LONGEST_NAME} characters"
        raise ArgumentError(msg)
    return name


def _require_new(execute: Execute, dataset: str) -> None:
    if read_accounts(execute, dataset):
        msg = f"the ledger has a data set {dataset!r} already; budgets are never raised"
        raise LedgerError(msg)


def _grant(
    execute: Execute, kind: EntryKind, dataset: str, analyst: str, limit: Cost, body: str
) -> None:
    _write(execute, kind, Charge(dataset, analyst, "", limit, analyst), body)
    execute(
        "INSERT INTO accounts (dataset, analyst, epsilon_total, delta_total, epsilon_spent, "
        "delta_spent) VALUES (?, ?, ?, ?, 0, 0)",
        (dataset, analyst, limit.epsilon, limit.delta),
    )


def _accounts_of(execute: Execute, charge: Charge) -> list[Account]:
    """Return the data set's account and, where there is one, the analyst's cap."""
    accounts = read_accounts(execute)
    named = [account for account in accounts if account.dataset == charge.dataset]
    if not named:
        known = ", ".join(repr(account.dataset) for account in accounts if not account.analyst)
        msg = f"the ledger has no data set {charge.dataset!r}; it has {known or 'none'}"
        raise LedgerError(msg)
    return [account for account in named if account.analyst in {"", charge.analyst}]


def _bound(execute: Execute, charge: Charge) -> str:
    rows = execute("SELECT body FROM bindings WHERE dataset = ?", (charge.dataset,)).rows
    return Binding.read(rows[0][0]).merge(charge.binding, charge.dataset).text


def _take(execute: Execute, account: Account, cost: Cost) -> bool:
    """Spend if it fits; the condition is part of the update."""
    answer = execute(
        "UPDATE accounts SET epsilon_spent = epsilon_spent + ?, delta_spent = delta_spent + ? "
        "WHERE dataset = ? AND analyst = ? AND epsilon_spent + ? <= epsilon_total "
        "AND delta_spent + ? <= delta_total",
        (cost.epsilon, cost.delta, account.dataset, account.analyst, cost.epsilon, cost.delta),
    )
    return answer.changed == 1


def _write(
    execute: Execute, kind: EntryKind, charge: Charge, body: str, *, free: bool = False
) -> str:
    sequence, previous = last_hash(execute)
    cost = NOTHING if free else charge.cost
    draft = Entry(
        sequence + 1, kind, charge.dataset, charge.request, charge.analyst, charge.plan,
        cost.epsilon, cost.delta, body, _now(), previous,
    )  # fmt: skip
    entry = replace(draft, hash=draft.seal())
    append(execute, entry)
    return entry.hash


def _refusal(charge: Charge, account: Account) -> BudgetError:
    whose = f"data set {account.dataset!r}"
    if account.analyst:
        whose = f"analyst {account.analyst!r} in {whose}"
    left = account.left
    advice = "ask for no more than that" if left.epsilon > 0 else "nothing more can be released"
    return BudgetError(
        f"asked for {charge.cost} but {whose} has {left} left of {account.total}; "
        f"{advice}, nothing was spent"
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
