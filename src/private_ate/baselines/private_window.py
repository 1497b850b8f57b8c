"""A window around many numbers, chosen privately: their median, and how far they spread.

Smith's widened winsorised mean (2011) in the form that is used here: a private median, a private
quantile of the distances from it, and a window of several such distances. Noise that is added to a
mean of numbers kept within the window follows their spread instead of the limits declared for
them. If the median comes out far from the numbers, so do all distances, and the window reaches
the numbers all the same. Proof: section 10 of docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Integers
from private_ate.privacy.noise import Noise
from private_ate.privacy.trimmed_mean import CentreRule

__all__ = [
    "Window",
    "can_choose_window",
    "midpoint_rule",
    "padded_distances",
    "release_window",
    "spread_rule",
    "variance_bound",
]

_WIDENING: Final = 3  # distances to either side: 2.8 standard deviations of a normal distribution
_HELD: Final = Fraction(13, 20)  # of the distances are to lie within the spread
_MIDPOINTS: Final = 1 << 12
_BASE_SCALE: Final = 0.05  # of the limits' distance: how far candidates spread around their middle
_PER_OCTAVE: Final = 32
# Between the least and the largest candidate for the spread, by the number of numbers times ε: what
# lies below all distances is ruled out by ranks alone, and with candidates too many for them a draw
# falls short of numbers that are far apart.
_PRODUCT_PER_OCTAVE: Final = 3
_FEWEST_OCTAVES: Final = 6
_MOST_OCTAVES: Final = 16
_SURELY: Final = 0.05  # how often the spread may lie further below its truth than is allowed for
_LEAST_PRODUCT: Final = 80  # with fewer numbers times ε, draws reach past all of their ranks


@dataclass(frozen=True, slots=True)
class Window:
    """Where numbers are kept, and the two released ones it was made from; all in steps."""

    midpoint: int
    spread: int
    low: int
    high: int


def can_choose_window(size: int, epsilon: Fraction) -> bool:
    """Whether so many numbers have ranks enough for ε to distinguish; public numbers."""
    return size * epsilon >= _LEAST_PRODUCT


def release_window(
    values: Integers, limits: tuple[int, int], noise: Noise, *, midpoint: Fraction, spread: Fraction
) -> Window:
    """Release a median and a distance from it that holds 65 % of the numbers, with an ε for each.

    Neighbours: vectors of the same length within the limits that differ in one place, by any
    amount. Sensitivity: one place of the numbers, and given the midpoint one of the distances.
    Cost: the sum of both ε, pure. Proof: Lemma 3 of docs/proofs/blocks.md and section 10 of
    docs/proofs/baselines.md.
    """
    low, high = limits
    centre = noise.trimmed_centre(
        "midpoint of effects", values, rule=midpoint_rule(low, high, values.size),
        changes=1, epsilon=midpoint,
    )  # fmt: skip
    distance = noise.trimmed_centre(
        "distance from the midpoint", padded_distances(values, centre, high - low),
        rule=spread_rule(high - low, values.size, spread), changes=1, epsilon=spread,
    )  # fmt: skip
    reach = _WIDENING * distance
    return Window(centre, distance, max(centre - reach, low), min(centre + reach, high))


def midpoint_rule(low: int, high: int, size: int) -> CentreRule:
    """Return candidates for a median: denser near the middle of the limits, where effects are.

    They are quantiles of a Cauchy distribution that is cut at the limits.
    """
    share = (2 * np.arange(_MIDPOINTS) + 1) / _MIDPOINTS - 1
    away = _BASE_SCALE * np.tan(share * math.atan(0.5 / _BASE_SCALE))
    wanted = np.rint((low + high) / 2 + (high - low) * away)
    candidates = np.clip(wanted, low, high).astype(np.int64)
    return CentreRule(candidates, max(abs(low), abs(high)), size)


def padded_distances(values: Integers, midpoint: int, width: int) -> Integers:
    """Return the distances from the midpoint and so many widths that 65 % becomes the median."""
    more = round((2 * _HELD - 1) * values.size)
    return np.concatenate([np.abs(values - midpoint), np.full(more, width, dtype=np.int64)])


def spread_rule(width: int, size: int, epsilon: Fraction) -> CentreRule:
    """Return candidates for a distance: as many in every octave below the width.

    The more numbers there are, and the more ε, the narrower the window may become.
    """
    room = math.floor(size * epsilon / _PRODUCT_PER_OCTAVE)
    octaves = min(max(room, _FEWEST_OCTAVES), _MOST_OCTAVES)
    below = np.arange(octaves * _PER_OCTAVE + 1) / _PER_OCTAVE - octaves
    candidates = np.maximum(np.rint(width * np.exp2(below)), 1.0).astype(np.int64)
    return CentreRule(candidates, width, 2 * size)


def variance_bound(window: Window, size: int, epsilon: Fraction) -> float:
    """Return what numbers kept in the window vary by, in squared steps, rather too high.

    65 % of the distances are thought below the released spread; but its draw may miss that rank,
    for numbers with one mode by more than ``log(20)·2/ε`` once in twenty or less often, so a share
    less so many ranks is what is counted upon, and normal numbers whose distances are that small.
    Numbers in a window never vary by more than a quarter of its squared width.
    """
    most = (window.high - window.low) ** 2 / 4 * size / max(size - 1, 1)
    share = float(_HELD) + 2 * math.log(_SURELY) / (float(epsilon) * size)
    if share <= 0:
        return most
    return min((window.spread / float(ndtri((1 + share) / 2))) ** 2, most)
