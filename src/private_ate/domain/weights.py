"""Sampling weights as declared: the column, and the largest weight that a row may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from private_ate.domain.column_types import Interval, require_name
from private_ate.errors import DomainError

__all__ = ["WEIGHTED", "SamplingWeights", "as_weights"]

WEIGHTED: Final = ", weighted to the target population"
"""What is added to the name of a population where sampling weights are in force."""


@dataclass(frozen=True, slots=True)
class SamplingWeights:
    """The column of sampling weights and the largest weight (W) that the design allows.

    A unit of weight w stands for w units of the target population; weights lie in [0, W]. Where
    covariates are public, so are weights: one outside is an error that counts such rows. Where
    whole records are private they are clipped, and a missing weight counts as 0.

    Attributes
    ----------
    column : str
        The column of weights.
    high : float
        The largest weight that the design allows.
    """

    column: str
    high: float

    def __post_init__(self) -> None:
        require_name("column of sampling weights", self.column)
        bounds = Interval(0, self.high)
        if not bounds.high > 0:
            msg = "the largest sampling weight is above 0: SamplingWeights(column, high)"
            raise DomainError(msg, parameter="sampling weights", column=self.column)
        object.__setattr__(self, "high", bounds.high)


def as_weights(weights: object) -> SamplingWeights | None:
    """Read sampling weights as a caller declares them: a pair, or the value itself."""
    match weights:
        case None | SamplingWeights():
            return weights
        case (str() as column, Interval(low=0.0) as bounds):
            return SamplingWeights(column, bounds.high)
    msg = (
        'sampling weights are a pair such as ("weight", Interval(0, 50)): they lie between 0 and '
        "a declared bound"
    )
    raise DomainError(msg, parameter="sampling weights", column="WEIGHT")
