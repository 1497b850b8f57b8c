"""From released levels of several arms to means and all their contrasts, with intervals.

An outcome belongs to one arm, so that one ε pays for a level of every arm; what follows here is
made of those levels and the known distributions of their noise, and is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from private_ate.arrays import Floats
from private_ate.domain import Interval
from private_ate.effects.estimate import ArmEstimate, EffectRow
from private_ate.effects.quantities import (
    DRAWS,
    sampling_draws,
    simultaneous_factor,
    weighted_errors,
)
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import (
    Rule,
    fixed_uniforms,
    half_width,
    noise_draws,
    noise_half_width,
)
from private_ate.release.metadata import Arm, Contrast, Pair, around, within

ALL_PAIRS: Final = "all pairs"
TO_REFERENCE: Final = "against the reference"


def compare_arms(
    arms: Sequence[ArmEstimate],
    labels: Sequence[str],
    bounds: Interval,
    *,
    coverage: float,
    at_once: float,
    rule: Rule | None,
) -> tuple[tuple[Arm, ...], tuple[EffectRow, ...], dict[str, float]]:
    """Return arms and contrasts with their intervals, and how much wider simultaneous ones are.

    Contrasts are kept within ± the width of the outcome's bounds and means within the bounds.
    Intervals follow ``rule``; without one there are those of the noise alone. Simultaneous ones
    cover all contrasts together with the probability ``at_once``.
    """
    pairs = pairs_in_order(len(arms))
    sums = [
        weighted_errors([(1.0, arms[first].level), (-1.0, arms[second].level)])
        for first, second in pairs
    ]
    halves: list[float | None] = [None] * len(pairs)
    factors: dict[str, float] = {}
    if rule is not None:
        known = [half_width(coverage, *errors, rule) for errors in sums]
        factors = _simultaneous_factors(arms, pairs, known, at_once)
        halves = [*known]
    ends = (-bounds.width, bounds.width)
    contrasts = tuple(
        EffectRow(None, contrast_row(
            labels[first], labels[second],
            within(arms[first].level.value - arms[second].level.value, ends),
            half=half, factor=factors.get(ALL_PAIRS),
            noise=noise_half_width(coverage, noises), width=bounds.width,
        ))
        for (first, second), half, (noises, _) in zip(pairs, halves, sums, strict=True)
    )  # fmt: skip
    shown = tuple(
        _released_arm(label, arm, (bounds.low, bounds.high), coverage, rule)
        for label, arm in zip(labels, arms, strict=True)
    )
    return shown, contrasts, factors


def pairs_in_order(arms: int) -> list[tuple[int, int]]:
    """Return (arm, against) by codes: against the reference, then later arms against earlier."""
    others = [(later, earlier) for earlier, later in combinations(range(1, arms), 2)]
    return [(arm, 0) for arm in range(1, arms)] + others


def contrast_row(
    arm: str,
    against: str,
    effect: float,
    *,
    half: float | None,
    factor: float | None,
    noise: float,
    width: float,
) -> Contrast:
    """Return a contrast with its intervals, which are kept within ``width`` of zero.

    ``half`` is the half-width of its own interval, None if no interval was paid for; that of the
    simultaneous one is ``factor`` times as wide.
    """
    ends = (-width, width)
    wider = None if half is None or factor is None else factor * half
    return Contrast(
        arm, against, effect,
        interval=around(effect, half, ends),
        simultaneous=around(effect, wider, ends),
        noise_interval=around(effect, noise, ends),
    )  # fmt: skip


def _released_arm(
    label: str, arm: ArmEstimate, ends: Pair, coverage: float, rule: Rule | None
) -> Arm:
    beyond = arm.mean_noise
    (noise,) = arm.level.noise
    mean = None if arm.mean is None else within(arm.mean, ends)
    interval = noise_interval = None
    if mean is not None:
        noises = [noise] if beyond is None else [noise, beyond]
        half = None if rule is None else half_width(coverage, noises, [arm.level.variances], rule)
        interval = around(mean, half, ends)
        noise_interval = around(mean, noise_half_width(coverage, noises), ends)
    return Arm(
        label, arm.units, mean, interval, noise_interval,
        noise=_plain(noise), mean_noise=None if beyond is None else _plain(beyond),
        variances=arm.level.variances, weighted=arm.weighted,
    )  # fmt: skip


def _plain(noise: NoiseDistribution) -> NoiseDistribution | None:
    """Return noise with its ε as the number that JSON holds; None if outcomes share the draw."""
    if noise.outcomes > 1:
        return None
    return NoiseDistribution(noise.name, float(noise.unit), float(noise.epsilon))


def _simultaneous_factors(
    arms: Sequence[ArmEstimate],
    pairs: Sequence[tuple[int, int]],
    halves: Sequence[float],
    coverage: float,
) -> dict[str, float]:
    """Return the factors of all pairs and of those with the reference, which stand first."""
    # Streams go to arms by their errors, so that the order of arms does not matter.
    by_error = sorted(range(len(arms)), key=lambda place: _order_of(arms[place]))
    drawn = [_errors(by_error.index(place), arm) for place, arm in enumerate(arms)]
    counts = {ALL_PAIRS: len(pairs), TO_REFERENCE: len(arms) - 1}
    return {
        scope: simultaneous_factor(
            (drawn[first] - drawn[second] for first, second in pairs[:count]),
            halves[:count],
            coverage,
        )
        for scope, count in counts.items()
    }


def _order_of(arm: ArmEstimate) -> tuple[object, ...]:
    (noise,) = arm.level.noise
    return noise.unit, noise.name, noise.epsilon, arm.level.variances


def _errors(place: int, arm: ArmEstimate) -> Floats:
    """Return simulated errors of a level: its noise, and a normal of one of its variances."""
    named = f"errors of place {place} behind simultaneous intervals"
    noise, normal, which = fixed_uniforms(named, 3, DRAWS)
    (own,) = arm.level.noise
    return noise_draws(own, noise) + sampling_draws(arm.level.variances, normal, which)
