"""What a release is expected to show: quantities whose errors are known and whose values are not.

A plan makes rows of predicted quantities as a release makes them of released ones: a row is a
weighted sum, and its errors are sums of independent noises and of normal sampling errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from private_ate.effects.estimate import Quantity
from private_ate.effects.quantities import weighted_errors
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release.intervals import expected_size, half_width
from private_ate.settings import IntervalRule

POWER: Final = 0.8  # of the test behind the smallest detectable effect


@dataclass(frozen=True, slots=True)
class Prediction:
    """One quantity that a method will release, as it is predicted before a record is read.

    Attributes
    ----------
    quantity : Quantity
        Its linear form of arms, its noise, and the likely variances that its interval will be made
        of, in units of the outcome; its value is not known and zero.
    sampling : float
        Its sampling variance as it is thought to be.
    note : str
        The weight cap, or whether and how the method adjusts.
    adjusted : bool
        Whether covariates are adjusted for.
    rule : str
        How its interval puts noise and sampling together.
    """

    quantity: Quantity
    sampling: float
    note: str
    adjusted: bool = True
    rule: IntervalRule = "convolved"

    @property
    def erring(self) -> Quantity:
        """The quantity as it errs: with its sampling variance instead of the interval's."""
        return replace(self.quantity, variances=(self.sampling,))


Predict = Callable[[int, float], tuple[Prediction, ...]]
"""What a method will release of so many rows at an ε, a prediction for each quantity."""


class ExpectedError(NamedTuple):
    """What to expect of a row: sizes of its errors, and its half-width near releases' median."""

    noise: float  # its expected size
    sampling: float  # standard deviation of the estimate without noise
    error: float  # expected size of both together
    half_width: float
    margin: float  # what the error falls short of four times of five, on one side


@dataclass(frozen=True, slots=True)
class PredictedRow:
    """The errors of a row: independent noises, and normals with their likely variances.

    Attributes
    ----------
    noises : sequence of NoiseDistribution
        Its independent noises.
    sampling : sequence of sequences of float
        Variances of the normal errors as they are thought to be.
    likely : sequence of sequences of float
        Equally likely values of the variances that its interval will be made of.
    rule : str
        How the interval puts noise and sampling together.
    note : str
        The weight cap, or whether and how the method adjusts.
    adjusted : bool
        Whether covariates are adjusted for.
    """

    noises: Sequence[NoiseDistribution]
    sampling: Sequence[Sequence[float]]
    likely: Sequence[Sequence[float]]
    rule: IntervalRule = "convolved"
    note: str = ""
    adjusted: bool = True

    def half_width(self, coverage: float) -> float:
        """Return the half-width of the interval that a release will show."""
        return half_width(coverage, self.noises, self.likely, self.rule)

    def expected(self, coverage: float) -> ExpectedError:
        """Return the sizes of the row's errors, and its half-width."""
        return ExpectedError(
            expected_size(self.noises, ()),
            math.sqrt(sum(float(np.mean(values)) for values in self.sampling)),
            expected_size(self.noises, self.sampling),
            self.half_width(coverage),
            half_width(2 * POWER - 1, self.noises, self.sampling, "convolved"),
        )


def predicted_contrast(predictions: Sequence[Prediction], arm: int, against: int) -> PredictedRow:
    """Return the errors of a contrast of two arms, by their codes.

    A method that releases the very contrast has predicted it. Otherwise it is the difference of
    what was predicted for both: of their means, or of their contrasts with the reference.
    """
    arms = len(predictions[0].quantity.arms)
    known = {one.quantity.arms: one for one in predictions}

    def form(code: int, other: int | None) -> tuple[float, ...]:
        return tuple(float(place == code) - float(place == other) for place in range(arms))

    terms = [(1.0, known.get(form(arm, against)))]
    if terms[0][1] is None:
        terms = [
            (weight, known.get(form(code, None)) or known.get(form(code, 0)))
            for weight, code in ((1.0, arm), (-1.0, against))
        ]
    held = [(weight, one) for weight, one in terms if one is not None]  # none for the reference
    noises, likely = weighted_errors((weight, one.quantity) for weight, one in held)
    _, sampling = weighted_errors((weight, one.erring) for weight, one in held)
    first = held[0][1]
    return PredictedRow(
        noises, sampling, likely, first.rule, first.note, all(one.adjusted for _, one in held)
    )
