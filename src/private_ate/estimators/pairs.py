"""The private variance behind an interval: squared differences of like pairs.

Units of one arm that are next to each other along the score are like draws from one distribution,
so half the squared difference of their outcomes estimates the variance of either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.estimators.caps import CappedWeights, fold_with_base
from private_ate.estimators.clipping import OutcomeRange
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_BITS, quantize_weights, weighted_sum
from private_ate.study import Block, MatchingStudy

__all__ = ["PairVariance", "release_pair_variance"]

Floats = npt.NDArray[np.float64]

_SQUARE_BITS: Final = 20  # grid of squared differences, as a share of the squared range
_GRID_BITS: Final = _SQUARE_BITS + 24


@dataclass(frozen=True, slots=True)
class _PairSums:
    """The weighted sum of squared differences as an integer, and its public companions."""

    total: int
    sensitivity: int
    squares: float
    unpaired: float

    def __add__(self, other: _PairSums) -> _PairSums:
        return _PairSums(
            self.total + other.total,
            max(self.sensitivity, other.sensitivity),
            self.squares + other.squares,
            self.unpaired + other.unpaired,
        )


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


def release_pair_variance(  # what is measured, with what budget
    study: MatchingStudy,
    weights: CappedWeights,
    kept: OutcomeRange,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> PairVariance:
    """Release ``Σ wᵢ² Var(Yᵢ)`` in units of the squared outcome range.

    Neighbours: one person's outcomes replaced. Sensitivity: a unit is in one pair (or in the one
    group of three at the end of an arm), whose squared differences lie in [0, 1], or in
    less if outcomes are clipped: half the sum of its group's squared weights times that, times
    the rows a person may have. Cost: ε. Proof: docs/proofs/calibrated.md.
    """
    sums = fold_with_base(study, weights.problem.base, _pair_kernel(weights, kept))
    sensitivity = max(1, rows * sums.sensitivity)
    noisy = noise.laplace("variance", [sums.total], sensitivity=sensitivity, epsilon=epsilon)[0]
    released = float(Fraction(noisy, 2 << _GRID_BITS))
    scale = float(Fraction(sensitivity, 1 << _GRID_BITS) / epsilon)
    return PairVariance(released, scale, sums.squares / 4, sums.unpaired)


def _laplace_cdf(value: float, scale: float) -> float:
    tail = math.exp(-abs(value) / scale) / 2
    return tail if value < 0 else 1 - tail


def _pair_kernel(
    weights: CappedWeights, kept: OutcomeRange
) -> Callable[[Block, Floats | None], _PairSums]:
    def kernel(block: Block, base: Floats | None) -> _PairSums:
        values = weights.of(block, base)
        score = block.covariates @ weights.problem.features.coefficients[1:]
        result = _PairSums(0, 0, 0.0, 0.0)
        if block.outcome is None:
            msg = "the private phase needs a study with outcomes"
            raise TypeError(msg)
        for arm in (block.treatment, ~block.treatment):
            order = np.flatnonzero(arm)[np.argsort(score[arm], kind="stable")]
            if order.size:
                result += _pair_arm(values[order], kept.centre(block.outcome[order]), kept.width)
        return result

    return kernel


def _pair_arm(values: Floats, outcomes: npt.NDArray[np.int32], width: int) -> _PairSums:
    """Pair neighbours in order; an odd unit at the end is compared with the last one before it."""
    squares = values**2
    if values.size == 1:
        return _PairSums(0, 0, 0.0, float(squares[0]) / 4)
    even = values.size - values.size % 2
    halves = quantize_weights((squares[0:even:2] + squares[1:even:2]) / 2)
    total = weighted_sum(halves, _squared(outcomes[0:even:2], outcomes[1:even:2]))
    sensitivity = int(halves.max())
    if even < values.size:
        last = quantize_weights(squares[-1:] / 2)
        total += weighted_sum(last, _squared(outcomes[-1:], outcomes[-2:-1]))
        sensitivity = max(sensitivity, int(halves[-1]) + int(last[0]))
    furthest = int(_squared(np.array([width]), np.zeros(1, dtype=np.int64))[0])
    return _PairSums(total, sensitivity * furthest, float(squares.sum()), 0.0)


def _squared(
    first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """Return squared differences as shares of the squared range, on their grid."""
    share = (first.astype(np.float64) - second) / 2.0**OUTCOME_BITS
    return np.rint(share**2 * 2.0**_SQUARE_BITS).astype(np.int64)
