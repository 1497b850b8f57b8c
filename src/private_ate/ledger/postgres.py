"""The ledger of a team in PostgreSQL; needs the ``postgres`` extra (psycopg 3)."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from private_ate.errors import ArgumentError, LedgerError
from private_ate.ledger.store import Answer, Execute

_APPEND_ONLY = (
    (
        "CREATE OR REPLACE FUNCTION private_ate_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'the history is append-only'; END $$"
    ),
    (
        "CREATE OR REPLACE TRIGGER entries_never_change BEFORE UPDATE OR DELETE OR TRUNCATE "
        "ON entries FOR EACH STATEMENT EXECUTE FUNCTION private_ate_append_only()"
    ),
)
_WRITERS = 7283746502
_abandoned: list[Any] = []  # a parent's connections must not be closed in a child


@dataclass(slots=True)
class PostgresStore:
    """Transactions on a PostgreSQL database; usable from threads and after a fork."""

    url: str = field(repr=False)  # may hold a password
    _connection: Any = field(default=None, repr=False)
    _owner: int = field(default=0, repr=False)
    _may_lock: bool | None = field(default=None, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def initialize(self, statements: Sequence[str]) -> None:
        """Create the tables where they do not exist yet."""
        with self._begin(locked=False) as execute:
            # Two creators at once would both try to make the tables.
            execute("SELECT pg_advisory_xact_lock(7283746501)", ())
            for statement in (*statements, *_APPEND_ONLY):
                execute(statement, ())

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Run statements in one transaction that holds the write lock from its beginning."""
        with self._begin(locked=True) as execute:
            yield execute

    @contextmanager
    def snapshot(self) -> Iterator[Execute]:
        """Read from one consistent state of the database."""
        with self._begin(locked=False) as execute:
            execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY", ())
            yield execute

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _begin(self, *, locked: bool) -> Iterator[Execute]:
        psycopg = _driver()
        try:
            with self._lock:
                connection = self._open(psycopg)
                with connection.transaction():
                    execute = _executor(connection)
                    if locked:
                        self._lock_writers(execute)
                    yield execute
        except psycopg.errors.UniqueViolation as cause:
            msg = "the ledger refused an entry that exists already"
            raise LedgerError(msg) from cause
        except psycopg.Error as cause:
            text = str(cause).strip().splitlines() or [type(cause).__name__]
            msg = f"the PostgreSQL ledger cannot be used: {text[0]}"
            raise LedgerError(msg) from None  # the driver's error may hold the connection string

    def _lock_writers(self, execute: Execute) -> None:
        """Let writers queue, as the chain has one end; readers are not held up.

        A role that may not write the ledger cannot lock its table. Whoever writes beside it takes
        the advisory lock, as everybody does.
        """
        execute(f"SELECT pg_advisory_xact_lock({_WRITERS})", ())
        if self._may_lock is None:
            rows = execute("SELECT has_table_privilege(to_regclass('entries'), 'UPDATE')", ()).rows
            self._may_lock = rows[0][0] is not False  # None: the table is missing
        if self._may_lock:
            execute("LOCK TABLE entries IN EXCLUSIVE MODE", ())

    def _open(self, psycopg: Any) -> Any:  # noqa: ANN401  # an optional module
        if self._connection is not None and self._owner == os.getpid():
            if not self._connection.closed:
                return self._connection
        elif self._connection is not None:
            _abandoned.append(self._connection)
        self._connection = psycopg.connect(self.url, autocommit=True, connect_timeout=10)
        # A role may have it off; a charge that a crash could undo would be no charge.
        self._connection.execute("SET synchronous_commit = on")
        self._owner = os.getpid()
        return self._connection

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"url": self.url}

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        self.__init__(state[1]["url"])  # type: ignore[misc]  # a fresh store on the same database


def _driver() -> Any:  # noqa: ANN401  # an optional module
    try:
        import psycopg  # the `postgres` extra
    except ImportError as cause:
        msg = "a PostgreSQL ledger needs psycopg: pip install 'private-ate[postgres]'"
        raise ArgumentError(msg) from cause
    return psycopg


def _executor(connection: Any) -> Execute:  # noqa: ANN401  # an optional type
    def execute(statement: str, values: Sequence[object]) -> Answer:
        cursor = connection.execute(statement.replace("?", "%s"), tuple(values) or None)
        return Answer(cursor.fetchall() if cursor.description else [], cursor.rowcount)

    return execute
