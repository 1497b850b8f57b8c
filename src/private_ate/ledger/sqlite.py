"""The ledger in one SQLite file; durable at every commit, one writer at a time.

A rollback journal, not a write-ahead log: after a commit the file itself holds everything, so a
copy of that one file never shows budget that is spent. A log would have to be copied too.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from private_ate.errors import LedgerError
from private_ate.ledger.store import Answer, Execute

_WAIT_SECONDS = 60.0
_PATIENCE = 0.2  # seconds of each attempt to open
_abandoned: list[sqlite3.Connection] = []  # a parent's connections must not be closed in a child

_APPEND_ONLY = (
    (
        "CREATE TRIGGER IF NOT EXISTS entries_never_change BEFORE UPDATE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END"
    ),
    (
        "CREATE TRIGGER IF NOT EXISTS entries_never_go BEFORE DELETE ON entries "
        "BEGIN SELECT RAISE(ABORT, 'the history is append-only'); END"
    ),
)


@dataclass(slots=True, weakref_slot=True)
class SqliteStore:
    """Transactions on a SQLite file; usable from threads and after a fork."""

    path: Path
    _connection: sqlite3.Connection | None = field(default=None, repr=False)
    _owner: int = field(default=0, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def initialize(self, statements: Sequence[str]) -> None:
        """Create the file and its tables where they do not exist yet."""
        if not self.path.parent.is_dir():
            msg = f"there is no folder {str(self.path.parent)!r} for the ledger"
            raise LedgerError(msg)
        with self.transaction() as execute:
            for statement in (*statements, *_APPEND_ONLY):
                execute(statement, ())

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Run statements in one transaction that holds the write lock from its beginning."""
        with self._lock, self._typed_errors():
            connection = self._open()
            # IMMEDIATE: a deferred transaction would let two writers read the same balance.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _executor(connection)
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    @contextmanager
    def snapshot(self) -> Iterator[Execute]:
        """Read from one consistent state of the file."""
        with self._lock, self._typed_errors():
            connection = self._open()
            connection.execute("BEGIN")
            try:
                yield _executor(connection)
            finally:
                connection.rollback()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._owner == os.getpid():
            return self._connection
        if self._connection is not None:
            _abandoned.append(self._connection)
        self._connection, self._owner = _connect(self.path), os.getpid()
        # A store that nobody closed closes its file when it goes, but never one of a parent.
        weakref.finalize(self, _close_own, self._connection, self._owner)
        return self._connection

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as cause:
            msg = f"the ledger {str(self.path)!r} refused an entry: {cause}"
            raise LedgerError(msg) from cause
        except (sqlite3.Error, UnicodeError) as cause:  # a damaged file's message may be no text
            why = str(cause) if isinstance(cause, sqlite3.Error) else "it is damaged"
            msg = f"the file {str(self.path)!r} cannot be used as a ledger: {why}"
            raise LedgerError(msg) from cause

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"path": self.path}

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        self.__init__(state[1]["path"])  # type: ignore[misc]  # a fresh store on the same file


def _close_own(connection: sqlite3.Connection, owner: int) -> None:
    if owner == os.getpid():
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file; one that version 0.1 left with a write-ahead log takes the log in first."""
    give_up = time.monotonic() + _WAIT_SECONDS
    while True:
        connection = sqlite3.connect(
            path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA journal_mode=TRUNCATE")
            # FULL synchronises the journal after it was emptied: no power cut brings it back and
            # undoes a charge.
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute(f"PRAGMA busy_timeout={int(1000 * _WAIT_SECONDS)}")
        except BaseException as cause:
            connection.close()
            if not _is_busy(cause) or time.monotonic() > give_up:
                raise
        else:
            return connection
        # Others have the file open with its log, perhaps to take it in as well: let go, try again.
        time.sleep(0.01 + time.monotonic_ns() % 97 / 1000)  # not all at the same time


def _is_busy(cause: BaseException) -> bool:
    return isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_BUSY_RECOVERY,
        sqlite3.SQLITE_LOCKED,
    )


def _executor(connection: sqlite3.Connection) -> Execute:
    def execute(statement: str, values: Sequence[object]) -> Answer:
        cursor = connection.execute(statement, tuple(values))
        return Answer(cursor.fetchall(), cursor.rowcount)

    return execute
