"""The two levels of privacy: what of a unit is private, and what is public."""

from __future__ import annotations

from typing import Literal, assert_never

__all__ = ["Level", "private_part"]

Level = Literal["label", "sample"]


def private_part(level: Level) -> str:
    """Name what neighbours differ in: one unit's outcome, or one unit's record."""
    match level:
        case "label":
            return "outcome"
        case "sample":
            return "record"
    assert_never(level)
