"""How (ε, δ), zero-concentrated privacy and Gaussian noise translate into each other.

Everything here is public arithmetic. Results are rounded towards more noise, so that a conversion
never promises more than its formula. Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from private_ate.arguments import Exact
from private_ate.errors import ArgumentError, NumericRangeError
from private_ate.privacy.budget import parse_delta

__all__ = [
    "DEFAULT_DELTA",
    "concentrated_budget",
    "concentrated_delta",
    "discrete_gaussian_variance",
    "gaussian_delta",
    "gaussian_scale",
    "noise_delta",
    "simple_concentrated_budget",
    "smoothing_rate",
]

DEFAULT_DELTA = "1e-6"
_MARGIN = 1e-9  # relative rounding towards more noise, far above the error of the formulas
_LARGEST_ANALYTIC = Fraction(20)  # beyond it exp(ε) makes the discretisation term useless
_DISCRETE_SHARE = 1e-3  # share of δ set aside for the difference between grid and line


def noise_delta(delta: Exact) -> Fraction:
    """Return the exact δ that a method's noise is calibrated to; 0 means pure ε."""
    value = parse_delta(delta)
    if value != 0 and not Fraction(1, 10**12) <= value <= Fraction(1, 10):
        msg = "delta lies between 1e-12 and 0.1 (or is 0 where a method offers pure ε)"
        raise ArgumentError(msg)
    return value


def gaussian_delta(epsilon: float, scale: float) -> float:
    """Return the exact δ of Gaussian noise whose standard deviation is scale × sensitivity.

    Balle and Wang's ``Φ(1/2s − εs) − e^ε Φ(−1/2s − εs)``.
    """
    near = _normal_cdf(1 / (2 * scale) - epsilon * scale)
    far = _normal_cdf(-1 / (2 * scale) - epsilon * scale)
    return max(0.0, near - math.exp(epsilon) * far)


def gaussian_scale(epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation per sensitivity that is (ε, δ)-private, ε ≤ 20."""
    high = 1.0
    while gaussian_delta(epsilon, high) > delta:
        high *= 2
    low = high
    while gaussian_delta(epsilon, low) <= delta:
        low /= 2
    _, high = _halve(low, high, lambda scale: gaussian_delta(epsilon, scale) > delta)
    return high * (1 + _MARGIN)


def discrete_gaussian_variance(
    epsilon: Fraction, delta: Fraction, *, sensitivity: int, dimension: int
) -> Fraction:
    """Return the variance in squared grid steps of (ε, δ)-private discrete Gaussian noise.

    ``sensitivity`` is the L2 sensitivity in steps of an integer vector with ``dimension``
    coordinates. The discrete Gaussian is within ``1/(24σ²)`` of the rounded one in total
    variation, so the analytic formula holds up to ``(1 + e^ε)·dimension/(24σ²)``, which is paid
    out of δ. Where that is too much (coarse grids, ε > 20) the conversion from concentrated
    privacy, which the discrete Gaussian keeps exactly, is used.
    """
    if sensitivity < 1 or dimension < 1:
        msg = "Gaussian noise needs a positive sensitivity and at least one coordinate"
        raise NumericRangeError(msg)
    if epsilon <= _LARGEST_ANALYTIC:
        scale = gaussian_scale(float(epsilon), float(delta) * (1 - 2 * _DISCRETE_SHARE))
        variance = math.ceil((Fraction(scale) * sensitivity) ** 2)
        distance = Fraction(dimension, 24 * variance)
        if (1 + Fraction(math.exp(float(epsilon)))) * distance <= delta * Fraction(_DISCRETE_SHARE):
            return Fraction(variance)
    return Fraction(sensitivity**2) / (2 * concentrated_budget(epsilon, delta))


def simple_concentrated_budget(epsilon: float, delta: float) -> float:
    """Return the ρ whose textbook conversion ``ρ + 2√(ρ ln(1/δ))`` is ε."""
    length = math.log(1 / delta)
    return (math.sqrt(length + epsilon) - math.sqrt(length)) ** 2


def concentrated_delta(epsilon: float, rho: float) -> float:
    """Return the least δ for which ρ-zCDP is known to imply (ε, δ)-privacy.

    Canonne, Kamath and Steinke: the minimum over α > 1 of
    ``exp((α − 1)(αρ − ε) + α ln(1 − 1/α))/(α − 1)``; any α is valid, so the search need not be
    exact to be safe.
    """
    low, high = 1.0 + 1e-9, 2.0
    while _slope(high, epsilon, rho) < 0 and high < 1e15:
        high *= 2
    _, order = _halve(low, high, lambda order: _slope(order, epsilon, rho) < 0)
    exponent = (order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order)
    return math.exp(min(exponent - math.log(order - 1), 0.0))


def concentrated_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ρ whose tight conversion is (ε, δ)-privacy, rounded down."""
    if delta <= 0:
        msg = "concentrated privacy converts to (ε, δ) only with a positive δ"
        raise ArgumentError(msg)
    target, wanted = float(epsilon), float(delta)
    low = simple_concentrated_budget(target, wanted)
    high = 2 * low + target
    low, _ = _halve(low, high, lambda rho: concentrated_delta(target, rho) <= wanted)
    return Fraction(low * (1 - _MARGIN)).limit_denominator(10**30)


def smoothing_rate(epsilon: Fraction, delta: Fraction) -> float:
    """Return how fast a smooth sensitivity may change per record (β).

    Laplace noise of scale 2S/ε: half of ε pays for the shift, half for a change of scale by
    ``e^±β``. The latter fails with probability ``exp(−(ε/2 + β)/(e^β − 1)) ≤ δ``. With δ = 0 the
    noise is Cauchy of scale 2S/ε and a change of scale costs β always, so β = ε/2.
    """
    half = float(epsilon) / 2
    if delta == 0:
        return half * (1 - 1e-6)
    length = math.log(1 / float(delta))
    low, _ = _halve(0.0, min(half, 50.0), lambda rate: half + rate >= length * math.expm1(rate))
    return low * (1 - 1e-6)


def _halve(low: float, high: float, is_low: Callable[[float], bool]) -> tuple[float, float]:
    """Return the two ends of an interval that is halved until no float lies between them."""
    for _ in range(200):
        middle = (low + high) / 2
        ends = (middle, high) if is_low(middle) else (low, middle)
        if ends == (low, high):
            break
        low, high = ends
    return low, high


def _slope(order: float, epsilon: float, rho: float) -> float:
    """Return the derivative of the exponent of the conversion; it grows with the order."""
    return (2 * order - 1) * rho - epsilon + math.log1p(-1 / order)


def _normal_cdf(value: float) -> float:
    return math.erfc(-value / math.sqrt(2)) / 2
