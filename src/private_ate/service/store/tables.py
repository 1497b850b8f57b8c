"""The tables beside the ledger's, and the transactions in which all of them change.

They live in the ledger's own database, so that a charge and the state of its request change in one
transaction. Every change writes an event, events form one chain, and a chain has one end: writers
queue at the ledger's write lock, which also makes every claim and every state exclusive.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from private_ate.errors import LedgerError
from private_ate.privacy.ledger.store import TABLES, Execute, Store, store_for

__all__ = ["DECOY", "connect", "create", "one", "rows_of"]

DECOY: Final = "z" * 12  # after every token's id, which is hexadecimal

_SERVICE: Final = (
    (
        "CREATE TABLE IF NOT EXISTS service_users (name TEXT PRIMARY KEY, role TEXT NOT NULL, "
        "created BIGINT NOT NULL, revoked BIGINT NOT NULL DEFAULT 0)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS service_tokens (id TEXT PRIMARY KEY, owner TEXT NOT NULL, "
        "secret TEXT NOT NULL, scope TEXT NOT NULL, created BIGINT NOT NULL, "
        "expires BIGINT NOT NULL, revoked BIGINT NOT NULL DEFAULT 0)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS service_sessions (secret TEXT PRIMARY KEY, "
        "owner TEXT NOT NULL, token TEXT NOT NULL, scope TEXT NOT NULL, form TEXT NOT NULL, "
        "expires BIGINT NOT NULL)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS service_populations (name TEXT PRIMARY KEY, "
        "level TEXT NOT NULL, epsilon BIGINT NOT NULL, delta BIGINT NOT NULL)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS service_datasets (name TEXT PRIMARY KEY, "
        "population TEXT NOT NULL, domain TEXT NOT NULL, columns TEXT NOT NULL, "
        "size BIGINT NOT NULL, rows_per_person BIGINT NOT NULL, source TEXT NOT NULL, "
        "digest TEXT NOT NULL DEFAULT '', closed BIGINT NOT NULL DEFAULT 0, "
        "policy TEXT NOT NULL)"
    ),
    (
        "CREATE TABLE IF NOT EXISTS service_requests (id TEXT PRIMARY KEY, "
        "dataset TEXT NOT NULL, analyst TEXT NOT NULL, question TEXT NOT NULL, "
        "plan TEXT NOT NULL, epsilon BIGINT NOT NULL, delta BIGINT NOT NULL, "
        "dummy BIGINT NOT NULL, state TEXT NOT NULL, code TEXT NOT NULL DEFAULT '', "
        "reason TEXT NOT NULL DEFAULT '', submitted BIGINT NOT NULL, "
        "queued BIGINT NOT NULL DEFAULT 0, start BIGINT NOT NULL DEFAULT 0, "
        "ends BIGINT NOT NULL DEFAULT 0, due BIGINT NOT NULL DEFAULT 0, "
        "visible BIGINT NOT NULL DEFAULT 0, "
        "approvers TEXT NOT NULL DEFAULT '[]', worker TEXT NOT NULL DEFAULT '', "
        "claim TEXT NOT NULL DEFAULT '', body TEXT NOT NULL DEFAULT '')"
    ),
    "CREATE INDEX IF NOT EXISTS service_requests_state ON service_requests (state, dataset)",
    "CREATE INDEX IF NOT EXISTS service_requests_whose ON service_requests (analyst, submitted)",
    (
        "CREATE TABLE IF NOT EXISTS service_events (sequence BIGINT PRIMARY KEY, "
        "kind TEXT NOT NULL, subject TEXT NOT NULL, actor TEXT NOT NULL, body TEXT NOT NULL, "
        "at TEXT NOT NULL, previous TEXT NOT NULL UNIQUE, hash TEXT NOT NULL UNIQUE)"
    ),
    "CREATE TABLE IF NOT EXISTS service_workers (name TEXT PRIMARY KEY, beat BIGINT NOT NULL)",
    # What a token is compared with whose id comes after all others.
    (
        "INSERT INTO service_users (name, role, created, revoked) "
        "VALUES ('nobody', 'analyst', 0, 1) ON CONFLICT DO NOTHING"
    ),
    (
        "INSERT INTO service_tokens (id, owner, secret, scope, created, expires, revoked) "  # noqa: S608
        f"VALUES ('{DECOY}', 'nobody', '{'0' * 64}', 'read', 0, 0, 1) ON CONFLICT DO NOTHING"
    ),
)
_SQLITE: Final = tuple(
    f"CREATE TRIGGER IF NOT EXISTS service_events_never_{word} BEFORE {change} ON service_events "
    "BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END"
    for word, change in (("change", "UPDATE"), ("go", "DELETE"))
)
_POSTGRES: Final = (
    (
        "CREATE OR REPLACE FUNCTION private_ate_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the history is append-only'; END $$"
    ),
    (
        "CREATE OR REPLACE TRIGGER service_events_never_change BEFORE UPDATE OR DELETE OR "
        "TRUNCATE ON service_events FOR EACH STATEMENT EXECUTE FUNCTION private_ate_append_only()"
    ),
)


def create(location: str | Path) -> Store:
    """Make the tables where they are not there yet, the ledger's among them."""
    store = store_for(location, must_exist=False)
    own = _POSTGRES if _is_postgres(location) else _SQLITE
    store.initialize((*TABLES, *_SERVICE, *own))
    return store


@contextmanager
def connect(location: str | Path) -> Iterator[Store]:
    """Open a store that was made before."""
    store = store_for(location, must_exist=True)
    try:
        with store.snapshot() as execute:
            try:
                execute("SELECT COUNT(*) FROM service_workers", ())
            except LedgerError as cause:
                raise _absent() from cause
        yield store
    finally:
        store.close()


def rows_of(execute: Execute, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Return the rows of a query."""
    return execute(statement, values).rows


def one(execute: Execute, statement: str, *values: object) -> tuple[object, ...] | None:
    """Return the first row of a query, None if there is none."""
    rows = execute(statement, values).rows
    return rows[0] if rows else None


def _is_postgres(location: str | Path) -> bool:
    return str(location).startswith(("postgresql://", "postgres://"))


def _absent() -> LedgerError:
    return LedgerError("this database has no service; make one with serve init")
