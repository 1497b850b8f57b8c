"""The joint release in the units of the method: its candidates, and the intervals that follow.

Everything here reads public and released numbers alone. An interval covers the sampling error by
the released spread, the noise by the distribution that the release would have on ideal block
effects of that spread, and what models may leave where they matter.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats, Integers
from private_ate.effects.estimate import Quantity
from private_ate.methods.blocks.plan import BlocksPlan
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.joint import ENTRIES, JointRule
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.privacy.trimmed_mean import CentreRule
from private_ate.request import Request

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
    largest = OUTCOME_STEPS * plan.spread
    return JointRule(
        CentreRule(_candidates(plan.candidate_bits), OUTCOME_STEPS, plan.trim(epsilon)),
        tuple(max(round(largest * 2 ** (-step / 2)), 1) for step in range(_SPREADS)),
        coordinates,
        plan.asks_flags,
        plan.inside.vote,
    )


@lru_cache(maxsize=4)
def _candidates(bits: int) -> Integers:
    """Return quantiles of Student's t with four degrees of freedom on the grid, in order."""
    share = (np.arange(1 << (bits - 1)) + 0.5) / (1 << bits)
    root = np.sqrt(4 * share * (1 - share))
    quotient = np.cos(np.arccos(np.minimum(root, 1.0)) / 3) / root
    sizes = 2 * np.sqrt(np.maximum(quotient - 1, 0.0))
    quantiles = np.clip(_PRIOR * np.concatenate([-sizes, sizes[::-1]]), -1.0, 1.0)
    found: Integers = np.rint(OUTCOME_STEPS * quantiles).astype(np.int64)
    found.setflags(write=False)
    return found


def noise_reach(
    rule: JointRule, blocks: int, rate: Fraction, *, centre: int, spread: int, coverage: float
) -> float:
    """Return the distance from its centre, in units of the range, that noise keeps to so often.

    The release is replayed around a centre and the place of a spread, as if block effects were
    ideal: normal, with one spread. All coordinates are thought alike. Half the larger gap to a
    neighbouring candidate is added.
    """
    first, candidates = max(spread - _NEAR, 0), rule.centre.candidates
    near = JointRule(
        rule.centre, rule.spreads[first : spread + _NEAR + 1], 1, asks_flags=False, asks_vote=False
    )
    size = _SPREAD_EXCESS * rule.spreads[spread]
    ideal = np.zeros((blocks, ENTRIES + 1), dtype=np.int64)
    normal = ndtri((np.arange(blocks) + 0.5) / blocks)
    ideal[:, 0] = np.clip(np.rint(centre + size * normal), -rule.centre.bound, rule.centre.bound)
    ideal[:, 1] = round(size)
    (options,) = near.boxes(ideal)
    levels = [np.maximum(options.centre_levels(place), lift) for place, _, lift in options.rows]
    by_level = sum(np.bincount(one, minlength=blocks + 1) for one in levels)
    weights = _marginal(np.asarray(by_level, np.float64), float(rate), rule.coordinates)
    chances = np.zeros(candidates.size)
    for one in levels:
        chances += weights[one]
    away = np.abs(candidates - centre) / OUTCOME_STEPS
    order = np.argsort(away, kind="stable")
    reached = (chances[order] / chances.sum()).cumsum()
    place = min(int(np.searchsorted(reached, coverage)), order.size - 1)
    middle = int(np.searchsorted(candidates, centre))
    gap = np.diff(candidates[max(middle - 1, 0) : middle + 2]).max(initial=0)
    return float(away[order[place]]) + float(gap) / (2 * OUTCOME_STEPS)


def _marginal(counts: Floats, rate: float, coordinates: int) -> Floats:
    """Return the weight of one candidate of each level, all other coordinates being drawn too.

    ``counts`` are a coordinate's candidates by level. A combination's level is its largest, so a
    candidate of level l counts with all combinations of others up to l, and beyond.
    """
    others = (counts.cumsum() / max(counts.sum(), 1.0)) ** (coordinates - 1)
    lowest = int(np.argmax(counts > 0))
    falling = np.exp(-rate * np.maximum(np.arange(counts.size) - lowest, 0))
    steps = np.diff(others, prepend=0.0) * falling
    found: Floats = falling * others + steps[::-1].cumsum()[::-1] - steps
    return found


def centre_quantity(  # noqa: PLR0913  # what was released, and what it was drawn from
    rule: JointRule,
    plan: BlocksPlan,
    request: Request,
    rate: Fraction,
    *,
    centre: int,
    spread: float,
    flag: bool,
    with_interval: bool = True,
) -> Quantity:
    """Return one coordinate of a release with its intervals, in units of the range.

    The half-width covers sampling, noise, and what models may leave. The weight of candidates falls
    with their rank, and ranks grow about evenly with the distance where block effects are dense:
    the noise is nearly Laplace's.
    """
    coverage, value = request.coverage, centre / OUTCOME_STEPS
    place = int(np.abs(np.log(np.array(rule.spreads) / (OUTCOME_STEPS * spread))).argmin())
    reach = noise_reach(rule, plan.size, rate, centre=centre, spread=place, coverage=coverage)
    allowance = 0.0
    if flag:
        allowance = _MODELS_ALLOWANCE
    elif plan.rows < _SMALL_BLOCK or not plan.asks_flags:
        allowance = _SMALL_ALLOWANCE
    normal = float(ndtri((1 + coverage) / 2))
    excess = math.sqrt(_VARIANCE_EXCESS * request.rows_per_person / plan.blocks)
    sampling = normal * _SPREAD_EXCESS * spread * excess
    half = math.hypot(sampling, reach) + allowance * spread
    return Quantity(
        value,
        (NoiseDistribution("laplace", reach / -math.log1p(-coverage), 1.0),),
        ((half**2 - reach**2) / normal**2,) if with_interval else (),
        interval=(value - half, value + half) if with_interval else None,
        noise_interval=(value - reach, value + reach),
    )
