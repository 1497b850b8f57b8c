"""Public sampling weights in calibration: for how many units of the target population a row stands.

A unit of weight w counts like w units of weight one: in the targets that features are balanced
with, in the weights that an arm's stay close to, and in the price of moving them. A unit of weight
zero carries none. Everything is computed from public columns; see docs/proofs/weights.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.errors import SchemaError
from private_ate.estimators.calibrated.features import FeatureMap
from private_ate.estimators.calibrated.rich_features import RichFeatureMap
from private_ate.estimators.request import Estimand
from private_ate.models.folds import FEATURE_ROWS, by_chunks
from private_ate.study import Block, Study

__all__ = [
    "SampledUnits",
    "WeightSums",
    "carries_weight",
    "sampled_units",
    "weighted_population",
    "weights_of",
]


@dataclass(frozen=True, slots=True)
class SampledUnits:
    """Sampling weights as shares of their mean, and what they add up to in both arms.

    Attributes
    ----------
    mean : float
        The mean weight of all rows, as a share of the declared bound.
    levels : pair of float
        The weight of a unit of mean sampling weight, treated and control, where an arm is weighted
        by sampling weights alone.
    worth : pair of float
        How many units of equal weight the arms are worth under sampling weights alone.
    largest : pair of float
        The largest sampling weight of either arm over the mean.
    """

    mean: float
    levels: tuple[float, float]
    worth: tuple[float, float]
    largest: tuple[float, float]

    @property
    def heaviest(self) -> float:
        """The largest weight in use if no cap binds and nothing has to be balanced."""
        return max(self.levels[0] * self.largest[0], self.levels[1] * self.largest[1])

    @property
    def whole(self) -> tuple[int, int]:
        """The worth of both arms in whole units, one at least."""
        return max(round(self.worth[0]), 1), max(round(self.worth[1]), 1)

    def of(self, block: Block) -> Floats:
        """Return each row's sampling weight over the mean, shape (m,)."""
        return np.asarray(weights_of(block) / self.mean)


def carries_weight(block: Block) -> Bits | None:
    """Say which rows have a sampling weight above zero; None where none are declared."""
    return None if block.weights is None else block.weights > 0


@dataclass(frozen=True, slots=True)
class WeightSums:
    """Sums of weights of all rows, and of those that carry weight in each arm, shape (K,)."""

    rows: int
    everyone: float
    first: Floats
    second: Floats
    largest: Floats

    @classmethod
    def of(cls, weights: Floats, arms: Sequence[Floats]) -> WeightSums:
        """Add up the weights of some rows, and of those in each arm."""
        return cls(
            weights.size,
            float(weights.sum()),
            np.array([values.sum() for values in arms]),
            np.array([values @ values for values in arms]),
            np.array([values.max(initial=0.0) for values in arms]),
        )

    def __add__(self, other: WeightSums) -> WeightSums:
        return WeightSums(
            self.rows + other.rows,
            self.everyone + other.everyone,
            self.first + other.first,
            self.second + other.second,
            np.maximum(self.largest, other.largest),
        )


def sampled_units(
    public: Study, members_of: Callable[[Block], tuple[Bits, Bits]]
) -> SampledUnits | None:
    """Add up the sampling weights of the rows that carry weight; None where none are declared."""
    if public.domain.weights is None:
        return None

    def kernel(block: Block) -> WeightSums:
        weights = weights_of(block)
        return WeightSums.of(weights, [weights[arm] for arm in members_of(block)])

    sums = public.fold(kernel, title="sampling weights")
    if not (sums.first > 0).all():
        empty = "treated" if not sums.first[0] > 0 else "control"
        msg = (
            f"no {empty} unit with an outcome has a sampling weight above 0: check the column "
            f"{public.domain.weights.column!r}"
        )
        raise SchemaError(msg)
    mean = sums.everyone / sums.rows
    levels = sums.rows * mean / sums.first
    worth, largest = sums.first**2 / sums.second, sums.largest / mean
    return SampledUnits(mean, _pair(levels), _pair(worth), _pair(largest))


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Sums over rows of features times a weight, shape (p,), and of that weight."""

    features: Floats
    weight: float

    def __add__(self, other: WeightedRows) -> WeightedRows:
        return WeightedRows(self.features + other.features, self.weight + other.weight)

    @property
    def means(self) -> Floats:
        """The weighted means of the features, shape (p,)."""
        return np.asarray(self.features / self.weight)


def weighted_population(
    public: Study, features: FeatureMap | RichFeatureMap, estimand: Estimand
) -> WeightedRows:
    """Return the features of the population that an estimand speaks of, and how large it is."""

    def tilt(block: Block) -> Floats:
        match estimand:
            case "ate":
                return np.ones(block.arm.size)
            case "att":
                return block.treatment.astype(np.float64)
            case "atc":
                return (~block.treatment).astype(np.float64)
            case "ato":
                chance = features.probability(block.covariates)
                return np.asarray(chance * (1.0 - chance))

    def kernel(block: Block) -> WeightedRows:
        counted = weights_of(block) * tilt(block)
        return WeightedRows(counted @ features.map(block.covariates), float(counted.sum()))

    return public.fold(by_chunks(kernel, FEATURE_ROWS), title="calibration")


def weights_of(block: Block) -> Floats:
    """Return the sampling weights of a block as shares of their bound."""
    if block.weights is None:
        msg = "the domain declares sampling weights, but the study holds none"
        raise TypeError(msg)
    return block.weights


def _pair(values: Floats) -> tuple[float, float]:
    return float(values[0]), float(values[1])
