"""The unadjusted comparison of the arms: a release of its own, or where the blocks start from.

The steps are those of the orthogonal method without adjustment, taken one by one because the
count alone decides whether blocks follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.estimators.aggregate import Effect, release_effect, release_variance
from private_ate.estimators.cells import CellCounts, CellNoise, CellScore, plain_score
from private_ate.estimators.strata import OneCell
from private_ate.folds import Total, by_chunks
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.standardization import noise_bits
from private_ate.study import Block, Study

__all__ = [
    "Count",
    "Start",
    "release_count",
    "release_outcome_variance",
    "release_square",
    "release_start",
]

_COUNT_BITS: Final = 20  # counts are released on the grid 2⁻²⁰
# In units of its noise: how far a variance is shifted up, and its least value. Together they make
# it less than half of what it should be in fewer than two runs of a hundred.
_SHIFT: Final = 1.5
_FLOOR: Final = 2.0


@dataclass(frozen=True, slots=True)
class Count:
    """The noisy number of treated rows and the Laplace scale of its noise."""

    treated: float
    scale: float

    def combine(self, other: Count) -> Count:
        """Return the mean of two counts of the same rows, each weighted by its precision."""
        weights = self.scale**-2, other.scale**-2
        total = sum(weights)
        treated = (weights[0] * self.treated + weights[1] * other.treated) / total
        return Count(treated, 1 / math.sqrt(total))

    def share(self, size: int) -> float:
        """Return the share of treated rows, kept away from 0 and 1."""
        least = min(max(2.0, 0.005 * size), size / 2)
        return min(max(self.treated, least), size - least) / size


@dataclass(frozen=True, slots=True)
class Start:
    """A released unadjusted effect, the score whose mean it is, and the mean outcome."""

    score: CellScore
    effect: Effect
    mean: float

    @property
    def value(self) -> float:
        """The effect within what an effect can be, in units of the outcome's range."""
        return min(max(self.effect.value, -1.0), 1.0)


def release_count(
    study: Study, noise: Noise, *, epsilon: Fraction, changes: int, step: str = "treated count"
) -> Count:
    """Release the number of treated rows.

    Neighbours: ``changes`` rows replaced. Sensitivity: ``changes``, as n is public. Cost: ε.
    Proof: docs/proofs/blocks.md.
    """
    exact = study.fold(_count_treated, title="treated rows").steps
    noisy = noise.laplace(
        step, [exact << _COUNT_BITS], sensitivity=changes << _COUNT_BITS, epsilon=epsilon
    )
    return Count(noisy[0] / (1 << (_COUNT_BITS + 1)), changes / float(epsilon))


def release_start(  # a count, and the two steps that follow it
    study: Study,
    noise: Noise,
    count: Count,
    *,
    sum_epsilon: Fraction,
    effect_epsilon: Fraction,
    changes: int,
) -> Start:
    """Release the sums of both arms, then the mean of the score that they centre.

    Neighbours: ``changes`` rows replaced. Sensitivity: ``changes`` times the declared range (L1)
    for the centred sums, ``changes`` times the width of the score's bounds for the effect. Cost:
    both budgets. Proof: docs/proofs/blocks.md.
    """
    control, treated = _outcome_sums(study)
    sums = noise.laplace(
        "arm sums", [control, treated], sensitivity=changes * OUTCOME_STEPS, epsilon=sum_epsilon
    )
    control_sum, treated_sum = (np.array([value / (2 * OUTCOME_STEPS)]) for value in sums)
    arm = np.array([count.treated])
    cells = CellCounts(arm, study.size - arm, treated_sum, control_sum)
    law = CellNoise(count.scale, changes / float(sum_epsilon), 1.0, study.size)
    score = plain_score(cells, law)
    effect = release_effect(study, OneCell(), score, noise, epsilon=effect_epsilon, changes=changes)
    mean = float(treated_sum[0] + control_sum[0]) / study.size
    return Start(score, effect, min(max(mean, -0.5), 0.5))


def release_square(
    study: Study, noise: Noise, start: Start, *, epsilon: Fraction, changes: int
) -> float:
    """Release the mean square of the score's residual (V), deliberately a little too high.

    Neighbours, sensitivity and cost: as ``release_variance`` says.
    """
    return release_variance(
        study, OneCell(), start.score, noise,
        effect=start.value, epsilon=epsilon, changes=changes,
    )  # fmt: skip


def release_outcome_variance(
    study: Study, noise: Noise, start: Start, *, epsilon: Fraction, changes: int
) -> float:
    """Release the variance of outcomes within the arms, deliberately a little too high.

    A row adds the square of its distance from its arm's released mean, clipped to a quarter of
    the squared range, or to all of it if the outcome is binary. Neighbours: ``changes`` rows
    replaced. Sensitivity of the sum: ``changes`` times that bound. Cost: ε. Proof:
    docs/proofs/blocks.md.
    """
    largest = 1.0 if study.domain.bounds.is_binary else 0.25
    bits = noise_bits(changes, epsilon)
    share = float(start.score.share[0])
    means = start.mean + start.value * np.array([-share, 1 - share])

    def kernel(block: Block) -> Total:
        residual = OneCell().rows(block).outcome / OUTCOME_STEPS
        residual -= means[block.treatment.astype(np.intp)]
        steps = np.rint(np.minimum(residual * residual / largest, 1.0) * float(1 << bits))
        return Total(int(steps.astype(np.int64).sum()))

    total = study.fold(by_chunks(kernel), title="outcome variance").steps
    noisy = noise.laplace("outcome variance", [total], sensitivity=changes << bits, epsilon=epsilon)
    scale = changes / (study.size * float(epsilon))
    variance = noisy[0] / (study.size << (bits + 1)) + _SHIFT * scale
    return largest * min(max(variance, _FLOOR * scale), 1.0)


def _count_treated(block: Block) -> Total:
    return Total(int(np.count_nonzero(block.treatment)))


@dataclass(frozen=True, slots=True)
class _ArmSums:
    control: int
    treated: int

    def __add__(self, other: _ArmSums) -> _ArmSums:
        return _ArmSums(self.control + other.control, self.treated + other.treated)


def _outcome_sums(study: Study) -> tuple[int, int]:
    """Add centred outcomes by arm, exactly; controls first."""

    def kernel(block: Block) -> _ArmSums:
        centred = OneCell().rows(block).outcome.astype(np.int64)
        treated = int(centred[block.treatment].sum())
        return _ArmSums(int(centred.sum()) - treated, treated)

    sums = study.fold(kernel, title="arms")
    return sums.control, sums.treated
