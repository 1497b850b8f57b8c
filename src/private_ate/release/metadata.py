"""What a release is about and the rows of its tables: arms, contrasts, effects, steps, curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final, Literal, cast, get_args

from private_ate.codec import NOT_NEGATIVE, Rule, at_least
from private_ate.errors import ArgumentError
from private_ate.privacy.distributions import NoiseDistribution

Pair = tuple[float, float]
ReleasedEstimand = Literal["ate", "att", "atc", "ato", "difference"]
DESIGNS: Final = ("unknown", "observational", "randomized")
Design = Annotated[str, Rule(" or ".join(DESIGNS), DESIGNS.__contains__)]
ARMS = ("control", "treated")  # what arms are called where a release does not know their labels


@dataclass(frozen=True, slots=True)
class TreatmentNote:
    """The treatment of a release.

    Attributes
    ----------
    column : str
        The treatment's column.
    arms : list of str
        Labels of the arms, the reference first.
    reference : str
        The arm that the others are compared with.
    """

    column: str
    arms: Annotated[tuple[str, ...], at_least(2)]
    reference: str


@dataclass(frozen=True, slots=True)
class OutcomeNote:
    """The outcome of a release.

    Attributes
    ----------
    column : str
        The outcome's column.
    bounds : pair of float or None
        The declared bounds, low end first; null where they were looked up in the data.
    unit : str or None
        The unit in which it is measured, where somebody declared one.
    """

    column: str
    bounds: Pair | None
    unit: str | None


@dataclass(frozen=True, slots=True)
class Effect:
    """One row of the table of effects.

    Attributes
    ----------
    outcome : str
        The outcome's column.
    subgroup : str or None
        Whom the row speaks of; null for all units.
    arm : str
        The arm whose effect it is.
    against : str
        The arm that it is compared with.
    estimand : str
        What was estimated; "difference" is a difference in means that nobody may call an effect.
    estimate : float
        The released number, in units of the outcome.
    interval : pair of float or None
        Confidence interval, low end first; null if none was paid for.
    simultaneous : pair of float or None
        Interval that covers together with those of all other rows; with one row the interval.
    noise_interval : pair of float or None
        Range of the estimate without noise; null where none is known.
    """

    outcome: str
    subgroup: str | None
    arm: str
    against: str
    estimand: ReleasedEstimand
    estimate: float
    interval: Pair | None
    simultaneous: Pair | None
    noise_interval: Pair | None


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a release.

    Attributes
    ----------
    label : str
        The arm's label.
    units : int or None
        How many units it holds; null where that is private.
    mean : float or None
        The mean outcome if all whom the release speaks of were given this arm; null where it was
        not paid for.
    interval : pair of float or None
        Confidence interval of the mean, low end first; null if none was paid for.
    noise_interval : pair of float or None
        Range of the mean without noise; null without a mean.
    noise : object or None
        The distribution of the noise of the arm's level, independent of that of other arms; null
        where it is rolled up from subgroups, or shared with other outcomes, and has none of its
        own.
    mean_noise : object or None
        The distribution of the noise that means have beyond it, one draw for all arms; null
        without one.
    variances : list of float
        Equally likely values of the level's sampling variance; empty if no interval was paid for.
    weighted : bool
        Whether the arm's units were weighted to stand for all; otherwise they count alike.
    """

    label: str
    units: Annotated[int, NOT_NEGATIVE] | None
    mean: float | None
    interval: Pair | None
    noise_interval: Pair | None
    noise: NoiseDistribution | None
    mean_noise: NoiseDistribution | None
    variances: tuple[Annotated[float, NOT_NEGATIVE], ...]
    weighted: bool

    @property
    def variance(self) -> float | None:
        """The level's expected sampling variance; None if no interval was paid for."""
        return sum(self.variances) / len(self.variances) if self.variances else None


@dataclass(frozen=True, slots=True)
class Contrast:
    """An arm compared with another, as a row of the table of effects shows it.

    ``simultaneous`` covers together with those of all other pairs of arms.

    Attributes
    ----------
    arm : str
        The arm whose effect it is.
    against : str
        The arm that it is compared with.
    effect : float
        The released effect, in units of the outcome.
    interval : pair of float or None
        Its confidence interval; None if none was paid for.
    simultaneous : pair of float or None
        The interval that covers together with those of all other pairs.
    noise_interval : pair of float or None
        Range of the effect without noise.
    """

    arm: str
    against: str
    effect: float
    interval: Pair | None
    simultaneous: Pair | None
    noise_interval: Pair | None

    def flipped(self) -> Contrast:
        """Return the same comparison seen from the other arm."""
        return Contrast(
            self.against, self.arm, 0.0 - self.effect,
            _flip(self.interval), _flip(self.simultaneous), _flip(self.noise_interval),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Combination:
    """A weighted sum of the arms' means, as free as the release that it was made from.

    Attributes
    ----------
    estimate : float
        The weighted sum.
    interval : pair of float or None
        Its confidence interval; None if none was paid for.
    noise_interval : pair of float or None
        Range of the sum without noise.
    """

    estimate: float
    interval: Pair | None
    noise_interval: Pair | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step that saw private values.

    Attributes
    ----------
    name : str
        What was released.
    mechanism : str
        The distribution of its noise.
    metric : str
        In which sense neighbours are within the sensitivity.
    epsilon : float
        ε that it spent.
    delta : float
        δ that it spent.
    rho : float
        What it spent of zero-concentrated privacy, where it is priced in that.
    part : str
        The rows that it read, if no other step did; steps of different parts do not add up.
    sensitivity : list of int or None
        How far neighbours can be apart, in steps of its own grid; null where that is private.
    scale : list of float or None
        Standard deviation of its noise in the same steps; null where nothing was added to a number
        or the scale is private.
    """

    name: str
    mechanism: str
    metric: str
    epsilon: float
    delta: float
    rho: float
    part: str
    sensitivity: tuple[int, ...] | None
    scale: tuple[float, ...] | None


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


def released_estimand(asked: str, design: str, *, adjusted: bool) -> ReleasedEstimand:
    """Name what was estimated: arms compared as they are make an effect in a trial only."""
    if not adjusted and design != "randomized":
        return "difference"
    return cast("ReleasedEstimand", asked) if asked in get_args(ReleasedEstimand) else "ate"


def within(value: float, ends: Pair) -> float:
    """Return the value, or the end that it lies beyond."""
    return min(max(value, ends[0]), ends[1])


def around(center: float, half: float | None, ends: Pair) -> Pair | None:
    """Return the interval of a half-width around a number, within what the number can be."""
    if half is None:
        return None
    return within(center - half, ends), within(center + half, ends)


def longer_half(value: float, pair: Pair) -> float:
    """Return the longer half of an interval: the shorter one may have been cut at the range."""
    return max(pair[1] - value, value - pair[0])


def _flip(pair: Pair | None) -> Pair | None:
    return None if pair is None else (0.0 - pair[1], 0.0 - pair[0])
