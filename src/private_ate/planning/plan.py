"""The values of a plan, the planner that makes its rows, and the search for what was asked.

The least ε or number of rows that reaches a wanted half-width is searched for, and said in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, get_args

from private_ate.arguments import one_of, real_number
from private_ate.codec import OMITTED, encode
from private_ate.effects.quantities import PredictedRow
from private_ate.errors import ArgumentError
from private_ate.privacy.budget import parse_epsilon
from private_ate.privacy.levels import Level
from private_ate.request import Request
from private_ate.showing import show

__all__ = ["Plan", "PlanRow", "PlannedRow", "Planner", "Solve", "Wanted", "make_plan"]

Solve = Literal["epsilon", "rows"]

LARGEST: Final = 64.0  # beyond this ε a wanted precision counts as unreachable
MOST_ROWS: Final = 10**9
# From where to where a search goes, and to which relative precision.
_EPSILONS: Final = (1e-3, LARGEST, 1e-4)
_ROWS: Final = (16.0, float(MOST_ROWS), 4e-3)
_STEPS: Final = 48


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What to expect at one ε, in units of the outcome.

    Attributes
    ----------
    epsilon : float
        The budget.
    noise_error : float
        Expected size of the privacy noise.
    sampling_error : float
        Standard deviation of the estimate without noise; rests on the guessed spread.
    expected_error : float
        Expected size of both together.
    half_width : float
        Half-width of the interval that a release will show, near the median of releases.
    note : str
        The cap, or whether and how the sample level adjusts.
    detectable_effect : float
        The smallest effect whose interval excludes zero in four of five studies (power 80 %).
    size : int
        Rows of the study; where rows were asked for, those that reach the wanted half-width.
    adjusted : bool
        Whether the estimate adjusts for covariates.
    arm, against : str or None
        Of three arms or more: the contrast that the row is about.
    outcome : str or None
        Of several outcomes: the one that the row is about.
    subgroup : str or None
        Of a plan for subgroups: the one that the row is about; None for all units.
    """

    epsilon: float
    noise_error: float
    sampling_error: float
    expected_error: float
    half_width: float
    note: str
    detectable_effect: float
    size: int
    adjusted: bool
    arm: str | None = field(default=None, metadata=OMITTED)
    against: str | None = field(default=None, metadata=OMITTED)
    outcome: str | None = field(default=None, metadata=OMITTED)
    subgroup: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Expected error against ε, and the ε or the rows for a wanted half-width.

    Three arms or more have a row for each ε and contrast, and a wanted half-width is that of
    every contrast with the reference. Subgroups have rows of their own, after all units and in
    the order of a release's table; a wanted half-width is then that of every row.

    ``epsilon_needed`` is None if no half-width was asked for, if rows were, or if it is
    unreachable; ``rows_needed`` has an entry per row of the plan where rows were asked for, None
    where no number of rows suffices. ``answer`` says it in words.

    Attributes
    ----------
    level : str
        What is private: "label" or "sample".
    rows : tuple of PlanRow
        What to expect, a row per ε and effect.
    half_width : float or None
        The half-width that was asked for.
    epsilon_needed : float or None
        The smallest ε that reaches it.
    answer : str
        The same in words.
    caveat : str
        What the plan rests on.
    rows_needed : tuple of int or None
        How many rows reach the half-width, an entry per row of the plan.
    method : str
        The method that is planned for.
    confidence : float
        Coverage of the intervals.
    """

    level: Level
    rows: tuple[PlanRow, ...]
    half_width: float | None
    epsilon_needed: float | None
    answer: str
    caveat: str
    rows_needed: tuple[int | None, ...] | None = None
    method: str = ""
    confidence: float = 0.95

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values; rows name arms and subgroups only where several are."""
        plain: dict[str, Any] = encode(self)
        if not self.has_subgroups:
            for row in plain["rows"]:
                del row["subgroup"]
        return plain

    @property
    def has_subgroups(self) -> bool:
        """Whether rows are about subgroups."""
        return any(row.subgroup is not None for row in self.rows)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return show(self, "card", str)

    def __str__(self) -> str:
        return show(self, "text", str)


class PlannedRow(NamedTuple):
    """A row of a plan at one ε; its numbers are computed when they are asked for."""

    errors: PredictedRow
    size: int
    arm: str | None = None
    against: str | None = None
    outcome: str | None = None
    subgroup: str | None = None

    def plan_row(self, epsilon: float, coverage: float) -> PlanRow:
        """Write down what is expected."""
        expected = self.errors.expected(coverage)
        return PlanRow(
            epsilon, expected.noise, expected.sampling, expected.error, expected.half_width,
            self.errors.note, expected.half_width + expected.margin, self.size,
            self.errors.adjusted, self.arm, self.against, self.outcome, self.subgroup,
        )  # fmt: skip


Table = Callable[[int, float], Sequence[PlannedRow]]
"""Rows of a plan about so many rows of data at an ε."""


class Reach(NamedTuple):
    """The half-width that decides whether a wanted one is reached, and whether its row adjusts."""

    half_width: float
    adjusted: bool


@dataclass(frozen=True, slots=True)
class Planner:
    """Predictions for one method, the rows of the study if it is there, and what they rest on.

    Attributes
    ----------
    method : str
        The method that is planned for.
    size : int or None
        Rows of the study.
    coverage : float
        Of its intervals.
    caveat : str
        What predictions rest on.
    table : Table
        All rows.
    deciding : Table
        The rows in all of which a wanted half-width is reached.
    whose : str
        Those rows in words; empty where there is one.
    """

    method: str
    size: int | None
    coverage: float
    caveat: str
    table: Table
    deciding: Table
    whose: str = ""

    def plan_rows(self, size: int, epsilon: float) -> tuple[PlanRow, ...]:
        """Return the rows of a plan at one ε."""
        return tuple(row.plan_row(epsilon, self.coverage) for row in self.table(size, epsilon))

    def at(self, spent: Callable[[float], float], caveat: str = "") -> Planner:
        """Return the planner of what is left of ε, as a function of it, with more said before."""
        return replace(
            self,
            table=lambda size, epsilon: self.table(size, spent(epsilon)),
            deciding=lambda size, epsilon: self.deciding(size, spent(epsilon)),
            caveat=caveat + self.caveat,
        )

    def reach(self, size: int, epsilon: float) -> Reach:
        """Return the widest half-width of the deciding rows."""
        reached = [
            Reach(row.errors.half_width(self.coverage), row.errors.adjusted)
            for row in self.deciding(size, epsilon)
        ]
        return max(reached, key=lambda one: one.half_width)


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
