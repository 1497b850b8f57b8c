"""The tables beside the ledger's, and the transactions in which all of them change.

They live in the ledger's own database, so that a charge and the state of its request change in one
transaction. Every change writes an event, events form one chain, and a chain has one end: writers
queue at the ledger's write lock, which also makes every claim and every state exclusive.

With a role of its own in PostgreSQL the web process reads everything that the service keeps, which
holds no records and no secrets, and writes what users do by pages. It can write no entry, account
or binding of the ledger, no population, data set or policy, and no approval; the worker charges a
request only if the policy allows it or approvals of its plan are there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from private_ate.errors import ArgumentError, LedgerError
from private_ate.ledger.accounts import GUARDS, TABLES, one
from private_ate.ledger.stores import Guard, Store, append_only, store_for
from private_ate.service.store.users import DECOY
from private_ate.service.vocabulary import FINAL, MOVES

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
    "CREATE INDEX IF NOT EXISTS service_requests_slot ON service_requests (dataset, dummy, start)",
    "CREATE INDEX IF NOT EXISTS service_requests_end ON service_requests (visible)",
    (
        "CREATE TABLE IF NOT EXISTS service_events (sequence BIGINT PRIMARY KEY, "
        "kind TEXT NOT NULL, subject TEXT NOT NULL, actor TEXT NOT NULL, body TEXT NOT NULL, "
        "at TEXT NOT NULL, previous TEXT NOT NULL UNIQUE, hash TEXT NOT NULL UNIQUE)"
    ),
    "CREATE INDEX IF NOT EXISTS service_events_subject ON service_events (subject)",
    (
        "CREATE TABLE IF NOT EXISTS service_approvals (request TEXT NOT NULL, "
        "plan TEXT NOT NULL, approver TEXT NOT NULL, PRIMARY KEY (request, approver))"
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
_ENDS: Final = ", ".join(f"'{state}'" for state in sorted(FINAL))
_STEPS: Final = ", ".join(
    f"'{before} {after}'" for before, afters in MOVES.items() for after in sorted(afters)
)
_WRONG_STEP: Final = (
    f"OLD.state IN ({_ENDS}) OR (OLD.state <> NEW.state "
    f"AND OLD.state || ' ' || NEW.state NOT IN ({_STEPS}))"
)
_NO_STEP: Final = "a request that has ended stays as it is, and no state has a way back"
_NEWEST: Final = "service_requests_never_go_back"  # a database without it is of an earlier version
_GUARDS: Final = (
    *GUARDS,
    *append_only("service_events"),
    Guard("service_requests_stay", "service_requests", "DELETE", _NO_STEP),
    Guard(_NEWEST, "service_requests", "UPDATE", _NO_STEP, _WRONG_STEP),
)


_READ: Final = (
    "entries", "accounts", "bindings", "service_users", "service_tokens", "service_sessions",
    "service_populations", "service_datasets", "service_requests", "service_events",
    "service_workers", "service_approvals",
)  # fmt: skip
_CHANGED: Final = "state, code, reason, queued, start, ends, due, visible, approvers"
_WRITE: Final = (
    "INSERT ON service_users, service_tokens, service_sessions, service_requests, service_events",
    "UPDATE (revoked) ON service_users, service_tokens",
    "DELETE ON service_sessions",
    "UPDATE (closed) ON service_datasets",
    f"UPDATE ({_CHANGED}) ON service_requests",
)
_ROLE: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def create(location: str | Path) -> Store:
    """Make the tables where they are not there yet, the ledger's among them."""
    store = store_for(location, must_exist=False)
    store.initialize((*TABLES, *_SERVICE), _GUARDS)
    return store


@contextmanager
def connect(location: str | Path) -> Iterator[Store]:
    """Open a store that was made before; one of an earlier version gets what it lacks."""
    store = store_for(location, must_exist=True)
    try:
        try:
            with store.snapshot() as execute:
                execute("SELECT COUNT(*) FROM service_approvals", ())
                is_newest = store.has_guard(execute, _NEWEST)
        except LedgerError as cause:
            if "service_approvals" in str(cause):  # both stores name the table that is not there
                raise _absent() from cause
            raise
        if not is_newest:
            _upgrade(store)
        yield store
    finally:
        store.close()


def _upgrade(store: Store) -> None:
    """Make what a database of an earlier version lacks; the web's own role may not."""
    try:
        store.initialize((*TABLES, *_SERVICE), _GUARDS)
    except LedgerError as cause:
        msg = (
            "this database is of an earlier version; open it once on the worker's side, with "
            "serve work or serve verify"
        )
        raise LedgerError(msg) from cause


def _absent() -> LedgerError:
    return LedgerError("this database has no service; make one with serve init")


def grant_web(store: Store, role: str) -> None:
    """Give a role that exists the rights of the web process, and take all others from it."""
    if not _ROLE.fullmatch(role):
        msg = "a role is named by small letters, digits and underscores"
        raise ArgumentError(msg)
    with store.transaction() as execute:
        if one(execute, "SELECT 1 FROM pg_roles WHERE rolname = ?", role) is None:
            msg = f"there is no role {role!r} in the database; make it first: CREATE ROLE … LOGIN"
            raise ArgumentError(msg)
        for table in _READ:
            execute(f"REVOKE ALL ON {table} FROM {role}", ())
        execute(f"GRANT SELECT ON {', '.join(_READ)} TO {role}", ())
        for right in _WRITE:
            execute(f"GRANT {right} TO {role}", ())
