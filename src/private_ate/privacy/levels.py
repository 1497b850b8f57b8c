"""The two levels of privacy: what of a unit is private, and what is public."""

from __future__ import annotations

from typing import Literal, assert_never

__all__ = ["Level", "has_public_covariates", "private_part"]

Level = Literal["label", "sample"]


def private_part(level: Level) -> str:
    """Name what neighbours differ in: one unit's outcome, or one unit's record."""
    match level:
        case "label":
            return "outcome"
        case "sample":
            return "record"
    assert_never(level)


def has_public_covariates(level: Level) -> bool:
    """Say whether covariates and treatment are public, so that they may be read and shown."""
    match level:
        case "label":
            return True
        case "sample":
            return False
    assert_never(level)
