"""Predictions for subgroups at label level: the public phase in every cell, then their table.

Cells are those of the public columns, in their proportions. What is expected of them is put
together as a release does it, so that rows add up and intervals are made alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.domain.subgroups import Cells
from private_ate.effects.quantities import Quantity, ReleasedSubgroups
from private_ate.effects.table import Row, table_rows
from private_ate.engines.local import LocalStudy
from private_ate.errors import SchemaError
from private_ate.estimators.calibrated.method import Features, pose_caps
from private_ate.estimators.calibrated.options import CalibratedOptions
from private_ate.estimators.guesses import POWER
from private_ate.estimators.request import Request
from private_ate.estimators.subgroups.cells import (
    CellRows,
    divide_rows,
    groups_of,
    rows_compared,
)
from private_ate.estimators.subgroups.method import features_for_cells
from private_ate.estimators.subgroups.populations import count_population
from private_ate.planning.answers import Planner
from private_ate.planning.arms import label_arms
from private_ate.planning.label import foresee_effect, people_like
from private_ate.planning.plan import PlanRow
from private_ate.study import MatchingStudy

__all__ = ["subgroup_planner"]

_MANY: Final = 3  # cells above which all units are better paid for
_FEWEST: Final = 8  # rows of a cell, where a plan scales the cells


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """What to expect of one cell: each quantity as it errs, and as its interval will show it."""

    erring: tuple[Quantity, ...]
    shown: tuple[Quantity, ...]
    notes: tuple[str, ...]


Foresee = Callable[[int, float], _Foreseen]


@dataclass(frozen=True, slots=True)
class _Table:
    """Cells put together at one ε, from which every row follows.

    ``erring`` has what sampling is thought to be, ``shown`` what intervals will be made of.
    """

    erring: ReleasedSubgroups
    shown: ReleasedSubgroups
    counts: Sequence[int]
    notes: Sequence[str]
    epsilon: float
    coverage: float
    several: bool

    def half(self, row: Row) -> float:
        """Return the half-width of a row."""
        return self.shown.half(row.weights, self.coverage)

    def row(self, row: Row) -> PlanRow:
        """Return a row of the plan."""
        held = [place for place, weight in enumerate(row.weights.cells) if weight]
        half = self.half(row)
        return PlanRow(
            self.epsilon,
            self.erring.noise_size(row.weights),
            float(np.sqrt(self.erring.variance(row.weights))),
            self.erring.expected_size(row.weights),
            half,
            self.notes[held[0]] if len(held) == 1 else f"{len(held)} cells",
            half + self.erring.half(row.weights, 2 * POWER - 1),
            sum(self.counts[place] for place in held),
            True,
            row.arm if self.several else None,
            row.against if self.several else None,
            subgroup=row.subgroup,
        )


def subgroup_planner(
    study: LocalStudy,
    request: Request,
    options: CalibratedOptions,
    alike_share: float,
    caveat: str,
) -> Planner:
    """Return predictions for every row of the table that a request for subgroups releases.

    ``alike_share`` is the share of the outcome's variance that like units are thought to have.
    """
    cells = Cells.of(study.domain, request.by)
    found = divide_rows(study, cells)
    used = [cell for cell in found if cell.is_comparable]
    if not used:
        msg = "no subgroup holds units of every arm; choose coarser ones"
        raise SchemaError(msg)
    sizes = [cell.study.size for cell in used]
    compared = rows_compared(study, cells, found)
    learned = features_for_cells(compared.public(), request)
    overlaps = [_overlap(cell, request, learned) for cell in used]
    populations = [
        count_population(cell.study.public(), request, overlap)
        for cell, overlap in zip(used, overlaps, strict=True)
    ]
    shares = tuple(population / sum(populations) for population in populations)
    foresee = [_foresee(cell.study, request, options, alike_share, learned) for cell in used]
    foresee_all = _foresee(compared, request, options, alike_share)
    labels = study.domain.treatment.coded
    rows = table_rows(shares, groups_of(cells, used), labels)
    whole = study.size

    def foreseen(size: int, epsilon: float) -> _Table:
        each = epsilon / 2 if request.overall else epsilon
        counts = [_scaled(part, size, whole) for part in sizes]
        expected = [one(count, each) for one, count in zip(foresee, counts, strict=True)]
        direct = foresee_all(sum(counts), epsilon - each) if request.overall else None
        both = _reconciled(expected, shares, direct)
        notes = [one.notes[-1] for one in expected]
        return _Table(*both, counts, notes, epsilon, request.coverage, several=len(labels) > 2)

    def table(size: int, epsilon: float) -> tuple[PlanRow, ...]:
        made = foreseen(size, epsilon)
        return tuple(made.row(row) for row in rows)

    def widest(size: int, epsilon: float) -> PlanRow:
        made = foreseen(size, epsilon)
        return made.row(max(rows, key=made.half))

    return Planner(
        "calibrated",
        widest,
        whole,
        caveat + _advice(used, found, request),
        table,
        every="row of the table",
    )


def _foresee(
    study: MatchingStudy,
    request: Request,
    options: CalibratedOptions,
    alike_share: float,
    learned: Features | None = None,
) -> Foresee:
    """Return what to expect of one cell or of all rows, of two arms or of several."""
    if not isinstance(study, LocalStudy):
        msg = "subgroups are planned for tables in memory"
        raise TypeError(msg)
    people = people_like(study)
    if study.domain.treatment.size > 2:
        arms = label_arms(people, request, options, alike_share)

        def of_arms(rows: int, epsilon: float) -> _Foreseen:
            expected = arms(rows, epsilon)
            made = zip(
                expected.laws, expected.sampling, expected.likely, expected.doubts, strict=True
            )
            each = list(made)
            return _Foreseen(
                tuple(
                    Quantity(0.0, (law,), (variance,), doubt) for law, variance, _, doubt in each
                ),
                tuple(Quantity(0.0, (law,), likely, doubt) for law, _, likely, doubt in each),
                expected.notes,
            )

        return of_arms
    effect = foresee_effect(people, request, options, alike_share, learned)

    def of_two(rows: int, epsilon: float) -> _Foreseen:
        expected = effect(rows, epsilon)
        likely = tuple((expected.likely**2).tolist()) or (expected.sampling**2,)
        return _Foreseen(
            (Quantity(0.0, (expected.law,), (expected.sampling**2,), expected.doubt),),
            (Quantity(0.0, (expected.law,), likely, expected.doubt),),
            (f"cap {expected.cap:.3g}",),
        )

    return of_two


def _overlap(cell: CellRows, request: Request, learned: Features | None) -> float | None:
    """Return what the units of a cell count for the ATO, by the score of all rows."""
    if request.estimand != "ato":
        return None
    return pose_caps(cell.study.public(), request, learned).overlap


def _scaled(part: int, size: int, whole: int) -> int:
    return part if size == whole else max(round(part * size / whole), _FEWEST)


def _reconciled(
    expected: Sequence[_Foreseen], shares: Sequence[float], direct: _Foreseen | None
) -> tuple[ReleasedSubgroups, ReleasedSubgroups]:
    """Put cells together as a release does, as they err and as intervals will show them."""
    return (
        ReleasedSubgroups.reconcile(
            shares, [one.erring for one in expected], None if direct is None else direct.erring
        ),
        ReleasedSubgroups.reconcile(
            shares, [one.shown for one in expected], None if direct is None else direct.shown
        ),
    )


def _advice(used: Sequence[CellRows], found: Sequence[CellRows], request: Request) -> str:
    """Say which cells have no row, and that many cells are better paid for together too."""
    lacking = [cell.name for cell in found if cell.everyone.total and not cell.is_comparable]
    text = f"; no effect in {'; '.join(lacking)}: an arm is missing there" if lacking else ""
    if len(used) > _MANY and not request.overall:
        text += (
            f"; all units are rolled up from {len(used)} cells, about {len(used) ** 0.5:.1f} times "
            "as noisy as asked for alone: above three cells overall=True is recommended"
        )
    return text
