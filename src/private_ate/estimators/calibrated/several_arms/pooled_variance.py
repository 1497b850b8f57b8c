"""The private variance behind the intervals of several arms: pairs within arms, pooled.

Units of one arm that are neighbours along its score are like draws from one distribution. Small
arms hold few pairs, so an arm's own variance is drawn towards that of all arms together, the
further the less its pairs can tell. It assumes that residual variances of arms differ by a factor
of two or so, and not in step with the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.estimators.calibrated.clipping import OutcomeRange, outcomes_of
from private_ate.estimators.calibrated.likeness import order_along
from private_ate.estimators.calibrated.pair_variance import SQUARE_BITS, squared_differences
from private_ate.estimators.calibrated.several_arms.design import Designs, members_of
from private_ate.privacy.cube_law import cube_variance
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block, Study

__all__ = ["ArmPairs", "PooledVariance", "pair_sums", "release_variances"]

_SPREAD: Final = 0.5  # of the pooled variance: how far arms' own are expected from it
_LIKELY: Final = 20  # equally likely values of a variance
_LEAST: Final = 0.05  # of the pooled variance: no arm's is taken to be smaller
_SMALLEST: Final = 1e-6  # of the squared range: the least pooled variance


@dataclass(frozen=True, slots=True)
class ArmPairs:
    """Of each arm the sum of squared differences in grid steps, and its public companions.

    ``pairs`` counts the differences, ``touched`` in how many of them one unit can be.
    """

    totals: tuple[int, ...]
    pairs: tuple[int, ...]
    touched: tuple[int, ...]

    def __add__(self, other: ArmPairs) -> ArmPairs:
        return ArmPairs(
            tuple(map(int.__add__, self.totals, other.totals)),
            tuple(map(int.__add__, self.pairs, other.pairs)),
            tuple(map(max, self.touched, other.touched)),
        )


@dataclass(frozen=True, slots=True)
class PooledVariance:
    """Released variances of outcomes among like units, in units of the squared range.

    Attributes
    ----------
    pooled, pooled_error : float
        The variance of all arms together, and the variance of its own error.
    own : tuple of float
        Each arm's, drawn towards it.
    errors : tuple of float
        Variances of their errors.
    ceiling : float
        No outcome within the kept range has a larger variance.
    """

    pooled: float
    pooled_error: float
    own: tuple[float, ...]
    errors: tuple[float, ...]
    ceiling: float

    @classmethod
    def shrink(
        cls, sums: Sequence[float], scales: Sequence[float], pairs: Sequence[int], ceiling: float
    ) -> PooledVariance:
        """Pool noisy sums of half squared differences whose Laplace scales are public.

        An arm's own variance has an error of ``2b²/G² + 2σ⁴/G``: noise and sampling.
        """
        count = sum(pairs)
        if count == 0:  # nobody has a neighbour: the largest variance that there is
            return cls(ceiling, 0.0, (ceiling,) * len(pairs), (0.0,) * len(pairs), ceiling)
        noise = np.square(scales).sum() * 2
        pooled = float(np.clip(sum(sums) / count, 4 * ceiling * _SMALLEST, ceiling))
        pooled_error = float(noise / count**2 + 2 * pooled**2 / count)
        prior = (_SPREAD * pooled) ** 2
        own, errors = [], []
        for total, scale, number in zip(sums, scales, pairs, strict=True):
            kept = 0.0
            if number:
                error = 2 * scale**2 / number**2 + 2 * pooled**2 / number
                kept = prior / (prior + error)
            own.append(pooled + kept * (total / max(number, 1) - pooled))
            errors.append(prior * (1 - kept) + pooled_error)
        return cls(pooled, pooled_error, tuple(own), tuple(errors), ceiling)

    def likely_values(self, arm: int) -> Floats:
        """Return equally likely values of one arm's variance, given what was released."""
        normal = ndtri((np.arange(_LIKELY) + 0.5) / _LIKELY)
        values = self.own[arm] + np.sqrt(self.errors[arm]) * normal
        likely: Floats = np.clip(values, _LEAST * self.pooled, self.ceiling)
        return likely


def pair_sums(designs: Designs, kept: OutcomeRange) -> Callable[[Block], ArmPairs]:
    """Return a kernel that pairs neighbours along each arm's score, within a block of rows.

    An odd unit at the end is compared with the last one before it, which is then in two pairs.
    """

    def kernel(block: Block) -> ArmPairs:
        outcomes = kept.centre(outcomes_of(block))
        parts = []
        for arm, design in enumerate(designs.arms):
            rows = members_of(block, arm)
            score = design.features.score(block.covariates[rows])
            order = order_along(score, np.zeros(rows.size, dtype=np.int64), 0)
            parts.append(_pair(outcomes[rows[order]]))
        totals, pairs, touched = zip(*parts, strict=True)
        return ArmPairs(totals, pairs, touched)

    return kernel


def release_variances(
    study: Study,
    designs: Designs,
    kept: OutcomeRange,
    epsilon: Fraction,
    rows_per_person: int,
    noise: Noise,
) -> PooledVariance:
    """Release every arm's sum of squared differences of like pairs, all arms for one ε.

    Neighbours: one person's outcomes replaced; who is paired with whom is public. Sensitivity: an
    outcome is in one pair of its arm, or in two if an odd unit has joined, and in no other arm's;
    a squared difference lies between 0 and the squared range that is kept. A person's m rows move
    sums by shares that add up to at most m. Cost: ε. Proof: docs/proofs/several-arms-label.md.
    """
    sums = study.fold(pair_sums(designs, kept), title="variance")
    furthest = int(squared_differences(np.array([kept.width]), np.zeros(1, dtype=np.int64))[0])
    sensitivities = [max(1, rows_per_person * touched * furthest) for touched in sums.touched]
    noisy = noise.laplace_disjoint(
        "variances", sums.totals, sensitivities=sensitivities, epsilon=epsilon
    )
    grid = 1 << SQUARE_BITS
    wider = math.sqrt(cube_variance(noise.outcomes) / 2)  # than Laplace's, if outcomes share it
    return PooledVariance.shrink(
        [float(Fraction(steps, 4 * grid)) for steps in noisy],
        [wider * float(Fraction(size, 2 * grid) / epsilon) for size in sensitivities],
        sums.pairs,
        (kept.width / OUTCOME_STEPS) ** 2 / 4,
    )


def _pair(outcomes: np.ndarray) -> tuple[int, int, int]:
    """Return the sum of squared differences, their number, and how many share a unit."""
    size = outcomes.size
    if size < 2:
        return 0, 0, 0
    even = size - size % 2
    total = int(squared_differences(outcomes[0:even:2], outcomes[1:even:2]).sum())
    if even == size:
        return total, size // 2, 1
    total += int(squared_differences(outcomes[-1:], outcomes[-2:-1])[0])
    return total, size // 2 + 1, 2
