"""Damped Newton for public columns: how to walk to the minimum of a smooth convex mean loss.

The walk asks a loss for its derivatives and never sees a row. Near the minimum it makes do with
one Hessian of all rows, corrected by a few that are at hand.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from private_ate.arrays import Floats

__all__ = ["PUBLIC_GRADIENT", "Derivatives", "Loss", "Minimum", "minimize"]

PUBLIC_GRADIENT = 1e-10  # the gradient norm that a fit of public columns reaches
_CLOSE = 1e-2  # squared Newton decrement below which full steps contract
_STEPS = 100


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
