"""The models inside a block: an adjusted effect and its variance from the block's rows alone.

Everything is a function of stacked arrays whose first axis runs over blocks; no operation mixes
blocks, iteration counts are fixed, and a block that cannot be solved is marked instead of
raising, so that the bits of one block never depend on another. Privacy does not rest on what is
computed here. Units: outcomes in units of their declared range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Groups

__all__ = ["BlockEffects", "linear_effects"]

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]

_FEWEST_ROWS: Final = 4
_CONSTANT: Final = 1e-6  # a covariate whose standard deviation is below this is left centred
_LEAST_PENALTY: Final = 1e-9
_LEAST_VARIATION: Final = 1e-6  # of treatment, after adjustment


@dataclass(frozen=True, slots=True)
class BlockEffects:
    """An effect and its variance per block; only where ``usable`` do they mean anything."""

    effect: Floats
    variance: Floats
    usable: Bits


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of stacked blocks as floats, zero where a row takes no part.

    ``weight``, ``treatment`` (centred), ``outcome`` (centred) of shape (g, b); ``covariates``
    standardised, of shape (g, b, d); ``count`` rows that take part, of shape (g,).
    """

    weight: Floats
    treatment: Floats
    outcome: Floats
    covariates: Floats
    count: Floats


def linear_effects(groups: Groups) -> BlockEffects:
    """Regress the outcome's residuals on those of treatment, both after a ridge regression.

    Controls are the covariates, their squares and, in blocks of more rows than covariates, their
    products with treatment. Penalties fade as the block grows; the ridge is used twice, so that
    the bias it leaves is of second order in the shrinkage.
    """
    rows = _prepare(groups)
    dimension = groups.covariates.shape[2]
    crowding = dimension / max(groups.covariates.shape[1], 1)
    parts = [rows.covariates, _squares(rows)]
    penalties = [0.08 * crowding, 12 * crowding**3]
    if groups.covariates.shape[1] > dimension:
        parts.append(_centre(rows.treatment[..., None] * rows.covariates, rows))
        penalties.append(36 * crowding**3)
    controls = np.concatenate(parts, axis=2)
    ridge = np.repeat(penalties, dimension)
    targets = np.stack([rows.treatment, rows.outcome], axis=2)
    left = _residuals(controls, ridge, targets) * rows.weight[..., None]
    treatment, outcome = left[..., 0], left[..., 1]
    variation = _dot(treatment, treatment)
    with np.errstate(all="ignore"):
        effect = _dot(treatment, outcome) / variation
        error = treatment * (outcome - effect[:, None] * treatment)
        variance = _dot(error, error) / variation**2 * _degrees(rows.count, dimension)
    return _checked(effect, variance, (variation > _LEAST_VARIATION) & _has_rows(rows))


def _prepare(groups: Groups) -> _Rows:
    weight = groups.takes_part.astype(np.float64)
    count = weight.sum(axis=1)
    rows = _Rows(
        weight,
        groups.treatment * weight,
        (groups.outcome / OUTCOME_STEPS - 0.5) * weight,
        np.ascontiguousarray(groups.covariates) * weight[..., None],
        count,
    )
    return _Rows(
        weight,
        _centre(rows.treatment[..., None], rows)[..., 0],
        _centre(rows.outcome[..., None], rows)[..., 0],
        _standardize(rows.covariates, rows),
        count,
    )


def _centre(columns: Floats, rows: _Rows) -> Floats:
    """Take off the block's mean; rows that take no part stay zero."""
    mean = columns.sum(axis=1, keepdims=True) / np.maximum(rows.count, 1.0)[:, None, None]
    centred: Floats = (columns - mean) * rows.weight[..., None]
    return centred


def _standardize(columns: Floats, rows: _Rows) -> Floats:
    """Centre columns and give them unit variance, unless they are constant."""
    centred = _centre(columns, rows)
    square = np.square(centred).sum(axis=1, keepdims=True)
    spread = np.sqrt(square / np.maximum(rows.count, 1.0)[:, None, None])
    centred /= np.where(spread < _CONSTANT, 1.0, spread)
    return centred


def _squares(rows: _Rows) -> Floats:
    clipped = np.clip(rows.covariates, -3.0, 3.0)
    np.square(clipped, out=clipped)
    return _standardize(clipped, rows)


def _residuals(controls: Floats, ridge: Floats, targets: Floats) -> Floats:
    """Return what a ridge regression leaves of the targets, by the smaller of two systems.

    ``ridge`` is relative to each column's sum of squares; shapes (g, b, p), (p,), (g, b, t).
    """
    penalty = ridge * np.square(controls).sum(axis=1) + _LEAST_PENALTY
    turned = np.swapaxes(controls, 1, 2)
    if controls.shape[2] <= controls.shape[1]:
        system = turned @ controls
        _add_to_diagonal(system, penalty)
        return targets - controls @ _solve(system, turned @ targets)
    system = (controls / penalty[:, None, :]) @ turned
    _add_to_diagonal(system, np.ones(system.shape[:2]))
    return _solve(system, targets)


def _add_to_diagonal(systems: Floats, values: Floats) -> None:
    places = np.arange(systems.shape[1])
    systems[:, places, places] += values


def _solve(systems: Floats, targets: Floats) -> Floats:
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


def _dot(first: Floats, second: Floats) -> Floats:
    """Return the sum of products in every block."""
    total: Floats = (first * second).sum(axis=1)
    return total


def _degrees(count: Floats, dimension: int) -> Floats:
    """Return the factor that undoes what the regression takes off the residuals."""
    factor: Floats = count / np.maximum(np.maximum(count - 1.6 * dimension - 2, count / 4), 1e-9)
    return factor


def _has_rows(rows: _Rows) -> Bits:
    enough: Bits = rows.count >= _FEWEST_ROWS
    return enough


def _checked(effect: Floats, variance: Floats, usable: Bits) -> BlockEffects:
    fine = usable & np.isfinite(effect)
    return BlockEffects(np.where(fine, effect, 0.0), variance, fine)
