"""Effects in subgroups at sample level: the subgroup itself is private, and so is its size.

Every cell has a run on all n positions, those outside of it taking no part. A replaced record
leaves one cell and enters one, the same or another: two moves, each at half of what a cell costs.
Numbers of units are those that the cells released. Proof: docs/proofs/subgroups.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from private_ate.domain.subgroups import Cells
from private_ate.estimators.blocks.cell import CellEffect
from private_ate.estimators.blocks.method import estimate_blocks, estimate_cell
from private_ate.estimators.request import Request
from private_ate.estimators.subgroups.private_facts import (
    cell_note,
    private_settings,
    private_warnings,
)
from private_ate.estimators.subgroups.private_table import (
    ReleasedEffect,
    Table,
    TableRow,
    rolled_up,
    table_of,
)
from private_ate.privacy.noise import Noise
from private_ate.privacy.parts import Parts
from private_ate.release import Estimate
from private_ate.settings import ABSENT, EqualEffects, Facts, SubgroupsNote, plain_settings
from private_ate.study import MatchingStudy

__all__ = ["cell_budget", "estimate_private_cells"]

_MOVES: Final = 2  # a replaced record leaves a cell and enters one


def cell_budget(request: Request) -> Fraction:
    """Return ε of a cell's run, for one move; with all units paid for they have the other half."""
    return request.epsilon / (_MOVES * (2 if request.overall else 1))


def estimate_private_cells(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release effects in all private cells of a request, in their margins and for all units.

    Neighbours: one record replaced, which may be in another cell then. Cost: ε: each of two moves
    costs half of it in the one cell that it changes; with ``overall`` that is a quarter, and half
    of ε pays for a run on all rows. Sensitivities: those of a row that enters or leaves a cell.
    Proof: docs/proofs/subgroups.md.
    """
    cells = Cells.of(study.domain, request.by)
    names = cells.names[:-1]  # rows of which no cell is known take no part
    each = replace(request, by=(), overall=False, epsilon=cell_budget(request))
    parts = Parts(noise, moves=_MOVES)
    masked = study.masked(lambda block: cells.codes(block.covariates), len(names))
    runs = [
        estimate_cell(rows, each, parts.within(name), len(names))
        for name, rows in zip(names, masked, strict=True)
    ]
    direct = None
    if request.overall:
        rest = request.epsilon - _MOVES * each.epsilon
        direct = estimate_blocks(study, replace(each, epsilon=rest), noise)
    released = [_released(run, request) for run in runs]
    rows = _rows(cells, released)
    if direct is not None:
        released, rows = _beside(released, rows, direct)
    control, treated = study.domain.treatment.coded
    labels = (treated, control)
    table = table_of(
        released, rows, labels,
        coverage=request.coverage, width=study.domain.bounds.width, cells=len(runs),
    )  # fmt: skip
    note = _note(request, table, dict(zip(names, runs, strict=True)), labels)
    headline = table.rows[0].contrast
    return Estimate(
        headline.effect,
        headline.noise_interval,
        headline.interval,
        private_settings(request, note, is_adjusted=rows[0].adjusted),
        warnings=private_warnings(request, note),
        subgroups=table.rows,
    )


def _released(run: CellEffect, request: Request) -> ReleasedEffect:
    """Return what one cell released, with the noisy number of units that it speaks of."""
    members, scale = run.count.members, run.count.scale
    treated = run.count.share * members
    units = {"att": treated, "atc": members - treated}.get(request.estimand, float(members))
    counts = 2 if request.estimand == "ate" else 1  # of noisy numbers that were added
    return ReleasedEffect(
        run.effect, (run.law,), run.variance, units, counts * 2 * scale**2, run.facts["adjusted"]
    )


def _rows(cells: Cells, released: Sequence[ReleasedEffect]) -> list[TableRow]:
    """Return all units, margins and cells, rolled up by noisy numbers of units."""
    finest = [(name, (place,)) for place, name in enumerate(cells.names[:-1])]
    groups = [(None, tuple(range(len(released)))), *cells.margins, *finest]
    return [rolled_up(name, released, members) for name, members in groups]


def _beside(
    released: Sequence[ReleasedEffect], rows: Sequence[TableRow], direct: Estimate
) -> tuple[list[ReleasedEffect], list[TableRow]]:
    """Put the effect of all units that was paid for in the place of the rolled-up one."""
    adjusted = Facts.of(plain_settings(direct.settings)).adjusted is not False
    variance = direct.variances[0] if direct.variances else None
    whole = ReleasedEffect(direct.ate, direct.laws, variance, 0.0, 0.0, adjusted)
    others = [replace(row, weights=(*row.weights, 0.0)) for row in rows[1:]]
    first = TableRow(None, (0.0,) * len(released) + (1.0,), 0.0, adjusted)
    return [*released, whole], [first, *others]


def _note(
    request: Request, table: Table, runs: dict[str, CellEffect], labels: tuple[str, str]
) -> SubgroupsNote:
    test = table.equal
    equal = None
    if test is not None:
        equal = EqualEffects(*labels, test.statistic, test.degrees, test.p_value)
    return SubgroupsNote(
        request.by,
        "paid for" if request.overall else "rolled up",
        tuple(cell_note(name, run, labels) for name, run in runs.items()),
        ABSENT if table.factor is None else table.factor,
        ABSENT if equal is None else (equal,),
    )
