"""What is known or guessed about a study before a record is read, and rows made up from guesses.

A method that can be planned has a module ``predict``, and its record in the registry names the
function ``predictor(assumed, request)`` in it. That returns a function of the number of rows and of
ε, which returns a `Prediction` for each quantity that the method would release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit, ndtri, softmax

from private_ate.arrays import Bits, Codes, Floats
from private_ate.domain import Interval
from private_ate.effects.predictions import Predict
from private_ate.methods.probability import Probability
from private_ate.models.folds import scatter
from private_ate.request import Request
from private_ate.study import MatchingStudy

__all__ = [
    "MOST_ROWS",
    "Assumptions",
    "MadeUpRows",
    "PlannedRows",
    "PopulationGuess",
    "Predict",
    "Predictor",
    "make_up_arms",
    "make_up_rows",
]

MOST_ROWS: Final = 20_000  # beyond, as many public rows stand for all
_FEWEST: Final = 8
_STEP: Final = 1.25  # between numbers of rows that are drawn in a search
_ROUNDS: Final = 60  # of the intercepts of several arms
_COMMON: Final = 0.5  # cosine between what drives treatment and what drives the outcome


@dataclass(frozen=True, slots=True)
class PopulationGuess:
    """Guesses behind a plan; outcomes in units of their declared range, its middle being zero.

    Attributes
    ----------
    share : float
        Of treated units.
    deviation : float
        Standard deviation of the outcome among units that are treated alike.
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
class PlannedRows:
    """The public columns of a study of any number of rows.

    Attributes
    ----------
    size : int or None
        The number of rows of the study; None if a plan shall say how many it takes.
    is_real : bool
        Whether a study is there; otherwise rows are made up.
    draw : function
        Returns the public columns of so many rows.
    """

    size: int | None
    is_real: bool
    draw: Callable[[int], MatchingStudy]

    def walked(self, rows: int) -> int:
        """Return how many rows stand for so many: few numbers, so that each is drawn once."""
        if rows == self.size and (self.is_real or rows <= MOST_ROWS):
            return rows
        steps = math.floor(math.log(max(rows, 1)) / math.log(_STEP) + 1e-9)
        return min(rows, MOST_ROWS, max(round(_STEP**steps), _FEWEST))


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a plan knows or guesses about a study, from which a method predicts its quantities.

    Attributes
    ----------
    bounds : Interval
        The outcome's declared bounds.
    covariates : int
        Encoded covariates.
    shares : tuple of float
        The arms' shares of the rows, in the order of the codes; where ``public`` is given it
        gives them, and only their number counts.
    guess : PopulationGuess
        Guesses about units, in units of the outcome's range.
    alike_share : float
        The share of the outcome's variance that units alike in covariates still have.
    weight_share : float
        The guessed mean of private sampling weights over their bound; 1 without any.
    probability : Probability or None
        The known probability of treatment in a trial.
    public : PlannedRows or None
        At label level the public columns.
    learned : object or None
        What the method has learnt from more rows than those of ``public``, for subgroups.
    """

    bounds: Interval
    covariates: int
    shares: tuple[float, ...]
    guess: PopulationGuess
    alike_share: float
    weight_share: float = 1.0
    probability: Probability | None = None
    public: PlannedRows | None = None
    learned: object | None = None


Predictor = Callable[[Assumptions, Request], Predict]
"""A method's ``predictor``: called once for a study, what it returns once for each n and ε."""


@dataclass(frozen=True, slots=True)
class MadeUpRows:
    """Made-up units: covariates of shape (m, d), treatment and outcome of shape (m,)."""

    covariates: Floats
    treatment: Bits
    outcome: Floats


def make_up_rows(guess: PopulationGuess, rows: int, dimension: int) -> MadeUpRows:
    """Make units up: normal covariates, one direction that selects, a related one that explains.

    Outcomes vary around zero with the guessed deviation and carry no effect: only their spread
    matters to whoever plans. The same guess makes up the same units, as nothing is drawn: numbers
    are scattered like random ones.
    """
    numbers = scatter(0, rows * (dimension + 2)).reshape(dimension + 2, rows)
    normal = ndtri(np.clip(numbers, 1e-12, 1 - 1e-12))
    covariates = normal[:dimension].T
    first = np.ones(dimension) / np.sqrt(max(dimension, 1))
    other = first * np.where(np.arange(dimension) % 2 == 0, 1.0, -1.0)
    log_odds = guess.selection * (covariates @ first)
    chance = expit(log_odds + _intercept(log_odds, guess.share))
    treatment = numbers[dimension] < chance
    prognosis = covariates @ (_COMMON * first + np.sqrt(1 - _COMMON**2) * other)
    explained = guess.explained if dimension > 0 else 0.0
    outcome = guess.deviation * (
        np.sqrt(explained) * prognosis + np.sqrt(1 - explained) * normal[dimension + 1]
    )
    return MadeUpRows(covariates, treatment, outcome)


def make_up_arms(covariates: Floats, shares: Sequence[float], selection: float) -> Codes:
    """Make arms up for units: the direction that selects leads from the first arm to the last.

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


def _intercept(log_odds: Floats, share: float) -> float:
    """Return the intercept with which the mean chance of treatment is the share, by bisection."""
    low, high = -40.0, 40.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(log_odds + middle).mean() > share else (middle, high)
    return (low + high) / 2
