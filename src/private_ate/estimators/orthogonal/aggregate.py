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

__all__ = ["Effect", "release_effect", "release_variance"]


_SCORE_BITS = 20  # the score's grid lies at least this far below the scale of its noise


@dataclass(frozen=True, slots=True)
class Effect:
    """A released mean of scores, in units of the declared range of the outcome.

    ``unit`` is the sensitivity of the mean, the unit of its staircase noise at ``epsilon``.
    """

    value: float
    unit: float
    epsilon: float

    def noise_quantile(self, coverage: float) -> float:
        """Return the size that the noise exceeds with probability ``1 − coverage``."""
        return self.unit * staircase_quantile(coverage, self.epsilon)


def release_effect(
    study: Study,
    partition: Partition,
    score: CellScore,
    noise: Noise,
    *,
    epsilon: Fraction,
    changes: int,
) -> Effect:
    """Release the mean of ``rate·(T − share)·(y − centre)`` with staircase noise.

    Neighbours: ``changes`` rows replaced, given the cells and the score. Sensitivity of the sum:
    ``changes`` times the width of the bounds to which every row's score is clipped, after
    rounding. Cost: ε. Proof: docs/proofs/orthogonal.md.
    """
    exponent = math.floor(math.log2(score.width * changes / float(epsilon))) - _SCORE_BITS
    grid = 2.0 ** min(exponent, math.floor(math.log2(score.width)) - 24)
    low, high = round(score.low / grid), round(score.high / grid)
    slope = np.concatenate([-score.rate * score.share, score.rate * (1 - score.share)])
    offset = slope * np.tile(score.centre, 2)

    def kernel(block: Block) -> Total:
        rows = partition.rows(block)
        place = rows.cell + partition.count * rows.treated
        values = (rows.outcome * (slope / OUTCOME_STEPS)[place] - offset[place]) / grid
        return Total(int(np.clip(np.rint(values), low, high).astype(np.int64).sum()))

    total = study.fold(by_chunks(kernel), title="effect").steps
    sensitivity = (high - low) * changes
    noisy = noise.staircase("effect", total, sensitivity=sensitivity, epsilon=epsilon)
    return Effect(
        float(Fraction(noisy, 2 * study.size) * Fraction(grid)),
        float(Fraction(sensitivity, study.size) * Fraction(grid)),
        float(epsilon),
    )


def release_variance(
    study: Study,
    partition: Partition,
    score: CellScore,
    noise: Noise,
    *,
    effect: float,
    epsilon: Fraction,
    changes: int,
) -> float:
    """Release the mean square of the score's residual, deliberately a little too high.

    Neighbours: as for the effect. Sensitivity of the sum: ``changes`` times the bound to which
    every square is clipped. Cost: ε. Proof: docs/proofs/orthogonal.md.
    """
    largest = max(score.high, -score.low) ** 2
    bits = noise_bits(changes, epsilon)
    kernel = _square_kernel(partition, score, effect, (1 << bits) / largest, 1 << bits)
    total = study.fold(by_chunks(kernel), title="variance").steps
    noisy = noise.laplace("variance", [total], sensitivity=changes << bits, epsilon=epsilon)
    share = noisy[0] / (study.size << (bits + 1)) + changes / (study.size * float(epsilon))
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
        steps = np.minimum(np.rint(values * values * scale), bound)
        return Total(int(steps.astype(np.int64).sum()))

    return kernel
