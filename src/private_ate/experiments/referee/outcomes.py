"""Distributions of the outcome in the referee's families: draws, and means in closed form.

An index with mean zero and unit deviation, kept within ±2.5, moves the outcome; an effect is one
times its usual size, or each unit's own multiple of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Literal

import numpy as np

from private_ate.arrays import Bits, Floats

__all__ = ["OUTCOME_BOUNDS", "Outcome", "draw_outcome", "mean_outcome"]

Outcome = Literal["uniform", "rare", "heavy", "zeros", "narrow"]

OUTCOME_BOUNDS: Final[dict[Outcome, tuple[float, float]]] = {
    "uniform": (0.0, 10.0),
    "rare": (0.0, 1.0),
    "heavy": (0.0, 80.0),
    "zeros": (0.0, 8.0),
    "narrow": (0.0, 10.0),
}
"""Declared bounds: those of the recipe. About one heavy outcome in a thousand lies above."""

_MOST: Final = 2.5  # how far the index counts
_SPREAD: Final = 0.9  # standard deviation of the logarithm of a heavy outcome


def draw_outcome(
    kind: Outcome, index: Floats, treated: Bits, effects: Floats, rng: np.random.Generator
) -> Floats:
    """Draw everybody's outcome, clipped to the declared bounds."""
    level = np.clip(index, -_MOST, _MOST)
    drawn = _DRAWS[kind](level, treated * effects, rng)
    return np.clip(drawn, *OUTCOME_BOUNDS[kind])


def mean_outcome(kind: Outcome, index: Floats, arm: int, effects: Floats) -> Floats:
    """Return everybody's expected clipped outcome in an arm, treated being 1."""
    level = np.clip(index, -_MOST, _MOST)
    return _EXPECTATIONS[kind](level, arm * effects)


def _uniform_centre(level: Floats, dose: Floats) -> Floats:
    return 5.0 + 1.2 * level + 0.6 * dose


def _draw_uniform(level: Floats, dose: Floats, rng: np.random.Generator) -> Floats:
    return _uniform_centre(level, dose) + rng.uniform(-0.75, 0.75, level.size)


def _narrow_centre(level: Floats, dose: Floats) -> Floats:
    return 5.0 + 0.25 * level + 0.2 * dose


def _draw_narrow(level: Floats, dose: Floats, rng: np.random.Generator) -> Floats:
    """Draw outcomes whose standard deviation is about a twentieth of the declared range."""
    return _narrow_centre(level, dose) + 0.4 * rng.standard_normal(level.size)


def _rare_chance(level: Floats, dose: Floats) -> Floats:
    return _sigmoid(-3.3 + 0.7 * level + 0.8 * dose)


def _draw_rare(level: Floats, dose: Floats, rng: np.random.Generator) -> Floats:
    return (rng.random(level.size) < _rare_chance(level, dose)).astype(np.float64)


def _heavy_median(level: Floats, dose: Floats) -> Floats:
    """Return the logarithm of the median."""
    return 1.0 + 0.5 * level + 0.35 * dose


def _draw_heavy(level: Floats, dose: Floats, rng: np.random.Generator) -> Floats:
    noise = _SPREAD * rng.standard_normal(level.size)
    drawn: Floats = np.exp(_heavy_median(level, dose) + noise)
    return drawn


def _mean_heavy(level: Floats, dose: Floats) -> Floats:
    """Return the mean of a log-normal outcome of which all above the bound counts as the bound."""
    from scipy.special import ndtr

    centre, bound = _heavy_median(level, dose), OUTCOME_BOUNDS["heavy"][1]
    distance = (math.log(bound) - centre) / _SPREAD
    below = np.exp(centre + _SPREAD**2 / 2) * ndtr(distance - _SPREAD)
    mean: Floats = below + bound * ndtr(-distance)
    return mean


def _zeros_chance(level: Floats, dose: Floats) -> Floats:
    return _sigmoid(-0.6 + 0.7 * level + 0.35 * dose)


def _zeros_amount(level: Floats, dose: Floats) -> Floats:
    amount: Floats = np.exp(0.4 * level) * (1.0 + 0.15 * dose)
    return amount


def _draw_zeros(level: Floats, dose: Floats, rng: np.random.Generator) -> Floats:
    present = rng.random(level.size) < _zeros_chance(level, dose)
    return present * rng.uniform(0.0, 2.0, level.size) * _zeros_amount(level, dose)


def _sigmoid(values: Floats) -> Floats:
    chances: Floats = 1.0 / (1.0 + np.exp(-values))
    return chances


_DRAWS: Final[dict[Outcome, Callable[[Floats, Floats, np.random.Generator], Floats]]] = {
    "uniform": _draw_uniform,
    "rare": _draw_rare,
    "heavy": _draw_heavy,
    "zeros": _draw_zeros,
    "narrow": _draw_narrow,
}
_EXPECTATIONS: Final[dict[Outcome, Callable[[Floats, Floats], Floats]]] = {
    "uniform": _uniform_centre,
    "rare": _rare_chance,
    "heavy": _mean_heavy,
    "zeros": lambda level, dose: _zeros_chance(level, dose) * _zeros_amount(level, dose),
    "narrow": _narrow_centre,
}
