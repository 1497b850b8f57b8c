"""What a release is about and the rows of its tables: arms, contrasts, effects, steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal, cast, get_args

from private_ate.codec import NOT_NEGATIVE, Rule, at_least
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
