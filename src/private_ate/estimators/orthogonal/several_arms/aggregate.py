"""The last step: noisy levels of all arms, and the private variances behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.orthogonal.several_arms.models import Step
from private_ate.estimators.orthogonal.several_arms.rows import (
    PROGNOSIS_BOUND,
    Outcomes,
    Prognosis,
    Scores,
)
from private_ate.estimators.orthogonal.several_arms.sizes import NoisySizes
from private_ate.estimators.orthogonal.several_arms.sums import Sums, add_by_arm
from private_ate.models.folds import Total, by_chunks
from private_ate.models.standardization import noise_bits
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block, Study

__all__ = ["Levels", "Weighing", "release_common", "release_means", "release_variances"]

_SCORE_BITS: Final = 20  # the grid lies at least this far below the scale of the noise


@dataclass(frozen=True, slots=True)
class Weighing:
    """What a row adds to its arm: ``w(y − δ)`` by released weights and levels.

    Attributes
    ----------
    scores : Scores or None
        Where the cells lie; None if there is one for all rows.
    weights : array, shape (K, cells)
        Weights of rows by arm and cell.
    levels : array, shape (K,)
        Levels δ by which outcomes are centred, in units of the declared range.
    """

    outcomes: Outcomes
    scores: Scores | None
    weights: Floats
    levels: Floats

    @property
    def bounds(self) -> Floats:
        """The largest size of what a row of each arm adds (M), shape (K,)."""
        reach = self.outcomes.width / 2 + np.abs(self.levels)
        bounds: Floats = self.weights.max(axis=1) * reach
        return bounds

    def of(self, block: Block) -> Floats:
        """Return what the rows of a block add, in units of the declared range."""
        arm = block.arm
        first = np.zeros(arm.size, dtype=np.intp)
        cell = first if self.scores is None else self.scores.own_cells(block)
        away = self.outcomes.of(block) / OUTCOME_STEPS - self.levels[arm]
        added: Floats = self.weights[arm, cell] * away
        return added


@dataclass(frozen=True, slots=True)
class Levels:
    """Released levels of the arms, in units of the declared range; shape (K,) each.

    ``units`` are the sensitivities of the levels to one move, the units of their staircase noise
    at ``epsilon``; ``count_variance`` is what the noise of n̂ adds to the error.
    """

    values: Floats
    units: Floats
    epsilon: Fraction
    count_variance: Floats


def release_means(
    study: Study, weighing: Weighing, sizes: NoisySizes, noise: Noise, step: Step
) -> Levels:
    """Release ``δ + Σ w(y − δ)/n̂`` of every arm, with staircase noise of its own.

    Neighbours: ``changes`` rows replaced; each leaves the sum of one arm and enters that of
    another, or of none. Every row's part is clipped to ±M of its arm after rounding, so that
    ``2·changes`` moves of one sum each by at most M lead from one to the other. Cost: ε, by
    Lemma S of docs/proofs/several-arms.md.
    """
    moves = 2 * step.changes
    bounds = weighing.bounds
    finest = np.floor(np.log2(bounds)) - 24
    grid = 2.0 ** np.minimum(
        np.floor(np.log2(bounds * moves / float(step.epsilon))) - _SCORE_BITS, finest
    )
    most = np.ceil(bounds / grid)

    def kernel(block: Block) -> Sums:
        arm = block.arm
        steps = np.clip(np.rint(weighing.of(block) / grid[arm]), -most[arm], most[arm])
        return add_by_arm(steps * block.present, arm, sizes.arms)

    exact = study.fold(by_chunks(kernel), title="levels").steps
    sensitivities = [int(size) for size in most]
    noisy = noise.staircase_by_arm(
        "levels", exact, sensitivities=sensitivities, moves=moves, epsilon=step.epsilon
    )
    away = np.array([
        float(Fraction(value, 2 * sizes.members) * Fraction(float(unit)))
        for value, unit in zip(noisy, grid, strict=True)
    ])  # fmt: skip
    return Levels(
        weighing.levels + away,
        most * grid / sizes.members,
        step.epsilon / moves,
        (away * sizes.deviation / sizes.members) ** 2,
    )


def release_variances(
    study: Study, weighing: Weighing, sizes: NoisySizes, noise: Noise, step: Step
) -> Floats:
    """Release the variance of every arm's level, deliberately a little too high; shape (K,).

    Neighbours: ``changes`` rows replaced. Sensitivity (L1): a row adds a square in [0, M²] to one
    of K sums, counted in units of M², so ``2·changes``. Cost: ε. Proof:
    docs/proofs/several-arms-sample.md.
    """
    bits = noise_bits(2 * step.changes, step.epsilon)
    kernel = _square_kernel(weighing, sizes.arms, bits)
    exact = study.fold(by_chunks(kernel), title="variances").steps
    noisy = noise.laplace(
        "variances", exact, sensitivity=2 * step.changes << bits, epsilon=step.epsilon
    )
    lift = 2 * step.changes / (sizes.members * float(step.epsilon))
    shares = np.array([value / (sizes.members << (bits + 1)) for value in noisy])
    # One draw in six is below minus its scale: without the floor such an arm had hardly a variance.
    squares = weighing.bounds**2 * np.minimum(np.maximum(shares, 0.0) + lift, 1.0)
    variances: Floats = step.changes * squares / sizes.members
    return variances


def _square_kernel(weighing: Weighing, arms: int, bits: int) -> Callable[[Block], Sums]:
    bounds = weighing.bounds

    def kernel(block: Block) -> Sums:
        share = np.minimum((weighing.of(block) / bounds[block.arm]) ** 2, 1.0)
        steps = np.rint(share * float(1 << bits)) * block.present
        return add_by_arm(steps, block.arm, arms)

    return kernel


def release_common(
    study: Study, prognosis: Prognosis, sizes: NoisySizes, noise: Noise, step: Step
) -> float:
    """Release the mean of the prognosis that was taken off, which all arms share.

    Neighbours: ``changes`` rows replaced. Sensitivity of the sum: 0.4 of the range for each,
    because a prognosis lies within ±0.2 of it, or a row adds zero. Cost: ε. Proof:
    docs/proofs/several-arms-sample.md.
    """
    bits = noise_bits(step.changes, step.epsilon)
    most = math.ceil(PROGNOSIS_BOUND * (1 << bits))

    def kernel(block: Block) -> Total:
        steps = np.rint(prognosis.deviation(block) * float(1 << bits))
        bounded = np.clip(steps, -most, most) * block.present
        return Total(int(bounded.astype(np.int64).sum()))

    exact = study.fold(by_chunks(kernel), title="prognosis").steps
    noisy = noise.laplace(
        "common level", [exact], sensitivity=2 * most * step.changes, epsilon=step.epsilon
    )
    mean = noisy[0] / (sizes.members << (bits + 1))
    return min(max(mean, -PROGNOSIS_BOUND), PROGNOSIS_BOUND)
