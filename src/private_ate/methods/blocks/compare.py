"""Arms compared as they are: where blocks do not pay, or treatment is declared to be random.

Outcomes less a released mean are weighted by one over the released share of their arm. Two arms
release one contrast, which has half the noise variance of a difference of means; more arms release
a mean each. Every subgroup has numbers of its own, and a row enters those of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.effects.estimate import Quantity
from private_ate.methods.blocks.counts import Counts, Steps, Subgroups
from private_ate.models.folds import Total
from private_ate.models.standardization import noise_bits
from private_ate.privacy.distributions import NoiseDistribution, SharedNoise
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.study import Block, Study

__all__ = [
    "Forms", "compare_arms_as_they_are", "outcomes_of", "sampling_variances", "within_centres",
]  # fmt: skip

_SCORE_BITS: Final = 24  # the grid of scores lies so far below their bound
_LEAST_WITHIN: Final = 0.25  # of a mean square is taken to lie within arms, whatever noise says
_CENTRE_BOUND: Final = 0.45  # of the range: how far from its middle outcomes are centred


@dataclass(frozen=True, slots=True)
class Forms:
    """The weighted sums that are released: weights of arms, shape (subgroups, forms, arms)."""

    weights: Floats

    @classmethod
    def of(cls, counts: Counts) -> Forms:
        """Return the contrast of two arms, or the mean of each of several, in every subgroup."""
        over = 1 / counts.rows
        if over.shape[1] == 2:
            return cls(np.stack([-over[:, 0], over[:, 1]], axis=1)[:, None, :])
        return cls(over[:, :, None] * np.eye(over.shape[1]))

    @property
    def count(self) -> int:
        """How many numbers of an outcome are released."""
        return int(self.weights[:, :, 0].size)

    def reach(self, centre: float) -> tuple[Floats, Floats]:
        """Return the least and the largest that one row can add, shape (subgroups, forms)."""
        ends = [self.weights * (end - centre) for end in (-0.5, 0.5)]
        low = np.minimum(*ends).min(axis=2)
        high = np.maximum(*ends).max(axis=2)
        return np.minimum(low, 0.0), np.maximum(high, 0.0)


def compare_arms_as_they_are(  # noqa: PLR0913  # rows, counts, and the budgets of three steps
    views: Sequence[Study],
    subgroups: Subgroups,
    counts: Counts,
    noise: Noise,
    *,
    means: Fraction,
    effect: Fraction,
    interval: Fraction,
    changes: int,
) -> list[list[list[Quantity]]]:
    """Release the numbers of all outcomes, subgroups and forms, in units of the outcomes' ranges.

    Neighbours: ``changes`` rows replaced. Sensitivity: of mean outcomes and squares ``changes``
    times their bound in every outcome (L∞); of the forms see `_release_forms`. Cost: the three
    budgets. Proof: docs/proofs/blocks.md.
    """
    members = float(counts.members[-1] if subgroups.overall else counts.members.sum())
    centres = _release_means(views, noise, means, changes, members)
    forms = Forms.of(counts)
    values, distributions = _release_forms(views, subgroups, forms, centres, noise, effect, changes)
    squares: Floats | None = None
    if interval:
        squares = _release_squares(views, centres, noise, interval, changes, members)
    found = []
    for place in range(len(views)):
        variances = None
        if squares is not None:
            within = _within_arms(
                float(squares[place]), counts, values[place], distributions[place]
            )
            variances = sampling_variances(counts, within, changes)
            relative = counts.deviation / counts.members[:, None]
            variances = variances + (values[place] * relative) ** 2
        found.append(
            [
                [
                    Quantity(
                        float(values[place][group, form]),
                        (distributions[place][group][form],),
                        () if variances is None else (float(variances[group, form]),),
                    )
                    for form in range(forms.weights.shape[1])
                ]
                for group in range(forms.weights.shape[0])
            ]
        )
    return found


def _within_arms(
    square: float,
    counts: Counts,
    values: Floats,
    distributions: Sequence[Sequence[NoiseDistribution]],
) -> Floats:
    """Take off a mean square what released numbers say of differences between arms.

    The mean square is around the mean of all arms, so that a large effect would widen its own
    interval. Noise makes squares of released numbers too large by its variance. Post-processing;
    shape (subgroups, 1).
    """
    noise = np.array([[one.variance for one in row] for row in distributions])
    known = np.maximum(values**2 - noise, 0.0)
    shares = counts.rows / counts.rows.sum(axis=1, keepdims=True)
    if shares.shape[1] == 2:
        between = shares.prod(axis=1, keepdims=True) * known
    else:
        between = (shares * known).sum(axis=1, keepdims=True)
    found: Floats = np.maximum(square - between, _LEAST_WITHIN * square)
    return found


def sampling_variances(counts: Counts, square: float | Floats, changes: int) -> Floats:
    """Return the sampling variances of all forms, given the outcomes' mean square."""
    each = changes * square / (counts.rows * counts.effective_share)
    found: Floats = each.sum(axis=1, keepdims=True) if each.shape[1] == 2 else each
    return found


def _release_means(
    views: Sequence[Study], noise: Noise, epsilon: Fraction, changes: int, members: float
) -> list[float]:
    """Release the mean of each outcome, from the middle of its range in units of it."""

    def kernel(block: Block) -> Total:
        centred = np.rint((outcomes_of(block) * OUTCOME_STEPS) * block.shares)
        return Total(int(centred.astype(np.int64).sum()))

    totals = [view.fold(kernel, title="arms").steps for view in views]
    noisy = _vector(noise, "mean outcome", totals, changes * OUTCOME_STEPS, epsilon)
    return [within_centres(one / (2 * OUTCOME_STEPS * members)) for one in noisy]


def _release_squares(
    views: Sequence[Study],
    centres: Sequence[float],
    noise: Noise,
    epsilon: Fraction,
    changes: int,
    members: float,
) -> Floats:
    """Release each outcome's mean squared distance from its centre, a little too high."""
    bits = noise_bits(changes, epsilon)
    largest = [(0.5 + abs(centre)) ** 2 for centre in centres]
    totals = []
    for view, centre, bound in zip(views, centres, largest, strict=True):

        def kernel(block: Block, centre: float = centre, bound: float = bound) -> Total:
            share = np.minimum((outcomes_of(block) - centre) ** 2 / bound, 1.0) * block.shares
            return Total(int(np.rint(share * (1 << bits)).astype(np.int64).sum()))

        totals.append(view.fold(kernel, title="variance").steps)
    noisy = _vector(noise, "variance", totals, changes << bits, epsilon)
    scale = len(views) * changes / (members * float(epsilon))
    return np.array(
        [
            bound * _lifted_square(one / (members * (1 << (bits + 1))), scale)
            for one, bound in zip(noisy, largest, strict=True)
        ]
    )


def _lifted_square(share: float, scale: float) -> float:
    """Return a noisy mean square as a share of its bound, lifted by the scale of its noise."""
    return min(max(share + scale, 1e-6), 1.0)


def _vector(
    noise: Noise, step: str, values: list[int], sensitivity: int, epsilon: Fraction
) -> list[int]:
    """Release one number, or several that a record moves all at once."""
    if len(values) == 1:
        return noise.laplace(step, values, sensitivity=sensitivity, epsilon=epsilon)
    return noise.cube(step, values, sensitivity=sensitivity, epsilon=epsilon)


def _release_forms(
    views: Sequence[Study],
    subgroups: Subgroups,
    forms: Forms,
    centres: Sequence[float],
    noise: Noise,
    epsilon: Fraction,
    changes: int,
) -> tuple[list[Floats], list[list[list[NoiseDistribution]]]]:
    """Release the forms of all outcomes; return them and the distributions of their noise.

    A row enters the forms of its subgroups: its own, and all units where these are paid for; in
    each, the contrast or the mean of its arm. Neighbours: ``changes`` rows leave some forms and
    enter some, ``moves`` moves of one form each, by at most what a row can add. Cost: ε, by Lemma
    S of docs/proofs/several-arms.md for one outcome, and by group shares for several.
    """
    shape = forms.weights.shape[:2]
    grids, bounds, totals = [], [], []
    for view, centre in zip(views, centres, strict=True):
        low, high = forms.reach(centre)
        grid = np.maximum(high, -low).max() * 2.0**-_SCORE_BITS
        steps = _sum_forms(view, subgroups, forms, centre, grid)
        single = math.ceil(float(high[0, 0] - low[0, 0]) / grid) + 2
        each = np.ceil(np.maximum(high, -low) / grid).astype(np.int64) + 1
        grids.append(float(grid))
        bounds.append([single] if forms.count == 1 else each.ravel().tolist())
        totals.append(steps.ravel().tolist())
    moves = changes if forms.count == 1 else 2 * changes * (1 + subgroups.overall)
    each_epsilon = epsilon if forms.count == 1 else epsilon / moves
    if len(views) > 1:
        noisy = noise.cubes(
            "effect", list(zip(*totals, strict=True)),
            sensitivities=[[moves * one for one in row] for row in zip(*bounds, strict=True)],
            epsilon=epsilon,
        )  # fmt: skip
        drawn = [[row[place] for row in noisy] for place in range(len(views))]
    elif forms.count == 1:
        sensitivity = changes * bounds[0][0]
        drawn = [
            [noise.staircase("effect", totals[0][0], sensitivity=sensitivity, epsilon=epsilon)]
        ]
    else:
        drawn = [
            noise.staircase_by_arm(
                "effect", totals[0], sensitivities=bounds[0], moves=moves, epsilon=epsilon
            )
        ]
    values = [
        np.array([one * grid / 2 for one in row]).reshape(shape)
        for row, grid in zip(drawn, grids, strict=True)
    ]
    distributions = []
    for grid, row in zip(grids, bounds, strict=True):
        made: list[NoiseDistribution] = []
        for one in row:
            if len(views) > 1:
                made.append(SharedNoise("laplace", moves * one * grid, epsilon, len(views)))
            elif forms.count == 1:
                made.append(NoiseDistribution("staircase", changes * one * grid, epsilon))
            else:
                made.append(NoiseDistribution("staircase", one * grid, each_epsilon))
        distributions.append(
            [made[first : first + shape[1]] for first in range(0, len(made), shape[1])]
        )
    return values, distributions


def _sum_forms(
    view: Study, subgroups: Subgroups, forms: Forms, centre: float, grid: float
) -> Integers:
    """Add up the forms of one outcome on a grid, row by row, shape (subgroups, forms)."""
    groups, count, _ = forms.weights.shape
    whole = groups - 1 if subgroups.overall else None

    def kernel(block: Block) -> Steps:
        away = (outcomes_of(block) - centre) * block.shares
        codes = subgroups.codes(block.covariates)
        found = np.zeros((groups, count), dtype=np.int64)
        for group in range(groups):
            # Rows of other subgroups add zero: an array as long as a subgroup would show its size.
            own = away if group == whole else away * (codes == group)
            rows = forms.weights[group][:, block.arm] * own
            found[group] = np.rint(rows / grid).astype(np.int64).sum(axis=1)
        return Steps(found)

    return view.fold(kernel, title="effect").values


def within_centres(mean: float) -> float:
    """Keep a released mean outcome near the middle of the range."""
    return min(max(mean, -_CENTRE_BOUND), _CENTRE_BOUND)


def outcomes_of(block: Block) -> Floats:
    """Return outcomes in units of their range, the middle being zero."""
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    scaled: Floats = block.outcome / OUTCOME_STEPS - 0.5
    return scaled
