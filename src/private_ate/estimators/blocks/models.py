"""The models inside a block: an adjusted effect and its variance from the block's rows alone.

Everything is a function of stacked arrays whose first axis runs over blocks; no operation mixes
blocks, iteration counts are fixed, and a block that cannot be solved is marked instead of
raising, so that the bits of one block never depend on another. Privacy does not rest on what is
computed here. Units: outcomes in units of their declared range. A sampling weight is a number of
copies: means, regressions and averages are weighted by it, and variances count its square.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np
from scipy.special import expit

from private_ate.arrays import Bits, Floats
from private_ate.estimators.blocks.bends import (
    Bends,
    basis_of,
    rich_columns,
    score_columns,
)
from private_ate.estimators.blocks.ridge import (
    LEAST_PENALTY,
    Basis,
    add_to_diagonal,
    residuals,
    ridge_weights,
    solve,
)
from private_ate.estimators.blocks.rows import (
    Rows,
    centre,
    centre_into,
    dot,
    empty,
    few_columns,
    prepare,
    standardize,
)
from private_ate.estimators.request import Estimand
from private_ate.study import Groups

__all__ = ["BlockEffects", "average_effects", "linear_effects", "overlap_effects"]

_FEWEST_ROWS: Final = 4
_LEAST_VARIATION: Final = 1e-6  # of treatment, after adjustment
_LEAST_OVERLAP: Final = 2e-4  # of treatment's residual and the score's, per row
_LEAST_PROPENSITY: Final = 0.03
_LARGEST_SCORE: Final = 5.0
_NEWTON_STEPS: Final = 6
_LONG_BLOCK: Final = 1000  # rows from which a fit is so well conditioned that fewer steps do
_FEW_NEWTON_STEPS: Final = 4
_EXCESS: Final = 1.15  # what a doubly robust score varies more than its own terms say


@dataclass(frozen=True, slots=True)
class BlockEffects:
    """An effect and its variance per block; only where ``usable`` do they mean anything."""

    effect: Floats
    variance: Floats
    usable: Bits


def linear_effects(
    groups: Groups,
    *,
    bends: Bends = "squares",
    estimand: Estimand = "ate",
    length: int | None = None,
) -> BlockEffects:
    """Regress the outcome's residuals on those of treatment, both after a ridge regression.

    Controls are the covariates, their squares and, in blocks of more rows than covariates, their
    products with treatment, centred where the estimand's units lie; ``bends`` says what is
    added to them. Penalties fade as the block grows; the ridge is used twice, so that the bias it
    leaves is of second order in the shrinkage. ``length`` is how many rows a block is expected to
    hold, where that is not the number of its places.
    """
    rows = prepare(groups)
    dimension = groups.covariates.shape[2]
    length = length or groups.covariates.shape[1]
    basis = basis_of(rows, length, bends)
    if length > dimension:
        middle, ridge = _middle(rows, estimand)
        basis = basis.with_columns(_interactions(rows, middle), ridge)
    targets = np.stack([rows.treatment, rows.outcome], axis=2)
    left = residuals(basis.joined(), targets, rows)
    treatment, outcome = left[..., 0], left[..., 1]
    variation = dot(treatment, treatment)
    with np.errstate(all="ignore"):
        effect = dot(treatment, outcome) / variation
        error = treatment * (outcome - effect[:, None] * treatment)
        variance = dot(error, error) / variation**2 * _degrees(rows, _fitted(basis, bends, 0.6))
    return _checked(effect, variance, (variation > _LEAST_VARIATION) & _has_rows(rows))


def overlap_effects(
    groups: Groups,
    *,
    bends: Bends = "squares",
    estimand: Estimand = "ato",  # noqa: ARG001  # this model knows one estimand
    length: int | None = None,
) -> BlockEffects:
    """Estimate the overlap-weighted effect: residuals of a logistic score as instruments.

    The score's residual ``T − e`` multiplies outcomes and treatment, both after a ridge
    regression on the covariates, their squares and powers of the score; dividing by the
    residual treatment keeps a constant effect free of shrinkage.
    """
    rows = prepare(groups)
    dimension = groups.covariates.shape[2]
    length = length or groups.covariates.shape[1]
    basis = basis_of(rows, length, bends)
    score = _logistic(score_columns(basis, bends), rows)
    crowding = dimension / length
    basis = basis.with_columns(_powers(score, rows, 2), 0.3 * crowding)
    basis = basis.with_columns(_powers(score, rows, 3), 1.0 * crowding)
    surprise = (rows.positive - expit(score)) * rows.weight
    surprise = centre(surprise[..., None], rows)[..., 0]
    targets = np.stack([rows.treatment, rows.outcome, surprise], axis=2)
    left = residuals(basis.joined(), targets, rows)
    treatment, outcome, surprise = (left[..., place] for place in range(3))
    denominator = dot(surprise, treatment)
    with np.errstate(all="ignore"):
        effect = dot(surprise, outcome) / denominator
        error = surprise * (outcome - effect[:, None] * treatment)
        variance = dot(error, error) / denominator**2 * _degrees(rows, _fitted(basis, bends, 0.6))
    usable = np.abs(denominator) >= _LEAST_OVERLAP * rows.count
    return _checked(effect, variance, usable & _has_rows(rows))


def average_effects(
    groups: Groups,
    *,
    bends: Bends = "squares",
    estimand: Estimand = "ate",
    length: int | None = None,
) -> BlockEffects:
    """Estimate the average effect on all, the treated or the controls by the doubly robust score.

    The propensity is logistic, kept within [0.03, 0.97]; one ridge regression of the outcome with
    treatment and its products with the covariates predicts both arms.
    """
    rows = prepare(groups)
    dimension = groups.covariates.shape[2]
    length = length or groups.covariates.shape[1]
    crowding = dimension / length
    basis = basis_of(rows, length, bends)
    score = _logistic(score_columns(basis, bends), rows)
    basis = basis.with_columns(_powers(score, rows, 2), 0.3 * crowding)
    basis = basis.with_columns(rows.treatment[..., None], 0.0)
    controls = basis.with_columns(_interactions(rows), 0.5 * crowding).joined()
    first = controls.columns.shape[2] - dimension - 1
    weighted = replace(controls, columns=rows.rooted(controls.columns))
    weights = ridge_weights(weighted, rows.rooted(rows.outcome[..., None]))
    fitted = (controls.columns @ weights)[..., 0]
    gain = weights[:, first, 0, None] + (rows.covariates @ weights[:, first + 1 :])[..., 0]
    positive = rows.positive
    propensity = np.clip(expit(score), _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY)
    residual = rows.outcome - fitted
    treated = rows.counted(positive).sum(axis=1)
    with np.errstate(all="ignore"):
        target = _target(propensity, positive, rows, estimand)
        counted = rows.counted(rows.weight)
        effect = dot(target.units * gain + target.scale * residual, counted) / target.count
        wider = _arm_factors(positive, rows, _fitted(basis, bends, 0.45)) * residual
        away = target.units * gain + target.scale * wider - target.units * effect[:, None]
        away *= counted
        variance = _EXCESS * dot(away, away) / target.count**2
    return _checked(effect, variance, (treated > 0) & (treated < rows.count) & _has_rows(rows))


@dataclass(frozen=True, slots=True)
class _Target:
    """Whose gains are averaged and how residuals correct them.

    ``units`` are 1 for rows whose predicted gain counts and ``count`` their number; ``scale``
    multiplies residuals, so that those of either arm stand for the units of the target.
    """

    units: Floats
    scale: Floats
    count: Floats


def _target(propensity: Floats, positive: Floats, rows: Rows, estimand: Estimand) -> _Target:
    """Weight residuals to all rows, to the treated or to the controls."""
    control = rows.weight - positive
    match estimand:
        case "att":
            odds = control * propensity / (1 - propensity)
            count = rows.counted(positive).sum(axis=1)
            quotient = _quotient(count, rows.counted(odds))
            return _Target(positive, positive - odds * quotient, count)
        case "atc":
            odds = positive * (1 - propensity) / propensity
            count = rows.counted(control).sum(axis=1)
            quotient = _quotient(count, rows.counted(odds))
            return _Target(control, odds * quotient - control, count)
        case "ate" | "ato":
            scale = np.where(positive > 0, 1 / propensity, -1 / (1 - propensity))
            return _Target(rows.weight, scale, rows.count)
        case _:
            assert_never(estimand)


def _quotient(count: Floats, odds: Floats) -> Floats:
    """Return what makes the odds of a block add up to the number of units they stand for."""
    quotient: Floats = (count / odds.sum(axis=1))[:, None]
    return quotient


def _middle(rows: Rows, estimand: Estimand) -> tuple[Floats | None, Floats]:
    """Return where the estimand's units lie in every block, and the ridge of interactions there.

    The means have shape (g, 1, d), or are None where they are zero; the ridges (g, 1).
    Interactions are learnt from both arms, so that the smaller one decides about their ridge;
    effects on one arm rest on the other's fit.
    """
    dimension = rows.covariates.shape[2]
    treated = rows.counted(rows.positive).sum(axis=1)
    control = rows.count - treated
    match estimand:
        case "ate" | "ato":
            both = 4 * treated * control / np.maximum(rows.count, 1.0)
            return None, _faded(25, dimension, both)
        case "att":
            members, others = rows.counted(rows.positive), control
        case "atc":
            members, others = rows.counted(rows.weight - rows.positive), treated
        case _:
            assert_never(estimand)
    totals = (rows.covariates * members[..., None]).sum(axis=1, keepdims=True)
    count = np.maximum(members.sum(axis=1), 1.0)
    return totals / count[:, None, None], _faded(9, dimension, 2 * others)


def _faded(factor: float, dimension: int, rows: Floats) -> Floats:
    """Return ridges that fade with the cube of the rows per covariate, shape (g, 1)."""
    ridge: Floats = factor * (dimension / np.maximum(rows, 1.0)) ** 3
    return ridge[:, None]


def _logistic(columns: Floats, rows: Rows) -> Floats:
    """Return the linear predictor of a ridge logistic regression after a few Newton steps."""
    positive = rows.positive
    design = empty(columns.shape[:2], columns.shape[2] + 1)
    design[..., 0] = rows.weight
    design[..., 1:] = columns
    turned = np.swapaxes(design, 1, 2)
    penalty = np.ones(design.shape[2])
    penalty[0] = LEAST_PENALTY
    share = (rows.counted(positive).sum(axis=1) + 0.5) / (rows.count + 1.0)
    weights = np.zeros((design.shape[0], design.shape[2], 1))
    weights[:, 0, 0] = np.log(share / (1 - share))
    weighted = empty(design.shape[:2], design.shape[2])
    for _ in range(_NEWTON_STEPS if design.shape[1] < _LONG_BLOCK else _FEW_NEWTON_STEPS):
        score = np.clip((design @ weights)[..., 0], -_LARGEST_SCORE, _LARGEST_SCORE)
        chance = expit(score)
        # A matrix times its own transpose takes half the time of any other product.
        root = np.sqrt(rows.counted(np.maximum(chance * (1 - chance), 0.01)))
        np.multiply(design, root[..., None], out=weighted)
        system = np.swapaxes(weighted, 1, 2) @ weighted
        add_to_diagonal(system, np.broadcast_to(penalty, system.shape[:2]))
        gradient = turned @ rows.counted((positive - chance) * rows.weight)[..., None]
        weights = weights + solve(system, gradient - penalty[:, None] * weights)
    final: Floats = np.clip((design @ weights)[..., 0], -_LARGEST_SCORE, _LARGEST_SCORE)
    return final


def _powers(score: Floats, rows: Rows, power: int) -> Floats:
    """Return a power of the standardised score as a control."""
    standard = np.clip(standardize((score * rows.weight)[..., None], rows), -3.0, 3.0)
    return standardize(standard**power, rows)


def _interactions(rows: Rows, middle: Floats | None = None) -> Floats:
    """Return the centred products of treatment and covariates, the latter seen from ``middle``."""
    products = empty(rows.weight.shape, rows.covariates.shape[2])
    for few in few_columns(products):
        part = products[..., few]
        seen = rows.covariates[..., few]
        if middle is not None:
            seen = np.subtract(seen, middle[..., few], out=part)
        np.multiply(seen, rows.treatment[..., None], out=part)
        centre_into(part, part, rows)
    return products


def _fitted(basis: Basis, bends: Bends, share: float) -> Floats:
    """Return to how many covariates the controls of a block amount, shape (g,).

    ``share`` is how much a column of the rich basis, whose ridges are larger, counts.
    """
    covariates = basis.parts[0]
    dimension = np.full(covariates.shape[0], float(covariates.shape[2]))
    match bends:
        case "squares":
            return dimension
        case "chosen":
            taken: Floats = dimension + np.any(basis.parts[2] != 0, axis=1).sum(axis=1)
            return taken
        case "all":
            return np.full_like(dimension, share * rich_columns(covariates.shape[2]))


def _degrees(rows: Rows, fitted: Floats) -> Floats:
    """Return the factor that undoes what the regression takes off the residuals."""
    used = 1.6 * fitted + 2
    worth = rows.worth
    factor: Floats = worth / np.maximum(np.maximum(worth - used, worth / 4), 1e-9)
    return factor


def _arm_factors(positive: Floats, rows: Rows, fitted: Floats) -> Floats:
    """Return by how much the fit of its arm shrank each residual."""
    used = 1.6 * fitted + 2
    sizes = np.stack([rows.worth_of(rows.weight - positive), rows.worth_of(positive)])
    factors = np.sqrt(sizes / np.maximum(np.maximum(sizes - used, sizes / 6), 1e-9))
    shrunk: Floats = np.where(positive > 0, factors[1][:, None], factors[0][:, None])
    return shrunk


def _has_rows(rows: Rows) -> Bits:
    enough: Bits = rows.count >= _FEWEST_ROWS
    return enough


def _checked(effect: Floats, variance: Floats, usable: Bits) -> BlockEffects:
    fine = usable & np.isfinite(effect)
    return BlockEffects(np.where(fine, effect, 0.0), variance, fine)
