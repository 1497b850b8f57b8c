"""The table of private subgroups: every row a weighted sum of released effects.

Weights are noisy numbers of units, so a row also errs by its weights. All of it is
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from private_ate.contents.arms import Contrast, NoiseLaw, Pair, SubgroupRow
from private_ate.contents.laws import half_width, noise_half_width
from private_ate.estimators.subgroups.errors import (
    Heterogeneity,
    Quantity,
    ReleasedCells,
    RowWeights,
)

__all__ = ["ReleasedEffect", "Table", "TableRow", "rolled_up", "table_of"]


@dataclass(frozen=True, slots=True)
class ReleasedEffect:
    """A released effect, of a cell or of all units, in units of the outcome.

    Attributes
    ----------
    value : float
        The number.
    laws : tuple of NoiseLaw
        Laws of its independent noises.
    variance : float or None
        Its sampling variance; None if no interval was paid for.
    units : float
        The noisy number of units that it speaks of.
    units_variance : float
        The variance of that number's noise.
    adjusted : bool
        Whether covariates were adjusted for.
    """

    value: float
    laws: tuple[NoiseLaw, ...]
    variance: float | None
    units: float
    units_variance: float
    adjusted: bool


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row to be made: its name, the weights of all released effects, and its extra variance."""

    subgroup: str | None
    weights: tuple[float, ...]
    extra: float
    adjusted: bool


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with their intervals, the factor of simultaneous ones, a test of equal effects."""

    rows: tuple[SubgroupRow, ...]
    factor: float | None
    equal: Heterogeneity | None


def rolled_up(
    name: str | None, released: Sequence[ReleasedEffect], members: Sequence[int]
) -> TableRow:
    """Return the mean of some cells' effects, weighted by their noisy numbers of units.

    A number of units that is off by δ moves the mean by δ over all units, times how far the
    cell's effect is from the mean; the variance of that is the row's extra one.
    """
    whole = sum(released[place].units for place in members)
    weights = [one.units / whole if place in members else 0.0 for place, one in enumerate(released)]
    mean = sum(weight * one.value for weight, one in zip(weights, released, strict=True))
    extra = sum(
        released[place].units_variance * ((released[place].value - mean) / whole) ** 2
        for place in members
    )
    adjusted = all(released[place].adjusted for place in members)
    return TableRow(name, tuple(weights), extra, adjusted)


def table_of(
    released: Sequence[ReleasedEffect],
    rows: Sequence[TableRow],
    contrast: tuple[str, str],
    *,
    coverage: float,
    width: float,
    cells: int,
) -> Table:
    """Return all rows with their intervals, around effects within ±``width``.

    ``contrast`` names the arm and the one that it is compared with. The first ``cells`` released
    effects are those of disjoint cells, which the test of equal effects compares.
    """
    halves = [_half(released, row, coverage) for row in rows]
    known = [half for half in halves if half is not None]
    factor = equal = None
    if len(known) == len(halves):
        quantities = [[Quantity(one.value, one.laws, _listed(one.variance))] for one in released]
        everyone = ReleasedCells.reconcile([1 / len(released)] * len(released), quantities)
        sums = [RowWeights(row.weights, (1.0,)) for row in rows]
        factor = everyone.simultaneous_factor(sums, known, coverage)
        apart = ReleasedCells.reconcile([1 / cells] * cells, quantities[:cells])
        equal = apart.test_equal((1.0,))
    made = []
    for row, half in zip(rows, halves, strict=True):
        value = sum(weight * one.value for weight, one in zip(row.weights, released, strict=True))
        noise = math.hypot(
            noise_half_width(coverage, _laws(released, row)), _reach(row.extra, coverage)
        )
        wider = None if half is None or factor is None else half * factor
        made.append(
            SubgroupRow(
                row.subgroup,
                Contrast(
                    *contrast, value,
                    interval=_around(value, half, width),
                    simultaneous=_around(value, wider, width),
                    noise_interval=_around(value, noise, width),
                ),
                row.adjusted,
            )
        )  # fmt: skip
    return Table(tuple(made), factor, equal)


def _half(released: Sequence[ReleasedEffect], row: TableRow, coverage: float) -> float | None:
    """Return the half-width as the method has it: noise and sampling added in squares."""
    felt = [(w, one) for w, one in zip(row.weights, released, strict=True) if w]
    variances = [w**2 * one.variance for w, one in felt if one.variance is not None]
    if len(variances) < len(felt):
        return None
    spread = [[variance] for variance in (*variances, row.extra)]
    return half_width(coverage, _laws(released, row), spread, "in_squares")


def _laws(released: Sequence[ReleasedEffect], row: TableRow) -> list[NoiseLaw]:
    return [
        replace(law, unit=weight * law.unit)
        for weight, one in zip(row.weights, released, strict=True)
        for law in one.laws
        if weight
    ]


def _reach(variance: float, coverage: float) -> float:
    """Return the half-width of a normal error alone."""
    return half_width(coverage, (), [[variance]], "in_squares")


def _listed(variance: float | None) -> tuple[float, ...]:
    return () if variance is None else (variance,)


def _around(value: float, half: float | None, width: float) -> Pair | None:
    """Return an interval around an effect, within what effects can be."""
    if half is None:
        return None
    return max(value - half, -width), min(value + half, width)
