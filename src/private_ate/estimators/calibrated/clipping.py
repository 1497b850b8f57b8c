"""Optional tighter outcome bounds at label level, chosen privately before the estimate.

Declared bounds are often far wider than the bulk of the outcomes, and noise follows the bounds. A
small share of ε buys a range that leaves only a few outcomes outside; those are clipped to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_BITS, OUTCOME_STEPS
from private_ate.study import Block, Study

__all__ = ["DECLARED_RANGE", "OutcomeRange", "release_range"]

Integers = npt.NDArray[np.int64]

_CELL_BITS: Final = 14  # candidates for either bound: the edges of 2¹⁴ equal cells
_CELLS: Final = 1 << _CELL_BITS


@dataclass(frozen=True, slots=True)
class OutcomeRange:
    """Bounds in grid steps to which outcomes are clipped before they are added up."""

    low: int
    high: int

    @property
    def width(self) -> int:
        """The range in grid steps."""
        return self.high - self.low

    @property
    def middle(self) -> int:
        """The step that outcomes are counted from."""
        return (self.low + self.high) // 2

    def centre(self, outcome: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Clip outcomes and count them from the middle of the range."""
        return np.clip(outcome, self.low, self.high) - np.int32(self.middle)


DECLARED_RANGE: Final = OutcomeRange(0, OUTCOME_STEPS)


@dataclass(frozen=True, slots=True)
class _Histogram:
    """How many outcomes fall into each cell of the declared range."""

    counts: Integers

    def __add__(self, other: _Histogram) -> _Histogram:
        return _Histogram(self.counts + other.counts)


def release_range(study: Study, epsilon: Fraction, rows: int, noise: Noise) -> OutcomeRange:
    """Choose a range that leaves about ``min(52/ε, n/20)`` outcomes outside on either side.

    So many that all edges beyond the data together are an unlikely choice: each has a weight of
    exp(−13) relative to the best, and there are 16384 of them. Fewer would make the choice nearly
    uniform whenever the bulk is a small part of the range, which is when clipping matters.

    Neighbours: one person's outcomes replaced. Each bound is chosen by the exponential mechanism
    over the edges of 16384 cells, the score being minus the distance between the number of
    outcomes beyond an edge and the wanted number; a person's m rows move every score by at most m.
    Cost: ε, half for either bound. Proof: docs/proofs/calibrated.md.
    """
    counts = study.fold(_histogram_kernel(), title="outcome range").counts
    side = epsilon / 2
    wanted = min(round(26 / float(side)), study.size // 20)
    above = [int(total) for total in np.append(counts[::-1].cumsum()[::-1], 0)]  # at or above edge
    below = [int(total) for total in np.append(0, counts.cumsum())]
    edges = [
        noise.choose(
            step, [-abs(beyond - wanted) for beyond in totals], sensitivity=rows, epsilon=side
        )
        for step, totals in (("upper bound", above), ("lower bound", below))
    ]
    first, last = min(edges), max(edges)
    if first == last:  # an empty range would leave nothing to estimate
        first, last = max(first - 1, 0), min(last + 1, _CELLS)
    shift = OUTCOME_BITS - _CELL_BITS
    return OutcomeRange(first << shift, last << shift)


def _histogram_kernel() -> Callable[[Block], _Histogram]:
    def kernel(block: Block) -> _Histogram:
        if block.outcome is None:
            msg = "the private phase needs a study with outcomes"
            raise TypeError(msg)
        cells = np.minimum(block.outcome >> (OUTCOME_BITS - _CELL_BITS), _CELLS - 1)
        return _Histogram(np.bincount(cells, minlength=_CELLS).astype(np.int64))

    return kernel
