"""The budget ledger: charge before computing, store after, never forget either.

A ledger holds data sets with a total budget and an append-only history. One transaction checks
what is left and which columns are public, takes the cost and writes the entry, so two processes
cannot both spend the last ε and a crash afterwards loses budget, never the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, get_args

from private_ate.arguments import check_analyst, check_name, fold_name
from private_ate.codec import encode
from private_ate.errors import ArgumentError, BudgetError, LedgerError
from private_ate.ledger.accounts import (
    GUARDS,
    TABLES,
    accounts_of,
    find_entry,
    last_hash,
    paying_accounts,
    read_accounts,
    read_entries,
    require_intact,
    require_left,
    require_replayed,
    state_of,
    take,
)
from private_ate.ledger.binding import Binding, Charge, Uncapped, replay_binding
from private_ate.ledger.chain import (
    Account,
    Entry,
    EntryKind,
    canonical,
    find_stored,
    require_stored,
    verify_chain,
)
from private_ate.ledger.cost import NOTHING, Amount, BudgetUnits
from private_ate.ledger.roles import UNBOUND, Roles, declared_gaps, declared_roles
from private_ate.ledger.stores import Execute, Store, insert, store_for, update, write_row
from private_ate.privacy.levels import Level, has_public_covariates

Also = Callable[[Execute], None]  # what is done in the same transaction as a charge


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of a charge: the hash of its entry and what the data set has left."""

    head: str
    left: BudgetUnits


@dataclass(frozen=True, slots=True)
class Verification:
    """A history that verifies: how many entries it has and its last hash.

    ``stored`` is the entry that holds the release that was asked about.
    """

    entries: int
    head: str
    stored: Entry | None = None


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
    def create(  # noqa: PLR0913  # one keyword per decision about a data set
        cls,
        location: str | Path,
        dataset: str,
        *,
        epsilon: Amount,
        delta: Amount = 0,
        caps: Mapping[str, Amount] | None = None,
        uncapped: Uncapped | None = None,
        level: Level | None = None,
        public: Collection[str] | None = None,
        rows_per_person: int | None = None,
        public_gaps: Collection[str] | None = None,
        binding: Binding | None = None,
    ) -> Self:
        """Add a data set with its total budget, making the ledger if there is none.

        Parameters
        ----------
        location, dataset
            The ledger's file or ``postgresql://`` URL, and the name of the new data set.
        epsilon, delta
            The total budget; never raised afterwards.
        caps : mapping of analyst to ε, optional
            Smaller totals per analyst, below the data set's. All spellings of a name share a cap.
        uncapped : "refused" or "allowed", optional
            Whether analysts without a cap may spend where others have one; refused unless said.
        level : "label" or "sample", optional
            What the total protects. Left out, the first use decides, and with it which columns
            are public.
        public : list of text, optional
            At label level the public columns: treatments and covariates. All others are private.
        rows_per_person : int, optional
            How many rows one person may have; 1 if only the level is given.
        public_gaps : list of text, optional
            At label level the private columns of which anybody may know who lacks a value. With
            the level given, none but these and those that ``binding`` declares so.
        binding : Binding, optional
            Kinds of columns and declared bounds; what is left out is set by the first use.
        """
        name = check_name("dataset", dataset)
        total = BudgetUnits.limit(epsilon, delta)
        limits = _limits(caps or {}, delta, total)
        wanted = binding or Binding()
        said = declared_roles(level, public, rows_per_person, public_gaps)
        bound = replace(
            wanted.declare(_with_declared_gaps(said, wanted), name), uncapped=_uncapped(uncapped)
        )
        ledger = cls(store_for(location, must_exist=False))
        try:
            ledger._store.initialize(TABLES, GUARDS)
            with ledger._store.transaction() as execute:
                grant_dataset(execute, name, total, bound, limits)
        except LedgerError:
            ledger.close()
            raise
        return ledger

    def bind(
        self,
        dataset: str,
        *,
        level: Level | None = None,
        public: Collection[str] | None = None,
        rows_per_person: int | None = None,
        public_gaps: Collection[str] | None = None,
        uncapped: Uncapped | None = None,
    ) -> Roles:
        """Say now what :meth:`create` left open; what was said or used before stays.

        For data sets that were not used yet, and for those that version 0.1 wrote whose history
        does not distinguish outcomes from covariates. Gaps of a private column can be named as
        long as nothing declares them otherwise.
        """
        wanted = declared_roles(level, public, rows_per_person, public_gaps)
        with self._store.transaction() as execute:
            accounts_of(execute, dataset)
            require_intact(execute)
            known = _bound(execute, dataset)
            said = wanted
            if (known.roles or UNBOUND).level is None:
                said = _with_declared_gaps(wanted, known)
            bound = known.declare(said, dataset)
            if None not in (known.uncapped, uncapped) and known.uncapped != uncapped:
                msg = f"in data set {dataset!r} analysts without a cap are {known.uncapped} already"
                raise LedgerError(msg)
            chosen = known.uncapped or _uncapped(uncapped)
            text = replace(bound, uncapped=chosen).text
            update(execute, "bindings", "dataset = ?", dataset, body=text)
            _, end = last_hash(execute)
            entry = Charge(dataset, end, "", NOTHING)  # the hash makes the entry's key unique
            _write(execute, "bind", entry, {"roles": encode(said), "uncapped": uncapped})
        return bound.roles or UNBOUND

    def roles(self, dataset: str) -> Roles:
        """Return the level, the public columns and the rows per person a data set is bound to."""
        with self._store.snapshot() as execute:
            accounts_of(execute, dataset)
            return _bound(execute, dataset).roles or UNBOUND

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
        same = charged.plan in (charge.plan, charge.older_plan or charge.plan)
        if not same or fold_name(charged.analyst) != fold_name(charge.analyst):
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
            accounts, _ = _admit(execute, charge)
        for account in accounts:
            require_left(account, charge.cost)

    def spend(self, charge: Charge, also: Also | None = None) -> Receipt:
        """Take the cost and write the entry, or refuse, in one durable transaction.

        The same transaction checks that balances and bindings are those of the end of the chain
        and that every column keeps its role. ``also`` is run in it: what it writes is kept together
        with the charge, and an error that it raises undoes both.
        """
        with self._store.transaction() as execute:
            accounts, bound = _admit(execute, charge)
            if find_entry(execute, charge.dataset, charge.request, "charge") is not None:
                msg = f"request {charge.request!r} was charged already; use a new request id"
                raise BudgetError(msg)
            for account in accounts:
                take(execute, account, charge.cost)
            if also is not None:
                also(execute)
            update(execute, "bindings", "dataset = ?", charge.dataset, body=bound.text)
            use = None if charge.use is None else charge.use.plain
            # The cap's own spelling: a replay finds the account by it.
            payer = replace(charge, analyst=accounts[-1].analyst or charge.analyst)
            head = _write(execute, "charge", payer, {**charge.binding.plain, "use": use})
        return Receipt(head, accounts[0].left - charge.cost)

    def store(self, charge: Charge, release: str, also: Also | None = None) -> str:
        """Keep the release of a charged request; return the new end of the chain.

        ``also`` is run in the same transaction, as in :meth:`spend`.
        """
        with self._store.transaction() as execute:
            charged = find_entry(execute, charge.dataset, charge.request, "charge")
            if charged is None or charged.plan != charge.plan:
                msg = f"request {charge.request!r} was never charged; nothing is stored"
                raise LedgerError(msg)
            if also is not None:
                also(execute)
            return _append(execute, "release", replace(charge, cost=NOTHING), release)

    def accounts(self, dataset: str | None = None) -> list[Account]:
        """Return what each data set, and each capped analyst in it, has spent and has left."""
        with self._store.snapshot() as execute:
            return read_accounts(execute, dataset)

    def history(self, dataset: str | None = None) -> list[Entry]:
        """Return the entries in order, of all data sets or of one."""
        with self._store.snapshot() as execute:
            return read_entries(execute, dataset)

    def release(self, request: str, dataset: str | None = None) -> str:
        """Return the stored release of a request as JSON; it costs nothing to read again."""
        with self._store.snapshot() as execute:
            entries = read_entries(execute, dataset)
        return find_stored(entries, request, dataset).body

    def verify(self, head: str | None = None, *, release: str | None = None) -> Verification:
        """Check every entry and every balance; with ``head``, also that the end is not cut off.

        Parameters
        ----------
        head : str, optional
            The hash that a release carries; it must be the hash of an entry.
        release : str, optional
            A release as JSON; it must be the one that was stored for its request, number by number.
        """
        with self._store.snapshot() as execute:
            entries = read_entries(execute)
            last = verify_chain(entries, head)
            require_replayed(execute, entries)
            require_intact(execute)
        stored = None if release is None else require_stored(entries, release)
        return Verification(len(entries), last, stored)

    def close(self) -> None:
        """Close the file or the connection."""
        self._store.close()


def _limits(
    caps: Mapping[str, Amount], delta: Amount, total: BudgetUnits
) -> dict[str, BudgetUnits]:
    limits = {
        check_analyst(analyst): BudgetUnits.limit(cap, delta) for analyst, cap in caps.items()
    }
    if any(not limit.fits(total) for limit in limits.values()):
        msg = f"an analyst's cap is at most the data set's budget, {total}"
        raise ArgumentError(msg)
    folded = [fold_name(analyst) for analyst in limits]
    twice = next((name for name in limits if folded.count(fold_name(name)) > 1), None)
    if twice is not None:
        msg = (
            f"the analyst {twice!r} has two caps: case, spaces and look-alike letters do not count"
        )
        raise ArgumentError(msg)
    return limits


def _with_declared_gaps(said: Roles, declared: Binding) -> Roles:
    """Return what the holder says with the public gaps that she declares of the columns."""
    if said.level is None or not has_public_covariates(said.level):
        return said
    gaps = declared_gaps(declared.declared) | (said.public_gaps or frozenset())
    return replace(said, public_gaps=gaps)


def _uncapped(word: Uncapped | None) -> Uncapped | None:
    if word not in (None, *get_args(Uncapped)):
        msg = f"uncapped is 'refused' or 'allowed', not {str(word)[:40]!r}"
        raise ArgumentError(msg)
    return word


def grant_dataset(
    execute: Execute,
    name: str,
    total: BudgetUnits,
    bound: Binding,
    limits: Mapping[str, BudgetUnits] | None = None,
) -> None:
    """Add a data set with its total and the caps of analysts, in a transaction that is open."""
    if read_accounts(execute, name):
        msg = f"the ledger has a data set {name!r} already; budgets are never raised"
        raise LedgerError(msg)
    require_intact(execute)
    insert(execute, "bindings", dataset=name, body=bound.text)
    _grant(execute, "create", name, "", total, bound.plain)
    for analyst, limit in (limits or {}).items():
        _grant(execute, "cap", name, analyst, limit, {})


def _grant(
    execute: Execute,
    kind: EntryKind,
    dataset: str,
    analyst: str,
    limit: BudgetUnits,
    body: dict[str, Any],
) -> None:
    insert(
        execute, "accounts", dataset=dataset, analyst=analyst, epsilon_total=limit.epsilon,
        delta_total=limit.delta, epsilon_spent=0, delta_spent=0,
    )  # fmt: skip
    _write(execute, kind, Charge(dataset, analyst, "", limit, analyst), body)


def _admit(execute: Execute, charge: Charge) -> tuple[list[Account], Binding]:
    """Return who pays and the binding after the request, or say what stands against it."""
    accounts = accounts_of(execute, charge.dataset)
    require_intact(execute)
    known = _bound(execute, charge.dataset)
    merged = known.merge(charge.binding, charge.dataset).admit(charge.use, charge.dataset)
    return paying_accounts(accounts, charge, known.uncapped), merged


def _bound(execute: Execute, dataset: str) -> Binding:
    """Return what a data set is bound to; its history gives what an earlier version left out."""
    rows = execute("SELECT body FROM bindings WHERE dataset = ?", (dataset,)).rows
    kept = Binding.read(rows[0][0])
    return kept if kept.says_gaps else replay_binding(read_entries(execute, dataset))


def _write(execute: Execute, kind: EntryKind, charge: Charge, body: dict[str, Any]) -> str:
    """Write an entry that changed a balance or a binding, with the hash of all of them now."""
    return _append(execute, kind, charge, canonical({**body, "state": state_of(execute)}))


def _append(execute: Execute, kind: EntryKind, charge: Charge, body: str) -> str:
    sequence, previous = last_hash(execute)
    at = charge.at or datetime.now(UTC).isoformat(timespec="seconds")
    draft = Entry(
        sequence + 1, kind, charge.dataset, charge.request, charge.analyst, charge.plan,
        charge.cost.epsilon, charge.cost.delta, body, at, previous,
    )  # fmt: skip
    entry = replace(draft, hash=draft.seal())
    write_row(execute, "entries", entry)
    return entry.hash
