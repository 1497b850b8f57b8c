"""Optional tighter outcome bounds at label level, chosen privately before the estimate.

Declared bounds are often far wider than the bulk of the outcomes, and noise follows the bounds. A
small share of ε buys a range that leaves only a few outcomes outside; those are clipped to it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Integers
from private_ate.domain import Interval
from private_ate.methods.calibrated.options import ClipPlan
from private_ate.methods.calibrated.settings import NoisyCount
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS
from private_ate.request import Request
from private_ate.study import Block, Study

__all__ = [
    "DECLARED_RANGE", "OutcomeRange", "outcomes_of", "release_clip", "release_range",
]  # fmt: skip

_CELL_BITS: Final = 14  # candidates for either bound: the edges of 2¹⁴ equal cells
_CELLS: Final = 1 << _CELL_BITS
_CLIPPED: Final = "outcomes were clipped to a privately chosen range; no interval covers that bias"
_CENTRED: Final = (
    "the effect and its interval are those of outcomes clipped to 'clipped_to', eight "
    "outcome_sd around a private median; 'outcomes_beyond' tells how many were beyond"
)
_COUNTING: Final = Fraction(1, 5)  # of the budget, for the number of outcomes beyond the range


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

    def middle_in(self, bounds: Interval) -> float:
        """Return the middle in units of the outcome."""
        return bounds.low + bounds.width * self.middle / OUTCOME_STEPS

    def centre(self, outcome: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Clip outcomes and count them from the middle of the range."""
        return np.clip(outcome, self.low, self.high) - np.int32(self.middle)


DECLARED_RANGE: Final = OutcomeRange(0, OUTCOME_STEPS)


def release_range(study: Study, epsilon: Fraction, rows: int, noise: Noise) -> OutcomeRange:
    """Choose a range that leaves about ``min(52/ε, n/20)`` outcomes outside on either side.

    So many that all edges beyond the data together are an unlikely choice: each has a weight of
    exp(−13) relative to the best, and there are 16384 of them. Fewer would make the choice nearly
    uniform whenever the bulk is a small part of the range, which is when clipping matters.

    Neighbours: one person's outcomes replaced, or missing in one of both tables: rows without an
    outcome are not counted. Each bound is chosen by the exponential mechanism
    over the edges of 16384 cells, the score being minus the distance between the number of
    outcomes beyond an edge and the wanted number; a person's m rows move every score by at most m.
    Cost: ε, half for either bound. Proof: docs/proofs/calibrated.md.
    """
    counts = _histogram(study, _CELL_BITS)
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


def release_centred_range(
    study: Study, width: int, epsilon: Fraction, rows: int, noise: Noise
) -> tuple[OutcomeRange, NoisyCount]:
    """Put a range of the given width around a private median of the outcomes.

    Four fifths of ε choose the cell that holds the median, among cells not wider than a sixteenth
    of the range: there are few of them, so that even a small study finds its centre. The rest pays
    for the number of outcomes beyond the range, which are counted as its ends.

    Neighbours: one person's outcomes replaced. The cell is chosen by the exponential mechanism,
    the score being minus the number of outcomes by which it misses the median: ``min(n/2 − below
    the cell, up to its end − n/2, 0)``. A person's m rows move both counts, hence every score, by
    at most m, and the number beyond by at most m. Rows without an outcome are not counted; where
    who lacks one is private, n is private too and scores are doubled, so that halves are whole:
    they move by at most 2m. Cost: ε. Proof: docs/proofs/calibrated.md.
    """
    bits = min(_CELL_BITS, max(1, (16 * OUTCOME_STEPS // width - 1).bit_length()))
    counts = _histogram(study, bits)
    below = [int(total) for total in np.append(0, counts.cumsum())]
    counting = epsilon * _COUNTING
    unit = 2 if study.domain.outcome.missing == "private" else 1
    half = unit * below[-1] // 2
    cell = noise.choose(
        "outcome centre",
        [min(half - unit * first, unit * last - half, 0) for first, last in pairwise(below)],
        sensitivity=unit * rows,
        epsilon=epsilon - counting,
    )
    center = (2 * cell + 1) << (OUTCOME_BITS - bits - 1)
    low = min(max(center - width // 2, 0), OUTCOME_STEPS - width)
    kept = OutcomeRange(low, low + width)

    def beyond(block: Block) -> int:
        outcome = outcomes_of(block)[block.observed]
        return int(np.count_nonzero((outcome < kept.low) | (outcome > kept.high)))

    outside = study.fold(beyond, title="outcome range")
    halves = noise.laplace("outcomes beyond", [outside], sensitivity=rows, epsilon=counting)[0]
    found = min(max(round(halves / 2), 0), study.size)
    return kept, NoisyCount(found, -math.log(0.05) * rows / float(counting))


def outcomes_of(block: Block) -> npt.NDArray[np.int32]:
    """Return the outcomes of all rows of a block, which the private phase needs."""
    if block.outcome is None:
        msg = "the private phase needs a study with outcomes"
        raise TypeError(msg)
    return block.outcome


def _histogram(study: Study, bits: int) -> Integers:
    """Count the outcomes that are there in equal cells of the declared range."""
    last = (1 << bits) - 1

    def kernel(block: Block) -> Integers:
        outcome = outcomes_of(block)[block.observed]
        cells = np.clip(outcome >> (OUTCOME_BITS - bits), 0, last)
        return np.bincount(cells, minlength=last + 1).astype(np.int64)

    return study.fold(kernel, title="outcome range")


def release_clip(
    study: Study, plan: ClipPlan, request: Request, noise: Noise
) -> tuple[OutcomeRange, dict[str, Any]]:
    """Spend the plan's share on a range; return it and what a release says about it."""
    if not plan.share:
        return DECLARED_RANGE, {}
    epsilon, rows = request.epsilon * plan.share, request.rows_per_person
    shown: dict[str, Any] = {"notes": (_CLIPPED,)}
    if plan.width is None:
        kept = release_range(study, epsilon, rows, noise)
    else:
        kept, beyond = release_centred_range(study, plan.width, epsilon, rows, noise)
        shown = {"outcomes_beyond": beyond, "notes": (_CENTRED,)}
    bounds = study.domain.bounds
    low, high = (bounds.low + bounds.width * end / OUTCOME_STEPS for end in (kept.low, kept.high))
    return kept, {**shown, "clipped_to": (low, high)}
