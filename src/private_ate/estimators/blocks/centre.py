"""The private centre of the block effects: its candidates, and its law replayed for an interval."""

from __future__ import annotations

import math
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
    """Return candidates around a released starting point, denser near it.

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
    law = _replayed(rule, effect, spread, size, rate)
    distances = np.abs(rule.candidates - effect)
    order = np.argsort(distances, kind="stable")
    held = np.cumsum(law[order])
    place = int(np.searchsorted(held, coverage * held[-1]))
    reach = int(distances[order[min(place, order.size - 1)]])
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
    weights = np.exp(-float(rate) * (levels - levels.min()))
    law: Floats = weights / weights.sum()
    return law


def _half_gap(rule: CentreRule, effect: int) -> int:
    place = int(np.searchsorted(rule.candidates, effect))
    near = rule.candidates[max(place - 1, 0) : place + 2]
    return math.ceil(int(np.diff(near).max(initial=0)) / 2)


@lru_cache(maxsize=2)
def _student_quantiles(bits: int) -> Floats:
    """Return the midpoint quantiles of Student's t with four degrees of freedom, in order."""
    share = (np.arange(1 << bits) + 0.5) / (1 << bits)
    root = np.sqrt(4 * share * (1 - share))
    quotient = np.cos(np.arccos(np.minimum(root, 1.0)) / 3) / root
    sizes = 2 * np.sqrt(np.maximum(quotient - 1, 0.0))
    quantiles: Floats = np.sign(share - 0.5) * sizes
    quantiles.setflags(write=False)
    return quantiles
