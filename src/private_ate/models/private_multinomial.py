"""Multinomial regression under objective perturbation: one model of several arms.

It is the propensity model of the score path where several arms are declared, in place of a
logistic model for each arm. Weights are Helmert coordinates; Lemma 2K of
docs/proofs/several-arms.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from private_ate.arrays import Floats
from private_ate.models.folds import FEATURE_ROWS, LossSums, rows_of, runs
from private_ate.models.multinomial import MultinomialModel, Piece, helmert, loss_sums
from private_ate.models.private_logistic import PrivateFit, RowFeatures
from private_ate.privacy.noise import Noise
from private_ate.study import Block, Study

__all__ = ["MultinomialObjective", "release_private_multinomial"]

_TITLE = "model of the arms"


@dataclass(frozen=True, slots=True)
class MultinomialObjective(PrivateFit):
    """The multinomial loss of a model of arms on scaled covariates, in Helmert coordinates."""

    arms: int

    @property
    def columns(self) -> int:
        """The number of columns (p): the features and the constant, which comes first."""
        return self.scaling.columns

    @property
    def dimension(self) -> int:
        """The number of free weights: K − 1 for each column."""
        return (self.arms - 1) * self.columns

    @property
    def smoothness(self) -> float:
        """A bound on the eigenvalues of the loss's Hessian: half of ‖z‖² for a row (Gershgorin)."""
        return self.size * self.columns / 2

    def sums(self, rows: Study, point: Floats, *, curved: bool = False) -> LossSums:
        """Return sums over rows of the loss and its derivatives."""
        basis = helmert(self.arms)
        coefficients = basis.T @ point.reshape(self.arms - 1, -1)

        def kernel(block: Block) -> LossSums:
            return loss_sums(coefficients, basis, self._pieces(block), curved=curved)

        return rows.fold(kernel, title=_TITLE)

    def _pieces(self, block: Block) -> Iterator[Piece]:
        for run in runs(block, FEATURE_ROWS):
            part = rows_of(block, run)
            yield Piece(self.scaling.features(part), part.arm, part.present)

    def reach(self, direction: Floats) -> float:
        """Return a bound on the range of a row's logits along a direction.

        Two entries of a vector differ by at most √2 times its length, and no feature exceeds 1.
        """
        columns = direction.reshape(self.arms - 1, -1)
        return math.sqrt(2) * float(np.linalg.norm(columns, axis=0).sum())


def release_private_multinomial(
    study: Study, scaling: RowFeatures, noise: Noise, *, changes: int, epsilon: Fraction
) -> MultinomialModel:
    """Fit one model of all declared arms on scaled covariates, by objective perturbation.

    Neighbours: at most ``changes`` rows replaced. Sensitivity: a column of the gradient, a number
    per arm, moves by at most ``4·changes`` in L1. Cost: ε. Proof: docs/proofs/several-arms.md
    (Lemma 2K). The model's features are those of the scaling, in [−1, 1].
    """
    arms = study.domain.treatment.size
    objective = MultinomialObjective(study, scaling, arms)
    coordinates = noise.objective_by_arm(
        "propensity model", objective, changes=changes, epsilon=epsilon
    )
    return MultinomialModel.from_coordinates(coordinates, arms)
