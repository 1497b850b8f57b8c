"""The private centre of the block effects: its candidates, and its law replayed for an interval."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.privacy.ranks import CentreRule

__all__ = ["centre_rule", "expected_size", "noise_quantile"]


_BASE_SCALE: Final = 0.06  # of the range: how far candidates spread around the starting point


def centre_rule(start: int, *, bits: int, value_bits: int, trim: int) -> CentreRule:
    """Return candidates around a released starting point, denser near it, in ascending order.

    They are quantiles of Student's t with four degrees of freedom, so that choosing uniformly
    among them follows that law; ``start`` and the candidates are in steps of 2^−value_bits of
    the outcome's range and lie within ``±2^value_bits``, as an effect does.
    """
    bound = 1 << value_bits
    offsets = np.rint(_BASE_SCALE * bound * _student_quantiles(bits))
    candidates = np.clip(start + offsets, -bound, bound).astype(np.int64)
    return CentreRule(candidates, bound, trim)


def noise_quantile(
    rule: CentreRule, *, effect: int, spread: float, size: int, rate: Fraction, coverage: float
) -> int:
    """Return how far the centre's noise reaches, from released numbers only.

    Ideal block effects, normal quantiles of the released standard deviation ``spread`` around the
    released ``effect``, are put through the same law; the answer is the smallest q that holds
    ``coverage`` of it, plus half the larger gap to a neighbouring candidate.
    """
    held = np.append(0.0, np.cumsum(_replayed(rule, effect, spread, size, rate)))
    wanted = coverage * held[-1]

    def holds_enough(reach: int) -> bool:
        first = np.searchsorted(rule.candidates, effect - reach, side="left")
        last = np.searchsorted(rule.candidates, effect + reach, side="right")
        return bool(held[last] - held[first] >= wanted)

    # All candidates lie within ±bound, so twice the bound holds them all.
    reach = bisect_left(range(2 * rule.bound), True, key=holds_enough)
    return reach + _half_gap(rule, effect)


def expected_size(rule: CentreRule, *, spread: float, size: int, rate: Fraction) -> float:
    """Return the expected size of the centre's noise around ideal block effects, in steps."""
    law = _replayed(rule, 0, spread, size, rate)
    return float((law * np.abs(rule.candidates)).sum())


def _replayed(rule: CentreRule, effect: int, spread: float, size: int, rate: Fraction) -> Floats:
    """Return the probabilities of all candidates if block effects were ideal."""
    normal = ndtri((np.arange(size) + 0.5) / size)
    ideal = np.clip(np.rint(effect + spread * normal), -rule.bound, rule.bound).astype(np.int64)
    levels = rule.levels(ideal)
    levels -= levels.min()
    weights = np.exp(-float(rate) * np.arange(levels.max() + 1))[levels]
    law: Floats = weights / weights.sum()
    return law


def _half_gap(rule: CentreRule, effect: int) -> int:
    place = int(np.searchsorted(rule.candidates, effect))
    near = rule.candidates[max(place - 1, 0) : place + 2]
    return math.ceil(int(np.diff(near).max(initial=0)) / 2)


@lru_cache(maxsize=2)
def _student_quantiles(bits: int) -> Floats:
    """Return the midpoint quantiles of Student's t with four degrees of freedom, in order."""
    share = (np.arange(1 << (bits - 1)) + 0.5) / (1 << bits)
    root = np.sqrt(4 * share * (1 - share))
    quotient = np.cos(np.arccos(np.minimum(root, 1.0)) / 3) / root
    sizes = 2 * np.sqrt(np.maximum(quotient - 1, 0.0))
    quantiles: Floats = np.concatenate([-sizes, sizes[::-1]])
    quantiles.setflags(write=False)
    return quantiles
