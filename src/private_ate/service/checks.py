"""Checks both histories for those who look often: a check is made once a minute at most.

A check reads everything, which takes longer the longer a history is. It is never made because a
history grew: whoever looks could tell from that, before an answer is visible, how far the work has
come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from private_ate.errors import LedgerError
from private_ate.privacy.ledger.ledger import Ledger
from private_ate.privacy.ledger.store import Store
from private_ate.service.store.events import read_events, verify_events

__all__ = ["Check", "Checks"]

_HOLDS: Final = 60_000  # milliseconds


@dataclass(frozen=True, slots=True)
class Check:
    """How both histories were found, and when; ``problem`` is empty if they verify."""

    events: int
    problem: str
    at: int


@dataclass(slots=True)
class Checks:
    """Makes checks of a store, and remembers the last."""

    store: Store
    clock: Callable[[], int]
    _last: Check | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def look(self) -> Check:
        """Return a check that is a minute old at most."""
        with self._lock:  # one at a time: who comes meanwhile gets the same
            moment, known = self.clock(), self._last
            if known is None or not 0 <= moment - known.at < _HOLDS:
                known = self._last = self._check(moment)
            return known

    def _check(self, moment: int) -> Check:
        with self.store.snapshot() as execute:
            events = read_events(execute)
        try:
            Ledger(self.store).verify()
            verify_events(events)
        except LedgerError as error:
            return Check(len(events), str(error), moment)
        return Check(len(events), "", moment)
