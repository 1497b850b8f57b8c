"""What a column looks like from its counts: an id, dates, or another name for treatment."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.checking.tally import ColumnTally
from private_ate.checking.words import share

__all__ = ["gives_arm_away", "holds_dates", "is_identifier"]

_UNIQUE: Final = 0.9  # share of different values from which on a column may be an id
_FEW_ROWS: Final = 20
_TOLD: Final = 0.99  # share of rows whose arm a column gives away
_NAMED_ID: Final = re.compile(
    r"(?i)(^|[^a-z])(id|uid|uuid|key|ssn|mrn|nr|no|number|index|row)([^a-z]|$)"
)


def holds_dates(tally: ColumnTally) -> bool:
    """Whether most entries look like dates."""
    return 2 * tally.shapes["date"] > tally.present


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
    if tally.rows[:2].min() < 2:
        return None
    gone = tally.missing[:2] / tally.rows[:2]
    if sorted(gone) == [0.0, 1.0]:
        return "it is missing in exactly one arm"
    is_bare = tally.present < _FEW_ROWS or min(tally.rows[:2] - tally.missing[:2]) < 2
    if is_bare or tally.alike.distinct < 2:
        return None
    if tally.values.is_whole and tally.alike.distinct <= tally.present / 4:
        return _telling(np.array([count[:2] for count in tally.values.by_arm().values()]))
    lows, highs = tally.low[:2], tally.high[:2]
    if not tally.texts and (lows[0] > highs[1] or lows[1] > highs[0]):
        return "all its values in one arm lie above all those in the other"
    return None


def _telling(counts: Integers) -> str | None:
    """Say how well values tell the arm, from their counts in either arm, shape (values, 2)."""
    if (counts.min(axis=1) == 0).all():
        return "its value tells the arm of every row"
    told = counts.max(axis=1).sum() / counts.sum()
    usual = counts.sum(axis=0).max() / counts.sum()
    is_close = told >= _TOLD and 1 - told < 0.1 * (1 - usual)
    return f"its value tells the arm of {share(told, 1)} of the rows" if is_close else None
