"""What both synthesisers share: their promise, their bins, and matching on synthetic records."""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from private_ate.arguments import one_of, real_number, whole_number
from private_ate.engines.local import LocalStudy
from private_ate.models.logistic import fit_logistic

__all__ = [
    "Adjacency",
    "Clock",
    "NeighbourRule",
    "checked_bins",
    "checked_time",
    "default_bins",
    "matched_effect_of",
    "rows_for",
]

Adjacency = Literal["replace", "add_remove"]

_FEWEST_ROWS = 20_000  # synthetic rows cost nothing and small tables distort the marginals
_MOST_ROWS = 1_000_000  # a noisy total can be anything


@dataclass(frozen=True, slots=True)
class NeighbourRule:
    """Which data sets are neighbours, and how far a table of counts moves between them.

    Under replace-one a record leaves one cell and enters another: L1 distance 2, squared L2
    distance 2, and n is public. Under add/remove-one it enters or leaves: 1, 1, n is private.
    """

    adjacency: Adjacency

    def __post_init__(self) -> None:
        one_of("adjacency", self.adjacency, ("replace", "add_remove"))

    @property
    def replaces(self) -> bool:
        """Whether n is public."""
        return self.adjacency == "replace"

    @property
    def distance(self) -> int:
        """The L1 distance of a table; also its squared L2 distance."""
        return 2 if self.replaces else 1

    @property
    def text(self) -> str:
        """What the release says; empty for the usual replace-one."""
        return "" if self.replaces else "add/remove-one: one unit's record is present or absent"


@dataclass(frozen=True, slots=True)
class Clock:
    """A limit on running time, asked only between steps whose inputs are released."""

    deadline: float | None

    @classmethod
    def start(cls, seconds: float | None) -> Clock:
        """Start the clock."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() > self.deadline


def checked_bins(name: str, bins: int | None) -> int | None:
    """Return a number of bins; None leaves it to ε."""
    return None if bins is None else whole_number(name, bins, 2, 64)


def checked_time(limit: float | None) -> float | None:
    """Return a time limit in seconds, None for none."""
    return None if limit is None else real_number("the time limit", limit, 0, 1e6)


def default_bins(epsilon: Fraction, bins: int | None, outcome_bins: int | None) -> tuple[int, int]:
    """Return the bins of covariates and outcome: 4 and 8 up to ε = 1.5, 8 and 16 above."""
    few = epsilon <= Fraction(3, 2)
    return bins or (4 if few else 8), outcome_bins or (8 if few else 16)


def rows_for(total: float) -> int:
    """Return how many synthetic rows to make for a released total."""
    return round(min(max(total, _FEWEST_ROWS), _MOST_ROWS))


def matched_effect_of(study: LocalStudy, neighbors: int) -> float:
    """Match synthetic records on their propensity score; no effect if an arm is empty.

    Works on released records only, so it may look at them as it likes.
    """
    if not 0 < np.count_nonzero(study.treatment) < study.size:
        return 0.0
    public = study.public()
    pool = public.pool(fit_logistic(public, 1.0 / study.size).coefficients)
    weights = pool.match_sharing_ties(neighbors)
    return study.effect(weights) * study.domain.bounds.width / study.size
