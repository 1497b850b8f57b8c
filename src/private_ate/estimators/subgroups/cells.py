"""The rows of the finest cells, which public columns tell, and the groups that cells make up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from private_ate.domain.subgroups import Cells
from private_ate.settings import ABSENT, SubgroupNote
from private_ate.study import ArmSizes, Block, MatchingStudy

__all__ = ["CellRows", "divide_rows", "groups_of", "rows_compared"]


@dataclass(frozen=True, slots=True)
class CellRows:
    """One of the finest cells: its name, its rows and their arms; its repr shows no row."""

    name: str
    study: MatchingStudy = field(repr=False)
    everyone: ArmSizes
    present: ArmSizes
    weight: float | None = None  # what its sampling weights add up to

    @property
    def is_comparable(self) -> bool:
        """Whether every arm has somebody who counts and has an outcome, as far as is public."""
        return not self.present.has_empty

    def note(self, labels: tuple[str, ...]) -> SubgroupNote:
        """Return what a release says of this cell."""
        sizes = dict(zip(labels, self.present.counts, strict=True))
        weight = ABSENT if self.weight is None else self.weight
        return SubgroupNote(self.name, self.everyone.total, sizes, self.is_comparable, weight)


def divide_rows(study: MatchingStudy, cells: Cells) -> list[CellRows]:
    """Return all cells with their sizes, which are public at label level."""
    arms, declared = study.domain.treatment.size, study.domain.weights

    def everyone(block: Block) -> ArmSizes:
        return ArmSizes.count(block.arm, arms)

    def present(block: Block) -> ArmSizes:
        return ArmSizes.count(block.arm[block.shares > 0], arms)

    def sampled(block: Block) -> float:
        return 0.0 if block.weights is None else float(block.weights.sum())

    found = []
    divided = study.divided(lambda block: cells.codes(block.covariates), cells.count)
    for name, rows in zip(cells.names, divided, strict=True):
        nobody = ArmSizes((0,) * arms)
        cell = CellRows(name, rows, nobody, nobody)
        if rows.size:
            public = rows.public()
            cell = CellRows(name, rows, public.fold(everyone), public.fold(present))
            if declared is not None:
                cell = replace(cell, weight=declared.high * public.fold(sampled))
        found.append(cell)
    return found


def rows_compared(study: MatchingStudy, cells: Cells, found: Sequence[CellRows]) -> MatchingStudy:
    """Return the rows of all cells in which every arm has units; which these are is public."""
    kept = np.array([cell.is_comparable for cell in found], dtype=np.uint8)
    if sum(cell.study.size for cell in found if cell.is_comparable) == study.size:
        return study
    return study.divided(lambda block: kept[cells.codes(block.covariates)], 2)[1]


def groups_of(cells: Cells, used: Sequence[CellRows]) -> list[tuple[str, tuple[int, ...]]]:
    """Return margins, then cells, with the places of their cells among those that have effects."""
    places = {cell.name: place for place, cell in enumerate(used)}
    found = []
    for name, members in cells.margins:
        held = tuple(places[cells.names[cell]] for cell in members if cells.names[cell] in places)
        if held:
            found.append((name, held))
    return [*found, *((name, (place,)) for name, place in places.items())]
