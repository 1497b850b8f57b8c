"""Pairs of rows that have like covariates, for the variance behind intervals.

Pairs are a function of public columns. The search is compiled code, which loads when it is needed.
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np

from private_ate.arrays import Floats, Indices
from private_ate.methods.calibrated.features import FeatureMap

__all__ = ["like_pairs"]

_NEIGHBOURS: Final = (16, 128)  # the fewest and most rows among which a row finds its pair
_COMPARED: Final = 2_560  # numbers that a row is compared in: beyond 20 covariates fewer rows


def like_pairs(features: FeatureMap, covariates: Floats, rows: Indices) -> tuple[Indices, Indices]:
    """Return pairs of an arm's rows of a block that have like covariates; an odd row has no pair.

    Rows are taken in the order of the line's score, each with the nearest of those that follow it
    and have no pair yet. Distances are those of the standardised covariates, and of the score,
    which counts like a quarter of them. A function of public columns.
    """
    if rows.size < 2:
        return rows[:0], rows[:0]
    standard = features.standardise(covariates[rows])
    score = standard @ features.line[1:]
    order = np.argsort(score, kind="stable")
    width = standard.shape[1]
    line = score * (np.sqrt(width) / 2 / max(float(score.std()), 1e-9))
    compared = int(np.clip(_COMPARED // max(width, 1), *_NEIGHBOURS))
    first, second = _pair_nearest(np.column_stack([line, standard])[order], compared)
    return rows[order[first]], rows[order[second]]


# A distance may be added up in any order, which is the same on every run.
@numba.njit(cache=True, nogil=True, boundscheck=False, fastmath={"reassoc", "contract", "nsz"})
def _pair_nearest(points: Floats, compared: int) -> tuple[Indices, Indices]:
    """Pair each row, in their order, with the nearest of so many rows that follow without a pair.

    ``points`` has shape (m, k). Returns both members of the m // 2 pairs, by position.
    """
    rows, width = points.shape
    first, second = np.empty(rows // 2, np.intp), np.empty(rows // 2, np.intp)
    following = np.arange(1, rows + 1)  # of the rows without a pair
    head = 0
    for pair in range(rows // 2):
        least, found, before = np.inf, following[head], head
        last, other = head, following[head]
        for _ in range(compared):
            if other >= rows:
                break
            distance = 0.0
            for j in range(width):
                distance += (points[head, j] - points[other, j]) ** 2
            if distance < least:
                least, found, before = distance, other, last
            last, other = other, following[other]
        first[pair], second[pair] = head, found
        following[before] = following[found]
        head = following[head]
    return first, second
