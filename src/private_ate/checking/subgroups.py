"""How large the subgroups are that an estimate is planned for, and which of them lack an arm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Integers
from private_ate.checking.findings import Finding
from private_ate.checking.slots import ArmSlots
from private_ate.checking.words import quoted
from private_ate.data.encoding import encode_covariates
from private_ate.data.tables import Table
from private_ate.domain import Domain, Interval, Outcome
from private_ate.domain.subgroups import Cells

__all__ = ["CountedCells", "count_cells", "judge_cells"]

_FEW_UNITS: Final = 30
_MANY: Final = 3  # cells above which all units are better paid for
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class CountedCells:
    """How many rows of every arm are in every cell that holds any."""

    slots: ArmSlots
    counts: dict[str, tuple[int, ...]]

    @property
    def lacking(self) -> list[str]:
        """Cells without rows of some arm."""
        return [name for name, sizes in self.counts.items() if min(sizes) == 0]

    @property
    def small(self) -> list[str]:
        """Cells of which an arm has few rows."""
        return [name for name, sizes in self.counts.items() if 0 < min(sizes) < _FEW_UNITS]

    def told(self, name: str) -> str:
        """Say how large the arms of one cell are."""
        arms = zip(self.counts[name], self.slots.names, strict=True)
        return f"{_plain(name)} ({', '.join(f'{size:,} {arm}' for size, arm in arms)})"


def count_cells(chunks: Iterable[Table], domain: Domain, by: tuple[str, ...]) -> CountedCells:
    """Count the rows of every arm in every cell; rows of no arm are in none."""
    columns = dict.fromkeys(one.column for one in Cells.of(domain, by).partitions)
    # Only the columns that make subgroups are read.
    known = Domain(
        domain.treatment,
        Outcome(domain.outcome.column, Interval(0, 1)),
        {name: domain.covariates[name] for name in columns},
    )
    cells, slots = Cells.of(known, by), ArmSlots(domain.treatment)
    counts: Integers = np.zeros((cells.count, slots.size), dtype=np.int64)
    for chunk in chunks:
        gaps: dict[str, Bits] = {}
        codes = cells.codes(encode_covariates(chunk, known, gaps).T).astype(np.int64)
        for gap in gaps.values():
            codes[gap] = cells.count - 1
        places = slots.take_part(slots.place(chunk))
        counts += np.bincount(codes * slots.size + places, minlength=counts.size).reshape(
            counts.shape
        )
    held = counts[:, : slots.outside]
    return CountedCells(
        slots,
        {
            name: tuple(int(size) for size in sizes)
            for name, sizes in zip(cells.names, held, strict=True)
            if sizes.sum()
        },
    )


def judge_cells(counted: CountedCells) -> Iterator[Finding]:
    """Yield how large subgroups are, which lack an arm, and which are too small to tell much."""
    sizes = [sum(arms) for arms in counted.counts.values()]
    told = {name: dict(zip(counted.slots.labels, arms, strict=True))
            for name, arms in counted.counts.items()}  # fmt: skip
    if counted.lacking:
        yield Finding(
            "subgroups", None, "bends",
            f"an arm is missing in {_some(map(counted.told, counted.lacking))}: such a subgroup "
            "has no effect, and its units are in no row of the table",
            "make coarser subgroups", {"cells": counted.lacking},
        )  # fmt: skip
    if counted.small:
        yield Finding(
            "subgroups", None, "note",
            f"an arm has fewer than {_FEW_UNITS} units in "
            f"{_some(map(counted.told, counted.small))}",
            "make coarser subgroups; so small an arm makes wide intervals",
            {"cells": counted.small},
        )  # fmt: skip
    usable = len(sizes) - len(counted.lacking)
    sentence = (
        f"{len(sizes)} subgroups of {min(sizes):,} to {max(sizes):,} units"
        if sizes
        else ("no row is in a subgroup")
    )
    if usable > _MANY:
        sentence += (
            f"; an effect of all units that is rolled up from {usable} is about {usable**0.5:.1f} "
            "times as noisy as one asked for alone, so that overall=True is recommended"
        )
    yield Finding("subgroups", None, "ok" if sizes else "bends", sentence, "", {"cells": told})


def _plain(name: str) -> str:
    return quoted(name)[1:-1]


def _some(names: Iterable[str]) -> str:
    every = list(names)
    more = f"; … {len(every) - _NAMED:,} more" if len(every) > _NAMED else ""
    return "; ".join(every[:_NAMED]) + more
