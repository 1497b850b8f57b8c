"""Weighted effects of disjoint groups of rows, averaged (after Guha and Reiter 2025).

A record is in one group only and a group's effect lies within public limits, so that the mean
over M groups moves by at most 1/M of their distance, whatever is computed inside a group. The
limits are public, or a window that is chosen privately. Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from scipy.special import expit, ndtri, stdtrit

from private_ate.arguments import one_of, real_number, settle, whole_number
from private_ate.arrays import Floats, Integers
from private_ate.baselines.private_window import (
    Window,
    can_choose_window,
    release_window,
    variance_bound,
)
from private_ate.baselines.steps import BaselineSettings, balancing_weights, common_settings
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.errors import ArgumentError
from private_ate.methods.blocks.partition import draw_keys, draw_shuffles
from private_ate.methods.composition import options_of
from private_ate.parameters import Estimand
from private_ate.privacy.distributions import NoiseDistribution, staircase_variance
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_and_normal_quantile, staircase_quantile
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent
from private_ate.study import Groups, Study

__all__ = [
    "GroupedOptions",
    "Limits",
    "estimate_grouped",
    "group_effects",
    "number_of_groups",
    "spread_of",
]

Centre = Literal["mean", "winsorized"]
_BITS: Final = 24  # group effects live on the grid 2⁻²⁴ of the outcome's range
_LEAST_ROWS: Final = 80  # of a group, and ten for each coefficient
_ROWS_PER_COEFFICIENT: Final = 10
_BALANCE: Final = 4.0  # c: what a group's own error weighs against the noise of the mean
_INTERVAL_SHARE: Final = Fraction(1, 10)
_WINDOW_SHARES: Final = (Fraction(7, 20), Fraction(1, 4))  # of the midpoint and of the spread
_SURELY: Final = 0.8  # two-sided: the noise of the spread exceeds this quantile once in ten
_STEPS: Final = 8  # of Newton's method
_LARGEST_WEIGHT: Final = 50.0  # of the propensity model, so that a step too far stays finite


@dataclass(frozen=True, slots=True)
class GroupedOptions:
    """Parameters of averaging over groups.

    Attributes
    ----------
    groups : int or None
        Number of groups (M); None for a rule of n, d, ε and the limits.
    limits : pair of float or None
        Between which values a group's effect is kept, in units of the outcome, from knowledge
        outside the data; None for the range of the outcome in either direction.
    ridge : float
        Penalty of a group's propensity model, on the sum of its losses.
    truncation : float
        Scores are kept within [truncation, 1 − truncation].
    centre : {"mean", "winsorized"}
        The mean of effects within the limits, or of effects kept within a narrower window that
        6/10 of ε choose from them: less noise where effects of groups are close together. With
        fewer than 80/ε groups it is the mean all the same: too few ranks to choose a window by.
    """

    groups: int | None = None
    limits: tuple[float, float] | None = None
    ridge: float = 0.1
    truncation: float = 0.02
    centre: Centre = "mean"

    def __post_init__(self) -> None:
        if self.groups is not None:
            settle(self, groups=whole_number("the number of groups", self.groups, 1, 10**6))
        if self.limits is not None:
            settle(self, limits=_pair(self.limits))
        one_of("centre", self.centre, get_args(Centre))
        settle(
            self,
            ridge=real_number("the ridge penalty", self.ridge, 1e-3, 1e6),
            truncation=real_number("the truncation", self.truncation, 1e-3, 0.499),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedSettings(BaselineSettings):
    """Settings of the grouped baseline.

    Attributes
    ----------
    groups : int
        Disjoint groups of rows, each with an effect of its own.
    effect_limits : pair of float
        Between which values the effect of a group was kept.
    centre : str
        How the effects of groups were put together; absent where their mean was asked for.
    midpoint : float
        Released median of the effects of groups; of a winsorised mean only.
    spread : float
        Released distance from the midpoint within which some 65 % of these effects lie; of a
        winsorised mean only.
    effect_window : pair of float
        Between which values the effect of a group was kept in the end; of a winsorised mean only.
    """

    methods: ClassVar[tuple[str, ...]] = ("grouped",)

    groups: int
    effect_limits: tuple[float, float]
    ridge: float
    truncation: float
    centre: Centre | Absent = ABSENT
    midpoint: float | Absent = ABSENT
    spread: float | Absent = ABSENT
    effect_window: tuple[float, float] | Absent = ABSENT
    estimand: Estimand
    confidence: float
    noise_standard_deviation: float
    budget: Mapping[str, float]
    interval_covers: str | Absent = ABSENT
    noise_interval_covers: str
    population: str
    notes: tuple[str, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a group's effect is kept, in steps of 2⁻²⁴ of the outcome's range."""

    low: int
    high: int

    @classmethod
    def of(cls, options: GroupedOptions, width: float) -> Limits:
        """Put declared limits on the grid, outwards, and within what an effect can be."""
        bound = 1 << _BITS
        if options.limits is None:
            return cls(-bound, bound)
        low, high = (Fraction(limit) / Fraction(width) * bound for limit in options.limits)
        if low >= bound or high <= -bound:
            msg = "no effect can lie within these limits: they are outside the outcome's range"
            raise ArgumentError(msg, parameter="limits")
        return cls(max(math.floor(low), -bound), min(math.ceil(high), bound))

    @property
    def width(self) -> int:
        """The distance of the limits (w), how far one group's effect can move."""
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class _Centre:
    """The released mean of M group effects, in units of the outcome's range.

    Attributes
    ----------
    value, unit, epsilon : float
        The mean, the sensitivity w/M, and the ε of the mean.
    deviation : float or None
        That of the mean by sampling, raised where there are few groups; None if no interval was
        asked for.
    window : Window or None
        Where effects were winsorised.
    """

    value: float
    unit: float
    epsilon: float
    deviation: float | None = None
    window: Window | None = None


def estimate_grouped(study: Study, request: Request, noise: Noise) -> Estimate:
    """Release the mean of the groups' weighted effects.

    Neighbours: one record replaced, n public. Sensitivity: the distance of the limits, or of the
    ends of a released window, over the number of groups. Cost: the request's ε, pure. Proof:
    section 10 of docs/proofs/baselines.md.
    """
    options = options_of(request, GroupedOptions, "grouped")
    width = study.domain.bounds.width
    limits = Limits.of(options, width)
    count = number_of_groups(study.size, study.dimension, request, options, limits)
    effects = _effects(study, request, options, limits, count, draw_keys(1, noise))
    if options.centre == "winsorized" and can_choose_window(count, request.epsilon):
        centre = _release_winsorized(effects, limits, request, noise)
    else:
        centre = _release_plain(effects, limits, request, noise)
    half = None
    if centre.deviation is not None:
        half = staircase_and_normal_quantile(
            request.coverage, centre.epsilon, centre.unit, centre.deviation
        )
    reach = centre.unit * staircase_quantile(request.coverage, centre.epsilon)
    ends = [
        None if away is None else (width * (centre.value - away), width * (centre.value + away))
        for away in (reach, half)
    ]
    released = Quantity(
        width * centre.value,
        (NoiseDistribution("staircase", width * centre.unit, centre.epsilon),),
        () if centre.deviation is None else ((width * centre.deviation) ** 2,),
        noise_interval=ends[0],
        interval=ends[1],
    )
    settings = _settings(request, options, limits, count, centre, noise, width=width)
    return Estimate.of(released, settings)


def number_of_groups(
    size: int, dimension: int, request: Request, options: GroupedOptions, limits: Limits
) -> int:
    """Return M from public numbers: √(n·w/(c·ε)), while groups keep enough rows to be fitted."""
    if options.groups is not None:
        return min(options.groups, size)
    wanted = math.sqrt(size * limits.width / 2**_BITS / (_BALANCE * float(request.epsilon)))
    rows = max(_LEAST_ROWS, _ROWS_PER_COEFFICIENT * (dimension + 1))
    return max(min(round(min(wanted, size)), size // rows), 1)


def spread_of(effects: Integers) -> int:
    """Return ``M·Σ(τ − τ̄)²`` of the group effects, an exact integer."""
    values = [int(value) for value in effects]
    return len(values) * sum(value * value for value in values) - sum(values) ** 2


def _effects(  # a study, a request and what was decided from it
    study: Study,
    request: Request,
    options: GroupedOptions,
    limits: Limits,
    count: int,
    keys: bytes,
) -> Integers:
    """Return every group's effect on the grid, within the limits."""
    (shuffle,) = draw_shuffles(study.size, count, 1, keys)

    def kernel(groups: Groups) -> Integers:
        steps = np.rint(group_effects(groups, request.estimand, options) * float(1 << _BITS))
        steps = steps.astype(np.int64)
        return np.clip(steps, limits.low, limits.high)[:, None]

    return study.by_groups(shuffle, kernel, title="groups")[:, 0]


def _release_plain(effects: Integers, limits: Limits, request: Request, noise: Noise) -> _Centre:
    """Release the mean of effects within the limits, and their spread for an interval."""
    with_interval = request.confidence is not None and effects.size > 1
    spread_epsilon = request.epsilon * _INTERVAL_SHARE if with_interval else Fraction(0)
    centre = _release_mean(effects, limits.width, noise, request.epsilon - spread_epsilon)
    if not with_interval:
        return centre
    square = _release_spread(effects, limits, noise, spread_epsilon)
    factor = _student_factor(effects.size - 1, request.coverage)
    return replace(centre, deviation=factor * math.sqrt(square / effects.size))


def _release_winsorized(
    effects: Integers, limits: Limits, request: Request, noise: Noise
) -> _Centre:
    """Release a window around the effects, and the mean of effects that are kept within it.

    Sensitivity of the sum, given the window: its width, as a record moves one effect. The
    interval reads the window and costs nothing; one group alone has none.
    """
    midpoint, spread = (request.epsilon * share for share in _WINDOW_SHARES)
    window = release_window(
        effects, (limits.low, limits.high), noise, midpoint=midpoint, spread=spread
    )
    kept = np.clip(effects, window.low, window.high)
    width = window.high - window.low
    centre = _release_mean(kept, width, noise, request.epsilon - midpoint - spread)
    if request.confidence is None or effects.size == 1:
        return replace(centre, window=window)
    variance = variance_bound(window, effects.size, spread)
    # A spread read off one rank knows about half of what a standard deviation does.
    factor = _student_factor(max((effects.size - 1) / 2, 1.0), request.coverage)
    deviation = factor * (math.sqrt(variance / effects.size) / 2**_BITS)
    return replace(centre, deviation=deviation, window=window)


def _student_factor(degrees: float, coverage: float) -> float:
    """Return by how much a deviation is raised because there are few groups."""
    tail = (1 + coverage) / 2
    return float(stdtrit(degrees, tail) / ndtri(tail))


def _release_mean(effects: Integers, width: int, noise: Noise, epsilon: Fraction) -> _Centre:
    """Release the sum of the group effects, of which a record moves one by the width at most."""
    total = sum(int(value) for value in effects)
    noisy = noise.staircase("mean effect", total, sensitivity=width, epsilon=epsilon)
    scale = effects.size << _BITS
    return _Centre(noisy / (2 * scale), width / scale, float(epsilon))


def _release_spread(effects: Integers, limits: Limits, noise: Noise, epsilon: Fraction) -> float:
    """Release the variance of the group effects and lift it by its noise's upper quantile.

    Sensitivity of ``M·Σ(τ − τ̄)²``: (M − 1)·w². In units of the outcome's squared range; never
    more than numbers within the limits can vary.
    """
    count, square = effects.size, limits.width**2
    noisy = noise.staircase(
        "spread of effects", spread_of(effects), sensitivity=(count - 1) * square, epsilon=epsilon
    )
    whole = square / 4**_BITS
    variance = noisy / (2 * count * (count - 1) * 4**_BITS)
    lifted = variance + whole / count * staircase_quantile(_SURELY, float(epsilon))
    return min(max(lifted, 0.0), whole / 4 * count / (count - 1))


def _settings(  # what was decided, released and spent
    request: Request,
    options: GroupedOptions,
    limits: Limits,
    count: int,
    centre: _Centre,
    noise: Noise,
    *,
    width: float,
) -> GroupedSettings:
    step, window = width / 2**_BITS, centre.window
    covers = "noise and sampling; not the bias of small groups, not confounding"
    within: dict[str, Any] = {"centre": ABSENT if options.centre == "mean" else "mean"}
    if window is not None:
        covers += ", not what a window cuts from skewed effects"
        within = {
            "centre": "winsorized",
            "midpoint": window.midpoint * step,
            "spread": window.spread * step,
            "effect_window": (window.low * step, window.high * step),
        }
    deviation = math.sqrt(staircase_variance(centre.epsilon))
    unseen = (
        "sampling, not confounding" if window is None else "the window, not sampling or confounding"
    )
    said = {**within, **common_settings(request, noise)}
    return GroupedSettings(
        groups=count,
        effect_limits=(limits.low * step, limits.high * step),
        ridge=options.ridge,
        truncation=options.truncation,
        estimand=request.estimand,
        noise_standard_deviation=width * centre.unit * deviation,
        interval_covers=ABSENT if centre.deviation is None else covers,
        noise_interval_covers=f"the noise of the mean; not {unseen}",
        **said,
    )


def _pair(limits: object) -> tuple[float, float]:
    """Return two limits in ascending order."""
    if isinstance(limits, tuple | list) and len(limits) == 2:
        low, high = (real_number("a limit of a group's effect", one, -1e300, 1e300)
                     for one in limits)  # fmt: skip
        if low < high:
            return low, high
    msg = "the limits of a group's effect are two numbers, the smaller one first"
    raise ArgumentError(msg, parameter="limits")


def group_effects(groups: Groups, estimand: Estimand, options: GroupedOptions) -> Floats:
    """Return a difference of weighted means per group, in [−1, 1]; 0 where an arm is empty.

    The first axis of the stacked arrays runs over groups; no operation mixes groups, the number of
    steps is fixed, and nothing raises or warns whatever a group holds. Privacy does not rest on
    what is computed here. Outcomes are in units of their declared range.
    """
    present = groups.takes_part.astype(np.float64)
    least = options.truncation
    scores = np.clip(_scores(groups, present, options.ridge), least, 1 - least)
    weights = balancing_weights(estimand, scores, groups.treatment) * present
    outcome = groups.outcome / OUTCOME_STEPS
    means, filled = [], np.ones(present.shape[0], dtype=np.bool_)
    for arm in (groups.treatment, ~groups.treatment):
        total = (weights * arm).sum(axis=1)
        sums = (weights * arm * outcome).sum(axis=1)
        means.append(sums / np.where(total > 0, total, 1.0))
        filled &= total > 0
    effects: Floats = np.where(filled, means[0] - means[1], 0.0)
    return effects


def _scores(groups: Groups, present: Floats, ridge: float) -> Floats:
    """Fit a logistic regression to ``(1, 2x − 1)`` with a ridge on all weights, by Newton steps."""
    features = np.concatenate((np.ones((*present.shape, 1)), 2.0 * groups.covariates - 1.0), axis=2)
    weights = np.zeros((present.shape[0], features.shape[2], 1))
    penalty = ridge * np.eye(features.shape[2])
    for _ in range(_STEPS):
        scores = expit((features @ weights)[..., 0])
        surprise = (groups.treatment - scores) * present
        gradient = features.swapaxes(1, 2) @ surprise[..., None] - ridge * weights
        curved = features * (scores * (1 - scores) * present)[..., None]
        step = np.linalg.solve(features.swapaxes(1, 2) @ curved + penalty, gradient)
        weights = np.clip(weights + step, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
    fitted: Floats = expit((features @ weights)[..., 0])
    return fitted
