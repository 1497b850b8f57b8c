"""Who is like whom: rows of a block in an order in which neighbours have like covariates.

A block is cut into cells, by quarters of the score and then by the halves of as many covariates as
its rows can fill, those first on which treatment leans most; within a cell rows follow the score.
Everything here is a function of public columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats, Indices, Integers
from private_ate.estimators.calibrated.features import FeatureMap

__all__ = ["Likeness", "order_along"]


_QUARTER: Final = 0.6745  # deviations from the mean beyond which a quarter of normal values lie
_CELL_ROWS: Final = 8  # rows of a block, of both arms together, that a cell should hold


@dataclass(frozen=True, slots=True)
class Likeness:
    """What tells how rows are alike.

    Attributes
    ----------
    slopes : array, shape (d,)
        Of the linear score.
    score_mean, score_quarter : float
        Its mean, and how far from there the outer quarters begin.
    columns : array of indices
        Covariates that vary, those first on which treatment leans most.
    center, quarter : arrays, one per column
        Where halves of these covariates meet, and how far from there the outer quarters begin;
        zero for a covariate of two values.
    """

    slopes: Floats
    score_mean: float
    score_quarter: float
    columns: Indices
    center: Floats
    quarter: Floats

    @classmethod
    def of(cls, plain: FeatureMap) -> Likeness:
        """Take means, deviations and the score from features that were fitted."""
        slopes = plain.coefficients[1:]
        deviation = np.zeros_like(slopes)
        deviation[plain.linear] = plain.linear_deviation
        lean = np.argsort(-np.abs(slopes * deviation)[plain.linear], kind="stable")
        columns = plain.linear[lean]
        curved = np.isin(columns, plain.squares)
        return cls(
            slopes=slopes,
            score_mean=plain.score_mean + float(slopes @ plain.center),
            score_quarter=_QUARTER * plain.score_deviation,
            columns=columns,
            center=plain.center[columns],
            quarter=np.where(curved, _QUARTER * deviation[columns], 0.0),
        )

    def order(self, covariates: Floats) -> Integers:
        """Return the rows of a block in their order."""
        rows = covariates.shape[0]
        score = covariates @ self.slopes
        bits = list(islice(self._bits(score, covariates), (rows // _CELL_ROWS).bit_length()))
        cells = np.zeros(rows, dtype=np.int64)
        for bit in bits:
            cells <<= 1
            cells |= bit
        return order_along(score, cells, len(bits))

    def _bits(self, score: Floats, covariates: Floats) -> Iterator[Bits]:
        """Yield what cuts cells, the most telling first."""
        from_mean = score - self.score_mean
        yield from_mean > 0
        yield np.abs(from_mean) > self.score_quarter
        for column, center in zip(self.columns, self.center, strict=True):
            yield covariates[:, column] > center
        for column, center, quarter in zip(self.columns, self.center, self.quarter, strict=True):
            if quarter > 0:
                yield np.abs(covariates[:, column] - center) > quarter


def order_along(score: Floats, cells: Integers, cell_bits: int) -> Integers:
    """Return the rows of a block by cell, then by score, equal scores by row.

    Cell, score and row share a machine word: sorting words is several times faster than a stable
    argsort. Scores too close for the bits that are left are taken in row order.
    """
    row_bits = max(1, (score.size - 1).bit_length())
    steps = 1 << min(52, 62 - row_bits - cell_bits)
    lowest = score.min(initial=np.inf)
    reach = max(score.max(initial=-np.inf) - lowest, np.finfo(np.float64).tiny)
    words: Integers = np.rint((score - lowest) / reach * (steps - 1)).astype(np.int64)
    words += cells * steps
    words <<= row_bits
    words |= np.arange(score.size)
    words.sort()
    words &= (1 << row_bits) - 1
    return words
