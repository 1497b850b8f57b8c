"""Propensity and outcome models of competitors, private or not; covariates are in [−1, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Floats
from private_ate.baselines.steps import Budget, RowSplit, release_vector
from private_ate.models.propensity import SOLVER_GRADIENT, fit_propensity_obliviously
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.study import Block

__all__ = [
    "NuisanceModels",
    "fit_nuisance_models",
    "fit_propensity",
    "propensity_sensitivity",
    "release_nuisance_models",
    "scores_of",
]

_ARM_SENSITIVITY = math.sqrt(1.5) * (1 + 1e-9)  # (count, sum, sum) moves by at most (1, ½, ½)
_OUTCOME_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class NuisanceModels:
    """Weights of the three models for ``z = (1, 2x − 1)``; outcomes in units of their range."""

    propensity: Floats
    treated: Floats
    control: Floats

    def scores(self, block: Block, overlap: float) -> Floats:
        """Return the truncated propensity scores of a block."""
        return np.clip(scores_of(block, self.propensity), overlap, 1 - overlap)

    def outcomes(self, block: Block) -> tuple[Floats, Floats]:
        """Return expected outcomes with and without treatment, clipped to the bounds."""
        treated, control = (
            np.clip(block.covariates @ weights[1:] + weights[0], 0.0, 1.0)
            for weights in (self.treated, self.control)
        )
        return treated, control


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


def scores_of(block: Block, coefficients: Floats) -> Floats:
    """Return the propensity scores of a block whose covariates are in [−1, 1]."""
    linear = np.clip(block.covariates @ coefficients[1:] + coefficients[0], -700.0, 700.0)
    scores: Floats = 1.0 / (1.0 + np.exp(-linear))
    return scores


def release_nuisance_models(
    part: RowSplit, ridge: float, budget: Budget, noise: Noise
) -> NuisanceModels:
    """Release a propensity model and the mean outcome of each arm in one Gaussian vector.

    Both are divided by their L2 sensitivity and by √2, so that the joint vector moves by at most
    one when a record is replaced. Cost: the budget. Proof: docs/proofs/baselines.md.
    """
    weights = fit_propensity(part, ridge)
    slope = propensity_sensitivity(part, ridge) * math.sqrt(2)
    arm = _ARM_SENSITIVITY * math.sqrt(2)
    joint = np.concatenate((weights / slope, part.fold(_arm_totals) / arm))
    noisy = release_vector(noise, "nuisance models", joint, sensitivity=1 + 1e-9, budget=budget)
    count, treated, control = noisy[-3:] * arm
    return NuisanceModels(
        noisy[:-3] * slope,
        _constant(treated, count, weights.size),
        _constant(control, part.size - count, weights.size),
    )


def fit_nuisance_models(part: RowSplit, ridge: float) -> NuisanceModels:
    """Fit a logistic model and a linear model per arm without any noise; **not private**."""
    dimension = part.dimension + 1
    penalty = _OUTCOME_RIDGE * part.size * np.eye(dimension)
    control, treated = (
        np.linalg.solve(moments[:, :-1] + penalty, moments[:, -1])
        for moments in part.fold(_moments)
    )
    middle = np.eye(dimension)[0] / 2  # outcomes were centred
    return NuisanceModels(fit_propensity(part, ridge), treated + middle, control + middle)


def _arm_totals(block: Block) -> Floats:
    """Return the number of treated rows and the centred outcome sums of both arms, in ranges."""
    centred, treated = _centred(block), block.treatment
    return np.array([np.count_nonzero(treated), centred[treated].sum(), centred[~treated].sum()])


def _moments(block: Block) -> Floats:
    """Return Gram matrices beside cross products by arm (control, treated); shape (2, p, p + 1)."""
    features = np.column_stack((np.ones(block.treatment.size), block.covariates))
    whole = np.column_stack((features, _centred(block)))
    arms = (~block.treatment, block.treatment)
    return np.stack([features[arm].T @ whole[arm] for arm in arms])


def _centred(block: Block) -> Floats:
    """Return outcomes minus the middle of their bounds, in units of the range."""
    if block.outcome is None:
        return np.zeros(block.treatment.size)
    return block.outcome / OUTCOME_STEPS - 0.5


def _constant(total: float, count: float, dimension: int) -> Floats:
    """Return the weights of a model that always expects the mean."""
    mean = min(max(total / max(count, 1.0), -0.5), 0.5) + 0.5
    weights = np.zeros(dimension)
    weights[0] = mean
    return weights
