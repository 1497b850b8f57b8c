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
from private_ate.ledger.accounts import GUARDS, TABLES
from private_ate.ledger.stores import Guard, Store, append_only, one, store_for
from private_ate.service.store.users import DECOY
from private_ate.service.vocabulary import FINAL, MOVES

# Of each table: its columns, none of them null, and what the web's own role may write there. It
# reads them all.
_SERVICE: Final = {
    "service_users": (
        "name TEXT PRIMARY KEY, role TEXT, created BIGINT, revoked BIGINT DEFAULT 0",
        "INSERT, UPDATE (revoked)",
    ),
    "service_tokens": (
        ("id TEXT PRIMARY KEY, owner TEXT, secret TEXT, scope TEXT, created BIGINT, "
        "expires BIGINT, revoked BIGINT DEFAULT 0"),
        "INSERT, UPDATE (revoked)",
    ),
    "service_sessions": (
        "secret TEXT PRIMARY KEY, owner TEXT, token TEXT, scope TEXT, form TEXT, expires BIGINT",
        "INSERT, DELETE",
    ),
    "service_populations": ("name TEXT PRIMARY KEY, level TEXT, epsilon BIGINT, delta BIGINT", ""),
    "service_datasets": (
        ("name TEXT PRIMARY KEY, population TEXT, domain TEXT, columns TEXT, size BIGINT, "
        "rows_per_person BIGINT, source TEXT, digest TEXT DEFAULT '', closed BIGINT DEFAULT 0, "
        "policy TEXT"),
        "UPDATE (closed)",
    ),
    "service_requests": (
        ("id TEXT PRIMARY KEY, dataset TEXT, analyst TEXT, question TEXT, plan TEXT, "
        "epsilon BIGINT, delta BIGINT, dummy BIGINT, state TEXT, code TEXT DEFAULT '', "
        "reason TEXT DEFAULT '', submitted BIGINT, queued BIGINT DEFAULT 0, "
        "start BIGINT DEFAULT 0, ends BIGINT DEFAULT 0, due BIGINT DEFAULT 0, "
        "visible BIGINT DEFAULT 0, approvers TEXT DEFAULT '[]', worker TEXT DEFAULT '', "
        "claim TEXT DEFAULT '', body TEXT DEFAULT ''"),
        "INSERT, UPDATE (state, code, reason, queued, start, ends, due, visible, approvers)",
    ),
    "service_events": (
        ("sequence BIGINT PRIMARY KEY, kind TEXT, subject TEXT, actor TEXT, body TEXT, at TEXT, "
        "previous TEXT UNIQUE, hash TEXT UNIQUE"),
        "INSERT",
    ),
    "service_approvals": (
        "request TEXT, plan TEXT, approver TEXT, PRIMARY KEY (request, approver)", ""
    ),
    "service_workers": ("name TEXT PRIMARY KEY, beat BIGINT", ""),
}  # fmt: skip
_INDEXES: Final = {
    "service_requests_state": "service_requests (state, dataset)",
    "service_requests_whose": "service_requests (analyst, submitted)",
    "service_requests_slot": "service_requests (dataset, dummy, start)",
    "service_requests_end": "service_requests (visible)",
    "service_events_subject": "service_events (subject)",
}
_STATEMENTS: Final = (
    *TABLES,
    *(
        f"CREATE TABLE IF NOT EXISTS {name} ("
        + re.sub(r" (TEXT|BIGINT)(?! PRIMARY)", r" \1 NOT NULL", columns)
        + ")"
        for name, (columns, _) in _SERVICE.items()
    ),
    *(f"CREATE INDEX IF NOT EXISTS {name} ON {where}" for name, where in _INDEXES.items()),
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
_ROLE: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def create(location: str | Path) -> Store:
    """Make the tables where they are not there yet, the ledger's among them."""
    store = store_for(location, must_exist=False)
    store.initialize(_STATEMENTS, _GUARDS)
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
            if "service_approvals" not in str(cause):  # both stores name a table that is missing
                raise
            msg = "this database has no service; make one with serve init"
            raise LedgerError(msg) from cause
        if not is_newest:
            try:
                store.initialize(_STATEMENTS, _GUARDS)
            except LedgerError as cause:  # of the web's own role
                msg = (
                    "this database is of an earlier version; open it once on the worker's side, "
                    "with serve work or serve verify"
                )
                raise LedgerError(msg) from cause
        yield store
    finally:
        store.close()


def grant_web(store: Store, role: str) -> None:
    """Give a role that exists the rights of the web process, and take all others from it."""
    if not _ROLE.fullmatch(role):
        msg = "a role is named by small letters, digits and underscores"
        raise ArgumentError(msg)
    with store.transaction() as execute:
        if one(execute, "SELECT 1 FROM pg_roles WHERE rolname = ?", role) is None:
            msg = f"there is no role {role!r} in the database; make it first: CREATE ROLE … LOGIN"
            raise ArgumentError(msg)
        for table in ("entries", "accounts", "bindings", *_SERVICE):
            execute(f"REVOKE ALL ON {table} FROM {role}", ())
            execute(f"GRANT SELECT ON {table} TO {role}", ())
        for table, (_, rights) in _SERVICE.items():
            if rights:
                execute(f"GRANT {rights} ON {table} TO {role}", ())
