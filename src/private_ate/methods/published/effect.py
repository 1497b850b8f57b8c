"""Phase 3 of the paper, Algorithm 3: counterfactuals within limits, two noisy sums, the effect."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from private_ate.effects.estimate import Quantity
from private_ate.methods.published.limits import LimitRule, LimitsInUse
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS, WEIGHT_BITS
from private_ate.study import MatchingStudy, MatchPool, RowWeights

__all__ = ["ArmRelease", "MatchedEffect", "estimate_effect", "release_arm_sums"]

_WHOLE: Final = 1 << (OUTCOME_BITS + WEIGHT_BITS)  # grid steps of an outcome at the upper bound


@dataclass(frozen=True, slots=True)
class ArmRelease:
    """The released sums of all arms by code (of two: Ŝ₀ and Ŝ₁), in half grid steps.

    ``sensitivities`` are what the noise of each was drawn for, in grid steps, at ``epsilon``.
    """

    sums: tuple[int, ...]
    sensitivities: tuple[int, ...]
    epsilon: Fraction

    def quantities(self, study: MatchingStudy) -> tuple[Quantity, ...]:
        """Turn sums into quantities: of two arms ``τ̂ = Ŝ₁/n − Ŝ₀/n``, of more the mean of each.

        The mean of an arm that is empty is the middle of the bounds.
        """
        bounds = study.domain.bounds
        unit, middle = bounds.width / study.size, bounds.low + bounds.width / 2
        if len(self.sums) == 2:
            control, treated = self.sums
            # Laplace noise is fixed by its scale: a sensitivity of that size at an ε of one.
            scales = [float(Fraction(size, _WHOLE) / self.epsilon) for size in self.sensitivities]
            noise = tuple(
                NoiseDistribution("laplace", scale * unit, 1.0) for scale in reversed(scales)
            )
            return (Quantity(float(Fraction(treated - control, 2 * _WHOLE)) * unit, noise),)
        return tuple(
            Quantity(
                middle + float(Fraction(total, 2 * _WHOLE)) * unit,
                (NoiseDistribution("laplace", float(Fraction(size, _WHOLE)) * unit, self.epsilon),),
                arms=tuple(float(arm == other) for other in range(len(self.sums))),
            )
            for arm, (total, size) in enumerate(zip(self.sums, self.sensitivities, strict=True))
        )


@dataclass(frozen=True, slots=True)
class MatchedEffect:
    """What phase 3 used and released: the limits, the weights that follow, all noisy sums."""

    plan: LimitsInUse
    weights: RowWeights
    sums: ArmRelease


def estimate_effect(
    study: MatchingStudy, pool: MatchPool, rule: LimitRule, rows_per_person: int, noise: Noise
) -> MatchedEffect:
    """Estimate the effect from units in order: Algorithm 3 of the paper.

    The limits k₁ and k₂ follow Equations 9 and 10 at label level, 11 and 12 at sample level. Each
    unit takes its N nearest neighbours that are still below their limit and averages them
    (Equation 4), which gives every unit the weight ``1 + Σ 1/|P(j)|`` over the units j that it
    stands in for; of several arms, neighbours are taken in each of the others. The sums of weighted
    outcomes (S₁ and S₀) are released, with the budget ε₃ of the rule (all of ε at label level).
    """
    plan = rule.plan(pool)
    weights = pool.match(rule.neighbors, plan.limits)
    return MatchedEffect(
        plan, weights, release_arm_sums(study, weights, rule.epsilon, rows_per_person, noise)
    )


def release_arm_sums(
    study: MatchingStudy, weights: RowWeights, epsilon: Fraction, rows_per_person: int, noise: Noise
) -> ArmRelease:
    """Release the weighted outcome sums of all arms, which share one ε: Ŝ₁, Ŝ₀ of Algorithm 3.

    Neighbours: one person's outcomes replaced, given the weights. Sensitivity: the largest weight
    of the arm in use times the range of the outcome, times the rows a person may have; a row is in
    one arm, so the shares of all sums add up to at most one. The paper's ``(k + 1)B`` can be too
    small and is not used. Cost: ε. Proof: docs/proofs/published.md, and of three arms or more
    docs/proofs/several-arms-label.md.
    """
    sensitivities = [max(1, rows_per_person * size * OUTCOME_STEPS) for size in weights.largest]
    totals = study.arm_sums(weights).totals
    # Of two arms the treated one is drawn first, as in the paper.
    order = [1, 0] if len(totals) == 2 else list(range(len(totals)))
    noisy = noise.laplace_disjoint(
        "outcome sums", [totals[arm] for arm in order],
        sensitivities=[sensitivities[arm] for arm in order], epsilon=epsilon,
    )  # fmt: skip
    by_code = tuple(noisy[order.index(arm)] for arm in range(len(totals)))
    return ArmRelease(by_code, tuple(sensitivities), epsilon)
