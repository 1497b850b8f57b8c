"""How figures look: every method has one colour, marker and line in all of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import Final

from private_ate.experiments.arms import ALL_ARMS

__all__ = ["ARM_STYLES", "SEQUENCE_STYLES", "Style"]


@dataclass(frozen=True, slots=True)
class Style:
    """Colour, marker and line of a curve; colours differ in lightness, so that grey works too."""

    color: str
    marker: str
    line: str = "-"


# Label level is solid, sample level dashed, baselines dotted; within each, dark to light.
_CHOSEN: Final = {
    "published-label": Style("#08306b", "o"),
    "calibrated-track": Style("#c0392b", "s"),
    "calibrated-balance": Style("#e59866", "D"),
    "published-sample": Style("#2171b5", "o", "--"),
    "blocks": Style("#7b241c", "s", "--"),
    "difference-in-means": Style("#8c8c8c", "P", "--"),
    "ipw": Style("#1b4332", "^", ":"),
    "smooth-matching": Style("#40916c", "v", ":"),
    "doubly-robust": Style("#95d5b2", "<", ":"),
    "privsyn": Style("#5b2a86", "X", ":"),
    "aim": Style("#b491d9", "*", ":"),
}
# For arms that nobody chose a look for: a line that no chosen one has.
_SPARE: Final = tuple(
    Style(color, marker, "-.")
    for color, marker in zip(
        ("#3d3d3d", "#9c6644", "#00798c", "#6c757d", "#d17b0f", "#b8bedd", "#ad2e24", "#7f9c96"),
        ("o", "s", "^", "D", "v", "P", "X", "*"),
        strict=True,
    )
)
_NEW: Final = [arm.label for arm in ALL_ARMS if arm.label not in _CHOSEN]
ARM_STYLES: Final = _CHOSEN | dict(zip(_NEW, cycle(_SPARE), strict=False))

SEQUENCE_STYLES: Final = (
    Style("#08306b", "o"),
    Style("#c0392b", "s", "--"),
    Style("#40916c", "^", "-."),
    Style("#e0a458", "D", ":"),
)
"""For the steps of a parameter, dark to light."""
