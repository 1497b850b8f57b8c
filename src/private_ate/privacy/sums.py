"""Fixed-point integers: outcomes and weights on power-of-two grids, added without rounding.

A record's outcome is clipped and rounded once, by itself; from there on everything is integer
arithmetic, so a sum does not depend on the order of rows or on the size of blocks and replacing
one record moves it by exactly what the record says.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "OUTCOME_BITS",
    "OUTCOME_STEPS",
    "WEIGHT_BITS",
    "quantize_outcomes",
    "quantize_weights",
    "weighted_sum",
]

OUTCOME_BITS: Final = 30
OUTCOME_STEPS: Final = 1 << OUTCOME_BITS  # steps across the declared range of the outcome
WEIGHT_BITS: Final = 24
_HALF: Final = 16
_EXACT_ROWS: Final = 1 << 14

Integers = npt.NDArray[np.int64]


def quantize_outcomes(
    values: npt.NDArray[np.float64], low: float, high: float, missing: float
) -> npt.NDArray[np.int32]:
    """Clip outcomes to ``[low, high]`` and put them on the grid ``{0, …, 2³⁰}``.

    NaN takes the declared ``missing`` value; infinities are clipped like any other number.
    """
    half_width = high / 2 - low / 2  # halves keep it finite for any pair of finite bounds
    if not half_width > 0:
        return np.zeros(values.shape, dtype=np.int32)
    filled = np.where(np.isnan(values), missing, values)
    share = (np.clip(filled, low, high) / 2 - low / 2) / half_width
    steps = np.rint(np.clip(share, 0.0, 1.0) * OUTCOME_STEPS)
    return steps.astype(np.int32)


def quantize_weights(weights: npt.NDArray[np.float64]) -> Integers:
    """Put weights on the grid of 2⁻²⁴."""
    return np.rint(weights * (1 << WEIGHT_BITS)).astype(np.int64)


def weighted_sum(weights: Integers, values: npt.NDArray[np.integer]) -> int:
    """Return ``Σ weight·value`` exactly, whatever its size.

    Weights are split in halves so that a product with a 31-bit value and the sum over a block
    stay below 2⁶²; blocks are added as Python integers.
    """
    largest = int(np.abs(weights).max(initial=0))
    if largest >> _HALF >= 1 << 17:
        pairs = zip(weights.tolist(), values.tolist(), strict=True)
        return sum(weight * value for weight, value in pairs)
    total = 0
    for first in range(0, weights.size, _EXACT_ROWS):
        block = slice(first, first + _EXACT_ROWS)
        weight, value = weights[block], values[block].astype(np.int64)
        total += int((weight >> _HALF) @ value) << _HALF
        total += int((weight & ((1 << _HALF) - 1)) @ value)
    return total
