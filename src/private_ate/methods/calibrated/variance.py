"""The private variance behind intervals: squared differences of like pairs, and its share of ε.

Rows of one arm that are near to each other in the covariates are like draws from one distribution,
so half the squared difference of their outcomes estimates the variance of either.
Covariates are public: which rows are compared costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats, Integers
from private_ate.methods.calibrated.clipping import OutcomeRange, outcomes_of
from private_ate.methods.calibrated.design import Design, members_of
from private_ate.privacy.distributions import sum_noise
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import linf_log_density
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS, WEIGHT_BITS
from private_ate.study import Block, Study

__all__ = [
    "AMONG_LIKE",
    "PairVariance",
    "pair_scale",
    "release_pair_variance",
    "share_for_variance",
    "squared_differences",
]  # fmt: skip

AMONG_LIKE: Final = 0.6  # of an outcome's variance, expected among like rows
_SQUARE_BITS: Final = 20  # grid of squared differences, as a share of the squared range
_GRID: Final = 4001  # points on which likely variances are found
_COMPATIBLE: Final = (0.1, 0.9)  # quantiles of the variance between which a guess is left alone
_SHARES: Final = tuple(Fraction(part, 20) for part in range(1, 7))  # of ε
_TYPICAL_CAP: Final = 1.5  # times n/m: the largest weight that a share reckons with
_TYPICAL_SQUARES: Final = 1.3  # times n²/m: the squared weights that it reckons with


@dataclass(frozen=True, slots=True)
class PairVariance:
    """A released variance of outcomes in units of their squared range, and how noisy it is."""

    released: float  # the noisy variance, a mean over rows
    scale: float  # of its noise, which is Laplace's for one outcome
    ceiling: float  # no outcome within its bounds has a larger variance
    guess: float  # of the outcome's standard deviation, as a share of the range; public
    alone: float = 0.0  # the share of the squared weights of arms without a pair
    outcomes: int = 1  # how many shared the draw

    def likely_values(self, slices: int = 40) -> Floats:
        """Return midpoints of equally likely slices of the variance, given what was released.

        The likelihood is that of the noise, the prior uniform in the variance on what the bounds
        allow. Rows without a partner have the largest variance that there is.
        """
        center = min(max(self.released, 0.0), self.ceiling)
        # More points near the released value, where the likelihood is steep.
        steps = np.linspace(-1.0, 1.0, _GRID)
        grid = center + np.where(steps < 0, -center, self.ceiling - center) * np.abs(steps) ** 3
        fit = -np.abs(grid - self.released) / self.scale
        fit -= fit.max()
        if self.outcomes > 1:
            fit = linf_log_density(-np.abs(grid - self.released) / self.scale, self.outcomes)
            fit = fit - fit.max()
        density = np.exp(fit)
        mass = np.concatenate([[0.0], np.cumsum(np.diff(grid) * (density[1:] + density[:-1]) / 2)])
        middles = (np.arange(slices) + 0.5) / slices
        values = np.interp(middles, mass / mass[-1], grid)
        likely: Floats = (1 - self.alone) * values + self.alone * self.ceiling
        return likely

    def given_seen(self, share: float) -> PairVariance:
        """Return the variance if only this share of the squared weight was in whole pairs."""
        return replace(self, released=self.released / share, scale=self.scale / share)

    def corrected_guess(self) -> float:
        """Return the guessed deviation that weighs imbalance, moved as little as evidence asks.

        The guess is of outcomes as they are, the released variance of those among like rows.
        """
        likely = np.quantile(self.likely_values(), _COMPATIBLE) / AMONG_LIKE
        low, high = np.sqrt(likely)
        return float(min(max(self.guess, low), high))


def share_for_variance(
    design: Design, draws: Sequence[tuple[int, ...]], epsilon: Fraction, rows: int, outcomes: int
) -> Fraction:
    """Return the share of ε that pays for the variance: least squared error plus squared width.

    Public: sizes of the arms, ε and how many rows a person may have. Sizes are those of all rows,
    so that outcomes of which different rows are missing have the same share.
    """
    sizes = design.found.everyone.counts
    equal = [design.rows / size for size in sizes]
    caps = sum((_TYPICAL_CAP * rows * max(equal[arm] for arm in arms)) ** 2 for arms in draws)
    squares = _TYPICAL_SQUARES * sum(design.rows * weight for weight in equal)
    scale = rows * pair_scale(equal, [size // 2 for size in sizes])

    def cost(share: Fraction) -> float:
        noise = sum_noise(outcomes, epsilon * (1 - share)).variance
        return 2 * noise * caps + scale / float(epsilon * share) * squares / 2

    return min(_SHARES, key=cost)


def pair_scale(equal: Sequence[float], pairs: Sequence[int]) -> float:
    """Return by how much one row moves the mean variance, in squared ranges.

    ``equal`` are the arms' equal weights n/m.
    """
    mass = sum(2 * count * weight**2 for weight, count in zip(equal, pairs, strict=True))
    return max(weight**2 for weight in equal) / max(mass, 1e-300)


def release_pair_variance(
    study: Study,
    design: Design,
    kept: OutcomeRange,
    guess: float,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> PairVariance:
    """Release the mean variance of outcomes of like rows in units of the squared range.

    Arms count by their equal weights n/m, whatever cap is chosen later.

    Neighbours: one person's outcomes replaced, or missing in one of both tables; which rows are
    paired is public. Sensitivity: a row is in at most one pair, whose squared difference lies
    between 0 and the squared range that is kept and is 0 if an outcome is missing: the integer
    (n/m)² of its arm times that, times the rows a person may have. Cost: ε. Proof:
    docs/proofs/calibrated.md.
    """
    kernel = _pair_kernel(design, kept, study.domain.outcome.missing)
    totals, pairs = study.fold(kernel, title="variance").tolist()
    equal = [Fraction(design.rows, arm.members) for arm in design.arms]
    # Python integers: (n/m)² may leave 64 bits, and sums of products certainly do.
    weights = [round(weight**2 * (1 << WEIGHT_BITS)) for weight in equal]
    furthest = int(squared_differences(np.array([kept.width]), np.zeros(1, dtype=np.int64))[0])
    total = sum(weight * one for weight, one in zip(weights, totals, strict=True))
    sensitivity = max(1, rows * max(weights) * furthest)
    noisy = noise.laplace("variance", [total], sensitivity=sensitivity, epsilon=epsilon)[0]
    squares = sum(2 * weight * count for weight, count in zip(weights, pairs, strict=True))
    unit = max(squares, 1) << _SQUARE_BITS
    lonely = sum(
        weight * arm.members
        for weight, arm, count in zip(weights, design.arms, pairs, strict=True)
        if count == 0
    )
    return PairVariance(
        released=float(Fraction(noisy, 2 * unit)),
        scale=float(Fraction(sensitivity, unit) / epsilon),
        ceiling=(kept.width / OUTCOME_STEPS) ** 2 / 4,
        guess=guess,
        alone=lonely / max(lonely + squares, 1),
        outcomes=noise.outcomes,
    )


def _pair_kernel(
    design: Design, kept: OutcomeRange, missing: str | float | None
) -> Callable[[Block], Integers]:
    """Return a kernel that pairs like rows of each arm within a block; an odd row has no pair.

    It returns of every arm the sum of squared differences, and the number of pairs.
    """
    from private_ate.methods.calibrated.pairing import like_pairs  # numba loads here

    features = design.arms[-1].features

    def kernel(block: Block) -> Integers:
        centred = kept.centre(outcomes_of(block))
        # Where who lacks an outcome is private, pairs are made of all rows.
        seen = np.ones(block.arm.size, dtype=np.bool_)
        carries = members_of(block)
        if missing == "private":
            seen, carries = block.observed, seen
        totals, pairs = [], []
        for arm in design.arms:
            rows = np.flatnonzero((block.arm == arm.code) & carries)
            first, second = like_pairs(features, block.covariates, rows)
            squares = squared_differences(centred[first], centred[second])
            totals.append(int((squares * (seen[first] & seen[second])).sum()))
            pairs.append(int(second.size))
        return np.array([totals, pairs], dtype=np.int64)

    return kernel


def squared_differences(
    first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """Return squared differences as shares of the squared range, on their grid."""
    share = (first.astype(np.float64) - second) / 2.0**OUTCOME_BITS
    return np.rint(share**2 * 2.0**_SQUARE_BITS).astype(np.int64)
