"""Bends of the score: what its functions tell beyond all other terms, and how far to trust it.

Hinges and odds of a score are mostly copies of the score itself. Here they become uncorrelated
combinations that are new to all other terms, each of unit variance, so that a share of the
outcome's variance given to them means what it says. Everything is a function of public rows.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from private_ate.arrays import Floats

__all__ = ["doubt_by", "growth_of", "new_functions"]


_SEEDLING: Final = 0.01  # of the bends' share that weights follow with few rows per covariate
_GROWS: Final = (150, 1_000)  # rows per covariate between which the share grows to its full size
_MORE: Final = 0.5  # power of the rows by which it grows from there
_DOUBT: Final = ((0.45, 0.7), (2.3, 0.65))  # overlap, and how much an outcome may lean on bends
_LEAST_NEW: Final = 1e-3  # of a function's variance that is new


def growth_of(rows: int, columns: int) -> float:
    """Return how much of their share weights give to bends of the score, by rows per covariate.

    With few rows a score's bends are mostly noise; with very many, noise is so small that what
    weights leave of them would be most of the error.
    """
    low, high = _GROWS
    each = rows / columns
    if each >= high:
        return math.pow(each / high, _MORE)
    start = math.log(_SEEDLING)
    return math.exp(start - start * math.log(max(each / low, 1.0)) / math.log(high / low))


def doubt_by(overlap: float) -> float:
    """Return how far an interval doubts the prior guess of what bends explain.

    Where few units tell what many of the other arm would have had, an outcome that follows the
    score closely makes a large error of a small bend; where arms overlap it does not.
    """
    return float(np.interp(overlap, *_DOUBT))


def new_functions(basis: Floats, mean: Floats, variance: Floats, straight: int) -> Floats:
    """Return combinations of the last functions that are new to the first, shape (k, b).

    They are uncorrelated with the first ``straight`` functions and with each other over the rows
    of ``basis``, shape (b, m), and have unit variance there. Functions that do not vary have
    variance zero and no part in them.
    """
    deviation = np.sqrt(variance)
    usable = deviation > 0
    scaled = (basis - mean[:, None]) / np.where(usable, deviation, 1.0)[:, None]
    scaled[~usable] = 0.0
    together = scaled @ scaled.T / scaled.shape[1]
    ridge = 1e-6 * np.eye(straight)
    slopes = np.linalg.solve(together[:straight, :straight] + ridge, together[:straight, straight:])
    left = together[straight:, straight:] - together[straight:, :straight] @ slopes
    sizes, directions = np.linalg.eigh((left + left.T) / 2)
    kept = sizes > _LEAST_NEW
    whitening = (directions[:, kept] / np.sqrt(sizes[kept])).T
    combined = np.hstack([-whitening @ slopes.T, whitening])
    return np.asarray(combined / np.where(usable, deviation, np.inf))
