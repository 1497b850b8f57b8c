"""Ridge regression in stacked blocks: controls with their penalties, and what they leave.

A block that cannot be solved gives NaN instead of raising, so that the bits of one block never
depend on another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.blocks.rows import Rows, empty

__all__ = [
    "LEAST_PENALTY", "Basis", "Controls", "add_to_diagonal", "residuals", "ridge_weights", "solve",
]  # fmt: skip

LEAST_PENALTY: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Basis:
    """Controls in parts of shape (g, b, ·), each with a relative ridge or one per block (g, 1)."""

    parts: tuple[Floats, ...]
    ridges: tuple[float | Floats, ...]

    def with_columns(self, columns: Floats, ridge: float | Floats) -> Basis:
        """Add columns that share a ridge."""
        return Basis((*self.parts, columns), (*self.ridges, ridge))

    def joined(self) -> Controls:
        """Put all columns beside each other."""
        ridges = [
            np.broadcast_to(ridge, (part.shape[0], part.shape[2]))
            for part, ridge in zip(self.parts, self.ridges, strict=True)
        ]
        joined = empty(self.parts[0].shape[:2], sum(part.shape[2] for part in self.parts))
        np.concatenate(self.parts, axis=2, out=joined)
        return Controls(joined, np.concatenate(ridges, axis=1))


@dataclass(frozen=True, slots=True)
class Controls:
    """All controls of shape (g, b, p) and their relative ridges (g, p)."""

    columns: Floats
    ridge: Floats


def residuals(controls: Controls, targets: Floats, rows: Rows) -> Floats:
    """Return what a ridge regression leaves of the targets, by the smaller of two systems.

    A ridge is relative to its column's sum of squares; targets of shape (g, b, t). With sampling
    weights residuals are times the root of the weight, so that their products are weighted.
    """
    controls = replace(controls, columns=rows.rooted(controls.columns))
    columns, targets = controls.columns, rows.rooted(targets)
    if columns.shape[2] <= columns.shape[1]:
        left = targets - columns @ ridge_weights(controls, targets)
    else:
        penalty = _penalties(controls, np.square(columns).sum(axis=1))
        system = (columns / penalty[:, None, :]) @ np.swapaxes(columns, 1, 2)
        add_to_diagonal(system, np.ones(system.shape[:2]))
        left = solve(system, targets)
    kept: Floats = left * rows.weight[..., None]
    return kept


def ridge_weights(controls: Controls, targets: Floats) -> Floats:
    """Return the coefficients of a ridge regression, shape (g, p, t)."""
    turned = np.swapaxes(controls.columns, 1, 2)
    system = turned @ controls.columns
    add_to_diagonal(system, _penalties(controls, np.diagonal(system, axis1=1, axis2=2)))
    return solve(system, turned @ targets)


def _penalties(controls: Controls, squares: Floats) -> Floats:
    """Return the ridges for columns with these sums of squares, shape (g, p)."""
    penalties: Floats = controls.ridge * squares + LEAST_PENALTY
    return penalties


def add_to_diagonal(systems: Floats, values: Floats) -> None:
    """Add values of shape (g, p) to the diagonals of systems of shape (g, p, p), in place."""
    places = np.arange(systems.shape[1])
    systems[:, places, places] += values


def solve(systems: Floats, targets: Floats) -> Floats:
    """Solve stacked systems; one that is singular gives NaN and touches no other."""
    with np.errstate(all="ignore"):
        try:
            solved: Floats = np.linalg.solve(systems, targets).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:
            solved = np.stack([_solve_one(*pair) for pair in zip(systems, targets, strict=True)])
    return solved


def _solve_one(system: Floats, target: Floats) -> Floats:
    try:
        return np.linalg.solve(system, target).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return np.full_like(target, np.nan)
