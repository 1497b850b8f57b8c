"""The two levels of privacy: what is private, what is public, which data sets are neighbours."""

from __future__ import annotations

from typing import Literal, assert_never

__all__ = ["Level", "adjacency_of", "has_public_covariates", "private_part"]

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


def adjacency_of(level: Level, rows_per_person: int = 1, *, outcomes: int = 1) -> str:
    """Say which two data sets are neighbours; of several outcomes all may differ at once."""
    who = "unit" if rows_per_person == 1 else f"person (up to {rows_per_person} rows)"
    what = private_part(level)
    several = outcomes > 1 and has_public_covariates(level)
    is_plural = rows_per_person > 1 or several
    if is_plural:
        what += "s"
    at_once = f" (all {outcomes} at once)" if several else ""
    return f"replace-one: same n, one {who}'s {what}{at_once} differ" + ("" if is_plural else "s")
