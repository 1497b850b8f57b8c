"""Our label-level estimator: capped calibration weights and one staircase draw.

Covariates and treatment are public here, so any weights computed from them cost nothing. The
public phase chooses weights that balance the covariates (or follow the matching estimate) under
the cap on the largest weight that suits ε; the private phase releases one integer, the weighted
sum of outcomes, whose sensitivity is the largest weight in use times the outcome's range.
Proof: docs/proofs/calibrated.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, TypedDict

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain.weights import WEIGHTED
from private_ate.effects.estimate import Estimate
from private_ate.effects.quantities import Quantity
from private_ate.errors import ArgumentError, SchemaError
from private_ate.estimators.calibrated.cap_path import (
    CapProblem,
    fold_with_base,
    members_of,
    pose_problem,
    stop_after_minimum,
    walk_caps,
)
from private_ate.estimators.calibrated.clipping import OutcomeRange, outcomes_of
from private_ate.estimators.calibrated.features import FeatureMap, fit_features
from private_ate.estimators.calibrated.final_weights import CappedWeights, settle_weights
from private_ate.estimators.calibrated.kept_range import release_clip
from private_ate.estimators.calibrated.likeness import Likeness
from private_ate.estimators.calibrated.observed_means import (
    ObservedMeans,
    observed_kernel,
    observed_rows,
    release_observed_means,
)
from private_ate.estimators.calibrated.options import (
    CalibratedOptions,
    ClipPlan,
    outcome_share,
    plan_clip,
)
from private_ate.estimators.calibrated.pair_variance import (
    AMONG_LIKE,
    NO_PAIRS,
    PairSums,
    PairVariance,
    add_pairs,
    release_pair_variance,
)
from private_ate.estimators.calibrated.rich_features import RichFeatureMap, grow_features
from private_ate.estimators.calibrated.settings import (
    TRIMMED,
    CalibratedSettings,
    SamplingNote,
)
from private_ate.estimators.calibrated.several_arms.method import estimate_several_arms
from private_ate.estimators.calibrated.solver import Solution
from private_ate.estimators.composition import options_of
from private_ate.estimators.overlap_alarm import WeightedArms, warn_of_overlap
from private_ate.estimators.published.method import require_both_arms
from private_ate.estimators.request import Request
from private_ate.models.logistic import fit_logistic
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import (
    staircase_and_normal_quantile,
    staircase_quantile,
    two_staircase_quantile,
)
from private_ate.privacy.sum_law import SumLaw
from private_ate.privacy.sums import (
    OUTCOME_BITS,
    OUTCOME_STEPS,
    WEIGHT_BITS,
    quantize_weights,
    weighted_sum,
)
from private_ate.release.intervals import half_width, noise_half_width
from private_ate.settings import ABSENT, Absent, ArmCounts, ArmNumbers
from private_ate.study import ArmSizes, Block, MatchingStudy

__all__ = [
    "INTERVAL_SHARE",
    "CalibratedOptions",
    "ClipPlan",
    "Features",
    "error_deviations",
    "estimate_calibrated",
    "estimate_cell",
    "expected_variance",
    "imbalance_doubt",
    "imbalance_of",
    "learn_features",
    "outcome_share",
    "plan_clip",
    "pose_caps",
]

Features = FeatureMap | RichFeatureMap

INTERVAL_SHARE: Final = Fraction(1, 10)  # of ε, for the variance behind `interval`
_MOST_EXPLAINED: Final = 4.0  # times its variance among like units, an outcome's whole variance
_LAPLACE_VARIANCE: Final = 5.0  # of a difference of two ratios, in squared sensitivities over ε²
_LEFT_OUT: Final = (
    "{0} of {1} rows have no outcome ({2} treated, {3} control) and were left out; the others are "
    "weighted to resemble all rows, which assumes that missingness depends on covariates and "
    "treatment alone"
)
_RATIO: Final = (
    "rows without an outcome were left out by a private ratio, which assumes that within an arm "
    "missingness depends on nothing that the outcome depends on: weights cannot look at who is "
    "missing, so missingness by covariates is not corrected"
)


@dataclass(frozen=True, slots=True)
class _OutcomeSums:
    """Exact integer sums over outcomes, and the largest weights beside them."""

    treated: int
    control: int
    largest_treated: int
    largest_control: int

    def __add__(self, other: _OutcomeSums) -> _OutcomeSums:
        return _OutcomeSums(
            self.treated + other.treated,
            self.control + other.control,
            max(self.largest_treated, other.largest_treated),
            max(self.largest_control, other.largest_control),
        )


def estimate_calibrated(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Estimate the ATE, ATT or ATC with calibrated weights at label level."""
    return estimate_cell(study, request, noise, None)


def estimate_cell(
    study: MatchingStudy, request: Request, noise: Noise, learned: Features | None
) -> Estimate:
    """Estimate the same of some rows, with features of two arms that were learnt from more.

    ``learned`` is None where the features are those of the rows themselves.
    """
    options = options_of(request, CalibratedOptions, "calibrated")
    if study.domain.treatment.size > 2:
        return estimate_several_arms(study, request, options, noise)
    # The matching target is for comparison with matching and has no interval of its own.
    pays_interval = request.confidence is not None and request.target == "balance"
    share = INTERVAL_SHARE if pays_interval else Fraction(0)
    clip = plan_clip(study.domain.bounds, options)
    epsilon = request.epsilon * (1 - share - clip.share)
    guess = outcome_share(study.domain.bounds, options)
    rows = request.rows_per_person
    public = study.public()
    problem = pose_caps(public, request, learned)
    kept, clip_settings = release_clip(study, clip, request, noise)
    sampling, spread = None, guess
    if pays_interval:
        sampling = _release_variance(study, problem, kept, guess, request, noise)
        if study.domain.outcome.missing != "private":  # else a part of it only, not yet known
            spread = sampling.corrected_guess()
    variance = _noise_variance(study, epsilon, noise.outcomes) * (rows * clip.kept_share) ** 2
    path = walk_caps(public, problem, stop_after_minimum(variance, spread))
    weights = settle_weights(public, path, path.choose(variance, spread))
    released: _ReleasedSums | _ReleasedMeans
    shares = (1.0, 1.0)
    if study.domain.outcome.missing == "private":
        released = _release_means(
            study, weights, kept, epsilon, request, noise, means=options.means
        )
        shares = released.shares
    else:
        sums = fold_with_base(study, problem.base, _outcome_kernel(weights, kept))
        released = _release_sums(sums, study, kept, epsilon, request, noise, means=options.means)
    interval, variances, bias = None, (), 0.0
    if sampling is not None:
        unit = study.domain.bounds.width / study.size
        likely = sampling.given_seen(_paired_share(problem, shares)).likely_values()
        deviations = unit * error_deviations(problem, weights.solutions, guess, likely, shares)
        half = released.half_width(request.coverage, deviations)
        variances = tuple((deviations**2).tolist())
        bias = unit**2 * imbalance_doubt(problem, weights.solutions, guess, likely)
        interval = _clamp_pair(released.ate - half, released.ate + half, study)
    settings = _settings(request, weights, study)
    if isinstance(settings.notes, tuple) and "notes" in clip_settings:
        clip_settings["notes"] = (*settings.notes, *clip_settings["notes"])
    settings = replace(
        settings,
        interval_covers=_covered(weights) if pays_interval else ABSENT,
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        **clip_settings,
        **released.means,
    )
    settings = replace(settings, **_missing_settings(settings, weights, study, released))
    half = released.noise_half(request.coverage)
    return Estimate(
        released.ate, (released.ate - half, released.ate + half), interval, settings,
        warnings=_warn(public, weights, settings, request),
        quantities=(Quantity(released.ate, released.laws, variances, bias),),
        overlap=problem.overlap,
    )  # fmt: skip


def _warn(
    public: MatchingStudy, weights: CappedWeights, settings: CalibratedSettings, request: Request
) -> tuple[str, ...]:
    """Sound the overlap alarm; everything that it looks at is public."""
    arms, worth = settings.arms, settings.effective_arms
    units = weights.problem.units
    # What sampling weights cost is the design's doing, not a want of overlap.
    sizes = (arms.treated, arms.control) if units is None else units.whole
    weighted = WeightedArms(sizes, (worth.treated, worth.control), settings.balance)
    coefficients = weights.problem.features.coefficients
    return warn_of_overlap(public, coefficients, weighted, request.estimand)


def _noise_variance(study: MatchingStudy, epsilon: Fraction, outcomes: int) -> float:
    """Return the variance of the estimate's noise, in squared sensitivities; public."""
    if study.domain.outcome.missing == "private":
        return _LAPLACE_VARIANCE / float(epsilon) ** 2
    return SumLaw.of(outcomes, epsilon).variance


class _Missing(TypedDict, total=False):
    """What a release says about rows without an outcome, where they are left out."""

    left_out_outcome: int
    observed_share: ArmNumbers
    notes: tuple[str, ...]


def _missing_settings(
    settings: CalibratedSettings,
    weights: CappedWeights,
    study: MatchingStudy,
    released: _ReleasedSums | _ReleasedMeans,
) -> _Missing:
    """Count left-out rows where they are public, report their released shares where not."""
    notes = settings.notes if isinstance(settings.notes, tuple) else ()
    if isinstance(released, _ReleasedMeans):
        return {"observed_share": ArmNumbers(*released.shares), "notes": (*notes, _RATIO)}
    if study.domain.outcome.missing != "public":
        return {}
    everyone = study.public().fold(_count_arms, title="arms")
    used = weights.problem.arms
    if weights.problem.units is not None:  # rows of weight zero take no part either
        used = study.public().fold(_count_observed, title="arms")
    treated, control = everyone.treated - used.treated, everyone.control - used.control
    if treated + control == 0:
        return {"left_out_outcome": 0}
    note = _LEFT_OUT.format(treated + control, study.size, treated, control)
    return {"left_out_outcome": treated + control, "notes": (*notes, note)}


def _covered(weights: CappedWeights) -> str:
    """Say what the interval covers."""
    features = weights.problem.features
    if isinstance(features, FeatureMap):
        return (
            "noise, sampling and the imbalance left in measured covariates; not unmeasured "
            "confounding"
        )
    bent = features.terms.hinged.size + features.terms.left.size
    more = f"{bent} bends and products of them" if bent else "squares"
    return (
        f"noise, sampling and the imbalance left in measured covariates, {more} and functions of "
        "the score; not unmeasured confounding"
    )


def pose_caps(
    public: MatchingStudy, request: Request, learned: Features | None = None
) -> CapProblem:
    """Run the public phase up to the caps: arms, propensity model, features and targets.

    Features that were ``learned`` from more rows are balanced as they are; how the arms differ
    before any weighting stays that of these rows.
    """
    arms = public.fold(_count_arms, title="arms")
    require_both_arms(arms)
    observed = None
    if public.domain.outcome.missing == "public":
        observed = public.fold(_count_observed, title="arms")
        _require_outcomes(observed, request)
    if public.domain.weights is not None:
        observed = public.fold(_count_members, title="arms")
    if request.target == "track" and request.estimand != "ate":
        msg = "target 'track' follows matching for the ATE; other estimands need target 'balance'"
        raise ArgumentError(msg)
    base = None
    if request.target == "track":
        plain = _plain_features(public)
        base = public.pool(plain.coefficients).match_sharing_ties(request.neighbors)
        features: Features = plain
    elif learned is not None:
        features = _with_arms_of(public, learned)
    else:
        features = learn_features(public, request)
    return pose_problem(
        public, features, arms,
        estimand=request.estimand, base=base, observed=observed, is_centred=learned is None,
    )  # fmt: skip


def learn_features(public: MatchingStudy, request: Request) -> Features:
    """Learn from public rows what the weights of two arms balance."""
    plain = _plain_features(public)
    options = request.options
    wanted = options.terms if isinstance(options, CalibratedOptions) else "growing"
    return grow_features(public, plain) if wanted == "growing" else plain


def _plain_features(public: MatchingStudy) -> FeatureMap:
    return fit_features(public, fit_logistic(public, 1.0 / public.size).coefficients)


def _with_arms_of(public: MatchingStudy, learned: Features) -> Features:
    """Return features with the arms' means and spread of these rows."""
    plain = learned if isinstance(learned, FeatureMap) else learned.plain
    own = fit_features(public, plain.coefficients)
    plain = replace(plain, arm_means=own.arm_means, pooled_deviation=own.pooled_deviation)
    return plain if isinstance(learned, FeatureMap) else replace(learned, plain=plain)


def _require_outcomes(observed: ArmSizes, request: Request) -> None:
    """Refuse what rows that are publicly known to have no outcome leave undone."""
    if observed.has_empty:
        empty = "treated" if observed.treated == 0 else "control"
        msg = f"no {empty} unit has an outcome: check the outcome column"
        raise SchemaError(msg)
    if request.target == "track":
        msg = (
            "target 'track' follows matching on all rows, but some may have no outcome; "
            "use target 'balance', or method 'published' for matching on those that have one"
        )
        raise ArgumentError(msg)


class _Means(TypedDict, total=False):
    """Both means and their ratios, where they were asked for and make sense."""

    means: ArmNumbers
    risk_ratio: float | None
    odds_ratio: float | None


@dataclass(frozen=True, slots=True)
class _ReleasedSums:
    """The noisy effect, the size of one noise step per arm or in all, and what to report."""

    ate: float
    scales: tuple[float, ...]  # sensitivity of the effect to one outcome, per draw of noise
    law: SumLaw  # of each draw
    means: _Means

    @property
    def epsilon(self) -> float:
        """The ε of each draw."""
        return float(self.law.epsilon)

    @property
    def laws(self) -> tuple[NoiseDistribution, ...]:
        """The laws of the effect's independent noises."""
        return tuple(NoiseDistribution.of_sum(self.law, scale) for scale in self.scales)

    def noise_half(self, coverage: float) -> float:
        """Return the half-width that covers the noise alone."""
        if self.law.outcomes > 1:
            return noise_half_width(coverage, self.laws)
        if len(self.scales) == 1:
            return self.scales[0] * staircase_quantile(coverage, self.epsilon)
        return two_staircase_quantile(coverage, self.epsilon, *self.scales)

    def half_width(self, coverage: float, deviations: Floats) -> float:
        """Return the half-width that covers the noise and a normal error of unsure size."""
        if self.law.outcomes > 1:
            return half_width(coverage, self.laws, [(deviations**2).tolist()], "convolved")
        if len(self.scales) == 1:
            return staircase_and_normal_quantile(coverage, self.epsilon, self.scales[0], deviations)
        # Two draws: the sum of both quantiles, which covers at least as much.
        sampling = staircase_and_normal_quantile(coverage, self.epsilon, 0.0, deviations)
        return self.noise_half(coverage) + sampling


@dataclass(frozen=True, slots=True)
class _ReleasedMeans:
    """Two released ratios in units of the outcome, and what to report."""

    released: ObservedMeans
    width: float
    means: _Means

    @property
    def laws(self) -> tuple[NoiseDistribution, ...]:
        """None: the noise of a ratio has no law of its own."""
        return ()

    @property
    def shares(self) -> tuple[float, float]:
        """The released share of each arm's weight that is observed."""
        return self.released.treated.share, self.released.control.share

    @property
    def ate(self) -> float:
        """The noisy effect."""
        return _clamp(self.width * self.released.effect, self.width)

    def noise_half(self, coverage: float) -> float:
        """Return the half-width that covers the noise alone."""
        return self.width * self.released.noise_half(coverage)

    def half_width(self, coverage: float, deviations: Floats) -> float:
        """Return the half-width that covers the noise and a normal error of unsure size."""
        return self.width * self.released.half_width(coverage, deviations / self.width)


def _release_means(
    study: MatchingStudy,
    weights: CappedWeights,
    kept: OutcomeRange,
    epsilon: Fraction,
    request: Request,
    noise: Noise,
    *,
    means: bool,
) -> _ReleasedMeans:
    """Release both arms' means over private sets of rows."""
    base, bounds = weights.problem.base, study.domain.bounds
    arms = fold_with_base(study, base, observed_kernel(weights, kept))
    released = release_observed_means(
        arms, kept, study.size,
        epsilon=epsilon, rows=request.rows_per_person, noise=noise,
    )  # fmt: skip
    middle = bounds.low + bounds.width * kept.middle / OUTCOME_STEPS
    levels = [
        min(max(middle + bounds.width * arm.mean, bounds.low), bounds.high)
        for arm in (released.treated, released.control)
    ]
    # Each arm's noisy mean is released here in any case; of a binary outcome both are shown.
    is_shown = means or study.domain.bounds.is_binary
    shown = _means_and_ratios(levels, study) if is_shown else _Means()
    return _ReleasedMeans(released, bounds.width, shown)


def _release_sums(
    sums: _OutcomeSums,
    study: MatchingStudy,
    kept: OutcomeRange,
    epsilon: Fraction,
    request: Request,
    noise: Noise,
    *,
    means: bool,
) -> _ReleasedSums:
    """Release the weighted sum of outcomes, or that of each arm, with staircase noise.

    Neighbours: one person's outcomes replaced; the weights are public. Sensitivity: the largest
    integer weight in use (of each arm, if released apart) times the outcome's range, times the
    rows a person may have. Cost: ε. Proof: docs/proofs/calibrated.md.
    """
    rows, bounds = request.rows_per_person, study.domain.bounds
    unit = bounds.width / study.size
    whole = 1 << (OUTCOME_BITS + WEIGHT_BITS)
    if not means:
        largest = max(1, rows * max(sums.largest_treated, sums.largest_control) * kept.width)
        noisy = noise.staircase(
            "outcome sum", sums.treated - sums.control, sensitivity=largest, epsilon=epsilon
        )
        ate = _clamp(float(Fraction(noisy, 2 * whole)) * unit, bounds.width)
        scale = float(Fraction(largest, whole)) * unit
        return _ReleasedSums(ate, (scale,), SumLaw.of(noise.outcomes, epsilon), {})
    sensitivities = [
        max(1, rows * largest * kept.width)
        for largest in (sums.largest_treated, sums.largest_control)
    ]
    exact = [sums.treated, sums.control]
    if rows == 1:
        noisy_arms = noise.staircase_disjoint(
            "outcome sums", exact, sensitivities=sensitivities, epsilon=epsilon
        )
    else:  # a person with several rows may be in both arms, so the sums share the budget
        epsilon /= 2
        noisy_arms = [
            noise.staircase(f"outcome sum, {name}", value, sensitivity=size, epsilon=epsilon)
            for name, value, size in zip(("treated", "control"), exact, sensitivities, strict=True)
        ]
    middle = bounds.low + bounds.width * kept.middle / OUTCOME_STEPS
    levels = [
        min(max(middle + float(Fraction(total, 2 * whole)) * unit, bounds.low), bounds.high)
        for total in noisy_arms
    ]
    scales = tuple(float(Fraction(size, whole)) * unit for size in sensitivities)
    means_and_ratios = _means_and_ratios(levels, study)
    law = SumLaw.of(noise.outcomes, epsilon)
    return _ReleasedSums(levels[0] - levels[1], scales, law, means_and_ratios)


def _means_and_ratios(levels: list[float], study: MatchingStudy) -> _Means:
    """Report both means and, for a declared binary outcome, the ratios that follow for free."""
    treated, control = levels
    means = ArmNumbers(treated, control)
    if not study.domain.bounds.is_binary:
        return {"means": means}
    odds = control * (1 - treated)
    return {
        "means": means,
        "risk_ratio": treated / control if control > 0 else None,
        "odds_ratio": treated * (1 - control) / odds if odds > 0 else None,
    }


def _release_variance(
    study: MatchingStudy,
    problem: CapProblem,
    kept: OutcomeRange,
    guess: float,
    request: Request,
    noise: Noise,
) -> PairVariance:
    """Spend the interval's share on the variance of outcomes, before weights are chosen.

    Arms count by their equal weights, whatever cap is chosen later: it may then follow what was
    released, and no rare, large weight makes the variance's noise.
    """
    features = problem.features
    likeness = Likeness.of(features if isinstance(features, FeatureMap) else features.plain)
    is_private = study.domain.outcome.missing == "private"

    def kernel(block: Block) -> PairSums:
        order = likeness.order(block.covariates)
        arms = (block.treatment, ~block.treatment) if is_private else members_of(block)
        outcomes = kept.centre(outcomes_of(block))
        seen = observed_rows(block) if is_private else None
        sums = NO_PAIRS
        for arm, weight in zip(arms, problem.equal_weights, strict=True):
            members = order[arm[order]]
            sums += add_pairs(
                np.full(members.size, weight), outcomes[members], kept.width,
                None if seen is None else seen[members],
            )  # fmt: skip
        return sums

    return release_pair_variance(
        study.fold(kernel, title="variance"),
        guess,
        kept.width / OUTCOME_STEPS,
        request.epsilon * INTERVAL_SHARE,
        request.rows_per_person,
        noise,
    )


def expected_variance(
    problem: CapProblem, guess: float, clip: ClipPlan, epsilon: float, request: Request
) -> PairVariance:
    """Return the variance that a release would know if outcomes spread as guessed.

    For plans: how noisy it is follows from the arms' sizes, ε and the range that is kept.
    """
    squares = [weight**2 for weight in problem.equal_weights]
    whole = sum(weight * problem.rows for weight in problem.equal_weights)
    scale = request.rows_per_person * max(squares) * clip.kept_share**2 / epsilon / whole
    return PairVariance(
        AMONG_LIKE * guess**2, scale, clip.kept_share**2 / 4, guess, outcomes=request.outcomes
    )


def _outcome_kernel(
    weights: CappedWeights, kept: OutcomeRange
) -> Callable[[Block, Floats | None], _OutcomeSums]:
    def kernel(block: Block, base: Floats | None) -> _OutcomeSums:
        values = weights.of(block, base)
        centred = kept.centre(outcomes_of(block))
        totals, largest = [], []
        for members in members_of(block):
            steps = quantize_weights(values[members])
            totals.append(weighted_sum(steps, centred[members]))
            largest.append(int(steps.max(initial=0)))
        return _OutcomeSums(totals[0], totals[1], largest[0], largest[1])

    return kernel


def _paired_share(problem: CapProblem, shares: tuple[float, float]) -> float:
    """Return the share of the squared weight in pairs of which both have an outcome.

    It assumes that members of a pair lack one independently of each other.
    """
    sizes = (problem.arms.treated, problem.arms.control)
    squares = [size * weight**2 for size, weight in zip(sizes, problem.equal_weights, strict=True)]
    seen = sum(square * share**2 for square, share in zip(squares, shares, strict=True))
    return seen / max(sum(squares), 1e-300)


def error_deviations(
    problem: CapProblem,
    solutions: tuple[Solution, Solution],
    guess: float,
    variances: Floats,
    shares: tuple[float, float] = (1.0, 1.0),
) -> Floats:
    """Return the standard deviation of n/B times an estimate's error apart from its noise.

    ``variances`` are those that an outcome may have among like units, in units of the squared
    range. Sampling makes that variance times the squared weights. What weights left unbalanced
    makes an error through outcomes that lean on it: as much as their guessed deviation lets one
    expect, unless what was paid for says that outcomes spread far less. ``shares`` of the arms'
    weights are observed: a mean over fewer varies more.
    """
    squares = sum(
        solution.sums.squares / share for solution, share in zip(solutions, shares, strict=True)
    )
    spread = _leaning(guess, variances)
    deviations: Floats = np.sqrt(variances * squares + spread * imbalance_of(problem, solutions))
    return deviations


def imbalance_doubt(
    problem: CapProblem, solutions: tuple[Solution, Solution], guess: float, variances: Floats
) -> float:
    """Return how much of the squared `error_deviations` imbalance makes, in the mean."""
    return float(_leaning(guess, variances).mean()) * imbalance_of(problem, solutions)


def _leaning(guess: float, variances: Floats) -> Floats:
    """Return how far outcomes may lean on what is unbalanced: their squared deviation."""
    return np.asarray(np.minimum(guess**2, _MOST_EXPLAINED * variances))


def imbalance_of(problem: CapProblem, solutions: tuple[Solution, Solution]) -> float:
    """Return ``‖Fᵀw − g‖²`` over both arms: what calibration left unbalanced.

    Features count as much as the class of outcomes gives them that an interval covers.
    """
    doubt = problem.features.doubt
    return sum(
        float(((doubt * (solution.sums.features - target.target)) ** 2).sum())
        for solution, target, fixed in zip(solutions, problem.targets, problem.fixed, strict=True)
        if not fixed
    )


def _settings(request: Request, weights: CappedWeights, study: MatchingStudy) -> CalibratedSettings:
    """Return what the public phase knows; the private phase adds what it released."""
    speaks_of = {
        "ate": "all n units (ATE)",
        "att": "the treated units (ATT)",
        "atc": "the control units (ATC)",
        "ato": "all n units by their overlap, e(1 - e) (ATO)",
    }
    arms = weights.problem.arms
    treated, control = (weights.problem.rows**2 / item.sums.squares for item in weights.solutions)
    sampled, notes = _sampling_facts(weights, study)
    return CalibratedSettings(
        estimand=request.estimand,
        target=request.target,
        neighbors=request.neighbors if request.target == "track" else None,
        weight_cap=weights.cap,
        confidence=request.coverage,
        rows_per_person=request.rows_per_person,
        population=speaks_of[request.estimand] + ("" if sampled is ABSENT else WEIGHTED),
        arms=ArmCounts(arms.treated, arms.control),
        effective_arms=ArmNumbers(treated, control),
        balance=_balance(weights, study),
        noise_interval_covers="the estimate without noise; not sampling, not confounding",
        sampling_weights=sampled,
        notes=notes,
        budget={},
    )


def _sampling_facts(
    weights: CappedWeights, study: MatchingStudy
) -> tuple[SamplingNote | Absent, tuple[str, ...] | Absent]:
    """Say which sampling weights are in force, and whether the cap binds below the largest."""
    units, declared = weights.problem.units, study.domain.weights
    if units is None or declared is None:
        return ABSENT, ABSENT
    note = SamplingNote(
        declared.column, declared.high, max(units.largest), ArmNumbers(*units.worth)
    )
    if weights.cap >= units.heaviest:
        return note, ABSENT
    return note, (TRIMMED.format(weights.cap, units.heaviest),)


def _balance(weights: CappedWeights, study: MatchingStudy) -> dict[str, tuple[float, float]]:
    """Return standardised mean differences of the public covariates, before and after."""
    features = weights.problem.features
    before = (features.arm_means[0] - features.arm_means[1]) / features.pooled_deviation
    after = np.zeros_like(before)
    sums = [solution.sums.features[: features.linear.size] for solution in weights.solutions]
    moved = (sums[0] - sums[1]) / features.linear_scale / weights.problem.rows
    after[features.linear] = moved / features.pooled_deviation[features.linear]
    return {
        name: (float(before[index]), float(after[index]))
        for index, name in enumerate(study.domain.features)
    }


def _count_arms(block: Block) -> ArmSizes:
    treated = int(np.count_nonzero(block.treatment))
    return ArmSizes.of(treated, block.treatment.size - treated)


def _count_observed(block: Block) -> ArmSizes:
    return _count_members(replace(block, weights=None))


def _count_members(block: Block) -> ArmSizes:
    treated, control = (int(np.count_nonzero(arm)) for arm in members_of(block))
    return ArmSizes.of(treated, control)


def _clamp(value: float, width: float) -> float:
    return min(max(value, -width), width)


def _clamp_pair(low: float, high: float, study: MatchingStudy) -> tuple[float, float]:
    width = study.domain.bounds.width
    return _clamp(low, width), _clamp(high, width)
