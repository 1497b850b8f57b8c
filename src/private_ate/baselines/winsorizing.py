"""A window around many numbers, chosen privately: where they lie, and how far they spread.

Smith's widened winsorised mean (2011) in the form that is used here: a private median, a private
median distance from it, and a window of several such distances. Noise that is added to a mean of
numbers kept within the window follows their spread instead of the limits declared for them. If the
median comes out far from the numbers, so do all distances: the window then reaches them the more.
Proof: section 10 of docs/proofs/baselines.md.
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
from private_ate.privacy.ranks import CentreRule

__all__ = [
    "Window",
    "can_choose_window",
    "midpoint_rule",
    "release_window",
    "spread_rule",
    "variance_bound",
]

_WIDENING: Final = 4  # median distances to either side: 2.7 standard deviations of a normal law
_MIDPOINTS: Final = 1 << 12
_BASE_SCALE: Final = 0.03  # of the limits' distance: how far candidates spread around their middle
# Between the least and the largest candidate for the spread, by the number of numbers times ε: what
# lies below all distances is ruled out by ranks alone, and with candidates too many for them a draw
# falls short of numbers that are far apart (at 16 octaves and 27 one interval in four missed).
_PRODUCT_PER_OCTAVE: Final = 6
_FEWEST_OCTAVES: Final = 6
_MOST_OCTAVES: Final = 16
_PER_OCTAVE: Final = 8
_SURELY: Final = 0.05  # how often the spread may lie further below its truth than is allowed for


_LEAST_PRODUCT: Final = 25  # with fewer numbers times ε, draws reach past all of their ranks


@dataclass(frozen=True, slots=True)
class Window:
    """Where numbers are kept, and the two released ones it was made from; all in steps."""

    midpoint: int
    spread: int
    low: int
    high: int


def can_choose_window(size: int, epsilon: Fraction) -> bool:
    """Say whether so many numbers have ranks enough to be told apart by ε; public numbers."""
    return size * epsilon >= _LEAST_PRODUCT


def release_window(
    values: Integers, low: int, high: int, noise: Noise, epsilon: Fraction
) -> Window:
    """Release a median and a median distance from it, half of ε for each.

    Neighbours: vectors of the same length within ``[low, high]`` that differ in one place, by any
    amount. Sensitivity: one place of the numbers, and given the midpoint one of the distances.
    Cost: ε, pure. Proof: Lemma 3 of docs/proofs/blocks.md and section 10 of
    docs/proofs/baselines.md.
    """
    half = epsilon / 2
    midpoint = noise.trimmed_centre(
        "midpoint of effects", values, rule=midpoint_rule(low, high, values.size),
        changes=1, epsilon=half,
    )  # fmt: skip
    spread = noise.trimmed_centre(
        "distance from the midpoint", np.abs(values - midpoint),
        rule=spread_rule(high - low, values.size, epsilon), changes=1, epsilon=epsilon - half,
    )  # fmt: skip
    reach = _WIDENING * spread
    return Window(midpoint, spread, max(midpoint - reach, low), min(midpoint + reach, high))


def midpoint_rule(low: int, high: int, size: int) -> CentreRule:
    """Return candidates for a median: denser near the middle of the limits, where effects are.

    They are quantiles of Student's t with two degrees of freedom.
    """
    share = (np.arange(_MIDPOINTS) + 0.5) / _MIDPOINTS
    student = (2 * share - 1) / np.sqrt(2 * share * (1 - share))
    wanted = np.rint((low + high) / 2 + _BASE_SCALE * (high - low) * student)
    candidates = np.clip(wanted, low, high).astype(np.int64)
    return CentreRule(candidates, max(abs(low), abs(high)), size)


def spread_rule(width: int, size: int, epsilon: Fraction) -> CentreRule:
    """Return candidates for a median distance: as many in every octave below the width.

    The more numbers there are, and the more ε for the window, the narrower it may become.
    """
    room = math.floor(size * epsilon / _PRODUCT_PER_OCTAVE)
    octaves = min(max(room, _FEWEST_OCTAVES), _MOST_OCTAVES)
    below = np.arange(octaves * _PER_OCTAVE + 1) / _PER_OCTAVE - octaves
    candidates = np.maximum(np.rint(width * np.exp2(below)), 1.0).astype(np.int64)
    return CentreRule(candidates, width, size)


def variance_bound(window: Window, size: int, epsilon: Fraction) -> float:
    """Return what numbers kept in the window vary by, in squared steps, rather too high.

    Half of the distances are thought below the released spread; but its draw (half of ε) misses
    that rank by more than ``log(20)·4/ε`` once in twenty, so a share less so many ranks is what is
    counted upon, and normal numbers whose distances are that small. Numbers in a window never vary
    by more than a quarter of its squared width.
    """
    most = (window.high - window.low) ** 2 / 4 * size / max(size - 1, 1)
    share = 0.5 + 4 * math.log(_SURELY) / (float(epsilon) * size)
    if share <= 0:
        return most
    return min((window.spread / float(ndtri((1 + share) / 2))) ** 2, most)
