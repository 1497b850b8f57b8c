"""Models per fold, averaged for the other folds (after Lebeda, Even, Bellet and Josse 2025).

Every fold fits ordinary models; a unit is scored with the average of the models of all other folds.
A record changes one fold's models, hence one of K − 1 averaged models for the other units, and its
own score: that bounds the sensitivity without any noise in the models. Proof:
docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from private_ate.arguments import one_of, real_number, settle, whole_number
from private_ate.arrays import Floats
from private_ate.baselines.nuisance_models import NuisanceModels, fit_nuisance_models
from private_ate.baselines.steps import (
    SCORE_BITS,
    BaselineSettings,
    Budget,
    RowSplit,
    common_settings,
    release_integer,
    row_hashes,
    split_folds,
)
from private_ate.effects.estimate import Estimate
from private_ate.methods.composition import options_of
from private_ate.privacy.accounting import DEFAULT_DELTA, noise_delta
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent
from private_ate.study import Block, MatchingStudy

__all__ = ["FoldSplitOptions", "estimate_fold_split", "fold_sensitivity", "score_kernel"]

Score = Literal["doubly_robust", "weighted", "outcome_model"]


@dataclass(frozen=True, slots=True)
class FoldSplitOptions:
    """Parameters of averaging models over folds.

    Attributes
    ----------
    score : "doubly_robust", "weighted" or "outcome_model"
        AIPW, IPW or the G-formula; the last needs the least noise.
    folds : int
        Number of folds (K); more folds mean less noise and cruder models.
    overlap : float
        Propensity scores are kept within [overlap, 1 − overlap] (η).
    ridge : float
        Penalty λ of the propensity models.
    delta : str or float
        δ of the guarantee; 0 uses Laplace noise and is pure ε.
    """

    score: Score = "doubly_robust"
    folds: int = 20
    overlap: float = 0.1
    ridge: float = 0.01
    delta: str | float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        one_of("score", self.score, ("doubly_robust", "weighted", "outcome_model"))
        settle(
            self,
            folds=whole_number("the number of folds", self.folds, 2, 1000),
            overlap=real_number("the overlap", self.overlap, 0.02, 0.499),
            ridge=real_number("the ridge penalty", self.ridge, 1e-5, 1e3),
        )
        noise_delta(self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldSplitSettings(BaselineSettings):
    """Settings of the fold-split baseline.

    Attributes
    ----------
    score : str
        Which score of a row was averaged.
    folds : int
        Parts of the rows, each with models of its own.
    """

    methods: ClassVar[tuple[str, ...]] = ("fold_split",)

    score: Score
    folds: int
    overlap: float
    ridge: float
    confidence: float
    noise_standard_deviation: float
    budget: Mapping[str, float]
    noise_interval_covers: str
    population: str
    notes: tuple[str, ...] | Absent = ABSENT


def estimate_fold_split(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release the mean score under models averaged over the other folds.

    Neighbours: one record replaced. Cost: (ε, δ), or ε with δ = 0. Proof: docs/proofs/baselines.md.
    """
    options = options_of(request, FoldSplitOptions, "fold_split")
    delta = noise_delta(options.delta)
    parts = split_folds(study, options.folds, noise.entropy)
    models = [fit_nuisance_models(part, options.ridge) for part in parts]
    total = study.fold(score_kernel(models, parts, options))
    effect = release_integer(
        noise,
        "mean score",
        total,
        sensitivity=fold_sensitivity(options, study.size),
        unit=Fraction(study.domain.bounds.width) / (study.size << SCORE_BITS),
        budget=Budget(request.epsilon, delta, ""),
    )
    settings = FoldSplitSettings(
        score=options.score,
        folds=options.folds,
        overlap=options.overlap,
        ridge=options.ridge,
        noise_standard_deviation=effect.deviation,
        noise_interval_covers="the noise of the mean score; not sampling, not confounding",
        **common_settings(request, noise),
    )
    return replace(Estimate.of(effect.quantity(request.coverage), settings), delta=delta)


def fold_sensitivity(options: FoldSplitOptions, size: int) -> int:
    """Return how far one record moves the sum of scores, in steps.

    Its own score by twice the largest one; every other score because one of K − 1 averaged models
    changes: by B(2/η − 1)/(K − 1) for the doubly robust score, by B(1/η − 1)/(2(K − 1)) for the
    weighted one, by 2B/(K − 1) for the outcome model. One step each for rounding.
    """
    inverse = 1 / Fraction(options.overlap)
    own, others = {
        "doubly_robust": (2 * inverse, 2 * inverse - 1),
        "weighted": (inverse, (inverse - 1) / 2),
        "outcome_model": (Fraction(2), Fraction(2)),
    }[options.score]
    steps = 1 << SCORE_BITS
    moved = math.ceil(others * steps / (options.folds - 1)) + 1
    return math.ceil(own * steps) + 1 + (size - 1) * moved


def score_kernel(
    models: list[NuisanceModels], parts: list[RowSplit], options: FoldSplitOptions
) -> Callable[[Block], int]:
    """Return the kernel that adds the scores in exact integers."""
    edges = np.array([part.high for part in parts[:-1]])

    def kernel(block: Block) -> int:
        places = row_hashes(block.first, block.treatment.size, parts[0].salt)
        fold = np.searchsorted(edges, places, side="right")
        centred = Block(2.0 * block.covariates - 1.0, block.arm, block.outcome, block.first)
        averages = _averages(models, centred, fold, options.overlap)
        outcome = (
            np.full(fold.size, 0.5) if block.outcome is None else block.outcome / OUTCOME_STEPS
        )
        scores = _scores(averages, block.treatment, outcome, options.score)
        return int(np.rint(scores * (1 << SCORE_BITS)).astype(np.int64).sum())

    return kernel


def _averages(
    models: list[NuisanceModels], block: Block, fold: npt.NDArray[np.intp], overlap: float
) -> Floats:
    """Return inverse scores of both arms and expected outcomes over the other folds; treated first.

    Of shape (4, rows).
    """
    sums = np.zeros((4, fold.size))
    for place, model in enumerate(models):
        scores = model.scores(block, overlap)
        values = np.stack((1 / scores, 1 / (1 - scores), *model.outcomes(block)))
        sums += np.where(fold != place, values, 0.0)
    return sums / (len(models) - 1)


def _scores(
    averages: Floats, treatment: npt.NDArray[np.bool_], outcome: Floats, score: Score
) -> Floats:
    """Return the scores of all rows in units of the outcome's range."""
    treated_weight, control_weight, treated, control = averages
    scores: Floats = treated - control
    if score == "weighted":
        scores = np.where(treatment, treated_weight, -control_weight) * (outcome - 0.5)
    elif score == "doubly_robust":
        scores = scores + np.where(
            treatment, treated_weight * (outcome - treated), control_weight * (control - outcome)
        )
    return scores
