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
from private_ate.baselines.perturbation import Budget, release_integer, release_vector
from private_ate.baselines.row_splits import RowSplit, all_rows, split_rows
from private_ate.effects.estimate import Estimate
from private_ate.errors import ArgumentError
from private_ate.methods.composition import options_of
from private_ate.models.propensity import SOLVER_GRADIENT, fit_propensity_obliviously
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
from private_ate.settings import ABSENT, Absent, Settings, SplitSizes
from private_ate.study import Block, MatchingStudy, Study

__all__ = ["IpwOptions", "estimate_ipw", "fit_propensity", "propensity_sensitivity", "scores_of"]

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
class IpwSettings(Settings):
    """Settings of inverse probability weighting.

    Attributes
    ----------
    split : pair of int
        How many rows trained the models and how many the effect was estimated on.
    ridge : float
        Penalty λ of the models.
    truncation : float
        Least propensity, and distance from one, that weights are held to.
    noise_standard_deviation : float
        Standard deviation of the effect's own noise, in units of the outcome.
    same_rows : bool
        True if all rows served both the model and the mean; absent if they were split.
    """

    methods: ClassVar[tuple[str, ...]] = ("ipw",)
    levels: ClassVar[tuple[str, ...]] = ("sample",)

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
    stages = _stages(study, options, Budget(request.epsilon, delta, ""), noise)
    training, evaluation = stages.training, stages.evaluation
    coefficients = release_vector(
        noise,
        "propensity weights",
        fit_propensity(training, options.ridge),
        sensitivity=propensity_sensitivity(training, options.ridge),
        budget=stages.training_budget,
    )
    total = evaluation.fold(weighted_kernel(coefficients, options.truncation))
    effect = release_integer(
        noise,
        "weighted outcomes",
        total,
        sensitivity=weighted_sensitivity(options.truncation),
        unit=_unit(study.domain.bounds.width, evaluation.size),
        budget=stages.evaluation_budget,
    )
    settings = IpwSettings(
        split=SplitSizes(training.size, evaluation.size),
        ridge=options.ridge,
        truncation=options.truncation,
        confidence=request.coverage,
        noise_standard_deviation=effect.deviation,
        budget={spend.step: float(spend.epsilon) for spend in noise.spends},
        noise_interval_covers=(
            "the noise of the weighted mean; not that of the scores, not sampling, not confounding"
        ),
        population="all n units (ATE)",
        same_rows=True if options.split is False else ABSENT,
    )
    return replace(Estimate.of(effect.quantity(request.coverage), settings), delta=delta)


@dataclass(frozen=True, slots=True)
class _Stages:
    """The rows of the model and of the mean, and what each pass over them may cost."""

    training: RowSplit
    evaluation: RowSplit
    training_budget: Budget
    evaluation_budget: Budget


def _stages(study: Study, options: IpwOptions, whole: Budget, noise: Noise) -> _Stages:
    """Split the rows at the whole cost for either part, or the cost over all rows."""
    if options.split is False:
        rows, half = all_rows(study), Budget(whole.epsilon / 2, whole.delta / 2, "")
        return _Stages(rows, rows, half, half)
    training, evaluation = split_rows(study, options.split, noise.entropy)
    return _Stages(
        training,
        evaluation,
        replace(whole, part="training"),
        replace(whole, part="evaluation"),
    )


def _read_split(split: object) -> float | bool:
    """Return the share that trains the model, or False for all rows twice."""
    if isinstance(split, bool):
        return _HALF if split else False
    return real_number("the split (or false for all rows twice)", split, 0.05, 0.95)


def fit_propensity(part: RowSplit, ridge: float) -> Floats:
    """Fit the propensity model on ``z/√p`` with ``z = (1, 2x − 1)`` of length p.

    Returned for the unscaled z: scaling the features by 1/√p with penalty λ is the same as leaving
    them with penalty pλ. The number of passes depends on p and λ only.
    """
    dimension = part.dimension + 1
    if part.is_empty:
        return np.zeros(dimension)
    return fit_propensity_obliviously(part, ridge * dimension, 2).coordinates


def propensity_sensitivity(part: RowSplit, ridge: float) -> float:
    """Return the L2 sensitivity of the fitted weights, solver error included.

    ``2/(n₁ λ √p)``: the objective is pλ-strongly convex and one record changes its gradient by at
    most ``2√p/n₁``. Proof: docs/proofs/baselines.md.
    """
    dimension = part.dimension + 1
    exact = 2 / (part.size * ridge * math.sqrt(dimension))
    return (exact + 2 * SOLVER_GRADIENT / (ridge * dimension)) * (1 + 1e-9)


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


def scores_of(block: Block, coefficients: Floats) -> Floats:
    """Return the propensity scores of a block whose covariates are in [−1, 1]."""
    linear = np.clip(block.covariates @ coefficients[1:] + coefficients[0], -700.0, 700.0)
    scores: Floats = 1.0 / (1.0 + np.exp(-linear))
    return scores


def _largest_weight(truncation: float) -> int:
    return math.ceil(Fraction(1 << WEIGHT_BITS) / Fraction(truncation))


def _unit(width: float, rows: int) -> Fraction:
    """Return the size of one step of the weighted sum, in units of the outcome."""
    return Fraction(width) / (rows << (OUTCOME_BITS + WEIGHT_BITS))
