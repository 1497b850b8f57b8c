"""Capped calibration: the weights that move an estimate least when no weight may exceed a cap.

For each arm, ``min_w r/2 ‖w − u‖² + 1/2 ‖Fᵀw − g‖²`` subject to ``Σ w = n`` and ``0 ≤ w ≤ A``.
Its dual has one unknown per feature and one for the sum: ``wᵢ = clip(uᵢ − (fᵢ·λ + μ)/r, 0, A)``,
and is concave and piecewise quadratic, so a few semismooth Newton steps solve it. Every quantity
is a sum over rows. A row of sampling weight s counts like s rows (``units``): the distance is
``Σ (w − u)²/s`` and ``wᵢ = clip(uᵢ − sᵢ(fᵢ·λ + μ)/r, 0, A)``. All
inputs are public: nothing here costs ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.estimators.calibrated.features import UNEXPLAINED

__all__ = [
    "ArmProblem",
    "Climb",
    "DualQuestion",
    "DualSums",
    "Solution",
    "curvature_of",
    "dual_sums",
    "maximize_dual",
    "weighted_sums",
    "weights_at",
]


TOLERANCE: Final = 1e-6  # of n, on the largest component of the gradient
_NEWTON_STEPS: Final = 100


@dataclass(frozen=True, slots=True)
class ArmProblem:
    """The public targets of one arm: feature totals (g) and the total weight (n)."""

    target: Floats
    total: float


@dataclass(frozen=True, slots=True)
class DualSums:
    """Sums over an arm's rows at a dual point (λ, μ); they add up over blocks."""

    features: Floats  # Σ f w, shape (p,)
    weight: float  # Σ w
    squares: float  # Σ w²
    value: float  # Σ r/2 (w − u)² + (f·λ + μ) w
    curvature: Floats  # Σ over free rows of (f, 1)(f, 1)ᵀ / r, (p + 1, p + 1); empty if not asked

    def __add__(self, other: DualSums) -> DualSums:
        return DualSums(
            self.features + other.features,
            self.weight + other.weight,
            self.squares + other.squares,
            self.value + other.value,
            self.curvature + other.curvature,
        )

    def mapped(self, matrix: Floats) -> DualSums:
        """Return the sums of features that are ``matrix`` times these features and a constant."""
        size = self.features.size
        full = np.vstack([matrix, np.eye(1, size + 1, size)])
        return DualSums(
            matrix[:, :-1] @ self.features + matrix[:, -1] * self.weight,
            self.weight,
            self.squares,
            self.value,
            full @ self.curvature @ full.T if self.curvature.size else self.curvature,
        )

    def scaled(self, factor: float) -> DualSums:
        """Return the sums as if every row stood for ``factor`` rows."""
        return DualSums(
            factor * self.features,
            factor * self.weight,
            factor * self.squares,
            factor * self.value,
            factor * self.curvature,
        )


@dataclass(frozen=True, slots=True)
class DualQuestion:
    """A dual point that a solver wants evaluated, with second derivatives or without."""

    dual: Floats
    curved: bool


@dataclass(frozen=True, slots=True)
class Solution:
    """A dual point at which the gradient vanishes, and the sums there."""

    dual: Floats
    sums: DualSums


def weights_at(
    price: Floats, base: Floats | float, cap: float, units: Floats | None = None
) -> Floats:
    """Return the weights ``clip(u − s·price/r, 0, A)`` for prices ``f·λ + μ``, shape (m,)."""
    moved = price if units is None else units * price
    weights: Floats = np.clip(base - moved / UNEXPLAINED, 0.0, cap)
    return weights


def dual_sums(
    features: Floats,
    base: Floats,
    dual: Floats,
    cap: float,
    *,
    curved: bool = True,
    units: Floats | None = None,
) -> DualSums:
    """Evaluate the dual on some rows of one arm."""
    price = features @ dual[:-1] + dual[-1]
    weights = weights_at(price, base, cap, units)
    free = (weights > 0.0) & (weights < cap) if curved else None
    return weighted_sums(features, base, price, weights, free, units)


def weighted_sums(
    features: Floats,
    base: Floats,
    price: Floats,
    weights: Floats,
    free: Bits | None,
    units: Floats | None = None,
) -> DualSums:
    """Add up features, weights and the dual's value; curvature over the rows that are free."""
    moved = (weights - base) ** 2
    if units is not None:
        moved = moved / units
    value = UNEXPLAINED / 2 * float(moved.sum()) + float(price @ weights)
    return DualSums(
        weights @ features,
        float(weights.sum()),
        float(weights @ weights),
        value,
        curvature_of(features, free, units),
    )


def curvature_of(features: Floats, free: Bits | None, units: Floats | None = None) -> Floats:
    """Return ``Σ s (f, 1)(f, 1)ᵀ / r`` over the free rows; nothing if none are asked for."""
    if free is None:
        return np.zeros((0, 0))
    size = features.shape[1] + 1
    curvature = np.empty((size, size))
    if units is not None:
        counted = np.where(free, units, 0.0)
        extended = np.column_stack([features, np.ones(counted.size)])
        return np.asarray((extended * counted[:, None]).T @ extended / UNEXPLAINED)
    kept = features if free.all() else np.compress(free, features.T, axis=1).T
    curvature[:-1, :-1] = kept.T @ kept
    curvature[:-1, -1] = curvature[-1, :-1] = kept.sum(axis=0)
    curvature[-1, -1] = kept.shape[0]
    curvature /= UNEXPLAINED
    return curvature


def maximize_dual(
    evaluate: Callable[[DualQuestion], DualSums],
    problem: ArmProblem,
    start: Floats,
    tolerance: float = TOLERANCE,
) -> Solution:
    """Climb the dual of one arm whose rows are at hand."""
    climb = Climb(problem, start, tolerance)
    while climb.question is not None:
        climb.hear(evaluate(climb.question))
    return climb.solution


class Climb:
    """A climb of the concave dual by semismooth Newton steps with backtracking.

    It never sees a row: ``question`` is the point it wants evaluated next, ``hear`` takes the
    answer, so that two arms can share each pass over the rows. It is over, and ``question`` None,
    when no component of the gradient exceeds ``tolerance`` times the total weight. Second
    derivatives cost far more than a visit and are asked for at points from which it goes on. If
    it ``reuses`` them, they are asked for again only when a step has gained little: right for a
    start close to the top and rows that are costly to visit.
    """

    __slots__ = (
        "_curvature", "_direction", "_dual", "_height", "_problem", "_reuses", "_slope", "_step",
        "_steps_left", "_sums", "_tolerance", "question",
    )  # fmt: skip

    question: DualQuestion | None
    _sums: DualSums
    _curvature: Floats
    _slope: Floats
    _direction: Floats
    _height: float
    _step: float | None  # None before a direction was chosen from the sums at hand

    def __init__(
        self,
        problem: ArmProblem,
        start: Floats,
        tolerance: float = TOLERANCE,
        *,
        reuses: bool = False,
    ) -> None:
        self._problem, self._dual, self._tolerance = problem, start, tolerance
        self._reuses, self._steps_left, self._step = reuses, _NEWTON_STEPS, None
        self.question = DualQuestion(start, curved=True)

    @property
    def solution(self) -> Solution:
        """Where the climb is, and the sums there."""
        return Solution(self._dual, self._sums)

    def hear(self, sums: DualSums) -> None:
        """Take the sums at the point in question and decide about the next one."""
        if self._step is None:
            self._sums, self._curvature = sums, sums.curvature
            self._set_out()
        else:
            self._judge(sums, self._step)

    def _set_out(self) -> None:
        """Choose a direction, or stop at the top."""
        self._slope = _slope(self._sums, self._problem, self._dual)
        if self._is_over(self._slope):
            self.question = None
            return
        self._steps_left -= 1
        self._direction = _direction(self._curvature, self._slope)
        self._height = _height(self._sums, self._problem, self._dual)
        self._propose(1.0)

    def _propose(self, step: float) -> None:
        self._step = step
        self.question = DualQuestion(self._dual + step * self._direction, curved=False)

    def _judge(self, sums: DualSums, step: float) -> None:
        """Take a step that gains enough; halve one that does not."""
        candidate = self._dual + step * self._direction
        gain = 1e-4 * step * float(self._slope @ self._direction)
        if _height(sums, self._problem, candidate) < self._height + gain and step >= 1e-7:
            self._propose(step / 2)
            return
        slope = _slope(sums, self._problem, candidate)
        left = np.abs(slope).max() / np.abs(self._slope).max()
        self._dual, self._sums, self._step = candidate, sums, None
        if left > 0.3 if self._reuses else not self._is_over(slope):
            self.question = DualQuestion(candidate, curved=True)
            return
        self._set_out()

    def _is_over(self, slope: Floats) -> bool:
        reached = np.abs(slope).max() < self._tolerance * self._problem.total
        return bool(reached) or self._steps_left == 0


def _slope(sums: DualSums, problem: ArmProblem, dual: Floats) -> Floats:
    return np.append(sums.features - problem.target - dual[:-1], sums.weight - problem.total)


def _height(sums: DualSums, problem: ArmProblem, dual: Floats) -> float:
    multipliers = dual[:-1]
    return (
        sums.value
        - float(multipliers @ problem.target)
        - float(multipliers @ multipliers) / 2
        - float(dual[-1]) * problem.total
    )


def _direction(curvature: Floats, slope: Floats) -> Floats:
    matrix = curvature.copy()
    diagonal = np.arange(matrix.shape[0] - 1)
    matrix[diagonal, diagonal] += 1.0
    # Without a free row the sum has no curvature; a little of it keeps the step finite.
    matrix[-1, -1] = max(matrix[-1, -1], 1e-6 * slope.size) * (1 + 1e-12)
    return np.asarray(np.linalg.solve(matrix, slope), dtype=np.float64)
