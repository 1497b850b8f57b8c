"""Quantiles, distribution functions and densities of the noise that releases carry.

One coordinate of L∞ noise over m numbers is ``R·U`` in units of sensitivity/ε, R gamma distributed
of shape m + 1 and U uniform on [−1, 1]; m = 1 is Laplace's distribution (docs/proofs/outcomes.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaincc, ndtr

from private_ate.arrays import Floats
from private_ate.errors import ArgumentError
from private_ate.privacy.distributions import stair_shape

__all__ = [
    "linf_cdf", "linf_log_density", "linf_quantile", "staircase_and_normal_quantile",
    "staircase_cdf", "staircase_quantile", "two_laplace_quantile", "two_staircase_quantile",
]  # fmt: skip

_FAR_OUT: Final = 0.99  # coverage above which equally likely slices end too early
_SMALLEST: Final = 1e-300  # densities below it count as this, so that logarithms exist


def two_laplace_quantile(coverage: float, first: float, second: float) -> float:
    """Return q with ``P(|X + Y| ≤ q) = coverage`` for Laplace X, Y of the given scales."""
    if not 0 < coverage < 1:
        msg = f"a coverage lies strictly between 0 and 1, not {coverage:g}"
        raise ArgumentError(msg)
    large, small = max(first, second), min(first, second)
    if large <= 0:
        return 0.0
    ratio = small / large
    return large * _solve_increasing(
        lambda size: -two_laplace_tail(size, ratio), coverage - 1, 1.0, precision=0.0
    )


def two_laplace_tail(size: float, ratio: float) -> float:
    """Return ``P(|X + Y| > size)`` for Laplace variables of scales 1 and ``ratio`` ≤ 1.

    The tail is ``(e^(−s) − r² e^(−s/r))/(1 − r²)``; with ``g = s(1/r − 1)`` this equals
    ``e^(−s) (1 + r² (1 − e^(−g))/(1 − r²))``, which stays accurate as r tends to 1.
    """
    if ratio <= 0:
        return math.exp(-size)
    if ratio >= 1 - 1e-9:
        return (1 + size / 2) * math.exp(-size)
    gap = size * (1 / ratio - 1)
    return math.exp(-size) * (1 + ratio**2 * -math.expm1(-gap) / ((1 - ratio) * (1 + ratio)))


def staircase_quantile(coverage: float, epsilon: float) -> float:
    """Return q with ``P(|X| ≤ q) = coverage`` for staircase noise X of unit sensitivity at ε.

    The tail is ``bʲ`` at the whole number j, ``b^(j + ½)`` at ``j + γ``, and linear in between.
    """
    if not 0 < coverage < 1:
        msg = f"a coverage lies strictly between 0 and 1, not {coverage:g}"
        raise ArgumentError(msg)
    half, inner = stair_shape(epsilon)
    outside = 1 - coverage
    whole = math.floor(-math.log(outside) / epsilon)
    share = outside * math.exp(whole * epsilon)  # the tail relative to that at the whole number
    if share >= half:
        return whole + inner * (1 - share) / -math.expm1(-epsilon / 2)
    return whole + inner + (1 - inner) * (half - share) / (half * -math.expm1(-epsilon / 2))


def staircase_and_normal_quantile(
    coverage: float, epsilon: float, sensitivity: float, deviations: Floats | float
) -> float:
    """Return q with ``P(|sensitivity·X + deviation·Z| ≤ q) = coverage``.

    X is staircase noise of unit sensitivity at ε, Z standard normal; several ``deviations`` are
    equally likely. The mean over X is taken at the midpoints of equally likely slices of it,
    which is accurate to a few parts in a thousand; above a coverage of 0.99 slices get less likely
    outwards, as equal ones would end before the tail that is asked for.
    """
    spread = np.maximum(np.atleast_1d(np.asarray(deviations, dtype=np.float64)), 1e-300)
    noise, chances = np.zeros(1), None
    if sensitivity > 0:
        slices = 1000 if spread.size == 1 else 250
        noise, chances = _slices_for(coverage, epsilon, slices)
        noise = sensitivity * noise

    def covered(half: float) -> float:
        inside = ndtr((half - noise[:, None]) / spread) - ndtr((-half - noise[:, None]) / spread)
        return float(inside.mean() if chances is None else chances @ inside.mean(axis=1))

    return _solve_increasing(covered, coverage, float(spread.max() + noise[noise.size // 2]))


def two_staircase_quantile(coverage: float, epsilon: float, first: float, second: float) -> float:
    """Return q with ``P(|first·X + second·Y| ≤ q) = coverage`` for staircase X and Y at ε."""
    large, small = max(first, second), min(first, second)
    if small <= 0:
        return max(large, 0.0) * staircase_quantile(coverage, epsilon)
    noise, chances = _slices_for(coverage, epsilon, 1000)
    noise = large * noise

    def covered(half: float) -> float:
        upper = staircase_cdf((half - noise) / small, epsilon)
        inside = upper - staircase_cdf((-half - noise) / small, epsilon)
        return float(inside.mean() if chances is None else chances @ inside)

    return _solve_increasing(covered, coverage, large)


@lru_cache(maxsize=64)
def _staircase_slices(epsilon: float, slices: int = 1000) -> Floats:
    """Return the midpoints of equally likely slices of |X|."""
    return np.array(
        [staircase_quantile((index + 0.5) / slices, epsilon) for index in range(slices)]
    )


def _slices_for(coverage: float, epsilon: float, slices: int) -> tuple[Floats, Floats | None]:
    """Return midpoints of slices of |X|, and their chances where those differ."""
    if coverage <= _FAR_OUT:
        return _staircase_slices(epsilon, slices), None
    edges = np.geomspace(1.0, (1 - coverage) / 1000, slices + 1)  # chances of lying further out
    middles = [
        staircase_quantile(1 - float(tail), epsilon) for tail in (edges[1:] + edges[:-1]) / 2
    ]
    chances = -np.diff(edges)
    chances[-1] += edges[-1]
    return np.array(middles), chances


def staircase_cdf(values: Floats, epsilon: float) -> Floats:
    """Return ``P(X ≤ value)`` for staircase noise of unit sensitivity."""
    half, inner = stair_shape(epsilon)
    size = np.abs(values)
    whole = np.floor(size)
    part = size - whole
    drop = -math.expm1(-epsilon / 2)
    within = 1 - drop * part / max(inner, 1e-300)  # above ε = 1400 the inner part has no width
    beyond = half * (1 - drop * (part - inner) / (1 - inner))
    tail = np.exp(-np.minimum(whole * epsilon, 700.0)) * np.where(part <= inner, within, beyond)
    return np.where(values >= 0, 1 - tail / 2, tail / 2)


def linf_tail(sizes: Floats, outcomes: int) -> Floats:
    """Return ``P(|X| > x) = Q(m + 1, x) − (x/m)·Q(m, x)``, Q the upper gamma function."""
    tail = gammaincc(outcomes + 1, sizes) - sizes / outcomes * gammaincc(outcomes, sizes)
    clipped: Floats = np.clip(tail, 0.0, 1.0)
    return clipped


def linf_cdf(values: Floats, outcomes: int) -> Floats:
    """Return ``P(X ≤ x)``; the distribution is symmetric."""
    half = linf_tail(np.abs(values), outcomes) / 2
    return np.where(values >= 0, 1 - half, half)


def linf_log_density(values: Floats, outcomes: int) -> Floats:
    """Return the logarithm of ``Q(m, |x|)/(2m)``."""
    density = gammaincc(outcomes, np.abs(values)) / (2 * outcomes)
    logarithm: Floats = np.log(np.maximum(density, _SMALLEST))
    return logarithm


@lru_cache(maxsize=256)
def linf_quantile(coverage: float, outcomes: int) -> float:
    """Return q with ``P(|X| ≤ q) = coverage``."""
    low, high = 0.0, 1.0
    while float(linf_tail(np.array(high), outcomes)) > 1 - coverage:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if float(linf_tail(np.array(middle), outcomes)) > 1 - coverage:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _solve_increasing(
    function: Callable[[float], float], wanted: float, guess: float, precision: float = 1e-9
) -> float:
    """Return where an increasing function reaches a value, to nine digits or as many as asked."""
    high = guess
    while function(high) < wanted:
        high *= 2
    low = 0.0
    # Of the smallest numbers there is none between two that still differ by more than that.
    while high - low > precision * high and low < (middle := (low + high) / 2) < high:
        if function(middle) < wanted:
            low = middle
        else:
            high = middle
    return high
