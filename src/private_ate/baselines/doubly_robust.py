"""Doubly robust estimation with a confidence interval (after Schröder et al. 2025).

Half of the rows train the propensity and outcome models, the other half averages the doubly
robust score, whose mean and variance are released with Gaussian noise. As published, the models
are fitted without noise, so a training record is not protected: ``nuisance="conditional"`` does
that and promises nothing. The default releases the models privately too, and then the whole is
(ε, δ)-private. Proofs and the flaw: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from private_ate.arguments import one_of, real_number, settle
from private_ate.baselines.nuisance_models import (
    NuisanceModels,
    fit_nuisance_models,
    release_nuisance_models,
)
from private_ate.baselines.steps import (
    SCORE_BITS,
    BaselineSettings,
    Budget,
    RowSplit,
    common_settings,
    release_integer,
    release_vector,
    require_positive_delta,
    split_rows,
)
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.methods.composition import options_of
from private_ate.privacy.accounting import (
    DEFAULT_DELTA,
    discrete_gaussian_variance,
    noise_delta,
)
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS, weighted_sum
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, SplitSizes
from private_ate.study import Added, Block, MatchingStudy

__all__ = [
    "DoublyRobustOptions",
    "ScoreSums",
    "estimate_doubly_robust",
    "largest_score",
    "score_kernel",
]

_EFFECT_SHARE = Fraction(4, 5)  # shares of the joint vector; 0.8² + 0.6² = 1
_VARIANCE_SHARE = Fraction(3, 5)
_CAUTION = 1.2816  # the variance is taken at the upper end of its one-sided 90 % noise interval
_PUBLISHED_RIDGE = 1e-3
_VOID = (
    "none (the published method fits its models on the training rows without noise, so those rows "
    "are not protected)"
)


@dataclass(frozen=True, slots=True)
class DoublyRobustOptions:
    """Parameters of doubly robust estimation.

    Attributes
    ----------
    nuisance : "private" or "conditional"
        Whether the models are released privately, or fitted as published without any protection
        of the training rows.
    overlap : float
        Propensity scores are kept within [overlap, 1 − overlap] (η).
    split : float
        Share of the rows that trains the models.
    ridge : float
        Penalty λ of the private propensity model.
    delta : str or float
        δ of the guarantee.
    """

    nuisance: Literal["private", "conditional"] = "private"
    overlap: float = 0.1
    split: float = 0.5
    ridge: float = 0.01
    delta: str | float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        one_of("nuisance", self.nuisance, ("private", "conditional"))
        settle(
            self,
            overlap=real_number("the overlap", self.overlap, 0.02, 0.499),
            split=real_number("the split", self.split, 0.05, 0.95),
            ridge=real_number("the ridge penalty", self.ridge, 1e-5, 1e3),
        )
        require_positive_delta(self.delta, "doubly robust estimation")

    @property
    def is_private(self) -> bool:
        """Whether a release with these options promises anything."""
        return self.nuisance == "private"


@dataclass(frozen=True, slots=True)
class ScoreSums(Added):
    """Sums of the doubly robust scores and of their squares, in exact grid steps."""

    scores: int
    squares: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DoublyRobustSettings(BaselineSettings):
    """Settings of the doubly robust baseline.

    Attributes
    ----------
    nuisance : str
        Whether the models behind the scores are private.
    """

    methods: ClassVar[tuple[str, ...]] = ("doubly_robust",)

    nuisance: Literal["private", "conditional"]
    overlap: float
    split: SplitSizes
    ridge: float
    budget: Mapping[str, float]
    noise_interval_covers: str
    population: str
    noise_standard_deviation: float
    confidence: float
    interval_covers: str | Absent = ABSENT
    notes: tuple[str, ...] | Absent = ABSENT


def estimate_doubly_robust(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release a doubly robust effect and, unless confidence is None, its interval.

    Neighbours: one record replaced. Cost: (ε, δ) with private nuisances; nothing is promised with
    conditional ones. Proof: docs/proofs/baselines.md.
    """
    options = options_of(request, DoublyRobustOptions, "doubly_robust")
    delta = noise_delta(options.delta)
    training, evaluation = split_rows(study, options.split, noise.entropy)
    if options.is_private:
        budget = Budget(request.epsilon, delta, "training")
        models = release_nuisance_models(training, options.ridge, budget, noise)
    else:
        models = fit_nuisance_models(training, _PUBLISHED_RIDGE)
    sums = evaluation.fold(score_kernel(models, options.overlap))
    budget = Budget(request.epsilon, delta, "evaluation")
    width = study.domain.bounds.width
    if request.confidence is None:
        result = _effect_alone(sums, evaluation, options.overlap, budget, noise)
    else:
        result = _effect_and_variance(sums, evaluation, options.overlap, budget, noise)
    normal = NormalDist().inv_cdf((1 + request.coverage) / 2)
    ate, half = result.effect * width, normal * result.noise * width
    interval = None
    if result.sampling is not None:
        wide = normal * math.hypot(result.noise, result.sampling) * width
        interval = (ate - wide, ate + wide)
    settings = DoublyRobustSettings(
        nuisance=options.nuisance,
        overlap=options.overlap,
        split=SplitSizes(training.size, evaluation.size),
        ridge=options.ridge if options.is_private else _PUBLISHED_RIDGE,
        noise_interval_covers=(
            "the noise of the mean score; not that of the models, not sampling, not confounding"
        ),
        noise_standard_deviation=result.noise * width,
        interval_covers=ABSENT if interval is None else "sampling and noise; not confounding",
        **common_settings(request, noise),
    )
    released = Quantity(ate, noise_interval=(ate - half, ate + half), interval=interval)
    void = "" if options.is_private else _VOID
    return replace(Estimate.of(released, settings), delta=delta, void=void)


@dataclass(frozen=True, slots=True)
class _Result:
    """Effect, standard deviation of its noise and of its sampling, in units of the range."""

    effect: float
    noise: float
    sampling: float | None


def largest_score(overlap: float) -> int:
    """Return the largest size of a score in steps: the range divided by the overlap.

    With outcomes and models in [0, B] a treated score ``μ₁(1 − 1/e) − μ₀ + y/e`` is between −B/e
    and B/e, a control score likewise, so no score exceeds B/η.
    """
    return math.ceil(Fraction(1 << SCORE_BITS) / Fraction(overlap))


def score_kernel(models: NuisanceModels, overlap: float) -> Callable[[Block], ScoreSums]:
    """Return the kernel that adds doubly robust scores and their squares in exact integers."""
    largest = largest_score(overlap)

    def kernel(block: Block) -> ScoreSums:
        scores = models.scores(block, overlap)
        treated, control = models.outcomes(block)
        outcome = np.zeros(scores.size) if block.outcome is None else block.outcome / OUTCOME_STEPS
        corrected = np.where(
            block.treatment, (outcome - treated) / scores, (control - outcome) / (1 - scores)
        )
        steps = np.rint((treated - control + corrected) * (1 << SCORE_BITS)).astype(np.int64)
        bounded: npt.NDArray[np.int64] = np.clip(steps, -largest, largest)
        return ScoreSums(int(bounded.sum()), weighted_sum(bounded, bounded))

    return kernel


def _effect_alone(
    sums: ScoreSums, part: RowSplit, overlap: float, budget: Budget, noise: Noise
) -> _Result:
    """Give all of the budget to the mean score, of sensitivity 2B/(ηk)."""
    effect = release_integer(
        noise,
        "mean score",
        sums.scores,
        sensitivity=2 * largest_score(overlap),
        unit=Fraction(1, part.size << SCORE_BITS),
        budget=budget,
    )
    return _Result(effect.value, effect.scale, None)


def _effect_and_variance(
    sums: ScoreSums, part: RowSplit, overlap: float, budget: Budget, noise: Noise
) -> _Result:
    """Release mean and variance of the scores as one vector of sensitivity one.

    The mean moves by at most 2M/k and the variance by at most (2M)²/k, M the largest score; each is
    divided by that and multiplied by its share, and the squares of the shares add up to one.
    """
    largest, size = largest_score(overlap), part.size
    mean = Fraction(sums.scores, size)
    variance = Fraction(sums.squares, size) - mean**2
    mean_unit = Fraction(2 * largest, size) / _EFFECT_SHARE
    variance_unit = Fraction((2 * largest) ** 2, size) / _VARIANCE_SHARE
    noisy = release_vector(
        noise,
        "mean and variance of scores",
        [mean / mean_unit, variance / variance_unit],
        sensitivity=1.0,
        budget=budget,
    )
    steps = 1 << SCORE_BITS
    unit = float(mean_unit) / steps
    deviation = _unit_deviation(budget)
    # Cut off at zero, a noisy variance would leave sampling out of half of the intervals.
    upper = (noisy[1] + _CAUTION * deviation) * float(variance_unit)
    spread = min(max(upper, 0.0), float(largest) ** 2)
    return _Result(
        noisy[0] * unit,
        deviation * unit,
        math.sqrt(spread / size) / steps,
    )


def _unit_deviation(budget: Budget) -> float:
    """Return the standard deviation of Gaussian noise of sensitivity one."""
    fine = 1 << 40
    variance = discrete_gaussian_variance(
        budget.epsilon, budget.delta, sensitivity=fine, dimension=2
    )
    return math.sqrt(variance) / fine
