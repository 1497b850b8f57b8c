"""What a release of a time to an event shows beside the effect: curves and risks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from private_ate.errors import ArgumentError

__all__ = ["Curve", "RiskContrast", "Risks", "SurvivalNote"]

Pair = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """The released survival curve of one arm, at the edges of its bins.

    Attributes
    ----------
    time : list of float
        The edges, from 0 to the horizon, in units of the outcome; the curve is exponential
        between them.
    survival : list of float
        The share without the event at each edge.
    low, high : list of float
        A band that covers the whole curve, if censoring is independent of the event.
    low_each, high_each : list of float
        Intervals of single edges.
    uncensored : list of float
        The share that is not yet censored at each edge, if no event came before.
    at_risk : list of int
        Rows expected to be under observation at each edge, by both curves.
    adjusted : bool
        Whether rows were weighted by covariates; else it is the curve of the arm as it is.
    """

    time: tuple[float, ...]
    survival: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    low_each: tuple[float, ...]
    high_each: tuple[float, ...]
    uncensored: tuple[float, ...]
    at_risk: tuple[int, ...]
    adjusted: bool

    def at(self, time: float) -> float:
        """Return the share without the event at a time up to the horizon; it costs nothing."""
        return math.exp(-self._hazard(time))

    def mean_until(self, time: float) -> float:
        """Return the mean survival time up to a horizon that is no longer; it costs nothing.

        It is the area under the released curve, which is noisier than a release that asks for it.
        """
        self._hazard(time)
        edges = [*(edge for edge in self.time if edge < time), time]
        area = 0.0
        for start, stop in pairwise(edges):
            first, last = self.at(start), self.at(stop)
            rate = math.log(first / last)
            area += (stop - start) * ((first - last) / rate if rate > 1e-9 else first)
        return area

    def _hazard(self, time: float) -> float:
        """Return minus the logarithm of the curve, which is linear between the edges."""
        if not 0 <= time <= self.time[-1]:
            msg = f"the curve reaches from 0 to {self.time[-1]:g}"
            raise ArgumentError(msg, parameter="horizon")
        place = min(sum(edge <= time for edge in self.time), len(self.time) - 1)
        start, stop = self.time[place - 1], self.time[place]
        first, last = (-math.log(max(self.survival[k], 1e-12)) for k in (place - 1, place))
        return first + (last - first) * (time - start) / (stop - start)


@dataclass(frozen=True, slots=True)
class RiskContrast:
    """The risks by the horizon of two arms, compared.

    Attributes
    ----------
    arm, against : str
        The arms.
    difference : float
        The first risk minus the second.
    difference_interval : pair of float or None
        Its confidence interval, low end first; null if none was paid for.
    ratio : float or None
        The first risk over the second; null where that is zero.
    ratio_interval : pair of float or None
        Its confidence interval, low end first; a null end is no bound.
    """

    arm: str
    against: str
    difference: float
    difference_interval: Pair | None
    ratio: float | None
    ratio_interval: tuple[float, float | None] | None


@dataclass(frozen=True, slots=True)
class Risks:
    """Risks of the event by the horizon.

    Attributes
    ----------
    source : str
        "curves" if they are the ends of the released curves, "sums" if ε was spent on them.
    adjusted : bool
        Whether rows were weighted by covariates.
    by_arm : mapping
        The risk of each arm, by its label; empty where only their difference was released.
    contrasts : list of objects
        Every arm against the reference.
    """

    source: Literal["curves", "sums"]
    adjusted: bool
    by_arm: Mapping[str, float]
    contrasts: tuple[RiskContrast, ...]


@dataclass(frozen=True, slots=True)
class SurvivalNote:
    """What an estimate of a time to an event hands over beside the effect.

    Attributes
    ----------
    quantity : str
        What the effect is a difference of: "rmst", restricted mean survival times, or "risk".
    horizon : float
        The time up to which survival is compared.
    bins : int
        Bins of the curves.
    curves : mapping
        The curve of each arm, by its label, the reference first.
    risks : Risks
        Risks by the horizon.
    """

    quantity: Literal["rmst", "risk"]
    horizon: float
    bins: int
    curves: Mapping[str, Curve]
    risks: Risks
