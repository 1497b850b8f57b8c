"""Phase 3 of the paper, Algorithm 3: matching within limits, two noisy sums, the effect.

A limit says how often a unit may stand in for others (k; Equations 9 to 12 of the paper).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from private_ate.effects.estimate import Quantity
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS, WEIGHT_BITS
from private_ate.study import ArmSizes, MatchingLimits, MatchingStudy, MatchPool, RowWeights

__all__ = [
    "ArmRelease", "FixedLimit", "LimitRule", "LimitsInUse", "MatchedEffect", "estimate_effect",
    "plan_limits", "release_arm_sums",
]  # fmt: skip

_WHOLE: Final = 1 << (OUTCOME_BITS + WEIGHT_BITS)  # grid steps of an outcome at the upper bound

FixedLimit = int | None | Literal["adaptive"]


@dataclass(frozen=True, slots=True)
class LimitsInUse:
    """The limits in use, per neighbour (k) and per match (k times N), the reference arm first."""

    counts: tuple[int | None, ...]
    neighbors: int

    @property
    def limits(self) -> MatchingLimits:
        """How often a unit of each arm may be matched in all."""
        return tuple(None if k is None else k * self.neighbors for k in self.counts)


@dataclass(frozen=True, slots=True)
class LimitRule:
    """How the limits follow from a pool: by Equations 9 and 10, or 11 and 12, or as they are given.

    Attributes
    ----------
    k : "adaptive", int or None
        The limit of the smaller arm, or how it is found.
    epsilon : Fraction
        The budget of the sums: ε at label level, ε₃ at sample level.
    coefficient : float
        The error coefficient: c at label level, h at sample level.
    neighbors : int
        Units each unit is matched to (N).
    cap_at_peak : bool
        Whether M₁ bounds the limit: Equation 10 has it, Equation 12 does not.
    """

    k: FixedLimit
    epsilon: Fraction
    coefficient: float
    neighbors: int
    cap_at_peak: bool

    def plan(self, pool: MatchPool) -> LimitsInUse:
        """Return the limits in a pool."""
        return plan_limits(
            pool.arms,
            neighbors=self.neighbors,
            peak_reuse=pool.peak_reuse(self.neighbors) if self.k == "adaptive" else 0,
            epsilon=float(self.epsilon),
            coefficient=self.coefficient,
            cap_at_peak=self.cap_at_peak,
            k=self.k,
        )


def plan_limits(
    arms: ArmSizes,
    *,
    neighbors: int,
    peak_reuse: int,
    epsilon: float,
    coefficient: float,
    cap_at_peak: bool,
    k: FixedLimit = "adaptive",
) -> LimitsInUse:
    """Choose the limits of the arms from public or released quantities only.

    Adaptive: ``k* = sqrt(ε c n₁ M₁ / 2)`` with ``M₁ = M/N`` and n₁ the size of the larger arm (of
    several arms: what the smallest one has to stand in for), rounded and at least 1 (Equation 9;
    Equation 11 with ε₃ and h). The label level never goes above M₁ (Equation 10), the sample level
    does (Equation 12). An integer fixes the limit of the smallest arm; None turns limits off.
    Beyond the paper, the limit of an arm is raised to ``ceil((n − n_t)/n_t)``, below which units
    would find no match at all. Limits of larger arms are in proportion to the sizes, as in
    Algorithm 3. An arm that holds nobody has none.
    """
    occupied = [size for size in arms.counts if size]
    if k is None or len(occupied) < 2:
        return LimitsInUse((None,) * len(arms.counts), neighbors)
    if k == "adaptive":
        reuse = peak_reuse / neighbors
        ideal: float = round(math.sqrt(epsilon * coefficient * arms.others * reuse / 2))
        smallest = max(1, math.ceil(min(ideal, reuse) if cap_at_peak else ideal))
    else:
        smallest = k
    smallest = max(smallest, -(-arms.others // arms.smaller))

    def limit(size: int) -> int | None:
        if size == 0:
            return None
        return max(-(-(arms.total - size) // size), round(smallest * arms.smaller / size))

    return LimitsInUse(tuple(map(limit, arms.counts)), neighbors)


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
    totals = study.arm_sums(weights)
    # Of two arms the treated one is drawn first, as in the paper.
    order = [1, 0] if len(totals) == 2 else list(range(len(totals)))
    noisy = noise.laplace_disjoint(
        "outcome sums", [totals[arm] for arm in order],
        sensitivities=[sensitivities[arm] for arm in order], epsilon=epsilon,
    )  # fmt: skip
    by_code = tuple(noisy[order.index(arm)] for arm in range(len(totals)))
    return ArmRelease(by_code, tuple(sensitivities), epsilon)
