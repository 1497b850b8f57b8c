"""Arms compared as they are: where blocks do not pay, or treatment is known to be random.

Outcomes less a released mean are weighted by one over the released share of their arm; in a trial
by one over the known probability of their arm, so that no arm is counted and nothing is biased.
Two arms release one contrast, which has half the noise variance of a difference of means; more arms
release a mean each. Every subgroup has numbers of its own, and a row enters those of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats, Integers
from private_ate.effects.estimate import Quantity
from private_ate.methods.blocks.plan import PlainShares
from private_ate.methods.blocks.run import Counts, Run
from private_ate.methods.probability import Probability
from private_ate.privacy.distributions import NoiseDistribution, SharedNoise
from private_ate.privacy.quantization import OUTCOME_STEPS, noise_bits
from private_ate.study import Block, Study

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

    def steps(self, centre: float) -> tuple[float, Integers]:
        """Return a grid, and how many of its steps one row moves each form at most.

        A lone form is moved from one end to the other; one of several is left, or entered.
        """
        low, high = self.reach(centre)
        each = np.maximum(high, -low)
        grid = float(each.max() * 2.0**-_SCORE_BITS)
        if self.count == 1:
            each = high - low
        return grid, np.ceil(each / grid).astype(np.int64) + 1 + (self.count == 1)

    def noise(self, epsilon: Fraction, moves: int, outcomes: int = 1) -> NoiseDistribution:
        """Return the noise of a form that one row moves by one; ``moves`` as in the release."""
        if outcomes > 1:
            return SharedNoise("laplace", moves, epsilon, outcomes)
        if self.count == 1:
            return NoiseDistribution("staircase", moves, epsilon)
        return NoiseDistribution("staircase", 1.0, epsilon / moves)

    def rows(self, block: Block, centre: float) -> Floats:
        """Return what rows add to the forms, shape (subgroups, forms, rows)."""
        if self.probability is None:
            away = (_outcomes(block) - centre) * block.shares
            return self.weights[:, :, block.arm] * away
        added = (self.scores(block, centre) - self.anchor) * block.shares
        found: Floats = (added / self.counts.members[0])[None, None]
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
    step, of_rows = "mean outcome", _outcomes
    if run.trial is not None:
        step, of_rows = "arm sums", _outcomes_by_arm
    paid = epsilon * shares.means
    sums = _release_sums(run, step, [of_rows] * len(run.views), OUTCOME_STEPS, paid)
    if run.trial is None:
        centres = [_within_centres(one / members) for one in sums]
    else:
        scale = run.changes / float(paid)
        centre, guess = _trial_centre(np.array(sums), counts.rows[0], scale)
        low, high = (members * float(end[0, 0]) for end in forms.reach(centre))
        forms, centres = replace(forms, anchor=min(max(guess, low), high)), [centre]
    found = _release_forms(run, forms, centres, epsilon * shares.effect)
    if not shares.interval:
        return found
    # Each outcome's mean squared distance from its centre, or of a trial's scores from the effect.
    paid, largest = epsilon * shares.interval, [forms.largest_square(one) for one in centres]

    middle = 0.0 if run.trial is None else found[0][0][0].value

    def squared(place: int, block: Block) -> Floats:
        away = forms.scores(block, centres[place]) - middle
        return np.minimum(away**2 / largest[place], 1.0)

    squares = [partial(squared, place) for place in range(len(centres))]
    sums = _release_sums(run, "variance", squares, 1 << noise_bits(run.changes, paid), paid)
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
    run: Run,
    step: str,
    values: Sequence[Callable[[Block], Floats]],
    grid: int,
    epsilon: Fraction,
) -> list[float]:
    """Release for each outcome the sum of a number of each row, times the row's share.

    Numbers lie in an interval of length one that holds zero, and are rounded to steps of
    ``1/grid``. Neighbours: ``changes`` rows replaced. Sensitivity: ``changes`` in every outcome
    (L∞). Of a trial's arms a row adds at most a half to one of two sums: ``changes`` in both
    together (L1). Cost: ε.
    """

    def in_steps(one: Callable[[Block], Floats], block: Block) -> Floats:
        return one(block) * block.shares * grid

    title = "variance" if step == "variance" else "arms"
    totals: list[int] = []
    for view, one in zip(run.views, values, strict=True):
        totals += _sums(view, partial(in_steps, one), title)
    draw = run.noise.laplace if len(run.views) == 1 else run.noise.cube
    noisy = draw(step, totals, sensitivity=run.changes * grid, epsilon=epsilon)
    return [one / (2 * grid) for one in noisy]


def _trial_centre(sums: Floats, rows: Floats, scale: float) -> tuple[float, float]:
    """Return where a trial's scores vary least, and a guess of the effect; post-processing.

    That is ``(1 − p)·E y(1) + p·E y(0)``. ``rows`` are those of both arms, and ``scale`` is that of
    the sums' noise.
    """
    control, treated = sums / rows
    variance = 2 * scale**2 * float(np.square(1 / rows).sum())
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
    noise, changes, outcomes = run.noise, run.changes, len(run.views)
    grids, bounds, totals = [], [], []
    for place, centre in enumerate(centres):
        grid, sizes = forms.steps(centre)
        grids.append(grid)
        bounds.append([int(size) for size in sizes.ravel()])
        totals.append(_sum_forms(run, place, forms, centre, grid))
    moves = changes if forms.count == 1 else 2 * changes * (1 + run.subgroups.overall)
    if outcomes > 1:
        noisy = noise.cubes(
            "effect", list(zip(*totals, strict=True)),
            sensitivities=[[moves * one for one in row] for row in zip(*bounds, strict=True)],
            epsilon=epsilon,
        )  # fmt: skip
        drawn = [list(row) for row in zip(*noisy, strict=True)]
    elif forms.count == 1:
        sensitivity = moves * bounds[0][0]
        drawn = [
            [noise.staircase("effect", totals[0][0], sensitivity=sensitivity, epsilon=epsilon)]
        ]
    else:
        drawn = [
            noise.staircase_by_arm(
                "effect", totals[0], sensitivities=bounds[0], moves=moves, epsilon=epsilon
            )
        ]
    unit = forms.noise(epsilon, moves, outcomes)
    found, per = [], forms.weights.shape[1]
    for row, bound, step in zip(drawn, bounds, grids, strict=True):
        flat = [
            Quantity(one * step / 2 + forms.anchor, (unit.scaled(size * step),))
            for one, size in zip(row, bound, strict=True)
        ]
        found.append([flat[first : first + per] for first in range(0, len(flat), per)])
    return found


def _sum_forms(run: Run, place: int, forms: Forms, centre: float, grid: float) -> list[int]:
    """Add up the forms of one outcome on a grid, by subgroup."""
    low, high = (end[:, :, None] for end in forms.reach(centre))
    subgroups = run.subgroups  # a kernel that held the run would hold its views, which stay here

    def of_rows(block: Block) -> Floats:
        # Rows of other subgroups add zero: an array as long as a subgroup would show its size.
        own = subgroups.members(block.covariates)[:, None]
        rows = np.clip(forms.rows(block, centre), low, high) * own
        found: Floats = rows.reshape(-1, block.arm.size) / grid
        return found

    return _sums(run.views[place], of_rows, "effect")


def _sums(view: Study, of_rows: Callable[[Block], Floats], title: str) -> list[int]:
    """Add up numbers of all rows, shape (k, b) or (b,), each rounded to an integer."""

    def kernel(block: Block) -> npt.NDArray[np.object_]:
        steps = np.rint(np.atleast_2d(of_rows(block))).astype(np.int64)
        # Python's integers: sums over all rows may need more than 64 bits.
        return np.array(steps.sum(axis=1).tolist(), dtype=np.object_)

    found: list[int] = view.fold(kernel, title=title).tolist()
    return found


def _outcomes(block: Block) -> Floats:
    """Return outcomes in units of their range, the middle being zero."""
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    scaled: Floats = block.outcome / OUTCOME_STEPS - 0.5
    return scaled


def _outcomes_by_arm(block: Block) -> Floats:
    """Return outcomes in the row of their arm, and zeros in that of the other, shape (2, b)."""
    found: Floats = (np.arange(2)[:, None] == block.arm) * _outcomes(block)
    return found
