"""Fair shares of plans and made-up data, which take a core of the web process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from private_ate.service.refusals import TooMany

__all__ = ["Shares"]


@dataclass(slots=True)
class Shares:
    """Runs a few computations at a time, one for each user; some more wait for their turn.

    A user has two places, and one when half of them are taken: so it takes as many users as half
    the places to keep somebody else out.
    """

    at_once: int = 2  # a plan takes a second of a core
    places: int = 12  # more threads that wait would hold up everything else
    _held: Counter[str] = field(default_factory=Counter, repr=False)
    _running: set[str] = field(default_factory=set, repr=False)
    _news: threading.Condition = field(default_factory=threading.Condition, repr=False)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Wait for a turn and keep it; refuse who has a full share, and everybody when full."""
        with self._news:
            taken = self._held.total()
            share = 1 if 2 * taken >= self.places else 2
            if taken >= self.places or self._held[name] >= share:
                msg = "more plans and made-up data are asked for than can be made; wait a moment"
                raise TooMany(msg)
            self._held[name] += 1
            self._news.wait_for(lambda: self._may_run(name))
            self._running.add(name)
        try:
            yield
        finally:
            with self._news:
                self._running.remove(name)
                self._held[name] -= 1
                self._held += Counter()  # drops users who hold nothing
                self._news.notify_all()

    def _may_run(self, name: str) -> bool:
        return name not in self._running and len(self._running) < self.at_once
