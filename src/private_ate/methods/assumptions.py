"""What is known or guessed about a study before a record is read.

A method that can be planned has a module ``predict``, and its record in the registry names the
function ``predictor(assumed, request)`` in it. That returns a function of the number of rows and of
ε, which returns a `Prediction` for each quantity that the method would release.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from private_ate.domain import Interval
from private_ate.effects.quantities import Predict
from private_ate.methods.probability import Probability
from private_ate.request import Request
from private_ate.study import MatchingStudy

__all__ = [
    "MOST_ROWS", "Assumptions", "PlannedRows", "PopulationGuess", "Predict", "Predictor",
]  # fmt: skip

MOST_ROWS: Final = 20_000  # beyond, as many public rows stand for all
_FEWEST: Final = 8
_STEP: Final = 1.25  # between numbers of rows that are drawn in a search


@dataclass(frozen=True, slots=True)
class PopulationGuess:
    """Guesses behind a plan; outcomes in units of their declared range, its middle being zero.

    Attributes
    ----------
    deviation : float
        Standard deviation of the outcome among units that are treated alike.
    middle : float
        The outcome's mean.
    explained : float
        Share of that variance which the covariates explain.
    alike_share : float
        The share of it that units alike in covariates still have.
    """

    deviation: float
    middle: float
    explained: float
    alike_share: float


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
    weight_share: float = 1.0
    probability: Probability | None = None
    public: PlannedRows | None = None
    learned: object | None = None


Predictor = Callable[[Assumptions, Request], Predict]
"""A method's ``predictor``: called once for a study, what it returns once for each n and ε."""
