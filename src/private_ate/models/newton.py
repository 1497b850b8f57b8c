"""How to walk to the minimum of a smooth convex mean loss, for public and for private rows.

A walk asks a loss for its derivatives and never sees a row. For public columns it is damped
Newton, which near the minimum makes do with one Hessian of all rows, corrected by a few that are
at hand. For private ones it is a schedule that follows public numbers only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from private_ate.arrays import Floats

__all__ = [
    "PUBLIC_GRADIENT",
    "SOLVER_GRADIENT",
    "Derivatives",
    "Loss",
    "Minimum",
    "Schedule",
    "minimize",
    "minimize_obliviously",
]

SOLVER_GRADIENT = 1e-9  # γ: the gradient norm that an oblivious fit provably reaches
PUBLIC_GRADIENT = 1e-10  # the gradient norm that a fit of public columns reaches
_CLOSE = 1e-2  # squared Newton decrement below which full steps contract
_STEPS = 100
_NEWTON_STEPS = 6


class Derivatives(NamedTuple):
    """A mean loss with its ridge at one point: gradient, Hessian and value."""

    gradient: Floats
    hessian: Floats
    loss: float


class Loss(Protocol):
    """A strongly convex mean loss over rows, each answer of which is one pass."""

    def derivatives(self, point: Floats) -> Derivatives:
        """Return gradient, Hessian and value at a point."""

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient alone, at less cost."""


class Minimum(NamedTuple):
    """Where the walk ended, and the norm of the gradient when it was last measured."""

    point: Floats
    gradient_norm: float


def minimize(loss: Loss, few: Loss | None, start: Floats, *, tolerance: float) -> Minimum:
    """Run damped Newton; near the minimum, steps with a Hessian that was not computed anew.

    ``few`` is the same loss over a few of the rows, or None.
    """
    current = start
    gradient, hessian, value = loss.derivatives(current)
    for _ in range(_STEPS):
        if np.linalg.norm(gradient) <= tolerance:
            # The last step needs no pass, and leaves a small part of the error measured.
            last = np.linalg.solve(hessian, gradient)
            return Minimum(current - last, float(np.linalg.norm(gradient)))
        step = np.linalg.solve(hessian, gradient).astype(np.float64)
        reached = _Point(current, gradient)
        if float(gradient @ step) <= _CLOSE:
            reached = _polish(loss, few, reached, hessian, tolerance=tolerance)
        if reached.point is current:  # far away, or near by the mean of a loss that is not
            current, (gradient, hessian, value) = _descend(loss, current, step, value)
            continue
        current, gradient = reached
        if np.linalg.norm(gradient) > tolerance:
            gradient, hessian, value = loss.derivatives(current)
    return Minimum(current, float(np.linalg.norm(gradient)))


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is known of a loss for every data set in the domain, and the steps that follow.

    Attributes
    ----------
    smoothness, convexity : float
        Bounds on the eigenvalues of the Hessian, from above (L) and from below (μ).
    start : float
        The loss at zero, which also bounds the penalty of the minimiser.
    steepness : float
        R²: along v a third derivative is at most R‖v‖ times the second.
    """

    smoothness: float
    convexity: float
    start: float
    steepness: float

    @property
    def momentum(self) -> float:
        """The constant momentum of Nesterov's method."""
        ends = math.sqrt(self.smoothness), math.sqrt(self.convexity)
        return (ends[0] - ends[1]) / (ends[0] + ends[1])

    @property
    def gradient_steps(self) -> int:
        """The number of accelerated steps after which Newton's method squares its error."""
        reduction = 2 * self.smoothness * 2 * self.start * 4 * self.steepness / self.convexity**2
        shrinking = -math.log1p(-math.sqrt(self.convexity / self.smoothness))
        return math.ceil(math.log(reduction) / shrinking)


def minimize_obliviously(loss: Loss, size: int, schedule: Schedule) -> Minimum:
    """Walk from zero in a number of passes that follows public numbers, whatever the rows are.

    Accelerated gradient steps reach the region where Newton's method squares its error, for every
    data set in the domain; six Newton steps then bring the gradient norm below γ = 1e-9.
    Proof: docs/proofs/propensity.md.
    """
    previous = current = np.zeros(size)
    momentum = schedule.momentum
    for _ in range(schedule.gradient_steps):
        ahead = current + momentum * (current - previous)
        previous, current = current, ahead - loss.gradient(ahead) / schedule.smoothness
    for _ in range(_NEWTON_STEPS):
        gradient, hessian, _ = loss.derivatives(current)
        current = current - np.linalg.solve(hessian, gradient)
    return Minimum(current, float(np.linalg.norm(loss.gradient(current))))


def _descend(loss: Loss, current: Floats, step: Floats, value: float) -> tuple[Floats, Derivatives]:
    """Go along a Newton step, half as far until the loss falls."""
    size = 1.0
    while True:
        candidate = current - size * step
        derivatives = loss.derivatives(candidate)
        if derivatives.loss < value or size < 1e-6:
            return candidate, derivatives
        size /= 2


class _Point(NamedTuple):
    point: Floats
    gradient: Floats


def _polish(
    loss: Loss, few: Loss | None, reached: _Point, hessian: Floats, *, tolerance: float
) -> _Point:
    """Repeat steps with one Hessian, while each shortens the gradient eightfold; keep no other.

    If a few rows are at hand, the change of their Hessian since the first point is added to it:
    its sampling error shrinks with the distance, so that steps are nearly Newton's own.
    """
    before = None
    norm = float(np.linalg.norm(reached.gradient))
    while norm > tolerance:
        curvature = hessian
        if few is not None:
            now = few.derivatives(reached.point).hessian
            before = now if before is None else before
            curvature = hessian + (now - before)
        ahead = reached.point - np.linalg.solve(curvature, reached.gradient)
        gradient = loss.gradient(ahead)
        shorter = float(np.linalg.norm(gradient))
        if shorter > norm / 8:
            break
        reached, norm = _Point(ahead, gradient), shorter
    return reached
