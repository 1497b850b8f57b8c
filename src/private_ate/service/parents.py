"""Processes that end with the one that started them, however that one ends."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

__all__ = ["end_with_parent"]

_PR_SET_PDEATHSIG: Final = 1


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Let the kernel send this signal when the parent ends; on Linux, elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)
