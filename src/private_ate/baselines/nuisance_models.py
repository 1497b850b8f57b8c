"""Propensity and outcome models of the doubly robust baseline, private or not."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Floats
from private_ate.baselines.ipw import fit_propensity, propensity_sensitivity, scores_of
from private_ate.baselines.perturbation import Budget, release_vector
from private_ate.baselines.row_splits import RowSplit
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.study import Added, Block

__all__ = ["NuisanceModels", "fit_nuisance_models", "release_nuisance_models"]

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


@dataclass(frozen=True, slots=True)
class _ArmTotals(Added):
    """Number of treated rows and centred outcome sums of both arms, in units of the range."""

    treated_count: int
    treated: float
    control: float


@dataclass(frozen=True, slots=True)
class _Moments(Added):
    """Gram matrices and cross products by arm (control, treated); shapes (2, p, p), (2, p)."""

    gram: Floats
    cross: Floats


def release_nuisance_models(
    part: RowSplit, ridge: float, budget: Budget, noise: Noise
) -> NuisanceModels:
    """Release a propensity model and the mean outcome of each arm in one Gaussian vector.

    Both are divided by their L2 sensitivity and by √2, so that the joint vector moves by at most
    one when a record is replaced. Cost: the budget. Proof: docs/proofs/baselines.md.
    """
    weights = fit_propensity(part, ridge)
    slope = propensity_sensitivity(part, ridge) * math.sqrt(2)
    totals = part.fold(_arm_totals)
    arm = _ARM_SENSITIVITY * math.sqrt(2)
    sums = np.array([totals.treated_count, totals.treated, totals.control])
    joint = np.concatenate((weights / slope, sums / arm))
    noisy = release_vector(noise, "nuisance models", joint, sensitivity=1 + 1e-9, budget=budget)
    count, treated, control = noisy[-3:] * arm
    return NuisanceModels(
        noisy[:-3] * slope,
        _constant(treated, count, weights.size),
        _constant(control, part.size - count, weights.size),
    )


def fit_nuisance_models(part: RowSplit, ridge: float) -> NuisanceModels:
    """Fit a logistic model and a linear model per arm without any noise; **not private**."""
    moments = part.fold(_moments)
    dimension = part.dimension + 1
    penalty = _OUTCOME_RIDGE * part.size * np.eye(dimension)
    control, treated = (
        np.linalg.solve(gram + penalty, cross)
        for gram, cross in zip(moments.gram, moments.cross, strict=True)
    )
    middle = np.eye(dimension)[0] / 2  # outcomes were centred
    return NuisanceModels(fit_propensity(part, ridge), treated + middle, control + middle)


def _arm_totals(block: Block) -> _ArmTotals:
    centred = _centred(block)
    treated = float(centred[block.treatment].sum())
    return _ArmTotals(
        int(np.count_nonzero(block.treatment)), treated, float(centred[~block.treatment].sum())
    )


def _moments(block: Block) -> _Moments:
    features = np.column_stack((np.ones(block.treatment.size), block.covariates))
    centred = _centred(block)
    arms = (~block.treatment, block.treatment)
    return _Moments(
        np.stack([features[arm].T @ features[arm] for arm in arms]),
        np.stack([features[arm].T @ centred[arm] for arm in arms]),
    )


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
