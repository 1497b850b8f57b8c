"""What a method of several arms hands over: a released level per arm and the law of its noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

__all__ = ["ArmEstimate", "NoiseLaw"]


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Noise of a released number: ``unit`` times a draw of the named law of sensitivity one.

    ``unit`` is in units of the outcome; ``epsilon`` is that of the draw.
    """

    name: Literal["laplace", "staircase"]
    unit: float
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class ArmEstimate:
    """One arm as released; arms are in the order of their codes, the reference first.

    Attributes
    ----------
    level : float
        The estimate of E[Y(t)], up to a number that all arms share, in units of the outcome.
    law : NoiseLaw
        The law of its noise, independent of that of other arms.
    mean : float or None
        The mean itself; None where it was not paid for.
    variances : tuple of float
        Equally likely values of the level's sampling variance; empty if no interval was paid for.
    units : int or None
        How many units the arm holds, where that is public.
    weighted : bool
        Whether the arm's units were weighted to stand for all; otherwise they count alike.
    mean_law : NoiseLaw or None
        The law of the noise that the mean has beyond that of the level, shared by all arms.
    """

    level: float
    law: NoiseLaw
    mean: float | None
    variances: tuple[float, ...] = ()
    units: int | None = None
    weighted: bool = True
    mean_law: NoiseLaw | None = None
