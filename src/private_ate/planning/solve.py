"""Solves a plan for ε or for rows: the least that reaches a wanted half-width, also in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from private_ate.errors import ArgumentError
from private_ate.planning.plan import Plan, Planner, PlanRow, Reach
from private_ate.request import Request

__all__ = ["Solve", "make_plan"]

Solve = Literal["epsilon", "rows"]

LARGEST: Final = 64.0  # beyond this ε a wanted precision counts as unreachable
MOST_ROWS: Final = 10**9
_SMALLEST: Final = 1e-3
_FEWEST: Final = 16
_STEPS: Final = 48


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
    rows = tuple(row for epsilon in budgets for row in planner.plan_rows(size, epsilon))
    if wanted is None:
        return _plan(planner, request, rows)
    found = _as_designed(answer_with_epsilon(planner, size, wanted), request)
    return _plan(
        planner, request, rows,
        half_width=wanted, epsilon_needed=found.adjusting or found.least,
        answer=_epsilon_text(f"{wanted:g}{planner.whose}", found),
    )  # fmt: skip


def _for_rows(planner: Planner, request: Request, budgets: list[float], wanted: float) -> Plan:
    """Search for the rows at each budget; a row of the plan is about as many as were found."""
    needed: list[int | None] = []
    rows: list[PlanRow] = []
    texts = []
    for epsilon in budgets:
        found = _as_designed(answer_with_rows(planner, epsilon, wanted), request)
        size = found.adjusting or found.least
        needed.append(None if size is None else int(size))
        rows += planner.plan_rows(MOST_ROWS if size is None else int(size), epsilon)
        texts.append(_rows_text(epsilon, found))
    return _plan(
        planner, request, tuple(rows),
        half_width=wanted, rows_needed=tuple(needed),
        answer=f"a half-width of {wanted:g}{planner.whose} needs " + "; ".join(texts),
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


def _as_designed(found: Solution, request: Request) -> Solution:
    """Let an unadjusted comparison stand for the answer where the design is randomised."""
    return Solution(found.least, found.least) if request.design == "randomized" else found


def _epsilon_text(wanted: str, found: Solution) -> str:
    """Solution with an ε; where the least one adjusts for nothing, say so first."""
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


def _rows_text(epsilon: float, found: Solution) -> str:
    """Solution with rows that let the estimate adjust, or say first that it does not."""
    at = f"at ε = {epsilon:g}"
    if found.least is None:
        return f"more than {MOST_ROWS:,} rows {at}"
    if found.adjusting is None:
        return f"without adjusting for covariates about {found.least:,.0f} rows {at}"
    answer = f"about {found.adjusting:,.0f} rows {at}"
    if found.adjusting == found.least:
        return answer
    return f"{answer} ({found.least:,.0f} would do only without adjusting for covariates)"


@dataclass(frozen=True, slots=True)
class Solution:
    """The least of what was asked for, and what it takes if the estimate shall adjust.

    ``adjusting`` is the same as ``least`` where that adjusts; None stands for unreachable.
    """

    least: float | None
    adjusting: float | None


def answer_with_epsilon(planner: Planner, size: int, wanted: float) -> Solution:
    """Return the least ε whose half-width is as wanted, None if none up to 64 suffices."""

    def at(epsilon: float) -> Reach:
        return planner.reach(size, epsilon)

    return _answer(at, wanted, _Range(_SMALLEST, LARGEST, 1e-4), lambda x: float(f"{x:.3g}"))


def answer_with_rows(planner: Planner, epsilon: float, wanted: float) -> Solution:
    """Return the least number of rows whose half-width is as wanted, None if 10⁹ are too few."""

    def at(rows: float) -> Reach:
        return planner.reach(max(round(rows), 1), epsilon)

    return _answer(at, wanted, _Range(_FEWEST, MOST_ROWS, 4e-3), _rounded_up)


@dataclass(frozen=True, slots=True)
class _Range:
    """Where to search, and to which relative precision."""

    lowest: float
    highest: float
    precision: float


def _answer(
    at: Callable[[float], Reach],
    wanted: float,
    within: _Range,
    shown: Callable[[float], float],
) -> Solution:
    least = _search(lambda x: at(x).half_width <= wanted, within)
    if least is None:
        return Solution(None, None)
    if at(shown(least)).adjusted:
        return Solution(shown(least), shown(least))

    def adjusts(x: float) -> bool:
        row = at(x)
        return row.adjusted and row.half_width <= wanted

    adjusting = _search(adjusts, within)
    return Solution(shown(least), None if adjusting is None else shown(adjusting))


def _search(suffices: Callable[[float], bool], within: _Range) -> float | None:
    """Return the least number that suffices, by a coarse grid and then by halving.

    The grid comes first: where a method switches to adjusting, width may rise with ε.
    """
    step = math.log(within.highest / within.lowest) / _STEPS
    grid = [math.log(within.lowest) + index * step for index in range(_STEPS + 1)]
    high = next((x for x in grid if suffices(math.exp(x))), None)
    if high is None or high == grid[0]:
        return None if high is None else within.lowest
    low = high - step
    while high - low > within.precision:
        middle = (low + high) / 2
        if suffices(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def _rounded_up(rows: float) -> float:
    """Return a number of rows with three digits, not below what was asked."""
    unit = 10 ** max(math.floor(math.log10(rows)) - 2, 0)
    return float(math.ceil(rows / unit - 1e-9) * unit)
