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
from typing import TypedDict

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain import Domain, Interval
from private_ate.effects.estimate import ArmEstimate, Estimate
from private_ate.effects.quantities import Quantity
from private_ate.estimators.calibrated.clipping import (
    OutcomeRange,
    outcomes_of,
    release_clip,
)
from private_ate.estimators.calibrated.design import Design, Learned, pose
from private_ate.estimators.calibrated.facts import (
    RATIO_NOTE,
    few_units_of,
    settings_of,
    warnings_of,
)
from private_ate.estimators.calibrated.observed_means import (
    ObservedMeans,
    add_observed,
    release_observed_means,
)
from private_ate.estimators.calibrated.options import (
    CalibratedOptions,
    outcome_share,
    plan_clip,
)
from private_ate.estimators.calibrated.private import (
    WHOLE_STEPS,
    Form,
    NoiseRule,
    add_outcomes,
    contrast,
    draws_of,
    means,
    release_sums,
)
from private_ate.estimators.calibrated.settings import CalibratedArmsSettings, CalibratedSettings
from private_ate.estimators.calibrated.variance import (
    PairVariance,
    release_pair_variance,
    share_for_variance,
)
from private_ate.estimators.calibrated.weights import PublicWeights, weigh
from private_ate.estimators.composition import options_of
from private_ate.estimators.request import Request
from private_ate.estimators.several_arms import estimate_from_arms
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.settings import ABSENT, ArmNumbers
from private_ate.study import MatchingStudy

__all__ = [
    "Budget", "error_variances", "estimate_calibrated", "estimate_rows", "forms_of",
    "imbalance_weight", "learn_from_all", "plan_budget",
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
    `release_sums`; no other step looks at an outcome.
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
    known = _PublicHalf(weights, budget, kept, warnings)
    if isinstance(settings, CalibratedSettings) and is_private:
        return _estimate_ratios(study, request, known, settings, sampling, noise)
    quantities = _release_quantities(study, known, guess, sampling, rows, noise)
    settings = replace(settings, budget={one.step: float(one.epsilon) for one in noise.spends})
    if isinstance(settings, CalibratedArmsSettings):
        notes = settings.notes if isinstance(settings.notes, tuple) else ()
        notes = (*few_units_of(study, weights, quantities), *notes)
        settings = replace(settings, notes=notes or ABSENT)
        arms = tuple(
            ArmEstimate(level, level.value, arm.problem.members, weighted=not arm.is_constant)
            for arm, level in zip(weights.arms, quantities, strict=True)
        )
        return estimate_from_arms(
            arms, domain, request, settings, rule="convolved", warnings=warnings
        )
    if len(quantities) == 2:
        levels = [one.value for one in quantities]
        settings = replace(settings, **_means_and_ratios(levels, domain))
        quantities = (_difference(*quantities),)
    return _estimate_contrast(quantities[0], design, domain, request, settings, warnings)


def learn_from_all(public: MatchingStudy, request: Request, cells: int) -> Learned:
    """Return features and weights of all rows that the rows of so many subgroups take over.

    The noise of rolled-up totals is that of all cells, so that the cap reckons with it.
    """
    options = options_of(request, CalibratedOptions, "calibrated")
    design = pose(public, request)
    budget = plan_budget(design, public.domain.bounds, request, options, request.outcomes)
    weights = weigh(
        public, design, draws_of(budget.forms), cells * budget.noise_variance,
        outcome_share(public.domain.bounds, options),
    )  # fmt: skip
    return Learned(design.questions, weights.of)


def forms_of(arms: int, options: CalibratedOptions) -> tuple[Form, ...]:
    """Return what is released: of two arms their contrast, else or if asked for every mean."""
    return contrast() if arms == 2 and not options.means else means(arms)


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
    if has_private_gaps:  # both means are released anyway
        options = replace(options, means=False)
    forms = forms_of(len(design.arms), options)
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
    weights: PublicWeights, guess: float, variances: Floats, shares: Sequence[float] = ()
) -> list[tuple[Floats, float]]:
    """Return of each arm the squared error of n/B times its mean apart from noise, and its bias.

    ``variances`` are those that an outcome may have among like rows, in squared ranges. Sampling
    adds that variance times the squared weights. Residual imbalance adds bias of at most the
    outcome's standard deviation times the imbalance: the guess, unless the released variance says
    that outcomes spread far less. ``shares`` of the arms' weights are observed: a mean over fewer
    varies more.
    """
    spread = imbalance_weight(guess, variances)
    seen = shares or (1.0,) * len(weights.arms)
    return [
        (
            variances * arm.used.squares / share + spread * arm.imbalance,
            float(spread.mean()) * arm.imbalance,
        )
        for arm, share in zip(weights.arms, seen, strict=True)
    ]


def imbalance_weight(guess: float, variances: Floats) -> Floats:
    """Return the squared deviation by which residual imbalance may move an estimate."""
    return np.asarray(np.minimum(guess**2, _MOST_EXPLAINED * variances))


@dataclass(frozen=True, slots=True)
class _PublicHalf:
    """What is known before the sums are released, given what was released before."""

    weights: PublicWeights
    budget: Budget
    kept: OutcomeRange
    warnings: tuple[str, ...]


def _release_quantities(
    study: MatchingStudy,
    half: _PublicHalf,
    guess: float,
    sampling: PairVariance | None,
    rows: int,
    noise: Noise,
) -> tuple[Quantity, ...]:
    """Release the forms of the budget as quantities in units of the outcome."""
    bounds, weights, kept, budget = study.domain.bounds, half.weights, half.kept, half.budget
    unit = bounds.width / study.size
    released = release_sums(
        add_outcomes(study, weights, lambda block: kept.centre(outcomes_of(block))),
        [largest * kept.width for largest in weights.largest],
        budget.forms,
        unit=unit / WHOLE_STEPS, epsilon=budget.sums, rows=rows, noise=noise,
    )  # fmt: skip
    middle = bounds.low + bounds.width * kept.middle / OUTCOME_STEPS
    errors = [] if sampling is None else error_variances(weights, guess, sampling.likely_values())
    found = []
    for form, one in zip(budget.forms, released, strict=True):
        arms = [arm for arm, sign in enumerate(form) if sign]
        ends = (bounds.low, bounds.high) if len(arms) == 1 else (-bounds.width, bounds.width)
        value = one.value + (middle if len(arms) == 1 else 0.0)
        variances: tuple[float, ...] = ()
        bias = 0.0
        if errors:
            likely = sum((errors[arm][0] for arm in arms), start=np.zeros(errors[0][0].size))
            variances = tuple((unit**2 * likely).tolist())
            bias = unit**2 * sum(errors[arm][1] for arm in arms)
        found.append(
            Quantity(
                min(max(value, ends[0]), ends[1]), (one.noise,), variances, bias,
                tuple(map(float, form)),
            )
        )  # fmt: skip
    return tuple(found)


def _difference(control: Quantity, treated: Quantity) -> Quantity:
    """Return the contrast of two released means."""
    likely = tuple(np.add(control.variances, treated.variances).tolist())
    return Quantity(
        treated.value - control.value, (*treated.noise, *control.noise), likely,
        control.bias + treated.bias,
    )  # fmt: skip


def _estimate_contrast(
    effect: Quantity,
    design: Design,
    domain: Domain,
    request: Request,
    settings: CalibratedSettings,
    warnings: tuple[str, ...],
) -> Estimate:
    """Return the estimate of two arms with the intervals of its one quantity."""
    effect = effect.with_intervals(request.coverage, "convolved", domain.bounds.width)
    return replace(
        Estimate.of(effect, settings),
        warnings=warnings,
        population=design.population if request.estimand == "ato" else None,
    )


class _Means(TypedDict, total=False):
    """Both means and their ratios, where they were asked for and make sense."""

    means: ArmNumbers
    risk_ratio: float | None
    odds_ratio: float | None


def _means_and_ratios(levels: Sequence[float], domain: Domain) -> _Means:
    """Report both means and, for a declared binary outcome, the ratios that follow for free."""
    control, treated = levels
    shown = ArmNumbers(treated, control)
    if not domain.bounds.is_binary:
        return {"means": shown}
    odds = control * (1 - treated)
    return {
        "means": shown,
        "risk_ratio": treated / control if control > 0 else None,
        "odds_ratio": treated * (1 - control) / odds if odds > 0 else None,
    }


def _estimate_ratios(
    study: MatchingStudy,
    request: Request,
    half: _PublicHalf,
    settings: CalibratedSettings,
    sampling: PairVariance | None,
    noise: Noise,
) -> Estimate:
    """Release both arms' means over private sets of rows: ratios of two noisy sums each."""
    domain, bounds, options = study.domain, study.domain.bounds, request.options
    weights, kept = half.weights, half.kept
    released = release_observed_means(
        add_observed(study, weights, kept), kept, study.size,
        epsilon=half.budget.sums, rows=request.rows_per_person, noise=noise,
    )  # fmt: skip
    value = min(max(bounds.width * released.effect, -bounds.width), bounds.width)
    reach = bounds.width * released.noise_half(request.coverage)
    interval: tuple[float, float] | None = None
    variances: tuple[float, ...] = ()
    bias = 0.0
    if sampling is not None:
        shares = (released.control.share, released.treated.share)
        likely = sampling.given_seen(_paired_share(weights.design, shares)).likely_values()
        errors = error_variances(weights, sampling.guess, likely, shares)
        squares = errors[0][0] + errors[1][0]
        wide = bounds.width * released.half_width(request.coverage, np.sqrt(squares) / study.size)
        unit = (bounds.width / study.size) ** 2
        variances, bias = tuple((unit * squares).tolist()), unit * (errors[0][1] + errors[1][1])
        interval = max(value - wide, -bounds.width), min(value + wide, bounds.width)
    # Each arm's noisy mean is released here in any case; of a binary outcome both are shown.
    shown = _Means()
    if bounds.is_binary or (isinstance(options, CalibratedOptions) and options.means):
        shown = _means_and_ratios(_levels(released, kept, domain), domain)
    notes = settings.notes if isinstance(settings.notes, tuple) else ()
    settings = replace(
        settings,
        budget={one.step: float(one.epsilon) for one in noise.spends},
        observed_share=ArmNumbers(released.treated.share, released.control.share),
        notes=(*notes, RATIO_NOTE),
        **shown,
    )
    effect = Quantity(
        value, (), variances, bias,
        interval=interval, noise_interval=(value - reach, value + reach),
    )  # fmt: skip
    return replace(
        Estimate.of(effect, settings),
        warnings=half.warnings,
        population=weights.design.population if request.estimand == "ato" else None,
    )


def _levels(released: ObservedMeans, kept: OutcomeRange, domain: Domain) -> list[float]:
    """Return both means in units of the outcome, the reference first."""
    bounds = domain.bounds
    middle = bounds.low + bounds.width * kept.middle / OUTCOME_STEPS
    return [
        min(max(middle + bounds.width * arm.mean, bounds.low), bounds.high)
        for arm in (released.control, released.treated)
    ]


def _paired_share(design: Design, shares: Sequence[float]) -> float:
    """Return the share of the squared weight in pairs of which both have an outcome.

    It assumes that members of a pair lack one independently of each other.
    """
    squares = [arm.members * arm.equal_weight**2 for arm in design.arms]
    seen = sum(square * share**2 for square, share in zip(squares, shares, strict=True))
    return seen / sum(squares)
