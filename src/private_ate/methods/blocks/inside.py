"""The model inside one block: regression with chosen terms, out-of-bag forests, and two votes.

Everything is a function of the block's own rows and of public numbers. Forests are grown in
compiled code, without the interpreter's lock. Which forests are grown follows from public numbers
too: a block grows all that its size allows, and then uses them or not, so that the time it takes
does not show which; a block without an effect to say stops before them. Outcomes are in units of
their declared range. Why each part is there: docs/explanation/blocks.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from private_ate.arrays import Bits, Codes, Floats, Integers
from private_ate.methods.blocks.plan import Inside
from private_ate.methods.blocks.regression import (
    LINEAR_RIDGE,
    Ridge,
    centred,
    choose_terms,
    clipped_squares,
    fit_ridge,
    solve,
    standardized,
)
from private_ate.methods.blocks.run import Subgroups
from private_ate.models.forest import BINS, ForestSize, out_of_bag, shuffled
from private_ate.models.trees import bin_codes, bin_edges
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.study import Groups

_SQUARE_RIDGE: Final = 12.0  # times the cube of covariates over rows
_CHOSEN_RIDGE: Final = 0.02  # times covariates over rows
_SLOPE_RIDGE: Final = 25.0  # times the cube of covariates over rows of both arms
_ARM_SLOPE_RIDGE: Final = 9.0  # the same where the effect is that on one arm
_FEWEST_ROWS: Final = 4
_SINGULAR: Final = 1e-6  # of the rows: variation of an arm below which there is no effect
# The forest is used where it predicts at most so much worse than the regression, and better than
# it does for a twin of the outcome that is what the regression says plus noise.
_LARGEST_RATIO: Final = 1.6
_TWIN: Final = 0.95
_TWIN_SCATTER: Final = 5.0  # over rows: the ratio to the twin scatters in small blocks
_LARGEST_LEFT: Final = 1.1  # of the outcome's mean square; beyond, forests only add noise
# Shares of rows with less than a tenth, and a fifth, of the usual chance to be in one of the arms.
_CHANCES: Final = (0.1, 0.2)
_EXCESSES: Final = (0.12, 0.23)
# Beyond that, for each share by chance: with few rows of an arm forests see such rows in noise.
_CHANCE_SCATTER: Final = 0.25


class Said(NamedTuple):
    """What one block says: effects, deviations and effects of the plain model, shape (D,).

    ``other`` says that a forest sees what the regression does not, ``apart`` that arms do not
    overlap.
    """

    effect: Floats
    deviation: Floats
    plain: Floats
    other: bool
    apart: bool


class _Rows(NamedTuple):
    """The rows of a block: covariates (b, d), standardised ones, arms (b, D), outcome (b, 1).

    Arms and outcome are centred. ``weights`` (b,) add up to the number of rows; ``sizes`` are
    those of all arms by weight, ``present`` by rows.
    """

    covariates: Floats
    linear: Floats
    arm: Codes
    arms: Floats
    outcome: Floats
    weights: Floats
    sizes: Floats
    present: Floats

    @property
    def size(self) -> int:
        """The number of rows (b)."""
        return len(self.arm)

    def solved(self, first: Floats, second: Floats, wanted: Floats) -> Floats:
        """Solve for effects; raise where an arm hardly varies."""
        return solve(first, second, wanted, self.weights, _SINGULAR * self.size)


class _Fit(NamedTuple):
    """A regression, what it leaves of arms and outcome, and the effects that follow."""

    ridge: Ridge
    arms: Floats
    outcome: Floats
    effects: Floats

    @property
    def rest(self) -> Floats:
        """What arms and regression leave of the outcome, shape (b, 1)."""
        return self.outcome - self.arms @ self.effects

    def unexplained(self, target: Floats) -> float:
        """Return the mean square that the regression leaves of a target, shape (b, 1)."""
        return self.ridge.press(self.ridge.residuals(target))


class _Scores(NamedTuple):
    """What effects are made of: residuals of arms, of the outcome, and of arms by its trees.

    ``along`` is a score of treatment along which effects may vary, if there is one.
    """

    arms: Floats
    outcome: Floats
    same: Floats
    along: Floats | None
    other: bool
    apart: bool


def block_kernel(
    subgroups: Subgroups, inside: Inside, spread: float, seed: int
) -> Callable[[Groups], Integers]:
    """Return the function from stacked blocks to the integers that they hand over.

    Each row of its answer is a function of its own block: effect, deviation, difference to the
    plain model and a bit for every subgroup and arm, clipped and rounded one by one, then the vote.
    """

    def kernel(groups: Groups) -> Integers:
        found = [_handed_over(groups, place) for place in range(len(groups.arm))]
        return np.array(found, dtype=np.int64)

    def _handed_over(groups: Groups, place: int) -> list[int]:
        vote, numbers = False, []
        for own in subgroups.members(groups.covariates[place]):
            try:
                said = _said(groups, place, groups.takes_part[place] & own, inside, seed)
            except Exception:  # noqa: BLE001  # nothing may leave a block but its public answer
                numbers += [0.0, spread, 0.0, 0.0] * (inside.arms - 1)
                continue
            vote |= said.apart
            for effect, deviation, plain in zip(*said[:3], strict=True):
                value, straight = (min(max(float(one), -1.0), 1.0) for one in (effect, plain))
                size = min(max(float(deviation), spread * 2**-12.5), 4 * spread)
                numbers += [value, size, straight - value, said.other / OUTCOME_STEPS]
        return [*(round(OUTCOME_STEPS * number) for number in numbers), int(vote)]

    return kernel


def _said(groups: Groups, place: int, rows: Bits, inside: Inside, seed: int) -> Said:
    """Let some rows of one block say their effects; weights add up to the number of rows."""
    chosen = np.flatnonzero(rows)
    weights = groups.weights[place][chosen]
    chosen, weights = chosen[weights > 0], weights[weights > 0]
    return block_effects(
        np.ascontiguousarray(groups.covariates[place][chosen]),
        groups.arm[place][chosen],
        groups.outcome[place][chosen] / OUTCOME_STEPS - 0.5,
        weights * (chosen.size / max(float(weights.sum()), 1e-300)),
        inside,
        seed,
    )


@np.errstate(all="ignore")
def block_effects(
    covariates: Floats, arm: Codes, outcome: Floats, weights: Floats, inside: Inside, seed: int
) -> Said:
    """Return the effects of all arms against the reference in one block; raise if it cannot say.

    ``covariates`` has shape (b, d); ``weights`` add up to the number of rows. No row of another
    block comes in, and no number of steps depends on what rows hold, beyond how many there are.
    """
    present = np.bincount(arm, minlength=inside.arms).astype(np.float64)
    if len(arm) < _FEWEST_ROWS or present.min() < min(inside.arms - 1, 2):
        msg = "an arm is missing"
        raise ArithmeticError(msg)
    rows = _Rows(
        covariates,
        standardized(covariates, weights),
        arm,
        centred((arm[:, None] == np.arange(1, inside.arms)).astype(np.float64), weights),
        centred(outcome[:, None], weights),
        weights,
        np.bincount(arm, weights, minlength=inside.arms).astype(np.float64),
        present,
    )
    plain, fit = _regressions(rows, inside)
    scores, freedom = _with_slopes(rows, _scores(rows, fit, inside, seed), inside)
    uptake = rows.solved(scores.arms, scores.same, scores.outcome)
    effect = (fit.effects + uptake)[:, 0]
    variance = _variance(rows, scores, uptake, fit.ridge.freedom + freedom, binary=inside.binary)
    if not np.isfinite([effect, variance, plain.effects[:, 0]]).all():
        msg = "a number is not finite"
        raise ArithmeticError(msg)
    return Said(effect, np.sqrt(variance), plain.effects[:, 0], scores.other, scores.apart)


def _fitted(rows: _Rows, columns: Floats, ridges: Floats) -> _Fit:
    ridge = fit_ridge(columns, ridges, rows.weights)
    arms, outcome = (ridge.residuals(one) for one in (rows.arms, rows.outcome))
    return _Fit(ridge, arms, outcome, rows.solved(arms, arms, outcome))


def _regressions(rows: _Rows, inside: Inside) -> tuple[_Fit, _Fit]:
    """Regress on covariates and squares, and on chosen terms as well if these predict better."""
    dimension = rows.linear.shape[1]
    crowding = dimension / rows.size
    squares = standardized(clipped_squares(rows.linear), rows.weights)
    basis = np.concatenate([rows.linear, squares], axis=1)
    ridges = np.repeat([LINEAR_RIDGE * crowding, _SQUARE_RIDGE * crowding**3], dimension)
    plain = _fitted(rows, basis, ridges)
    if not inside.terms:
        return plain, plain
    chosen = choose_terms(
        rows.linear, rows.arms, rows.outcome, rows.weights,
        count=inside.terms, seen=inside.seen, contenders=inside.contenders,
    )  # fmt: skip
    richer = _fitted(
        rows,
        np.concatenate([basis, chosen], axis=1),
        np.concatenate([ridges, np.full(inside.terms, _CHOSEN_RIDGE * crowding)]),
    )
    explains = richer.ridge.press(richer.rest) < plain.ridge.press(plain.rest)
    selects = sum(
        richer.ridge.press(richer.arms[:, [k]]) / plain.ridge.press(plain.arms[:, [k]])
        for k in range(rows.arms.shape[1])
    )
    return plain, richer if explains or selects < rows.arms.shape[1] else plain


def _scores(rows: _Rows, fit: _Fit, inside: Inside, seed: int) -> _Scores:
    """Grow all forests that the block's size allows, then use them where they see more."""
    regression = _Scores(fit.arms, fit.rest, fit.arms, None, other=False, apart=False)
    if not inside.forest.trees:
        return regression
    weights, ridge = rows.weights, fit.ridge
    placed = np.ascontiguousarray(rows.covariates[:: -(-rows.size // inside.seen)])
    codes = bin_codes(rows.covariates, bin_edges(placed, BINS))
    size, judges = inside.forest, inside.forest._replace(trees=inside.forest.judges)

    def forest(targets: Floats, number: int, size: ForestSize = size) -> tuple[Floats, Floats]:
        """Return targets less out-of-bag predictions of the judges, and of all trees, centred."""
        targets = np.ascontiguousarray(targets)
        judged, predicted = out_of_bag(codes, targets, weights, size, seed + number)
        left = centred(targets - predicted, weights)
        return left if size.judges == size.trees else centred(targets - judged, weights), left

    # The effect is taken off first: splits that look at the outcome would see the arms.
    adjusted = rows.outcome - rows.arms @ fit.effects
    judged, left = forest(np.concatenate([adjusted, rows.arms], axis=1), 1)
    _, again = forest(left, 2)
    # The twin is what the regression says of the outcome plus its residuals in a public order.
    away = ridge.residuals(adjusted)
    scale = np.sqrt(max(1 - ridge.freedom / rows.size, 0.25))
    twin = centred(adjusted - away + away[shuffled(rows.size, seed + 4)] / scale, weights)
    twin_left, _ = forest(twin, 1, judges)
    before, after = (fit.unexplained(one) for one in (adjusted, left[:, :1]))
    near = _ratio(after, before) < _LARGEST_RATIO
    ratio = _ratio(fit.unexplained(judged[:, :1]), before)
    usual = _ratio(fit.unexplained(twin_left), fit.unexplained(twin))
    other = near and ratio < (_TWIN - _TWIN_SCATTER / rows.size) * usual
    arms, apart, along = rows.arms, False, None
    if inside.treatment_forest:
        found = [forest(rows.arms[:, [k]], 3) for k in range(rows.arms.shape[1])]
        arms = np.concatenate([left_of_arm for _, left_of_arm in found], axis=1)
        along = rows.arms - arms if len(found) == 1 else None
        if inside.vote:
            mixed = rows.arms[shuffled(rows.size, seed + 5)]
            mixed_left, _ = forest(mixed, 3, judges)
            here, by_chance = (
                _rare_chances(rows, predicted[:, 0], inside.among)
                for predicted in (rows.arms - found[0][0], mixed - mixed_left)
            )
            apart = bool((here > _EXCESSES + (1 + _CHANCE_SCATTER) * by_chance).any())
    square = float(weights @ np.square(adjusted[:, 0])) / rows.size
    if not (near and ratio < _TWIN * usual and after < _LARGEST_LEFT * square):
        return regression._replace(other=other, apart=apart)
    kept = ridge.residuals(again)
    return _Scores(ridge.residuals(arms), kept[:, :1], kept[:, 1:], along, other, apart)


def _ratio(new: float, old: float) -> float:
    return new / old if old > 0 else np.inf


def _rare_chances(rows: _Rows, predicted: Floats, among: int) -> Floats:
    """Return the shares of rows that are (almost) never in one of two arms, for each chance.

    ``predicted`` is treatment less its mean, as a forest predicts it. Of an effect on one arm only
    the other arm has to occur.
    """
    share = float(rows.sizes[1] / rows.sizes.sum())
    chance = share + predicted
    found = [
        (among != 1) * (rows.weights @ (chance < least * share))
        + (among != 0) * (rows.weights @ (1 - chance < least * (1 - share)))
        for least in _CHANCES
    ]
    shares: Floats = np.array(found) / rows.weights.sum()
    return shares


def _with_slopes(rows: _Rows, scores: _Scores, inside: Inside) -> tuple[_Scores, float]:
    """Average effects that vary along covariates over the units that are meant.

    Returns the scores that are left, and to how many fitted numbers the slopes amount.
    """
    dimension, count = rows.linear.shape[1], rows.arms.shape[1]
    if not inside.slopes or scores.apart or rows.size <= dimension * count:
        return scores, 0.0
    rarer = float(rows.sizes.min())
    both, factor = 4 * rarer * (rows.size - rarer) / rows.size, _SLOPE_RIDGE
    members = rows.weights
    if inside.among >= 0:
        both, factor = 2 * (rows.size - float(rows.sizes[inside.among])), _ARM_SLOPE_RIDGE
        members = rows.weights * (rows.arm == inside.among)
    along, penalties = rows.linear, np.full(dimension, factor * (dimension / both) ** 3)
    if scores.along is not None:
        along = np.concatenate([along, standardized(scores.along, rows.weights)], axis=1)
        penalties = np.append(penalties, 1 / np.sqrt(both))
    seen = along - members @ along / members.sum()
    products = (scores.arms[:, :, None] * seen[:, None, :]).reshape(rows.size, -1)
    ridge = fit_ridge(centred(products, rows.weights), np.tile(penalties, count), rows.weights)
    arms, outcome, same = (ridge.residuals(one) for one in scores[:3])
    flat = rows.solved(scores.arms, scores.same, scores.outcome)
    steep = rows.solved(arms, same, outcome)
    away = (scores.outcome - scores.same @ flat)[:, 0]
    square = float(rows.weights @ np.square(away)) / len(away)
    if inside.slopes > 1 or ridge.press(outcome - same @ steep) < square:
        return scores._replace(arms=arms, outcome=outcome, same=same), ridge.freedom
    return scores, 0.0


def _variance(
    rows: _Rows, scores: _Scores, uptake: Floats, freedom: float, *, binary: bool
) -> Floats:
    """Return the variances of the effects, from the influence of every row, shape (D,)."""
    missed = (scores.outcome - scores.same @ uptake) * rows.weights[:, None]
    system = (scores.arms * rows.weights[:, None]).T @ scores.same
    influence = np.linalg.solve(system, (scores.arms * missed).T)
    inflated = rows.size / max(rows.size - freedom - 1, rows.size / 4)
    variance: Floats = np.square(influence).sum(axis=1) * inflated
    if not binary:
        return variance
    # Half an event in each arm: blocks without any would say zero.
    least: Floats = 0.5 / rows.present[1:] ** 2 + 0.5 / rows.present[0] ** 2
    return np.maximum(variance, least)
