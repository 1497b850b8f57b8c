"""Capped calibration: the weights that move an estimate least when no weight may exceed a cap.

For each arm, ``min_w r/2 ‖w − u‖² + 1/2 ‖Fᵀw − g‖²`` subject to ``Σ w = n`` and ``0 ≤ w ≤ A``.
Its dual has one unknown per feature and one for the sum: ``wᵢ = clip(uᵢ − (fᵢ·λ + μ)/r, 0, A)``,
and is concave and piecewise quadratic, so a few semismooth Newton steps solve it. Every quantity
is a sum over rows. A row of sampling weight s counts like s rows (``units``): the distance is
``Σ (w − u)²/s`` and ``wᵢ = clip(uᵢ − sᵢ(fᵢ·λ + μ)/r, 0, A)``. All inputs are public: nothing here
costs ε.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from private_ate.arrays import Floats
from private_ate.methods.calibrated.features import UNEXPLAINED, weights_at
from private_ate.study import Added

__all__ = [
    "TOLERANCE", "Ascent", "DualSums", "Solution", "ascend", "climb", "curvature_of", "dual_sums",
    "maximize_dual",
]  # fmt: skip

K = TypeVar("K", bound=Hashable)

TOLERANCE: Final = 1e-6  # of n, on the largest component of the gradient
_NEWTON_STEPS: Final = 60


@dataclass(frozen=True, slots=True)
class DualSums(Added):
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


Ascent = Generator[Floats, DualSums, Solution]
"""An ascent of a dual: it asks for the sums at one point after the other, and never sees a row."""


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


def ascend(
    target: Floats,
    total: float,
    start: Floats,
    curvature: Callable[[Floats], Floats],
    tolerance: float = TOLERANCE,
    *,
    learning: bool = False,
) -> Ascent:
    """Ascend the concave dual by semismooth Newton steps with backtracking.

    ``curvature`` returns second derivatives at a dual, from rows at hand. Where these are some of
    many rows (``learning``), they are asked for once and then corrected by what each step shows of
    all rows' (BFGS). It ends when no component of the gradient exceeds ``tolerance`` times the
    total weight.
    """

    def slope_at(dual: Floats, sums: DualSums) -> Floats:
        return np.append(sums.features - target - dual[:-1], sums.weight - total)

    def height_at(dual: Floats, sums: DualSums) -> float:
        multipliers = dual[:-1]
        penalty = float(multipliers @ multipliers) / 2 + float(multipliers @ target)
        return sums.value - penalty - float(dual[-1]) * total

    dual, sums = start, (yield start)
    slope, matrix = slope_at(dual, sums), None
    for _ in range(_NEWTON_STEPS):
        if np.abs(slope).max() < tolerance * total:
            break
        if matrix is None or not learning:
            matrix = curvature(dual)
            places = np.arange(dual.size - 1)
            matrix[places, places] += 1.0
            # Without a free row the sum has no curvature; a little of it keeps the step finite.
            matrix[-1, -1] = max(matrix[-1, -1], 1e-6 * dual.size) * (1 + 1e-12)
        direction = np.asarray(np.linalg.solve(matrix, slope), dtype=np.float64)
        height, rise, step = height_at(dual, sums), float(slope @ direction), 1.0
        while True:
            candidate = dual + step * direction
            sums = yield candidate
            if height_at(candidate, sums) >= height + 1e-4 * step * rise or step < 1e-7:
                break
            step /= 2
        reached = slope_at(candidate, sums)
        if learning:
            matrix = _corrected(matrix, candidate - dual, slope - reached)
        dual, slope = candidate, reached
    return Solution(dual, sums)


def _corrected(matrix: Floats, step: Floats, fall: Floats) -> Floats:
    """Return the matrix nearest to this one that maps the step to the fall of the gradient."""
    along, expected = float(step @ fall), matrix @ step
    size = float(step @ expected)
    if along <= 1e-9 * size:  # a step that shows no curvature
        return matrix
    return np.asarray(matrix + np.outer(fall, fall) / along - np.outer(expected, expected) / size)


def climb(
    ascents: Mapping[K, Ascent], answer: Callable[[dict[K, Floats]], Mapping[K, DualSums]]
) -> dict[K, Solution]:
    """Run ascents to their ends; each answer has the sums at the points of all that go on."""
    points = {key: next(ascent) for key, ascent in ascents.items()}
    solutions = {}
    while points:
        for key, sums in answer(points).items():
            try:
                points[key] = ascents[key].send(sums)
            except StopIteration as end:
                solutions[key] = end.value
                del points[key]
    return solutions


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

    def answer(points: dict[int, Floats]) -> dict[int, DualSums]:
        price = features @ points[0][:-1] + points[0][-1]
        weights = weights_at(price, near, units, cap)
        sums = dual_sums(price, near, units, weights, weights @ features)
        return {0: sums.scaled(stands_for)}

    def curvature(dual: Floats) -> Floats:
        return stands_for * curvature_of(features, near, units, dual, cap)

    return climb({0: ascend(target, total, start, curvature, tolerance)}, answer)[0]
