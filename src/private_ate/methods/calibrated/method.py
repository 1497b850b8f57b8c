"""Our label-level estimator: capped calibration weights and staircase noise.

Covariates and treatment are public here, so any weights computed from them cost nothing. The
public half (`design`, `weights`) makes every arm resemble the units that are meant, under the cap
on the largest weight that suits ε. The private half (`private`) releases the weighted sums of
outcomes, whose sensitivity is the largest weight in use times the outcome's range. Before it, a
public share of ε pays for the outcome's variance (`variance`), which intervals are made of and
which the cap follows. Proof: docs/proofs/calibrated.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats
from private_ate.domain import Domain, Interval
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.effects.quantities import Prediction
from private_ate.effects.table import AboutArms
from private_ate.methods.assumptions import Assumptions, Predict
from private_ate.methods.calibrated.clipping import OutcomeRange, outcomes_of, release_clip
from private_ate.methods.calibrated.design import Design, Learned, pose
from private_ate.methods.calibrated.notes import settings_of, warnings_of
from private_ate.methods.calibrated.options import CalibratedOptions, outcome_share, plan_clip
from private_ate.methods.calibrated.private import (
    Errors,
    Form,
    NoiseRule,
    add_outcomes,
    draws_of,
    error_of,
    forms_of,
    release_observed_means,
    release_quantities,
)
from private_ate.methods.calibrated.variance import (
    PairVariance,
    pair_scale,
    release_pair_variance,
    share_for_variance,
)
from private_ate.methods.calibrated.weights import (
    CapPoint,
    PublicWeights,
    choose_cap,
    imbalance_of,
    try_caps,
    weigh,
)
from private_ate.methods.composition import options_of
from private_ate.methods.effect_tables import estimate_of_quantities
from private_ate.privacy.noise import Noise
from private_ate.request import Request, options_for
from private_ate.settings import ArmNumbers
from private_ate.study import Block, MatchingStudy

__all__ = [
    "Budget", "error_variances", "estimate_calibrated", "estimate_quantities", "estimate_rows",
    "imbalance_weight", "learn_from_all", "plan_budget", "predictor",
]  # fmt: skip

_MOST_EXPLAINED = 4.0  # times its variance among like rows, an outcome's whole variance
_MOST_WALKED = 4_000  # rows that stand for more, where a plan tries other sizes
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
    domain, bounds, rows = study.domain, study.domain.bounds, request.rows_per_person
    has_private_gaps = domain.outcome.missing == "private"
    public = study.public()
    design = pose(public, request, learned)
    budget = plan_budget(
        design, bounds, request, options, noise.outcomes, has_private_gaps=has_private_gaps
    )
    guess = outcome_share(bounds, options)
    kept, clipped = release_clip(study, plan_clip(bounds, options), request, noise)
    spread, sampling = guess, None
    if budget.variance:
        sampling = release_pair_variance(study, design, kept, guess, budget.variance, rows, noise)
        if not has_private_gaps:  # else a part of it only, not yet known
            spread = sampling.corrected_guess()
    weights = weigh(public, design, draws_of(budget.forms), budget.noise_variance, spread)
    shown: dict[str, Any] = {**clipped}
    if has_private_gaps and len(weights.arms) == 2:
        effect, ratios = _release_ratio(study, request, weights, budget, kept, sampling, noise)
        quantities: tuple[Quantity, ...] = (effect,)
        shown |= ratios
    else:
        quantities = release_quantities(
            study, weights, kept, [kept.width] * len(weights.arms), budget.forms,
            _errors_of(weights, spread, sampling, bounds),
            epsilon=budget.sums, rows=rows, noise=noise,
        )  # fmt: skip
    return estimate_quantities(study, request, weights, quantities, noise, shown)


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
    weights: PublicWeights,
    spread: float,
    sampling: PairVariance | None,
    bounds: Interval,
    shares: Sequence[float] = (),
) -> Errors:
    """Return the errors of arms in squared units of the outcome; none without a variance."""
    if sampling is None:
        return ()
    unit = (bounds.width / weights.design.rows) ** 2
    errors = error_variances(weights, spread, sampling.likely_values(), shares)
    return [(unit * likely, unit * bias) for likely, bias in errors]


def _release_ratio(
    study: MatchingStudy,
    request: Request,
    weights: PublicWeights,
    budget: Budget,
    kept: OutcomeRange,
    sampling: PairVariance | None,
    noise: Noise,
) -> tuple[Quantity, dict[str, Any]]:
    """Release both arms' means over private sets of rows, and what a release says of these."""
    domain, bounds, options = study.domain, study.domain.bounds, request.options

    def values(block: Block) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        seen = block.observed.astype(np.int64)
        return kept.centre(outcomes_of(block)) * seen, seen

    released = release_observed_means(
        add_outcomes(study, weights, values), weights.largest, kept, study.size,
        epsilon=budget.sums, rows=request.rows_per_person, noise=noise,
    )  # fmt: skip
    arms = released.control, released.treated
    value = min(max(bounds.width * released.effect, -bounds.width), bounds.width)
    reach, interval = bounds.width * released.half_width(request.coverage), None
    errors: Errors = ()
    shares = tuple(arm.share for arm in arms)
    if sampling is not None:
        seen = sampling.given_seen(_paired_share(weights.design, shares))
        errors = _errors_of(weights, seen.corrected_guess(), seen, bounds, shares)
    variances, bias = error_of(errors, (0, 1))
    if variances:
        deviations = np.sqrt(variances) / bounds.width
        wide = bounds.width * released.half_width(request.coverage, deviations)
        interval = max(value - wide, -bounds.width), min(value + wide, bounds.width)
    shown: dict[str, Any] = {"observed_share": ArmNumbers(shares[1], shares[0])}
    # Each arm's noisy mean is released here in any case; of a binary outcome both are shown.
    if bounds.is_binary or (isinstance(options, CalibratedOptions) and options.means):
        middle = kept.middle_in(bounds)
        levels = [
            min(max(middle + bounds.width * arm.mean, bounds.low), bounds.high) for arm in arms
        ]
        shown |= means_and_ratios(levels, domain)
    effect = Quantity(
        value, (), variances, bias,
        interval=interval, noise_interval=(value - reach, value + reach),
    )  # fmt: skip
    return effect, shown


def _paired_share(design: Design, shares: Sequence[float]) -> float:
    """Return the share of the squared weight in pairs of which both have an outcome.

    It assumes that members of a pair lack one independently of each other.
    """
    squares = [arm.members * arm.equal_weight**2 for arm in design.arms]
    seen = sum(square * share**2 for square, share in zip(squares, shares, strict=True))
    return seen / sum(squares)


def estimate_quantities(
    study: MatchingStudy,
    request: Request,
    weights: PublicWeights,
    quantities: Sequence[Quantity],
    noise: Noise,
    shown: Mapping[str, Any],
) -> Estimate:
    """Return the estimate of two arms from their contrast or both means, else from every mean.

    ``shown`` is what a release says besides what follows from weights and quantities.
    """
    domain, about, population = study.domain, None, None
    if len(weights.arms) > 2:
        about = AboutArms(
            units=[arm.problem.members for arm in weights.arms],
            weighted=[not arm.is_constant for arm in weights.arms],
        )
    elif request.estimand == "ato":
        population = weights.design.population
    if len(weights.arms) == len(quantities) == 2:
        control, treated = quantities
        shown = {**shown, **means_and_ratios([control.value, treated.value], domain)}
        effect = Quantity(
            treated.value - control.value, (*treated.noise, *control.noise),
            tuple(np.add(control.variances, treated.variances).tolist()),
            control.bias + treated.bias,
        )  # fmt: skip
        quantities = (effect,)
    settings = settings_of(study, request, weights, quantities, noise, shown)
    found = estimate_of_quantities(quantities, domain, request, settings, about)
    warnings = warnings_of(study.public(), weights, request)
    return replace(found, warnings=warnings, population=population)


def means_and_ratios(levels: Sequence[float], domain: Domain) -> dict[str, Any]:
    """Report both means and, for a declared binary outcome, the ratios that follow for free."""
    control, treated = levels
    shown: dict[str, Any] = {"means": ArmNumbers(treated, control)}
    if domain.bounds.is_binary:
        odds = control * (1 - treated)
        shown["risk_ratio"] = treated / control if control > 0 else None
        shown["odds_ratio"] = treated * (1 - control) / odds if odds > 0 else None
    return shown


def predictor(assumed: Assumptions, request: Request) -> Predict:
    """Return predictions of the contrast of two arms, or of the levels of three or more.

    The public half runs on real or made-up rows once; what a release would hold at any ε, of any
    number of rows like these, then follows from the caps that were tried, with its noise and the
    variances that intervals would be made of.
    """
    public = assumed.public
    if public is None:
        msg = "the method calibrated is planned on public rows"
        raise TypeError(msg)
    asked = options_for(request, CalibratedOptions, "calibrated")
    options = replace(asked, means=False)  # a plan is one for the effect
    learned = cast("Learned | None", assumed.learned)
    bounds = assumed.bounds
    spread, kept = outcome_share(bounds, options), plan_clip(bounds, options).kept_share
    alike = min(assumed.guess.alike_share * spread**2, kept**2 / 4)

    @lru_cache(maxsize=64)
    def foreseen(rows: int) -> tuple[Design, list[list[CapPoint]]]:
        design = pose(public.draw(rows).public(), request, learned)
        draws = draws_of(forms_of(len(design.arms), means=False))
        return design, [list(try_caps(design, arms)) for arms in draws]

    def predict(rows: int, epsilon: float) -> tuple[Prediction, ...]:
        walked = public.walked(rows)
        if rows != public.size:  # a search over sizes draws many studies
            walked = min(walked, _MOST_WALKED)
        design, paths = foreseen(walked)
        more, unit, outcomes = rows / walked, bounds.width / rows, request.outcomes
        budget = plan_budget(design, bounds, request, options, outcomes, epsilon=Fraction(epsilon))
        likely, weighed = np.array([alike]), spread
        if budget.variance:
            equal = [arm.equal_weight for arm in design.arms]
            scale = pair_scale(equal, [arm.members // 2 for arm in design.arms])
            scale *= request.rows_per_person * kept**2 / float(budget.variance) / more
            known = PairVariance(alike, scale, kept**2 / 4, spread, outcomes=outcomes)
            likely, weighed = known.likely_values(), known.corrected_guess()
        rule = NoiseRule.of(request.rows_per_person, len(budget.forms), budget.sums, outcomes)
        distribution = rule.distribution(budget.sums, outcomes)
        predictions = []
        for form, path in zip(budget.forms, paths, strict=True):
            point = choose_cap(design, path, budget.noise_variance / more, weighed)
            noise = distribution.scaled(rule.rows * kept * point.cap * unit)
            squares = more * sum(one.sums.squares for one in point.solutions)
            left = more * sum(
                imbalance_of(design.arms[arm], one.sums.features)
                for arm, one in zip(point.arms, point.solutions, strict=True)
            )
            moved = imbalance_weight(weighed, likely) * left
            shown = tuple((unit**2 * (likely * squares + moved)).tolist())
            bias = unit**2 * float(moved.mean())
            expected = float(imbalance_weight(spread, np.array([alike]))[0])
            sampling = unit**2 * (alike * squares + expected * left)
            quantity = Quantity(0.0, (noise,), shown, bias, tuple(map(float, form)))
            predictions.append(Prediction(quantity, sampling, f"cap {point.cap:.3g}"))
        return tuple(predictions)

    return predict
