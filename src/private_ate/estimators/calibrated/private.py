"""The private half: exact integer sums of weighted outcomes, and staircase noise for linear forms.

Weights are public and integers. What is released are linear forms of the arms' sums: of two arms
their contrast, which needs one draw of noise; of more, or where means are asked for, every arm's
sum. No arm is in two forms, so that an outcome moves one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats
from private_ate.estimators.calibrated.design import fold_with_base
from private_ate.estimators.calibrated.weights import PublicWeights
from private_ate.privacy.distributions import NoiseDistribution, sum_noise
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, WEIGHT_BITS, weighted_sum
from private_ate.study import Block, MatchingStudy

__all__ = [
    "WHOLE_STEPS", "Form", "NoiseRule", "ReleasedSum", "add_outcomes", "contrast", "draws_of",
    "means", "release_sums",
]  # fmt: skip

Form = tuple[int, ...]
"""A linear form: -1, 0 or 1 for every arm in the order of the codes."""

WHOLE_STEPS = 1 << (OUTCOME_BITS + WEIGHT_BITS)  # a weight of one times the whole outcome range


def contrast() -> tuple[Form, ...]:
    """Return the one form of two arms: the second less the first."""
    return ((-1, 1),)


def means(arms: int) -> tuple[Form, ...]:
    """Return a form for the sum of every arm."""
    return tuple(tuple(int(arm == code) for arm in range(arms)) for code in range(arms))


def draws_of(forms: Sequence[Form]) -> tuple[tuple[int, ...], ...]:
    """Return the arms that share each draw of noise."""
    return tuple(tuple(arm for arm, sign in enumerate(form) if sign) for form in forms)


@dataclass(frozen=True, slots=True)
class _ArmTotals:
    """Exact integer sums over outcomes of each arm."""

    totals: tuple[int, ...]

    def __add__(self, other: _ArmTotals) -> _ArmTotals:
        return _ArmTotals(tuple(map(int.__add__, self.totals, other.totals)))


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """How a person with several rows is paid for; public numbers alone.

    So many ``moves`` of one form each lead from a table to its neighbour, every one by at most
    ``rows`` rows' sensitivity: m moves of one row, or one move of m rows for each form that they
    can be in. The rule with less noise is taken.
    """

    moves: int
    rows: int

    @classmethod
    def of(cls, rows_per_person: int, forms: int, epsilon: Fraction, outcomes: int) -> NoiseRule:
        """Return the rule whose noise has the smaller variance."""
        rules = (cls(min(rows_per_person, forms), rows_per_person), cls(rows_per_person, 1))
        return min(rules, key=lambda rule: rule.variance(epsilon, outcomes))

    def variance(self, epsilon: Fraction, outcomes: int) -> float:
        """Return the variance of a form's noise in squared one-row sensitivities."""
        return self.rows**2 * self.unit_noise(epsilon, outcomes).variance

    def unit_noise(self, epsilon: Fraction, outcomes: int) -> NoiseDistribution:
        """Return the distribution of a form's noise, for what one move changes."""
        return sum_noise(outcomes, epsilon, self.moves)


@dataclass(frozen=True, slots=True)
class ReleasedSum:
    """A released form in units of the outcome, and its noise."""

    value: float
    noise: NoiseDistribution


def add_outcomes(
    study: MatchingStudy,
    weights: PublicWeights,
    values: Callable[[Block], npt.NDArray[np.integer]],
) -> tuple[int, ...]:
    """Return ``Σ w·value`` of every arm, exactly; ``values`` are integers below 2³¹ in size.

    Rows whose outcome is publicly missing carry no weight.
    """

    def kernel(block: Block, base: Floats | None) -> _ArmTotals:
        integers = values(block)
        return _ArmTotals(
            tuple(weighted_sum(steps, integers[rows]) for rows, steps in weights.steps(block, base))
        )

    return fold_with_base(study, weights.design.base, kernel, title="outcomes").totals


def release_sums(
    totals: Sequence[int],
    sensitivities: Sequence[int],
    forms: Sequence[Form],
    *,
    unit: float,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> tuple[ReleasedSum, ...]:
    """Release linear forms of the arms' sums with staircase noise; all forms share one ε.

    ``unit`` is what one integer step is in units of the outcome.

    Neighbours: one person's outcomes replaced; the weights are public. Sensitivity: an outcome is
    in the sum of one arm and hence in one form, which it moves by at most ``sensitivities`` of the
    arm: the arm's largest integer weight in use times the range of the values; see `NoiseRule` for
    a person with several rows. Cost: ε, because draws are independent and one form moves at a time.
    Proof: docs/proofs/calibrated.md.
    """
    rule = NoiseRule.of(rows, len(forms), epsilon, noise.outcomes)
    exact = [sum(sign * total for sign, total in zip(form, totals, strict=True)) for form in forms]
    sizes = [
        max(1, rule.rows * max(sensitivities[arm] for arm in arms)) for arms in draws_of(forms)
    ]
    if len(forms) == 1:
        noisy = [noise.staircase("outcome sum", exact[0], sensitivity=sizes[0], epsilon=epsilon)]
    elif rule.moves == 1:
        noisy = noise.staircase_disjoint(
            "outcome sums", exact, sensitivities=sizes, epsilon=epsilon
        )
    else:
        noisy = noise.staircase_by_arm(
            "outcome sums", exact, sensitivities=sizes, moves=rule.moves, epsilon=epsilon
        )
    unit_noise = rule.unit_noise(epsilon, noise.outcomes)
    # Answers come in half steps.
    return tuple(
        ReleasedSum(float(Fraction(value, 2)) * unit, unit_noise.scaled(float(size) * unit))
        for value, size in zip(noisy, sizes, strict=True)
    )
