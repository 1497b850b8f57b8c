"""The arms of a comparison: a method by its name, a level, and its name and look in figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Final

from private_ate.methods.registry import METHODS, Method
from private_ate.parameters import Target
from private_ate.privacy.levels import Level

__all__ = [
    "ALL_ARMS",
    "ARMS",
    "ARM_STYLES",
    "SEQUENCE_STYLES",
    "Arm",
    "Style",
    "arm_named",
]

# Further forms of a method: the end of the label, that of the display, and the options.
_Options = tuple[tuple[str, bool | float | str], ...]
_FORMS: Final[dict[str, tuple[tuple[str, str, _Options], ...]]] = {
    "ipw": (("all-rows", "all rows", (("split", False),)),),
    "grouped": (("winsorized", "winsorised", (("centre", "winsorized"),)),),
}
# The order of figures and tables; a method that is not named here comes last.
_ORDER: Final = (
    "published", "ipw", "smooth_matching", "doubly_robust", "privsyn", "aim",
    "difference_in_means", "calibrated",
)  # fmt: skip
_ORDERED: Final = (*_ORDER, *(name for name in METHODS if name not in _ORDER))


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
    options : tuple of pairs
        Names and values of the method's options that differ from its defaults.
    """

    label: str
    display: str
    level: Level
    method: str
    target: Target = "balance"
    slow: bool = False
    options: tuple[tuple[str, bool | float | str], ...] = ()


def _arms_of(method: Method) -> Iterator[Arm]:
    """Yield an arm for each level, target and form of a method."""
    name, slow = method.name.replace("_", "-"), method.is_slow
    figure = method.figure or method.name.replace("_", " ")
    for level in method.levels:
        display = figure if method.is_baseline else f"{figure} ({level})"
        label = f"{name}-{level}" if len(method.levels) > 1 else name
        plain = [Arm(label, display, level, method.name, slow=slow)]
        if method.targets:
            plain = [
                replace(
                    plain[0],
                    label=f"{name}-{target}",
                    display=f"{figure} {target} ({level})",
                    target=target,
                )
                for target in method.targets
            ]
        for arm in plain:
            yield arm
            for end, words, options in _FORMS.get(method.name, ()):
                label, display = f"{arm.label}-{end}", f"{arm.display}, {words}"
                yield replace(arm, label=label, display=display, options=options)


def arm_named(label: str) -> Arm:
    """Return the arm with that label."""
    return next(arm for arm in ALL_ARMS if arm.label == label)


@dataclass(frozen=True, slots=True)
class Style:
    """Colour, marker and line of a curve; colours differ in lightness, so that grey works too."""

    color: str
    marker: str
    line: str = "-"


ALL_ARMS: Final = tuple(arm for name in _ORDERED for arm in _arms_of(METHODS[name]))
"""An arm for every registered method, those without a name in figures too."""
ARMS: Final = tuple(arm for arm in ALL_ARMS if METHODS[arm.method].figure)
"""The arms of figures and tables."""

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
