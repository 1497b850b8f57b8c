"""One job in a process of its own: limits first, then one estimate, charged at the choke point.

``python -m private_ate.service.worker.job FD`` reads an order from standard input and writes one
report to the pipe FD. It prints nothing: whatever a package would say could quote a record.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from private_ate.errors import PrivateAteError

_PR_SET_PDEATHSIG: Final = 1
Aim = Literal["estimate", "charge", "check"]
End = Literal["done", "refused", "ended"]
# Codes of errors whose texts speak of what the analyst wrote; others become a constant.
_QUOTED: Final = frozenset({"argument", "domain", "budget", "undeclared", "range"})
UNAVAILABLE: Final = "the data set cannot be used at the moment; curators see it in their queue"


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this signal when the parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


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


def main() -> None:
    """Read the order, do it, write the report."""
    pipe = int(sys.argv[1])
    order = Order(**json.loads(sys.stdin.read()))
    _limit(order)
    report = _do(order)
    with os.fdopen(pipe, "w", encoding="utf-8") as file:
        json.dump(asdict(report), file)
    os._exit(0)  # nothing of other packages runs after the report


def _limit(order: Order) -> None:
    """Die with the worker, leave no core, take no more memory and time than allowed."""
    end_with_parent(order.parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(ValueError, OSError):  # a limit that is lower already stays
        resource.setrlimit(resource.RLIMIT_AS, (order.memory, order.memory))
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (order.seconds, order.seconds))


def _do(order: Order) -> Report:
    """Run the job; every end is reported by a code and a text of public facts."""
    try:
        from private_ate.service.worker import tasks  # within the limits

        steps = {"estimate": tasks.estimate, "charge": tasks.charge, "check": tasks.check}
        return steps[order.aim](order)
    except PrivateAteError as error:
        if error.code in _QUOTED and not (order.folder and order.folder in str(error)):
            return Report("refused", error.code, str(error))
        return Report("refused", error.code, UNAVAILABLE)
    except Exception:  # noqa: BLE001  # its text could quote a record; the charge was made
        return Report("ended")


if __name__ == "__main__":
    main()
