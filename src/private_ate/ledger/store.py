"""A ledger's tables: the interface that SQLite and PostgreSQL answer, and the statements on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, Protocol, TypeVar, cast

from private_ate.ledger.chain import GENESIS, Account, Entry
from private_ate.ledger.cost import BudgetUnits

Row = TypeVar("Row")

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


def one(execute: Execute, statement: str, *values: object) -> tuple[Any, ...] | None:
    """Return the first row of a query, None if there is none."""
    rows = execute(statement, values).rows
    return rows[0] if rows else None


def read_rows(execute: Execute, kind: type[Row], rest: str, *values: object) -> list[Row]:
    """Return rows as a dataclass whose fields name the columns; ``rest`` begins with FROM.

    The metadata of a field may name its ``column`` in another way, and a function that reads it.
    """
    names, readers = _columns(cast("Any", kind))
    found = execute(f"SELECT {names} {rest}", values).rows  # names of our own fields
    return [kind(*(read(held) for read, held in zip(readers, row, strict=True))) for row in found]


def write_row(execute: Execute, table: str, row: object) -> None:
    """Add a dataclass, whose fields are columns, to a table."""
    values = [getattr(row, item.name) for item in fields(cast("Any", row))]
    names, _ = _columns(cast("Any", type(row)))
    places = ", ".join("?" for _ in values)
    execute(f"INSERT INTO {table} ({names}) VALUES ({places})", values)  # noqa: S608  # as above


@cache
def _columns(kind: type) -> tuple[str, tuple[Callable[[Any], Any], ...]]:
    items = fields(kind)
    names = ", ".join(item.metadata.get("column", item.name) for item in items)
    return names, tuple(item.metadata.get("read", _as_it_is) for item in items)


def _as_it_is(held: object) -> object:
    return held


def last_hash(execute: Execute, table: str = "entries") -> tuple[int, str]:
    """Return the number and the hash of the last entry of a chain."""
    found = one(execute, f"SELECT sequence, hash FROM {table} ORDER BY sequence DESC LIMIT 1")  # noqa: S608  # a name of our own
    return (0, GENESIS) if found is None else (int(found[0]), str(found[1]))


def find_entry(execute: Execute, dataset: str, request: str, kind: str) -> Entry | None:
    """Return the entry of a kind that a request has made, if any."""
    rest = "FROM entries WHERE dataset = ? AND request = ? AND kind = ?"
    return next(iter(read_rows(execute, Entry, rest, dataset, request, kind)), None)


def read_entries(execute: Execute, dataset: str | None = None) -> list[Entry]:
    """Return the history in order, of all data sets or of one."""
    if dataset is None:
        return read_rows(execute, Entry, "FROM entries ORDER BY sequence")
    rest = "FROM entries WHERE dataset = ? ORDER BY sequence"
    return read_rows(execute, Entry, rest, dataset)


def read_tail(execute: Execute) -> list[Entry]:
    """Return the entries from the last one that is not a release to the end."""
    rest = (
        "FROM entries WHERE sequence >= "
        "(SELECT sequence FROM entries WHERE kind <> 'release' ORDER BY sequence DESC LIMIT 1) "
        "ORDER BY sequence"
    )
    return read_rows(execute, Entry, rest)


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
