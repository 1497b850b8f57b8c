"""The paper's PrivATE at both levels: propensity score matching with a limit on reuse.

Both levels end in two sums, one per arm, of outcomes weighted by how often each unit is used.
The weights never look at outcomes, so one outcome moves one sum by at most its own weight times
the declared range: the sensitivity is read off the weights that are used. Matching depends on
the order of the rows, so they are put in a fresh, secret random order first: no order in which a
file came can then tell a reader anything. Proofs: docs/proofs/published.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypedDict

import numpy as np
import numpy.typing as npt

from private_ate.arguments import exact_shares, one_of, real_number, settle, whole_number
from private_ate.errors import ArgumentError, SchemaError
from private_ate.estimators.published.limits import FixedLimit, LimitPlan, plan_limits
from private_ate.estimators.published.settings import (
    LimitPair,
    PublishedLabelSettings,
    PublishedSampleSettings,
)
from private_ate.estimators.request import Request, options_for
from private_ate.models.logistic import SOLVER_GRADIENT, fit_logistic, fit_logistic_obliviously
from private_ate.privacy.budget import split_epsilon
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import two_laplace_quantile
from private_ate.privacy.sums import (
    MOST_SORTED_ROWS,
    OUTCOME_BITS,
    OUTCOME_STEPS,
    WEIGHT_BITS,
    require_rows,
)
from private_ate.release import Estimate
from private_ate.settings import ABSENT, ArmCounts, ArmNumbers, Settings
from private_ate.study import ArmSizes, MatchingStudy, MatchPool, RowWeights

__all__ = ["PublishedOptions", "estimate_published", "plan_for", "require_both_arms"]

_SAMPLE_RIDGE = 0.01
_SMALLEST_SAMPLE_RIDGE = 1e-6  # passes of the oblivious fit grow as one over its square root
_LARGEST_LIMIT = 1 << 40  # beyond any number of rows
_NEARLY_EQUAL = 0.02  # total variation below which weights are as good as equal
_TOO_TIGHT: Final = (
    "the limit is so tight that matching equals the difference in means; raise ε or set k"
)
_TOO_NOISY: Final = (
    "scores carry noise far wider than their range, so this matching removes no confounding"
)


@dataclass(frozen=True, slots=True)
class PublishedOptions:
    """Parameters of the paper.

    Attributes
    ----------
    ridge : float or None
        Penalty λ of the propensity model; None is 1/n at label level and 0.01 at sample level.
    c, h : float
        Error coefficients of the adaptive limit at label and at sample level.
    k : "adaptive", int or None
        Limit of the smaller arm; None turns limits off.
    shares : four texts or fractions
        Shares of ε at sample level: model weights, scores, treatments, outcome sums.
    """

    ridge: float | None = None
    c: float = 0.01
    h: float = 0.001
    k: FixedLimit = "adaptive"
    shares: tuple[str | Fraction, ...] = ("0.05", "0.05", "0.7", "0.2")

    def __post_init__(self) -> None:
        if self.ridge is not None:
            settle(self, ridge=real_number("the ridge penalty", self.ridge, 1e-9, 1e9))
        if isinstance(self.k, str):
            one_of("the limit k", self.k, ("adaptive",))
        elif self.k is not None:
            settle(self, k=whole_number("the limit k", self.k, 1, _LARGEST_LIMIT))
        split_epsilon(Fraction(1), self.fractions)
        settle(
            self,
            c=real_number("the error coefficient c", self.c, 1e-150, 1e150),
            h=real_number("the error coefficient h", self.h, 1e-150, 1e150),
            shares=tuple(self.shares),
        )

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The shares as exact fractions."""
        return exact_shares(
            self.shares, 4, "give four shares of epsilon: weights, scores, treatments, sums"
        )


def estimate_published(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Estimate the average treatment effect as the paper does, at the requested level."""
    options = options_for(request, PublishedOptions, "published")
    if request.estimand != "ate":
        msg = "the published method estimates the ATE only; ATT and ATC need method 'auto'"
        raise ArgumentError(msg)
    require_rows(study.size, MOST_SORTED_ROWS)
    shuffled = study.reordered(noise.secret_order(study.size))
    if request.level == "label":
        return _label_level(shuffled, request, options, noise)
    return _sample_level(shuffled, request, options, noise)


def _label_level(
    study: MatchingStudy, request: Request, options: PublishedOptions, noise: Noise
) -> Estimate:
    """Match on the public score, then release both sums with all of ε."""
    public = study.public()
    ridge = 1.0 / study.size if options.ridge is None else options.ridge
    pool = public.pool(fit_logistic(public, ridge).coefficients)
    require_both_arms(pool.arms)
    plan = plan_for(pool, request, options)
    weights = pool.match(request.neighbors, plan.limits)
    sums = release_arm_sums(study, weights, request.epsilon, request.rows_per_person, noise)
    too_tight = weights.imbalance < _NEARLY_EQUAL
    settings = PublishedLabelSettings(
        **_common(request, plan, ridge, noise),
        arms=ArmCounts(pool.arms.treated, pool.arms.control),
        largest_weight=_largest(weights),
        equals_difference_in_means=too_tight,
        noise_interval_covers="the estimate without noise; not sampling, not confounding",
        notes=(_TOO_TIGHT,) if too_tight else ABSENT,
    )
    return sums.estimate(study, request.coverage, settings)


def _sample_level(
    study: MatchingStudy, request: Request, options: PublishedOptions, noise: Noise
) -> Estimate:
    """Release weights, scores and treatments with noise, match on those, release both sums."""
    ridge = _SAMPLE_RIDGE if options.ridge is None else options.ridge
    if ridge < _SMALLEST_SAMPLE_RIDGE:
        msg = f"at sample level the ridge penalty is at least 1e-6, not {ridge:g}; 0.01 is usual"
        raise ArgumentError(msg)
    shares = split_epsilon(request.epsilon, options.fractions)
    model, score, treatment, sum_share = shares
    rows = request.rows_per_person
    coefficients = release_coefficients(study, ridge, model, rows, noise)
    score_bits = _score_bits(rows / float(score))
    pool = study.noisy_pool(
        coefficients,
        score_bits,
        lambda scores: noise.laplace_rows(
            "scores", scores, sensitivity=rows << score_bits, epsilon=score
        ),
        lambda bits: noise.randomized_response("treatments", bits, changes=rows, epsilon=treatment),
    )
    plan = _plan(pool, request, options.k, float(sum_share), options.h, cap_at_peak=False)
    weights = pool.match(request.neighbors, plan.limits)
    sums = release_arm_sums(study, weights, sum_share, rows, noise)
    settings = PublishedSampleSettings(
        **_common(request, plan, ridge, noise),
        noisy_arms=ArmCounts(pool.arms.treated, pool.arms.control),
        largest_weight=_largest(weights),
        noise_interval_covers=(
            "the sums' noise only; not that of scores and treatments, not sampling, not confounding"
        ),
        notes=(_TOO_NOISY,),
    )
    return sums.estimate(study, request.coverage, settings)


def release_coefficients(
    study: MatchingStudy, ridge: float, epsilon: Fraction, rows: int, noise: Noise
) -> npt.NDArray[np.float64]:
    """Fit the propensity model and release its weights with Laplace noise.

    Neighbours: one person's rows replaced. Sensitivity (L1): ``rows·2d/(nλ) + 2√d·γ/λ`` with d
    the number of weights and γ the solver's gradient bound, plus one grid step per weight for
    rounding. Cost: ε. Proof: docs/proofs/propensity.md.
    """
    weights = fit_logistic_obliviously(study, ridge).coefficients
    dimension = weights.size
    sensitivity = rows * 2 * dimension / (study.size * ridge)
    sensitivity += 2 * math.sqrt(dimension) * SOLVER_GRADIENT / ridge
    exponent = math.floor(math.log2(sensitivity)) - 20
    grid = Fraction(2) ** exponent
    steps = [round(Fraction(float(weight)) / grid) for weight in weights]
    noisy = noise.laplace(
        "weights",
        steps,
        sensitivity=math.ceil(Fraction(sensitivity) / grid) + dimension,
        epsilon=epsilon,
    )
    return np.array([float(step * grid / 2) for step in noisy])


@dataclass(frozen=True, slots=True)
class ArmRelease:
    """Both released sums in half grid steps, and the Laplace scales of their noise."""

    treated: int
    control: int
    scales: tuple[float, float]

    def estimate(self, study: MatchingStudy, coverage: float, settings: Settings) -> Estimate:
        """Turn the sums into the effect in units of the outcome."""
        unit = study.domain.bounds.width / study.size
        steps = Fraction(self.treated - self.control, 1 << (OUTCOME_BITS + WEIGHT_BITS + 1))
        ate = float(steps) * unit
        half = two_laplace_quantile(coverage, self.scales[0] * unit, self.scales[1] * unit)
        return Estimate(ate, (ate - half, ate + half), None, settings)


def release_arm_sums(
    study: MatchingStudy, weights: RowWeights, epsilon: Fraction, rows: int, noise: Noise
) -> ArmRelease:
    """Release the weighted outcome sums of both arms, which share one ε.

    Neighbours: one person's outcomes replaced, given the weights. Sensitivity: the largest weight
    of the arm times the range of the outcome, times the rows a person may have; a row is in one
    arm, so the shares of both sums add up to at most one. Cost: ε. Proof: docs/proofs/published.md.
    """
    sensitivities = [
        max(1, rows * largest * OUTCOME_STEPS)
        for largest in (weights.largest_treated, weights.largest_control)
    ]
    sums = study.arm_sums(weights)
    treated, control = noise.laplace_disjoint(
        "outcome sums", [sums.treated, sums.control], sensitivities=sensitivities, epsilon=epsilon
    )
    whole = 1 << (OUTCOME_BITS + WEIGHT_BITS)
    first, second = (float(Fraction(s, whole) / epsilon) for s in sensitivities)
    return ArmRelease(treated, control, (first, second))


def require_both_arms(arms: ArmSizes) -> None:
    """Refuse an empty arm, which is public at label level."""
    if arms.smaller == 0:
        empty = "treated" if arms.treated == 0 else "control"
        msg = f"no unit is {empty}: check the treatment column and its two labels"
        raise SchemaError(msg)


def plan_for(pool: MatchPool, request: Request, options: PublishedOptions) -> LimitPlan:
    """Return the limits of the label level, all of whose inputs are public."""
    return _plan(pool, request, options.k, float(request.epsilon), options.c, cap_at_peak=True)


def _plan(  # the paper's quantities
    pool: MatchPool,
    request: Request,
    k: FixedLimit,
    epsilon: float,
    coefficient: float,
    *,
    cap_at_peak: bool,
) -> LimitPlan:
    return plan_limits(
        pool.arms,
        neighbors=request.neighbors,
        peak_reuse=pool.peak_reuse(request.neighbors) if k == "adaptive" else 0,
        epsilon=epsilon,
        coefficient=coefficient,
        cap_at_peak=cap_at_peak,
        k=k,
    )


class _Common(TypedDict):
    """What both levels say."""

    neighbors: int
    matching_limit: LimitPair
    matching_order: str
    ridge: float
    confidence: float
    rows_per_person: int
    population: str
    budget: dict[str, float]


def _common(request: Request, plan: LimitPlan, ridge: float, noise: Noise) -> _Common:
    return {
        "neighbors": request.neighbors,
        "matching_limit": LimitPair(*plan.pair),
        "matching_order": "random, drawn for this release and kept secret",
        "ridge": ridge,
        "confidence": request.coverage,
        "rows_per_person": request.rows_per_person,
        "population": "all n units (ATE)",
        "budget": {spend.step: float(spend.epsilon) for spend in noise.spends},
    }


def _largest(weights: RowWeights) -> ArmNumbers:
    grid = 1 << WEIGHT_BITS
    return ArmNumbers(weights.largest_treated / grid, weights.largest_control / grid)


def _score_bits(scale: float) -> int:
    """Return the bits of a score grid at most 2⁻²⁰ of the noise scale."""
    return max(0, 20 - math.floor(math.log2(scale)))
