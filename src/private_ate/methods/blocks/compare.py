"""Arms compared as they are: where blocks do not pay, or treatment is known to be random.

Outcomes less a released mean are weighted by one over the released share of their arm; in a trial
by one over the known probability of their arm, so that no arm is counted and nothing is biased.
Two arms release one contrast, which has half the noise variance of a difference of means; more arms
release a mean each. Every subgroup has numbers of its own, and a row enters those of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.effects.estimate import Quantity
from private_ate.methods.blocks.counts import Counts, Steps, Subgroups
from private_ate.methods.probability import Probability
from private_ate.models.folds import Total
from private_ate.privacy.distributions import NoiseDistribution, SharedNoise
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS, noise_bits
from private_ate.study import Block, Study

__all__ = ["Forms", "compare_arms_as_they_are"]

_SCORE_BITS: Final = 24  # the grid of scores lies so far below their bound
_LEAST_WITHIN: Final = 0.25  # of a mean square is taken to lie within arms, whatever noise says
_EFFECT_SPREAD: Final = 0.15  # of the range: how large the effect of a trial is thought to be
_CENTRE_BOUND: Final = 0.45  # of the range: how far from its middle outcomes are centred


@dataclass(frozen=True, slots=True)
class Forms:
    """The weighted sums that are released: weights of arms, shape (subgroups, forms, arms).

    In a trial a row is weighted by its own probability, and ``weights`` are the largest that occur.
    Its score is added less ``anchor``, a guess of the effect, by which the noise of the number of
    rows that take part matters less.
    """

    counts: Counts
    weights: Floats
    probability: Probability | None = None
    anchor: float = 0.0

    @classmethod
    def of(cls, counts: Counts, probability: Probability | None = None) -> Forms:
        """Return the contrast of two arms, or the mean of each of several, in every subgroup."""
        if probability is not None:
            ends = np.array([-1 / (1 - probability.high), 1 / probability.low])
            return cls(counts, (ends / counts.members[0])[None, None], probability)
        over = 1 / counts.rows
        if over.shape[1] == 2:
            return cls(counts, np.stack([-over[:, 0], over[:, 1]], axis=1)[:, None, :])
        return cls(counts, over[:, :, None] * np.eye(over.shape[1]))

    @property
    def count(self) -> int:
        """How many numbers of an outcome are released."""
        return int(self.weights[:, :, 0].size)

    def reach(self, centre: float) -> tuple[Floats, Floats]:
        """Return the least and the largest that one row can add, shape (subgroups, forms)."""
        ends = [self.weights * (end - centre) for end in (-0.5, 0.5)]
        taken = self.anchor / self.counts.members[0]
        low = np.minimum(*ends).min(axis=2) - taken
        high = np.maximum(*ends).max(axis=2) - taken
        return np.minimum(low, 0.0), np.maximum(high, 0.0)

    def rows(self, group: int, block: Block, centre: float) -> Floats:
        """Return what rows add to the forms of a subgroup, shape (forms, rows)."""
        if self.probability is None:
            return self.weights[group][:, block.arm] * ((_outcomes(block) - centre) * block.shares)
        added = (self.scores(block, centre) - self.anchor) * block.shares
        found: Floats = (added / self.counts.members[0])[None]
        return found

    def scores(self, block: Block, centre: float) -> Floats:
        """Return for each row of a trial a number whose mean is the effect, whatever its centre."""
        if self.probability is None:
            return _outcomes(block) - centre
        chance = self.probability.of(block)
        rates = np.where(block.arm == 1, 1 / chance, -1 / (1 - chance))
        found: Floats = rates * (_outcomes(block) - centre)
        return found

    def largest_square(self, centre: float) -> float:
        """Return the largest square whose mean the sampling variances follow from."""
        if self.probability is None:
            return (0.5 + abs(centre)) ** 2
        return float(np.abs(self.weights).max() * self.counts.members[0] * (0.5 + abs(centre))) ** 2

    def sampling(self, square: float | Floats, changes: int) -> Floats:
        """Return the sampling variances of all forms, shape (subgroups, forms).

        ``square`` is the mean square of outcomes within arms; in a trial that of scores.
        """
        rows = self.counts.rows if self.probability is None else self.counts.members[:, None]
        each = changes * square / (rows * self.counts.effective_share)
        found: Floats = each.sum(axis=1, keepdims=True) if each.shape[1] == 2 else each
        return found


def compare_arms_as_they_are(  # noqa: PLR0913  # rows, forms, and the budgets of three steps
    views: Sequence[Study],
    subgroups: Subgroups,
    forms: Forms,
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
    budgets. Proof: docs/proofs/blocks.md, of trials docs/proofs/trials.md.
    """
    counts = forms.counts
    members = float(counts.members[-1] if subgroups.overall else counts.members.sum())
    if forms.probability is None:
        centres = _release_means(views, noise, means, changes, members)
    else:
        centre, guess = _release_arm_means(views[0], forms, noise, means, changes)
        low, high = forms.reach(centre)
        anchor = min(max(guess, members * low[0, 0]), members * high[0, 0])
        forms, centres = replace(forms, anchor=float(anchor)), [centre]
    values, noises = _release_forms(views, subgroups, forms, centres, noise, effect, changes)
    variances: list[Floats | None] = [None] * len(views)
    if interval:
        squares = _release_squares(views, forms, centres, values, noise, interval, changes, members)
        relative = counts.deviation / counts.members[:, None]
        for place, square in enumerate(squares):
            within = _within_arms(square, forms, values[place], noises[place])
            away = values[place] - forms.anchor
            variances[place] = forms.sampling(within, changes) + (away * relative) ** 2
    return [
        [
            [
                Quantity(
                    float(value[group, form]),
                    (noises[place][group][form],),
                    () if likely is None else (float(likely[group, form]),),
                )
                for form in range(value.shape[1])
            ]
            for group in range(len(value))
        ]
        for place, (value, likely) in enumerate(zip(values, variances, strict=True))
    ]


def _within_arms(
    square: float, forms: Forms, values: Floats, noises: Sequence[Sequence[NoiseDistribution]]
) -> Floats | float:
    """Take off a mean square what released numbers say of differences between arms.

    The mean square is around the mean of all arms, so that a large effect would widen its own
    interval; scores of a trial are squared around the effect. Noise makes squares of released
    numbers too large by its variance. Post-processing; shape (subgroups, 1).
    """
    if forms.probability is not None:
        return square
    noise = np.array([[one.variance for one in row] for row in noises])
    known = np.maximum(values**2 - noise, 0.0)
    rows = forms.counts.rows
    shares = rows / rows.sum(axis=1, keepdims=True)
    if shares.shape[1] == 2:
        between = shares.prod(axis=1, keepdims=True) * known
    else:
        between = (shares * known).sum(axis=1, keepdims=True)
    found: Floats = np.maximum(square - between, _LEAST_WITHIN * square)
    return found


def _release_means(
    views: Sequence[Study], noise: Noise, epsilon: Fraction, changes: int, members: float
) -> list[float]:
    """Release the mean of each outcome, from the middle of its range in units of it."""

    def kernel(block: Block) -> Total:
        centred = np.rint((_outcomes(block) * OUTCOME_STEPS) * block.shares)
        return Total(int(centred.astype(np.int64).sum()))

    totals = [view.fold(kernel, title="arms").steps for view in views]
    noisy = _vector(noise, "mean outcome", totals, changes * OUTCOME_STEPS, epsilon)
    return [_within_centres(one / (2 * OUTCOME_STEPS * members)) for one in noisy]


def _release_arm_means(
    study: Study, forms: Forms, noise: Noise, epsilon: Fraction, changes: int
) -> tuple[float, float]:
    """Release the outcome sums of a trial's arms; return a centre and a guess of the effect.

    Scores vary least around ``(1 − p)·E y(1) + p·E y(0)``. Neighbours: ``changes`` rows replaced; a
    row adds at most half the outcomes' range to one of the two sums, so L1 sensitivity is
    ``changes`` times that range. Cost: ε.
    """

    def kernel(block: Block) -> Steps:
        steps = np.rint((_outcomes(block) * OUTCOME_STEPS) * block.shares).astype(np.int64)
        treated = (steps * block.arm).sum()
        return Steps(np.array([steps.sum() - treated, treated]))

    exact = study.fold(kernel, title="arms").values.tolist()
    noisy = noise.laplace("arm sums", exact, sensitivity=changes * OUTCOME_STEPS, epsilon=epsilon)
    sums, rows = np.array(noisy) / (2 * OUTCOME_STEPS), forms.counts.rows[0]
    means = sums / rows
    variance = 2 * (changes / float(epsilon)) ** 2 * float(np.square(1 / rows).sum())
    effect = (means[1] - means[0]) * _EFFECT_SPREAD**2 / (_EFFECT_SPREAD**2 + variance)
    mean = _within_centres(float(sums.sum() / rows.sum()))
    return _within_centres(mean + (rows[0] - rows[1]) / rows.sum() * effect), float(effect)


def _within_centres(mean: float) -> float:
    return min(max(mean, -_CENTRE_BOUND), _CENTRE_BOUND)


def _release_squares(  # noqa: PLR0913  # rows, what was released of them, and a budget
    views: Sequence[Study],
    forms: Forms,
    centres: Sequence[float],
    values: Sequence[Floats],
    noise: Noise,
    epsilon: Fraction,
    changes: int,
    members: float,
) -> list[float]:
    """Release each outcome's mean squared distance from its centre, a little too high.

    In a trial that of its scores from the released effect, clipped to the largest.
    """
    bits = noise_bits(changes, epsilon)
    largest = [forms.largest_square(centre) for centre in centres]
    totals = []
    for view, centre, value, bound in zip(views, centres, values, largest, strict=True):

        def kernel(
            block: Block, centre: float = centre, value: Floats = value, bound: float = bound
        ) -> Total:
            away = forms.scores(block, centre)
            if forms.probability is not None:
                away -= value[0, 0]
            share = np.minimum(away**2 / bound, 1.0) * block.shares
            return Total(int(np.rint(share * (1 << bits)).astype(np.int64).sum()))

        totals.append(view.fold(kernel, title="variance").steps)
    noisy = _vector(noise, "variance", totals, changes << bits, epsilon)
    scale = len(views) * changes / (members * float(epsilon))
    return [
        bound * lifted_square(one / (members * (1 << (bits + 1))), scale)
        for one, bound in zip(noisy, largest, strict=True)
    ]


def lifted_square(share: float, scale: float) -> float:
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
    shape, is_single = forms.weights.shape[:2], forms.count == 1
    grids, bounds, totals = [], [], []
    for view, centre in zip(views, centres, strict=True):
        low, high = forms.reach(centre)
        grid = np.maximum(high, -low).max() * 2.0**-_SCORE_BITS
        single = math.ceil(float(high[0, 0] - low[0, 0]) / grid) + 2
        each = np.ceil(np.maximum(high, -low) / grid).astype(np.int64) + 1
        grids.append(float(grid))
        bounds.append([single] if is_single else each.ravel().tolist())
        totals.append(_sum_forms(view, subgroups, forms, centre, grid).ravel().tolist())
    moves = changes if forms.count == 1 else 2 * changes * (1 + subgroups.overall)
    unit: NoiseDistribution
    if len(views) > 1:
        noisy = noise.cubes(
            "effect", list(zip(*totals, strict=True)),
            sensitivities=[[moves * one for one in row] for row in zip(*bounds, strict=True)],
            epsilon=epsilon,
        )  # fmt: skip
        drawn = [list(row) for row in zip(*noisy, strict=True)]
        unit = SharedNoise("laplace", moves, epsilon, len(views))
    elif is_single:
        sensitivity = changes * bounds[0][0]
        drawn = [
            [noise.staircase("effect", totals[0][0], sensitivity=sensitivity, epsilon=epsilon)]
        ]
        unit = NoiseDistribution("staircase", changes, epsilon)
    else:
        drawn = [
            noise.staircase_by_arm(
                "effect", totals[0], sensitivities=bounds[0], moves=moves, epsilon=epsilon
            )
        ]
        unit = NoiseDistribution("staircase", 1.0, epsilon / moves)
    values, noises = [], []
    for row, sizes, grid in zip(drawn, bounds, grids, strict=True):
        values.append(np.array([one * grid / 2 for one in row]).reshape(shape) + forms.anchor)
        made = [unit.scaled(one * grid) for one in sizes]
        noises.append([made[first : first + shape[1]] for first in range(0, len(made), shape[1])])
    return values, noises


def _sum_forms(
    view: Study, subgroups: Subgroups, forms: Forms, centre: float, grid: float
) -> Integers:
    """Add up the forms of one outcome on a grid, row by row, shape (subgroups, forms)."""
    groups, count, _ = forms.weights.shape
    whole = groups - 1 if subgroups.overall else None
    low, high = (end[:, None] for end in forms.reach(centre))

    def kernel(block: Block) -> Steps:
        codes = subgroups.codes(block.covariates)
        found = np.zeros((groups, count), dtype=np.int64)
        for group in range(groups):
            # Rows of other subgroups add zero: an array as long as a subgroup would show its size.
            own = codes == (codes if group == whole else group)
            rows = np.clip(forms.rows(group, block, centre), low[group].T, high[group].T)
            found[group] = np.rint(rows * own / grid).astype(np.int64).sum(axis=1)
        return Steps(found)

    return view.fold(kernel, title="effect").values


def _outcomes(block: Block) -> Floats:
    """Return outcomes in units of their range, the middle being zero."""
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    scaled: Floats = block.outcome / OUTCOME_STEPS - 0.5
    return scaled
