"""A small network for the propensity score, for interactions of more than two covariates.

One layer of a few smooth units in directions of their own, beside a linear score, fitted on public
rows by quasi-Newton steps with a ridge. Rows that are held out decide whether it is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import minimize

from private_ate.arrays import Bits, Floats

__all__ = ["HiddenUnits", "Network", "fit_network"]


_UNITS: Final = 8
_RIDGE: Final = 20.0  # of what units add to the score
_DIRECTION_RIDGE: Final = 6.0
_STEPS: Final = 100
_ROWS: Final = 12_000  # rows that are enough to fit so few numbers


@dataclass(frozen=True, slots=True)
class HiddenUnits:
    """Units ``tanh(direction · z + offset)`` of standardised covariates, and their slopes."""

    directions: Floats  # shape (units, k)
    offsets: Floats  # shape (units,)
    slopes: Floats  # shape (units,)

    def add_to(self, score: Floats, covariates: Floats) -> None:
        """Add what units tell to the score of some rows; covariates have shape (k, m)."""
        units = self.directions @ covariates
        units += self.offsets[:, None]
        np.tanh(units, out=units)
        score += self.slopes @ units


@dataclass(frozen=True, slots=True)
class Network:
    """Hidden units beside a linear score."""

    hidden: HiddenUnits
    linear: Floats  # shape (k,)
    intercept: float

    def score(self, covariates: Floats) -> Floats:
        """Return the score of some rows; covariates have shape (k, m)."""
        score: Floats = self.linear @ covariates + self.intercept
        self.hidden.add_to(score, covariates)
        return score


def fit_network(covariates: Floats, treatment: Bits) -> Network:
    """Fit the network on rows of standardised covariates, shape (k, m)."""
    used = covariates[:, :_ROWS]
    rows = np.vstack([used, np.ones(used.shape[1])])
    treated = treatment[:_ROWS].astype(np.float64)
    size = rows.shape[0]
    start = np.zeros((_UNITS + 1) * size + _UNITS)
    # Scattered directions to start from, the same for everybody.
    scattered = np.sin(np.arange(1.0, _UNITS * (size + 1) + 1) ** 2)
    start[: _UNITS * size] = scattered[:-_UNITS] * np.sqrt(2 / size)
    start[-_UNITS:] = 0.01 * scattered[-_UNITS:]
    ridge = np.zeros((_UNITS, size))
    ridge[:, :-1] = _DIRECTION_RIDGE

    def loss(point: Floats) -> tuple[float, Floats]:
        inner, outer, slopes = _unpack(point, size)
        units = np.tanh(inner @ rows)
        score = slopes @ units + outer @ rows
        left = 1.0 / (1.0 + np.exp(-np.clip(score, -30.0, 30.0))) - treated
        value = float(np.logaddexp(0.0, score).sum() - score @ treated)
        value += float((ridge * inner**2).sum() + _RIDGE * slopes @ slopes) / 2
        moved = (slopes[:, None] * (1.0 - units**2)) * left
        gradient = [(moved @ rows.T + ridge * inner).ravel(), rows @ left]
        return value, np.concatenate([*gradient, units @ left + _RIDGE * slopes])

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    inner, outer, slopes = _unpack(found.x, size)
    hidden = HiddenUnits(inner[:, :-1].copy(), inner[:, -1].copy(), slopes.copy())
    return Network(hidden, outer[:-1].copy(), float(outer[-1]))


def _unpack(point: Floats, size: int) -> tuple[Floats, Floats, Floats]:
    """Return directions with offsets, the linear score with its intercept, and slopes."""
    inner = point[: _UNITS * size].reshape(_UNITS, size)
    return inner, point[_UNITS * size : -_UNITS], point[-_UNITS:]
