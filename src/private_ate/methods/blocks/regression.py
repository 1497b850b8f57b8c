"""Ridge regression inside one block: residuals, leverages, and small systems.

A system that cannot be solved says so, and a block that meets one cannot say an effect.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from private_ate.arrays import Floats

__all__ = ["Ridge", "centred", "fit_ridge", "press", "residuals", "solve", "standardized"]

_CONSTANT: Final = 1e-6  # a column whose standard deviation is below this is left centred
_LEAST_PENALTY: Final = 1e-9
_LARGEST_LEVERAGE: Final = 0.9


class Ridge(NamedTuple):
    """A ridge regression on some columns: residuals of anything else follow from it.

    ``columns`` (b, p) are centred, ``inverse`` is that of their penalised Gram matrix, and
    ``leverage`` (b,) includes that of the mean.
    """

    columns: Floats
    inverse: Floats
    leverage: Floats

    @property
    def freedom(self) -> float:
        """To how many fitted numbers the regression amounts."""
        return float(self.leverage.sum())


def centred(columns: Floats, weights: Floats) -> Floats:
    """Return columns less their weighted means, shape (b, p)."""
    found: Floats = columns - weights @ columns / weights.sum()
    return found


def standardized(columns: Floats, weights: Floats) -> Floats:
    """Return centred columns of unit variance; constant ones stay centred."""
    found = centred(columns, weights)
    spread = np.sqrt(weights @ np.square(found) / weights.sum())
    found /= np.where(spread < _CONSTANT, 1.0, spread)
    return found


def fit_ridge(columns: Floats, ridges: Floats | float, weights: Floats) -> Ridge:
    """Fit centred columns, each with a penalty relative to its own sum of squares."""
    rooted = columns * np.sqrt(weights)[:, None]
    system = rooted.T @ rooted
    diagonal = np.einsum("ii->i", system)
    diagonal += ridges * diagonal + _LEAST_PENALTY
    inverse: Floats = np.linalg.inv(system).astype(np.float64, copy=False)
    leverage = np.einsum("ij,ij->i", columns @ inverse, columns) + 1 / len(columns)
    return Ridge(columns, inverse, np.minimum(weights * leverage, _LARGEST_LEVERAGE))


def residuals(fit: Ridge, targets: Floats, weights: Floats) -> Floats:
    """Return what the regression leaves of targets, shape (b, t), which are centred first."""
    left = centred(targets, weights)
    products = fit.columns.T @ (left * weights[:, None])
    found: Floats = left - fit.columns @ (fit.inverse @ products)
    return found


def press(fit: Ridge, left: Floats, weights: Floats) -> float:
    """Return the mean square of residuals of rows that are left out of the regression."""
    return float(weights @ np.square(left / (1 - fit.leverage)) / len(left))


def solve(
    first: Floats, second: Floats, wanted: Floats, weights: Floats, least: float
) -> tuple[Floats, bool]:
    """Solve ``first' W second θ = first' W wanted`` for coefficients (D, t).

    The system counts as singular where some combination of arms varies by no more than ``least``.
    """
    weighted = first * weights[:, None]
    system = weighted.T @ second
    if not np.linalg.svd(system, compute_uv=False).min() > least:
        return np.zeros((second.shape[1], wanted.shape[1])), False
    found: Floats = np.linalg.solve(system, weighted.T @ wanted).astype(np.float64, copy=False)
    return found, True
