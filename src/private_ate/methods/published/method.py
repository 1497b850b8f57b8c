"""The paper's PrivATE at both levels, Algorithm 4: propensity score matching, limits on reuse.

Both levels end in one sum per arm of outcomes weighted by how often each unit is used. Two arms are
the paper's; of more, for each arm t every unit outside it takes its N nearest neighbours in t by
``|e_t − e_t′|``, so that the arm's weights add up to n and its weighted mean speaks of all n units:
one ε pays for all sums, and every contrast of them is free. The weights never look at outcomes, so
one outcome moves one sum by at most its own weight times the declared range: the sensitivity is
read off the weights that are used. Matching depends on the order of the rows, so they are put in a
fresh, secret random order first: no order in which a file came is then visible in the release.
Proofs: docs/proofs/published.md; docs/the-paper.md leads from the paper's numbers to functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, assert_never

from private_ate.arguments import exact_shares, one_of, real_number, settle, whole_number
from private_ate.effects.estimate import Estimate
from private_ate.effects.table import AboutArms
from private_ate.errors import ArgumentError, SchemaError
from private_ate.methods.composition import options_of
from private_ate.methods.effect_tables import estimate_of_quantities
from private_ate.methods.public_arms import (
    count_arms,
    measure_arms,
    note_few_units,
    warn_of_overlap,
)
from private_ate.methods.published.effect import (
    FixedLimit,
    LimitRule,
    LimitsInUse,
    MatchedEffect,
    estimate_effect,
)
from private_ate.methods.published.matching import match_similar_units, train_regression
from private_ate.privacy.budget import split_epsilon
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import MOST_SORTED_ROWS, WEIGHT_BITS, require_rows
from private_ate.release.intervals import noise_half_width
from private_ate.request import Request
from private_ate.settings import (
    ABSENT,
    Absent,
    ArmCounts,
    ArmNumbers,
    ArmsSettings,
    Settings,
    by_arm,
)
from private_ate.study import MatchingStudy, MatchPool

__all__ = [
    "PublishedLabelArmsSettings",
    "PublishedLabelSettings",
    "PublishedOptions",
    "PublishedSampleArmsSettings",
    "PublishedSampleSettings",
    "estimate_published",
    "plan_for",
    "private_ate_at_label_level",
    "private_ate_at_sample_level",
]

_SAMPLE_RIDGE = 0.01
_SMALLEST_SAMPLE_RIDGE = 1e-6  # passes of the oblivious fit grow as one over its square root
_LARGEST_LIMIT = 1 << 40  # beyond any number of rows
_READABLE = 10  # ε of the scores from which their noise is a tenth of their range
_NEARLY_EQUAL = 0.02  # total variation below which weights are as good as equal
_FEW_UNITS_COVERAGE = 0.95  # of the noise that a note about few units speaks of
_TOO_TIGHT: Final = (
    "the limit is so tight that matching equals the difference in means; raise ε or set k"
)
_TOO_TIGHT_ARMS: Final = (
    "the limits are so tight that matching equals a comparison of means; raise ε or set k"
)
_COVERS_ALL: Final = "the estimate without noise; not sampling, not confounding"
_COVERS_SUMS: Final = (
    "the sums' noise only; not that of scores and treatments, not sampling, not confounding"
)
_LEFT_OUT: Final = (
    "{} of {} rows have no outcome and were left out before matching: the effect is that of the "
    "others, and nothing corrects for missingness that depends on treatment and covariates"
)
_TOO_NOISY: Final = (
    "scores carry noise far wider than their range, so this matching removes no confounding"
)


@dataclass(frozen=True, slots=True)
class LimitPair:
    """The matching limit k of each arm; None without one."""

    treated: int | None
    control: int | None


# Without slots of its own: classes for several arms inherit those of `ArmsSettings`.
@dataclass(frozen=True, kw_only=True)
class _Matched(Settings):
    """What a release says of matching, at both levels and for any number of arms.

    Attributes
    ----------
    neighbors : int
        Neighbours (N) that each unit is matched with, in each arm.
    matching_limit : pair or mapping by arm
        How often a unit of each arm may be used, as a multiple of N (k); null without a limit.
    matching_order : str
        In which order the rows were matched.
    ridge : float
        Penalty λ of the propensity model.
    arms : pair or mapping by arm
        Sizes of the arms, which are public at label level.
    noisy_arms : pair or mapping by arm
        Sizes of the arms after randomised response, generalised for three arms or more.
    largest_weight : pair or mapping by arm
        The largest weight of a unit of each arm; the noise is in proportion to it.
    balance : mapping
        Standardised mean difference of each covariate, before and after weighting: the greatest
        over all pairs of arms; absent where it was not computed.
    arm_balance : mapping
        The standardised mean of each covariate in each arm, less that of all units, before and
        after weighting; a pair's difference is that of its arms.
    equals_difference_in_means : bool
        Whether the limit is so tight that matching adjusts for next to nothing.
    """

    neighbors: int
    matching_limit: LimitPair | Mapping[str, float | None]
    matching_order: str
    ridge: float
    confidence: float
    rows_per_person: int
    population: str
    budget: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLabelSettings(_Matched):
    """Settings of the published method at label level."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("label",)

    matching_limit: LimitPair
    arms: ArmCounts
    largest_weight: ArmNumbers
    equals_difference_in_means: bool
    noise_interval_covers: str
    left_out_outcome: int | Absent = ABSENT
    notes: tuple[str, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSampleSettings(_Matched):
    """Settings of the published method at sample level."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    matching_limit: LimitPair
    noisy_arms: ArmCounts
    largest_weight: ArmNumbers
    noise_interval_covers: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLabelArmsSettings(_Matched, ArmsSettings):
    """Settings of the published method at label level with three arms or more."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("label",)

    matching_limit: Mapping[str, float | None]
    arms: Mapping[str, int]
    largest_weight: Mapping[str, float]
    balance: Mapping[str, tuple[float, float]] | Absent = ABSENT
    arm_balance: Mapping[str, Mapping[str, tuple[float, float]]] | Absent = ABSENT
    equals_difference_in_means: bool
    noise_interval_covers: str
    left_out_outcome: int | Absent = ABSENT
    notes: tuple[str, ...] | Absent = ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSampleArmsSettings(_Matched, ArmsSettings):
    """Settings of the published method at sample level with three arms or more."""

    methods: ClassVar[tuple[str, ...]] = ("published",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

    matching_limit: Mapping[str, float | None]
    noisy_arms: Mapping[str, int]
    largest_weight: Mapping[str, float]
    noise_interval_covers: str
    notes: tuple[str, ...]


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
    """Estimate the average treatment effect as the paper does, at the requested level.

    Algorithm 4 on rows in a fresh, secret random order; Theorem 1 at label level, Theorem 2 at
    sample level.
    """
    options = options_of(request, PublishedOptions, "published")
    require_rows(study.size, MOST_SORTED_ROWS)
    match request.level:
        case "label":
            used = study.with_outcomes()
            if used.size == 0:
                msg = "no unit has an outcome: check the outcome column"
                raise SchemaError(msg)
            shuffled = used.reordered(noise.secret_order(used.size))
            is_known = study.domain.outcome.missing == "public"
            left_out = study.size - used.size if is_known else None
            return private_ate_at_label_level(shuffled, request, options, noise, left_out)
        case "sample":
            shuffled = study.reordered(noise.secret_order(study.size))
            return private_ate_at_sample_level(shuffled, request, options, noise)
    assert_never(request.level)


def private_ate_at_label_level(
    study: MatchingStudy,
    request: Request,
    options: PublishedOptions,
    noise: Noise,
    left_out: int | None = None,
) -> Estimate:
    """Match on public scores, release all sums with all of ε: Algorithm 4 at label level.

    ``left_out`` is how many rows without an outcome are not among those of the study, where that
    is public.

    Neighbours: one person's outcomes replaced. Sensitivity: see `release_arm_sums`; no other step
    looks at an outcome. Cost: ε (Theorem 1). Proof: docs/proofs/published.md, and of several arms
    docs/proofs/several-arms-label.md.
    """
    ridge = 1.0 / study.size if options.ridge is None else options.ridge
    public, domain, labels = study.public(), study.domain, study.domain.treatment.coded
    found = count_arms(public).everyone
    regression = train_regression(study, ridge, noise)
    pool = match_similar_units(study, regression, noise)
    effect = estimate_effect(
        study, pool, _label_rule(request, options), request.rows_per_person, noise
    )
    balance = measure_arms(public, effect.weights)
    too_tight = effect.weights.imbalance < _NEARLY_EQUAL
    quantities = effect.sums.quantities(study)
    is_pair = len(labels) == 2
    notes: tuple[str, ...] = ()
    if too_tight:
        notes = (_TOO_TIGHT if is_pair else _TOO_TIGHT_ARMS,)
    more: dict[str, Any] = {}
    if not is_pair:
        reaches = tuple(noise_half_width(_FEW_UNITS_COVERAGE, one.noise) for one in quantities)
        notes += note_few_units(balance, reaches, domain.bounds.width)
        more = {"balance": balance.greatest, "arm_balance": balance.by_arm}
    if left_out:
        notes += (_LEFT_OUT.format(left_out, left_out + study.size),)
    kind = PublishedLabelSettings if is_pair else PublishedLabelArmsSettings
    settings = kind(
        **_shared(request, ridge, noise, effect, labels),
        **more,
        arms=by_arm(ArmCounts, found.counts, labels),
        equals_difference_in_means=too_tight,
        noise_interval_covers=_COVERS_ALL,
        left_out_outcome=ABSENT if left_out is None else left_out,
        notes=notes or ABSENT,
    )
    remedy = " with method 'auto'" if is_pair else ""
    return replace(
        estimate_of_quantities(
            quantities, domain, request, settings, AboutArms(units=found.counts)
        ),
        size=None if left_out is None else study.size,
        adjusted=not too_tight,
        warnings=warn_of_overlap(public, regression.model, balance, by=remedy),
    )


def private_ate_at_sample_level(
    study: MatchingStudy, request: Request, options: PublishedOptions, noise: Noise
) -> Estimate:
    """Match on noisy scores and treatments, release all sums: Algorithm 4 at sample level.

    Neighbours: one person's records replaced. Sensitivity: see `release_model`,
    `ScoreNoise.add`, `match_similar_units` and `release_arm_sums`, in this order. Cost: ε, the sum
    of the shares ε₁₁, ε₁₂, ε₂ and ε₃ (Theorem 2).
    Proof: docs/proofs/published.md, and of several arms docs/proofs/several-arms-sample.md.
    """
    ridge = _SAMPLE_RIDGE if options.ridge is None else options.ridge
    if ridge < _SMALLEST_SAMPLE_RIDGE:
        msg = f"at sample level the ridge penalty is at least 1e-6, not {ridge:g}; 0.01 is usual"
        raise ArgumentError(msg)
    of_weights, of_scores, of_treatments, of_sums = split_epsilon(
        request.epsilon, options.fractions
    )
    rows_per_person, labels = request.rows_per_person, study.domain.treatment.coded
    rule = LimitRule(options.k, of_sums, options.h, request.neighbors, cap_at_peak=False)
    regression = train_regression(
        study, ridge, noise, budgets=(of_weights, of_scores), rows_per_person=rows_per_person
    )
    pool = match_similar_units(
        study, regression, noise, epsilon=of_treatments, rows_per_person=rows_per_person
    )
    effect = estimate_effect(study, pool, rule, rows_per_person, noise)
    # Public numbers alone. Scores of several arms have twice the sensitivity.
    adjusted = of_scores >= _READABLE * min(len(labels) - 1, 2) * rows_per_person
    kind = PublishedSampleSettings if len(labels) == 2 else PublishedSampleArmsSettings
    settings = kind(
        **_shared(request, ridge, noise, effect, labels),
        noisy_arms=by_arm(ArmCounts, pool.arms.counts, labels),
        noise_interval_covers=_COVERS_SUMS,
        notes=() if adjusted else (_TOO_NOISY,),
    )
    quantities = effect.sums.quantities(study)
    return replace(
        estimate_of_quantities(quantities, study.domain, request, settings), adjusted=adjusted
    )


def plan_for(pool: MatchPool, request: Request, options: PublishedOptions) -> LimitsInUse:
    """Return the limits of the label level, all of whose inputs are public."""
    return _label_rule(request, options).plan(pool)


def _label_rule(request: Request, options: PublishedOptions) -> LimitRule:
    return LimitRule(options.k, request.epsilon, options.c, request.neighbors, cap_at_peak=True)


def _shared(
    request: Request, ridge: float, noise: Noise, effect: MatchedEffect, labels: tuple[str, ...]
) -> dict[str, Any]:
    """Return what a release says at both levels, for any number of arms."""
    largest = [size / (1 << WEIGHT_BITS) for size in effect.weights.largest]
    return {
        "neighbors": request.neighbors,
        "matching_order": "random, drawn for this release and kept secret",
        "ridge": ridge,
        "confidence": request.coverage,
        "rows_per_person": request.rows_per_person,
        "population": "all n units (ATE)",
        "budget": {spend.step: float(spend.epsilon) for spend in noise.spends},
        "matching_limit": by_arm(LimitPair, effect.plan.counts, labels),
        "largest_weight": by_arm(ArmNumbers, largest, labels),
    }
