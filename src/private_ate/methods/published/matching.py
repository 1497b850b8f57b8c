"""Phases 1 and 2 of the paper, Algorithms 1 and 2: scores, and units in order along them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Codes
from private_ate.models.propensity import (
    SOLVER_GRADIENT,
    PropensityModel,
    convexity,
    fit_propensity,
    fit_propensity_obliviously,
)
from private_ate.privacy.noise import Noise
from private_ate.study import MatchingStudy, MatchPool

__all__ = ["Regression", "ScoreNoise", "match_similar_units", "release_model", "train_regression"]


@dataclass(frozen=True, slots=True)
class ScoreNoise:
    """The noise between e(X) and e′(X): Laplace of budget ε₁₂, drawn where the scores are.

    Attributes
    ----------
    epsilon : Fraction
        The budget ε₁₂ of the scores.
    rows_per_person : int
        How many rows a person may have.
    arms : int
        How many arms there are. Of two, one score is noised and determines the other; of more, all.
    """

    epsilon: Fraction
    rows_per_person: int
    arms: int = 2

    @property
    def bits(self) -> int:
        """The scores lie on a grid of 2 to the minus this; at most 2⁻²⁰ of the noise scale."""
        return max(0, 20 - math.floor(math.log2(self.rows_per_person / float(self.epsilon))))

    @property
    def sensitivity(self) -> int:
        """How far one person moves all scores in L1, in grid steps.

        One score of a row lies in [0, 1]. All K of them add up to one before they are put on the
        grid, so they move by 2 in all, and by a step each for rounding.
        """
        steps = 1 << self.bits if self.arms == 2 else (2 << self.bits) + self.arms
        return self.rows_per_person * steps

    def add(self, scores: npt.NDArray[np.int64], noise: Noise) -> npt.NDArray[np.generic]:
        """Return e′(X) on the grid.

        Neighbours: one person's rows replaced, given the released weights w′. Sensitivity (L1):
        Δf_e = 1 for each of the person's rows, as a score lies in [0, 1]; of three or more arms 2
        for all scores of a row, shape (K, n), and a grid step for each. Cost: ε₁₂.
        Proof: docs/proofs/published.md, docs/proofs/several-arms.md.
        """
        noisy = noise.laplace_rows(
            "scores", scores.ravel(), sensitivity=self.sensitivity, epsilon=self.epsilon
        )
        return noisy.reshape(scores.shape)


@dataclass(frozen=True, slots=True)
class Regression:
    """What phase 1 hands to phase 2: weights w′, and what turns the scores e(X) into e′(X).

    The scores themselves never leave the study: they are computed, and get their noise, when it
    puts its rows in order along them.
    """

    model: PropensityModel
    score_noise: ScoreNoise | None


def train_regression(
    study: MatchingStudy,
    ridge: float,
    noise: Noise,
    *,
    budgets: tuple[Fraction, Fraction] | None = None,
    rows_per_person: int = 1,
) -> Regression:
    """Train the propensity model of phase 1: Algorithm 1 of the paper.

    The loss J(w) is Equation 5, with an intercept; of several arms its multinomial form. At label
    level ``budgets`` is None: treatment and covariates are public, so w′ = w, e′(X) = e(X) and
    nothing is spent. At sample level it holds ε₁₁ and ε₁₂, for the noise of w and of e(X).
    """
    if budgets is None:
        return Regression(fit_propensity(study.public(), ridge), None)
    of_weights, of_scores = budgets
    model = release_model(study, ridge, of_weights, rows_per_person, noise)
    return Regression(model, ScoreNoise(of_scores, rows_per_person, model.arms))


def release_model(
    study: MatchingStudy, ridge: float, epsilon: Fraction, rows_per_person: int, noise: Noise
) -> PropensityModel:
    """Fit the propensity model and release it with Laplace noise: w′ of Algorithm 1.

    Of two arms w are the log odds of treatment, of more the coordinates of the model.

    Neighbours: one person's rows replaced. Sensitivity (L1): of two arms ``m·2d/(nλ) + 2√d·γ/λ``
    with d the number of weights, m the rows a person may have and γ the solver's gradient bound;
    for m = 1 the first term is that of the paper's Proof 1. Of K arms and d columns, the constant
    among them, ``m·d√(2(K − 1))/(nλ) + √((K − 1)d)·γ/λ``. Both plus one grid step per weight for
    rounding. Cost: ε (ε₁₁ in the paper).
    Proof: docs/proofs/propensity.md, and of several arms docs/proofs/several-arms.md.
    """
    arms = study.domain.treatment.size
    weights = fit_propensity_obliviously(study, ridge, arms).coordinates
    columns, free = study.dimension + 1, 2 if arms == 2 else arms - 1
    sensitivity = rows_per_person * columns * math.sqrt(2 * free) / (study.size * ridge)
    sensitivity += 2 * math.sqrt(weights.size) * SOLVER_GRADIENT / convexity(ridge, arms)
    sensitivity *= 1 + 1e-12  # covers the rounding of these lines
    grid = Fraction(2) ** (math.floor(math.log2(sensitivity)) - 20)
    noisy = noise.laplace(
        "weights",
        [round(Fraction(float(weight)) / grid) for weight in weights],
        sensitivity=math.ceil(Fraction(sensitivity) / grid) + weights.size,
        epsilon=epsilon,
    )
    released = np.array([float(step * grid / 2) for step in noisy])
    return PropensityModel.from_coordinates(released, arms)


def match_similar_units(
    study: MatchingStudy,
    regression: Regression,
    noise: Noise,
    *,
    epsilon: Fraction | None = None,
    rows_per_person: int = 1,
) -> MatchPool:
    """Put the units in order along the score, in both arms: Algorithm 2 of the paper.

    The distance is that of Equation 3, ``|e′(x₁) − e′(x₂)|``. The paper sorts it once for every
    unit and keeps two matrices H of n₁·n₀ entries; one sort of all scores holds the same order,
    and the pool that is returned finds neighbours in it. At label level ``epsilon`` is None and
    T′ = T, which is public.

    Neighbours: one person's rows replaced. Sensitivity: one treatment for each of the person's
    rows. Cost: ε₂, by randomised response of the treatments, generalised where there are several
    arms; the order follows from what was released. Proof: docs/proofs/published.md, and of several
    arms docs/proofs/several-arms-sample.md.
    """
    model, scores, arms = regression.model, regression.score_noise, study.domain.treatment.size
    is_pair = arms == 2
    weights = model.coordinates if is_pair else model.coefficients
    if scores is None and epsilon is None:
        return study.public().pool(weights)
    if scores is None or epsilon is None:
        msg = "scores and treatments are both private or both public: give both a budget, or none"
        raise TypeError(msg)

    def respond(codes: Codes) -> Codes:
        if not is_pair:
            return noise.generalized_response(
                "treatments", codes, arms=arms, changes=rows_per_person, epsilon=epsilon
            )
        bits = codes.view(np.bool_)
        return noise.randomized_response(
            "treatments", bits, changes=rows_per_person, epsilon=epsilon
        ).view(np.uint8)

    return study.noisy_pool(weights, scores.bits, partial(scores.add, noise=noise), respond)
