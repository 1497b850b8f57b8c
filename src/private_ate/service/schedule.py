"""When each request is worked on: in slots of public length, in which analysts take turns.

A data set has one job at a time. Each queued request has a slot that is as long as the bound on its
running time, and no job starts before its slot does. So when a job starts follows from what was
asked and cancelled, and never from how long another job took. Requests for made-up data have slots
of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from private_ate.privacy.ledger.store import Execute
from private_ate.service.store.tables import rows_of
from private_ate.service.ticks import due_time

__all__ = ["Lane", "Pending", "assign_slots", "take_turns"]

_DAY: Final = 24 * 3600 * 1000


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

    The next slot is for the analyst whose last slot began longest ago (``served``), and within her
    requests for the oldest. All times are in milliseconds.
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
