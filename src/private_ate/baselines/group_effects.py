"""The weighted effect of every group of rows, from the group's own rows alone.

Functions of stacked arrays whose first axis runs over groups; no operation mixes groups, the
number of steps is fixed, and nothing raises or warns whatever a group holds. Privacy does not
rest on what is computed here. Outcomes are in units of their declared range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit

from private_ate.arrays import Floats
from private_ate.baselines.tilts import balancing_weights
from private_ate.estimators.request import Estimand
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.study import Groups

__all__ = ["GroupModel", "group_effects"]

_STEPS: Final = 8  # of Newton's method
_LARGEST_WEIGHT: Final = 50.0  # of the propensity model, so that a step too far stays finite


@dataclass(frozen=True, slots=True)
class GroupModel:
    """Whose effect a group estimates, the penalty of its scores and where they are cut."""

    estimand: Estimand
    ridge: float
    truncation: float


def group_effects(groups: Groups, model: GroupModel) -> Floats:
    """Return a difference of weighted means per group, in [−1, 1]; 0 where an arm is empty."""
    present = groups.takes_part.astype(np.float64)
    scores = np.clip(_scores(groups, present, model.ridge), model.truncation, 1 - model.truncation)
    weights = balancing_weights(model.estimand, scores, groups.treatment) * present
    outcome = groups.outcome / OUTCOME_STEPS
    means, filled = [], np.ones(present.shape[0], dtype=np.bool_)
    for arm in (groups.treatment, ~groups.treatment):
        total = (weights * arm).sum(axis=1)
        sums = (weights * arm * outcome).sum(axis=1)
        means.append(sums / np.where(total > 0, total, 1.0))
        filled &= total > 0
    effects: Floats = np.where(filled, means[0] - means[1], 0.0)
    return effects


def _scores(groups: Groups, present: Floats, ridge: float) -> Floats:
    """Fit a logistic regression to ``(1, 2x − 1)`` with a ridge on all weights, by Newton steps."""
    features = np.concatenate((np.ones((*present.shape, 1)), 2.0 * groups.covariates - 1.0), axis=2)
    weights = np.zeros((present.shape[0], features.shape[2], 1))
    penalty = ridge * np.eye(features.shape[2])
    for _ in range(_STEPS):
        scores = expit((features @ weights)[..., 0])
        surprise = (groups.treatment - scores) * present
        gradient = features.swapaxes(1, 2) @ surprise[..., None] - ridge * weights
        curved = features * (scores * (1 - scores) * present)[..., None]
        step = np.linalg.solve(features.swapaxes(1, 2) @ curved + penalty, gradient)
        weights = np.clip(weights + step, -_LARGEST_WEIGHT, _LARGEST_WEIGHT)
    fitted: Floats = expit((features @ weights)[..., 0])
    return fitted
