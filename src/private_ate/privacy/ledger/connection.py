"""Where a ledger is kept: the small interface that SQLite and PostgreSQL both answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Answer", "Execute", "Store"]


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
