"""Survival and censoring curves from a noisy histogram; post-processing of released numbers.

Hazards are per horizon and constant within a bin: the curve is exponential there. Arrays have a
row per curve, so that a bootstrap passes through the same functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Floats

__all__ = ["Hazards", "at_edges", "hazards_of", "isotonic", "tidy_cells"]

_MOST_ENDED: Final = 0.98  # of an arm, by the horizon
_LEAST_AT_RISK: Final = 0.02
_MOST_LEAVING: Final = 0.95  # of those at risk, in one bin


@dataclass(frozen=True, slots=True)
class Hazards:
    """Hazards of the event and of censoring in each bin, shape (…, J)."""

    event: Floats
    censoring: Floats

    @property
    def bins(self) -> int:
        """The number of bins (J)."""
        return int(self.event.shape[-1])

    @property
    def risk(self) -> Floats:
        """The risk of the event by the horizon."""
        return np.asarray(-np.expm1(-self.event.mean(axis=-1)))

    def with_least_risk(self, least: float) -> Hazards:
        """Return the hazards with the event's raised evenly until its risk is at least this.

        A curve without a released event would imply a variance of zero.
        """
        lacking = -np.log1p(-min(least, 0.5)) - self.event.mean(axis=-1, keepdims=True)
        return Hazards(self.event + np.maximum(lacking, 0.0), self.censoring)


def isotonic(rows: Floats) -> Floats:
    """Return the nearest rows that never fall (pool adjacent violators), shape (b, k)."""
    size = rows.shape[1]
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    # The value at k is the largest over starts a ≤ k of the least mean from a to an end b ≥ k.
    starts, ends = np.arange(size)[:, None], np.arange(1, size + 1)[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (sums[:, None, 1:] - sums[:, :-1, None]) / (ends - starts)
    means = np.where(ends > starts, means, np.inf)
    least = np.minimum.accumulate(means[:, :, ::-1], axis=2)[:, :, ::-1]
    least = np.where(ends > starts, least, -np.inf)
    return np.asarray(least.max(axis=1))


def tidy_cells(cells: Floats, total: float) -> Floats:
    """Return cells that are not negative and add up to the total, shape (b, 2J + 1).

    The known total is used by least squares; then events and censored rows are made to add up in
    time without ever falling.
    """
    bins = (cells.shape[1] - 1) // 2
    shifted = cells + (total - cells.sum(axis=1, keepdims=True)) / cells.shape[1]
    added = [
        isotonic(np.maximum(np.cumsum(part, axis=1), 0.0))
        for part in (shifted[:, :bins], shifted[:, bins : 2 * bins])
    ]
    ended = sum(part[:, -1:] for part in added)
    share = np.minimum(1.0, _MOST_ENDED * total / np.maximum(ended, 1e-12))
    event, censored = (np.diff(part * share, axis=1, prepend=0.0) for part in added)
    beyond = total - (event + censored).sum(axis=1, keepdims=True)
    return np.concatenate([event, censored, beyond], axis=1)


def hazards_of(cells: Floats, total: float, variance: float) -> Hazards:
    """Return hazards from noisy cells, shape (b, 2J + 1); ``variance`` is that of a cell's noise.

    Of rows at risk the shares that have the event and are censored give both hazards exactly, as
    competing risks. Hazards are then drawn to their common level by the positive-part
    James-Stein factor, as far as noise explains their spread.
    """
    tidy = tidy_cells(np.atleast_2d(cells), total)
    bins = (tidy.shape[1] - 1) // 2
    event, censored = tidy[:, :bins], tidy[:, bins : 2 * bins]
    left = event + censored
    at_risk = total - np.cumsum(left, axis=1) + left
    at_risk = np.maximum(at_risk, _LEAST_AT_RISK * total)
    both = -bins * np.log1p(-np.clip(left / at_risk, 0.0, _MOST_LEAVING))
    share = np.where(left > 1e-12, event / np.where(left > 1e-12, left, 1.0), 0.5)
    spread = variance * bins**2 / at_risk**2
    found = [_shrunk(both * part, spread) for part in (share, 1.0 - share)]
    return Hazards(found[0], found[1])


def _shrunk(hazards: Floats, variances: Floats) -> Floats:
    """Draw hazards to their common level as far as their noise explains their spread."""
    bins = hazards.shape[1]
    if bins == 1 or not (variances > 0).all():
        return hazards
    weights = 1.0 / variances
    level = (hazards * weights).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    spread = (weights * (hazards - level) ** 2).sum(axis=1, keepdims=True)
    kept = np.clip(1.0 - (bins - 1) / np.maximum(spread, 1e-12), 0.0, 1.0)
    return np.asarray(np.maximum(level + kept * (hazards - level), 0.0))


def at_edges(hazards: Floats) -> Floats:
    """Return ``exp(−∫ hazard)`` at the J + 1 edges of the bins, shape (…, J + 1)."""
    added = np.cumsum(hazards, axis=-1) / hazards.shape[-1]
    edges: Floats = np.concatenate([np.zeros((*added.shape[:-1], 1)), added], axis=-1)
    return np.asarray(np.exp(-edges))
