"""What a release will show before any record is read: every step with its noise left out.

The steps are those of the method, in its order, on expected values. Noise has median zero and a
half-width grows with each noisy number, so what comes out is near the median half-width. The
variance inside a block is that of made-up people, put through the very model of the blocks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.estimators.blocks.bends import Bends
from private_ate.estimators.blocks.centre import centre_rule, expected_size, noise_quantile
from private_ate.estimators.blocks.method import (
    MODELS,
    combined_half_width,
    lifted_spread,
    variance_cap,
)
from private_ate.estimators.blocks.plan import (
    SPREAD_SHARE,
    SQUARE_SHARE,
    BlocksPlan,
    Model,
    count_share,
)
from private_ate.estimators.blocks.unadjusted import (
    largest_square,
    lifted_square,
    lifted_variance,
)
from private_ate.estimators.guesses import POWER, ExpectedError, PeopleGuess, make_up_rows
from private_ate.estimators.orthogonal.cells import CellCounts, CellNoise, plain_score
from private_ate.estimators.orthogonal.plan import plain_shares
from private_ate.estimators.request import Estimand
from private_ate.privacy.quantiles import staircase_quantile
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Groups

__all__ = ["Asked", "expected_centre", "expected_comparison"]

_TYPICAL_SHIFT: Final = 0.25  # standard deviations: how far off the starting point is thought
_MADE_UP_ROWS: Final = 16_000  # people made up to learn the variance inside a block
_MOST_ROWS: Final = 1500  # of a made-up block; variances of longer ones follow from its length
_MOST_COVARIATES: Final = 60  # of made-up people; more are stood for by as much crowding
_FEWEST_BLOCKS: Final = 12
_LARGEST_VARIANCE: Final = 1.0  # of an effect in units of the range, for blocks without one
_STEP: Final = 1.3  # between lengths of made-up blocks
_EXCESS: Final = 1.1  # of the variance between blocks in an interval


@dataclass(frozen=True, slots=True)
class Asked:
    """Public numbers of a request: rows, covariates, ε in all, rows per person, coverage.

    ``weight_share`` is the guessed mean of sampling weights over their bound, 1 without any.
    """

    size: int
    dimension: int
    epsilon: Fraction
    changes: int
    coverage: float
    with_interval: bool
    binary: bool
    estimand: Estimand = "ate"
    weight_share: float = 1.0

    @property
    def per_row(self) -> Fraction:
        """The budget of one row."""
        return self.epsilon / self.changes

    @property
    def mass(self) -> float:
        """What stands for n where sums are noisy: weights added up as shares of their bound."""
        return self.size * self.weight_share

    @property
    def worth(self) -> float:
        """What stands for n in sampling: as many rows of equal weight, of evenly spread ones."""
        return self.size * (1 + self.weight_share) / 2


def expected_comparison(asked: Asked, guess: PeopleGuess, *, tried: bool) -> ExpectedError:
    """Return what to expect of arms that are compared as they are.

    ``tried`` says whether treated rows were counted for blocks first.
    """
    size, changes, epsilon = asked.size, asked.changes, float(asked.epsilon)
    shares = plain_shares(size, float(asked.per_row), with_interval=asked.with_interval)
    counting = shares.counts
    if tried:
        counting = max(counting, count_share(size, float(asked.per_row)))
    mass = asked.mass
    treated = mass * guess.share
    law = CellNoise(
        changes / (epsilon * float(counting)), changes / (epsilon * float(shares.sums)), 1.0, mass
    )
    score = plain_score(
        CellCounts(*(np.array([part]) for part in (
            treated, 0.0, treated * guess.middle, (mass - treated) * guess.middle,
        ))),
        law,
    )  # fmt: skip
    used = epsilon * float(1 - counting - shares.sums - shares.interval)
    unit = score.width * changes / mass
    square = guess.deviation**2 * float(score.rate[0])
    error = ExpectedError.of_staircase(
        used, unit, math.sqrt(changes * square / asked.worth), asked.coverage
    )
    if not asked.with_interval:
        return error
    largest = max(score.high, -score.low) ** 2
    scale = changes / (mass * epsilon * float(shares.interval))
    released = largest * lifted_square(square / largest * mass / asked.worth, scale)
    reach = unit * staircase_quantile(asked.coverage, used)
    return error.with_half_width(
        combined_half_width(changes * released / mass, reach, asked.coverage)
    )


def expected_centre(asked: Asked, plan: BlocksPlan, guess: PeopleGuess) -> ExpectedError:
    """Return what to expect of the centre of block effects."""
    length = asked.worth / plan.blocks
    blocks = _MadeUpBlocks.like(
        _Inside(plan.model, plan.bends, asked.dimension, asked.estimand), length, guess
    )
    spread = blocks.variance(math.inf)
    released = spread
    if asked.with_interval:
        scale = asked.changes / (asked.mass * float(asked.epsilon * SQUARE_SHARE))
        largest = largest_square(binary=asked.binary)
        square = largest * lifted_variance(min(guess.deviation**2 / largest, 1.0), scale)
        square /= guess.share * (1 - guess.share)
        cap = variance_cap(square, length, asked.dimension)
        scale = asked.changes / (plan.blocks * float(asked.epsilon * SPREAD_SHARE))
        released = cap * lifted_spread(blocks.variance(cap) / cap, scale)
    steps, size = 1 << plan.value_bits, plan.blocks * plan.partitions
    start = round(_TYPICAL_SHIFT * guess.deviation * steps)
    rule = centre_rule(start, bits=14, value_bits=plan.value_bits, trim=plan.trim(asked.per_row))
    rate = plan.effect * asked.per_row / (2 * plan.partitions)
    wide = math.sqrt(released) * steps
    reach, margin = (
        noise_quantile(rule, effect=0, spread=wide, size=size, rate=rate, coverage=coverage) / steps
        for coverage in (asked.coverage, 2 * POWER - 1)
    )
    noise = expected_size(rule, spread=math.sqrt(spread) * steps, size=size, rate=rate) / steps
    sampling = math.sqrt(asked.changes * spread / plan.blocks)
    excess = _EXCESS if asked.with_interval else 1.0
    return ExpectedError(
        noise,
        sampling,
        math.hypot(noise, math.sqrt(2 / math.pi) * sampling),
        combined_half_width(excess * asked.changes * released / plan.blocks, reach, asked.coverage),
        math.hypot(margin, float(ndtri(POWER)) * sampling),
    )


@dataclass(frozen=True, slots=True)
class _Inside:
    """What is fitted inside a block: model, bends, covariates, and the estimand."""

    model: Model
    bends: Bends
    dimension: int
    estimand: Estimand


@dataclass(frozen=True, slots=True)
class _MadeUpBlocks:
    """Variances of made-up blocks of two neighbouring lengths, and how near the second is."""

    shorter: Floats
    longer: Floats
    nearness: float

    @classmethod
    def like(cls, inside: _Inside, length: float, guess: PeopleGuess) -> _MadeUpBlocks:
        """Make up blocks of about that length; few lengths are made up, each once."""
        place = math.log(max(length, 4.0)) / math.log(_STEP)
        first = math.floor(place)
        shorter, longer = (
            _variances(inside, round(_STEP**step), guess) * (_STEP**step / length)
            for step in (first, first + 1)
        )
        return cls(shorter, longer, place - first)

    def variance(self, cap: float) -> float:
        """Return the mean variance of a block, each variance clipped to the cap."""
        short, long = (np.minimum(part, cap).mean() for part in (self.shorter, self.longer))
        return float(short ** (1 - self.nearness) * long**self.nearness)


@lru_cache(maxsize=256)
def _variances(inside: _Inside, length: int, guess: PeopleGuess) -> Floats:
    """Return the variances of the effects of made-up blocks that have one."""
    dimension = min(inside.dimension, _MOST_COVARIATES)
    crowded = length
    if dimension < inside.dimension:  # as many rows for each covariate
        crowded = max(round(length * dimension / inside.dimension), 4)
    rows = min(crowded, _MOST_ROWS)
    count = max(_MADE_UP_ROWS // rows, _FEWEST_BLOCKS)
    people = make_up_rows(guess, rows * count, dimension)
    shape = (count, rows)
    outcome = np.clip(people.outcome + 0.5, -0.9, 1.9)  # beyond the range, but on the grid
    effects = MODELS[inside.model](
        Groups(
            people.covariates.reshape(*shape, dimension),
            people.treatment.reshape(shape),
            np.rint(outcome * OUTCOME_STEPS).astype(np.int32).reshape(shape),
            np.ones(shape, dtype=np.bool_),
        ),
        bends=inside.bends,
        estimand=inside.estimand,
    )
    fine = effects.usable & np.isfinite(effects.variance)
    scaled: Floats = np.where(fine, effects.variance, _LARGEST_VARIANCE) * (rows / length)
    return scaled
