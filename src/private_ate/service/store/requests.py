"""Requests as they are kept: every change is a conditional update, with an event.

When a worker claims, charges and ends a request may depend on records, and so does an event's place
among others: its steps are written into the history together, when the answer appears.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from private_ate.errors import LedgerError
from private_ate.ledger.cost import BudgetUnits
from private_ate.ledger.stores import Execute, one, read_one, read_rows, update, write_row
from private_ate.service.policy import Dataset, Question, Wish
from private_ate.service.release_times import Pending, due_time, take_turns
from private_ate.service.store.events import (
    CLOSED,
    Event,
    events_about,
    is_there,
    time_text,
    write_event,
)
from private_ate.service.vocabulary import FINAL, MOVES, Missing, State

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


def insert_request(execute: Execute, row: RequestRow) -> None:
    """Keep a new request."""
    write_row(execute, "service_requests", row)
    facts = {
        "dataset": row.dataset, "plan": row.plan, "question": json.loads(row.question),
        "epsilon": row.cost.epsilon_text, "delta": row.cost.delta_text,
    }  # fmt: skip
    write_event(execute, row.state, row.id, row.analyst, facts)


def find_request(execute: Execute, name: str) -> RequestRow:
    """Return a request by its id."""
    found = read_one(execute, RequestRow, "FROM service_requests WHERE id = ?", name)
    if found is None:
        msg = "there is no such request"
        raise Missing(msg)
    return found


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
    rest = f"FROM service_requests {where}ORDER BY submitted DESC, id LIMIT ? OFFSET ?"
    whose = (analyst,) if analyst else ()
    return read_rows(execute, RequestRow, rest, *whose, *wanted, last, skip)


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
    held = (name, before) if claim is None else (name, before, claim)
    where = "id = ? AND state = ?" + (" AND claim = ?" if claim is not None else "")
    if update(execute, "service_requests", where, *held, state=after, **columns) != 1:
        return False
    if claim is None:
        write_event(execute, after, name, actor, facts)
    return True


def count_requests(
    execute: Execute, analyst: str, *, dummy: bool, moment: int
) -> tuple[int, int, int]:
    """Count what an analyst has under way, waiting for a curator, and made in a day.

    By what may be known at this moment.
    """
    found = one(
        execute,
        "SELECT COALESCE(SUM(CASE WHEN state IN ('approved', 'queued', 'charged') OR (state IN "
        "('done', 'lost', 'refused', 'cancelled') AND visible > ?) THEN 1 ELSE 0 END), 0), "
        "COALESCE(SUM(CASE WHEN state = 'waiting' THEN 1 ELSE 0 END), 0), "
        "COALESCE(SUM(CASE WHEN submitted > ? THEN 1 ELSE 0 END), 0) "
        "FROM service_requests WHERE analyst = ? AND dummy = ?",
        moment, moment - _DAY, analyst, int(dummy),
    )  # fmt: skip
    under_way, waiting, a_day = map(int, found or (0, 0, 0))
    return under_way, waiting, a_day


def asked_before(
    execute: Execute, analyst: str, population: str, moment: int, but: str
) -> tuple[int, int]:
    """Return the billionths of ε asked for in thirty days, and the requests made in 24 hours.

    Of the ε, what ended free counts until that may be shown; of requests all count, whatever became
    of them. Looking back at a request (``but``) counts those that came earlier in its day, so that
    none of the same instant is refused afterwards for another.
    """
    last = moment if not but else moment - 1
    found = one(
        execute,
        "SELECT COALESCE(SUM(CASE WHEN r.state IN ('refused', 'cancelled') AND r.visible <= ? "
        "THEN 0 ELSE r.epsilon END), 0), "
        "COALESCE(SUM(CASE WHEN r.submitted > ? AND r.submitted <= ? THEN 1 ELSE 0 END), 0) "
        "FROM service_requests r JOIN service_datasets d ON d.name = r.dataset "
        "WHERE r.analyst = ? AND d.population = ? AND r.dummy = 0 AND r.submitted > ? "
        "AND r.submitted <= ? AND r.id <> ?",
        moment, moment - _DAY, last, analyst, population, moment - _MONTH, moment, but,
    )  # fmt: skip
    epsilon, made = found or (0, 0)
    return int(epsilon), int(made)


def objections_to(  # what is asked, by whom, of what, and when
    execute: Execute, analyst: str, dataset: Dataset, asks: Wish, moment: int, but: str = ""
) -> tuple[str, ...]:
    """Say what a data set's policy has against a question; follows public facts alone."""
    month, today = asked_before(execute, analyst, dataset.population, moment, but)
    return dataset.policy.objections(replace(asks, month=month, today=today))


def approvers_of(execute: Execute, row: RequestRow) -> tuple[str, ...]:
    """Return the curators who approved the plan of a request and have not been revoked since."""
    found = execute(
        "SELECT a.approver FROM service_approvals a JOIN service_users u ON u.name = a.approver "
        "WHERE a.request = ? AND a.plan = ? AND u.role = 'curator' ORDER BY a.approver",
        (row.id, row.plan),
    ).rows
    return tuple(name for (name,) in found if is_there(execute, name))


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
    approved = execute("SELECT request FROM service_approvals WHERE approver = ?", (name,)).rows
    for (request,) in approved:
        row = find_request(execute, request)
        if row.state == "waiting":
            left = json.dumps(approvers_of(execute, row))
            update(execute, "service_requests", "id = ?", row.id, approvers=left)
    return ended


def spent_of(execute: Execute, population: str) -> BudgetUnits:
    """Return what a population's data sets have spent, as the ledger says."""
    spent = one(
        execute,
        "SELECT COALESCE(SUM(a.epsilon_spent), 0), COALESCE(SUM(a.delta_spent), 0) FROM accounts a "
        "JOIN service_datasets d ON d.name = a.dataset WHERE a.analyst = '' AND d.population = ?",
        population,
    )
    return BudgetUnits(*map(int, spent or ()))


def spent_and_reserved(execute: Execute, population: str, now: int) -> BudgetUnits:
    """Return what a population's data sets have spent, and what requests under way will.

    What ended without a charge counts until it may be shown, so that neither a balance nor a
    refusal moves while work goes on.
    """
    waiting = one(
        execute,
        "SELECT COALESCE(SUM(r.epsilon), 0), COALESCE(SUM(r.delta), 0) FROM service_requests r "
        "JOIN service_datasets d ON d.name = r.dataset WHERE r.dummy = 0 AND d.population = ? "
        "AND (r.state IN ('approved', 'queued') "
        "OR (r.state IN ('refused', 'cancelled') AND r.visible > ?))",
        population, now,
    )  # fmt: skip
    return spent_of(execute, population) + BudgetUnits(*map(int, waiting or ()))


def state_of_events(events: Iterable[Event]) -> State | None:
    """Return the state to which a request's events lead, None if there are none.

    Events that no request can have one after the other are an error.
    """
    state: State | None = None
    for event in events:
        if event.kind not in MOVES:
            continue
        if state is not None and event.kind not in MOVES[state]:
            msg = f"the history says that request {event.subject} was {event.kind} after {state}"
            raise LedgerError(msg)
        state = event.kind
    return state


def require_queued(execute: Execute, name: str, dataset: str) -> None:
    """Refuse a request of which the history does not say that it is queued, and was in time.

    A table can be changed by whoever took over a process that writes it; events are never changed.
    """
    events = [event for event in events_about(execute, name) if event.kind in MOVES]
    if any(event.seal() != event.hash for event in events) or state_of_events(events) != "queued":
        msg = f"the history does not say that request {name} is queued; nothing was spent"
        raise LedgerError(msg)
    closed = [event for event in events_about(execute, dataset) if event.kind == CLOSED]
    if closed and closed[0].sequence < events[0].sequence:
        msg = f"request {name} was made after its data set was closed; nothing was spent"
        raise LedgerError(msg)


def unpublished(execute: Execute, since: int, moment: int) -> list[str]:
    """Return requests that a worker ended, visible after ``since``, whose end no event states."""
    ends = ", ".join(f"'{state}'" for state in sorted(FINAL))
    found = execute(
        "SELECT r.id FROM service_requests r WHERE r.claim <> '' AND r.visible > ? "  # noqa: S608
        f"AND r.visible <= ? AND r.state IN ({ends}) AND NOT EXISTS (SELECT 1 FROM service_events "
        "e WHERE e.subject = r.id AND e.kind = r.state) ORDER BY r.visible, r.id",
        (since, moment),
    ).rows
    return [name for (name,) in found]


def publish_steps(execute: Execute, since: int, moment: int) -> None:
    """Write the worker's steps of requests that are visible now and were not a moment ago."""
    for name in unpublished(execute, since, moment):
        row = find_request(execute, name)
        known = {event.kind for event in events_about(execute, name)}
        at = time_text(row.visible, "milliseconds")
        steps: dict[str, dict[str, str]] = {"claim": {}}
        if row.state in ("done", "lost") and not row.dummy:
            steps["charged"] = {"plan": row.plan}
        steps[row.state] = {"why": row.code} if row.state == "refused" else {}
        for kind, facts in steps.items():
            if kind not in known:  # earlier versions wrote each step when it was made
                write_event(execute, kind, name, row.worker, facts, at=at)


def assign_slots(execute: Execute, row: RequestRow, moment: int, grace: float, tick: float) -> None:
    """Give every request of one lane whose slot has not begun its slot and its due time.

    Slots that have begun stay. What was cancelled takes no time, and a slot that is over delays
    nothing.
    """
    which = (row.dataset, row.dummy)
    begun = execute(
        "SELECT analyst, MAX(start), MAX(ends) FROM service_requests WHERE dataset = ? "
        "AND dummy = ? AND start > ? AND state IN ('queued', 'charged', 'done', 'lost', 'refused') "
        "AND (start <= ? OR claim <> '') GROUP BY analyst",
        (*which, moment - _DAY, moment),
    ).rows
    rest = (
        "FROM service_requests WHERE dataset = ? AND dummy = ? AND start > ? "
        "AND state = 'queued' AND claim = ''"
    )
    waiting = {each.id: each for each in read_rows(execute, RequestRow, rest, *which, moment)}
    patience = round(1000 * grace)
    pending = [
        Pending(each.id, each.analyst, each.queued + patience, each.ends - each.start)
        for each in waiting.values()
    ]
    free = max([moment, *(ends for _, _, ends in begun)])
    served = {analyst: start for analyst, start, _ in begun}
    for name, begin in take_turns(pending, free, served).items():
        old = waiting[name]
        end = begin + old.ends - old.start
        due = due_time(old.queued, (end - old.queued) / 1000, tick)
        if (begin, end, due) != (old.start, old.ends, old.due):
            update(execute, "service_requests", "id = ?", name, start=begin, ends=end, due=due)
