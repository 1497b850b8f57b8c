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
from typing import Final, NamedTuple

from private_ate.domain.column_types import Interval
from private_ate.effects.estimate import EffectRow, Quantity
from private_ate.effects.quantities import ReleasedSubgroups, RowForm, with_intervals
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import half_width
from private_ate.release.metadata import Arm, Pair, around, longer_half, within
from private_ate.settings import EqualEffects, IntervalRule

ALL_PAIRS: Final = "all pairs"
TO_REFERENCE: Final = "against the reference"


class Intervals(NamedTuple):
    """Which intervals a table has: their coverage, that of all together, and how they are made.

    Without a rule none was paid for, and there are those of the noise alone.
    """

    coverage: float
    at_once: float
    rule: IntervalRule | None


def table_of_arms(
    quantities: Sequence[Quantity], bounds: Interval, asked: Intervals
) -> tuple[tuple[EffectRow, ...], dict[str, float]]:
    """Return all contrasts of arms, and how much wider simultaneous intervals are by their scope.

    One quantity is the contrast of two arms; more are levels in the order of the codes.
    """
    if len(quantities) == 1:
        return (_contrast_of_pair(quantities[0], bounds.width, asked),), {}
    released = ReleasedSubgroups.reconcile((1.0,), [quantities])
    rows = table_rows((1.0,), (), len(quantities))
    made, factors = _rows(released, rows, bounds.width, asked, len(quantities) - 1)
    return made, dict(zip((ALL_PAIRS, TO_REFERENCE), factors, strict=False))


def table_of_subgroups(
    released: ReleasedSubgroups,
    groups: Sequence[tuple[str, tuple[int, ...]]],
    arms: int,
    width: float,
    asked: Intervals,
) -> tuple[tuple[EffectRow, ...], float | None]:
    """Return the rows of all units and of groups, and the factor of simultaneous intervals.

    ``groups`` are as in :func:`table_rows`.
    """
    made, factors = _rows(released, table_rows(released.shares, groups, arms), width, asked)
    return made, factors[0] if factors else None


def _rows(
    released: ReleasedSubgroups,
    rows: Sequence[TableRow],
    width: float,
    asked: Intervals,
    *scopes: int,
) -> tuple[tuple[EffectRow, ...], list[float]]:
    """Return rows with their intervals, and how much wider those are that cover all at once.

    ``scopes`` ask for the factors of so many of the first rows too. Effects of all units alone are
    kept within ± the width of the outcome's bounds, as their intervals are.
    """
    halves: list[float | None] = [None] * len(rows)
    factors = []
    if asked.rule is not None:
        forms = [row.weights for row in rows]
        known = [released.half(form, asked.coverage, asked.rule) for form in forms]
        factors = [
            released.simultaneous_factor(forms[:count], known[:count], asked.at_once)
            for count in (len(rows), *scopes)
        ]
        halves = [*known]
    made = []
    for row, half in zip(rows, halves, strict=True):
        value = released.value(row.weights)
        effect = EffectRow.around(
            within(value, (-width, width)) if released.is_whole else value,
            half, factors[0] if factors else None,
            released.noise_half(row.weights, asked.coverage), width,
        )  # fmt: skip
        made.append(replace(effect, arm=row.arm, against=row.against, subgroup=row.subgroup))
    return tuple(made), factors


def _contrast_of_pair(effect: Quantity, width: float, asked: Intervals) -> EffectRow:
    """Return the one contrast of two arms: with its own intervals, where the method has them."""
    coverage, at_once, rule = asked
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


def arms_of(
    released: ReleasedSubgroups,
    labels: Sequence[str],
    bounds: Interval,
    about: AboutArms,
    asked: Intervals,
) -> tuple[Arm, ...]:
    """Return the arms as a release lists them; means are kept within the outcome's bounds.

    The level of all units alone has one noise, independent of that of other arms; that of units
    that are rolled up is the sum of many draws, of no single distribution.
    """
    ends = (bounds.low, bounds.high)
    found = []
    for code, label in enumerate(labels):
        form = RowForm(released.shares, tuple(float(code == other) for other in range(len(labels))))
        mean = within(released.value(form), ends) if about.are_means else None
        interval = noise_interval = noise = None
        variances: tuple[float, ...] = ()
        if mean is not None:
            half = None
            if asked.rule is not None:
                half = released.half(form, asked.coverage, asked.rule)
                variances = (released.variance(form),)
            interval = around(mean, half, ends)
            noise_interval = around(mean, released.noise_half(form, asked.coverage), ends)
        if released.is_whole:
            noise = _plain(*released.noises(form))
            variances = tuple(released.likely(form)[0])
        found.append(Arm(
            label, None if about.units is None else about.units[code],
            mean, interval, noise_interval,
            noise=noise, mean_noise=None, variances=variances,
            weighted=about.weighted is None or about.weighted[code],
        ))  # fmt: skip
    return tuple(found)


def _plain(noise: NoiseDistribution) -> NoiseDistribution | None:
    """Return noise with its ε as the number that JSON holds; None if outcomes share the draw."""
    if noise.outcomes > 1:
        return None
    return NoiseDistribution(noise.name, float(noise.unit), float(noise.epsilon))


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
