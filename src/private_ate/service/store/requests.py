"""Requests and their states: every change is a conditional update with an event.

``draft → planned → (waiting) → approved → queued → charged → done | lost``, or ``refused`` or
``cancelled`` on the way. There is no way back and no second try: a noisy job that ran twice would
be a second look for one price.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, cast

from private_ate.privacy.ledger.cost import BudgetUnits
from private_ate.privacy.ledger.store import Execute
from private_ate.service.question import Question
from private_ate.service.refusals import Missing
from private_ate.service.store.events import write_event
from private_ate.service.store.tables import one, rows_of

__all__ = [
    "FINAL",
    "MOVES",
    "RequestRow",
    "State",
    "find_request",
    "insert_request",
    "list_requests",
    "move",
    "spent_and_reserved",
]

State = Literal[
    "draft", "planned", "waiting", "approved", "queued", "charged", "done", "lost", "refused",
    "cancelled",
]  # fmt: skip
FINAL: Final[frozenset[State]] = frozenset({"done", "lost", "refused", "cancelled"})
MOVES: Final[dict[State, frozenset[State]]] = {
    "draft": frozenset({"planned"}),
    "planned": frozenset({"waiting", "approved"}),
    "waiting": frozenset({"approved", "refused", "cancelled"}),
    "approved": frozenset({"queued"}),
    # Only a dummy request is done without a charge.
    "queued": frozenset({"charged", "done", "refused", "cancelled"}),
    "charged": frozenset({"done", "lost"}),
    "done": frozenset(),
    "lost": frozenset(),
    "refused": frozenset(),
    "cancelled": frozenset(),
}


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request as it is kept; times are milliseconds, zero where they have not come.

    ``start`` is when work may begin, ``ends`` when it is over by public bounds: its own, and those
    of what was asked of the data set before. ``due`` is when its answer appears, ``visible`` when
    it does. The body is the release of a dummy request; the ledger keeps the others.
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
        """Whether its end may be told."""
        return self.state in FINAL and self.visible <= now

    def shown(self, now: int) -> State:
        """Return the state as it may be told: from the queue on nothing, until the tick."""
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

    With ``claim`` only for the holder of that claim. ``columns`` are written in the same update.
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
    write_event(execute, after, name, actor, facts)
    return True


def spent_and_reserved(execute: Execute, population: str, now: int) -> BudgetUnits:
    """Return what a population's data sets have spent, and what requests under way will.

    What is spent is the ledger's word. What ended without a charge counts until it may be told, so
    that neither a balance nor a refusal moves while work goes on.
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
