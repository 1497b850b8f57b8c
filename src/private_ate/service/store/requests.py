"""Requests as they are kept: every change is a conditional update, with an event.

The steps of a worker are no events yet: `service.store.worker_events` writes them when they are
public.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.store import Execute
from private_ate.service.question import Question
from private_ate.service.refusals import Missing
from private_ate.service.store.events import write_event
from private_ate.service.store.request_states import FINAL, MOVES, State
from private_ate.service.store.tables import one, rows_of
from private_ate.service.store.users import is_there

__all__ = [
    "FINAL",
    "MOVES",
    "Counts",
    "RequestRow",
    "State",
    "approvers_of",
    "asked_in_a_day",
    "asked_in_a_month",
    "count_requests",
    "end_with",
    "find_request",
    "insert_request",
    "list_requests",
    "move",
    "spent_and_reserved",
    "write_approval",
]

_DAY: Final = 24 * 3600 * 1000
_MONTH: Final = 30 * _DAY


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request as it is kept; times are milliseconds, zero where they have not come.

    From ``start`` to ``ends`` is its slot (`service.release_times`): work begins no earlier and
    ends by public bounds. ``due`` is when its answer appears, ``visible`` when it does. The body is
    the release of a dummy request; the ledger keeps the others.
    """

    id: str
    dataset: str
    analyst: str
    question: str
    plan: str
    epsilon: int
    delta: int
    dummy: int
    state: State
    code: str
    reason: str
    submitted: int
    queued: int
    start: int
    ends: int
    due: int
    visible: int
    approvers: str
    worker: str
    claim: str
    body: str

    @property
    def cost(self) -> BudgetUnits:
        """What it costs once it is charged."""
        return BudgetUnits(self.epsilon, self.delta)

    @property
    def asked(self) -> Question:
        """The question as it was put."""
        return Question.read(json.loads(self.question))

    @property
    def has_approved(self) -> tuple[str, ...]:
        """Who has approved so far."""
        return tuple(json.loads(self.approvers))

    def is_visible(self, now: int) -> bool:
        """Whether its end may be shown."""
        return self.state in FINAL and self.visible <= now

    def shown(self, now: int) -> State:
        """Return the state as it may be shown: from the queue on nothing more, until the tick."""
        if self.state == "charged" or (self.state in FINAL and not self.is_visible(now)):
            return "queued"
        return self.state


_NAMES: Final = ", ".join(field.name for field in fields(RequestRow))


def insert_request(execute: Execute, row: RequestRow) -> None:
    """Keep a new request."""
    places = ", ".join("?" for _ in fields(RequestRow))
    execute(
        f"INSERT INTO service_requests ({_NAMES}) VALUES ({places})",  # noqa: S608  # constants
        [getattr(row, field.name) for field in fields(RequestRow)],
    )
    facts = {
        "dataset": row.dataset, "plan": row.plan, "question": json.loads(row.question),
        "epsilon": row.cost.epsilon_text, "delta": row.cost.delta_text,
    }  # fmt: skip
    write_event(execute, row.state, row.id, row.analyst, facts)


def find_request(execute: Execute, name: str) -> RequestRow:
    """Return a request by its id."""
    found = one(
        execute,
        f"SELECT {_NAMES} FROM service_requests WHERE id = ?",  # noqa: S608  # constants
        name,
    )
    if found is None:
        msg = "there is no such request"
        raise Missing(msg)
    return RequestRow(*cast("Any", found))


def list_requests(
    execute: Execute,
    *,
    analyst: str = "",
    states: Iterable[State] = (),
    last: int = 200,
    skip: int = 0,
) -> list[RequestRow]:
    """Return the newest requests first but those to skip, of one analyst or in some states."""
    wanted = tuple(states)
    conditions = ["analyst = ?"] * bool(analyst)
    if wanted:
        conditions.append(f"state IN ({', '.join('?' for _ in wanted)})")
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    found = rows_of(
        execute,
        f"SELECT {_NAMES} FROM service_requests {where}"  # noqa: S608  # constants
        "ORDER BY submitted DESC, id LIMIT ? OFFSET ?",
        *((analyst,) if analyst else ()), *wanted, last, skip,
    )  # fmt: skip
    return [RequestRow(*cast("Any", row)) for row in found]


def move(  # the step, who makes it and what it writes
    execute: Execute,
    name: str,
    before: State,
    after: State,
    actor: str,
    *,
    claim: str | None = None,
    facts: dict[str, Any] | None = None,
    **columns: object,
) -> bool:
    """Take a request from one state to another if it is there still; False if it is not.

    With ``claim`` only for the holder of that claim, whose step becomes an event when the answer
    appears. ``columns`` are written in the same update.
    """
    if after not in MOVES[before]:
        msg = f"no request goes from {before} to {after}"
        raise ValueError(msg)
    changes = "".join(f", {column} = ?" for column in columns)
    held = "" if claim is None else " AND claim = ?"
    done = execute(
        f"UPDATE service_requests SET state = ?{changes} "  # noqa: S608  # names of our own
        f"WHERE id = ? AND state = ?{held}",
        (after, *columns.values(), name, before, *(() if claim is None else (claim,))),
    )
    if done.changed != 1:
        return False
    if claim is None:
        write_event(execute, after, name, actor, facts)
    return True


@dataclass(frozen=True, slots=True)
class Counts:
    """How many requests an analyst has under way, waiting for a curator, and made in a day."""

    under_way: int
    waiting: int
    a_day: int


def count_requests(execute: Execute, analyst: str, *, dummy: bool, moment: int) -> Counts:
    """Count an analyst's requests by what may be known at this moment."""
    found = one(
        execute,
        "SELECT COALESCE(SUM(CASE WHEN state IN ('approved', 'queued', 'charged') OR (state IN "
        "('done', 'lost', 'refused', 'cancelled') AND visible > ?) THEN 1 ELSE 0 END), 0), "
        "COALESCE(SUM(CASE WHEN state = 'waiting' THEN 1 ELSE 0 END), 0), "
        "COALESCE(SUM(CASE WHEN submitted > ? THEN 1 ELSE 0 END), 0) "
        "FROM service_requests WHERE analyst = ? AND dummy = ?",
        moment, moment - _DAY, analyst, int(dummy),
    )  # fmt: skip
    return Counts(*(int(str(count)) for count in found or (0, 0, 0)))


def asked_in_a_month(execute: Execute, analyst: str, population: str, moment: int, but: str) -> int:
    """Return the billionths of ε that an analyst asked for in thirty days, ``but`` one request.

    What ended free counts until that may be shown.
    """
    found = one(
        execute,
        "SELECT COALESCE(SUM(r.epsilon), 0) FROM service_requests r "
        "JOIN service_datasets d ON d.name = r.dataset WHERE r.analyst = ? "
        "AND d.population = ? AND r.dummy = 0 AND r.submitted > ? AND r.submitted <= ? "
        "AND r.id <> ? AND NOT (r.state IN ('refused', 'cancelled') AND r.visible <= ?)",
        analyst, population, moment - _MONTH, moment, but, moment,
    )  # fmt: skip
    return int(str(found[0])) if found else 0


def asked_in_a_day(execute: Execute, analyst: str, population: str, moment: int, but: str) -> int:
    """Return how many requests an analyst made in 24 hours, whatever became of them.

    Looking back at a request (``but``) counts those that came earlier, so that none of the same
    instant is refused afterwards for another.
    """
    last = moment if not but else moment - 1
    found = one(
        execute,
        "SELECT COUNT(*) FROM service_requests r JOIN service_datasets d ON d.name = r.dataset "
        "WHERE r.analyst = ? AND d.population = ? AND r.dummy = 0 AND r.submitted > ? "
        "AND r.submitted <= ? AND r.id <> ?",
        analyst, population, moment - _DAY, last, but,
    )  # fmt: skip
    return int(str(found[0])) if found else 0


def write_approval(execute: Execute, row: RequestRow, approver: str) -> None:
    """Keep a curator's approval of a plan, where the web's own role cannot write."""
    execute(
        "INSERT INTO service_approvals (request, plan, approver) VALUES (?, ?, ?)",
        (row.id, row.plan, approver),
    )


def approvers_of(execute: Execute, row: RequestRow) -> tuple[str, ...]:
    """Return the curators who approved the plan of a request and have not been revoked since."""
    found = rows_of(
        execute,
        "SELECT a.approver FROM service_approvals a JOIN service_users u ON u.name = a.approver "
        "WHERE a.request = ? AND a.plan = ? AND u.role = 'curator' ORDER BY a.approver",
        row.id, row.plan,
    )  # fmt: skip
    return tuple(str(name) for (name,) in found if is_there(execute, str(name)))


def end_with(execute: Execute, name: str, actor: str, moment: int) -> list[RequestRow]:
    """End what a revoked user leaves: requests that have not started, approvals of what waits.

    By the clock alone: what has started by it is looked at again when it is charged. Returns what
    was cancelled.
    """
    ended = []
    for row in list_requests(execute, analyst=name, states=("waiting", "queued"), last=1 << 40):
        if row.state == "waiting" or moment < row.start:
            move(execute, row.id, row.state, "cancelled", actor, visible=moment)
            ended.append(row)
    approved = rows_of(execute, "SELECT request FROM service_approvals WHERE approver = ?", name)
    for (request,) in approved:
        row = find_request(execute, str(request))
        if row.state == "waiting":
            left = json.dumps(approvers_of(execute, row))
            execute("UPDATE service_requests SET approvers = ? WHERE id = ?", (left, row.id))
    return ended


def spent_and_reserved(execute: Execute, population: str, now: int) -> BudgetUnits:
    """Return what a population's data sets have spent, and what requests under way will.

    What is spent is what the ledger says. What ended without a charge counts until it may be shown,
    so that neither a balance nor a refusal moves while work goes on.
    """
    datasets = "SELECT name FROM service_datasets WHERE population = ?"
    spent = one(
        execute,
        "SELECT COALESCE(SUM(epsilon_spent), 0), COALESCE(SUM(delta_spent), 0) FROM accounts "  # noqa: S608
        f"WHERE analyst = '' AND dataset IN ({datasets})",
        population,
    )
    waiting = one(
        execute,
        "SELECT COALESCE(SUM(epsilon), 0), COALESCE(SUM(delta), 0) FROM service_requests "  # noqa: S608
        f"WHERE dummy = 0 AND dataset IN ({datasets}) AND (state IN ('approved', 'queued') "
        "OR (state IN ('refused', 'cancelled') AND visible > ?))",
        population, now,
    )  # fmt: skip
    first, second = cast("tuple[int, int]", spent), cast("tuple[int, int]", waiting)
    return BudgetUnits(int(first[0]) + int(second[0]), int(first[1]) + int(second[1]))
