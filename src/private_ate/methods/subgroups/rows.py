"""The rows of public subgroups, the groups that these make up, and how much each counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from private_ate.arrays import Bits
from private_ate.domain.subgroups import Cells
from private_ate.errors import SchemaError
from private_ate.request import Request
from private_ate.settings import ABSENT, SubgroupNote
from private_ate.study import ArmSizes, Block, MatchingStudy

__all__ = [
    "ComparedSubgroups", "SubgroupRows", "count_population", "divide_rows", "groups_of",
    "rows_compared",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class SubgroupRows:
    """One of the finest subgroups: its name, its rows and their arms; its repr shows no row."""

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
        """Return what a release says of this subgroup."""
        sizes = dict(zip(labels, self.present.counts, strict=True))
        weight = ABSENT if self.weight is None else self.weight
        return SubgroupNote(self.name, self.everyone.total, sizes, self.is_comparable, weight)


def divide_rows(study: MatchingStudy, cells: Cells) -> list[SubgroupRows]:
    """Return all finest subgroups with their sizes, which are public at label level."""
    arms, declared = study.domain.treatment.size, study.domain.weights

    def everyone(block: Block) -> ArmSizes:
        return ArmSizes.count(block.arm, arms)

    def present(block: Block) -> ArmSizes:
        return ArmSizes.count(block.arm[block.shares > 0], arms)

    def sampled(block: Block) -> float:
        return float(block.weights.sum())

    found = []
    divided = study.divided(lambda block: cells.codes(block.covariates), cells.count)
    for name, rows in zip(cells.names, divided, strict=True):
        nobody = ArmSizes((0,) * arms)
        subgroup = SubgroupRows(name, rows, nobody, nobody)
        if rows.size:
            public = rows.public()
            subgroup = SubgroupRows(name, rows, public.fold(everyone), public.fold(present))
            if declared is not None:
                subgroup = replace(subgroup, weight=declared.high * public.fold(sampled))
        found.append(subgroup)
    return found


@dataclass(frozen=True, slots=True)
class ComparedSubgroups:
    """All finest subgroups of a request, those with units of every arm, and the rows of the latter.

    Which these are follows from public columns.
    """

    cells: Cells
    found: tuple[SubgroupRows, ...]
    used: tuple[SubgroupRows, ...]
    rows: MatchingStudy = field(repr=False)

    @classmethod
    def of(cls, study: MatchingStudy, by: tuple[str, ...]) -> ComparedSubgroups:
        """Divide the rows of a study; refuse columns by which nothing can be compared."""
        cells = Cells.of(study.domain, by)
        found = divide_rows(study, cells)
        used = [subgroup for subgroup in found if subgroup.is_comparable]
        if not used:
            msg = "no subgroup holds units of every arm; choose coarser ones"
            raise SchemaError(msg)
        return cls(cells, tuple(found), tuple(used), rows_compared(study, cells, found))

    def shares(self, request: Request, overlaps: Sequence[float | None]) -> list[float]:
        """Return how much each subgroup counts among all; see :func:`count_population`."""
        populations = [
            count_population(one.study.public(), request, overlap)
            for one, overlap in zip(self.used, overlaps, strict=True)
        ]
        return [population / sum(populations) for population in populations]


def rows_compared(
    study: MatchingStudy, cells: Cells, found: Sequence[SubgroupRows]
) -> MatchingStudy:
    """Return the rows of all subgroups with units of every arm; which these are is public."""
    kept = np.array([subgroup.is_comparable for subgroup in found], dtype=np.uint8)
    if sum(subgroup.study.size for subgroup in found if subgroup.is_comparable) == study.size:
        return study
    return study.divided(lambda block: kept[cells.codes(block.covariates)], 2)[1]


def groups_of(cells: Cells, used: Sequence[SubgroupRows]) -> list[tuple[str, tuple[int, ...]]]:
    """Return margins, then the finest subgroups, with their places among those with effects."""
    places = {subgroup.name: place for place, subgroup in enumerate(used)}
    found = []
    for name, members in cells.margins:
        named = [cells.names[place] for place in members]
        held = tuple(places[one] for one in named if one in places)
        if held:
            found.append((name, held))
    return [*found, *((name, (place,)) for name, place in places.items())]


def count_population(public: MatchingStudy, request: Request, overlap: float | None) -> float:
    """Return how many units the effect in a subgroup speaks of, counted by their sampling weights.

    ``overlap`` is what the overlap of its units adds up to, as the method has it for the ATO.
    """
    if request.estimand == "ato":
        if overlap is None:
            msg = "a subgroup of the ATO does not say what its overlap adds up to"
            raise TypeError(msg)
        return overlap
    labels = public.domain.treatment.coded

    def counted(block: Block) -> Bits:
        if request.among is not None:
            return np.asarray(block.arm == labels.index(request.among))
        match request.estimand:
            case "att":
                return np.asarray(block.arm == 1)
            case "atc":
                return np.asarray(block.arm == 0)
            case _:
                return np.ones(block.arm.size, dtype=np.bool_)

    def kernel(block: Block) -> float:
        return float(block.weights[counted(block)].sum())

    return public.fold(kernel, title="subgroups")
