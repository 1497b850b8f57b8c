"""Exact samplers of the discrete Gaussian and of the exponential mechanism.

The discrete Gaussian, ``P(k) ∝ exp(−k²/2σ²)`` with a rational σ², is drawn by rejection from a
discrete Laplace (Canonne, Kamath and Steinke). A proposal is accepted with a probability that
floating point encloses; the few proposals too close to call are decided with exact arithmetic,
so no probability is ever rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Integers
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.samplers import (
    Coin,
    flip,
    flip_rows,
    geometric,
    geometric_rows,
    uniform_below,
)

__all__ = ["discrete_gaussian", "discrete_gaussian_rows", "draw_index"]


_UNSURE = 2.0**-30  # far above the error of the float acceptance probabilities (below 2⁻⁴⁰)
_WIDEST = 1 << 44  # proposals of this width stay exact as float64
_WEIGHT_BITS = 40


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
    """Draw index i with probability proportional to ``exp(rate·scores[i])``, exactly.

    An index is proposed with integer weights that lie above the true ones (floats rounded up),
    and kept with the exact ratio of the two.
    """
    highest = max(scores)
    gaps = [highest - int(score) for score in scores]
    slope = float(rate)
    one = 1 << _WEIGHT_BITS
    above = [int(one * math.exp(-min(slope * gap, 700.0)) * (1 + 1e-9)) + 1 for gap in gaps]
    total = sum(above)
    while True:
        place = uniform_below(total, entropy)
        index = -1
        while place >= 0:
            index += 1
            place -= above[index]
        if flip(Coin(one, 0, above[index], rate * gaps[index]), entropy):
            return index


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
        accepted[row] = _decide(coin, int(words[row]), entropy)
    accepted &= ~(negative & (sizes == 0))
    signed: Integers = np.where(negative, -sizes, sizes)[accepted]
    return signed


def _acceptance(size: int, variance: Fraction, width: int) -> Coin:
    return Coin.decay((size - variance / width) ** 2 / (2 * variance))


def _decide(coin: Coin, word: int, entropy: Entropy) -> bool:
    """Compare 64 drawn bits, and more where they agree, with the coin's expansion."""
    bits, drawn = 64, word
    while drawn == (threshold := coin.expansion(bits)):
        drawn = (drawn << 64) | int.from_bytes(entropy.draw(8))
        bits += 64
    return drawn < threshold
