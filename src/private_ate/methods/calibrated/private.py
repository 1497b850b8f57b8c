"""The private half: exact integer sums of weighted outcomes, and staircase noise for linear forms.

Weights are public and integers. What is released are linear forms of the arms' sums: of two arms
their contrast, which needs one draw of noise; of more, or where means are asked for, every arm's
sum. No arm is in two forms, so that an outcome moves one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats
from private_ate.domain import Interval
from private_ate.effects.estimate import Quantity
from private_ate.methods.calibrated.design import Sums, fold_with_base
from private_ate.methods.calibrated.weights import PublicWeights
from private_ate.privacy.distributions import NoiseDistribution, sum_noise
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, WEIGHT_BITS, weighted_sum
from private_ate.study import ALL_PRESENT, Block, MatchingStudy

__all__ = [
    "WHOLE_STEPS", "Errors", "Form", "NoiseRule", "add_outcomes", "draws_of", "forms_of",
    "release_quantities",
]  # fmt: skip

Form = tuple[int, ...]
"""A linear form: -1, 0 or 1 for every arm in the order of the codes."""

Errors = Callable[[Sequence[int]], tuple[tuple[float, ...], float]]
"""Equally likely sampling variances of a form of some arms, and how much of them is bias."""

WHOLE_STEPS = 1 << (OUTCOME_BITS + WEIGHT_BITS)  # a weight of one times the whole outcome range


def forms_of(arms: int, *, means: bool) -> tuple[Form, ...]:
    """Return what is released: of two arms their contrast, else or if asked for every mean."""
    if arms == 2 and not means:
        return ((-1, 1),)
    return tuple(tuple(int(arm == code) for arm in range(arms)) for code in range(arms))


def draws_of(forms: Sequence[Form]) -> tuple[tuple[int, ...], ...]:
    """Return the arms that share each draw of noise."""
    return tuple(tuple(arm for arm, sign in enumerate(form) if sign) for form in forms)


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
        return self.rows**2 * self.distribution(epsilon, outcomes).variance

    def distribution(self, epsilon: Fraction, outcomes: int) -> NoiseDistribution:
        """Return the distribution of a form's noise, for what one move changes."""
        return sum_noise(outcomes, epsilon, self.moves)


def add_outcomes(
    study: MatchingStudy,
    weights: PublicWeights,
    values: Callable[[Block], Sequence[npt.NDArray[np.integer]]],
) -> tuple[tuple[int, ...], ...]:
    """Return ``Σ w·value`` of every arm for each of the values, exactly.

    ``values`` are integers below 2³¹ in size. Rows whose outcome is publicly missing carry no
    weight; who lacks one privately is hidden from the weights.
    """
    is_public = study.domain.outcome.missing == "public"

    def kernel(block: Block, base: Floats | None) -> Sums[Sums[int]]:
        columns = values(block)
        shown = block if is_public else replace(block, observed=ALL_PRESENT)
        return Sums(
            tuple(
                Sums(tuple(weighted_sum(steps, column[rows]) for column in columns))
                for rows, steps in weights.steps(shown, base)
            )
        )

    found = fold_with_base(study, weights.design.base, kernel, title="outcomes")
    return tuple(arm.of for arm in found.of)


def release_quantities(  # noqa: PLR0913  # sums, and the public numbers that scale them
    totals: Sequence[int],
    sensitivities: Sequence[int],
    forms: Sequence[Form],
    errors: Errors,
    *,
    bounds: Interval,
    middle: float,
    size: int,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> tuple[Quantity, ...]:
    """Release linear forms of the arms' sums with staircase noise; all forms share one ε.

    Values were counted from ``middle``, in steps across the outcome's ``bounds``; ``size`` is n.

    Neighbours: one person's outcomes replaced; the weights are public. Sensitivity: an outcome is
    in the sum of one arm and hence in one form, which it moves by at most ``sensitivities`` of the
    arm: the arm's largest integer weight in use times the range of the values; see `NoiseRule` for
    a person with several rows. Cost: ε, because draws are independent and one form moves at a time.
    Proof: docs/proofs/calibrated.md.
    """
    rule = NoiseRule.of(rows, len(forms), epsilon, noise.outcomes)
    exact = [sum(sign * total for sign, total in zip(form, totals, strict=True)) for form in forms]
    draws = draws_of(forms)
    sizes = [max(1, rule.rows * max(sensitivities[arm] for arm in arms)) for arms in draws]
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
    distribution = rule.distribution(epsilon, noise.outcomes)
    step = bounds.width / size / WHOLE_STEPS
    found = []
    for form, arms, answer, sensitivity in zip(forms, draws, noisy, sizes, strict=True):
        value = float(Fraction(answer, 2)) * step  # answers come in half steps
        if len(arms) == 1:
            value = min(max(value + middle, bounds.low), bounds.high)
        else:
            value = min(max(value, -bounds.width), bounds.width)
        added = distribution.scaled(float(sensitivity) * step)
        variances, bias = errors(arms)
        found.append(Quantity(value, (added,), variances, bias, tuple(map(float, form))))
    return tuple(found)
