"""Ratios of two released risks, and numbers needed to treat, with intervals. Post-processing.

A release says of two risks how far their difference may be off: with its coverage the error
``e₁ − e₀`` is within ±h. Both errors, of noise and of sampling, are independent, symmetric and
peaked at zero, so ``a₁e₁ − a₀e₀`` is within ±max(a₁, a₀)·h at least as often: making one of them
smaller only gathers their sum. Every interval here is wider than it need be by that step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class NumberNeeded:
    """How many units have to be treated for one event more, or one less, as the sign says.

    Attributes
    ----------
    estimate : float
        One over the effect; infinite if that is zero. Negative where treatment makes events rarer.
    interval : pair of float or None
        The inverses of the ends of the effect's interval, low end first; None without one.
    holds_none : bool
        Whether the effect's interval holds zero. The numbers that it allows are then two rays: all
        below the first end, and all above the second.
    """

    estimate: float
    interval: Pair | None
    holds_none: bool


def invert_effect(effect: float, interval: Pair | None) -> NumberNeeded:
    """Return the number needed to treat of a risk difference."""
    if interval is None:
        return NumberNeeded(_inverse(effect), None, holds_none=False)
    low, high = interval
    if low <= 0 <= high:
        ends = (_inverse(low) if low < 0 else -math.inf, _inverse(high))
        return NumberNeeded(_inverse(effect), ends, holds_none=True)
    return NumberNeeded(_inverse(effect), (_inverse(high), _inverse(low)), holds_none=False)


def risk_interval(first: float, second: float, half: float) -> Pair | None:
    """Return all ratios r of two risks for which ``first − r·second`` may be an error.

    Fieller's way: that error is within ±max(1, r)·h. ``(first − r·second)/max(1, r)`` falls with
    r, so these ratios are an interval, and it holds one exactly if the difference's holds zero.
    None if the second risk is not positive.
    """
    if second <= 0:
        return None
    apart = first - second
    low = (first - half) / second if apart <= half else first / (second + half)
    if apart <= -half:
        high = (first + half) / second
    else:
        high = first / (second - half) if second > half else math.inf
    return max(low, 0.0), high


def odds_interval(first: float, second: float, half: float) -> Pair | None:
    """Return the interval of an odds ratio by the delta method for its logarithm.

    None where a risk is within its error of 0 or 1, as the logarithm of odds has no slope there
    that could be relied on.
    """
    least = min(first, second, 1 - first, 1 - second)
    if least <= half:
        return None
    steepest = max(1 / (risk * (1 - risk)) for risk in (first, second))
    middle = math.log(first * (1 - second) / (second * (1 - first)))
    return math.exp(middle - steepest * half), math.exp(middle + steepest * half)


def _inverse(value: float) -> float:
    return math.inf if value == 0 else 1 / value
