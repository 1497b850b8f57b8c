"""How much one analyst may have under way, so that nobody keeps others waiting."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from private_ate.arguments import settle, whole_number
from private_ate.codec import decode
from private_ate.privacy.ledger.store import Execute
from private_ate.service.refusals import TooMany
from private_ate.service.store.requests import count_requests

__all__ = ["Limits"]

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

    @classmethod
    def read(cls, plain: object) -> Limits:
        """Build limits from plain values, as TOML gives them."""
        return decode(cls, plain, "[limits]", "service.toml")

    def require_room(self, execute: Execute, analyst: str, *, dummy: bool, moment: int) -> None:
        """Refuse one more request of an analyst; follows what may be known at this moment."""
        found = count_requests(execute, analyst, dummy=dummy, moment=moment)
        about = "for made-up data " if dummy else ""
        if found.a_day >= self.a_day:
            msg = f"you may make {self.a_day} requests {about}in a day; ask again later"
            raise TooMany(msg)
        if found.under_way >= self.under_way:
            msg = (
                f"you have {found.under_way} requests {about}under way, the most that one analyst "
                "may; wait for an answer or cancel one"
            )
            raise TooMany(msg)

    def require_room_to_wait(self, execute: Execute, analyst: str, moment: int) -> None:
        """Refuse one more request that would wait for a curator."""
        found = count_requests(execute, analyst, dummy=False, moment=moment)
        if found.waiting >= self.waiting:
            msg = (
                f"you have {found.waiting} requests that wait for a curator, the most that one "
                "analyst may; wait for a decision or cancel one"
            )
            raise TooMany(msg)
