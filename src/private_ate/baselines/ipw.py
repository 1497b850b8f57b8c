"""Inverse probability weighting with a private propensity model (after Lee et al. 2019).

One part of the rows trains a propensity model whose weights are released with noise; the other
part is weighted with it and its mean is released with noise. A row is in one part only, so each
part may use the whole budget. The second form uses all rows for both and halves the budget
instead. Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from private_ate.arguments import real_number, settle
from private_ate.arrays import Floats
from private_ate.baselines.nuisance_models import (
    fit_propensity,
    propensity_sensitivity,
    scores_of,
)
from private_ate.baselines.steps import (
    BaselineSettings,
    Budget,
    RowSplit,
    all_rows,
    common_settings,
    release_integer,
    release_vector,
    split_rows,
)
from private_ate.effects.estimate import Estimate
from private_ate.errors import ArgumentError
from private_ate.methods.composition import options_of
from private_ate.privacy.accounting import DEFAULT_DELTA, noise_delta
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import (
    OUTCOME_BITS,
    OUTCOME_STEPS,
    WEIGHT_BITS,
    quantize_weights,
    weighted_sum,
)
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent, SplitSizes
from private_ate.study import Block, MatchingStudy, Study

__all__ = ["IpwOptions", "estimate_ipw", "weighted_kernel", "weighted_sensitivity"]

_HALF: Final = 0.5
_LEAST_SHARED_DELTA: Final = Fraction(2, 10**12)


@dataclass(frozen=True, slots=True)
class IpwOptions:
    """Parameters of inverse probability weighting.

    Attributes
    ----------
    split : float or bool
        Share of the rows that trains the propensity model; true for one half. False uses all rows
        for the model and for the mean, with half of ε and δ each.
    ridge : float
        Penalty λ of the propensity model on features of norm at most one.
    truncation : float
        Scores are kept within [truncation, 1 − truncation].
    delta : str or float
        δ of the guarantee; 0 uses Laplace noise and is pure ε.
    """

    split: float | bool = _HALF
    ridge: float = 0.01
    truncation: float = 0.1
    delta: str | float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        settle(
            self,
            split=_read_split(self.split),
            ridge=real_number("the ridge penalty", self.ridge, 1e-5, 1e3),
            truncation=real_number("the truncation", self.truncation, 1e-3, 0.499),
        )
        delta = noise_delta(self.delta)
        if self.split is False and 0 < delta < _LEAST_SHARED_DELTA:
            msg = "all rows serve twice, with half of delta each: delta is at least 2e-12, or 0"
            raise ArgumentError(msg, parameter="delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class IpwSettings(BaselineSettings):
    """Settings of inverse probability weighting.

    Attributes
    ----------
    same_rows : bool
        True if all rows served both the model and the mean; absent if they were split.
    """

    methods: ClassVar[tuple[str, ...]] = ("ipw",)

    split: SplitSizes
    ridge: float
    truncation: float
    confidence: float
    noise_standard_deviation: float
    budget: Mapping[str, float]
    noise_interval_covers: str
    population: str
    notes: tuple[str, ...] | Absent = ABSENT
    same_rows: bool | Absent = ABSENT


def estimate_ipw(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release an inverse-probability-weighted effect.

    Neighbours: one record replaced. Cost: (ε, δ) for the row's own part, which is the cost of
    the whole; or half of it for each of two passes over all rows. Proof: docs/proofs/baselines.md.
    """
    options = options_of(request, IpwOptions, "ipw")
    delta = noise_delta(options.delta)
    whole = Budget(request.epsilon, delta, "")
    (training, fitting), (evaluation, weighting) = _stages(study, options, whole, noise)
    coefficients = release_vector(
        noise,
        "propensity weights",
        fit_propensity(training, options.ridge),
        sensitivity=propensity_sensitivity(training, options.ridge),
        budget=fitting,
    )
    total = evaluation.fold(weighted_kernel(coefficients, options.truncation))
    effect = release_integer(
        noise,
        "weighted outcomes",
        total,
        sensitivity=weighted_sensitivity(options.truncation),
        # A step of the weighted sum, in units of the outcome.
        unit=Fraction(study.domain.bounds.width)
        / (evaluation.size << (OUTCOME_BITS + WEIGHT_BITS)),
        budget=weighting,
    )
    settings = IpwSettings(
        split=SplitSizes(training.size, evaluation.size),
        ridge=options.ridge,
        truncation=options.truncation,
        noise_standard_deviation=effect.deviation,
        noise_interval_covers=(
            "the noise of the weighted mean; not that of the scores, not sampling, not confounding"
        ),
        same_rows=True if options.split is False else ABSENT,
        **common_settings(request, noise),
    )
    return replace(Estimate.of(effect.quantity(request.coverage), settings), delta=delta)


def _stages(
    study: Study, options: IpwOptions, whole: Budget, noise: Noise
) -> tuple[tuple[RowSplit, Budget], tuple[RowSplit, Budget]]:
    """Return the rows of the model and of the mean, and what the pass over each may cost.

    Split rows cost the whole for either part, all rows twice cost half of it each time.
    """
    if options.split is False:
        rows, half = all_rows(study), Budget(whole.epsilon / 2, whole.delta / 2, "")
        return (rows, half), (rows, half)
    training, evaluation = split_rows(study, options.split, noise.entropy)
    return (
        (training, replace(whole, part="training")),
        (evaluation, replace(whole, part="evaluation")),
    )


def _read_split(split: object) -> float | bool:
    """Return the share that trains the model, or False for all rows twice."""
    if isinstance(split, bool):
        return _HALF if split else False
    return real_number("the split (or false for all rows twice)", split, 0.05, 0.95)


def weighted_sensitivity(truncation: float) -> int:
    """Return how far one record moves the weighted sum, in steps: B/c on the grids."""
    return _largest_weight(truncation) * OUTCOME_STEPS


def weighted_kernel(coefficients: Floats, truncation: float) -> Callable[[Block], int]:
    """Return the kernel ``Σ (t/e − (1 − t)/(1 − e))·(y − middle)`` in exact integers."""
    largest = _largest_weight(truncation)

    def kernel(block: Block) -> int:
        scores = np.clip(scores_of(block, coefficients), truncation, 1 - truncation)
        weights = np.where(block.treatment, 1 / scores, 1 / (1 - scores))
        steps = np.minimum(quantize_weights(weights), largest)
        signed = np.where(block.treatment, steps, -steps)
        outcome = np.zeros(signed.size, np.int32) if block.outcome is None else block.outcome
        return weighted_sum(signed, outcome - np.int32(OUTCOME_STEPS // 2))

    return kernel


def _largest_weight(truncation: float) -> int:
    return math.ceil(Fraction(1 << WEIGHT_BITS) / Fraction(truncation))
