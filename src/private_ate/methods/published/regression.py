"""Phase 1 of the paper, Algorithm 1: a propensity model, and the noise of weights and scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from private_ate.models.logistic import SOLVER_GRADIENT, fit_logistic, fit_logistic_obliviously
from private_ate.models.multinomial import (
    MultinomialModel,
    fit_multinomial,
    fit_multinomial_obliviously,
)
from private_ate.privacy.noise import Noise
from private_ate.study import MatchingStudy

__all__ = [
    "Regression",
    "ScoreNoise",
    "release_coefficients",
    "release_multinomial",
    "train_regression",
]


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

    Of two arms ``coefficients`` (d + 1,) are those of the log odds of treatment; of more they have
    a row for each arm, shape (K, d + 1).

    The scores themselves never leave the study: they are computed, and get their noise, when it
    puts its rows in order along them.
    """

    coefficients: npt.NDArray[np.float64]
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
    arms = study.domain.treatment.size
    if budgets is None:
        fit = fit_logistic if arms == 2 else fit_multinomial
        return Regression(fit(study.public(), ridge).coefficients, None)
    of_weights, of_scores = budgets
    if arms == 2:
        coefficients = release_coefficients(study, ridge, of_weights, rows_per_person, noise)
    else:
        model = release_multinomial(study, ridge, of_weights, rows_per_person, noise)
        coefficients = model.coefficients
    return Regression(coefficients, ScoreNoise(of_scores, rows_per_person, arms))


def release_coefficients(
    study: MatchingStudy, ridge: float, epsilon: Fraction, rows_per_person: int, noise: Noise
) -> npt.NDArray[np.float64]:
    """Fit the propensity model and release its weights with Laplace noise: w′ of Algorithm 1.

    Neighbours: one person's rows replaced. Sensitivity (L1): ``m·2d/(nλ) + 2√d·γ/λ`` with d
    the number of weights, m the rows a person may have and γ the solver's gradient bound, plus
    one grid step per weight for rounding; for m = 1 the first term is that of the paper's
    Proof 1. Cost: ε (ε₁₁ in the paper).
    Proof: docs/proofs/propensity.md.
    """
    weights = fit_logistic_obliviously(study, ridge).coefficients
    dimension = weights.size
    sensitivity = rows_per_person * 2 * dimension / (study.size * ridge)
    sensitivity += 2 * math.sqrt(dimension) * SOLVER_GRADIENT / ridge
    return _add_noise(weights, sensitivity, epsilon, noise)


def release_multinomial(
    study: MatchingStudy, ridge: float, epsilon: Fraction, rows_per_person: int, noise: Noise
) -> MultinomialModel:
    """Fit the model of several arms and release its Helmert coordinates with Laplace noise.

    Neighbours: one person's rows replaced. Sensitivity (L1): ``m·d√(2(K − 1))/(nλ)`` and
    ``√((K − 1)d)·γ/λ`` for the solver, with d the number of columns and the constant, m the rows
    a person may have and γ the solver's gradient bound, plus one grid step per coordinate for
    rounding. Cost: ε (ε₁₁ in the paper). For two arms the first term is that of
    `release_coefficients` in units of √2. Proof: docs/proofs/several-arms.md.
    """
    arms = study.domain.treatment.size
    coordinates = fit_multinomial_obliviously(study, ridge, arms).coordinates
    columns = coordinates.size // (arms - 1)
    sensitivity = rows_per_person * columns * math.sqrt(2 * (arms - 1)) / (study.size * ridge)
    sensitivity += math.sqrt(coordinates.size) * SOLVER_GRADIENT / ridge
    # A relative 1e-12 covers the rounding of these lines.
    released = _add_noise(coordinates, sensitivity * (1 + 1e-12), epsilon, noise)
    return MultinomialModel.from_coordinates(released, arms)


def _add_noise(
    weights: npt.NDArray[np.float64], sensitivity: float, epsilon: Fraction, noise: Noise
) -> npt.NDArray[np.float64]:
    """Put fitted numbers on a grid far below their L1 sensitivity and add Laplace noise."""
    dimension = weights.size
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
