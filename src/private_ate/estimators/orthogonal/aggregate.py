"""The orthogonal aggregate: one noisy mean of scores, and the private variance behind it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from private_ate.estimators.orthogonal.cells import CellScore
from private_ate.estimators.orthogonal.strata import Partition
from private_ate.models.folds import Total, by_chunks
from private_ate.models.standardization import noise_bits
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_quantile
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block, Study

__all__ = ["Effect", "Members", "release_effect", "release_variance"]


_SCORE_BITS = 20  # the score's grid lies at least this far below the scale of its noise


@dataclass(frozen=True, slots=True)
class Effect:
    """A released mean of scores, in units of the declared range of the outcome.

    ``unit`` is the sensitivity of the mean, the unit of its staircase noise at ``epsilon``;
    ``count_variance`` is what the noise of a count that stands for n adds to the error.
    """

    value: float
    unit: float
    epsilon: float
    count_variance: float = 0.0

    def noise_quantile(self, coverage: float) -> float:
        """Return the size that the noise exceeds with probability ``1 − coverage``."""
        return self.unit * staircase_quantile(coverage, self.epsilon)


@dataclass(frozen=True, slots=True)
class Members:
    """How many rows take part, exactly or as released, and a released value near the effect.

    Scores are added less the ``anchor``, so that an error of ``size`` moves only what the effect
    differs from it. ``deviation`` is that of the size's noise, zero for n itself.
    """

    size: int
    anchor: float = 0.0
    deviation: float = 0.0


def release_effect(  # what was released before, and the step's budget
    study: Study,
    partition: Partition,
    score: CellScore,
    noise: Noise,
    members: Members,
    *,
    epsilon: Fraction,
    changes: int,
) -> Effect:
    """Release the mean of ``rate·(T − share)·(y − centre)`` with staircase noise.

    Neighbours: ``changes`` rows replaced, given the cells and the score. Sensitivity of the sum:
    ``changes`` times the width of the bounds to which every row's score is clipped, after
    rounding. A row that takes no part adds zero: scores are added less an earlier released value
    between their bounds, so that zero lies between them too, and with it any share of a score
    by which a sampling weight counts. Cost: ε. Proofs: docs/proofs/orthogonal.md,
    docs/proofs/weights.md.
    """
    anchor = min(max(members.anchor, score.low), score.high)
    exponent = math.floor(math.log2(score.width * changes / float(epsilon))) - _SCORE_BITS
    grid = 2.0 ** min(exponent, math.floor(math.log2(score.width)) - 24)
    low, high = math.floor((score.low - anchor) / grid), math.ceil((score.high - anchor) / grid)
    slope = np.concatenate([-score.rate * score.share, score.rate * (1 - score.share)])
    offset = slope * np.tile(score.centre, 2) + anchor

    def kernel(block: Block) -> Total:
        rows = partition.rows(block)
        place = rows.cell + partition.count * rows.treated
        values = (rows.outcome * (slope / OUTCOME_STEPS)[place] - offset[place]) / grid
        steps = np.rint(np.clip(np.rint(values), low, high) * block.shares)
        return Total(int(steps.astype(np.int64).sum()))

    total = study.fold(by_chunks(kernel), title="effect").steps
    sensitivity = (high - low) * changes
    noisy = noise.staircase("effect", total, sensitivity=sensitivity, epsilon=epsilon)
    away = float(Fraction(noisy, 2 * members.size) * Fraction(grid))
    return Effect(
        anchor + away,
        float(Fraction(sensitivity, members.size) * Fraction(grid)),
        float(epsilon),
        (away * members.deviation / members.size) ** 2,
    )


def release_variance(  # noqa: PLR0913  # as above
    study: Study,
    partition: Partition,
    score: CellScore,
    noise: Noise,
    *,
    effect: float,
    size: int,
    epsilon: Fraction,
    changes: int,
) -> float:
    """Release the mean square of the score's residual, deliberately a little too high.

    ``size`` is the number of rows that take part, as released. Neighbours: as for the effect.
    Sensitivity of the sum: ``changes`` times the bound to which every square is clipped. Cost: ε.
    Proof: docs/proofs/orthogonal.md.
    """
    largest = max(score.high, -score.low) ** 2
    bits = noise_bits(changes, epsilon)
    kernel = _square_kernel(partition, score, effect, (1 << bits) / largest, 1 << bits)
    total = study.fold(by_chunks(kernel), title="variance").steps
    noisy = noise.laplace("variance", [total], sensitivity=changes << bits, epsilon=epsilon)
    share = noisy[0] / (size << (bits + 1)) + changes / (size * float(epsilon))
    return largest * min(max(share, 1e-6), 1.0)


def _square_kernel(
    partition: Partition, score: CellScore, effect: float, scale: float, bound: int
) -> Callable[[Block], Total]:
    """Return a kernel that adds squared residuals in steps, each within ``[0, bound]``."""
    treated = np.concatenate([-score.share, 1 - score.share])  # T − share
    slope = np.tile(score.rate, 2) * treated
    offset = slope * (np.tile(score.centre, 2) + treated * effect)

    def kernel(block: Block) -> Total:
        rows = partition.rows(block)
        place = rows.cell + partition.count * rows.treated
        values = rows.outcome * (slope / OUTCOME_STEPS)[place] - offset[place]
        # Squared, as in the variance of a weighted mean.
        steps = np.rint(np.minimum(np.rint(values * values * scale), bound) * block.shares**2)
        return Total(int(steps.astype(np.int64).sum()))

    return kernel
