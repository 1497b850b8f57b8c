"""The paper's generalisation to more than two arms: one population, one ε, a mean of every arm.

For each arm t every unit outside it takes its N nearest neighbours in t by ``|e_t − e_t′|``, so
that the arm's weights add up to n and its weighted mean speaks of all n units. An outcome is in
the sum of one arm: one ε pays for all sums, and every contrast of them is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from private_ate.effects.estimate import ArmEstimate, Estimate
from private_ate.effects.quantities import Quantity
from private_ate.estimators.overlap_warning import note_few_units, warn_of_overlap
from private_ate.estimators.public_arms import count_arms, measure_arms
from private_ate.estimators.published.limits import LimitRule, LimitsInUse
from private_ate.estimators.published.regression import ScoreNoise, release_multinomial
from private_ate.estimators.published.settings import (
    PublishedLabelArmsSettings,
    PublishedSampleArmsSettings,
)
from private_ate.estimators.request import Request
from private_ate.estimators.several_arms import estimate_from_arms
from private_ate.models.multinomial import fit_multinomial
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_BITS, OUTCOME_STEPS, WEIGHT_BITS
from private_ate.release.intervals import noise_half_width
from private_ate.settings import ABSENT
from private_ate.study import MatchingStudy, MatchPool, RowWeights

__all__ = [
    "MatchedArms",
    "largest_by_label",
    "limits_by_label",
    "match_arms",
    "release_levels",
    "several_arms_at_label_level",
    "several_arms_at_sample_level",
]

_NEARLY_EQUAL: Final = 0.02  # total variation below which weights are as good as equal
_FEW_UNITS_COVERAGE: Final = 0.95  # of the noise that a note about few units speaks of
_READABLE: Final = 20  # ε of the scores from which their noise is a tenth of their range
_TOO_NOISY: Final = (
    "scores carry noise far wider than their range, so this matching removes no confounding"
)
_TOO_TIGHT: Final = (
    "the limits are so tight that matching equals a comparison of means; raise ε or set k"
)


@dataclass(frozen=True, slots=True)
class MatchedArms:
    """What matching used and gave: the limits in use and the weights that follow."""

    plan: LimitsInUse
    weights: RowWeights


def match_arms(pool: MatchPool, rule: LimitRule) -> MatchedArms:
    """Match every unit to its neighbours in every other arm, within the limits of the rule."""
    plan = rule.plan(pool)
    return MatchedArms(plan, pool.match(rule.neighbors, plan.limits))


def release_levels(
    study: MatchingStudy,
    weights: RowWeights,
    units: tuple[int, ...] | None,
    *,
    epsilon: Fraction,
    rows_per_person: int,
    noise: Noise,
) -> tuple[ArmEstimate, ...]:
    """Release the weighted mean outcome of every arm, which share one ε.

    ``units`` are the arms' sizes where those are public.

    Neighbours: one person's outcomes replaced, given the weights. Sensitivity: the largest weight
    of the arm in use times the range of the outcome, times the rows a person may have; a row is in
    one arm, so the shares of all sums add up to at most one. Cost: ε. Proof:
    docs/proofs/several-arms-label.md.
    """
    sensitivities = [max(1, rows_per_person * size * OUTCOME_STEPS) for size in weights.largest]
    noisy = noise.laplace_disjoint(
        "outcome sums", study.arm_sums(weights).totals,
        sensitivities=sensitivities, epsilon=epsilon,
    )  # fmt: skip
    bounds = study.domain.bounds
    unit, whole = bounds.width / study.size, 1 << (OUTCOME_BITS + WEIGHT_BITS)
    middle = bounds.low + bounds.width / 2
    return tuple(
        ArmEstimate(
            Quantity(
                middle + float(Fraction(total, 2 * whole)) * unit,
                (
                    NoiseDistribution(
                        "laplace", float(Fraction(sensitivity, whole)) * unit, epsilon
                    ),
                ),
            ),
            mean=middle + float(Fraction(total, 2 * whole)) * unit,
            units=None if units is None else units[arm],
        )
        for arm, (total, sensitivity) in enumerate(zip(noisy, sensitivities, strict=True))
    )


def several_arms_at_label_level(
    study: MatchingStudy, request: Request, rule: LimitRule, ridge: float, noise: Noise
) -> Estimate:
    """Match on public scores and release the means of three arms or more with all of ε.

    Neighbours: one person's outcomes replaced. Sensitivity: see `release_levels`; no other step
    looks at an outcome. Cost: ε. Proof: docs/proofs/several-arms-label.md.
    """
    public, domain = study.public(), study.domain
    units = count_arms(public).everyone.counts
    model = fit_multinomial(public, ridge)
    pool = public.arm_pool(model.coefficients)
    matched = match_arms(pool, rule)
    arms = release_levels(
        study, matched.weights, units,
        epsilon=request.epsilon, rows_per_person=request.rows_per_person, noise=noise,
    )  # fmt: skip
    balance = measure_arms(public, matched.weights)
    too_tight = matched.weights.imbalance < _NEARLY_EQUAL
    reaches = tuple(noise_half_width(_FEW_UNITS_COVERAGE, arm.level.noise) for arm in arms)
    notes = note_few_units(balance, reaches, domain.bounds.width)
    settings = PublishedLabelArmsSettings(
        neighbors=request.neighbors,
        matching_limit=limits_by_label(study, matched.plan),
        matching_order="random, drawn for this release and kept secret",
        ridge=ridge,
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        population="all n units (ATE)",
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        arms=dict(zip(domain.treatment.coded, units, strict=True)),
        largest_weight=largest_by_label(study, matched.weights),
        balance=balance.greatest,
        arm_balance=balance.by_arm,
        equals_difference_in_means=too_tight,
        noise_interval_covers="the estimate without noise; not sampling, not confounding",
        notes=((_TOO_TIGHT,) if too_tight else ()) + notes or ABSENT,
    )
    return estimate_from_arms(
        arms, domain, request, settings,
        rule="convolved", adjusted=not too_tight, warnings=warn_of_overlap(public, model, balance),
    )  # fmt: skip


def several_arms_at_sample_level(
    study: MatchingStudy,
    request: Request,
    rule: LimitRule,
    ridge: float,
    budgets: tuple[Fraction, Fraction, Fraction],
    noise: Noise,
) -> Estimate:
    """Match on noisy scores and arms and release the means of three arms or more.

    ``budgets`` are those of the model, of the scores and of the arms; the rule's is that of the
    sums. Neighbours: one person's records replaced. Sensitivity: see `release_multinomial`,
    `ScoreNoise.add`, `Noise.generalized_response` and, given noisy scores and arms,
    `release_levels`: an outcome is in the sum of one noisy arm. An arm that is empty then has the
    middle of the bounds as its mean, and its noise is drawn all the same. Cost: ε, the sum of all
    four. Proof: docs/proofs/several-arms-sample.md.
    """
    of_model, of_scores, of_arms = budgets
    rows, arms = request.rows_per_person, study.domain.treatment.size
    model = release_multinomial(study, ridge, of_model, rows, noise)
    scores = ScoreNoise(of_scores, rows, arms)
    pool = study.noisy_arm_pool(
        model.coefficients,
        scores.bits,
        lambda exact: scores.add(exact, noise),
        lambda codes: noise.generalized_response(
            "treatments", codes, arms=arms, changes=rows, epsilon=of_arms
        ),
    )
    matched = match_arms(pool, rule)
    released = release_levels(
        study, matched.weights, None, epsilon=rule.epsilon, rows_per_person=rows, noise=noise
    )
    adjusted = of_scores >= _READABLE * rows  # public numbers alone
    settings = PublishedSampleArmsSettings(
        neighbors=request.neighbors,
        matching_limit=limits_by_label(study, matched.plan),
        matching_order="random, drawn for this release and kept secret",
        ridge=ridge,
        confidence=request.coverage,
        rows_per_person=rows,
        population="all n units (ATE)",
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        noisy_arms=dict(zip(study.domain.treatment.coded, pool.arms.counts, strict=True)),
        largest_weight=largest_by_label(study, matched.weights),
        noise_interval_covers=(
            "the sums' noise only; not that of scores and treatments, not sampling, not confounding"
        ),
        notes=() if adjusted else (_TOO_NOISY,),
    )
    return estimate_from_arms(
        released, study.domain, request, settings, rule="convolved", adjusted=adjusted
    )


def limits_by_label(study: MatchingStudy, plan: LimitsInUse) -> dict[str, float | None]:
    """Return the limit k of each arm by its label."""
    return dict(zip(study.domain.treatment.coded, plan.counts, strict=True))


def largest_by_label(study: MatchingStudy, weights: RowWeights) -> dict[str, float]:
    """Return the largest weight of each arm by its label."""
    sizes = [size / (1 << WEIGHT_BITS) for size in weights.largest]
    return dict(zip(study.domain.treatment.coded, sizes, strict=True))
