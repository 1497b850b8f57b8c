"""From predictions to a plan: a row per ε, and the answer to a wanted half-width in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from private_ate.errors import ArgumentError
from private_ate.estimators.request import Request
from private_ate.planning.plan import Plan, PlanRow
from private_ate.planning.search import (
    LARGEST,
    MOST_ROWS,
    Answer,
    Predict,
    answer_with_epsilon,
    answer_with_rows,
)

__all__ = ["Planner", "Solve", "make_plan"]

Solve = Literal["epsilon", "rows"]


Table = Callable[[int, float], tuple[PlanRow, ...]]
"""Rows of a plan about so many people at an ε."""


@dataclass(frozen=True, slots=True)
class Planner:
    """Predictions of one method, the rows of the study if it is there, and what they rest on.

    Three arms or more have a ``table`` of contrasts, and so have subgroups; ``predict`` then speaks
    of the row that decides whether a wanted half-width is reached: it is reached in ``every`` one.
    """

    method: str
    predict: Predict
    size: int | None
    caveat: str
    table: Table | None = None
    whose: str = ""
    every: str = "contrast with the reference"

    def rows(self, size: int, epsilon: float) -> tuple[PlanRow, ...]:
        """Return the rows of a plan at one ε."""
        if self.table is None:
            return (self.predict(size, epsilon),)
        return self.table(size, epsilon)

    @property
    def wanted_of(self) -> str:
        """Whose half-width an answer is about."""
        if self.whose:
            return self.whose
        return "" if self.table is None else f" in every {self.every}"


def make_plan(
    planner: Planner,
    request: Request,
    budgets: list[float],
    *,
    wanted: float | None,
    solve: Solve | None,
) -> Plan:
    """Tabulate the budgets and search for what was asked."""
    size = planner.size
    if solve == "rows" or (solve is None and size is None):
        if wanted is None:
            msg = "to solve for the number of rows, say which half-width is wanted"
            raise ArgumentError(msg, parameter="half-width")
        return _for_rows(planner, request, budgets, wanted)
    if size is None:
        msg = "to solve for ε, say how many rows there are"
        raise ArgumentError(msg, parameter="rows")
    rows = tuple(row for epsilon in budgets for row in planner.rows(size, epsilon))
    if wanted is None:
        return _plan(planner, request, rows)
    found = _as_designed(answer_with_epsilon(planner.predict, size, wanted), request)
    return _plan(
        planner, request, rows,
        half_width=wanted, epsilon_needed=found.adjusting or found.least,
        answer=_epsilon_text(f"{wanted:g}{planner.wanted_of}", found),
    )  # fmt: skip


def _for_rows(planner: Planner, request: Request, budgets: list[float], wanted: float) -> Plan:
    """Search for the rows at each budget; a row of the plan is about as many as were found."""
    needed: list[int | None] = []
    rows: list[PlanRow] = []
    texts = []
    for epsilon in budgets:
        found = _as_designed(answer_with_rows(planner.predict, epsilon, wanted), request)
        size = found.adjusting or found.least
        needed.append(None if size is None else int(size))
        rows += planner.rows(MOST_ROWS if size is None else int(size), epsilon)
        texts.append(_rows_text(epsilon, found))
    return _plan(
        planner, request, tuple(rows),
        half_width=wanted, rows_needed=tuple(needed),
        answer=f"a half-width of {wanted:g}{planner.wanted_of} needs " + "; ".join(texts),
    )  # fmt: skip


def _plan(
    planner: Planner,
    request: Request,
    rows: tuple[PlanRow, ...],
    *,
    half_width: float | None = None,
    epsilon_needed: float | None = None,
    rows_needed: tuple[int | None, ...] | None = None,
    answer: str = "",
) -> Plan:
    return Plan(
        request.level, rows, half_width, epsilon_needed, answer, planner.caveat, rows_needed,
        planner.method, request.coverage,
    )  # fmt: skip


def _as_designed(found: Answer, request: Request) -> Answer:
    """Let an unadjusted comparison stand for the answer where the design is randomised."""
    return Answer(found.least, found.least) if request.design == "randomized" else found


def _epsilon_text(wanted: str, found: Answer) -> str:
    """Answer with an ε; where the least one adjusts for nothing, say so first."""
    if found.least is None:
        return (
            f"a half-width of {wanted} is unreachable: even ε = {LARGEST:g} does not suffice; "
            "more rows or tighter outcome bounds would help"
        )
    if found.adjusting is None:
        return (
            f"not adjusted for covariates, a half-width of {wanted} needs about "
            f"ε = {found.least:g}; adjusted it is unreachable up to ε = {LARGEST:g}"
        )
    answer = f"a half-width of {wanted} needs about ε = {found.adjusting:g}"
    if found.adjusting == found.least:
        return answer
    return f"ε = {found.least:g} would do only without adjusting for covariates; adjusted, {answer}"


def _rows_text(epsilon: float, found: Answer) -> str:
    """Answer with rows that let the estimate adjust, or say first that it does not."""
    at = f"at ε = {epsilon:g}"
    if found.least is None:
        return f"more than {MOST_ROWS:,} rows {at}"
    if found.adjusting is None:
        return f"without adjusting for covariates about {found.least:,.0f} rows {at}"
    answer = f"about {found.adjusting:,.0f} rows {at}"
    if found.adjusting == found.least:
        return answer
    return f"{answer} ({found.least:,.0f} would do only without adjusting for covariates)"
