"""When an answer appears: at times that follow from public numbers, never from the work itself.

How long an estimate takes depends on records. So an answer is visible a whole number of ticks after
it was queued, which cover the slot of its work (`service.schedule`), and one that is late appears
at the next tick. Cancelling is decided by the slot's start alone: before it nothing can have been
charged, after it everything counts as charged, whatever the worker has done by then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from private_ate.estimators.registry import METHODS
from private_ate.privacy.levels import Level, has_public_covariates
from private_ate.service.question import Settled
from private_ate.service.store.catalogue import Dataset

__all__ = [
    "JobSize", "due_time", "dummy_bound", "dummy_rows", "job_seconds", "running_bound",
    "visible_time",
]  # fmt: skip

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

    ``subgroups`` is by how many columns and cuts people are divided, ``partitions`` how often
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
    """Return how many made-up people stand for a data set of this size."""
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
