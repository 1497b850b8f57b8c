"""How figures look: every method has one colour, marker and line in all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ARM_STYLES", "SEQUENCE_STYLES", "Style"]


@dataclass(frozen=True, slots=True)
class Style:
    """Colour, marker and line of a curve; colours differ in lightness, so that grey works too."""

    color: str
    marker: str
    line: str = "-"


# Label level is solid, sample level dashed, baselines dotted; within each, dark to light.
ARM_STYLES: Final = {
    "published-label": Style("#08306b", "o"),
    "calibrated-track": Style("#c0392b", "s"),
    "calibrated-balance": Style("#e59866", "D"),
    "published-sample": Style("#2171b5", "o", "--"),
    "orthogonal": Style("#7b241c", "s", "--"),
    "difference-in-means": Style("#8c8c8c", "P", "--"),
    "ipw": Style("#1b4332", "^", ":"),
    "smooth-matching": Style("#40916c", "v", ":"),
    "doubly-robust": Style("#95d5b2", "<", ":"),
    "privsyn": Style("#5b2a86", "X", ":"),
    "aim": Style("#b491d9", "*", ":"),
}

SEQUENCE_STYLES: Final = (
    Style("#08306b", "o"),
    Style("#c0392b", "s", "--"),
    Style("#40916c", "^", "-."),
    Style("#e0a458", "D", ":"),
)
"""For the steps of a parameter, dark to light."""
