"""The private variance behind an interval: squared differences of like pairs.

Units of one arm that are alike in the score and in the covariates are like draws from one
distribution, so half the squared difference of their outcomes estimates the variance of either.
Covariates are public: who is compared with whom costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats
from private_ate.privacy.cube_law import cube_log_density
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import (
    OUTCOME_BITS,
    WEIGHT_BITS,
    quantize_squares,
    weighted_sum,
)

__all__ = [
    "AMONG_LIKE",
    "NO_PAIRS",
    "SQUARE_BITS",
    "PairSums",
    "PairVariance",
    "add_pairs",
    "release_pair_variance",
    "squared_differences",
]


SQUARE_BITS: Final = 20  # grid of squared differences, as a share of the squared range
_GRID_BITS: Final = SQUARE_BITS + WEIGHT_BITS
_EXPECTED: Final = 0.75  # of the guessed deviation, expected among like units before a look
_GRID: Final = 8001  # points on which likely variances are found
AMONG_LIKE: Final = 0.7  # of an outcome's variance, expected among like units
_COMPATIBLE: Final = (0.1, 0.9)  # quantiles of the variance between which a guess is left alone


@dataclass(frozen=True, slots=True)
class PairSums:
    """The weighted sum of squared differences as an integer, and its public companions.

    ``squares`` adds up the squared weights behind the total, ``unpaired`` those of units without
    a partner.
    """

    total: int
    sensitivity: int
    squares: float
    unpaired: float

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.total + other.total,
            max(self.sensitivity, other.sensitivity),
            self.squares + other.squares,
            self.unpaired + other.unpaired,
        )


NO_PAIRS: Final = PairSums(0, 0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class PairVariance:
    """A released variance of outcomes in units of their squared range, and how noisy it is.

    Attributes
    ----------
    released : float
        The noisy variance, a mean over units.
    scale : float
        Of its Laplace noise.
    ceiling : float
        No outcome in its bounds has a larger one.
    guess : float
        The public guess of the outcome's standard deviation, as a share of the range.
    alone : float
        The share of the squared weights that belongs to units without a partner.
    outcomes : int
        How many outcomes shared the draw of its noise, which is Laplace's for one.
    """

    released: float
    scale: float
    ceiling: float
    guess: float
    alone: float = 0.0
    outcomes: int = 1

    def likely_values(self, slices: int = 40) -> Floats:
        """Return midpoints of equally likely slices of the variance, given what was released.

        The likelihood is that of the noise. Before a look the deviation is about the guess, with
        the tail of a Cauchy law: large values remain possible if the released one says so, but
        noise alone does not make them likely. Units without a partner have the largest variance
        that there is.
        """
        top = math.sqrt(self.ceiling)
        center = math.sqrt(min(max(self.released, 0.0), self.ceiling))
        # More points near the released value, where the likelihood bends.
        steps = np.linspace(-1.0, 1.0, _GRID)
        grid = center + np.where(steps < 0, -center, top - center) * steps**2
        share = np.minimum(grid / (_EXPECTED * self.guess), 1e50)  # so that powers stay finite
        fit = -np.abs(grid**2 - center**2) / self.scale
        if self.outcomes > 1:
            fit = cube_log_density(fit, self.outcomes)
        density = np.exp(fit) * share / (1.0 + share**2) ** 2.5
        mass = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (density[1:] + density[:-1]) / 2)])
        middles = (np.arange(slices) + 0.5) / slices
        values = np.interp(middles, mass / mass[-1], grid) ** 2
        likely: Floats = (1 - self.alone) * values + self.alone * self.ceiling
        return likely

    def given_seen(self, share: float) -> PairVariance:
        """Return the variance if only this share of the squared weight was in whole pairs."""
        return replace(self, released=self.released / share, scale=self.scale / share)

    def corrected_guess(self) -> float:
        """Return the guessed deviation that weighs imbalance, moved as little as evidence asks.

        The guess is of outcomes as they are, the released variance of those among like units.
        """
        likely = np.quantile(self.likely_values(), _COMPATIBLE) / AMONG_LIKE
        low, high = np.sqrt(likely)
        return float(min(max(self.guess, low), high))


def release_pair_variance(
    sums: PairSums, guess: float, width: float, epsilon: Fraction, rows: int, noise: Noise
) -> PairVariance:
    """Release the mean variance of outcomes of like units in units of the squared range.

    Neighbours: one person's outcomes replaced, or missing in one of both tables. Sensitivity: a
    unit is in one pair (or in the one group of three at the end of an arm), whose squared
    differences lie in [0, 1], or in less if outcomes are clipped to a share ``width`` of the
    range, and are 0 if one of both is missing: half the sum of its group's
    squared weights times that, times the rows a person may have. Cost: ε. Proof:
    docs/proofs/calibrated.md.
    """
    sensitivity = max(1, rows * sums.sensitivity)
    noisy = noise.laplace("variance", [sums.total], sensitivity=sensitivity, epsilon=epsilon)[0]
    squares = max(sums.squares, 1e-300)
    return PairVariance(
        released=float(Fraction(noisy, 2 << _GRID_BITS)) / squares,
        scale=float(Fraction(sensitivity, 1 << _GRID_BITS) / epsilon) / squares,
        ceiling=width**2 / 4,
        guess=guess,
        alone=sums.unpaired / (sums.unpaired + squares),
        outcomes=noise.outcomes,
    )


def add_pairs(
    values: Floats,
    outcomes: npt.NDArray[np.int32],
    width: int,
    observed: Bits | None = None,
) -> PairSums:
    """Add up squared differences of neighbours in one arm, in the order in which they are alike.

    An odd unit at the end is compared with the last one before it. A weight may be as large as n,
    so its square leaves 64 bits: large ones are Python integers, and the sensitivity is always
    that of the integers that are added. Where who lacks an outcome is private, ``observed`` marks
    who has one, and pairs with a missing member add nothing.
    """
    squares = values**2
    whole = float(squares.sum())
    if values.size == 0:
        return NO_PAIRS
    if values.size == 1:
        return PairSums(0, 0, 0.0, whole)
    even = values.size - values.size % 2
    seen = np.ones(values.size, dtype=np.bool_) if observed is None else observed
    halves = quantize_squares((squares[0:even:2] + squares[1:even:2]) / 2)
    both = seen[0:even:2] & seen[1:even:2]
    total = weighted_sum(halves, squared_differences(outcomes[0:even:2], outcomes[1:even:2]) * both)
    sensitivity = int(halves.max())
    if even < values.size:
        last = quantize_squares(squares[-1:] / 2)
        both = seen[-1:] & seen[-2:-1]
        total += weighted_sum(last, squared_differences(outcomes[-1:], outcomes[-2:-1]) * both)
        sensitivity = max(sensitivity, int(halves[-1]) + int(last[0]))
    furthest = int(squared_differences(np.array([width]), np.zeros(1, dtype=np.int64))[0])
    return PairSums(total, sensitivity * furthest, whole, 0.0)


def squared_differences(
    first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """Return squared differences as shares of the squared range, on their grid."""
    share = (first.astype(np.float64) - second) / 2.0**OUTCOME_BITS
    return np.rint(share**2 * 2.0**SQUARE_BITS).astype(np.int64)
