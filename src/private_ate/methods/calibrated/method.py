"""Our label-level estimator: capped calibration weights and staircase noise.

Covariates and treatment are public here, so any weights computed from them cost nothing. The
public half (`design`, `weights`) makes every arm resemble the units that are meant, under the cap
on the largest weight that suits ε. The private half (`private`) releases the weighted sums of
outcomes, whose sensitivity is the largest weight in use times the outcome's range. Before it, a
public share of ε pays for the outcome's variance (`variance`), which intervals are made of and
which the cap follows. Proof: docs/proofs/calibrated.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain import Interval
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.methods.calibrated.clipping import (
    OutcomeRange,
    outcomes_of,
    release_clip,
)
from private_ate.methods.calibrated.design import Design, Learned, pose
from private_ate.methods.calibrated.effects import (
    estimate_contrast,
    estimate_quantities,
    means_and_ratios,
)
from private_ate.methods.calibrated.notes import (
    RATIO_NOTE,
    few_units_of,
    settings_of,
    warnings_of,
)
from private_ate.methods.calibrated.observed_means import (
    add_observed,
    release_observed_means,
)
from private_ate.methods.calibrated.options import (
    CalibratedOptions,
    outcome_share,
    plan_clip,
)
from private_ate.methods.calibrated.private import (
    Errors,
    Form,
    NoiseRule,
    add_outcomes,
    draws_of,
    forms_of,
    release_quantities,
)
from private_ate.methods.calibrated.settings import CalibratedArmsSettings, CalibratedSettings
from private_ate.methods.calibrated.variance import (
    PairVariance,
    release_pair_variance,
    share_for_variance,
)
from private_ate.methods.calibrated.weights import PublicWeights, weigh
from private_ate.methods.composition import options_of
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.settings import ABSENT, ArmNumbers
from private_ate.study import MatchingStudy

__all__ = [
    "Budget", "error_variances", "estimate_calibrated", "estimate_rows", "imbalance_weight",
    "learn_from_all", "plan_budget",
]  # fmt: skip

_MOST_EXPLAINED = 4.0  # times its variance among like rows, an outcome's whole variance
_LAPLACE_VARIANCE = 5.0  # of a difference of two ratios, in squared sensitivities over ε²


@dataclass(frozen=True, slots=True)
class Budget:
    """How ε is divided, and which linear forms of the arms' sums it releases; public.

    ``noise_variance`` is that of a form, in squared weights of one row times the declared range.
    """

    clip: Fraction
    variance: Fraction
    sums: Fraction
    forms: tuple[Form, ...]
    noise_variance: float


def estimate_calibrated(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Estimate effects with calibrated weights at label level, of two arms or more."""
    return estimate_rows(study, request, noise, None)


def estimate_rows(
    study: MatchingStudy, request: Request, noise: Noise, learned: Learned | None
) -> Estimate:
    """Estimate the same of some rows; ``learned`` is what a subgroup takes over from all rows.

    Neighbours: one person's outcomes replaced. Cost: ε: tighter bounds, the variance and the sums
    have shares of it that add up. Sensitivity: see `release_clip`, `release_pair_variance` and
    `release_quantities`; no other step looks at an outcome.
    """
    options = options_of(request, CalibratedOptions, "calibrated")
    domain, rows = study.domain, request.rows_per_person
    is_private = domain.outcome.missing == "private"
    public = study.public()
    design = pose(public, request, learned)
    budget = plan_budget(
        design, domain.bounds, request, options, noise.outcomes, has_private_gaps=is_private
    )
    guess = outcome_share(domain.bounds, options)
    kept, clip_notes = release_clip(study, plan_clip(domain.bounds, options), request, noise)
    spread, sampling = guess, None
    if budget.variance:
        sampling = release_pair_variance(study, design, kept, guess, budget.variance, rows, noise)
        if not is_private:  # else a part of it only, not yet known
            spread = sampling.corrected_guess()
    draws = draws_of(budget.forms)
    weights = weigh(public, design, draws, budget.noise_variance, spread)
    settings = settings_of(study, request, weights, clip_notes, pays=bool(budget.variance))
    warnings = warnings_of(public, weights, request)
    if isinstance(settings, CalibratedSettings) and is_private:
        half = _PublicHalf(weights, budget, kept, sampling, settings, warnings)
        return _estimate_ratios(study, request, half, noise)
    quantities = release_quantities(
        [
            total
            for (total,) in add_outcomes(
                study, weights, lambda block: (kept.centre(outcomes_of(block)),)
            )
        ],
        [largest * kept.width for largest in weights.largest],
        budget.forms, _errors_of(weights, spread, sampling, domain.bounds),
        bounds=domain.bounds, middle=_middle(kept, domain.bounds), size=study.size,
        epsilon=budget.sums, rows=rows, noise=noise,
    )  # fmt: skip
    settings = replace(settings, budget={one.step: float(one.epsilon) for one in noise.spends})
    if isinstance(settings, CalibratedArmsSettings):
        notes = settings.notes if isinstance(settings.notes, tuple) else ()
        notes = (*few_units_of(study, weights, quantities), *notes)
        settings = replace(settings, notes=notes or ABSENT)
    return estimate_quantities(quantities, weights, domain, request, settings, warnings)


def learn_from_all(public: MatchingStudy, request: Request, subgroups: int) -> Learned:
    """Return features and weights of all rows that the rows of so many subgroups take over.

    The noise of rolled-up totals is that of all subgroups, so that the cap reckons with it.
    """
    options = options_of(request, CalibratedOptions, "calibrated")
    design = pose(public, request)
    budget = plan_budget(design, public.domain.bounds, request, options, request.outcomes)
    weights = weigh(
        public, design, draws_of(budget.forms), subgroups * budget.noise_variance,
        outcome_share(public.domain.bounds, options),
    )  # fmt: skip
    return Learned(design.questions, weights.of)


def plan_budget(
    design: Design,
    bounds: Interval,
    request: Request,
    options: CalibratedOptions,
    outcomes: int,
    *,
    epsilon: Fraction | None = None,
    has_private_gaps: bool = False,
) -> Budget:
    """Divide the request's ε, or another that a plan asks about, by public numbers alone.

    Weights that follow matching are for comparison with it and have no interval of their own.
    """
    clip = plan_clip(bounds, options)
    # Where who lacks an outcome is private, both means are released anyway.
    forms = forms_of(len(design.arms), means=options.means and not has_private_gaps)
    rows, share = request.rows_per_person, Fraction(0)
    whole = request.epsilon if epsilon is None else epsilon
    left = whole * (1 - clip.share)
    if request.confidence is not None and request.target == "balance":
        share = share_for_variance(design, draws_of(forms), left, rows, outcomes)
    sums = left * (1 - share)
    variance = NoiseRule.of(rows, len(forms), sums, outcomes).variance(sums, outcomes)
    if has_private_gaps:
        variance = _LAPLACE_VARIANCE * rows**2 / float(sums) ** 2
    return Budget(whole * clip.share, left * share, sums, forms, variance * clip.kept_share**2)


def error_variances(
    weights: PublicWeights, spread: float, variances: Floats, shares: Sequence[float] = ()
) -> list[tuple[Floats, float]]:
    """Return of each arm the squared error of n/B times its mean apart from noise, and its bias.

    ``variances`` are those that an outcome may have among like rows, in squared ranges. Sampling
    adds that variance times the squared weights. Residual imbalance adds bias of at most the
    outcome's standard deviation times the imbalance. ``spread`` is that deviation, the guess as
    the released variance corrected it; a likely variance that is far smaller limits it further.
    ``shares`` of the arms' weights are observed: a mean over fewer varies more.
    """
    squared = imbalance_weight(spread, variances)
    seen = shares or (1.0,) * len(weights.arms)
    return [
        (
            variances * arm.used.squares / share + squared * arm.imbalance,
            float(squared.mean()) * arm.imbalance,
        )
        for arm, share in zip(weights.arms, seen, strict=True)
    ]


def imbalance_weight(spread: float, variances: Floats) -> Floats:
    """Return the squared deviation by which residual imbalance may move an estimate."""
    return np.asarray(np.minimum(spread**2, _MOST_EXPLAINED * variances))


def _errors_of(
    weights: PublicWeights, spread: float, sampling: PairVariance | None, bounds: Interval
) -> Errors:
    """Return the errors of forms in squared units of the outcome; none without a variance."""
    if sampling is None:
        return lambda _: ((), 0.0)
    errors = error_variances(weights, spread, sampling.likely_values())
    unit = (bounds.width / weights.design.rows) ** 2

    def of_arms(arms: Sequence[int]) -> tuple[tuple[float, ...], float]:
        likely = np.sum([errors[arm][0] for arm in arms], axis=0)
        return tuple((unit * likely).tolist()), unit * sum(errors[arm][1] for arm in arms)

    return of_arms


@dataclass(frozen=True, slots=True)
class _PublicHalf:
    """What is known of two arms before their sums are released."""

    weights: PublicWeights
    budget: Budget
    kept: OutcomeRange
    sampling: PairVariance | None
    settings: CalibratedSettings
    warnings: tuple[str, ...]


def _estimate_ratios(
    study: MatchingStudy, request: Request, half: _PublicHalf, noise: Noise
) -> Estimate:
    """Release both arms' means over private sets of rows: ratios of two noisy sums each."""
    domain, bounds, options = study.domain, study.domain.bounds, request.options
    weights, kept, sampling = half.weights, half.kept, half.sampling
    released = release_observed_means(
        add_observed(study, weights, kept), weights.largest, kept, study.size,
        epsilon=half.budget.sums, rows=request.rows_per_person, noise=noise,
    )  # fmt: skip
    value = min(max(bounds.width * released.effect, -bounds.width), bounds.width)
    reach, interval = bounds.width * released.noise_half(request.coverage), None
    variances: tuple[float, ...] = ()
    bias = 0.0
    if sampling is not None:
        shares = (released.control.share, released.treated.share)
        seen = sampling.given_seen(_paired_share(weights.design, shares))
        errors = error_variances(weights, seen.corrected_guess(), seen.likely_values(), shares)
        squares, unit = errors[0][0] + errors[1][0], (bounds.width / study.size) ** 2
        variances, bias = tuple((unit * squares).tolist()), unit * (errors[0][1] + errors[1][1])
        wide = bounds.width * released.half_width(request.coverage, np.sqrt(squares) / study.size)
        interval = max(value - wide, -bounds.width), min(value + wide, bounds.width)
    notes = half.settings.notes if isinstance(half.settings.notes, tuple) else ()
    settings = replace(
        half.settings,
        budget={one.step: float(one.epsilon) for one in noise.spends},
        observed_share=ArmNumbers(released.treated.share, released.control.share),
        notes=(*notes, RATIO_NOTE),
    )
    # Each arm's noisy mean is released here in any case; of a binary outcome both are shown.
    if bounds.is_binary or (isinstance(options, CalibratedOptions) and options.means):
        middle = _middle(kept, bounds)
        levels = [
            min(max(middle + bounds.width * arm.mean, bounds.low), bounds.high)
            for arm in (released.control, released.treated)
        ]
        settings = replace(settings, **means_and_ratios(levels, domain))
    effect = Quantity(
        value, (), variances, bias,
        interval=interval, noise_interval=(value - reach, value + reach),
    )  # fmt: skip
    return estimate_contrast(effect, domain, weights.design, request, settings, half.warnings)


def _middle(kept: OutcomeRange, bounds: Interval) -> float:
    """Return what outcomes are counted from, in their own units."""
    return bounds.low + bounds.width * kept.middle / OUTCOME_STEPS


def _paired_share(design: Design, shares: Sequence[float]) -> float:
    """Return the share of the squared weight in pairs of which both have an outcome.

    It assumes that members of a pair lack one independently of each other.
    """
    squares = [arm.members * arm.equal_weight**2 for arm in design.arms]
    seen = sum(square * share**2 for square, share in zip(squares, shares, strict=True))
    return seen / sum(squares)
