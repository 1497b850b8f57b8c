"""Phase 1 of the paper, Algorithm 1: a propensity model, and the noise of weights and scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from private_ate.models.logistic import SOLVER_GRADIENT, fit_logistic, fit_logistic_obliviously
from private_ate.privacy.noise import Noise
from private_ate.study import MatchingStudy

__all__ = ["Regression", "ScoreNoise", "release_coefficients", "train_regression"]


@dataclass(frozen=True, slots=True)
class ScoreNoise:
    """The noise between e(X) and e′(X): Laplace of budget ε₁₂, drawn where the scores are.

    Attributes
    ----------
    epsilon : Fraction
        The budget ε₁₂ of the scores.
    rows_per_person : int
        How many rows a person may have.
    """

    epsilon: Fraction
    rows_per_person: int

    @property
    def bits(self) -> int:
        """The scores lie on a grid of 2 to the minus this; at most 2⁻²⁰ of the noise scale."""
        return max(0, 20 - math.floor(math.log2(self.rows_per_person / float(self.epsilon))))

    def add(self, scores: npt.NDArray[np.int64], noise: Noise) -> npt.NDArray[np.generic]:
        """Return e′(X) on the grid.

        Neighbours: one person's rows replaced, given the released weights w′. Sensitivity (L1):
        Δf_e = 1 for each of the person's rows, as a score lies in [0, 1]. Cost: ε₁₂.
        Proof: docs/proofs/published.md.
        """
        return noise.laplace_rows(
            "scores", scores, sensitivity=self.rows_per_person << self.bits, epsilon=self.epsilon
        )


@dataclass(frozen=True, slots=True)
class Regression:
    """What phase 1 hands to phase 2: weights w′, and what turns the scores e(X) into e′(X).

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

    The loss J(w) is Equation 5, with an intercept. At label level ``budgets`` is None: treatment
    and covariates are public, so w′ = w, e′(X) = e(X) and nothing is spent. At sample level it
    holds ε₁₁ and ε₁₂, for the noise of w and of e(X).
    """
    if budgets is None:
        return Regression(fit_logistic(study.public(), ridge).coefficients, None)
    of_weights, of_scores = budgets
    coefficients = release_coefficients(study, ridge, of_weights, rows_per_person, noise)
    return Regression(coefficients, ScoreNoise(of_scores, rows_per_person))


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
