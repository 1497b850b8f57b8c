"""What is guessed about people before a record is read, and people made up from such guesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Final, Self

import numpy as np
from scipy.special import expit, ndtri, softmax

from private_ate.arrays import Bits, Codes, Floats
from private_ate.estimators.calibrated.rich_features import scatter
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.quantiles import (
    staircase_and_normal_error,
    staircase_and_normal_quantile,
)
from private_ate.privacy.sum_law import SumLaw
from private_ate.release.intervals import expected_size, half_width

__all__ = ["POWER", "ExpectedError", "MadeUpRows", "PeopleGuess", "make_up_arms", "make_up_rows"]

POWER: Final = 0.8  # of the test behind the smallest detectable effect
_ROUNDS: Final = 60  # of the intercepts of several arms
_COMMON: Final = 0.5  # cosine between what drives treatment and what drives the outcome


@dataclass(frozen=True, slots=True)
class PeopleGuess:
    """Guesses behind a plan; outcomes in units of their declared range, its middle being zero.

    Attributes
    ----------
    share : float
        Of treated units.
    deviation : float
        Standard deviation of the outcome among people who are treated alike.
    middle : float
        The outcome's mean.
    explained : float
        Share of that variance which the covariates explain.
    selection : float
        Standard deviation of the log odds of treatment; 0 if treatment is random.
    """

    share: float
    deviation: float
    middle: float
    explained: float
    selection: float


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

    @classmethod
    def of_sum(cls, law: SumLaw, sensitivity: float, sampling: float, coverage: float) -> Self:
        """Expect the noise of a released sum and a nearly normal sampling error."""
        if law.name == "staircase":
            return cls.of_staircase(float(law.epsilon), sensitivity, sampling, coverage)
        noises, variances = [NoiseDistribution.of_sum(law, sensitivity)], [(sampling**2,)]
        return cls(
            expected_size(noises, ()),
            sampling,
            expected_size(noises, variances),
            half_width(coverage, noises, variances, "convolved"),
            half_width(2 * POWER - 1, noises, variances, "convolved"),
        )

    def with_half_width(self, half_width: float) -> Self:
        """Expect the same error and another interval."""
        return replace(self, half_width=half_width)

    def times(self, unit: float) -> Self:
        """Return the same in other units."""
        return type(self)(*(unit * value for value in astuple(self)))


def sum_half_width(law: SumLaw, coverage: float, sensitivity: float, deviations: Floats) -> float:
    """Return the half-width that covers a sum's noise and a normal error of unsure size."""
    if law.name == "staircase":
        return staircase_and_normal_quantile(coverage, float(law.epsilon), sensitivity, deviations)
    noises = [NoiseDistribution.of_sum(law, sensitivity)]
    return half_width(coverage, noises, [(deviations**2).tolist()], "convolved")


@dataclass(frozen=True, slots=True)
class MadeUpRows:
    """Made-up people: covariates of shape (m, d), treatment and outcome of shape (m,)."""

    covariates: Floats
    treatment: Bits
    outcome: Floats


def make_up_rows(guess: PeopleGuess, rows: int, dimension: int) -> MadeUpRows:
    """Make people up: normal covariates, one direction that selects, a related one that explains.

    Outcomes vary around zero with the guessed deviation and carry no effect: only their spread
    matters to whoever plans. The same guess makes up the same people, as nothing is drawn: numbers
    are scattered like random ones.
    """
    numbers = scatter(0, rows * (dimension + 2)).reshape(dimension + 2, rows)
    normal = ndtri(np.clip(numbers, 1e-12, 1 - 1e-12))
    covariates = normal[:dimension].T
    first = np.ones(dimension) / np.sqrt(max(dimension, 1))
    other = first * np.where(np.arange(dimension) % 2 == 0, 1.0, -1.0)
    lean = guess.selection * (covariates @ first)
    chance = expit(lean + _intercept(lean, guess.share))
    treatment = numbers[dimension] < chance
    prognosis = covariates @ (_COMMON * first + np.sqrt(1 - _COMMON**2) * other)
    explained = guess.explained if dimension > 0 else 0.0
    outcome = guess.deviation * (
        np.sqrt(explained) * prognosis + np.sqrt(1 - explained) * normal[dimension + 1]
    )
    return MadeUpRows(covariates, treatment, outcome)


def make_up_arms(covariates: Floats, shares: Sequence[float], selection: float) -> Codes:
    """Make arms up for people: the direction that selects leads from the first arm to the last.

    The log odds of the last arm against the first have the standard deviation ``selection``. Every
    arm has a person, however few there are.
    """
    rows, dimension = covariates.shape
    first = np.ones(dimension) / np.sqrt(max(dimension, 1))
    slopes = np.linspace(-0.5, 0.5, len(shares))
    logits = selection * np.outer(covariates @ first, slopes)
    wanted = np.asarray(shares) / np.sum(shares)
    intercepts = np.log(wanted)
    for _ in range(_ROUNDS):
        chances = softmax(logits + intercepts, axis=1)
        intercepts += np.log(wanted) - np.log(chances.mean(axis=0))
    passed = chances.cumsum(axis=1) < scatter(7 * rows, rows)[:, None]
    arm: Codes = np.minimum(passed.sum(axis=1), len(shares) - 1).astype(np.uint8)
    missing = np.setdiff1d(np.arange(len(shares)), arm)
    arm[: missing.size] = missing
    return arm


def _intercept(lean: Floats, share: float) -> float:
    """Return the intercept with which the mean chance of treatment is the share, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(lean + middle).mean() > share else (middle, high)
    return (low + high) / 2
