"""Weighted sums of the means of arms, from released numbers alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from private_ate.errors import ArgumentError
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.metadata import Arm, Combination, Contrast, Pair, around

if TYPE_CHECKING:
    from private_ate.release.intervals import Rule


def combine_arms(
    arms: Sequence[Arm],
    contrasts: Sequence[Contrast],
    weights: Mapping[str, float],
    *,
    coverage: float,
    rule: Rule | None,
    bounds: Pair | None,
) -> Combination:
    """Return the weighted sum of several arms' means with its intervals.

    ``arms`` have the reference first. Weights that add up to zero need no means: the sum is then
    one of contrasts, and noise that all means share drops out.
    """
    from private_ate.release.intervals import half_width, noise_half_width  # loads scipy

    _check(weights)
    held = [(arm, weights[arm.label]) for arm in arms if weights.get(arm.label, 0.0) != 0]
    whole = math.fsum(weights.values())
    levels = _adds_up_to_zero(weights)
    noises = [_noise_of(arm).scaled(weight) for arm, weight in held]
    shared = arms[0].mean_noise
    if not levels and shared is not None:
        noises.append(shared.scaled(whole))
    variances = [[weight**2 * value for value in arm.variances] for arm, weight in held]
    estimate = _from_contrasts(arms, contrasts, weights) if levels else _from_means(held)
    ends = _reach(weights, bounds)
    half = None
    if rule is not None and all(variances):
        half = half_width(coverage, noises, variances, rule)
    noise = noise_half_width(coverage, noises)
    return Combination(estimate, around(estimate, half, ends), around(estimate, noise, ends))


def scale_contrast(contrast: Contrast, weights: Mapping[str, float]) -> Combination:
    """Return a weighted sum of two arms' means, of which their difference alone is known."""
    _check(weights)
    if not _adds_up_to_zero(weights):
        msg = "of two arms their difference is released: give weights that add up to zero"
        raise ArgumentError(msg, parameter="weights")
    weight = weights.get(contrast.arm, 0.0)
    interval, noise_interval = (
        None if pair is None else (min(weight * pair[0], weight * pair[1]),
                                   max(weight * pair[0], weight * pair[1]))
        for pair in (contrast.interval, contrast.noise_interval)
    )  # fmt: skip
    return Combination(weight * contrast.effect, interval, noise_interval)


def _check(weights: Mapping[str, float]) -> None:
    for label, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            msg = f"the weight of arm {label!r} is a number, not {type(weight).__name__}"
            raise ArgumentError(msg, parameter="weights")
        if not abs(weight) <= 1e9:
            msg = f"the weight of arm {label!r} is a number of at most 1e9 in size"
            raise ArgumentError(msg, parameter="weights")
    if not any(weights.values()):
        msg = "a combination needs an arm with a weight other than zero"
        raise ArgumentError(msg, parameter="weights")


def _adds_up_to_zero(weights: Mapping[str, float]) -> bool:
    size = math.fsum(map(abs, weights.values()))
    return abs(math.fsum(weights.values())) <= 1e-9 * size


def _noise_of(arm: Arm) -> NoiseDistribution:
    if arm.noise is None:
        msg = (
            "means that are rolled up from subgroups, or drawn with other outcomes, have no single "
            "distribution of noise to combine by"
        )
        raise ArgumentError(msg, parameter="weights")
    return arm.noise


def _from_contrasts(
    arms: Sequence[Arm], contrasts: Sequence[Contrast], weights: Mapping[str, float]
) -> float:
    reference = arms[0].label
    effects = {row.arm: row.effect for row in contrasts if row.against == reference}
    return math.fsum(weights.get(label, 0.0) * effect for label, effect in effects.items())


def _from_means(held: Sequence[tuple[Arm, float]]) -> float:
    if any(arm.mean is None for arm, _ in held):
        msg = (
            "this release holds contrasts and no means: give weights that add up to zero, or pay "
            "for the means"
        )
        raise ArgumentError(msg, parameter="weights")
    return math.fsum(weight * (arm.mean or 0.0) for arm, weight in held)


def _reach(weights: Mapping[str, float], bounds: Pair | None) -> Pair:
    """Return between which numbers the sum of means within the bounds can lie."""
    if bounds is None:
        return -math.inf, math.inf
    products = [(weight * bounds[0], weight * bounds[1]) for weight in weights.values()]
    return math.fsum(map(min, products)), math.fsum(map(max, products))
