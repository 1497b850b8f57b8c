"""How much one analyst may have under way or computed, so that nobody keeps others waiting."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Final

from private_ate.arguments import settle, whole_number
from private_ate.service.vocabulary import TooMany

_MOST: Final = 10**9


@dataclass(frozen=True, slots=True)
class Limits:
    """The most requests of one analyst: under way, waiting for a curator, and in a day.

    Requests for made-up data are counted by themselves, with the same limits. What was cancelled
    counts in its day.
    """

    under_way: int = 10
    waiting: int = 10
    a_day: int = 100

    def __post_init__(self) -> None:
        for item in fields(self):
            settle(self, **{item.name: whole_number(item.name, getattr(self, item.name), 1, _MOST)})

    def require_room(self, under_way: int, a_day: int, *, dummy: bool) -> None:
        """Refuse one more request of an analyst who has so many."""
        about = "for made-up data " if dummy else ""
        if a_day >= self.a_day:
            msg = f"you may make {self.a_day} requests {about}in a day; ask again later"
            raise TooMany(msg)
        if under_way >= self.under_way:
            msg = (
                f"you have {under_way} requests {about}under way, the most that one analyst "
                "may; wait for an answer or cancel one"
            )
            raise TooMany(msg)

    def require_room_to_wait(self, waiting: int) -> None:
        """Refuse one more request that would wait for a curator."""
        if waiting >= self.waiting:
            msg = (
                f"you have {waiting} requests that wait for a curator, the most that one "
                "analyst may; wait for a decision or cancel one"
            )
            raise TooMany(msg)


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
            running = self._running
            self._news.wait_for(lambda: name not in running and len(running) < self.at_once)
            self._running.add(name)
        try:
            yield
        finally:
            with self._news:
                self._running.remove(name)
                self._held[name] -= 1
                self._held += Counter()  # drops users who hold nothing
                self._news.notify_all()
