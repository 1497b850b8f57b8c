"""With which probability every unit was treated, as a trial's protocol says."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain import Domain, Interval
from private_ate.errors import ArgumentError
from private_ate.study import Block

__all__ = ["Probability", "probability_note", "probability_of", "require_covariate"]


@dataclass(frozen=True, slots=True)
class Probability:
    """Between which bounds the probability of treatment lies, and which feature holds it.

    ``feature`` is None where everybody's is the same; ``low`` and ``high`` are then that number.
    """

    low: float
    high: float
    feature: int | None = None

    @property
    def constant(self) -> float | None:
        """The probability, where it is one number."""
        return self.low if self.feature is None else None

    @property
    def typical(self) -> float:
        """A probability in the middle of what is possible."""
        return (self.low + self.high) / 2

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of both arms to expect, the reference first."""
        return 1 - self.typical, self.typical

    @property
    def rarer(self) -> float:
        """The smallest probability of either arm."""
        return min(self.low, 1 - self.high)

    def of(self, block: Block) -> Floats:
        """Return the probability of each row; a column's lies within its declared bounds."""
        if self.feature is None:
            return np.full(block.arm.size, self.low)
        share = block.covariates[:, self.feature]
        return np.clip(self.low + share * (self.high - self.low), self.low, self.high)


def probability_of(domain: Domain, probability: float | str) -> Probability:
    """Find a declared probability: a number, or a covariate with bounds between 0 and 1."""
    if not isinstance(probability, str):
        return Probability(probability, probability)
    require_covariate(probability, domain.covariates)
    kind = domain.covariates[probability]
    if not isinstance(kind, Interval) or not 0 < kind.low <= kind.high < 1:
        msg = (
            f"the column of probabilities {probability!r} needs bounds between 0 and 1, both "
            "excluded: declare the smallest and the largest that the protocol allows"
        )
        raise ArgumentError(msg, parameter="bounds", column=probability)
    return Probability(kind.low, kind.high, domain.features.index(probability))


def require_covariate(probability: float | str | None, covariates: Collection[str]) -> None:
    """Refuse a column of probabilities that is none of the covariates in use.

    A release would say that treatment was given by it, though nobody looked at it, and a ledger
    holds covariates alone to what is public.
    """
    if isinstance(probability, str) and probability not in covariates:
        msg = f"the column of probabilities {probability!r} is not among the covariates; name it"
        raise ArgumentError(msg, parameter="covariates")


def probability_note(probability: float | str | None) -> tuple[str, ...]:
    """Say how treatment was given, as declared; nothing where nobody said."""
    if probability is None:
        return ()
    if isinstance(probability, str):
        return (f"treatment was given with the probability in column {probability!r}, as declared",)
    return (f"treatment was given with probability {probability:g}, as declared",)
