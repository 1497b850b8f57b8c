"""When an answer appears: at times that follow from public numbers, never from the work itself.

How long an estimate takes depends on records. So an answer is visible at its start plus a whole
number of ticks that covers a bound on the running time, and one that is late appears at the next
tick. Cancelling is decided by the start alone: before it nothing can have been charged, after it
everything counts as charged, whatever the worker has done by then.
"""

from __future__ import annotations

from typing import Final

from private_ate.estimators.registry import METHODS
from private_ate.privacy.levels import Level, has_public_covariates

__all__ = ["due_time", "running_bound", "visible_time"]

# Seconds: measured in docs/scale.md for twenty covariates on two cores, several times over.
_START: Final = 5.0
_PUBLIC_ROW: Final = 2e-4
_PRIVATE_ROW: Final = 5e-5
_ORDERED_ROW: Final = 1e-3  # methods that are kept for comparison
_SLOW: Final = 600.0


def running_bound(method: str, level: Level, rows: int, features: int) -> float:
    """Return seconds within which a job of this size ends, from public numbers alone."""
    known = METHODS[method]
    row = _PUBLIC_ROW if has_public_covariates(level) else _PRIVATE_ROW
    if known.is_baseline or method == "published":
        row = _ORDERED_ROW
    return _START + (_SLOW if known.is_slow else 0) + row * rows * (1 + features / 20)


def due_time(start: int, bound: float, tick: float) -> int:
    """Return the first tick after the bound; times are in milliseconds, counted from the start."""
    step = round(1000 * tick)
    return start + -(-round(1000 * bound) // step) * step


def visible_time(due: int, finished: int, tick: float) -> int:
    """Return when an answer appears: when it is due, or at the next tick if it is late."""
    step = round(1000 * tick)
    late = max(finished - due, 0)
    return due + -(-late // step) * step
