"""The tables of effects that released quantities make: contrasts of arms, subgroups, means.

Two arms release the contrast itself, because that halves the variance of the noise; more release a
level of each, as an outcome belongs to one arm and one ε pays for all. Every row is a weighted sum
of released quantities, whose noise has a known distribution. All of it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from private_ate.arrays import Floats
from private_ate.domain.column_types import Interval
from private_ate.effects.estimate import EffectRow, Quantity
from private_ate.effects.quantities import (
    DRAWS,
    ReleasedSubgroups,
    RowForm,
    sampling_draws,
    simultaneous_factor,
    weighted_errors,
    with_intervals,
)
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import fixed_uniforms, half_width, noise_draws, noise_half_width
from private_ate.release.metadata import Arm, Pair, around, longer_half, within
from private_ate.settings import EqualEffects, IntervalRule

ALL_PAIRS: Final = "all pairs"
TO_REFERENCE: Final = "against the reference"


def contrasts_of(
    quantities: Sequence[Quantity],
    bounds: Interval,
    *,
    coverage: float,
    at_once: float,
    rule: IntervalRule | None,
) -> tuple[tuple[EffectRow, ...], dict[str, float]]:
    """Return all contrasts of arms, and how much wider simultaneous intervals are by their scope.

    One quantity is the contrast of two arms; more are levels in the order of the codes.
    Contrasts are kept within ± the width of the outcome's bounds. Intervals follow ``rule``;
    without one there are those of the noise alone. Simultaneous ones cover all contrasts together
    with the probability ``at_once``.
    """
    if len(quantities) == 1:
        return (_contrast_of_pair(quantities[0], bounds.width, coverage, at_once, rule),), {}
    pairs = pairs_in_order(len(quantities))
    sums = [
        weighted_errors([(1.0, quantities[arm]), (-1.0, quantities[against])])
        for arm, against in pairs
    ]
    halves: list[float | None] = [None] * len(pairs)
    factors: dict[str, float] = {}
    if rule is not None:
        known = [half_width(coverage, *errors, rule) for errors in sums]
        factors = _simultaneous_factors(quantities, pairs, known, at_once)
        halves = [*known]
    ends = (-bounds.width, bounds.width)
    rows = tuple(
        replace(
            EffectRow.around(
                within(quantities[arm].value - quantities[against].value, ends),
                half, factors.get(ALL_PAIRS), noise_half_width(coverage, noises), bounds.width,
            ),
            arm=arm, against=against,
        )
        for (arm, against), half, (noises, _) in zip(pairs, halves, sums, strict=True)
    )  # fmt: skip
    return rows, factors


def _contrast_of_pair(
    effect: Quantity, width: float, coverage: float, at_once: float, rule: IntervalRule | None
) -> EffectRow:
    """Return the one contrast of two arms: with its own intervals, where the method has them."""
    if effect.noise_interval is None:
        if rule is None:
            effect = replace(effect, variances=())
        effect = with_intervals(effect, coverage, rule or "convolved", width)
    interval = together = effect.interval
    if interval is not None and at_once != coverage:
        if effect.noise and effect.variances:
            half = half_width(at_once, effect.noise, [effect.variances], "convolved")
        else:
            half = _wider(effect.value, interval, coverage, at_once)
        low, high = (
            within(end, (-width, width)) for end in (effect.value - half, effect.value + half)
        )
        together = (min(low, interval[0]), max(high, interval[1]))
    return EffectRow(effect.value, interval, together, effect.noise_interval)


def _wider(effect: float, interval: Pair, coverage: float, at_once: float) -> float:
    """Return a half-width that covers more, of an error whose distribution is not known.

    If the density of an error is log-concave, as those of normal errors, of Laplace noise and of
    their sums are, the logarithm of its tail falls ever faster, so that quantiles grow at most
    like these logarithms.
    """
    return longer_half(effect, interval) * math.log(1 - at_once) / math.log(1 - coverage)


def pairs_in_order(arms: int) -> list[tuple[int, int]]:
    """Return (arm, against) by codes: against the reference, then later arms against earlier."""
    others = [(later, earlier) for earlier, later in combinations(range(1, arms), 2)]
    return [(arm, 0) for arm in range(1, arms)] + others


@dataclass(frozen=True, slots=True)
class AboutArms:
    """What a method says of levels by arm, in the order of the codes.

    Attributes
    ----------
    are_means : bool
        Whether levels are means; otherwise they are means up to a number that all arms share.
    units : sequence of int or None
        How many units each arm holds, where that is public.
    weighted : sequence of bool or None
        Whether each arm's units were weighted to stand for all; None for all arms.
    """

    are_means: bool = True
    units: Sequence[int] | None = None
    weighted: Sequence[bool] | None = None


def arms_of_levels(
    levels: Sequence[Quantity],
    labels: Sequence[str],
    bounds: Interval,
    about: AboutArms,
    *,
    coverage: float,
    rule: IntervalRule | None,
) -> tuple[Arm, ...]:
    """Return the arms as a release lists them; means are kept within the outcome's bounds.

    A level has one noise, independent of that of other arms.
    """
    ends = (bounds.low, bounds.high)
    found = []
    for code, (label, level) in enumerate(zip(labels, levels, strict=True)):
        (noise,) = level.noise
        mean = within(level.value, ends) if about.are_means else None
        interval = noise_interval = None
        if mean is not None:
            half = None if rule is None else half_width(coverage, [noise], [level.variances], rule)
            interval = around(mean, half, ends)
            noise_interval = around(mean, noise_half_width(coverage, [noise]), ends)
        found.append(Arm(
            label, None if about.units is None else about.units[code],
            mean, interval, noise_interval,
            noise=_plain(noise), mean_noise=None, variances=level.variances,
            weighted=about.weighted is None or about.weighted[code],
        ))  # fmt: skip
    return tuple(found)


def _plain(noise: NoiseDistribution) -> NoiseDistribution | None:
    """Return noise with its ε as the number that JSON holds; None if outcomes share the draw."""
    if noise.outcomes > 1:
        return None
    return NoiseDistribution(noise.name, float(noise.unit), float(noise.epsilon))


def _simultaneous_factors(
    levels: Sequence[Quantity],
    pairs: Sequence[tuple[int, int]],
    halves: Sequence[float],
    coverage: float,
) -> dict[str, float]:
    """Return the factors of all pairs and of those with the reference, which stand first."""
    # Streams go to arms by their errors, so that the order of arms does not matter.
    by_error = sorted(range(len(levels)), key=lambda place: _order_of(levels[place]))
    drawn = [_errors(by_error.index(place), level) for place, level in enumerate(levels)]
    counts = {ALL_PAIRS: len(pairs), TO_REFERENCE: len(levels) - 1}
    return {
        scope: simultaneous_factor(
            (drawn[first] - drawn[second] for first, second in pairs[:count]),
            halves[:count],
            coverage,
        )
        for scope, count in counts.items()
    }


def _order_of(level: Quantity) -> tuple[object, ...]:
    (noise,) = level.noise
    return noise.unit, noise.name, noise.epsilon, level.variances


def _errors(place: int, level: Quantity) -> Floats:
    """Return simulated errors of a level: its noise, and a normal of one of its variances."""
    named = f"errors of place {place} behind simultaneous intervals"
    noise, normal, which = fixed_uniforms(named, 3, DRAWS)
    (own,) = level.noise
    return noise_draws(own, noise) + sampling_draws(level.variances, normal, which)


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
