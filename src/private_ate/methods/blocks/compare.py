"""Arms compared as they are: where blocks do not pay, or treatment is known to be random.

Outcomes less a released mean are weighted by one over the released share of their arm; in a trial
by one over the known probability of their arm, so that no arm is counted and nothing is biased.
Two arms release one contrast, which has half the noise variance of a difference of means; more arms
release a mean each. Every subgroup has numbers of its own, and a row enters those of one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Integers
from private_ate.effects.estimate import Quantity
from private_ate.methods.blocks.counts import Counts
from private_ate.methods.blocks.plan import PlainShares
from private_ate.methods.blocks.run import Run
from private_ate.methods.probability import Probability
from private_ate.privacy.distributions import NoiseDistribution, SharedNoise
from private_ate.privacy.quantization import OUTCOME_STEPS, noise_bits
from private_ate.study import Block

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
        found: Floats
        if self.probability is None:
            away = (_outcomes(block) - centre) * block.shares
            found = self.weights[group][:, block.arm] * away
        else:
            added = (self.scores(block, centre) - self.anchor) * block.shares
            found = (added / self.counts.members[0])[None]
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

        ``square`` is the mean square of outcomes within arms, or of scores in a trial.
        """
        rows = self.counts.rows if self.probability is None else self.counts.members[:, None]
        each = changes * square / (rows * self.counts.effective_share)
        found: Floats = each.sum(axis=1, keepdims=True) if each.shape[1] == 2 else each
        return found


def compare_arms_as_they_are(
    run: Run, counts: Counts, shares: PlainShares
) -> list[list[list[Quantity]]]:
    """Release the numbers of all outcomes, subgroups and forms, in units of the outcomes' ranges.

    Neighbours: a person's rows replaced. Sensitivity: see each step. Cost: the shares of ε of
    means, effect and interval. Proof: docs/proofs/blocks.md, of trials docs/proofs/trials.md.
    """
    epsilon, forms = run.request.epsilon, Forms.of(counts, run.trial)
    members = float(counts.members[-1] if run.subgroups.overall else counts.members.sum())
    if run.trial is None:
        sums = _release_sums(
            run, "mean outcome", lambda block, _: _outcomes(block), OUTCOME_STEPS,
            epsilon * shares.means,
        )  # fmt: skip
        centres = [_within_centres(one / members) for one in sums]
    else:
        centre, guess = _release_arm_means(run, counts, epsilon * shares.means)
        low, high = (members * float(end[0, 0]) for end in forms.reach(centre))
        forms, centres = replace(forms, anchor=min(max(guess, low), high)), [centre]
    found = _release_forms(run, forms, centres, epsilon * shares.effect)
    if not shares.interval:
        return found
    # Each outcome's mean squared distance from its centre, or of a trial's scores from the effect.
    paid, largest = epsilon * shares.interval, [forms.largest_square(one) for one in centres]

    def squared(block: Block, place: int) -> Floats:
        middle = 0.0 if run.trial is None else found[0][0][0].value
        away = forms.scores(block, centres[place]) - middle
        return np.minimum(away**2 / largest[place], 1.0)

    sums = _release_sums(run, "variance", squared, 1 << noise_bits(run.changes, paid), paid)
    scale = len(run.views) * run.changes / (members * float(paid))
    return [
        _with_variances(own, forms, bound * lifted_square(one / members, scale), run.changes)
        for own, one, bound in zip(found, sums, largest, strict=True)
    ]


def _with_variances(
    quantities: list[list[Quantity]], forms: Forms, square: float, changes: int
) -> list[list[Quantity]]:
    """Add the sampling variances that follow from a mean square, and those of the counts' noise.

    The mean square is around the mean of all arms, so that a large effect would widen its own
    interval: what released numbers say of differences between arms is taken off. Noise makes
    squares of released numbers too large by its variance. Scores of a trial are squared around the
    effect. Post-processing.
    """
    counts = forms.counts
    values, noise = (
        np.array([[getattr(one, name) for one in group] for group in quantities])
        for name in ("value", "noise_variance")
    )
    within: Floats | float = square
    if forms.probability is None:
        known = np.maximum(values**2 - noise, 0.0)
        shares = counts.rows / counts.rows.sum(axis=1, keepdims=True)
        weights = shares.prod(axis=1, keepdims=True) if shares.shape[1] == 2 else shares
        between = (weights * known).sum(axis=1, keepdims=True)
        within = np.maximum(square - between, _LEAST_WITHIN * square)
    relative = counts.deviation / counts.members[:, None]
    variances = forms.sampling(within, changes) + ((values - forms.anchor) * relative) ** 2
    return [
        [replace(one, variances=(variance,)) for one, variance in zip(group, row, strict=True)]
        for group, row in zip(quantities, variances.tolist(), strict=True)
    ]


def lifted_square(share: float, scale: float) -> float:
    """Return a noisy mean square as a share of its bound, lifted by the scale of its noise."""
    return min(max(share + scale, 1e-6), 1.0)


def _release_sums(
    run: Run, step: str, values: Callable[[Block, int], Floats], grid: int, epsilon: Fraction
) -> list[float]:
    """Release for each outcome the sum of a number of each row, times the row's share.

    Numbers lie in an interval of length one that holds zero, and are rounded to steps of
    ``1/grid``. Neighbours: ``changes`` rows replaced. Sensitivity: ``changes`` in every outcome
    (L∞). Cost: ε.
    """
    totals, title = [], {"mean outcome": "arms"}.get(step, step)
    for place, view in enumerate(run.views):

        def kernel(block: Block, place: int = place) -> int:
            steps = np.rint(values(block, place) * block.shares * grid)
            return int(steps.astype(np.int64).sum())

        totals.append(view.fold(kernel, title=title))
    draw = run.noise.laplace if len(totals) == 1 else run.noise.cube
    noisy = draw(step, totals, sensitivity=run.changes * grid, epsilon=epsilon)
    return [one / (2 * grid) for one in noisy]


def _release_arm_means(run: Run, counts: Counts, epsilon: Fraction) -> tuple[float, float]:
    """Release the outcome sums of a trial's arms; return a centre and a guess of the effect.

    Scores vary least around ``(1 − p)·E y(1) + p·E y(0)``. Neighbours: ``changes`` rows replaced; a
    row adds at most half the outcomes' range to one of the two sums, so L1 sensitivity is
    ``changes`` times that range. Cost: ε.
    """

    def kernel(block: Block) -> Integers:
        steps = np.rint((_outcomes(block) * OUTCOME_STEPS) * block.shares).astype(np.int64)
        treated = (steps * block.arm).sum()
        return np.array([steps.sum() - treated, treated])

    exact = run.study.fold(kernel, title="arms").tolist()
    noisy = run.noise.laplace(
        "arm sums", exact, sensitivity=run.changes * OUTCOME_STEPS, epsilon=epsilon
    )
    sums, rows = np.array(noisy) / (2 * OUTCOME_STEPS), counts.rows[0]
    control, treated = sums / rows
    variance = 2 * (run.changes / float(epsilon)) ** 2 * float(np.square(1 / rows).sum())
    effect = float(treated - control) * _EFFECT_SPREAD**2 / (_EFFECT_SPREAD**2 + variance)
    mean = _within_centres(float(sums.sum() / rows.sum()))
    return _within_centres(mean + float((rows[0] - rows[1]) / rows.sum()) * effect), effect


def _within_centres(mean: float) -> float:
    return min(max(mean, -_CENTRE_BOUND), _CENTRE_BOUND)


def _release_forms(
    run: Run, forms: Forms, centres: Sequence[float], epsilon: Fraction
) -> list[list[list[Quantity]]]:
    """Release the forms of all outcomes, by subgroup.

    A row enters the forms of its subgroups: its own, and all units where these are paid for; in
    each, the contrast or the mean of its arm. Neighbours: ``changes`` rows leave some forms and
    enter some, ``moves`` moves of one form each, by at most what a row can add. Cost: ε, by Lemma
    S of docs/proofs/several-arms.md for one outcome, and by group shares for several.
    """
    noise, changes, is_single = run.noise, run.changes, forms.count == 1
    grids, bounds, totals = [], [], []
    for place, centre in enumerate(centres):
        low, high = forms.reach(centre)
        grid = float(np.maximum(high, -low).max() * 2.0**-_SCORE_BITS)
        single = math.ceil(float(high[0, 0] - low[0, 0]) / grid) + 2
        each = np.ceil(np.maximum(high, -low) / grid).astype(np.int64) + 1
        grids.append(grid)
        bounds.append([single] if is_single else each.ravel().tolist())
        totals.append(_sum_forms(run, place, forms, centre, grid).ravel().tolist())
    moves = changes if forms.count == 1 else 2 * changes * (1 + run.subgroups.overall)
    unit: NoiseDistribution
    if len(run.views) > 1:
        noisy = noise.cubes(
            "effect", list(zip(*totals, strict=True)),
            sensitivities=[[moves * one for one in row] for row in zip(*bounds, strict=True)],
            epsilon=epsilon,
        )  # fmt: skip
        drawn = [list(row) for row in zip(*noisy, strict=True)]
        unit = SharedNoise("laplace", moves, epsilon, len(run.views))
    elif is_single:
        sensitivity = moves * bounds[0][0]
        one = noise.staircase("effect", totals[0][0], sensitivity=sensitivity, epsilon=epsilon)
        drawn, unit = [[one]], NoiseDistribution("staircase", moves, epsilon)
    else:
        drawn = [
            noise.staircase_by_arm(
                "effect", totals[0], sensitivities=bounds[0], moves=moves, epsilon=epsilon
            )
        ]
        unit = NoiseDistribution("staircase", 1.0, epsilon / moves)
    found, per = [], forms.weights.shape[1]
    for row, sizes, grid in zip(drawn, bounds, grids, strict=True):
        flat = [
            Quantity(one * grid / 2 + forms.anchor, (unit.scaled(size * grid),))
            for one, size in zip(row, sizes, strict=True)
        ]
        found.append([flat[first : first + per] for first in range(0, len(flat), per)])
    return found


def _sum_forms(run: Run, place: int, forms: Forms, centre: float, grid: float) -> Integers:
    """Add up the forms of one outcome on a grid, row by row, shape (subgroups, forms)."""
    low, high = (end[:, :, None] for end in forms.reach(centre))

    def kernel(block: Block) -> Integers:
        found = []
        for group, own in enumerate(run.subgroups.members(block.covariates)):
            rows = np.clip(forms.rows(group, block, centre), low[group], high[group])
            # Rows of other subgroups add zero: an array as long as a subgroup would show its size.
            found.append(np.rint(rows * own / grid).astype(np.int64).sum(axis=1))
        return np.array(found)

    return run.views[place].fold(kernel, title="effect")


def _outcomes(block: Block) -> Floats:
    """Return outcomes in units of their range, the middle being zero."""
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    scaled: Floats = block.outcome / OUTCOME_STEPS - 0.5
    return scaled
