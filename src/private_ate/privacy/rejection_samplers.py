"""Exact samplers by rejection: the discrete Gaussian and the exponential mechanism.

The discrete Gaussian, ``P(k) ∝ exp(−k²/2σ²)`` with a rational σ², is drawn by rejection from a
discrete Laplace (Canonne, Kamath and Steinke). A proposal is accepted with a probability that
floating point encloses; the few proposals too close to call are decided with exact arithmetic,
so no probability is ever rounded. The exponential mechanism proposes by integer weights that lie
above the true ones and keeps a proposal with the exact ratio of the two.
Proofs: docs/proofs/baselines.md, docs/proofs/blocks.md.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Integers
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.samplers import (
    Coin,
    decide,
    flip,
    flip_rows,
    geometric,
    geometric_rows,
    uniform_below,
)

__all__ = [
    "discrete_gaussian", "discrete_gaussian_rows", "draw_by_level", "draw_index", "draw_level",
]  # fmt: skip

_UNSURE: Final = 2.0**-30  # far above the error of the float acceptance probabilities (below 2⁻⁴⁰)
_WIDEST: Final = 1 << 44  # proposals of this width stay exact as float64
_WEIGHT_BITS: Final = 40  # of proposal weights, so that nearly every proposal is kept


def discrete_gaussian(variance: Fraction, entropy: Entropy) -> int:
    """Draw one discrete Gaussian variable of any rational variance parameter."""
    width = math.isqrt(math.floor(variance)) + 1
    while True:
        size = geometric(Fraction(1, width), entropy)
        negative = bool(entropy.draw(1)[0] & 1)
        if negative and size == 0:
            continue  # zero would count twice
        if flip(_acceptance(size, variance, width), entropy):
            return -size if negative else size


def discrete_gaussian_rows(
    variance: Fraction, rows: int, entropy: Entropy
) -> npt.NDArray[np.generic]:
    """Draw one discrete Gaussian variable per row: int64, or Python integers if wide."""
    width = math.isqrt(math.floor(variance)) + 1
    if width > _WIDEST:
        wide = np.empty(rows, dtype=object)
        wide[:] = [discrete_gaussian(variance, entropy) for _ in range(rows)]
        return wide
    drawn = np.empty(rows, dtype=np.int64)
    filled = 0
    while filled < rows:
        accepted = _propose(variance, width, 2 * (rows - filled) + 64, entropy)[: rows - filled]
        drawn[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return drawn


def draw_index(scores: Sequence[int], rate: Fraction, entropy: Entropy) -> int:
    """Draw index i with probability proportional to ``exp(rate·scores[i])``, exactly."""
    highest = max(scores)
    gaps = [highest - int(score) for score in scores]
    return _draw_by_gap([1] * len(gaps), gaps, rate, entropy)


def draw_level(members: Sequence[int], rate: Fraction, entropy: Entropy) -> int:
    """Draw a level with probability ∝ ``members[level]·exp(−rate·level)``, exactly."""
    levels = [level for level, count in enumerate(members) if count]
    gaps = [level - levels[0] for level in levels]
    return levels[_draw_by_gap([members[level] for level in levels], gaps, rate, entropy)]


def draw_by_level(levels: Integers, rate: Fraction, entropy: Entropy) -> int:
    """Draw index i with probability proportional to ``exp(−rate·levels[i])``, exactly.

    The level is drawn with the number of its candidates; then one of them uniformly. The
    distribution is that of `draw_index`, after a proposal or two instead of as many as there are
    candidates.
    """
    lowest = int(levels.min())
    level = lowest + draw_level(np.bincount(levels - lowest).tolist(), rate, entropy)
    chosen = np.flatnonzero(levels == level)
    return int(chosen[uniform_below(chosen.size, entropy)])


def _draw_by_gap(
    members: Sequence[int], gaps: Sequence[int], rate: Fraction, entropy: Entropy
) -> int:
    """Draw place i with probability ∝ ``members[i]·exp(−rate·gaps[i])``; no gap is negative.

    ``above[i]`` is at least ``2⁴⁰·exp(−rate·gaps[i])``: the relative 1e-9 exceeds the rounding of
    the float by far, and one is added where it is rounded down.
    """
    slope, one = float(rate), 1 << _WEIGHT_BITS
    above = [int(one * math.exp(-min(slope * gap, 700.0)) * (1 + 1e-9)) + 1 for gap in gaps]
    ends = list(accumulate(count * weight for count, weight in zip(members, above, strict=True)))
    while True:
        place = bisect_right(ends, uniform_below(ends[-1], entropy))
        if flip(Coin(one, 0, above[place], rate * gaps[place]), entropy):
            return place


def _propose(variance: Fraction, width: int, count: int, entropy: Entropy) -> Integers:
    """Draw discrete Laplace proposals and return those that are accepted, in order."""
    sizes = geometric_rows(Fraction(1, width), count, entropy).astype(np.int64)
    negative = flip_rows(Coin.logistic(Fraction(0)), count, entropy)
    exponents = (sizes - float(variance / width)) ** 2 / (2 * float(variance))
    probability = np.exp(-exponents)
    words = np.frombuffer(entropy.draw(8 * count), dtype=np.uint64)
    gap = probability - words * 2.0**-64
    accepted = gap > 0
    for row in np.flatnonzero(np.abs(gap) <= _UNSURE):
        coin = _acceptance(int(sizes[row]), variance, width)
        accepted[row] = decide(coin, int(words[row]), 64, entropy)
    accepted &= ~(negative & (sizes == 0))
    signed: Integers = np.where(negative, -sizes, sizes)[accepted]
    return signed


def _acceptance(size: int, variance: Fraction, width: int) -> Coin:
    return Coin.decay((size - variance / width) ** 2 / (2 * variance))
