"""The unadjusted comparison of the arms: a release of its own, or where the blocks start from.

The steps follow the orthogonal method without adjustment, one by one because the count alone
decides whether blocks follow, and rows that take no part add nothing to any sum. Where a row may
take no part, both arms are counted and their sum stands for n; whether any row does makes no
difference to what is called. With sampling weights a row adds its weight's share of the declared
bound times what it would add: a number between that and zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.estimators.orthogonal.cells import CellCounts, CellNoise, CellScore, plain_score
from private_ate.models.folds import Total, by_chunks
from private_ate.models.standardization import noise_bits
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_quantile
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block, Study

__all__ = [
    "Count", "Start", "largest_square", "lifted_square", "lifted_variance", "release_count",
    "release_outcome_variance", "release_square", "release_start",
]  # fmt: skip


_COUNT_BITS: Final = 20  # counts are released on the grid 2⁻²⁰
_SCORE_BITS: Final = 20  # the score's grid lies at least this far below the scale of its noise
_EFFECT_SPREAD: Final = 0.15  # of the range: how large an effect is thought to be
# In units of its noise: how far a variance is shifted up, and its least value. Together they make
# it less than half of what it should be in fewer than two runs of a hundred.
_SHIFT: Final = 1.5
_NOISE_OF_TWO: Final = 2 * math.sqrt(8)  # two standard deviations of the sum of two noisy counts
_NOISE_OF_THREE: Final = math.sqrt(10 / 3)  # a coordinate of three under the L∞ law, as a Laplace
_FLOOR: Final = 2.0


@dataclass(frozen=True, slots=True)
class Count:
    """Noisy numbers of treated rows and of all that take part, and the scale of their noise.

    The scale is that of Laplace noise of the same variance. With sampling weights numbers are sums
    of weights as shares of their bound, and ``squares`` that of the squared shares.
    """

    treated: float
    total: float
    scale: float
    squares: float | None = None

    def combine(self, other: Count) -> Count:
        """Return the mean of two counts of the same rows, each weighted by its precision."""
        first, second = self.scale**-2, other.scale**-2
        return Count(
            (first * self.treated + second * other.treated) / (first + second),
            (first * self.total + second * other.total) / (first + second),
            1 / math.sqrt(first + second),
            None
            if self.squares is None or other.squares is None
            else (first * self.squares + second * other.squares) / (first + second),
        )

    @property
    def members(self) -> int:
        """The number of rows that take part, at least four."""
        return max(round(self.total), 4)

    def worth(self, size: int) -> float:
        """How many rows of equal weight those that take part are worth, at most ``size``."""
        if self.squares is None:
            return self.members
        # A share is at most one, so that squares never add up to more than shares do.
        squares = min(max(self.squares, self.members**2 / size), self.members)
        return self.members**2 / squares

    @property
    def deviation(self) -> float:
        """The standard deviation of the total's noise, where it is counted."""
        return (math.sqrt(8) if self.squares is None else 2.0) * self.scale

    @property
    def share(self) -> float:
        """The share of treated rows, kept away from 0 and 1."""
        least = min(max(2.0, 0.005 * self.members), self.members / 2)
        return min(max(self.treated, least), self.members - least) / self.members


@dataclass(frozen=True, slots=True)
class Start:
    """A released unadjusted effect and what it was made from, in units of the outcome's range.

    ``unit`` is the sensitivity of the effect, the unit of its staircase noise at ``epsilon``;
    ``count_variance`` is what the noise of sampling weights' sum adds to its error.
    """

    score: CellScore
    mean: float
    members: int
    effect: float
    unit: float
    epsilon: float
    count_variance: float = 0.0

    @property
    def value(self) -> float:
        """The effect within what an effect can be."""
        return min(max(self.effect, -1.0), 1.0)

    def noise_quantile(self, coverage: float) -> float:
        """Return the size that the effect's noise exceeds with probability ``1 − coverage``."""
        return self.unit * staircase_quantile(coverage, self.epsilon)


def release_count(
    study: Study,
    noise: Noise,
    *,
    epsilon: Fraction,
    changes: int,
    step: str = "treated count",
    in_cell: bool = False,
) -> Count:
    """Release the number of treated rows and, where rows may take no part, of control rows.

    With sampling weights the sums of both arms' weights and of all squared weights, as shares of
    the declared bound. Neighbours: ``changes`` rows replaced. Sensitivity: ``changes`` for one
    count, as n is public; ``changes`` in every coordinate (L∞) for several. In a private cell
    neighbours are ``changes`` rows that enter or leave it: L1 ``changes`` for both counts. Cost:
    ε. Proofs: docs/proofs/blocks.md, docs/proofs/weights.md, docs/proofs/subgroups.md.
    """
    exact = study.fold(_count_arms, title="arms")
    unit, scale = 1 << (_COUNT_BITS + 1), changes / float(epsilon)
    if in_cell:
        noisy = noise.laplace(
            step, [exact.treated, exact.control],
            sensitivity=changes << _COUNT_BITS, epsilon=epsilon,
        )  # fmt: skip
        treated, control = (value / unit for value in noisy)
        return Count(treated, min(treated + control, float(study.size)), scale)
    if study.everyone_takes_part:
        noisy = noise.laplace(
            step, [exact.treated], sensitivity=changes << _COUNT_BITS, epsilon=epsilon
        )
        return Count(noisy[0] / unit, float(study.size), scale)
    weighted = study.domain.weights is not None
    counted = [exact.treated, exact.control, *([exact.squares] if weighted else [])]
    noisy = noise.cube(step, counted, sensitivity=changes << _COUNT_BITS, epsilon=epsilon)
    treated, control, *squares = (value / unit for value in noisy)
    if not weighted:
        return _reconciled(treated, control, study.size, scale)
    total = min(treated + control, float(study.size))
    return Count(treated, total, _NOISE_OF_THREE * scale, squares[0])


def _reconciled(treated: float, control: float, size: int, scale: float) -> Count:
    """Let two noisy counts add up to n, less what more than noise says is missing.

    Without missing rows two counts are then as good as one count and n. Each has a variance of
    four squared scales, and they are uncorrelated.
    """
    gap = size - treated - control
    missing = max(gap - _NOISE_OF_TWO * scale, 0.0)
    return Count(treated + (gap - missing) / 2, size - missing, scale)


def release_start(  # noqa: PLR0913  # two steps and their parameters
    study: Study,
    noise: Noise,
    count: Count,
    *,
    sum_epsilon: Fraction,
    effect_epsilon: Fraction,
    changes: int,
    step: str = "effect",
    in_cell: bool = False,
) -> Start:
    """Release the sums of both arms, then the mean of the score that they centre.

    Neighbours: ``changes`` rows replaced. Sensitivity: ``changes`` times the declared range (L1)
    for the centred sums, ``changes`` times the width of the score's bounds for the effect: scores
    are added less a released value between those bounds, so that a row that takes no part adds
    zero, which lies between them too. In a private cell rows enter or leave: half the declared
    range, and the larger distance of a bound from the released value. Cost: both budgets. Proof:
    docs/proofs/blocks.md, docs/proofs/subgroups.md.
    """
    exact = study.fold(_add_outcomes, title="arms")
    reach = OUTCOME_STEPS // 2 if in_cell else OUTCOME_STEPS
    sums = noise.laplace(
        "arm sums", [exact.control, exact.treated],
        sensitivity=changes * reach, epsilon=sum_epsilon,
    )  # fmt: skip
    control, treated = (value / (2 * OUTCOME_STEPS) for value in sums)
    scale = changes * (reach / OUTCOME_STEPS) / float(sum_epsilon)
    law = CellNoise(count.scale, scale, 1.0, count.members)
    cells = CellCounts(*(np.array([x]) for x in (count.treated, 0.0, treated, control)))
    score = plain_score(cells, law)
    mean = min(max((treated + control) / count.members, -0.5), 0.5)
    anchor = 0.0
    if not study.everyone_takes_part:
        anchor = min(max(_rough_effect(count, law, treated, control, mean), score.low), score.high)
    total, grid, width = _add_scores(
        study, score, anchor, epsilon=effect_epsilon, changes=changes, in_cell=in_cell
    )
    noisy = noise.staircase(
        step, total, sensitivity=width * changes, epsilon=effect_epsilon,
    )  # fmt: skip
    away = noisy * grid / (2 * count.members)
    return Start(
        score,
        mean,
        count.members,
        anchor + away,
        width * changes * grid / count.members,
        float(effect_epsilon),
        0.0 if count.squares is None else (away * count.deviation / count.members) ** 2,
    )


def release_square(
    study: Study, noise: Noise, start: Start, *, epsilon: Fraction, changes: int
) -> float:
    """Release the mean square of the score's residual, deliberately a little too high.

    A sampling weight's share counts squared, as in the variance of a weighted mean. Neighbours:
    ``changes`` rows replaced. Sensitivity of the sum: ``changes`` times the bound to which every
    square is clipped. Cost: ε. Proof: docs/proofs/blocks.md.
    """
    largest = max(start.score.high, -start.score.low) ** 2
    share, rate = float(start.score.share[0]), float(start.score.rate[0])

    def residual(treatment: Floats, outcome: Floats) -> Floats:
        away = treatment - share
        # From the arm's own mean: the score's centre lies elsewhere where arms are unequal.
        return rate * away * (outcome - start.mean - away * start.value)

    mean = _release_mean_square(
        study, noise, "variance", residual, largest,
        members=start.members, epsilon=epsilon, changes=changes, power=2,
    )  # fmt: skip
    shift = changes / (start.members * float(epsilon))
    return largest * lifted_square(mean, shift)


def lifted_square(share: float, scale: float) -> float:
    """Return a noisy mean square as a share of its bound, lifted by the scale of its noise."""
    return min(max(share + scale, 1e-6), 1.0)


def release_outcome_variance(
    study: Study, noise: Noise, start: Start, *, epsilon: Fraction, changes: int
) -> float:
    """Release the variance of outcomes within the arms, deliberately a little too high.

    A row adds the square of its distance from its arm's released mean, clipped to a quarter of
    the squared range, or to all of it if the outcome is binary. Neighbours: ``changes`` rows
    replaced. Sensitivity of the sum: ``changes`` times that bound. Cost: ε. Proof:
    docs/proofs/blocks.md.
    """
    largest = largest_square(binary=study.domain.bounds.is_binary)
    share = float(start.score.share[0])

    def residual(treatment: Floats, outcome: Floats) -> Floats:
        return outcome - start.mean - (treatment - share) * start.value

    mean = _release_mean_square(
        study, noise, "outcome variance", residual, largest,
        members=start.members, epsilon=epsilon, changes=changes,
    )  # fmt: skip
    scale = changes / (start.members * float(epsilon))
    return largest * lifted_variance(mean, scale)


def largest_square(*, binary: bool) -> float:
    """Return the bound on an outcome's squared distance from its arm's mean."""
    return 1.0 if binary else 0.25


def lifted_variance(share: float, scale: float) -> float:
    """Return a noisy variance as a share of its bound, lifted by its noise's scale."""
    return min(max(share + _SHIFT * scale, _FLOOR * scale), 1.0)


def _release_mean_square(  # noqa: PLR0913  # a step, its residual and its parameters
    study: Study,
    noise: Noise,
    step: str,
    residual: Callable[[Floats, Floats], Floats],
    largest: float,
    *,
    members: int,
    epsilon: Fraction,
    changes: int,
    power: int = 1,
) -> float:
    """Release the mean of squares, each a share of ``largest`` clipped to [0, 1].

    ``power`` is that of a sampling weight's share.
    """
    bits = noise_bits(changes, epsilon)

    def kernel(block: Block) -> Total:
        values = residual(block.treatment.astype(np.float64), _outcomes(block))
        share = np.minimum(values * values / largest, 1.0) * block.shares**power
        return Total(int(np.rint(share * float(1 << bits)).astype(np.int64).sum()))

    total = study.fold(by_chunks(kernel), title=step).steps
    noisy = noise.laplace(step, [total], sensitivity=changes << bits, epsilon=epsilon)
    return noisy[0] / (members << (bits + 1))


def _add_scores(
    study: Study,
    score: CellScore,
    anchor: float,
    *,
    epsilon: Fraction,
    changes: int,
    in_cell: bool,
) -> tuple[int, float, int]:
    """Add scores less the anchor on a grid; return the sum, the grid and the width in steps.

    In a private cell the width is how far one row that enters or leaves can move the sum.
    """
    exponent = math.floor(math.log2(score.width * changes / float(epsilon))) - _SCORE_BITS
    grid = 2.0 ** min(exponent, math.floor(math.log2(score.width)) - 24)
    low, high = math.floor((score.low - anchor) / grid), math.ceil((score.high - anchor) / grid)
    rate, share, centre = (float(part[0]) for part in (score.rate, score.share, score.centre))

    def kernel(block: Block) -> Total:
        away = rate * (block.treatment - share)
        values = np.rint((away * (_outcomes(block) - centre) - anchor) / grid)
        steps = np.rint(np.clip(values, low, high) * block.shares)
        return Total(int(steps.astype(np.int64).sum()))

    width = max(high, -low) if in_cell else high - low
    return study.fold(by_chunks(kernel), title="effect").steps, grid, width


def _rough_effect(
    count: Count, law: CellNoise, treated: float, control: float, mean: float
) -> float:
    """Return a shrunken difference in means, to which scores are anchored."""
    first = count.share * count.members
    second = count.members - first
    raw = treated / first - control / second
    variance = 2 * law.sum_scale**2 * (1 / first**2 + 1 / second**2)
    variance += 2 * law.count_scale**2 * mean**2 * (1 / first + 1 / second) ** 2
    return raw * _EFFECT_SPREAD**2 / (_EFFECT_SPREAD**2 + variance)


@dataclass(frozen=True, slots=True)
class _ArmTotals:
    """An integer per arm, and one of both; adds up over blocks."""

    treated: int
    control: int
    squares: int = 0

    def __add__(self, other: _ArmTotals) -> _ArmTotals:
        return _ArmTotals(
            self.treated + other.treated,
            self.control + other.control,
            self.squares + other.squares,
        )


def _count_arms(block: Block) -> _ArmTotals:
    """Count rows, or add weights and their squares, in steps of 2⁻²⁰."""
    weights = block.shares
    steps, squares = (
        np.rint(values * (1 << _COUNT_BITS)).astype(np.int64) for values in (weights, weights**2)
    )
    treated = int(steps[block.treatment].sum())
    return _ArmTotals(treated, int(steps.sum()) - treated, int(squares.sum()))


def _add_outcomes(block: Block) -> _ArmTotals:
    """Add outcomes less the middle of their range by arm, exactly; weighted ones are rounded."""
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    away = block.outcome - np.float64(OUTCOME_STEPS // 2)
    centred = np.rint(away * block.shares).astype(np.int64)
    treated = int(centred[block.treatment].sum())
    return _ArmTotals(treated, int(centred.sum()) - treated)


def _outcomes(block: Block) -> Floats:
    """Return outcomes in units of their range, the middle being zero."""
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    scaled: Floats = block.outcome / OUTCOME_STEPS - 0.5
    return scaled
