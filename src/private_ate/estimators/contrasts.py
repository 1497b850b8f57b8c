"""From released levels of several arms to means and all their contrasts, with intervals.

An outcome belongs to one arm, so that one ε pays for a level of every arm; what follows here is
made of those levels and the known laws of their noise, and is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.contents.arms import Arm, ArmEstimate, Comparison, Contrast, NoiseLaw, Pair
from private_ate.contents.laws import (
    Rule,
    fixed_uniforms,
    half_width,
    law_draws,
    noise_half_width,
)
from private_ate.domain import Domain, Treatment
from private_ate.estimators.request import Request
from private_ate.release import Estimate
from private_ate.settings import ABSENT, Absent, ArmsSettings, HeadlineNote

__all__ = ["ALL_PAIRS", "TO_REFERENCE", "estimate_from_arms", "greatest_over_pairs"]

ALL_PAIRS: Final = "all pairs"
TO_REFERENCE: Final = "against the reference"
_DRAWS: Final = 20_000  # simulated errors behind the simultaneous factors


def estimate_from_arms(
    arms: tuple[ArmEstimate, ...],
    domain: Domain,
    request: Request,
    settings: ArmsSettings,
    *,
    rule: Rule,
    adjusted: bool | None = None,
    warnings: tuple[str, ...] = (),
) -> Estimate:
    """Return what a release of three arms or more holds, from their levels in order of the codes.

    Everything is post-processing. The headline is the last declared arm other than the reference,
    against it. Contrasts are kept within ± the width of the outcome's bounds and means within the
    bounds. Intervals follow ``rule`` and exist if the levels have variances and the request asks
    for a confidence.
    """
    treatment = domain.treatment
    pays = request.confidence is not None and all(arm.variances for arm in arms)
    halves = _Halves(arms, request.coverage, rule if pays else None)
    pairs = _pairs_in_order(len(arms))
    factors = _simultaneous_factors(arms, halves, pairs, request.coverage_at_once) if pays else {}
    contrasts = tuple(
        _contrast(pair, arms, treatment.coded, halves, factors.get(ALL_PAIRS), domain.bounds.width)
        for pair in pairs
    )
    ends = (domain.bounds.low, domain.bounds.high)
    shown = tuple(
        _released_arm(label, place, arms, halves, ends)
        for place, label in enumerate(treatment.coded)
    )
    headline = contrasts[len(arms) - 2]
    among = request.among
    return Estimate(
        ate=headline.effect,
        noise_interval=headline.noise_interval,
        interval=headline.interval,
        settings=replace(
            settings,
            headline=HeadlineNote(headline.arm, headline.against),
            among=ABSENT if among is None else among,
            simultaneous_factor=factors or ABSENT,
            interval_rule=rule if pays else ABSENT,
            binary_outcome=True if domain.bounds.is_binary else ABSENT,
            doses=_doses(treatment),
        ),
        adjusted=adjusted,
        estimand=None if among is None else ("atc" if among == treatment.coded[0] else "att"),
        warnings=warnings,
        arms=arms,
        comparison=Comparison(shown, contrasts),
    )


def _doses(treatment: Treatment) -> dict[str, Pair] | Absent:
    if treatment.bins is None:
        return ABSENT
    return dict(zip(treatment.labels, pairwise(treatment.bins), strict=True))


def greatest_over_pairs(arm_balance: Mapping[str, Mapping[str, Pair]]) -> dict[str, Pair]:
    """Return each covariate's greatest difference over all pairs of arms, before and after.

    ``arm_balance`` holds standardised means by arm and covariate.
    """
    by_arm = list(arm_balance.values())
    found = {}
    for name in by_arm[0]:
        before, after = ([means[name][side] for means in by_arm] for side in (0, 1))
        found[name] = (max(before) - min(before), max(after) - min(after))
    return found


def _pairs_in_order(arms: int) -> list[tuple[int, int]]:
    """Return (arm, against) by codes: against the reference, then later arms against earlier."""
    others = [(later, earlier) for earlier, later in combinations(range(1, arms), 2)]
    return [(arm, 0) for arm in range(1, arms)] + others


class _Halves:
    """Half-widths of intervals by arms; without a rule of the noise alone."""

    def __init__(self, arms: Sequence[ArmEstimate], coverage: float, rule: Rule | None) -> None:
        self._arms = arms
        self._coverage = coverage
        self._rule = rule
        self._known: dict[tuple[int, ...], float] = {}

    def noise(self, *places: int, beyond: NoiseLaw | None = None) -> float:
        """Return the half-width for the noise of those arms alone."""
        return noise_half_width(self._coverage, self._laws(places, beyond))

    def whole(self, *places: int, beyond: NoiseLaw | None = None) -> float | None:
        """Return the half-width for noise and sampling; None if no interval was paid for."""
        if self._rule is None:
            return None
        if places not in self._known:
            self._known[places] = half_width(
                self._coverage,
                self._laws(places, beyond),
                [self._arms[place].variances for place in places],
                self._rule,
            )
        return self._known[places]

    def _laws(self, places: tuple[int, ...], beyond: NoiseLaw | None) -> list[NoiseLaw]:
        laws = [self._arms[place].law for place in places]
        return laws if beyond is None else [*laws, beyond]


def _contrast(
    pair: tuple[int, int],
    arms: Sequence[ArmEstimate],
    labels: Sequence[str],
    halves: _Halves,
    factor: float | None,
    width: float,
) -> Contrast:
    first, second = pair
    ends = (-width, width)
    effect = _within(arms[first].level - arms[second].level, ends)
    half = halves.whole(*pair)
    return Contrast(
        labels[first],
        labels[second],
        effect,
        interval=_around(effect, half, ends),
        simultaneous=None
        if half is None or factor is None
        else _around(effect, factor * half, ends),
        noise_interval=_around(effect, halves.noise(*pair), ends),
    )


def _released_arm(
    label: str, place: int, arms: Sequence[ArmEstimate], halves: _Halves, ends: Pair
) -> Arm:
    arm = arms[place]
    beyond = arm.mean_law
    mean = None if arm.mean is None else _within(arm.mean, ends)
    has_mean = mean is not None
    center = mean or 0.0
    return Arm(
        label,
        arm.units,
        mean,
        interval=_around(center, halves.whole(place, beyond=beyond), ends) if has_mean else None,
        noise_interval=(
            _around(center, halves.noise(place, beyond=beyond), ends) if has_mean else None
        ),
        noise=_plain(arm.law),
        mean_noise=None if beyond is None else _plain(beyond),
        variances=arm.variances,
        weighted=arm.weighted,
    )


def _plain(law: NoiseLaw) -> NoiseLaw | None:
    """Return the law with its ε as the number that JSON holds; none if outcomes share the draw."""
    if law.outcomes > 1:
        return None
    return NoiseLaw(law.name, float(law.unit), float(law.epsilon))


def _within(value: float, ends: Pair) -> float:
    return min(max(value, ends[0]), ends[1])


def _around(center: float, half: float | None, ends: Pair) -> Pair | None:
    if half is None:
        return None
    return _within(center - half, ends), _within(center + half, ends)


def _simultaneous_factors(
    arms: Sequence[ArmEstimate],
    halves: _Halves,
    pairs: list[tuple[int, int]],
    coverage: float,
) -> dict[str, float]:
    """Return how much wider intervals must be to cover all at once, from simulated errors.

    Contrasts share arms, which Tukey's and Dunnett's intervals use and Bonferroni's do not: the
    factor is a quantile of the largest error of a contrast relative to its own half-width.
    """
    # Streams go to arms by their laws, so that the order of arms does not matter.
    by_law = sorted(range(len(arms)), key=lambda place: _order_of(arms[place]))
    errors = [_errors(by_law.index(place), arm) for place, arm in enumerate(arms)]
    largest = np.zeros(_DRAWS)
    found = {}
    for count, (first, second) in enumerate(pairs, start=1):
        half = halves.whole(first, second) or 0.0
        if half > 0:
            np.maximum(largest, np.abs(errors[first] - errors[second]) / half, out=largest)
        if count in (len(arms) - 1, len(pairs)):
            scope = TO_REFERENCE if count < len(arms) else ALL_PAIRS
            found[scope] = max(1.0, float(np.quantile(largest, coverage)))
    return {scope: found[scope] for scope in (ALL_PAIRS, TO_REFERENCE)}


def _order_of(arm: ArmEstimate) -> tuple[object, ...]:
    return arm.law.unit, arm.law.name, arm.law.epsilon, arm.variances


def _errors(place: int, arm: ArmEstimate) -> Floats:
    """Return simulated errors of a level: its noise, and a normal of one of its variances."""
    named = f"errors of place {place} behind simultaneous intervals"
    noise, normal, which = fixed_uniforms(named, 3, _DRAWS)
    likely = np.asarray(arm.variances)
    chosen = likely[np.minimum((which * likely.size).astype(np.intp), likely.size - 1)]
    errors: Floats = law_draws(arm.law, noise) + np.sqrt(chosen) * ndtri(normal)
    return errors
