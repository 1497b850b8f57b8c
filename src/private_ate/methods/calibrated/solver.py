"""Capped calibration: the weights that move an estimate least when no weight may exceed a cap.

For each arm, ``min_w r/2 ‖w − u‖² + 1/2 ‖Fᵀw − g‖²`` subject to ``Σ w = n`` and ``0 ≤ w ≤ A``.
Its dual has one unknown per feature and one for the sum: ``wᵢ = clip(uᵢ − (fᵢ·λ + μ)/r, 0, A)``,
and is concave and piecewise quadratic, so a few semismooth Newton steps solve it. Every quantity
is a sum over rows. A row of sampling weight s counts like s rows (``units``): the distance is
``Σ (w − u)²/s`` and ``wᵢ = clip(uᵢ − sᵢ(fᵢ·λ + μ)/r, 0, A)``. All inputs are public: nothing here
costs ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.methods.calibrated.features import UNEXPLAINED, weights_at
from private_ate.study import FieldSums

__all__ = [
    "DualAscent", "DualSums", "Solution", "curvature_of", "dual_sums", "maximize_dual",
]  # fmt: skip

TOLERANCE: Final = 1e-6  # of n, on the largest component of the gradient
_NEWTON_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class DualSums(FieldSums):
    """Sums over an arm's rows at a dual point (λ, μ); they add up over blocks."""

    features: Floats  # Σ f w, shape (p,)
    weight: float  # Σ w
    squares: float  # Σ w²
    value: float  # Σ r/2 (w − u)² + (f·λ + μ) w

    def scaled(self, factor: float) -> DualSums:
        """Return the sums as if every row stood for ``factor`` rows."""
        return DualSums(
            factor * self.features, factor * self.weight, factor * self.squares, factor * self.value
        )


@dataclass(frozen=True, slots=True)
class Solution:
    """A dual point at which the gradient vanishes, and the sums there."""

    dual: Floats
    sums: DualSums


def dual_sums(
    price: Floats, near: Floats, units: Floats, weights: Floats, features: Floats
) -> DualSums:
    """Add up what the dual needs of some rows; ``features`` is their ``Σ f w``."""
    moved = UNEXPLAINED / 2 * float(((weights - near) ** 2 / units).sum())
    return DualSums(
        features, float(weights.sum()), float(weights @ weights), moved + float(price @ weights)
    )


def curvature_of(features: Floats, near: Floats, units: Floats, dual: Floats, cap: float) -> Floats:
    """Return ``Σ s (f, 1)(f, 1)ᵀ / r`` over rows whose weight is strictly between its bounds."""
    weights = weights_at(features @ dual[:-1] + dual[-1], near, units, cap)
    inside = (weights > 0.0) & (weights < cap)
    free, counted = features[inside], units[inside]
    curvature = np.empty((dual.size, dual.size))
    curvature[:-1, :-1] = (free * counted[:, None]).T @ free
    curvature[:-1, -1] = curvature[-1, :-1] = counted @ free
    curvature[-1, -1] = counted.sum()
    curvature /= UNEXPLAINED
    return curvature


class DualAscent:
    """An ascent of the concave dual by semismooth Newton steps with backtracking.

    It never sees a row: ``point`` is the dual that it wants evaluated next, ``take`` receives the
    sums there, so that several arms can share each pass over the rows. ``curvature`` returns second
    derivatives at a dual, from rows at hand. Where these are some of many rows (``learning``), they
    are asked for once and then corrected by what each step shows of all rows' (BFGS). It is over,
    and ``point`` None, when no component of the gradient exceeds ``tolerance`` times the total
    weight.
    """

    __slots__ = (
        "_curvature", "_direction", "_dual", "_height", "_learning", "_matrix", "_slope", "_step",
        "_steps_left", "_sums", "_target", "_tolerance", "_total", "point",
    )  # fmt: skip

    point: Floats | None
    _sums: DualSums
    _slope: Floats
    _direction: Floats
    _matrix: Floats
    _height: float

    def __init__(
        self,
        target: Floats,
        total: float,
        start: Floats,
        curvature: Callable[[Floats], Floats],
        tolerance: float = TOLERANCE,
        *,
        learning: bool = False,
    ) -> None:
        self._target, self._total, self._dual = target, total, start
        self._curvature, self._tolerance, self._learning = curvature, tolerance, learning
        self._steps_left, self._step = _NEWTON_STEPS, 0.0
        self.point = start

    @property
    def solution(self) -> Solution:
        """Where it is, and the sums there."""
        return Solution(self._dual, self._sums)

    def take(self, sums: DualSums) -> None:
        """Take the sums at the point in question and decide about the next one."""
        if self._step == 0.0:
            self._advance(self._dual, sums)
            return
        candidate = self._dual + self._step * self._direction
        gain = 1e-4 * self._step * float(self._slope @ self._direction)
        if self._height_at(sums, candidate) < self._height + gain and self._step >= 1e-7:
            self._step /= 2
            self.point = self._dual + self._step * self._direction
            return
        self._advance(candidate, sums)

    def _advance(self, dual: Floats, sums: DualSums) -> None:
        """Choose a direction from a point that was reached, or stop at the top."""
        slope = np.append(sums.features - self._target - dual[:-1], sums.weight - self._total)
        if self._learning and self._step > 0.0:
            self._matrix = _corrected(self._matrix, dual - self._dual, self._slope - slope)
        self._dual, self._sums, self._slope = dual, sums, slope
        reached = np.abs(slope).max() < self._tolerance * self._total
        if reached or self._steps_left == 0:
            self.point = None
            return
        if not self._learning or self._step == 0.0:
            self._matrix = self._curvature(dual)
            places = np.arange(dual.size - 1)
            self._matrix[places, places] += 1.0
            # Without a free row the sum has no curvature; a little of it keeps the step finite.
            self._matrix[-1, -1] = max(self._matrix[-1, -1], 1e-6 * dual.size) * (1 + 1e-12)
        self._steps_left -= 1
        self._direction = np.asarray(np.linalg.solve(self._matrix, slope), dtype=np.float64)
        self._height = self._height_at(sums, dual)
        self._step = 1.0
        self.point = dual + self._direction

    def _height_at(self, sums: DualSums, dual: Floats) -> float:
        multipliers = dual[:-1]
        penalty = float(multipliers @ multipliers) / 2 + float(multipliers @ self._target)
        return sums.value - penalty - float(dual[-1]) * self._total


def _corrected(matrix: Floats, step: Floats, fall: Floats) -> Floats:
    """Return the matrix nearest to this one that maps the step to the fall of the gradient."""
    along, expected = float(step @ fall), matrix @ step
    size = float(step @ expected)
    if along <= 1e-9 * size:  # a step that shows no curvature
        return matrix
    return np.asarray(matrix + np.outer(fall, fall) / along - np.outer(expected, expected) / size)


def maximize_dual(  # noqa: PLR0913  # a problem, and where and how far to go
    features: Floats,
    near: Floats,
    units: Floats,
    cap: float,
    target: Floats,
    total: float,
    start: Floats,
    *,
    stands_for: float = 1.0,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Maximise the dual of one arm whose rows are at hand, each standing for some rows."""
    ascent = DualAscent(
        target, total, start,
        lambda dual: stands_for * curvature_of(features, near, units, dual, cap), tolerance,
    )  # fmt: skip
    while ascent.point is not None:
        price = features @ ascent.point[:-1] + ascent.point[-1]
        weights = weights_at(price, near, units, cap)
        sums = dual_sums(price, near, units, weights, weights @ features)
        ascent.take(sums.scaled(stands_for))
    return ascent.solution
