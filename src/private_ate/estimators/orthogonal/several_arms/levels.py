"""Rough levels of the arms, by which outcomes are centred before they are weighted."""

from __future__ import annotations

from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.orthogonal.several_arms.models import Step
from private_ate.estimators.orthogonal.several_arms.rows import Outcomes
from private_ate.estimators.orthogonal.several_arms.sizes import NoisySizes
from private_ate.estimators.orthogonal.several_arms.sums import Sums, add_by_arm
from private_ate.models.folds import by_chunks
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block, Study

__all__ = ["release_levels"]

_SPREAD: Final = 0.15  # of the range: how far levels of arms are thought to lie apart
_BOUND: Final = 0.45  # of the range: how far from its middle a level is taken to lie


def release_levels(
    study: Study, outcomes: Outcomes, sizes: NoisySizes, noise: Noise, step: Step
) -> Floats:
    """Release the sum of outcomes in every arm and shrink each arm's mean towards that of all.

    Returns the levels δ in units of the declared range, shape (K,). Neighbours: ``changes`` rows
    replaced. Sensitivity (L1): ``changes`` times the range W of outcomes, because they are
    centred: ``|y − y'|`` in one sum or ``|y| + |y'|`` in two. Cost: ε. Proof:
    docs/proofs/several-arms-sample.md.
    """

    def kernel(block: Block) -> Sums:
        return add_by_arm(outcomes.of(block) * block.present, block.arm, sizes.arms)

    exact = study.fold(by_chunks(kernel), title="arms").steps
    noisy = noise.laplace(
        "arm sums", exact, sensitivity=2 * outcomes.half_range * step.changes, epsilon=step.epsilon
    )
    sums = np.array([value / (2 * OUTCOME_STEPS) for value in noisy])
    scale = outcomes.width * step.changes / float(step.epsilon)
    return shrunken_levels(sums, sizes, outcomes.width, scale)


def shrunken_levels(sums: Floats, sizes: NoisySizes, width: float, scale: float) -> Floats:
    """Shrink noisy means of arms as their noise suggests and keep them within the range."""
    bound = _BOUND * width
    common = float(np.clip(sums.sum() / sizes.members, -bound, bound))
    variance = 2 * (scale**2 + sizes.scale**2 * common**2) / sizes.sizes**2
    prior = (_SPREAD * width) ** 2
    raw = np.clip(sums / sizes.sizes, -bound, bound)
    levels: Floats = np.clip(common + (raw - common) * prior / (prior + variance), -bound, bound)
    return levels
