"""Public sampling weights of several arms: what a unit counts for, and what they add up to.

As in ``sampled_units``, arm by arm; see docs/proofs/weights.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Floats, Indices
from private_ate.estimators.calibrated.sampled_units import WeightSums, weights_of
from private_ate.study import Block, Study

__all__ = ["SampledArm", "sampled_arms"]


@dataclass(frozen=True, slots=True)
class SampledArm:
    """Sampling weights of one arm's rows, as shares of the mean of all.

    Attributes
    ----------
    mean : float
        The mean weight of all rows, as a share of the declared bound.
    level : float
        The weight of a unit of mean sampling weight, where the arm is weighted by sampling weights
        alone.
    worth : float
        How many units of equal weight the arm is worth under sampling weights alone.
    largest : float
        The largest sampling weight of the arm over the mean.
    """

    mean: float
    level: float
    worth: float
    largest: float

    @property
    def heaviest(self) -> float:
        """The largest weight in use if no cap binds and nothing has to be balanced."""
        return self.level * self.largest

    def of(self, block: Block, rows: Indices) -> Floats:
        """Return some rows' sampling weights over the mean, shape (m,)."""
        return np.asarray(weights_of(block)[rows] / self.mean)


def sampled_arms(
    public: Study, members_of: Callable[[Block, int], Indices]
) -> tuple[SampledArm, ...] | None:
    """Add up the sampling weights of every arm, in the order of codes; none is empty of them."""
    if public.domain.weights is None:
        return None
    arms = public.domain.treatment.size

    def kernel(block: Block) -> WeightSums:
        weights = weights_of(block)
        return WeightSums.of(weights, [weights[members_of(block, arm)] for arm in range(arms)])

    sums = public.fold(kernel, title="sampling weights")
    mean = sums.everyone / sums.rows
    parts = zip(sums.first.tolist(), sums.second.tolist(), sums.largest.tolist(), strict=True)
    return tuple(
        SampledArm(mean, sums.rows * mean / first, first**2 / second, largest / mean)
        for first, second, largest in parts
    )
