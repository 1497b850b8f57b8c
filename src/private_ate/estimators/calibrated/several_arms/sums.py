"""The released means of several arms: a weighted sum of outcomes each, and staircase noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain import Interval
from private_ate.estimators.calibrated.clipping import OutcomeRange, outcomes_of
from private_ate.estimators.calibrated.several_arms.weights import ArmWeights
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.privacy.sum_law import SumLaw
from private_ate.privacy.sums import (
    OUTCOME_BITS,
    OUTCOME_STEPS,
    WEIGHT_BITS,
    quantize_weights,
    weighted_sum,
)
from private_ate.study import Block

__all__ = ["OutcomeSums", "ReleasedMean", "StairRule", "outcome_kernel", "release_means"]


@dataclass(frozen=True, slots=True)
class OutcomeSums:
    """Exact integer sums over outcomes of each arm, and the largest weight in each."""

    totals: tuple[int, ...]
    largest: tuple[int, ...]

    def __add__(self, other: OutcomeSums) -> OutcomeSums:
        return OutcomeSums(
            tuple(map(int.__add__, self.totals, other.totals)),
            tuple(map(max, self.largest, other.largest)),
        )


@dataclass(frozen=True, slots=True)
class StairRule:
    """How a person with several rows is paid for; public numbers alone.

    So many ``moves`` of one sum each lead from a table to its neighbour, every one by at most
    ``rows`` rows' worth: m moves of one row, or one move of m rows for each arm that they can be
    in. The rule with less noise is taken.
    """

    moves: int
    rows: int

    @classmethod
    def of(
        cls, rows_per_person: int, arms: int, epsilon: float | Fraction, outcomes: int = 1
    ) -> StairRule:
        """Return the rule whose noise has the smaller variance."""
        rules = (cls(rows_per_person, 1), cls(min(rows_per_person, arms), rows_per_person))
        return min(rules, key=lambda rule: rule.variance(epsilon, outcomes))

    def variance(self, epsilon: float | Fraction, outcomes: int = 1) -> float:
        """Return the variance of an arm's noise in squared one-row sensitivities."""
        return self.rows**2 * self.law(Fraction(epsilon), outcomes).variance

    def law(self, epsilon: Fraction, outcomes: int) -> SumLaw:
        """Return the law of an arm's noise, for what one move changes."""
        return SumLaw.of(outcomes, epsilon, self.moves)


@dataclass(frozen=True, slots=True)
class ReleasedMean:
    """One arm's released mean in units of the outcome, within its bounds, and its noise."""

    mean: float
    law: NoiseDistribution


def outcome_kernel(
    weights: tuple[ArmWeights, ...], kept: OutcomeRange
) -> Callable[[Block, Floats | None], OutcomeSums]:
    """Return a kernel that adds up weighted outcomes, counted from the middle of their range."""

    def kernel(block: Block, base: Floats | None) -> OutcomeSums:
        centred = kept.centre(outcomes_of(block))
        totals, largest = [], []
        for each in weights:
            members = each.of(block, base)
            steps = quantize_weights(members.weights)
            totals.append(weighted_sum(steps, centred[members.rows]))
            largest.append(int(np.max(steps, initial=0)))
        return OutcomeSums(tuple(totals), tuple(largest))

    return kernel


def release_means(
    sums: OutcomeSums,
    kept: OutcomeRange,
    bounds: Interval,
    size: int,
    *,
    rule: StairRule,
    epsilon: Fraction,
    noise: Noise,
) -> tuple[ReleasedMean, ...]:
    """Release the mean of each arm with a staircase of its own; all arms share one ε.

    Neighbours: one person's outcomes replaced; the weights are public. Sensitivity: an outcome is
    in the sum of one arm, which it moves by at most the arm's largest integer weight in use times
    the kept range; see `StairRule` for a person with several rows. Cost: ε, because the draws are
    independent and one sum moves at a time. Proof: docs/proofs/several-arms-label.md.
    """
    sensitivities = [max(1, rule.rows * largest * kept.width) for largest in sums.largest]
    if rule.moves == 1:
        noisy = noise.staircase_disjoint(
            "outcome sums", sums.totals, sensitivities=sensitivities, epsilon=epsilon
        )
    else:
        noisy = noise.staircase_by_arm(
            "outcome sums", sums.totals,
            sensitivities=sensitivities, moves=rule.moves, epsilon=epsilon,
        )  # fmt: skip
    law = rule.law(epsilon, noise.outcomes)
    unit, whole = bounds.width / size, 1 << (OUTCOME_BITS + WEIGHT_BITS)
    middle = bounds.low + bounds.width * kept.middle / OUTCOME_STEPS
    return tuple(
        ReleasedMean(
            min(max(middle + float(Fraction(total, 2 * whole)) * unit, bounds.low), bounds.high),
            NoiseDistribution.of_sum(law, float(Fraction(sensitivity, whole)) * unit),
        )
        for total, sensitivity in zip(noisy, sensitivities, strict=True)
    )
