"""Fixed-point integers: outcomes and weights on power-of-two grids, added without rounding.

A record's outcome is clipped and rounded once, by itself; from there on everything is integer
arithmetic, so a sum does not depend on the order of rows or on the size of blocks and replacing
one record moves it by exactly what the record says. What does not fit is refused and never wraps;
how much fits where is listed in docs/proofs/integers.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Integers
from private_ate.errors import NumericRangeError

__all__ = [
    "MOST_ROWS",
    "MOST_SORTED_ROWS",
    "OUTCOME_BITS",
    "OUTCOME_STEPS",
    "WEIGHT_BITS",
    "noise_bits",
    "quantize_outcomes",
    "quantize_weights",
    "require_rows",
    "weighted_sum",
]

MOST_ROWS: Final = 1 << 32  # rows whose counts, sums and moments add up in 64 bits
MOST_SORTED_ROWS: Final = (1 << 31) - 3  # rows that 32-bit places and uses can number

OUTCOME_BITS: Final = 30
OUTCOME_STEPS: Final = 1 << OUTCOME_BITS  # steps across the declared range of the outcome
WEIGHT_BITS: Final = 24
_LARGEST_WEIGHT: Final = 2.0**38  # its steps stay below 2⁶²
_HALF: Final = 16
_EXACT_ROWS: Final = 1 << 14
_FINEST_GRID: Final = 47  # 2¹⁴ values of a block, each at most 2⁴⁷ steps, stay below 2⁶²


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
    """Put weights below 2³⁸ in size on the grid of 2⁻²⁴; refuse larger ones and NaN."""
    if not _largest_size(weights) < _LARGEST_WEIGHT:
        msg = "a weight leaves the range of exact sums, 2^38: use fewer rows or more balanced arms"
        raise NumericRangeError(msg)
    return np.rint(weights * (1 << WEIGHT_BITS)).astype(np.int64)


def weighted_sum(weights: npt.NDArray[np.generic], values: npt.NDArray[np.integer]) -> int:
    """Return ``Σ weight·value`` exactly, whatever its size.

    Weights below 2³³ are split in halves so that a product with a 31-bit value and the sum over a
    block stay below 2⁶²; blocks are added as Python integers. Anything larger is all Python's.
    """
    if weights.dtype == object or not (_fits(weights, 33) and _fits(values, 31)):
        pairs = zip(weights.tolist(), values.tolist(), strict=True)
        return sum(weight * value for weight, value in pairs)
    total = 0
    for first in range(0, weights.size, _EXACT_ROWS):
        block = slice(first, first + _EXACT_ROWS)
        weight, value = weights[block].astype(np.int64), values[block].astype(np.int64)
        total += int((weight >> _HALF) @ value) << _HALF
        total += int((weight & ((1 << _HALF) - 1)) @ value)
    return total


def require_rows(rows: int, most: int = MOST_ROWS) -> None:
    """Refuse more rows than a method's integers can count; n is public at both levels."""
    if rows > most:
        msg = f"{rows} rows are more than the {most} that add up exactly here; use a part of them"
        raise NumericRangeError(msg)


def noise_bits(sensitivity: float, epsilon: Fraction) -> int:
    """Return the bits of a grid for values of unit size, at most 2⁻²⁰ of the noise scale.

    At least 24, so that rounding the values themselves is out of sight; never above 40 for the
    budgets that are allowed. From 48 on a block's sums could leave 64 bits: refused.
    """
    bits = max(24, 20 - math.floor(math.log2(sensitivity / float(epsilon))))
    if bits > _FINEST_GRID:
        msg = f"an epsilon of {float(epsilon):g} needs sums finer than 2^-{_FINEST_GRID}; use less"
        raise NumericRangeError(msg)
    return bits


def _largest_size(values: npt.NDArray[np.float64]) -> float:
    """Return the largest absolute value; NaN if there is one."""
    return max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))


def _fits(values: npt.NDArray[np.generic], bits: int) -> bool:
    """Say whether integers lie strictly between −2^bits and 2^bits."""
    if values.dtype.itemsize * 8 <= bits + 1:
        return True
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return max(-low, high) < 1 << bits
