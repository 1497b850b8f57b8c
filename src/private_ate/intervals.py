"""Exact quantiles of the noise that releases carry."""

from __future__ import annotations

import math

from private_ate.errors import ArgumentError

__all__ = ["two_laplace_quantile"]


def two_laplace_quantile(coverage: float, first: float, second: float) -> float:
    """Return q with ``P(|X + Y| ≤ q) = coverage`` for Laplace X, Y of the given scales."""
    if not 0 < coverage < 1:
        msg = f"a coverage lies strictly between 0 and 1, not {coverage:g}"
        raise ArgumentError(msg)
    large, small = max(first, second), min(first, second)
    if large <= 0:
        return 0.0
    ratio = small / large
    low, high = 0.0, 1.0
    while two_laplace_tail(high, ratio) > 1 - coverage:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if two_laplace_tail(middle, ratio) > 1 - coverage:
            low = middle
        else:
            high = middle
    return high * large


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
