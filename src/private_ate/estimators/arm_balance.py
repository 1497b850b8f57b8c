"""Balance of several arms: how far covariate means of any two are apart, before and after weights.

Everything here follows from covariates and treatment, so it may be told where those are public.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.several_arms import greatest_over_pairs
from private_ate.study import Block, MatchingStudy, RowWeights

__all__ = ["ArmBalance", "measure_arms"]


@dataclass(frozen=True, slots=True)
class ArmBalance:
    """Standardised covariate means of every arm less those of all units, and what arms are worth.

    Attributes
    ----------
    features : tuple of str
        Names of the covariates.
    labels : tuple of str
        Labels of the arms, in the order of their codes.
    sizes : tuple of int
        Units that carry weight.
    effective : tuple of float
        Units of equal weight that they are worth.
    before, after : arrays, shape (K, d)
        The means without and with weights.
    """

    features: tuple[str, ...]
    labels: tuple[str, ...]
    sizes: tuple[int, ...]
    effective: tuple[float, ...]
    before: Floats = field(repr=False)
    after: Floats = field(repr=False)

    @property
    def greatest(self) -> dict[str, tuple[float, float]]:
        """The greatest difference of each covariate over all pairs of arms, before and after."""
        return greatest_over_pairs(self.by_arm)

    @property
    def by_arm(self) -> dict[str, dict[str, tuple[float, float]]]:
        """The means of each covariate in each arm, before and after."""
        return {
            label: dict(zip(self.features, zip(before, after, strict=True), strict=True))
            for label, before, after in zip(
                self.labels, self.before.tolist(), self.after.tolist(), strict=True
            )
        }


@dataclass(frozen=True, slots=True)
class _Moments:
    """Σw, Σw², n, Σx, Σx² and Σwx of each arm, shape (K, 3 + 3d); adds up over blocks."""

    values: Floats

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(self.values + other.values)


def measure_arms(public: MatchingStudy, weights: RowWeights) -> ArmBalance:
    """Return balance and effective sizes under one weight per row; no arm is empty."""
    sums = public.fold_with(weights, _add_moments, title="balance").values
    weight, squares, rows = sums[:, 0], sums[:, 1], sums[:, 2]
    first, second, weighted = np.split(sums[:, 3:], 3, axis=1)
    means = first / rows[:, None]
    spread = np.sqrt(np.maximum(second / rows[:, None] - means**2, 0.0).mean(axis=0))
    spread[spread <= 1e-12] = 1.0
    everybody = first.sum(axis=0) / rows.sum()
    return ArmBalance(
        features=public.domain.features,
        labels=public.domain.treatment.coded,
        sizes=tuple(map(int, rows)),
        effective=tuple((weight**2 / squares).tolist()),
        before=(means - everybody) / spread,
        after=(weighted / weight[:, None] - everybody) / spread,
    )


def _add_moments(block: Block, weights: Floats) -> _Moments:
    rows = []
    for arm in range(block.arms):
        inside = block.arm == arm
        weight, x = weights[inside], block.covariates[inside]
        sums = [[weight.sum(), (weight**2).sum(), weight.size], x.sum(axis=0), (x**2).sum(axis=0)]
        rows.append(np.concatenate([*sums, weight @ x]))
    return _Moments(np.array(rows))
