"""What a column looks like from its counts: an id, dates, or another name for treatment."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.checking.column_counts import ColumnCounts
from private_ate.checking.phrasing import share

__all__ = ["holds_dates", "is_identifier", "is_named_id", "reveals_arm"]

_UNIQUE: Final = 0.9  # share of different values from which on a column may be an id
_FEW_ROWS: Final = 20
_REVEALED: Final = 0.99  # share of rows whose arm a column reveals
_NAMED_ID: Final = re.compile(
    r"(?i)(^|[^a-z])(id|uid|uuid|key|ssn|mrn|nr|no|number|index|row)([^a-z]|$)"
)
_NAMED_PERSON: Final = re.compile(
    r"(?i)(^|[^a-z])(id|uid|uuid|pid|ssn|mrn|person|patient|subject|participant)([^a-z]|$)|"
    r"(person|patient|subject|case|user|study|record|participant)_?id$|[a-z]ID$|^nr$"
)


def holds_dates(tally: ColumnCounts) -> bool:
    """Whether most entries look like dates."""
    return 2 * tally.shapes["date"] > tally.present


def is_named_id(name: str) -> bool:
    """Whether a column is named as ids of persons are."""
    return _NAMED_PERSON.search(name) is not None


def is_identifier(tally: ColumnCounts) -> bool:
    """Whether nearly every row has a value of its own, and it looks like an id.

    Measurements are unique too, so numbers are ids only if they are whole and rise from row to
    row, fill their range, or are named as ids are.
    """
    present, distinct = tally.present, tally.hashes.distinct
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


def reveals_arm(tally: ColumnCounts) -> str | None:
    """Say how a column reveals the arm, None if it does not."""
    arms = np.flatnonzero(tally.rows[:-1] >= 2)
    if arms.size < 2:
        return None
    gone = tally.missing[arms] / tally.rows[arms]
    if set(gone) == {0.0, 1.0}:
        rest = "exactly one arm" if arms.size == 2 else "every row of some arms and no other row"
        return f"it is missing in {rest}"
    arms = arms[tally.rows[arms] - tally.missing[arms] >= 2]
    is_bare = tally.present < _FEW_ROWS or arms.size < 2
    if is_bare or tally.hashes.distinct < 2:
        return None
    if tally.values.is_whole and tally.hashes.distinct <= tally.present / 4:
        return _values_reveal_arm(tally, arms)
    return None if tally.texts else _lies_apart(tally, arms)


def _values_reveal_arm(tally: ColumnCounts, arms: Integers) -> str | None:
    """Say how well values determine the arm: all arms, or one of several against the others."""
    counts = np.array([count[arms] for count in tally.values.by_arm().values()])
    how = _how_well_values_reveal_arm(counts)
    if how is not None or arms.size == 2:
        return how
    in_all = counts.sum(axis=1)
    for place, own in zip(arms, counts.T, strict=True):
        how = _how_well_values_reveal_arm(np.stack([own, in_all - own], axis=1))
        if how is not None:
            return f"for {tally.positions.names[place]} against the other arms, {how}"
    return None


def _lies_apart(tally: ColumnCounts, arms: Integers) -> str | None:
    """Say whether one arm's values lie beyond those of every other."""
    for arm in arms:
        others = arms[arms != arm]
        if tally.low[arm] > tally.high[others].max():
            rest = "the other" if arms.size == 2 else "the others"
            return f"all its values in one arm lie above all those in {rest}"
        if arms.size > 2 and tally.high[arm] < tally.low[others].min():
            return "all its values in one arm lie below all those in the others"
    return None


def _how_well_values_reveal_arm(counts: Integers) -> str | None:
    """Say how well values determine the arm, from counts of shape (values, arms)."""
    if ((counts > 0).sum(axis=1) <= 1).all():
        return "its value determines the arm of every row"
    revealed = counts.max(axis=1).sum() / counts.sum()
    usual = counts.sum(axis=0).max() / counts.sum()
    is_close = revealed >= _REVEALED and 1 - revealed < 0.1 * (1 - usual)
    return f"its value determines the arm of {share(revealed, 1)} of the rows" if is_close else None
