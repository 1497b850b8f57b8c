"""When a request is worked on and when its answer appears: follows from public numbers alone.

How long an estimate takes depends on records, so neither time depends on it. A data set has one job
at a time. Each queued request has a slot that is as long as the bound on its running time, and no
job starts before its slot does; analysts take turns, and requests for made-up data have slots of
their own. An answer is visible a whole number of ticks after it was queued, which cover its slot,
and one that is late appears at the next tick. Cancelling is decided by the slot's start alone:
before it nothing can have been charged, after it everything counts as charged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from private_ate.methods.registry import METHODS
from private_ate.privacy.levels import Level, has_public_covariates

# Seconds: measured for twenty covariates on two cores (docs/scale.md), several times over.
_START: Final = 5.0
_PUBLIC_ROW: Final = 2e-4
_PRIVATE_ROW: Final = 5e-5
_PARTITION_ROW: Final = 2e-5  # of each partition into blocks
_ORDERED_ROW: Final = 1e-3  # where rows are put in order: matching, and methods for comparison
_MANY_ROWS: Final = 20_000  # from here on blocks are cut three times by default, ten times below
_SLOW: Final = 600.0
_DUMMIES: Final = 10_000  # rows of made-up data
_DUMMY: Final = 60.0  # of one job on made-up data
_ROOM: Final = 4.0  # a busy machine may need several times the bound before a job is ended
_AT_LEAST: Final = 60.0  # loading the library took twenty seconds where ten jobs shared two cores


@dataclass(frozen=True, slots=True)
class JobSize:
    """What bounds the running time of a job, all of it public.

    ``subgroups`` is by how many columns and cuts units are divided, ``partitions`` how often
    `blocks` cuts the rows (None for its default), ``is_matched`` whether neighbours are matched.
    """

    method: str
    level: Level
    rows: int
    features: int
    arms: int = 2
    subgroups: int = 0
    partitions: int | None = None
    is_matched: bool = False

    @property
    def of_a_row(self) -> float:
        """Seconds that a row of twenty covariates takes, half of which are for the covariates."""
        if METHODS[self.method].is_baseline or self.method == "published" or self.is_matched:
            return _ORDERED_ROW
        if self.method == "blocks":
            default = 10 if self.rows <= _MANY_ROWS else 3
            return max(_PARTITION_ROW * (self.partitions or default), _PRIVATE_ROW)
        return _PUBLIC_ROW if has_public_covariates(self.level) else _PRIVATE_ROW


def running_bound(job: JobSize) -> float:
    """Return seconds within which a job of this size ends, from public numbers alone."""
    width = 1 + job.features / 20
    width = max(width, width**2 / 2)  # products of covariates, where there are many
    times = (1 + job.subgroups) * max(job.arms - 1, 1)
    slow = _SLOW if METHODS[job.method].is_slow else 0
    return _START + slow + job.of_a_row * job.rows * width * times


def dummy_rows(rows: int) -> int:
    """Return how many made-up rows stand for a data set of this size."""
    return min(rows, _DUMMIES)


def dummy_bound(job: JobSize) -> float:
    """Return seconds that a job on made-up data may take."""
    return min(running_bound(replace(job, rows=dummy_rows(job.rows))), _DUMMY)


def job_seconds(slot: int, *, is_dummy: bool) -> float:
    """Return seconds after which a job is ended: its slot (in milliseconds) several times over."""
    return _DUMMY if is_dummy else max(_ROOM * slot / 1000, _AT_LEAST)


def due_time(start: int, bound: float, tick: float) -> int:
    """Return the first tick after the bound; times are in milliseconds, counted from the start."""
    step = round(1000 * tick)
    return start + -(-round(1000 * bound) // step) * step


def visible_time(due: int, finished: int, tick: float) -> int:
    """Return when an answer appears: when it is due, or at the next tick if it is late."""
    step = round(1000 * tick)
    late = max(finished - due, 0)
    return due + -(-late // step) * step


@dataclass(frozen=True, slots=True)
class Pending:
    """A request whose slot has not begun: whose it is, when it may begin, how long it may take."""

    id: str
    analyst: str
    ready: int
    length: int


def take_turns(pending: Iterable[Pending], free: int, served: Mapping[str, int]) -> dict[str, int]:
    """Return when each slot begins, from the time at which the lane is free.

    The next slot is for the analyst whose last slot began longest ago (``served``), and among
    those requests the oldest. All times are in milliseconds.
    """
    lines: dict[str, list[Pending]] = {}
    for one in sorted(pending, key=lambda one: (one.ready, one.id), reverse=True):
        lines.setdefault(one.analyst, []).append(one)  # the oldest is at the end
    last, begins, moment = dict(served), dict[str, int](), free
    while lines:
        heads = [line[-1] for line in lines.values()]
        moment = max(moment, min(one.ready for one in heads))
        ready = [one for one in heads if one.ready <= moment]
        chosen = min(ready, key=lambda one: (last.get(one.analyst, -1), one.ready, one.id))
        begins[chosen.id] = last[chosen.analyst] = moment
        moment += chosen.length
        lines[chosen.analyst].pop()
        if not lines[chosen.analyst]:
            del lines[chosen.analyst]
    return begins
