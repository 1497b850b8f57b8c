"""Weights of rows by arm and cell, limited as the expected error asks; released numbers only."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.estimators.orthogonal.several_arms.cells import (
    ArmCells,
    CountNoise,
    NoisyCells,
    smooth_cells,
)
from private_ate.estimators.orthogonal.smoothing import score_basis
from private_ate.privacy.quantiles import staircase_variance

__all__ = [
    "Limits", "Weights", "choose_weights", "drift_variances", "equal_weights", "replay_variances",
]  # fmt: skip

_LIMITS: Final = (1.2, 1.5, 2, 2.5, 3, 4, 5, 6.5, 8, 11, 15, 25, 50, 100)  # of equal weights
_OUTCOME_SPREAD: Final = 1 / 8  # of the range: how far outcomes are thought to vary within a cell
_HETEROGENEITY: Final = 0.02  # of the range: how far levels may differ between populations
_TREND: Final = 0.1  # of the range: by how much levels may still follow a score, per deviation
_DRIFT_TREND: Final = 0.05  # the same where limits leave rows behind, all on one side of a score
_REPLAYS: Final = 40


@dataclass(frozen=True, slots=True)
class Limits:
    """What limits are chosen by: range W, levels δ, rows n̂ and ε of one staircase draw."""

    width: float
    levels: Floats
    members: int
    epsilon: float

    @property
    def reach(self) -> Floats:
        """How far an outcome may lie from the level of its arm, shape (K,)."""
        reach: Floats = self.width / 2 + np.abs(self.levels)
        return reach


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of rows, shape (K, cells), and what they were limited to (L), shape (K,).

    An arm whose rows count alike has a limit of nan.
    """

    weights: Floats
    limits: Floats

    @property
    def largest(self) -> Floats:
        """The largest weight of each arm."""
        largest: Floats = self.weights.max(axis=1)
        return largest

    @property
    def weighted(self) -> list[bool]:
        """Whether an arm's rows were weighted."""
        return [not math.isnan(limit) for limit in self.limits]


def equal_weights(shares: Floats, cells: int = 1) -> Weights:
    """Return the weights with which all rows of an arm count alike: ``1/p``."""
    return Weights(np.repeat(1 / shares[:, None], cells, axis=1), np.full(shares.size, np.nan))


def choose_weights(cells: ArmCells, equal: Weights, counting: Bits, given: Limits) -> Weights:
    """Choose every arm's limit by the error it leads to; arms that do not count stay equal."""
    weights, limits = equal.weights.copy(), equal.limits.copy()
    for arm in np.flatnonzero(counting).tolist():
        own = ArmCells(cells.weight[arm], cells.share[arm])
        overall = float(own.weight @ own.share)
        tried = [times / overall for times in _LIMITS]
        errors = [_expected_error(own, limited_weights(own, one), given, arm) for one in tried]
        limits[arm] = tried[int(np.argmin(errors))]
        weights[arm] = limited_weights(own, limits[arm])
    return Weights(weights, limits)


def limited_weights(cells: ArmCells, limit: Floats | float) -> Floats:
    """Return ``1/max(p, 1/L)``, scaled so that the arm's weights add up to all rows."""
    weight = 1 / np.maximum(cells.share, 1 / limit)
    scaled: Floats = weight / (cells.weight * cells.share * weight).sum(axis=-1, keepdims=True)
    return scaled


def _expected_error(cells: ArmCells, weight: Floats, given: Limits, arm: int) -> float:
    """Return noise and sampling variance, and the square of a drift of the population."""
    used = cells.weight * cells.share
    largest = float(weight.max()) * float(given.reach[arm])
    noise = staircase_variance(given.epsilon) * (largest / given.members) ** 2
    spread = _OUTCOME_SPREAD * given.width
    sampling = spread**2 / given.members * float(used @ weight**2)
    drift = _HETEROGENEITY * given.width * float(np.abs(used * weight - cells.weight).sum())
    return noise + sampling + drift**2


def replay_variances(cells: ArmCells, weights: Weights, noise: CountNoise, given: Limits) -> Floats:
    """Return the mean square error of each level when the counts' noise is drawn again.

    Mean outcomes are taken to follow the arm's score still, by a tenth of the range for each of
    its standard deviations; shape (K,), zero for arms that are not weighted.
    """
    arms, number = cells.share.shape
    inside = given.members * cells.weight * cells.share
    outside = given.members * cells.weight * (1 - cells.share)
    drawn = _unit_laplace((_REPLAYS, 2, arms, number))
    again = smooth_cells(
        NoisyCells(inside + noise.inside * drawn[:, 0], outside + noise.outside * drawn[:, 1]),
        noise,
    )
    limits = np.where(np.isnan(weights.limits), 1.0, weights.limits)[:, None]
    normal = score_basis(number)[:, 1]
    change = limited_weights(again, limits) - weights.weights
    moved = _TREND * given.width * (cells.weight * cells.share * change * normal).sum(axis=-1)
    variances: Floats = np.where(np.isnan(weights.limits), 0.0, (moved**2).mean(axis=0))
    return variances


def drift_variances(cells: ArmCells, weights: Weights, given: Limits) -> Floats:
    """Return the squared bias that limits leave if mean outcomes follow the arm's score still.

    Weighted rows of an arm lie ``Σ P(pw − 1)z`` of the score's standard deviations from all rows,
    as the released cells show: where the arm is rare a limit keeps its rows from standing for all.
    Mean outcomes are taken to follow the score by a twentieth of the range for each; shape (K,).
    """
    normal = score_basis(cells.share.shape[1])[:, 1]
    left = (cells.weight * (cells.share * weights.weights - 1) * normal).sum(axis=-1)
    biases: Floats = (_DRIFT_TREND * given.width * left) ** 2
    return biases


def _unit_laplace(shape: tuple[int, ...]) -> Floats:
    """Return fixed Laplace variables for a simulation on released numbers; they protect nothing.

    The same in every run, so that an interval is a function of what was released.
    """
    stream = hashlib.shake_128(b"replays of the arms' cells").digest(8 * math.prod(shape))
    uniform = (np.frombuffer(stream, dtype="<u8") >> np.uint64(12)).astype(np.float64) + 0.5
    centred = uniform.reshape(shape) / 2.0**51 - 1.0
    laplace: Floats = -np.sign(centred) * np.log1p(-np.abs(centred))
    return laplace
