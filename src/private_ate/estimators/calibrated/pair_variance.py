"""The private variance behind an interval: squared differences of like pairs.

Units of one arm that are next to each other along the score are like draws from one distribution,
so half the squared difference of their outcomes estimates the variance of either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import (
    OUTCOME_BITS,
    WEIGHT_BITS,
    quantize_squares,
    weighted_sum,
)

__all__ = [
    "NO_PAIRS",
    "PairSums",
    "PairVariance",
    "add_pairs",
    "order_along",
    "release_pair_variance",
]


_SQUARE_BITS: Final = 20  # grid of squared differences, as a share of the squared range
_GRID_BITS: Final = _SQUARE_BITS + WEIGHT_BITS


@dataclass(frozen=True, slots=True)
class PairSums:
    """The weighted sum of squared differences as an integer, and its public companions.

    ``squares`` adds up the squared weights behind the total, ``whole`` those of the estimate:
    weights above a public limit count as the limit, so that few units do not rule the noise.
    """

    total: int
    sensitivity: int
    squares: float
    unpaired: float
    whole: float

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.total + other.total,
            max(self.sensitivity, other.sensitivity),
            self.squares + other.squares,
            self.unpaired + other.unpaired,
            self.whole + other.whole,
        )


NO_PAIRS: Final = PairSums(0, 0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PairVariance:
    """A released variance total in units of the squared outcome range, and how noisy it is."""

    released: float
    scale: float  # of its Laplace noise
    ceiling: float  # no outcome in its bounds has a larger one
    unpaired: float  # of units without a partner, taken as large as can be

    def likely_values(self, slices: int = 40) -> Floats:
        """Return midpoints of equally likely slices of the total, given what was released.

        A flat prior on [0, ceiling] and the Laplace likelihood; below zero and above the ceiling
        the likelihood only fades exponentially, so the released value may be clamped first.
        """
        center = min(max(self.released, 0.0), self.ceiling)
        low, high = (_laplace_cdf(end - center, self.scale) for end in (0.0, self.ceiling))
        shares = low + (high - low) * (np.arange(slices) + 0.5) / slices
        tails = np.where(shares < 0.5, np.log(2 * shares), -np.log(2 - 2 * shares))
        values: Floats = np.clip(center + self.scale * tails, 0.0, self.ceiling) + self.unpaired
        return values


def release_pair_variance(
    sums: PairSums, epsilon: Fraction, rows: int, noise: Noise
) -> PairVariance:
    """Release ``Σ wᵢ² Var(Yᵢ)`` in units of the squared outcome range.

    Neighbours: one person's outcomes replaced, or missing in one of both tables. Sensitivity: a
    unit is in one pair (or in the one group of three at the end of an arm), whose squared
    differences lie in [0, 1], or in less if outcomes are clipped: half the sum of its group's
    squared weights times that, times the rows a person may have. Cost: ε. Proof:
    docs/proofs/calibrated.md.
    """
    sensitivity = max(1, rows * sums.sensitivity)
    noisy = noise.laplace("variance", [sums.total], sensitivity=sensitivity, epsilon=epsilon)[0]
    # Units of limited weight stand for the whole: their variance is taken as the others'.
    stands_for = sums.whole / sums.squares if sums.squares > 0 else 1.0
    released = stands_for * float(Fraction(noisy, 2 << _GRID_BITS))
    scale = stands_for * float(Fraction(sensitivity, 1 << _GRID_BITS) / epsilon)
    return PairVariance(released, scale, sums.whole / 4, sums.unpaired)


def order_along(score: Floats) -> npt.NDArray[np.int64]:
    """Return the rows of a block by score, equal scores by row.

    Score and row share a machine word: sorting words is several times faster than a stable
    argsort. Scores too close for the bits that rows leave are taken in row order.
    """
    row_bits = max(1, (score.size - 1).bit_length())
    steps = 2.0 ** min(52, 62 - row_bits)
    lowest = score.min(initial=np.inf)
    reach = max(score.max(initial=-np.inf) - lowest, np.finfo(np.float64).tiny)
    words: npt.NDArray[np.int64] = np.rint((score - lowest) / reach * steps).astype(np.int64)
    words <<= row_bits
    words |= np.arange(score.size)
    words.sort()
    words &= (1 << row_bits) - 1
    return words


def _laplace_cdf(value: float, scale: float) -> float:
    tail = math.exp(-abs(value) / scale) / 2
    return tail if value < 0 else 1 - tail


def add_pairs(
    values: Floats,
    outcomes: npt.NDArray[np.int32],
    width: int,
    limit: float = math.inf,
    *,
    observed: Bits | None = None,
    share: float = 1.0,
) -> PairSums:
    """Add up squared differences of neighbours in one arm, in order along the score.

    An odd unit at the end is compared with the last one before it. Weights above the public limit
    count as the limit. A weight may be as large as n, so its square leaves 64 bits: large ones are
    Python integers, and the sensitivity is always that of the integers that are added.

    Where who lacks an outcome is private, pairs with a missing member add nothing. ``share`` is
    the released share of weight that is observed: it is the chance of a second member, and its
    square divides the variance of a sum to give that of a ratio.
    """
    whole = float((values**2).sum()) / share
    squares = np.minimum(values, limit) ** 2 / share
    if values.size == 0:
        return NO_PAIRS
    if values.size == 1:
        return PairSums(0, 0, 0.0, whole / 4, 0.0)
    even = values.size - values.size % 2
    seen = np.ones(values.size, dtype=np.bool_) if observed is None else observed
    halves = quantize_squares((squares[0:even:2] + squares[1:even:2]) / (2 * share**2))
    both = seen[0:even:2] & seen[1:even:2]
    total = weighted_sum(halves, _squared(outcomes[0:even:2], outcomes[1:even:2]) * both)
    sensitivity = int(halves.max())
    if even < values.size:
        last = quantize_squares(squares[-1:] / (2 * share**2))
        both = seen[-1:] & seen[-2:-1]
        total += weighted_sum(last, _squared(outcomes[-1:], outcomes[-2:-1]) * both)
        sensitivity = max(sensitivity, int(halves[-1]) + int(last[0]))
    furthest = int(_squared(np.array([width]), np.zeros(1, dtype=np.int64))[0])
    return PairSums(total, sensitivity * furthest, float(squares.sum()), 0.0, whole)


def _squared(
    first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """Return squared differences as shares of the squared range, on their grid."""
    share = (first.astype(np.float64) - second) / 2.0**OUTCOME_BITS
    return np.rint(share**2 * 2.0**_SQUARE_BITS).astype(np.int64)
