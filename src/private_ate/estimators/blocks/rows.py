"""Rows of stacked blocks as columns of numbers, and what is done with columns before any model.

Arrays have blocks along their first axis, and no operation mixes blocks. A sampling weight is a
number of copies: means are weighted by it. Outcomes are in units of their declared range.

Stacked columns have shape (g, b, p) and lie in memory column after column (``empty``), so that a
column is a run of numbers; columns are worked on a few at a time, which keeps them in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Groups

__all__ = [
    "CONSTANT", "Rows", "centre", "centre_into", "dot", "empty", "few_columns", "prepare",
    "standardize", "standardize_into",
]  # fmt: skip

CONSTANT: Final = 1e-6  # a covariate whose standard deviation is below this is left centred
_CACHED: Final = 1 << 14  # numbers that are worked on at once
_WEIGHT_STEPS: Final = 1 << 20  # across the declared bound of sampling weights
_ROUNDING: Final = 1e-12  # what is left of treatment where weights of one arm are taken off


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of stacked blocks as floats, zero where a row takes no part.

    ``weight``, ``treatment`` (centred), ``outcome`` (centred) of shape (g, b); ``covariates``
    standardised, of shape (g, b, d); ``count`` rows that take part, of shape (g,). ``copies`` are
    sampling weights that add up to ``count``; None where none are declared.
    """

    weight: Floats
    treatment: Floats
    outcome: Floats
    covariates: Floats
    count: Floats
    copies: Floats | None = None

    @property
    def positive(self) -> Floats:
        """1 for treated rows, 0 for all others; treatment was centred.

        Zero throughout a block of one arm, where nothing but rounding is left of treatment.
        """
        return (self.treatment > _ROUNDING).astype(np.float64)

    @property
    def worth(self) -> Floats:
        """How many rows of equal weight a block's rows are worth, shape (g,)."""
        return self.count if self.copies is None else self.worth_of(self.weight)

    def worth_of(self, members: Floats) -> Floats:
        """Return how many rows of equal weight some rows are worth, shape (g,)."""
        if self.copies is None:
            number: Floats = members.sum(axis=1)
            return number
        counted = members * self.copies
        return np.asarray(counted.sum(axis=1) ** 2 / np.maximum(dot(counted, counted), 1e-9))

    def counted(self, values: Floats) -> Floats:
        """Return values of rows, shape (g, b), times their number of copies."""
        return values if self.copies is None else values * self.copies

    def rooted(self, columns: Floats) -> Floats:
        """Return columns, shape (g, b, p), times the root of copies: products are then weighted."""
        return columns if self.copies is None else columns * np.sqrt(self.copies)[..., None]


def prepare(groups: Groups) -> Rows:
    """Return the rows of stacked blocks, treatment and outcome centred, covariates standardised."""
    weight, copies = _copies(groups)
    covariates = empty(weight.shape, groups.covariates.shape[2])
    rows = Rows(
        weight,
        groups.treatment * weight,
        (groups.outcome / OUTCOME_STEPS - 0.5) * weight,
        covariates,
        weight.sum(axis=1),
        copies,
    )
    for few in few_columns(covariates):
        part = covariates[..., few]
        np.multiply(groups.covariates[..., few], weight[..., None], out=part)
        standardize_into(part, part, rows)
    return replace(
        rows,
        treatment=centre(rows.treatment[..., None], rows)[..., 0],
        outcome=centre(rows.outcome[..., None], rows)[..., 0],
    )


def _copies(groups: Groups) -> tuple[Floats, Floats | None]:
    """Return which rows take part and, with sampling weights, for how many of them each stands."""
    if groups.weights is None:
        return groups.takes_part.astype(np.float64), None
    # On a grid, so that a block of weights that are next to nothing is still a fair one.
    steps = np.rint(groups.weights * _WEIGHT_STEPS) * groups.takes_part
    weight = (steps > 0).astype(np.float64)
    total = np.maximum(steps.sum(axis=1), 1.0)
    return weight, steps * (weight.sum(axis=1) / total)[:, None]


def empty(stack: tuple[int, ...], columns: int) -> Floats:
    """Return room for stacked columns, shape (g, b, columns), column after column in memory."""
    return np.moveaxis(np.empty((columns, *stack)), 0, -1)


def few_columns(columns: Floats) -> Iterator[slice]:
    """Go through the columns, as many at a time as the processor's cache holds."""
    step = max(_CACHED // max(columns.shape[0] * columns.shape[1], 1), 1)
    for first in range(0, columns.shape[2], step):
        yield slice(first, first + step)


def centre(columns: Floats, rows: Rows) -> Floats:
    """Take off the block's mean; rows that take no part stay zero."""
    centred = empty(columns.shape[:2], columns.shape[2])
    for few in few_columns(columns):
        centre_into(centred[..., few], columns[..., few], rows)
    return centred


def centre_into(out: Floats, columns: Floats, rows: Rows) -> None:
    """Write columns without the block's mean into ``out``, which may be the columns themselves."""
    counted = columns if rows.copies is None else columns * rows.copies[..., None]
    mean = counted.sum(axis=1, keepdims=True) / np.maximum(rows.count, 1.0)[:, None, None]
    np.subtract(columns, mean, out=out)
    out *= rows.weight[..., None]


def standardize(columns: Floats, rows: Rows) -> Floats:
    """Centre columns and give them unit variance, unless they are constant."""
    standard = empty(columns.shape[:2], columns.shape[2])
    for few in few_columns(columns):
        standardize_into(standard[..., few], columns[..., few], rows)
    return standard


def standardize_into(out: Floats, columns: Floats, rows: Rows) -> None:
    """Write standardised columns into ``out``, which may be the columns themselves."""
    centre_into(out, columns, rows)
    squares = np.square(out)
    if rows.copies is not None:
        squares *= rows.copies[..., None]
    square = squares.sum(axis=1, keepdims=True)
    spread = np.sqrt(square / np.maximum(rows.count, 1.0)[:, None, None])
    out /= np.where(spread < CONSTANT, 1.0, spread)


def dot(first: Floats, second: Floats) -> Floats:
    """Return the sum of products in every block."""
    total: Floats = (first * second).sum(axis=1)
    return total
