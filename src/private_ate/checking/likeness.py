"""What a column looks like from its counts: an id, dates, or another name for treatment."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.checking.tally import ColumnTally
from private_ate.checking.words import share

__all__ = ["gives_arm_away", "holds_dates", "is_identifier", "is_named_id"]

_UNIQUE: Final = 0.9  # share of different values from which on a column may be an id
_FEW_ROWS: Final = 20
_TOLD: Final = 0.99  # share of rows whose arm a column gives away
_NAMED_ID: Final = re.compile(
    r"(?i)(^|[^a-z])(id|uid|uuid|key|ssn|mrn|nr|no|number|index|row)([^a-z]|$)"
)

_NAMED_PERSON: Final = re.compile(
    r"(?i)(^|[^a-z])(id|uid|uuid|pid|ssn|mrn|person|patient|subject|participant)([^a-z]|$)|"
    r"(person|patient|subject|case|user|study|record|participant)_?id$|[a-z]ID$|^nr$"
)


def holds_dates(tally: ColumnTally) -> bool:
    """Whether most entries look like dates."""
    return 2 * tally.shapes["date"] > tally.present


def is_named_id(name: str) -> bool:
    """Whether a column is named as ids of persons are."""
    return _NAMED_PERSON.search(name) is not None


def is_identifier(tally: ColumnTally) -> bool:
    """Whether nearly every row has a value of its own, and it looks like an id.

    Measurements are unique too, so numbers are ids only if they are whole and rise from row to
    row, fill their range, or are named as ids are.
    """
    present, distinct = tally.present, tally.alike.distinct
    if present < _FEW_ROWS or distinct < _UNIQUE * present:
        return False
    if not tally.texts:
        width = tally.high.max() - tally.low.min()
        is_dense = width < 1.5 * present
        is_named = _NAMED_ID.search(tally.name) is not None
        return tally.is_whole and (tally.rises or is_dense or is_named)
    return 2 * tally.texts > present and 2 * (tally.shapes["comma"] + tally.shapes["unit"]) < (
        tally.texts
    )


def gives_arm_away(tally: ColumnTally) -> str | None:
    """Say how a column gives the arm away, None if it does not."""
    arms = np.flatnonzero(tally.rows[:-1] >= 2)
    if arms.size < 2:
        return None
    gone = tally.missing[arms] / tally.rows[arms]
    if set(gone) == {0.0, 1.0}:
        rest = "exactly one arm" if arms.size == 2 else "every row of some arms and no other row"
        return f"it is missing in {rest}"
    arms = arms[tally.rows[arms] - tally.missing[arms] >= 2]
    is_bare = tally.present < _FEW_ROWS or arms.size < 2
    if is_bare or tally.alike.distinct < 2:
        return None
    if tally.values.is_whole and tally.alike.distinct <= tally.present / 4:
        return _tells_arms(tally, arms)
    return None if tally.texts else _lies_apart(tally, arms)


def _tells_arms(tally: ColumnTally, arms: Integers) -> str | None:
    """Say how well values tell the arm, all arms or one of several from the others."""
    counts = np.array([count[arms] for count in tally.values.by_arm().values()])
    told = _telling(counts)
    if told is not None or arms.size == 2:
        return told
    everyone = counts.sum(axis=1)
    for place, own in zip(arms, counts.T, strict=True):
        told = _telling(np.stack([own, everyone - own], axis=1))
        if told is not None:
            return f"for {tally.slots.names[place]} against the other arms, {told}"
    return None


def _lies_apart(tally: ColumnTally, arms: Integers) -> str | None:
    """Say whether one arm's values lie beyond those of every other."""
    for arm in arms:
        others = arms[arms != arm]
        if tally.low[arm] > tally.high[others].max():
            rest = "the other" if arms.size == 2 else "the others"
            return f"all its values in one arm lie above all those in {rest}"
        if arms.size > 2 and tally.high[arm] < tally.low[others].min():
            return "all its values in one arm lie below all those in the others"
    return None


def _telling(counts: Integers) -> str | None:
    """Say how well values tell the arm, from their counts in each arm, shape (values, arms)."""
    if ((counts > 0).sum(axis=1) <= 1).all():
        return "its value tells the arm of every row"
    told = counts.max(axis=1).sum() / counts.sum()
    usual = counts.sum(axis=0).max() / counts.sum()
    is_close = told >= _TOLD and 1 - told < 0.1 * (1 - usual)
    return f"its value tells the arm of {share(told, 1)} of the rows" if is_close else None
