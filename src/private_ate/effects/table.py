"""The rows of a table of subgroups: all units, margins, subgroups, each with its intervals.

Every row is a weighted sum of released quantities. Where subgroups are private their weights are
noisy numbers of units, so that a row also errs by its weights. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from private_ate.domain import Interval
from private_ate.effects.contrasts import contrast_row, pairs_in_order
from private_ate.effects.estimate import SubgroupRow
from private_ate.effects.quantities import (
    Heterogeneity,
    Quantity,
    ReleasedSubgroups,
    RowWeights,
    weighted_errors,
)
from private_ate.release.intervals import half_width
from private_ate.release.metadata import Arm, around, within
from private_ate.settings import EqualEffects


@dataclass(frozen=True, slots=True)
class Row:
    """A row to be made: of which subgroup, which contrast, and which weighted sum it is."""

    subgroup: str | None
    arm: str
    against: str
    weights: RowWeights


def table_rows(
    shares: Sequence[float],
    groups: Sequence[tuple[str, tuple[int, ...]]],
    labels: tuple[str, ...],
) -> list[Row]:
    """Return the rows of a table: all pairs of arms for all units, then groups by the reference.

    ``groups`` are the rows' names with the places of the finest subgroups in each.
    """
    contrasts = _contrasts(labels)
    everyone = tuple(shares)
    rows = [Row(None, arm, against, RowWeights(everyone, sums)) for arm, against, sums in contrasts]
    return rows + [
        Row(name, arm, against, RowWeights(finest, sums))
        for name, finest in _weights(everyone, groups)
        for arm, against, sums in contrasts[: len(labels) - 1]
    ]


def rows_of_subgroups(
    released: ReleasedSubgroups,
    rows: Sequence[Row],
    width: float,
    coverage: float,
    at_once: float | None,
) -> tuple[list[SubgroupRow], float | None]:
    """Return the rows with their intervals, and the factor of the simultaneous ones.

    Without ``at_once``, what simultaneous intervals cover, no interval was paid for.
    """
    halves: list[float | None] = [None] * len(rows)
    factor = None
    if at_once is not None:
        known = [released.half(row.weights, coverage) for row in rows]
        factor = released.simultaneous_factor([row.weights for row in rows], known, at_once)
        halves = [*known]
    made = [
        SubgroupRow(
            row.subgroup,
            contrast_row(
                row.arm, row.against, released.value(row.weights), half=half, factor=factor,
                noise=released.noise_half(row.weights, coverage), width=width,
            ),
        )
        for row, half in zip(rows, halves, strict=True)
    ]  # fmt: skip
    return made, factor


def equal_effects(released: ReleasedSubgroups, labels: tuple[str, ...]) -> tuple[EqualEffects, ...]:
    """Test for each arm whether its effect against the reference is the same in all subgroups."""
    found = [
        (arm, against, released.test_equal(sums))
        for arm, against, sums in _contrasts(labels)[: len(labels) - 1]
    ]
    return tuple(
        EqualEffects(arm, against, test.statistic, test.degrees, test.p_value)
        for arm, against, test in found
        if test is not None
    )


def arm_of_subgroups(
    released: ReleasedSubgroups,
    place: int,
    labels: tuple[str, ...],
    units: int,
    bounds: Interval,
    coverage: float,
    *,
    pays: bool,
) -> Arm:
    """Return an arm of all units; its noise is the sum of many draws, of no single distribution."""
    sums = tuple(float(place == other) for other in range(len(labels)))
    weights = RowWeights(released.shares, sums)
    ends = (bounds.low, bounds.high)
    mean = within(released.value(weights), ends)
    return Arm(
        labels[place], units, mean,
        interval=around(mean, released.half(weights, coverage), ends) if pays else None,
        noise_interval=around(mean, released.noise_half(weights, coverage), ends),
        noise=None, mean_noise=None,
        variances=(released.variance(weights),) if pays else (),
        weighted=True,
    )  # fmt: skip


def _contrasts(labels: tuple[str, ...]) -> list[tuple[str, str, tuple[float, ...]]]:
    """Return (arm, against, weights of quantities): against the reference, then other pairs.

    Two arms release their contrast, more a level each.
    """
    if len(labels) == 2:
        return [(labels[1], labels[0], (1.0,))]
    return [
        (labels[arm], labels[against],
         tuple(float(place == arm) - float(place == against) for place in range(len(labels))))
        for arm, against in pairs_in_order(len(labels))
    ]  # fmt: skip


def _weights(
    shares: tuple[float, ...], groups: Sequence[tuple[str, tuple[int, ...]]]
) -> list[tuple[str, tuple[float, ...]]]:
    """Return every subgroup with units, and the weights of the finest ones in it."""
    found = []
    for name, members in groups:
        whole = sum(shares[place] for place in members)
        if whole > 0:
            weights = [shares[place] / whole if place in members else 0.0
                       for place in range(len(shares))]  # fmt: skip
            found.append((name, tuple(weights)))
    return found


@dataclass(frozen=True, slots=True)
class ReleasedEffect:
    """A released effect of a private subgroup or of all units.

    Attributes
    ----------
    effect : Quantity
        The effect, with one sampling variance, or none if no interval was paid for.
    units : float
        The noisy number of units that it speaks of.
    units_variance : float
        The variance of that number's noise.
    adjusted : bool
        Whether covariates were adjusted for.
    """

    effect: Quantity
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
class PrivateTable:
    """Rows with their intervals, the factor of simultaneous ones, a test of equal effects."""

    rows: tuple[SubgroupRow, ...]
    factor: float | None
    equal: Heterogeneity | None


def rolled_up(
    name: str | None, released: Sequence[ReleasedEffect], members: Sequence[int]
) -> TableRow:
    """Return the mean of some subgroups' effects, weighted by their noisy numbers of units.

    A number of units that is off by δ moves the mean by δ over all units, times how far the
    subgroup's effect is from the mean; the variance of that is the row's extra one.
    """
    whole = sum(released[place].units for place in members)
    weights = [one.units / whole if place in members else 0.0 for place, one in enumerate(released)]
    mean = sum(weight * one.effect.value for weight, one in zip(weights, released, strict=True))
    extra = sum(
        released[place].units_variance * ((released[place].effect.value - mean) / whole) ** 2
        for place in members
    )
    adjusted = all(released[place].adjusted for place in members)
    return TableRow(name, tuple(weights), extra, adjusted)


def private_table(
    released: Sequence[ReleasedEffect],
    rows: Sequence[TableRow],
    contrast: tuple[str, str],
    *,
    coverage: float,
    width: float,
    cells: int,
) -> PrivateTable:
    """Return all rows with their intervals, around effects within ±``width``.

    ``contrast`` names the arm and the one that it is compared with. The first ``cells`` released
    effects are of disjoint subgroups, which the test of equal effects compares with their like.
    """
    effects = [one.effect for one in released]
    halves = [_half(effects, row, coverage) for row in rows]
    known = [half for half in halves if half is not None]
    factor = equal = None
    if len(known) == len(halves):
        everyone = _side_by_side(effects)
        sums = [RowWeights(row.weights, (1.0,)) for row in rows]
        factor = everyone.simultaneous_factor(sums, known, coverage)
        equal = _test_equal(released[:cells])
    made = []
    for row, half in zip(rows, halves, strict=True):
        noises, _ = weighted_errors(zip(row.weights, effects, strict=True))
        noise = half_width(coverage, noises, [[row.extra]], "in_squares")
        value = sum(weight * one.value for weight, one in zip(row.weights, effects, strict=True))
        one = contrast_row(*contrast, value, half=half, factor=factor, noise=noise, width=width)
        made.append(SubgroupRow(row.subgroup, one, row.adjusted))
    return PrivateTable(tuple(made), factor, equal)


def _test_equal(subgroups: Sequence[ReleasedEffect]) -> Heterogeneity | None:
    """Test whether subgroups have the same effect, never an adjusted one against one that is not.

    A difference in means holds the confounding of its subgroup, so that it differs from an
    adjusted effect although effects are equal. Where some subgroups are adjusted these alone are
    compared.
    """
    adjusted = any(one.adjusted for one in subgroups)
    return _side_by_side([one.effect for one in subgroups if one.adjusted == adjusted]).test_equal(
        (1.0,)
    )


def _side_by_side(effects: Sequence[Quantity]) -> ReleasedSubgroups:
    return ReleasedSubgroups.reconcile(
        [1 / len(effects)] * len(effects), [[one] for one in effects]
    )


def _half(effects: Sequence[Quantity], row: TableRow, coverage: float) -> float | None:
    """Return the half-width as the method has it: noise and sampling added in squares."""
    noises, variances = weighted_errors(zip(row.weights, effects, strict=True))
    if not all(variances):
        return None
    return half_width(coverage, noises, [*variances, [row.extra]], "in_squares")
