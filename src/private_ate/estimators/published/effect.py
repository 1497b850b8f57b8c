"""Phase 3 of the paper, Algorithm 3: counterfactuals within limits, two noisy sums, the effect."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from private_ate.effects.estimate import Estimate
from private_ate.effects.quantities import Quantity
from private_ate.estimators.published.limits import LimitRule, LimitsInUse
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS, WEIGHT_BITS
from private_ate.release.intervals import noise_half_width
from private_ate.settings import Settings
from private_ate.study import MatchingStudy, MatchPool, RowWeights

__all__ = ["ArmRelease", "MatchedEffect", "estimate_effect", "release_arm_sums"]


@dataclass(frozen=True, slots=True)
class ArmRelease:
    """Both released sums (Ŝ₁ and Ŝ₀) in half grid steps, and the Laplace scales of their noise."""

    treated: int
    control: int
    scales: tuple[float, float]

    def estimate(self, study: MatchingStudy, coverage: float, settings: Settings) -> Estimate:
        """Turn the sums into the effect in units of the outcome: ``τ̂ = Ŝ₁/n − Ŝ₀/n``."""
        unit = study.domain.bounds.width / study.size
        steps = Fraction(self.treated - self.control, 1 << (OUTCOME_BITS + WEIGHT_BITS + 1))
        ate = float(steps) * unit
        # Laplace noise is fixed by its scale: a sensitivity of that size at an ε of one.
        noise = tuple(NoiseDistribution("laplace", scale * unit, 1.0) for scale in self.scales)
        half = noise_half_width(coverage, noise)
        return Estimate.of(Quantity(ate, noise, noise_interval=(ate - half, ate + half)), settings)


@dataclass(frozen=True, slots=True)
class MatchedEffect:
    """What phase 3 used and released: the limits, the weights that follow, both noisy sums."""

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
    stands in for. The sums of weighted outcomes S₁ and S₀ are released, with the budget ε₃ of the
    rule (all of ε at label level).
    """
    plan = rule.plan(pool)
    weights = pool.match(rule.neighbors, plan.limits)
    return MatchedEffect(
        plan, weights, release_arm_sums(study, weights, rule.epsilon, rows_per_person, noise)
    )


def release_arm_sums(
    study: MatchingStudy, weights: RowWeights, epsilon: Fraction, rows_per_person: int, noise: Noise
) -> ArmRelease:
    """Release the weighted outcome sums of both arms, which share one ε: Ŝ₁, Ŝ₀ of Algorithm 3.

    Neighbours: one person's outcomes replaced, given the weights. Sensitivity: the largest weight
    of the arm times the range of the outcome, times the rows a person may have; a row is in one
    arm, so the shares of both sums add up to at most one. The paper's ``(k + 1)B`` can be too
    small and is not used. Cost: ε. Proof: docs/proofs/published.md.
    """
    sensitivities = [
        max(1, rows_per_person * largest * OUTCOME_STEPS)
        for largest in (weights.largest_treated, weights.largest_control)
    ]
    sums = study.arm_sums(weights)
    treated, control = noise.laplace_disjoint(
        "outcome sums", [sums.treated, sums.control], sensitivities=sensitivities, epsilon=epsilon
    )
    whole = 1 << (OUTCOME_BITS + WEIGHT_BITS)
    first, second = (float(Fraction(s, whole) / epsilon) for s in sensitivities)
    return ArmRelease(treated, control, (first, second))
