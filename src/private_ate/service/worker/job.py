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
from dataclasses import asdict
from typing import Final

from private_ate.errors import PrivateAteError
from private_ate.service.worker.order import UNAVAILABLE, Order, Report

_PR_SET_PDEATHSIG: Final = 1
# Codes of errors whose texts speak of what the analyst wrote; others become a constant.
_QUOTED: Final = frozenset({"argument", "domain", "budget", "undeclared", "range"})


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this signal when the parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)


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
