"""What a release is expected to show: quantities whose errors are known and whose values are not.

A plan makes rows of predicted quantities as a release makes them of released ones: a row is a
weighted sum, and its errors are sums of independent noises and of normal sampling errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Final, Self

import numpy as np

from private_ate.effects.estimate import Quantity
from private_ate.effects.quantities import weighted_errors
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.quantiles import staircase_and_normal_error, staircase_and_normal_quantile
from private_ate.release.intervals import expected_size, half_width
from private_ate.settings import IntervalRule

POWER: Final = 0.8  # of the test behind the smallest detectable effect


@dataclass(frozen=True, slots=True)
class ExpectedError:
    """What to expect of a release, in the units of whoever asks.

    Attributes
    ----------
    noise : float
        Expected size of the noise.
    sampling : float
        Standard deviation of the estimate without noise.
    error : float
        Expected size of both together.
    half_width : float
        Half-width of the interval, near the median of releases.
    margin : float
        What the error falls short of four times of five, on one side.
    """

    noise: float
    sampling: float
    error: float
    half_width: float
    margin: float

    @classmethod
    def of_staircase(
        cls, epsilon: float, sensitivity: float, sampling: float, coverage: float
    ) -> Self:
        """Expect staircase noise at ε and a nearly normal sampling error."""
        size = math.exp(-epsilon / 2) / -math.expm1(-epsilon)  # E|X| of a unit staircase
        return cls(
            sensitivity * size,
            sampling,
            staircase_and_normal_error(epsilon, sensitivity, sampling),
            staircase_and_normal_quantile(coverage, epsilon, sensitivity, sampling),
            staircase_and_normal_quantile(2 * POWER - 1, epsilon, sensitivity, sampling),
        )

    def with_half_width(self, half_width: float) -> Self:
        """Expect the same error and another interval."""
        return replace(self, half_width=half_width)

    def times(self, unit: float) -> Self:
        """Return the same in other units."""
        return type(self)(*(unit * value for value in astuple(self)))


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
    errors : ExpectedError or None
        What to expect of it as the method has it, where that does not follow from distributions.
    """

    quantity: Quantity
    sampling: float
    note: str
    adjusted: bool = True
    rule: IntervalRule = "convolved"
    errors: ExpectedError | None = None

    @classmethod
    def of_errors(cls, errors: ExpectedError, note: str, *, adjusted: bool = True) -> Self:
        """Return the contrast of two arms of which the method knows what to expect."""
        return cls(Quantity(0.0), errors.sampling**2, note, adjusted, errors=errors)

    @property
    def erring(self) -> Quantity:
        """The quantity as it errs: with its sampling variance instead of the interval's."""
        return replace(self.quantity, variances=(self.sampling,))


Predict = Callable[[int, float], tuple[Prediction, ...]]
"""What a method will release of so many rows at an ε, a prediction for each quantity."""


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
    errors : ExpectedError or None
        What the method says instead.
    note : str
        The weight cap, or whether and how the method adjusts.
    adjusted : bool
        Whether covariates are adjusted for.
    """

    noises: Sequence[NoiseDistribution]
    sampling: Sequence[Sequence[float]]
    likely: Sequence[Sequence[float]]
    rule: IntervalRule = "convolved"
    errors: ExpectedError | None = None
    note: str = ""
    adjusted: bool = True

    def half_width(self, coverage: float) -> float:
        """Return the half-width of the interval that a release will show."""
        if self.errors is not None:
            return self.errors.half_width
        stairs = _lone_staircase(self.noises, self.likely)
        if stairs is None or self.rule != "convolved":
            return half_width(coverage, self.noises, self.likely, self.rule)
        deviations = np.sqrt(self.likely[0])
        return staircase_and_normal_quantile(
            coverage, float(stairs.epsilon), stairs.unit, deviations
        )

    def expected(self, coverage: float) -> ExpectedError:
        """Return the sizes of the row's errors, and its half-width."""
        if self.errors is not None:
            return self.errors
        deviation = math.sqrt(sum(float(np.mean(values)) for values in self.sampling))
        half = self.half_width(coverage)
        stairs = _lone_staircase(self.noises, self.sampling)
        if stairs is not None:
            epsilon = float(stairs.epsilon)
            known = ExpectedError.of_staircase(epsilon, stairs.unit, deviation, coverage)
            return known.with_half_width(half)
        return ExpectedError(
            expected_size(self.noises, ()),
            deviation,
            expected_size(self.noises, self.sampling),
            half,
            half_width(2 * POWER - 1, self.noises, self.sampling, "convolved"),
        )


def _lone_staircase(
    noises: Sequence[NoiseDistribution], variances: Sequence[Sequence[float]]
) -> NoiseDistribution | None:
    """Return the staircase of a row with one noise and one normal; releases have its quantiles."""
    if len(noises) != 1 or len(variances) != 1 or noises[0].name != "staircase":
        return None
    return noises[0]


def predicted_contrast(predictions: Sequence[Prediction], arm: int, against: int) -> PredictedRow:
    """Return the errors of a contrast of two arms, by their codes.

    A method that releases the very contrast has predicted it. Otherwise it is the difference of
    what was predicted for both: of their means, or of their contrasts with the reference.
    """
    arms = len(predictions[0].quantity.arms)
    form = tuple(float(code == arm) - float(code == against) for code in range(arms))
    known = {one.quantity.arms: one for one in predictions}
    own = known.get(form)
    if own is not None:
        terms = [(1.0, own)]
    else:
        terms = [
            (weight, one)
            for weight, code in ((1.0, arm), (-1.0, against))
            if (one := _of_arm(known, code, arms)) is not None
        ]
    noises, likely = weighted_errors((weight, one.quantity) for weight, one in terms)
    _, sampling = weighted_errors((weight, one.erring) for weight, one in terms)
    first = terms[0][1]
    return PredictedRow(
        noises, sampling, likely, first.rule, None if own is None else own.errors, first.note,
        all(one.adjusted for _, one in terms),
    )  # fmt: skip


def _of_arm(known: dict[tuple[float, ...], Prediction], code: int, arms: int) -> Prediction | None:
    """Return an arm's mean or its contrast with the reference; None for the reference itself."""
    mean = tuple(float(place == code) for place in range(arms))
    if mean in known:
        return known[mean]
    contrast = tuple(float(place == code) - float(place == 0) for place in range(arms))
    return known[contrast] if code else None
