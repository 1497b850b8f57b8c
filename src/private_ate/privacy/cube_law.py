"""The law of one coordinate of L∞ noise: a uniform share of a gamma distributed reach.

Of m coordinates that share a cube, each is ``R·U`` with R gamma distributed of shape m + 1 and U
uniform on [−1, 1], in units of its sensitivity over ε. With m = 1 this is Laplace's law. Proof:
docs/proofs/outcomes.md.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import gammaincc

from private_ate.arrays import Floats

__all__ = ["cube_cdf", "cube_log_density", "cube_quantile", "cube_variance"]

_SMALLEST: Final = 1e-300  # densities below it count as this, so that logarithms exist


def cube_variance(outcomes: int) -> float:
    """Return ``(m + 1)(m + 2)/3``, the variance of one coordinate of m."""
    return (outcomes + 1) * (outcomes + 2) / 3


def cube_tail(sizes: Floats, outcomes: int) -> Floats:
    """Return ``P(|X| > x) = Q(m + 1, x) − (x/m)·Q(m, x)``, Q the upper gamma function."""
    tail = gammaincc(outcomes + 1, sizes) - sizes / outcomes * gammaincc(outcomes, sizes)
    clipped: Floats = np.clip(tail, 0.0, 1.0)
    return clipped


def cube_cdf(values: Floats, outcomes: int) -> Floats:
    """Return ``P(X ≤ x)``; the law is symmetric."""
    half = cube_tail(np.abs(values), outcomes) / 2
    return np.where(values >= 0, 1 - half, half)


def cube_log_density(values: Floats, outcomes: int) -> Floats:
    """Return the logarithm of ``Q(m, |x|)/(2m)``."""
    density = gammaincc(outcomes, np.abs(values)) / (2 * outcomes)
    logarithm: Floats = np.log(np.maximum(density, _SMALLEST))
    return logarithm


@lru_cache(maxsize=256)
def cube_quantile(coverage: float, outcomes: int) -> float:
    """Return q with ``P(|X| ≤ q) = coverage``."""
    low, high = 0.0, 1.0
    while float(cube_tail(np.array(high), outcomes)) > 1 - coverage:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if float(cube_tail(np.array(middle), outcomes)) > 1 - coverage:
            low = middle
        else:
            high = middle
    return (low + high) / 2
