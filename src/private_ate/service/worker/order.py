"""What a worker tells a job to do, and how a job says it ended."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

Aim = Literal["estimate", "charge", "check"]
End = Literal["done", "refused", "ended"]
UNAVAILABLE: Final = "the data set cannot be used at the moment; curators see it in their queue"


@dataclass(frozen=True, slots=True)
class Order:
    """What a job is to do, as plain values; ``source`` is a data set's file, empty for a dummy.

    A check of a file has the name of the data set in place of a request's.
    """

    store: str
    request: str
    claim: str = field(repr=False)
    worker: str
    tick: float
    folder: str = field(default="", repr=False)
    source: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    memory: int = 8 << 30
    seconds: int = 3600
    parent: int = 0  # the worker's process
    aim: Aim = "estimate"

    def text(self) -> str:
        """Return the order as JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Report:
    """How a job ended: ``ended`` says nothing more, the state of the request does."""

    end: End
    code: str = ""
    reason: str = ""
    body: str = ""
