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

from private_ate.ledger.store import Execute
from private_ate.methods.registry import METHODS
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.service.question import Settled
from private_ate.service.store.catalogue import Dataset
from private_ate.service.store.tables import rows_of

__all__ = [
    "JobSize",
    "Lane",
    "Pending",
    "assign_slots",
    "due_time",
    "dummy_bound",
    "dummy_rows",
    "job_seconds",
    "running_bound",
    "take_turns",
    "visible_time",
]

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
_DAY: Final = 24 * 3600 * 1000


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

    @classmethod
    def of(cls, settled: Settled, dataset: Dataset) -> JobSize:
        """Return the size of a question's job."""
        request, domain = settled.request, dataset.domain
        return cls(
            settled.method.name, dataset.level, dataset.size, len(domain.features),
            domain.treatment.size, len(request.by),
            getattr(request.options, "partitions", None), request.target == "track",
        )  # fmt: skip

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


@dataclass(frozen=True, slots=True)
class Lane:
    """What works one request at a time: a data set, or made-up data from its domain."""

    dataset: str
    is_dummy: bool


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


def assign_slots(execute: Execute, lane: Lane, moment: int, grace: float, tick: float) -> None:
    """Give every request of a lane whose slot has not begun its slot and its due time.

    Slots that have begun stay. What was cancelled takes no time, and a slot that is over delays
    nothing.
    """
    which = (lane.dataset, int(lane.is_dummy))
    begun = rows_of(
        execute,
        "SELECT analyst, MAX(start), MAX(ends) FROM service_requests WHERE dataset = ? "
        "AND dummy = ? AND start > ? AND state IN ('queued', 'charged', 'done', 'lost', 'refused') "
        "AND (start <= ? OR claim <> '') GROUP BY analyst",
        *which, moment - _DAY, moment,
    )  # fmt: skip
    found = rows_of(
        execute,
        "SELECT id, analyst, queued, start, ends, due FROM service_requests WHERE dataset = ? "
        "AND dummy = ? AND start > ? AND state = 'queued' AND claim = ''",
        *which, moment,
    )  # fmt: skip
    patience = round(1000 * grace)
    times = {str(name): [_whole(time) for time in rest] for name, _, *rest in found}
    pending = [
        Pending(str(name), str(analyst), _whole(queued) + patience, _whole(ends) - _whole(start))
        for name, analyst, queued, start, ends, _ in found
    ]
    free = max([moment, *(_whole(ends) for _, _, ends in begun)])
    served = {str(analyst): _whole(start) for analyst, start, _ in begun}
    for name, begin in take_turns(pending, free, served).items():
        queued, start, ends, due = times[name]
        slot = (begin, begin + ends - start)
        new = (*slot, due_time(queued, (slot[1] - queued) / 1000, tick))
        if new != (start, ends, due):
            execute(
                "UPDATE service_requests SET start = ?, ends = ?, due = ? WHERE id = ?",
                (*new, name),
            )


def _whole(value: object) -> int:
    return int(str(value))
