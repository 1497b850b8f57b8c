"""The arms of a comparison: a method by its name, a level and what it is called in figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from private_ate.estimation import METHODS
from private_ate.estimators.request import Target
from private_ate.privacy.budget import Level

__all__ = ["ARMS", "Arm", "arm_named", "missing_arms", "runnable_arms"]


@dataclass(frozen=True, slots=True)
class Arm:
    """One competitor.

    Attributes
    ----------
    label : str
        The short name in results files.
    display : str
        The name in figures and pages.
    level : "label" or "sample"
        What the arm keeps private.
    method : str
        The name under which the estimator is registered.
    target : "track" or "balance"
        What the calibrated estimator aims at; others do not look at it.
    slow : bool
        Whether one release takes seconds to minutes, so that it is repeated less often.
    """

    label: str
    display: str
    level: Level
    method: str
    target: Target = "balance"
    slow: bool = False


ARMS: Final = (
    Arm("published-label", "PrivATE (label)", "label", "published"),
    Arm("published-sample", "PrivATE (sample)", "sample", "published"),
    Arm("ipw", "IPW-PP", "sample", "ipw"),
    Arm("smooth-matching", "SmoothDPM", "sample", "smooth_matching"),
    Arm("doubly-robust", "DPCI", "sample", "doubly_robust"),
    Arm("privsyn", "PrivSyn", "sample", "privsyn", slow=True),
    Arm("aim", "AIM", "sample", "aim", slow=True),
    Arm("difference-in-means", "difference in means", "sample", "difference_in_means"),
    Arm("calibrated-track", "ours track (label)", "label", "calibrated", "track"),
    Arm("calibrated-balance", "ours balance (label)", "label", "calibrated", "balance"),
    Arm("orthogonal", "ours (sample)", "sample", "orthogonal"),
)


def arm_named(label: str) -> Arm:
    """Return the arm with that label."""
    return next(arm for arm in ARMS if arm.label == label)


def runnable_arms() -> tuple[Arm, ...]:
    """Return the arms whose method is registered and works at their level."""
    return tuple(arm for arm in ARMS if _works(arm))


def missing_arms() -> tuple[Arm, ...]:
    """Return the arms that cannot run with the methods that are registered."""
    return tuple(arm for arm in ARMS if not _works(arm))


def _works(arm: Arm) -> bool:
    return arm.method in METHODS and arm.level in METHODS[arm.method].levels
