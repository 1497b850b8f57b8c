"""Arms and their contrasts as a release holds them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from private_ate.codec import NOT_NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from private_ate.privacy.sum_law import SumLaw

__all__ = [
    "Arm",
    "Combination",
    "Contrast",
    "CubeLaw",
    "LawName",
    "NoiseLaw",
]

Pair = tuple[float, float]
LawName = Literal["laplace", "staircase"]


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Noise of a released number: ``unit`` times a draw of the named law of sensitivity one.

    Attributes
    ----------
    name : str
        The law.
    unit : float
        What a sensitivity of one is, in units of the outcome.
    epsilon : float
        The ε of the draw.
    """

    name: LawName
    unit: Annotated[float, NOT_NEGATIVE]
    epsilon: Annotated[float | Fraction, POSITIVE]
    outcomes: ClassVar[int] = 1

    @classmethod
    def of_sum(cls, law: SumLaw, unit: float) -> NoiseLaw:
        """Return the noise of a released sum."""
        if law.name == "cube":
            return CubeLaw("laplace", unit, law.epsilon, law.outcomes)
        return NoiseLaw("staircase", unit, law.epsilon)

    def scaled(self, factor: float) -> NoiseLaw:
        """Return the noise of a multiple of the number."""
        return replace(self, unit=abs(factor) * self.unit)


@dataclass(frozen=True, slots=True)
class CubeLaw(NoiseLaw):
    """Noise of a number that shares its draw with those of other outcomes; by itself Laplace's.

    Attributes
    ----------
    outcomes : int
        How many numbers share the draw.
    """

    outcomes: int = 1  # type: ignore[misc]  # one draw has one number in every other law


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
        The law of the noise of the arm's level, independent of that of other arms; null where it
        is rolled up from subgroups, or shared with other outcomes, and has no law of its own.
    mean_noise : object or None
        The law of the noise that means have beyond it, one draw for all arms; null without one.
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
    noise: NoiseLaw | None
    mean_noise: NoiseLaw | None
    variances: tuple[Annotated[float, NOT_NEGATIVE], ...]
    weighted: bool

    @property
    def noise_unit(self) -> float | None:
        """What a sensitivity of one is for the arm's noise, in units of the outcome."""
        return None if self.noise is None else self.noise.unit

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


def _flip(pair: Pair | None) -> Pair | None:
    return None if pair is None else (0.0 - pair[1], 0.0 - pair[0])
