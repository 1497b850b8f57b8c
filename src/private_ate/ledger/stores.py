"""Where a ledger is kept: one SQLite file, or a PostgreSQL database; and rows of its tables.

SQLite has a rollback journal, not a write-ahead log: after a commit the file itself holds
everything, so a copy of that one file never shows budget that is spent.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, cast

from private_ate.errors import ArgumentError, LedgerError

_WAIT_SECONDS: Final = 60.0
_PATIENCE: Final = 0.2  # seconds of each attempt to open
_CREATORS: Final = 7283746501  # numbers of PostgreSQL's advisory locks
_WRITERS: Final = 7283746502
_abandoned: list[Any] = []  # a parent's connections must not be closed in a child


@dataclass(frozen=True, slots=True)
class Answer:
    """What a statement returned, and how many rows it changed."""

    rows: list[tuple[Any, ...]]
    changed: int


Execute = Callable[[str, Sequence[object]], Answer]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Guard:
    """A trigger that refuses to change or delete rows of a table, all or those of a condition.

    The condition speaks of the columns of OLD and NEW.
    """

    name: str
    table: str
    change: Literal["UPDATE", "DELETE"]
    sentence: str
    condition: str = ""


def append_only(table: str) -> tuple[Guard, Guard]:
    """Return the triggers of a history."""
    words = "the history is append-only"
    return (
        Guard(f"{table}_never_change", table, "UPDATE", words),
        Guard(f"{table}_never_go", table, "DELETE", words),
    )


class Store(ABC):
    """A database with transactions; usable from threads and after a fork."""

    def __init__(self, place: str | Path) -> None:
        self.place = place  # of PostgreSQL it may hold a password
        self._connection: Any = None
        self._owner = 0
        self._lock = threading.RLock()

    def __getstate__(self) -> object:
        return self.place

    def __setstate__(self, place: str | Path) -> None:
        self.__init__(place)  # type: ignore[misc]  # a fresh store at the same place

    @abstractmethod
    def initialize(self, statements: Iterable[str], guards: Iterable[Guard] = ()) -> None:
        """Create tables and triggers where they do not exist yet."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[Execute]:
        """Run statements in one transaction that holds the write lock from its beginning."""

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Execute]:
        """Read from one consistent state."""

    @abstractmethod
    def has_guard(self, execute: Execute, name: str) -> bool:
        """Whether there is a trigger of this name."""

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            if self._connection is not None:
                _close_own(self._connection, self._owner)
            self._connection = None

    @contextmanager
    def _run(self, *begin: str, writes: bool = True) -> Iterator[Execute]:
        with self._typed_errors(), self._lock:
            connection = self._open()

            def execute(statement: str, values: Sequence[object]) -> Answer:
                given = (tuple(values),) if values else ()
                cursor = connection.execute(self._worded(statement), *given)
                return Answer(cursor.fetchall() if cursor.description else [], cursor.rowcount)

            try:
                for statement in begin:
                    execute(statement, ())
                yield execute
                if writes:
                    connection.commit()
            finally:
                if not self._is_broken():
                    connection.rollback()  # nothing after a commit

    def _open(self) -> Any:  # noqa: ANN401  # a connection of either driver
        is_own = self._owner == os.getpid()
        if self._connection is not None and is_own and not self._is_broken():
            return self._connection
        if self._connection is not None and not is_own:
            _abandoned.append(self._connection)
        self._connection, self._owner = self._connect(), os.getpid()
        # A store that nobody closed closes its connection when it goes, but never a parent's.
        weakref.finalize(self, _close_own, self._connection, self._owner)
        return self._connection

    def _is_broken(self) -> bool:
        return False

    def _worded(self, statement: str) -> str:
        return statement

    @abstractmethod
    def _connect(self) -> Any:  # noqa: ANN401  # a connection of either driver
        """Open a connection."""

    @abstractmethod
    def _typed_errors(self) -> AbstractContextManager[None]:
        """Turn the driver's errors into ours."""


class SqliteStore(Store):
    """Transactions on a SQLite file; durable at every commit, one writer at a time."""

    def initialize(self, statements: Iterable[str], guards: Iterable[Guard] = ()) -> None:
        """Create the file, its tables and triggers where they do not exist yet."""
        folder = Path(self.place).parent
        if not folder.is_dir():
            msg = f"there is no folder {str(folder)!r} for the ledger"
            raise LedgerError(msg)
        with self.transaction() as execute:
            for statement in statements:
                execute(statement, ())
            for guard in guards:
                when = f"WHEN {guard.condition} " if guard.condition else ""
                execute(
                    f"CREATE TRIGGER IF NOT EXISTS {guard.name} BEFORE {guard.change} ON "
                    f"{guard.table} {when}BEGIN SELECT RAISE(ABORT, '{guard.sentence}'); END",
                    (),
                )

    def transaction(self) -> AbstractContextManager[Execute]:
        """Run statements in one transaction that holds the write lock from its beginning."""
        # IMMEDIATE: a deferred transaction would let two writers read the same balance.
        return self._run("BEGIN IMMEDIATE")

    def snapshot(self) -> AbstractContextManager[Execute]:
        """Read from one consistent state of the file."""
        return self._run("BEGIN", writes=False)

    def has_guard(self, execute: Execute, name: str) -> bool:
        """Whether there is a trigger of this name."""
        query = "SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = ?"
        return bool(execute(query, (name,)).rows)

    def _connect(self) -> sqlite3.Connection:
        """Open the file; one that version 0.1 left with a write-ahead log takes the log in."""
        give_up = time.monotonic() + _WAIT_SECONDS
        while True:
            connection = sqlite3.connect(
                self.place, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=TRUNCATE")
                # FULL synchronises the journal after it was emptied: no power cut brings it back
                # and undoes a charge.
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(f"PRAGMA busy_timeout={int(1000 * _WAIT_SECONDS)}")
            except BaseException as cause:
                connection.close()
                if not _is_busy(cause) or time.monotonic() > give_up:
                    raise
            else:
                return connection
            # Others have the file open with its log, perhaps to take it in as well: try again.
            time.sleep(0.01 + time.monotonic_ns() % 97 / 1000)  # not all at the same time

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as cause:
            msg = f"the ledger {str(self.place)!r} refused an entry: {cause}"
            raise LedgerError(msg) from cause
        except (sqlite3.Error, UnicodeError) as cause:  # a damaged file's message may be no text
            why = str(cause) if isinstance(cause, sqlite3.Error) else "it is damaged"
            msg = f"the file {str(self.place)!r} cannot be used as a ledger: {why}"
            raise LedgerError(msg) from cause


class PostgresStore(Store):
    """Transactions on a PostgreSQL database."""

    _may_lock: bool | None = None

    def initialize(self, statements: Iterable[str], guards: Iterable[Guard] = ()) -> None:
        """Create the tables and triggers where they do not exist yet."""
        # Two creators at once would both try to make the tables.
        with self._run("BEGIN", f"SELECT pg_advisory_xact_lock({_CREATORS})") as execute:
            for statement in statements:
                execute(statement, ())
            for guard in guards:
                change = "DELETE OR TRUNCATE" if guard.change == "DELETE" else guard.change
                scope = f"ROW WHEN ({guard.condition})" if guard.condition else "STATEMENT"
                execute(
                    f"CREATE OR REPLACE FUNCTION private_ate_{guard.name}() RETURNS trigger "
                    f"LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '{guard.sentence}'; END $$",
                    (),
                )
                execute(
                    f"CREATE OR REPLACE TRIGGER {guard.name} BEFORE {change} ON {guard.table} "
                    f"FOR EACH {scope} EXECUTE FUNCTION private_ate_{guard.name}()",
                    (),
                )

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """Let writers queue, as the chain has one end; readers are not held up.

        A role that may not write the ledger cannot lock its table. Whoever writes beside it takes
        the advisory lock, as everybody does.
        """
        with self._run("BEGIN", f"SELECT pg_advisory_xact_lock({_WRITERS})") as execute:
            if self._may_lock is None:
                query = "SELECT has_table_privilege(to_regclass('entries'), 'UPDATE')"
                rows = execute(query, ()).rows
                self._may_lock = rows[0][0] is not False  # None: the table is missing
            if self._may_lock:
                execute("LOCK TABLE entries IN EXCLUSIVE MODE", ())
            yield execute

    def snapshot(self) -> AbstractContextManager[Execute]:
        """Read from one consistent state of the database."""
        return self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", writes=False)

    def has_guard(self, execute: Execute, name: str) -> bool:
        """Whether there is a trigger of this name."""
        return bool(execute("SELECT 1 FROM pg_trigger WHERE tgname = ?", (name,)).rows)

    def _is_broken(self) -> bool:
        return bool(self._connection.closed)

    def _worded(self, statement: str) -> str:
        return statement.replace("?", "%s")

    def _connect(self) -> Any:  # noqa: ANN401  # an optional type
        connection = _driver().connect(self.place, autocommit=True, connect_timeout=10)
        # A role may have it off; a charge that a crash could undo would be no charge.
        connection.execute("SET synchronous_commit = on")
        return connection

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        psycopg = _driver()
        try:
            yield
        except psycopg.errors.UniqueViolation as cause:
            msg = "the ledger refused an entry that exists already"
            raise LedgerError(msg) from cause
        except psycopg.Error as cause:
            text = str(cause).strip().splitlines() or [type(cause).__name__]
            msg = f"the PostgreSQL ledger cannot be used: {text[0]}"
            raise LedgerError(msg) from None  # the driver's error may hold the connection string


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


def read_one(execute: Execute, kind: type[Row], rest: str, *values: object) -> Row | None:
    """Return the first of such rows, None if there is none."""
    return next(iter(read_rows(execute, kind, rest, *values)), None)


def write_row(execute: Execute, table: str, row: object) -> None:
    """Add a dataclass, whose fields are columns, to a table."""
    insert(
        execute, table, **{item.name: getattr(row, item.name) for item in fields(cast("Any", row))}
    )


def insert(execute: Execute, table: str, **values: object) -> None:
    """Add a row to a table."""
    places = ", ".join("?" for _ in values)
    statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"  # noqa: S608  # as above
    execute(statement, tuple(values.values()))


def update(execute: Execute, table: str, where: str, *held: object, **changes: object) -> int:
    """Change columns of the rows that a condition holds for; return how many there were."""
    columns = ", ".join(f"{name} = ?" for name in changes)
    statement = f"UPDATE {table} SET {columns} WHERE {where}"  # noqa: S608  # as above
    return execute(statement, (*changes.values(), *held)).changed


@cache
def _columns(kind: type) -> tuple[str, tuple[Callable[[Any], Any], ...]]:
    items = fields(kind)
    names = ", ".join(item.metadata.get("column", item.name) for item in items)
    return names, tuple(item.metadata.get("read", _as_it_is) for item in items)


def _as_it_is(held: object) -> object:
    return held


def is_postgres(location: str | Path) -> bool:
    """Whether a place is a database of PostgreSQL."""
    return str(location).startswith(("postgresql://", "postgres://"))


def store_for(location: str | Path, *, must_exist: bool) -> Store:
    """Return the store of a path or of a PostgreSQL URL."""
    if is_postgres(location):
        return PostgresStore(str(location))
    if "://" in str(location):
        msg = "a ledger is a file or a URL that begins with postgresql://"
        raise LedgerError(msg)
    path = Path(location)
    if must_exist and not path.is_file():
        msg = f"there is no ledger {str(location)!r}; make one with Ledger.create"
        raise LedgerError(msg, parameter="ledger")
    return SqliteStore(path)


def _close_own(connection: Any, owner: int) -> None:  # noqa: ANN401  # of either driver
    if owner == os.getpid():
        connection.close()


def _is_busy(cause: BaseException) -> bool:
    return isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_BUSY_RECOVERY,
        sqlite3.SQLITE_LOCKED,
    )


def _driver() -> Any:  # noqa: ANN401  # an optional module
    try:
        import psycopg  # the `postgres` extra
    except ImportError as cause:
        msg = "a PostgreSQL ledger needs psycopg: pip install 'private-ate[postgres]'"
        raise ArgumentError(msg) from cause
    return psycopg
