"""The joint release in the units of the method: its candidates, and the intervals that follow.

Everything here reads public and released numbers alone. An interval covers the sampling error by
the released spread, the noise by the distribution that the release would have on ideal block
effects of that spread, and what models may leave where they matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats, Integers
from private_ate.effects.estimate import Quantity
from private_ate.methods.blocks.plan import BlocksPlan
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.joint import ENTRIES, JointCentres, JointRule
from private_ate.privacy.trimmed_mean import CentreRule

__all__ = ["GRID", "Replay", "effect_quantity", "joint_rule", "released_spread"]

GRID: Final = 1 << 30  # steps across the outcome's range
_PRIOR: Final = 0.08  # of the range: the scale of candidates around zero
_SPREADS: Final = 26  # each the former over √2: wide bounds need as many
_SPREAD_EXCESS: Final = 1.15  # by which the spread of blocks exceeds what they say of themselves
_VARIANCE_EXCESS: Final = 1.1  # of the trimmed mean over that of the mean
_MODELS_ALLOWANCE: Final = 3.0  # spreads that shapes may leave where a plain model says otherwise
_SMALL_ALLOWANCE: Final = 0.11  # the same where blocks are too small to ask
_SMALL_BLOCK: Final = 60
_NEAR: Final = 3  # spreads around the released one that a replay looks at


def joint_rule(plan: BlocksPlan, coordinates: int, epsilon: Fraction) -> JointRule:
    """Return what is public about the release; ``epsilon`` is that of the release per row."""
    return JointRule(
        CentreRule(_candidates(plan.candidate_bits), GRID, plan.trim(epsilon)),
        tuple(max(round(GRID * plan.spread * 2 ** (-step / 2)), 1) for step in range(_SPREADS)),
        coordinates,
        plan.asks_flags,
        plan.asks_vote,
    )


@lru_cache(maxsize=4)
def _candidates(bits: int) -> Integers:
    """Return quantiles of Student's t with four degrees of freedom on the grid, in order."""
    share = (np.arange(1 << (bits - 1)) + 0.5) / (1 << bits)
    root = np.sqrt(4 * share * (1 - share))
    quotient = np.cos(np.arccos(np.minimum(root, 1.0)) / 3) / root
    sizes = 2 * np.sqrt(np.maximum(quotient - 1, 0.0))
    quantiles = np.clip(_PRIOR * np.concatenate([-sizes, sizes[::-1]]), -1.0, 1.0)
    found: Integers = np.rint(GRID * quantiles).astype(np.int64)
    found.setflags(write=False)
    return found


@dataclass(frozen=True)
class Replay:
    """The distribution of a centre's noise if block effects were ideal: normal, with one spread.

    All coordinates are thought alike. ``sizes`` are distances of candidates from the centre, in
    units of the range, ascending; ``chances`` their probabilities.
    """

    sizes: Floats
    chances: Floats
    gap: float

    @classmethod
    def of(
        cls, rule: JointRule, blocks: int, rate: Fraction, *, centre: int, spread: int
    ) -> Replay:
        """Replay the release around a centre, for the place of a spread."""
        first = max(spread - _NEAR, 0)
        near = JointRule(
            rule.centre, rule.spreads[first : spread + _NEAR + 1], 1, asks_flags=False,
            asks_vote=False,
        )  # fmt: skip
        bound = rule.centre.bound
        size = _SPREAD_EXCESS * rule.spreads[spread]
        ideal = np.zeros((blocks, ENTRIES + 1), dtype=np.int64)
        normal = ndtri((np.arange(blocks) + 0.5) / blocks)
        ideal[:, 0] = np.clip(np.rint(centre + size * normal), -bound, bound)
        ideal[:, 1] = round(size)
        (options,) = near.boxes(ideal)
        levels = [np.maximum(options.centre_levels(place), lift) for place, _, lift in options.rows]
        by_level = sum(np.bincount(one, minlength=blocks + 1) for one in levels)
        weights = _marginal(np.asarray(by_level, np.float64), float(rate), rule.coordinates)
        chance = np.zeros(rule.centre.candidates.size)
        for one in levels:
            chance += weights[one]
        away = np.abs(rule.centre.candidates - centre) / GRID
        order = np.argsort(away, kind="stable")
        place = int(np.searchsorted(rule.centre.candidates, centre))
        beside = rule.centre.candidates[max(place - 1, 0) : place + 2]
        gap = float(np.diff(beside).max(initial=0)) / (2 * GRID)
        return cls(away[order], chance[order] / chance.sum(), gap)

    def quantile(self, coverage: float) -> float:
        """Return the distance that the noise exceeds with probability ``1 − coverage``."""
        place = int(np.searchsorted(self.chances.cumsum(), coverage))
        return float(self.sizes[min(place, self.sizes.size - 1)]) + self.gap


def _marginal(counts: Floats, rate: float, coordinates: int) -> Floats:
    """Return the weight of one candidate of each level, all other coordinates being drawn too.

    ``counts`` are a coordinate's candidates by level. A combination's level is its largest, so a
    candidate of level l counts with all combinations of others up to l, and beyond.
    """
    others = (counts.cumsum() / max(counts.sum(), 1.0)) ** (coordinates - 1)
    levels = np.arange(counts.size)
    lowest = int(np.argmax(counts > 0))
    falling = np.exp(-rate * np.maximum(levels - lowest, 0))
    steps = np.diff(others, prepend=0.0) * falling
    beyond = steps[::-1].cumsum()[::-1] - steps
    found: Floats = falling * others + beyond
    return found


def released_spread(rule: JointRule, place: int) -> float:
    """Return a released spread in units of the range."""
    return rule.spreads[place] / GRID


def effect_quantity(  # noqa: PLR0913  # what was drawn, and what it was drawn from
    rule: JointRule,
    plan: BlocksPlan,
    drawn: JointCentres,
    place: int,
    rate: Fraction,
    *,
    changes: int,
    coverage: float,
    with_interval: bool,
) -> Quantity:
    """Return one coordinate of the release with its intervals, in units of the range."""
    spread = released_spread(rule, drawn.spreads[place])
    replay = Replay.of(
        rule, plan.size, rate, centre=drawn.centres[place], spread=drawn.spreads[place]
    )
    value = drawn.centres[place] / GRID
    reach = replay.quantile(coverage)
    half = half_width(
        plan, spread, reach, changes=changes, coverage=coverage, flag=drawn.flags[place]
    )
    return quantity_of(value, reach, half if with_interval else None, coverage)


def half_width(
    plan: BlocksPlan, spread: float, reach: float, *, changes: int, coverage: float, flag: bool
) -> float:
    """Return the half-width that covers sampling, noise, and what models may leave."""
    allowance = 0.0
    if flag:
        allowance = _MODELS_ALLOWANCE
    elif plan.rows < _SMALL_BLOCK or not plan.asks_flags:
        allowance = _SMALL_ALLOWANCE
    deviation = _SPREAD_EXCESS * spread * math.sqrt(_VARIANCE_EXCESS * changes / plan.blocks)
    return math.hypot(float(ndtri((1 + coverage) / 2)) * deviation, reach) + allowance * spread


def quantity_of(value: float, reach: float, half: float | None, coverage: float) -> Quantity:
    """Return a quantity whose noise and variance give these half-widths, added in squares.

    The weight of candidates falls with their rank, and ranks grow about evenly with the distance
    where block effects are dense: the noise is nearly Laplace's.
    """
    distribution = NoiseDistribution("laplace", reach / -math.log1p(-coverage), 1.0)
    variances: tuple[float, ...] = ()
    interval = None
    if half is not None:
        variances = ((half**2 - reach**2) / float(ndtri((1 + coverage) / 2)) ** 2,)
        interval = (value - half, value + half)
    return Quantity(
        value,
        (distribution,),
        variances,
        interval=interval,
        noise_interval=(value - reach, value + reach),
    )
