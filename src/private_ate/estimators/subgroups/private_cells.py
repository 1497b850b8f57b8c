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
from private_ate.effects.estimate import Estimate
from private_ate.effects.quantities import Quantity
from private_ate.effects.table import (
    PrivateTable,
    ReleasedEffect,
    TableRow,
    private_table,
    rolled_up,
)
from private_ate.estimators.blocks.cell import CellEffect
from private_ate.estimators.blocks.method import estimate_blocks, estimate_cell
from private_ate.estimators.blocks.settings import BlocksSettings
from private_ate.estimators.request import Request
from private_ate.privacy.noise import Noise
from private_ate.privacy.parts import Parts
from private_ate.settings import ABSENT, EqualEffects, SubgroupNote, SubgroupsNote
from private_ate.study import MatchingStudy

__all__ = ["cell_budget", "estimate_private_cells"]

_MOVES: Final = 2  # a replaced record leaves a cell and enters one
_TARGETS: Final = {"ate": "units", "att": "treated units", "atc": "control units"}
_HOW: Final = (
    "effects by {0}: which subgroup somebody is in is private, so each has half of ε for every "
    "record that enters or leaves it, and numbers of units are noisy"
)
_QUARTER: Final = (
    "effects by {0} with half of ε, the other half for all units; which subgroup somebody is in "
    "is private, so numbers of units are noisy. Subgroups and all units are not reconciled: they "
    "need not add up"
)
_MERE: Final = (
    "too few rows to adjust in {0}: what is told there is a difference in means, not an effect; do "
    "not compare it with adjusted subgroups, as the test of equal effects does not"
)
_COVERS: Final = (
    "noise and sampling; not confounding, where arms are compared as they are, nor what the model "
    "inside the blocks leaves, nor unmeasured confounding"
)
_TRIAL: Final = "noise and sampling; treatment is taken to be random, as declared"


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
    table = private_table(
        released, rows, labels,
        coverage=request.coverage, width=study.domain.bounds.width, cells=len(runs),
    )  # fmt: skip
    note = _note(request, table, dict(zip(names, runs, strict=True)), labels)
    headline = table.rows[0].contrast
    return Estimate(
        headline.effect,
        headline.noise_interval,
        headline.interval,
        _settings(request, note, is_adjusted=rows[0].adjusted),
        warnings=_warnings(request, note),
        subgroups=table.rows,
    )


def _released(run: CellEffect, request: Request) -> ReleasedEffect:
    """Return what one cell released, with the noisy number of units that it speaks of."""
    members, scale = run.count.members, run.count.scale
    treated = run.count.share * members
    units = {"att": treated, "atc": members - treated}.get(request.estimand, float(members))
    counts = 2 if request.estimand == "ate" else 1  # of noisy numbers that were added
    variances = () if run.variance is None else (run.variance,)
    return ReleasedEffect(
        Quantity(run.effect, (run.law,), variances), units, counts * 2 * scale**2,
        run.facts["adjusted"],
    )  # fmt: skip


def _rows(cells: Cells, released: Sequence[ReleasedEffect]) -> list[TableRow]:
    """Return all units, margins and cells, rolled up by noisy numbers of units."""
    finest = [(name, (place,)) for place, name in enumerate(cells.names[:-1])]
    groups = [(None, tuple(range(len(released)))), *cells.margins, *finest]
    return [rolled_up(name, released, members) for name, members in groups]


def _beside(
    released: Sequence[ReleasedEffect], rows: Sequence[TableRow], direct: Estimate
) -> tuple[list[ReleasedEffect], list[TableRow]]:
    """Put the effect of all units that was paid for in the place of the rolled-up one."""
    adjusted = direct.is_adjusted
    (effect,) = direct.quantities
    whole = ReleasedEffect(effect, 0.0, 0.0, adjusted)
    others = [replace(row, weights=(*row.weights, 0.0)) for row in rows[1:]]
    first = TableRow(None, (0.0,) * len(released) + (1.0,), 0.0, adjusted)
    return [*released, whole], [first, *others]


def _note(
    request: Request, table: PrivateTable, runs: dict[str, CellEffect], labels: tuple[str, str]
) -> SubgroupsNote:
    test = table.equal
    equal = None
    if test is not None:
        equal = EqualEffects(*labels, test.statistic, test.degrees, test.p_value)
    return SubgroupsNote(
        request.by,
        "paid for" if request.overall else "rolled up",
        tuple(_cell_note(name, run, labels) for name, run in runs.items()),
        ABSENT if table.factor is None else table.factor,
        ABSENT if equal is None else (equal,),
    )


def _cell_note(name: str, run: CellEffect, labels: tuple[str, str]) -> SubgroupNote:
    """Return what was released of one cell's size: noisy numbers, none below zero."""
    count = run.count
    arms = zip(labels, (count.treated, count.total - count.treated), strict=True)
    sizes = {label: max(round(size), 0) for label, size in arms}
    return SubgroupNote(name, sum(sizes.values()), sizes, True, adjusted=run.facts["adjusted"])


def _settings(request: Request, note: SubgroupsNote, *, is_adjusted: bool) -> BlocksSettings:
    """Return the settings of all cells as one; what each chose for itself is not told."""
    how = _QUARTER if request.overall else _HOW
    half = float(request.epsilon) / 2
    budget = {"all units": half, "every subgroup": half} if request.overall else {
        "every subgroup": float(request.epsilon)
    }  # fmt: skip
    covers = _TRIAL if request.design == "randomized" else _COVERS
    return BlocksSettings(
        adjusted=is_adjusted,
        population=_population(request, is_adjusted=is_adjusted),
        interval_covers=ABSENT if request.confidence is None else covers,
        notes=(how.format(", ".join(request.by)),),
        design=request.design,
        estimand=request.estimand,
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        budget=budget,
        noise_interval_covers="the last step's noise only; not sampling, not confounding",
        subgroups=note,
    )


def _warnings(request: Request, note: SubgroupsNote) -> tuple[str, ...]:
    """Name the subgroups that are compared as they are beside others that are adjusted."""
    mere = [cell.name for cell in note.cells if cell.adjusted is False]
    if request.design == "randomized" or not mere or len(mere) == len(note.cells):
        return ()
    return (_MERE.format("; ".join(mere)),)


def _population(request: Request, *, is_adjusted: bool) -> str:
    as_they_are = "" if is_adjusted else ", arms compared as they are in some subgroup or in all"
    if request.overall:
        return f"all {_TARGETS[request.estimand]}" + (
            "" if is_adjusted else ", arms compared as they are"
        )
    return (
        f"all {_TARGETS[request.estimand]} whose subgroup is known, rolled up by noisy numbers"
        f"{as_they_are}"
    )
