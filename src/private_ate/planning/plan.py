"""The values of a plan, and the planner that makes its rows at any number of rows and ε."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from private_ate.codec import OMITTED, encode
from private_ate.effects.predictions import PredictedRow
from private_ate.privacy.levels import Level
from private_ate.showing import show

__all__ = ["Plan", "PlanRow", "PlannedRow", "Planner", "Reach"]


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
            epsilon,
            expected.noise,
            expected.sampling,
            expected.error,
            expected.half_width,
            self.errors.note,
            expected.half_width + expected.margin,
            self.size,
            self.errors.adjusted,
            self.arm,
            self.against,
            self.outcome,
            self.subgroup,
        )


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
