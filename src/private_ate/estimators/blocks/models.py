"""The models inside a block: an adjusted effect and its variance from the block's rows alone.

Everything is a function of stacked arrays whose first axis runs over blocks; no operation mixes
blocks, iteration counts are fixed, and a block that cannot be solved is marked instead of
raising, so that the bits of one block never depend on another. Privacy does not rest on what is
computed here. Units: outcomes in units of their declared range. A sampling weight is a number of
copies: means, regressions and averages are weighted by it, and variances count its square.

Stacked columns have shape (g, b, p) and lie in memory column after column (``_empty``), so that a
column is a run of numbers; columns are worked on a few at a time, which keeps them in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, assert_never

import numpy as np
from scipy.special import expit

from private_ate.arrays import Bits, Floats
from private_ate.estimators.request import Estimand
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Groups

__all__ = ["BlockEffects", "average_effects", "linear_effects", "overlap_effects", "rich_columns"]


_FEWEST_ROWS: Final = 4
_CONSTANT: Final = 1e-6  # a covariate whose standard deviation is below this is left centred
_LEAST_PENALTY: Final = 1e-9
_LEAST_VARIATION: Final = 1e-6  # of treatment, after adjustment
_LEAST_OVERLAP: Final = 2e-4  # of treatment's residual and the score's, per row
_LEAST_PROPENSITY: Final = 0.03
_LARGEST_SCORE: Final = 5.0
_NEWTON_STEPS: Final = 6
_LONG_BLOCK: Final = 1000  # rows from which a fit is so well conditioned that fewer steps do
_FEW_NEWTON_STEPS: Final = 4
_EXCESS: Final = 1.15  # what a doubly robust score varies more than its own terms say
_KNOTS: Final = (-0.8, 0.0, 0.8)
_RICH_RIDGE: Final = 0.03
_CACHED: Final = 1 << 14  # numbers that are worked on at once
_WEIGHT_STEPS: Final = 1 << 20  # across the declared bound of sampling weights


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
    standardised, of shape (g, b, d); ``count`` rows that take part, of shape (g,). ``copies`` are
    sampling weights that add up to ``count``; None where none are declared.
    """

    weight: Floats
    treatment: Floats
    outcome: Floats
    covariates: Floats
    count: Floats
    copies: Floats | None = None

    @property
    def worth(self) -> Floats:
        """How many rows of equal weight a block's rows are worth, shape (g,)."""
        return self.count if self.copies is None else self.worth_of(self.weight)

    def worth_of(self, members: Floats) -> Floats:
        """Return how many rows of equal weight some rows are worth, shape (g,)."""
        if self.copies is None:
            number: Floats = members.sum(axis=1)
            return number
        counted = members * self.copies
        return np.asarray(counted.sum(axis=1) ** 2 / np.maximum(_dot(counted, counted), 1e-9))

    def counted(self, values: Floats) -> Floats:
        """Return values of rows, shape (g, b), times their number of copies."""
        return values if self.copies is None else values * self.copies

    def rooted(self, columns: Floats) -> Floats:
        """Return columns, shape (g, b, p), times the root of copies: products are then weighted."""
        return columns if self.copies is None else columns * np.sqrt(self.copies)[..., None]


def linear_effects(
    groups: Groups, *, rich: bool = False, estimand: Estimand = "ate", length: int | None = None
) -> BlockEffects:
    """Regress the outcome's residuals on those of treatment, both after a ridge regression.

    Controls are the covariates, their squares and, in blocks of more rows than covariates, their
    products with treatment, centred where the estimand's units lie; ``rich`` adds products and
    hinges of the covariates. Penalties fade as the block grows; the ridge is used twice, so that
    the bias it leaves is of second order in the shrinkage. ``length`` is how many rows a block is
    expected to hold, where that is not the number of its places.
    """
    rows = _prepare(groups)
    dimension = groups.covariates.shape[2]
    length = length or groups.covariates.shape[1]
    basis = _basis(rows, length, rich=rich)
    if length > dimension:
        middle, ridge = _middle(rows, estimand)
        basis = basis.with_columns(_interactions(rows, middle), ridge)
    targets = np.stack([rows.treatment, rows.outcome], axis=2)
    left = _residuals(basis.joined(), targets, rows)
    treatment, outcome = left[..., 0], left[..., 1]
    variation = _dot(treatment, treatment)
    with np.errstate(all="ignore"):
        effect = _dot(treatment, outcome) / variation
        error = treatment * (outcome - effect[:, None] * treatment)
        variance = _dot(error, error) / variation**2 * _degrees(rows, dimension, rich=rich)
    return _checked(effect, variance, (variation > _LEAST_VARIATION) & _has_rows(rows))


def overlap_effects(
    groups: Groups,
    *,
    rich: bool = False,
    estimand: Estimand = "ato",  # noqa: ARG001  # this model knows one estimand
    length: int | None = None,
) -> BlockEffects:
    """Estimate the overlap-weighted effect: residuals of a logistic score as instruments.

    The score's residual ``T − e`` multiplies outcomes and treatment, both after a ridge
    regression on the covariates, their squares and powers of the score; dividing by the
    residual treatment keeps a constant effect free of shrinkage.
    """
    rows = _prepare(groups)
    dimension = groups.covariates.shape[2]
    length = length or groups.covariates.shape[1]
    basis = _basis(rows, length, rich=rich)
    score = _logistic(basis.joined().columns if rich else rows.covariates, rows)
    crowding = dimension / length
    basis = basis.with_columns(_powers(score, rows, 2), 0.3 * crowding)
    basis = basis.with_columns(_powers(score, rows, 3), 1.0 * crowding)
    surprise = (_positive(rows) - expit(score)) * rows.weight
    surprise = _centre(surprise[..., None], rows)[..., 0]
    targets = np.stack([rows.treatment, rows.outcome, surprise], axis=2)
    left = _residuals(basis.joined(), targets, rows)
    treatment, outcome, surprise = (left[..., place] for place in range(3))
    denominator = _dot(surprise, treatment)
    with np.errstate(all="ignore"):
        effect = _dot(surprise, outcome) / denominator
        error = surprise * (outcome - effect[:, None] * treatment)
        variance = _dot(error, error) / denominator**2 * _degrees(rows, dimension, rich=rich)
    usable = np.abs(denominator) >= _LEAST_OVERLAP * rows.count
    return _checked(effect, variance, usable & _has_rows(rows))


def average_effects(
    groups: Groups, *, rich: bool = False, estimand: Estimand = "ate", length: int | None = None
) -> BlockEffects:
    """Estimate the average effect on all, the treated or the controls by the doubly robust score.

    The propensity is logistic, kept within [0.03, 0.97]; one ridge regression of the outcome with
    treatment and its products with the covariates predicts both arms.
    """
    rows = _prepare(groups)
    dimension = groups.covariates.shape[2]
    length = length or groups.covariates.shape[1]
    crowding = dimension / length
    basis = _basis(rows, length, rich=rich)
    score = _logistic(basis.joined().columns if rich else rows.covariates, rows)
    basis = basis.with_columns(_powers(score, rows, 2), 0.3 * crowding)
    basis = basis.with_columns(rows.treatment[..., None], 0.0)
    controls = basis.with_columns(_interactions(rows), 0.5 * crowding).joined()
    first = controls.columns.shape[2] - dimension - 1
    weighted = replace(controls, columns=rows.rooted(controls.columns))
    weights = _ridge_weights(weighted, rows.rooted(rows.outcome[..., None]))
    fitted = (controls.columns @ weights)[..., 0]
    gain = weights[:, first, 0, None] + (rows.covariates @ weights[:, first + 1 :])[..., 0]
    positive = _positive(rows)
    propensity = np.clip(expit(score), _LEAST_PROPENSITY, 1 - _LEAST_PROPENSITY)
    residual = rows.outcome - fitted
    treated = rows.counted(positive).sum(axis=1)
    with np.errstate(all="ignore"):
        target = _target(propensity, positive, rows, estimand)
        counted = rows.counted(rows.weight)
        effect = _dot(target.units * gain + target.scale * residual, counted) / target.count
        wider = _arm_factors(positive, rows, dimension, rich=rich) * residual
        away = target.units * gain + target.scale * wider - target.units * effect[:, None]
        away *= counted
        variance = _EXCESS * _dot(away, away) / target.count**2
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


def _target(propensity: Floats, positive: Floats, rows: _Rows, estimand: Estimand) -> _Target:
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


@dataclass(frozen=True, slots=True)
class _Basis:
    """Controls in parts of shape (g, b, ·), each with a relative ridge or one per block (g, 1)."""

    parts: tuple[Floats, ...]
    ridges: tuple[float | Floats, ...]

    def with_columns(self, columns: Floats, ridge: float | Floats) -> _Basis:
        """Add columns that share a ridge."""
        return _Basis((*self.parts, columns), (*self.ridges, ridge))

    def joined(self) -> _Controls:
        """Put all columns beside each other."""
        ridges = [
            np.broadcast_to(ridge, (part.shape[0], part.shape[2]))
            for part, ridge in zip(self.parts, self.ridges, strict=True)
        ]
        joined = _empty(self.parts[0].shape[:2], sum(part.shape[2] for part in self.parts))
        np.concatenate(self.parts, axis=2, out=joined)
        return _Controls(joined, np.concatenate(ridges, axis=1))


@dataclass(frozen=True, slots=True)
class _Controls:
    """All controls of shape (g, b, p) and their relative ridges (g, p)."""

    columns: Floats
    ridge: Floats


def _basis(rows: _Rows, length: int, *, rich: bool) -> _Basis:
    """Return covariates and squares; if rich, products and hinges of the covariates too."""
    dimension = rows.covariates.shape[2]
    crowding = dimension / length
    basis = _Basis((rows.covariates, _squares(rows)), (0.08 * crowding, 12 * crowding**3))
    if not rich:
        return basis
    first, second = np.triu_indices(dimension, 1)
    products = _standardize(
        np.clip(rows.covariates[..., first] * rows.covariates[..., second], -4.0, 4.0), rows
    )
    hinges = [_standardize(np.maximum(rows.covariates - knot, 0.0), rows) for knot in _KNOTS]
    added = np.concatenate([products, *hinges], axis=2)
    crowding = (added.shape[2] + 2 * dimension) / length
    return basis.with_columns(added, _RICH_RIDGE * crowding**3)


def rich_columns(dimension: int) -> int:
    """Return how many controls the rich basis has."""
    return 2 * dimension + dimension * (dimension - 1) // 2 + len(_KNOTS) * dimension


def _middle(rows: _Rows, estimand: Estimand) -> tuple[Floats | None, Floats]:
    """Return where the estimand's units lie in every block, and the ridge of interactions there.

    The means have shape (g, 1, d), or are None where they are zero; the ridges (g, 1).
    Interactions are learnt from both arms, so that the smaller one decides about their ridge;
    effects on one arm rest on the other's fit.
    """
    dimension = rows.covariates.shape[2]
    treated = rows.counted(_positive(rows)).sum(axis=1)
    control = rows.count - treated
    match estimand:
        case "ate" | "ato":
            both = 4 * treated * control / np.maximum(rows.count, 1.0)
            return None, _faded(25, dimension, both)
        case "att":
            members, others = rows.counted(_positive(rows)), control
        case "atc":
            members, others = rows.counted(rows.weight - _positive(rows)), treated
        case _:
            assert_never(estimand)
    totals = (rows.covariates * members[..., None]).sum(axis=1, keepdims=True)
    count = np.maximum(members.sum(axis=1), 1.0)
    return totals / count[:, None, None], _faded(9, dimension, 2 * others)


def _faded(factor: float, dimension: int, rows: Floats) -> Floats:
    """Return ridges that fade with the cube of the rows per covariate, shape (g, 1)."""
    ridge: Floats = factor * (dimension / np.maximum(rows, 1.0)) ** 3
    return ridge[:, None]


def _positive(rows: _Rows) -> Floats:
    """Return 1 for treated rows, 0 for all others; treatment was centred."""
    return (rows.treatment > 0).astype(np.float64)


def _logistic(columns: Floats, rows: _Rows) -> Floats:
    """Return the linear predictor of a ridge logistic regression after a few Newton steps."""
    positive = _positive(rows)
    design = _empty(columns.shape[:2], columns.shape[2] + 1)
    design[..., 0] = rows.weight
    design[..., 1:] = columns
    turned = np.swapaxes(design, 1, 2)
    penalty = np.ones(design.shape[2])
    penalty[0] = _LEAST_PENALTY
    share = (rows.counted(positive).sum(axis=1) + 0.5) / (rows.count + 1.0)
    weights = np.zeros((design.shape[0], design.shape[2], 1))
    weights[:, 0, 0] = np.log(share / (1 - share))
    weighted = _empty(design.shape[:2], design.shape[2])
    for _ in range(_NEWTON_STEPS if design.shape[1] < _LONG_BLOCK else _FEW_NEWTON_STEPS):
        score = np.clip((design @ weights)[..., 0], -_LARGEST_SCORE, _LARGEST_SCORE)
        chance = expit(score)
        # A matrix times its own transpose takes half the time of any other product.
        root = np.sqrt(rows.counted(np.maximum(chance * (1 - chance), 0.01)))
        np.multiply(design, root[..., None], out=weighted)
        system = np.swapaxes(weighted, 1, 2) @ weighted
        _add_to_diagonal(system, np.broadcast_to(penalty, system.shape[:2]))
        gradient = turned @ rows.counted((positive - chance) * rows.weight)[..., None]
        weights = weights + _solve(system, gradient - penalty[:, None] * weights)
    final: Floats = np.clip((design @ weights)[..., 0], -_LARGEST_SCORE, _LARGEST_SCORE)
    return final


def _powers(score: Floats, rows: _Rows, power: int) -> Floats:
    """Return a power of the standardised score as a control."""
    standard = np.clip(_standardize((score * rows.weight)[..., None], rows), -3.0, 3.0)
    return _standardize(standard**power, rows)


def _prepare(groups: Groups) -> _Rows:
    weight, copies = _copies(groups)
    covariates = _empty(weight.shape, groups.covariates.shape[2])
    rows = _Rows(
        weight,
        groups.treatment * weight,
        (groups.outcome / OUTCOME_STEPS - 0.5) * weight,
        covariates,
        weight.sum(axis=1),
        copies,
    )
    for few in _few(covariates):
        part = covariates[..., few]
        np.multiply(groups.covariates[..., few], weight[..., None], out=part)
        _standardize_into(part, part, rows)
    return replace(
        rows,
        treatment=_centre(rows.treatment[..., None], rows)[..., 0],
        outcome=_centre(rows.outcome[..., None], rows)[..., 0],
    )


def _copies(groups: Groups) -> tuple[Floats, Floats | None]:
    """Return which rows take part and, with sampling weights, for how many of them each stands."""
    if groups.weights is None:
        return groups.takes_part.astype(np.float64), None
    # On a grid, so that a block of weights that are next to nothing is still a fair one.
    steps = np.rint(groups.weights * _WEIGHT_STEPS) * groups.takes_part
    weight = (steps > 0).astype(np.float64)
    total = np.maximum(steps.sum(axis=1), 1.0)
    return weight, steps * (weight.sum(axis=1) / total)[:, None]


def _empty(stack: tuple[int, ...], columns: int) -> Floats:
    """Return room for stacked columns, shape (g, b, columns), column after column in memory."""
    return np.moveaxis(np.empty((columns, *stack)), 0, -1)


def _few(columns: Floats) -> Iterator[slice]:
    """Go through the columns, as many at a time as the processor's cache holds."""
    step = max(_CACHED // max(columns.shape[0] * columns.shape[1], 1), 1)
    for first in range(0, columns.shape[2], step):
        yield slice(first, first + step)


def _centre(columns: Floats, rows: _Rows) -> Floats:
    """Take off the block's mean; rows that take no part stay zero."""
    centred = _empty(columns.shape[:2], columns.shape[2])
    for few in _few(columns):
        _centre_into(centred[..., few], columns[..., few], rows)
    return centred


def _centre_into(out: Floats, columns: Floats, rows: _Rows) -> None:
    counted = columns if rows.copies is None else columns * rows.copies[..., None]
    mean = counted.sum(axis=1, keepdims=True) / np.maximum(rows.count, 1.0)[:, None, None]
    np.subtract(columns, mean, out=out)
    out *= rows.weight[..., None]


def _interactions(rows: _Rows, middle: Floats | None = None) -> Floats:
    """Return the centred products of treatment and covariates, the latter seen from ``middle``."""
    products = _empty(rows.weight.shape, rows.covariates.shape[2])
    for few in _few(products):
        part = products[..., few]
        seen = rows.covariates[..., few]
        if middle is not None:
            seen = np.subtract(seen, middle[..., few], out=part)
        np.multiply(seen, rows.treatment[..., None], out=part)
        _centre_into(part, part, rows)
    return products


def _standardize(columns: Floats, rows: _Rows) -> Floats:
    """Centre columns and give them unit variance, unless they are constant."""
    standard = _empty(columns.shape[:2], columns.shape[2])
    for few in _few(columns):
        _standardize_into(standard[..., few], columns[..., few], rows)
    return standard


def _standardize_into(out: Floats, columns: Floats, rows: _Rows) -> None:
    _centre_into(out, columns, rows)
    squares = np.square(out)
    if rows.copies is not None:
        squares *= rows.copies[..., None]
    square = squares.sum(axis=1, keepdims=True)
    spread = np.sqrt(square / np.maximum(rows.count, 1.0)[:, None, None])
    out /= np.where(spread < _CONSTANT, 1.0, spread)


def _squares(rows: _Rows) -> Floats:
    squares = _empty(rows.weight.shape, rows.covariates.shape[2])
    for few in _few(squares):
        part = squares[..., few]
        np.clip(rows.covariates[..., few], -3.0, 3.0, out=part)
        np.square(part, out=part)
        _standardize_into(part, part, rows)
    return squares


def _residuals(controls: _Controls, targets: Floats, rows: _Rows) -> Floats:
    """Return what a ridge regression leaves of the targets, by the smaller of two systems.

    A ridge is relative to its column's sum of squares; targets of shape (g, b, t). With sampling
    weights residuals are times the root of the weight, so that their products are weighted.
    """
    controls = replace(controls, columns=rows.rooted(controls.columns))
    columns, targets = controls.columns, rows.rooted(targets)
    if columns.shape[2] <= columns.shape[1]:
        left = targets - columns @ _ridge_weights(controls, targets)
    else:
        penalty = _penalties(controls, np.square(columns).sum(axis=1))
        system = (columns / penalty[:, None, :]) @ np.swapaxes(columns, 1, 2)
        _add_to_diagonal(system, np.ones(system.shape[:2]))
        left = _solve(system, targets)
    kept: Floats = left * rows.weight[..., None]
    return kept


def _ridge_weights(controls: _Controls, targets: Floats) -> Floats:
    """Return the coefficients of a ridge regression, shape (g, p, t)."""
    turned = np.swapaxes(controls.columns, 1, 2)
    system = turned @ controls.columns
    _add_to_diagonal(system, _penalties(controls, np.diagonal(system, axis1=1, axis2=2)))
    return _solve(system, turned @ targets)


def _penalties(controls: _Controls, squares: Floats) -> Floats:
    """Return the ridges for columns with these sums of squares, shape (g, p)."""
    penalties: Floats = controls.ridge * squares + _LEAST_PENALTY
    return penalties


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


def _degrees(rows: _Rows, dimension: int, *, rich: bool) -> Floats:
    """Return the factor that undoes what the regression takes off the residuals."""
    used = 1.6 * (0.6 * rich_columns(dimension) if rich else dimension) + 2
    worth = rows.worth
    factor: Floats = worth / np.maximum(np.maximum(worth - used, worth / 4), 1e-9)
    return factor


def _arm_factors(positive: Floats, rows: _Rows, dimension: int, *, rich: bool) -> Floats:
    """Return by how much the fit of its arm shrank each residual."""
    used = 1.6 * (0.45 * rich_columns(dimension) if rich else dimension) + 2
    sizes = np.stack([rows.worth_of(rows.weight - positive), rows.worth_of(positive)])
    factors = np.sqrt(sizes / np.maximum(np.maximum(sizes - used, sizes / 6), 1e-9))
    shrunk: Floats = np.where(positive > 0, factors[1][:, None], factors[0][:, None])
    return shrunk


def _has_rows(rows: _Rows) -> Bits:
    enough: Bits = rows.count >= _FEWEST_ROWS
    return enough


def _checked(effect: Floats, variance: Floats, usable: Bits) -> BlockEffects:
    fine = usable & np.isfinite(effect)
    return BlockEffects(np.where(fine, effect, 0.0), variance, fine)
