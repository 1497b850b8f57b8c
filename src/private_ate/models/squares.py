"""Standardised covariates and the squares of some: what a bent model sees of a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Floats
from private_ate.models.standardization import Scaling
from private_ate.study import Block

__all__ = ["SquaredFeatures"]


@dataclass(frozen=True, slots=True)
class SquaredFeatures:
    """A constant, all scaled covariates z and ``2z² − 1`` of those at ``squared`` places."""

    scaling: Scaling
    squared: tuple[int, ...] = ()

    @property
    def columns(self) -> int:
        """The number of features (p), the constant among them."""
        return self.scaling.columns + len(self.squared)

    def features(self, block: Block) -> Floats:
        """Return the features of a block, all in [−1, 1], the constant first; shape (p, m)."""
        plain = self.scaling.features(block)
        if not self.squared:
            return plain
        features = np.empty((self.columns, plain.shape[1]))
        features[: plain.shape[0]] = plain
        for place, column in enumerate(self.squared, plain.shape[0]):
            np.square(plain[column + 1], out=features[place])
        features[plain.shape[0] :] *= 2.0
        features[plain.shape[0] :] -= 1.0
        return features
