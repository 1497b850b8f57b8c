"""Our label-level estimator for three arms or more: capped weights and a staircase for every arm.

The public phase gives each arm weights that make it stand for all units (or for those of one arm),
under the cap that suits ε. The private phase releases a weighted sum of outcomes per arm: an
outcome is in one of them, so each has all of ε, and every contrast of the means is free.
Proof: docs/proofs/several-arms-label.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from private_ate.effects.estimate import ArmEstimate, Estimate
from private_ate.effects.quantities import Quantity
from private_ate.errors import ArgumentError
from private_ate.estimators.arm_overlap import warn_of_arms
from private_ate.estimators.arm_sizes import FoundArms, count_arms
from private_ate.estimators.calibrated.cap_path import fold_with_base
from private_ate.estimators.calibrated.kept_range import release_clip
from private_ate.estimators.calibrated.options import CalibratedOptions, outcome_share, plan_clip
from private_ate.estimators.calibrated.several_arms.design import Designs, pose_designs, walk_arms
from private_ate.estimators.calibrated.several_arms.facts import (
    balance_of,
    designed_balance,
    settings_of,
)
from private_ate.estimators.calibrated.several_arms.features import fit_arm_features
from private_ate.estimators.calibrated.several_arms.pooled_variance import (
    PooledVariance,
    release_variances,
)
from private_ate.estimators.calibrated.several_arms.sums import (
    ReleasedMean,
    StairRule,
    outcome_kernel,
    release_means,
)
from private_ate.estimators.calibrated.several_arms.weights import ArmWeights, settle_arms
from private_ate.estimators.request import Request
from private_ate.estimators.several_arms import estimate_from_arms
from private_ate.models.multinomial import fit_multinomial
from private_ate.privacy.noise import Noise
from private_ate.settings import ABSENT
from private_ate.study import MatchingStudy

__all__ = ["PublicPhase", "estimate_several_arms", "pose_arms", "weigh_arms"]

_INTERVAL_SHARE: Final = Fraction(1, 10)  # of ε, for the variances behind intervals
_COVERED: Final = (
    "noise, sampling and the imbalance left in measured covariates; not unmeasured confounding; "
    "like units are taken to vary about as much in every arm"
)


@dataclass(frozen=True, slots=True)
class PublicPhase:
    """What is known before ε is: sizes and designs of the arms, and whose units are meant."""

    found: FoundArms
    designs: Designs
    among: int | None


def estimate_several_arms(
    study: MatchingStudy, request: Request, options: CalibratedOptions, noise: Noise
) -> Estimate:
    """Release the means of three arms or more, and all contrasts, with calibrated weights.

    Neighbours: one person's outcomes replaced. Cost: ε, of which a tenth pays for variances if
    intervals are asked for, and ``clip_share`` for tighter bounds. Sensitivity: see
    `release_means`, `release_variances` and `release_clip`; no other step looks at an outcome.
    """
    # The matching target is for comparison with matching and has no interval of its own.
    pays_interval = request.confidence is not None and request.target == "balance"
    domain, rows = study.domain, request.rows_per_person
    clip = plan_clip(domain.bounds, options)
    of_interval = request.epsilon * (_INTERVAL_SHARE if pays_interval else 0)
    epsilon = request.epsilon * (1 - clip.share) - of_interval
    guess = outcome_share(domain.bounds, options)
    public = study.public()
    phase = pose_arms(public, request)
    rule = StairRule.of(rows, domain.treatment.size, float(epsilon), noise.outcomes)
    variance = rule.variance(float(epsilon), noise.outcomes) * clip.kept_share**2
    weights = weigh_arms(public, phase, variance, guess)
    kept, clipped = release_clip(study, clip, request, noise)
    spread = None
    if pays_interval:
        spread = release_variances(study, phase.designs, kept, of_interval, rows, noise)
    sums = fold_with_base(study, phase.designs.base, outcome_kernel(weights, kept))
    means = release_means(
        sums, kept, domain.bounds, study.size, rule=rule, epsilon=epsilon, noise=noise
    )
    balance = balance_of(study, phase.designs, weights)
    settings = settings_of(study, request, phase.found, weights, balance, means)
    notes = settings.notes if isinstance(settings.notes, tuple) else ()
    notes = (*notes, *clipped.get("notes", ()))
    settings = replace(
        replace(settings, **clipped),
        notes=notes or ABSENT,
        interval_covers=_COVERED if pays_interval else ABSENT,
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
    )
    variances = _likely_variances(weights, spread, guess, domain.bounds.width, study.size)
    unit = domain.bounds.width / study.size
    doubts = tuple((unit * guess) ** 2 * each.imbalance for each in weights)
    return estimate_from_arms(
        _arm_estimates(weights, means, variances, doubts), domain, request, settings,
        rule="convolved",
        warnings=warn_of_arms(
            public, phase.designs.arms[0].features.model, designed_balance(balance, weights),
            among=phase.among,
        ),
    )  # fmt: skip


def pose_arms(public: MatchingStudy, request: Request) -> PublicPhase:
    """Run the public phase up to the caps: sizes, propensity model, features and targets."""
    found = count_arms(public)
    among = None
    if request.among is not None:
        among = public.domain.treatment.coded.index(request.among)
    if request.target == "track":
        _refuse_tracking(public, request)
    model = fit_multinomial(public, 1.0 / public.size)
    base = None
    if request.target == "track":
        base = public.arm_pool(model.coefficients).match_sharing_ties(request.neighbors)
    designs = pose_designs(
        public, fit_arm_features(public, model), found.everyone,
        among=among, base=base, observed=found.members,
    )  # fmt: skip
    return PublicPhase(found, designs, among)


def weigh_arms(
    public: MatchingStudy, phase: PublicPhase, noise_variance: float, outcome_share: float
) -> tuple[ArmWeights, ...]:
    """Choose every arm's cap by itself and solve for its weights."""
    paths = walk_arms(public, phase.designs, noise_variance, outcome_share)
    chosen = tuple(path.choose(noise_variance, outcome_share) for path in paths)
    return settle_arms(public, phase.designs, paths, chosen)


def _refuse_tracking(public: MatchingStudy, request: Request) -> None:
    """Refuse what matching on all rows for all units cannot be asked for."""
    if request.among is not None:
        msg = "target 'track' follows matching for all units; among=… needs target 'balance'"
        raise ArgumentError(msg)
    if public.domain.outcome.missing == "public":
        msg = (
            "target 'track' follows matching on all rows, but some may have no outcome; "
            "use target 'balance', or method 'published' for matching on those that have one"
        )
        raise ArgumentError(msg)


def _likely_variances(
    weights: tuple[ArmWeights, ...],
    spread: PooledVariance | None,
    guess: float,
    width: float,
    size: int,
) -> tuple[tuple[float, ...], ...]:
    """Return likely sampling variances of every arm's mean; none without an interval.

    Sampling makes the variance among like units times the squared weights. What weights left
    unbalanced adds as much as the guessed deviation of outcomes lets one expect.
    """
    if spread is None:
        return ((),) * len(weights)
    unit = (width / size) ** 2
    found = []
    for arm, each in enumerate(weights):
        values = spread.likely_values(arm) * each.squares + guess**2 * each.imbalance
        found.append(tuple((unit * values).tolist()))
    return tuple(found)


def _arm_estimates(
    weights: tuple[ArmWeights, ...],
    means: tuple[ReleasedMean, ...],
    variances: tuple[tuple[float, ...], ...],
    biases: tuple[float, ...],
) -> tuple[ArmEstimate, ...]:
    return tuple(
        ArmEstimate(
            Quantity(released.mean, (released.law,), likely, bias),
            mean=released.mean,
            units=each.design.members,
            weighted=not each.design.is_constant(each.cap),
        )
        for each, released, likely, bias in zip(weights, means, variances, biases, strict=True)
    )
