"""Solves a plan for ε or for rows: the least that reaches a wanted half-width, also in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from private_ate.arguments import one_of, real_number
from private_ate.errors import ArgumentError
from private_ate.planning.plan import Plan, Planner, PlanRow, Reach
from private_ate.privacy.budget import parse_epsilon
from private_ate.request import Request

__all__ = ["Solve", "Wanted", "make_plan"]

Solve = Literal["epsilon", "rows"]

LARGEST: Final = 64.0  # beyond this ε a wanted precision counts as unreachable
MOST_ROWS: Final = 10**9
# From where to where a search goes, and to which relative precision.
_EPSILONS: Final = (1e-3, LARGEST, 1e-4)
_ROWS: Final = (16.0, float(MOST_ROWS), 4e-3)
_STEPS: Final = 48


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which budgets to tabulate, which half-width to reach, and by which number."""

    budgets: tuple[float, ...]
    half_width: float | None
    solve: Solve | None

    @classmethod
    def of(cls, epsilons: object, half_width: float | None, solve: Solve | None) -> Wanted:
        """Check what a caller wants."""
        if isinstance(epsilons, str | bytes) or not isinstance(epsilons, Iterable):
            msg = "epsilons is a list of budgets such as ['0.5', '1']"
            raise ArgumentError(msg)
        budgets = tuple(float(parse_epsilon(epsilon)) for epsilon in epsilons)
        if half_width is not None:
            half_width = real_number("the wanted half-width", half_width, 1e-150, 1e151)
        if solve is not None:
            one_of("solve", solve, get_args(Solve))
        return cls(budgets, half_width, solve)


def make_plan(planner: Planner, request: Request, asked: Wanted) -> Plan:
    """Tabulate the budgets and search for what was asked."""
    size, wanted = planner.size, asked.half_width
    plan = Plan(
        request.level, (), wanted, None, "", planner.caveat, None, planner.method, request.coverage
    )
    if asked.solve == "rows" or (asked.solve is None and size is None):
        if wanted is None:
            msg = "to solve for the number of rows, say which half-width is wanted"
            raise ArgumentError(msg, parameter="half-width")
        return _for_rows(plan, planner, request, asked.budgets, wanted)
    if size is None:
        msg = "to solve for ε, say how many rows there are"
        raise ArgumentError(msg, parameter="rows")
    rows = tuple(row for epsilon in asked.budgets for row in planner.plan_rows(size, epsilon))
    if wanted is None:
        return replace(plan, rows=rows)
    found = _as_designed(answer_with_epsilon(planner, size, wanted), request)
    answer = _epsilon_text(f"{wanted:g}{planner.whose}", found)
    return replace(plan, rows=rows, epsilon_needed=found.adjusting or found.least, answer=answer)


def _for_rows(
    plan: Plan, planner: Planner, request: Request, budgets: Sequence[float], wanted: float
) -> Plan:
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
    answer = f"a half-width of {wanted:g}{planner.whose} needs " + "; ".join(texts)
    return replace(plan, rows=tuple(rows), rows_needed=tuple(needed), answer=answer)


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
    return _answer(
        lambda epsilon: planner.reach(size, epsilon), wanted, _EPSILONS,
        lambda x: float(f"{x:.3g}"),
    )  # fmt: skip


def answer_with_rows(planner: Planner, epsilon: float, wanted: float) -> Solution:
    """Return the least number of rows whose half-width is as wanted, None if 10⁹ are too few."""
    return _answer(
        lambda rows: planner.reach(max(round(rows), 1), epsilon), wanted, _ROWS, _rounded_up
    )


def _answer(
    at: Callable[[float], Reach],
    wanted: float,
    within: tuple[float, float, float],
    shown: Callable[[float], float],
) -> Solution:
    least = _search(lambda x: at(x).half_width <= wanted, *within)
    if least is None:
        return Solution(None, None)
    if at(shown(least)).adjusted:
        return Solution(shown(least), shown(least))

    def adjusts(x: float) -> bool:
        row = at(x)
        return row.adjusted and row.half_width <= wanted

    adjusting = _search(adjusts, *within)
    return Solution(shown(least), None if adjusting is None else shown(adjusting))


def _search(
    suffices: Callable[[float], bool], lowest: float, highest: float, precision: float
) -> float | None:
    """Return the least number that suffices, by a coarse grid and then by halving.

    The grid comes first: where a method switches to adjusting, width may rise with ε.
    """
    step = math.log(highest / lowest) / _STEPS
    grid = [math.log(lowest) + index * step for index in range(_STEPS + 1)]
    high = next((x for x in grid if suffices(math.exp(x))), None)
    if high is None or high == grid[0]:
        return None if high is None else lowest
    low = high - step
    while high - low > precision:
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
