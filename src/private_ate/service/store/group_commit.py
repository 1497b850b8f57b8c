"""Group commit: what comes in while a transaction is written waits, and is written together.

A durable commit waits for the disk, whatever it holds. Each piece of work has a savepoint of its
own, so that a refusal undoes that piece alone; success is reported only when all is on disk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from private_ate.errors import PrivateAteError
from private_ate.ledger.stores import Execute, Store

Value = TypeVar("Value")
_LONGEST: Final = 0.02  # seconds that a group waits for more, once several came at a time


@dataclass(slots=True)
class _Piece:
    """One piece of work, and how it ended."""

    act: Callable[[Execute], Any]
    is_done: bool = False
    value: Any = None
    error: Exception | None = None

    def attempt(self, execute: Execute) -> None:
        """Do the work within a savepoint; a refusal is kept, anything else ends the group."""
        execute("SAVEPOINT piece", ())
        try:
            self.value = self.act(execute)
        except PrivateAteError as error:
            execute("ROLLBACK TO SAVEPOINT piece", ())
            self.error = error
        execute("RELEASE SAVEPOINT piece", ())


@dataclass(slots=True)
class Group:
    """Runs pieces of work of several threads in shared transactions of a store."""

    store: Store
    _waiting: list[_Piece] = field(default_factory=list, repr=False)
    _is_writing: bool = field(default=False, repr=False)
    _patience: float = field(default=0.0, repr=False)
    _news: threading.Condition = field(default_factory=threading.Condition, repr=False)

    def run(self, act: Callable[[Execute], Value]) -> Value:
        """Do a piece of work durably; return its value or raise its refusal."""
        piece = _Piece(act)
        taken: list[_Piece] = []
        with self._news:
            self._waiting.append(piece)
            self._news.wait_for(lambda: piece.is_done or not self._is_writing)
            if not piece.is_done:  # nobody took it along
                self._is_writing = True
                self._news.wait(self._patience)  # for those who were held up by the last write
                taken, self._waiting = self._waiting, []
        if taken:
            begun = time.monotonic()
            try:
                self._write(taken)
            finally:
                with self._news:
                    spent = time.monotonic() - begun
                    self._patience = min(spent / 4, _LONGEST) if len(taken) > 1 else 0.0
                    self._is_writing = False
                    self._news.notify_all()
        if piece.error is not None:
            raise piece.error
        return cast("Value", piece.value)

    def _write(self, pieces: list[_Piece]) -> None:
        """Write pieces in one transaction; if that fails, each in its own."""
        try:
            with self.store.transaction() as execute:
                for piece in pieces:
                    piece.attempt(execute)
        except Exception as error:  # noqa: BLE001  # each piece gets its own, or this one
            if len(pieces) == 1:
                pieces[0].error, pieces[0].value = error, None
            else:
                for piece in pieces:
                    piece.error, piece.value = None, None
                    self._write([piece])
        for piece in pieces:
            piece.is_done = True
