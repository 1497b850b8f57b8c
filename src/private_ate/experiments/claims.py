"""A sentence of the paper beside what was measured, and whether they agree."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from private_ate.experiments.arms import arm_named
from private_ate.experiments.sources import display_name

__all__ = [
    "SIMILAR",
    "Claim",
    "Verdict",
    "is_similar",
    "judge",
    "listing",
    "name_arm",
    "name_set",
    "number",
]

Verdict = Literal["reproduced", "not reproduced", "not measured", "measured"]

SIMILAR = 2.0
"""An error is called good beside the best one within this factor."""

_HARDLY = 0.1  # errors that differ by less look the same in a figure


@dataclass(frozen=True, slots=True)
class Claim:
    """What is said, what was measured, and the verdict.

    Our own questions, which the paper does not ask, have the verdict "measured".
    """

    words: str
    measured: str
    verdict: Verdict


def judge(words: str, measured: str, *, holds: bool | None) -> Claim:
    """Compare; ``holds`` is None where the run lacks what the sentence is about."""
    if holds is None:
        return Claim(words, measured, "not measured")
    return Claim(words, measured, "reproduced" if holds else "not reproduced")


def is_similar(first: float, second: float) -> bool:
    """Say whether two errors are within a factor of two, or a tenth apart."""
    return max(first, second) <= SIMILAR * min(first, second) or abs(first - second) <= _HARDLY


def number(value: float) -> str:
    """Write an error or a time with two or three significant digits."""
    if math.isnan(value):
        return "–"
    if abs(value) < 1e-9 or 0.01 <= abs(value) < 100:
        return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:,.0f}"


def name_set(family: str) -> str:
    """Return the display name of a data set."""
    return display_name(family)


def name_arm(label: str) -> str:
    """Return the display name of an arm."""
    return arm_named(label).display


def listing(pairs: Iterable[tuple[str, float]]) -> str:
    """Write named numbers as one line."""
    return ", ".join(f"{name} {number(value)}" for name, value in pairs)
