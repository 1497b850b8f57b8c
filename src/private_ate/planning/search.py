"""Solves a plan for ε or for rows: the least that reaches a wanted half-width."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from private_ate.planning.plan import PlanRow

__all__ = ["LARGEST", "MOST_ROWS", "Answer", "Predict", "answer_with_epsilon", "answer_with_rows"]

Predict = Callable[[int, float], PlanRow]
"""What to expect of so many rows at an ε."""

LARGEST: Final = 64.0  # beyond this ε a wanted precision counts as unreachable
MOST_ROWS: Final = 10**9
_SMALLEST: Final = 1e-3
_FEWEST: Final = 16
_STEPS: Final = 48


@dataclass(frozen=True, slots=True)
class Answer:
    """The least of what was asked for, and what it takes if the estimate shall adjust.

    ``adjusting`` is the same as ``least`` where that adjusts; None stands for unreachable.
    """

    least: float | None
    adjusting: float | None


def answer_with_epsilon(predict: Predict, size: int, wanted: float) -> Answer:
    """Return the least ε whose half-width is as wanted, None if none up to 64 suffices."""

    def at(epsilon: float) -> PlanRow:
        return predict(size, epsilon)

    return _answer(at, wanted, _Range(_SMALLEST, LARGEST, 1e-4), lambda x: float(f"{x:.3g}"))


def answer_with_rows(predict: Predict, epsilon: float, wanted: float) -> Answer:
    """Return the least number of rows whose half-width is as wanted, None if 10⁹ are too few."""

    def at(rows: float) -> PlanRow:
        return predict(max(round(rows), 1), epsilon)

    return _answer(at, wanted, _Range(_FEWEST, MOST_ROWS, 4e-3), _rounded_up)


@dataclass(frozen=True, slots=True)
class _Range:
    """Where to search, and to which relative precision."""

    lowest: float
    highest: float
    precision: float


def _answer(
    at: Callable[[float], PlanRow],
    wanted: float,
    within: _Range,
    shown: Callable[[float], float],
) -> Answer:
    least = _search(lambda x: at(x).half_width <= wanted, within)
    if least is None:
        return Answer(None, None)
    if at(shown(least)).adjusted:
        return Answer(shown(least), shown(least))

    def adjusts(x: float) -> bool:
        row = at(x)
        return row.adjusted and row.half_width <= wanted

    adjusting = _search(adjusts, within)
    return Answer(shown(least), None if adjusting is None else shown(adjusting))


def _search(suffices: Callable[[float], bool], within: _Range) -> float | None:
    """Return the least number that suffices, by a coarse grid and then by halving.

    The grid comes first: where a method switches to adjusting, width may rise with ε.
    """
    step = math.log(within.highest / within.lowest) / _STEPS
    grid = [math.log(within.lowest) + index * step for index in range(_STEPS + 1)]
    high = next((x for x in grid if suffices(math.exp(x))), None)
    if high is None or high == grid[0]:
        return None if high is None else within.lowest
    low = high - step
    while high - low > within.precision:
        middle = (low + high) / 2
        if suffices(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def _rounded_up(rows: float) -> float:
    """Return a number of rows with three digits, not below what was asked."""
    unit = 10 ** max(math.floor(math.log10(rows)) - 2, 0)
    return float(math.ceil(rows / unit - 1e-9) * unit)
