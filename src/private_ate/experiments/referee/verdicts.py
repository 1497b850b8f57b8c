"""Who wins a cell, where our default is not the best, and by how much: all from paired draws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final, Literal, get_args

from private_ate.experiments.arms import ALL_ARMS, Arm, arm_named
from private_ate.experiments.claims import number
from private_ate.experiments.referee.draws import Draw, Outing
from private_ate.experiments.referee.plan import LEAST_DRAWS
from private_ate.methods.registry import AUTO
from private_ate.privacy.levels import Level

__all__ = [
    "Cell",
    "Standing",
    "Verdict",
    "cells_of",
    "counts",
    "default_arm",
    "explain_loss",
    "lost_to",
    "verdict_of",
]

Verdict = Literal["best", "tie", "beaten", "too few draws"]
STANDARD_ERRORS: Final = 2.0
"""How many standard errors of the paired difference count as a difference."""
_SILENT: Final = 0.5  # a mean answer below this share of the effect says little
_MOSTLY: Final = 1.0  # a bias above so many spreads is most of an error


@dataclass(frozen=True, slots=True)
class Standing:
    """What one arm did in a cell.

    Attributes
    ----------
    arm : str
        Its label.
    errors : mapping of int to float
        ``|estimate − truth| / |truth|`` by draw.
    signed : tuple of float
        The same with its sign, in the order of the draws.
    covered, widths : tuples
        Whether each interval held the truth, and its width relative to the truth.
    refused : int
        Releases that were refused.
    cpu : tuple of float
        Processor seconds of each release.
    """

    arm: str
    errors: dict[int, float]
    signed: tuple[float, ...]
    covered: tuple[bool, ...]
    widths: tuple[float, ...]
    refused: int
    cpu: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean relative error; NaN if every release was refused."""
        return fmean(self.errors.values()) if self.errors else math.nan

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; NaN for one draw."""
        values = list(self.errors.values())
        return stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan

    @property
    def bias(self) -> float:
        """The mean of the signed relative errors."""
        return fmean(self.signed) if self.signed else math.nan

    @property
    def spread(self) -> float:
        """The standard deviation of the signed relative errors."""
        return stdev(self.signed) if len(self.signed) > 1 else math.nan

    @property
    def coverage(self) -> float:
        """The share of intervals that held the truth; NaN without intervals."""
        return fmean(self.covered) if self.covered else math.nan

    @property
    def width(self) -> float:
        """The mean width of the intervals relative to the truth; NaN without intervals."""
        return fmean(self.widths) if self.widths else math.nan


@dataclass(frozen=True, slots=True)
class Cell:
    """All arms of one level in one setting at one ε.

    ``plain`` and ``adjusted`` are the mean errors, without privacy, of the difference in means and
    of the doubly robust estimate.
    """

    setting: str
    level: Level
    epsilon: str
    standings: tuple[Standing, ...]
    plain: float
    adjusted: float

    @property
    def winner(self) -> Standing | None:
        """The arm with the smallest mean error; None where every release was refused."""
        known = [one for one in self.standings if one.errors]
        return min(known, key=lambda one: one.mean, default=None)

    @property
    def default(self) -> Standing | None:
        """What the level's default did; None if it took no part."""
        label = default_arm(self.level).label
        return next((one for one in self.standings if one.arm == label), None)


def default_arm(level: Level) -> Arm:
    """Return the arm of what "auto" chooses at a level, with the default target."""
    chosen = (arm for arm in ALL_ARMS if arm.method == AUTO[level] and arm.level == level)
    return next(arm for arm in chosen if arm.target == "balance" and not arm.options)


def cells_of(draws: Sequence[Draw]) -> list[Cell]:
    """Group the draws into cells, in the order in which settings first appear."""
    groups: dict[str, list[Draw]] = {}
    for draw in draws:
        groups.setdefault(draw.setting, []).append(draw)
    return [
        cell
        for setting, members in groups.items()
        for level in get_args(Level)
        for cell in _cells_of_setting(setting, level, sorted(members, key=lambda one: one.draw))
    ]


def verdict_of(cell: Cell) -> Verdict:
    """Judge the default: best, tied within two standard errors with all that are ahead, or not.

    A default that was refused in a draw is beaten.
    """
    default = cell.default
    if default is None or len(default.errors) + default.refused < LEAST_DRAWS:
        return "too few draws"
    if lost_to(cell) is not None or default.refused:
        return "beaten"
    return "best" if cell.winner is default else "tie"


def lost_to(cell: Cell) -> Standing | None:
    """Return the arm that is ahead of the default by most, of those beyond two standard errors."""
    default = cell.default
    if default is None:
        return None
    ahead = [
        (gap, one)
        for one in cell.standings
        if one is not default
        for gap, error in (_paired(default, one),)
        if gap > STANDARD_ERRORS * error
    ]
    return max(ahead, key=lambda entry: entry[0])[1] if ahead else None


def counts(cells: Iterable[Cell]) -> Counter[Verdict]:
    """Count the verdicts."""
    return Counter(verdict_of(cell) for cell in cells)


def _paired(default: Standing, other: Standing) -> tuple[float, float]:
    """Return by how much the default's error is larger on common draws, and its standard error.

    With too few common draws nothing is distinguished: the standard error is infinite.
    """
    common = default.errors.keys() & other.errors.keys()
    if len(common) < LEAST_DRAWS:
        return 0.0, math.inf
    gaps = [default.errors[draw] - other.errors[draw] for draw in sorted(common)]
    return fmean(gaps), stdev(gaps) / math.sqrt(len(gaps))


def _cells_of_setting(setting: str, level: Level, draws: Sequence[Draw]) -> Iterator[Cell]:
    found: dict[str, dict[str, list[tuple[Draw, Outing]]]] = {}
    for draw in draws:
        for one in draw.outings:
            if arm_named(one.arm).level == level:
                found.setdefault(one.epsilon, {}).setdefault(one.arm, []).append((draw, one))
    for epsilon in sorted(found, key=float):
        arms = found[epsilon]
        standings = [_standing(arm.label, arms[arm.label]) for arm in ALL_ARMS if arm.label in arms]
        yield Cell(
            setting, level, epsilon, tuple(standings),
            fmean(abs(draw.plain - draw.truth) / abs(draw.truth) for draw in draws),
            fmean(abs(draw.adjusted - draw.truth) / abs(draw.truth) for draw in draws),
        )  # fmt: skip


def _standing(arm: str, entries: Sequence[tuple[Draw, Outing]]) -> Standing:
    signed = {
        draw.draw: (one.estimate - draw.truth) / abs(draw.truth)
        for draw, one in entries
        if one.estimate is not None
    }
    intervals = [(draw.truth, *one.interval) for draw, one in entries if one.interval is not None]
    return Standing(
        arm=arm,
        errors={draw: abs(value) for draw, value in signed.items()},
        signed=tuple(signed.values()),
        covered=tuple(low <= truth <= high for truth, low, high in intervals),
        widths=tuple((high - low) / abs(truth) for truth, low, high in intervals),
        refused=sum(one.estimate is None for _, one in entries),
        cpu=tuple(one.cpu for _, one in entries),
    )


def explain_loss(default: Standing, ahead: Standing | None) -> str:
    """Say in a sentence where the default's larger error comes from.

    Bias and spread are the mean and the standard deviation of (estimate − truth)/|truth|.
    """
    if ahead is None:
        return f"refused in {default.refused} draws"
    ours = f"bias {number(default.bias)}, spread {number(default.spread)}"
    theirs = f"bias {number(ahead.bias)}, spread {number(ahead.spread)}"
    if 1.0 + ahead.bias < _SILENT and ahead.spread < _SILENT:
        return (
            f"the answers of the one ahead stay near zero ({theirs}), which misses by about the "
            f"effect; ours spread further ({ours})"
        )
    if abs(default.bias) > _MOSTLY * default.spread:
        kind = (
            "ours is off on one side: confounding that it could not afford to remove, "
            "or of a shape that its model lacks"
        )
        return f"{kind} ({ours}; ahead: {theirs})"
    return f"ours spreads more by noise and sampling ({ours}; ahead: {theirs})"
