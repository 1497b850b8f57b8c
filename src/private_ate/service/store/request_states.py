"""The states of a request, and the only steps between them.

``draft → planned → (waiting) → approved → queued → charged → done | lost``, or ``refused`` or
``cancelled`` on the way. There is no way back and no second try: a noisy job that ran twice would
be a second look for one price. The stores refuse every other step by a trigger.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

State = Literal[
    "draft", "planned", "waiting", "approved", "queued", "charged", "done", "lost", "refused",
    "cancelled",
]  # fmt: skip
FINAL: Final[frozenset[State]] = frozenset({"done", "lost", "refused", "cancelled"})
MOVES: Final[dict[State, frozenset[State]]] = {
    "draft": frozenset({"planned"}),
    "planned": frozenset({"waiting", "approved"}),
    "waiting": frozenset({"approved", "refused", "cancelled"}),
    "approved": frozenset({"queued"}),
    # Only a dummy request is done without a charge.
    "queued": frozenset({"charged", "done", "refused", "cancelled"}),
    "charged": frozenset({"done", "lost"}),
    "done": frozenset(),
    "lost": frozenset(),
    "refused": frozenset(),
    "cancelled": frozenset(),
}
# The same on pages, at the command line and in errors; a charged request is shown as queued.
_WORDS: Final[dict[str, str]] = {
    "waiting": "waits for a curator",
    "queued": "under way",
    "done": "answered",
}


def state_words(state: str) -> str:
    """Return the words for a state; most states, and those of a newer service, are their own."""
    return _WORDS.get(state, state)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many requests an analyst has under way, waiting for a curator, and made in a day."""

    under_way: int
    waiting: int
    a_day: int
