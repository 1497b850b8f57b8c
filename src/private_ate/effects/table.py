"""The rows of a table of subgroups: all units, margins, subgroups, each with its intervals.

Every row is a weighted sum of released quantities. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from private_ate.domain import Interval
from private_ate.effects.contrasts import pairs_in_order
from private_ate.effects.quantities import EffectRow, ReleasedSubgroups, RowForm
from private_ate.release.metadata import Arm, around, within
from private_ate.settings import EqualEffects


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row to be made: of which subgroup, which contrast, and which weighted sum it is."""

    subgroup: str | None
    arm: int
    against: int
    weights: RowForm


def table_rows(
    shares: Sequence[float],
    groups: Sequence[tuple[str, tuple[int, ...]]],
    arms: int,
) -> list[TableRow]:
    """Return the rows of a table: all pairs of arms for all units, then groups by the reference.

    ``groups`` are the rows' names with the places of the finest subgroups in each.
    """
    contrasts = _contrasts(arms)
    everyone = tuple(shares)
    rows = [
        TableRow(None, arm, against, RowForm(everyone, sums)) for arm, against, sums in contrasts
    ]
    return rows + [
        TableRow(name, arm, against, RowForm(finest, sums))
        for name, finest in _weights(everyone, groups)
        for arm, against, sums in contrasts[: arms - 1]
    ]


def rows_of_subgroups(
    released: ReleasedSubgroups,
    rows: Sequence[TableRow],
    width: float,
    coverage: float,
    at_once: float | None,
) -> tuple[list[EffectRow], float | None]:
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
        replace(
            EffectRow.around(
                released.value(row.weights), half, factor,
                released.noise_half(row.weights, coverage), width,
            ),
            arm=row.arm, against=row.against, subgroup=row.subgroup,
        )
        for row, half in zip(rows, halves, strict=True)
    ]  # fmt: skip
    return made, factor


def equal_effects(released: ReleasedSubgroups, labels: tuple[str, ...]) -> tuple[EqualEffects, ...]:
    """Test for each arm whether its effect against the reference is the same in all subgroups."""
    found = [
        (labels[arm], labels[against], released.test_equal(sums))
        for arm, against, sums in _contrasts(len(labels))[: len(labels) - 1]
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
    weights = RowForm(released.shares, sums)
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


def _contrasts(arms: int) -> list[tuple[int, int, tuple[float, ...]]]:
    """Return (arm, against, weights of quantities): against the reference, then other pairs.

    Two arms release their contrast, more a level each.
    """
    if arms == 2:
        return [(1, 0, (1.0,))]
    return [
        (arm, against,
         tuple(float(place == arm) - float(place == against) for place in range(arms)))
        for arm, against in pairs_in_order(arms)
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
