"""A ledger's tables: the interface that SQLite and PostgreSQL answer, and the statements on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import Any, Protocol

from private_ate.ledger.chain import GENESIS, Account, Entry
from private_ate.ledger.cost import BudgetUnits

__all__ = [
    "TABLES", "Answer", "Execute", "Store", "append", "find_entry",
    "last_hash", "read_accounts", "read_entries", "read_tail",
]  # fmt: skip

_COLUMNS = ", ".join(field.name for field in fields(Entry))
_PLACES = ", ".join("?" for _ in fields(Entry))

TABLES = (
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


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement returned, and how many rows it changed."""

    rows: list[tuple[Any, ...]]
    changed: int


Execute = Callable[[str, Sequence[object]], Answer]


class Store(Protocol):
    """A place with transactions."""

    def initialize(self, statements: Sequence[str]) -> None:
        """Create the tables where they do not exist yet."""

    def transaction(self) -> AbstractContextManager[Execute]:
        """Run statements in one transaction that holds the write lock from its beginning."""

    def snapshot(self) -> AbstractContextManager[Execute]:
        """Read from one consistent state."""

    def close(self) -> None:
        """Let go of the connection."""


def append(execute: Execute, entry: Entry) -> None:
    """Write one entry at the end of the chain."""
    execute(
        f"INSERT INTO entries ({_COLUMNS}) VALUES ({_PLACES})",  # noqa: S608  # constants
        [getattr(entry, field.name) for field in fields(Entry)],
    )


def last_hash(execute: Execute) -> tuple[int, str]:
    """Return the number and the hash of the last entry."""
    rows = execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1", ()).rows
    return (int(rows[0][0]), str(rows[0][1])) if rows else (0, GENESIS)


def find_entry(execute: Execute, dataset: str, request: str, kind: str) -> Entry | None:
    """Return the entry of a kind that a request has made, if any."""
    rows = execute(
        f"SELECT {_COLUMNS} FROM entries "  # noqa: S608  # constants
        "WHERE dataset = ? AND request = ? AND kind = ?",
        (dataset, request, kind),
    ).rows
    return Entry(*rows[0]) if rows else None


def read_entries(execute: Execute, dataset: str | None = None) -> list[Entry]:
    """Return the history in order, of all data sets or of one."""
    chosen = "" if dataset is None else "WHERE dataset = ? "
    rows = execute(
        f"SELECT {_COLUMNS} FROM entries {chosen}ORDER BY sequence",  # noqa: S608  # constants
        () if dataset is None else (dataset,),
    ).rows
    return [Entry(*row) for row in rows]


def read_tail(execute: Execute) -> list[Entry]:
    """Return the entries from the last one that is not a release to the end."""
    rows = execute(
        f"SELECT {_COLUMNS} FROM entries WHERE sequence >= "  # noqa: S608  # constants
        "(SELECT sequence FROM entries WHERE kind <> 'release' ORDER BY sequence DESC LIMIT 1) "
        "ORDER BY sequence",
        (),
    ).rows
    return [Entry(*row) for row in rows]


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
