"""What is public of the arms where covariates and treatment are: their sizes and their balance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from private_ate.arrays import Floats
from private_ate.errors import SchemaError
from private_ate.release.metadata import Pair
from private_ate.study import ArmSizes, Block, MatchingStudy, RowWeights, Study

__all__ = ["ArmBalance", "FoundArms", "count_arms", "greatest_over_pairs", "measure_arms"]


@dataclass(frozen=True, slots=True)
class FoundArms:
    """How many rows each arm holds, and how many of those are not known to lack an outcome.

    ``members`` are those of the latter that have a sampling weight above zero; ``weight`` is what
    the weights of all rows add up to, as shares of their bound.
    """

    everyone: ArmSizes
    observed: ArmSizes
    members: ArmSizes
    weight: float

    def __add__(self, other: FoundArms) -> FoundArms:
        return FoundArms(
            self.everyone + other.everyone,
            self.observed + other.observed,
            self.members + other.members,
            self.weight + other.weight,
        )


def count_arms(public: Study) -> FoundArms:
    """Count the arms of public rows; refuse one without units, outcomes or sampling weights."""
    found = public.fold(_count, title="arms")
    counted = (found.everyone.counts, found.observed.counts, found.members.counts)
    sizes = zip(*counted, strict=True)
    labels = public.domain.treatment.coded
    for code, (everyone, observed, members) in enumerate(sizes):
        unit = f"unit of arm {labels[code]!r}"
        lacking = (
            f"no unit is in arm {labels[code]!r}: remove it from the declared arms or check the "
            "label"
        )
        if len(labels) == 2:
            name = ("control", "treated")[code]
            unit = f"{name} unit"
            lacking = f"no unit is {name}: check the treatment column and its two labels"
        if everyone == 0:
            raise SchemaError(lacking)
        if observed == 0:
            msg = f"no {unit} has an outcome: check the outcome column"
            raise SchemaError(msg)
        if members == 0 and public.domain.weights is not None:
            msg = (
                f"no {unit} with an outcome has a sampling weight above 0: check the column "
                f"{public.domain.weights.column!r}"
            )
            raise SchemaError(msg)
    return found


def _count(block: Block) -> FoundArms:
    members = block.observed & (block.weights > 0)
    return FoundArms(
        ArmSizes.count(block.arm, block.arms),
        ArmSizes.count(block.arm[block.observed], block.arms),
        ArmSizes.count(block.arm[members], block.arms),
        float(block.weights.sum()),
    )


@dataclass(frozen=True, slots=True)
class ArmBalance:
    """Standardised covariate means of every arm less those of all units, before and after weights.

    Attributes
    ----------
    features : tuple of str
        Names of the covariates.
    labels : tuple of str
        Labels of the arms, in the order of their codes.
    sizes : tuple of int
        Units that carry weight.
    effective : tuple of float
        The effective sample size of each arm.
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
    def greatest(self) -> dict[str, Pair]:
        """The greatest difference of each covariate over all pairs of arms, before and after."""
        return greatest_over_pairs(self.by_arm)

    @property
    def by_arm(self) -> dict[str, dict[str, Pair]]:
        """The means of each covariate in each arm, before and after."""
        return {
            label: dict(zip(self.features, zip(before, after, strict=True), strict=True))
            for label, before, after in zip(
                self.labels, self.before.tolist(), self.after.tolist(), strict=True
            )
        }


def greatest_over_pairs(arm_balance: Mapping[str, Mapping[str, Pair]]) -> dict[str, Pair]:
    """Return each covariate's greatest difference over all pairs of arms, before and after.

    ``arm_balance`` holds standardised means by arm and covariate.
    """
    by_arm = list(arm_balance.values())
    found = {}
    for name in by_arm[0]:
        before, after = ([means[name][side] for means in by_arm] for side in (0, 1))
        found[name] = (max(before) - min(before), max(after) - min(after))
    return found


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


@dataclass(frozen=True, slots=True)
class _ArmMoments:
    """Σw, Σw², n, Σx, Σx² and Σwx of each arm, shape (K, 3 + 3d); adds up over blocks."""

    values: Floats

    def __add__(self, other: _ArmMoments) -> _ArmMoments:
        return _ArmMoments(self.values + other.values)


def _add_moments(block: Block, weights: Floats) -> _ArmMoments:
    rows = []
    for arm in range(block.arms):
        inside = block.arm == arm
        weight, x = weights[inside], block.covariates[inside]
        sums = [[weight.sum(), (weight**2).sum(), weight.size], x.sum(axis=0), (x**2).sum(axis=0)]
        rows.append(np.concatenate([*sums, weight @ x]))
    return _ArmMoments(np.array(rows))
