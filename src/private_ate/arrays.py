"""Names for arrays by what they hold, the same in every module; and scattered numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Bits", "Codes", "Floats", "Indices", "Integers", "Words", "scatter"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
Bits = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]  # of arms
Words = npt.NDArray[np.uint64]


def scatter(start: int, size: int) -> Floats:
    """Return a fixed number in [0, 1) for each of a run of rows, scattered like random ones.

    Every k-th row would meet any rhythm in the order of rows; the mixing is SplitMix64's.
    """
    word = np.arange(start + 1, start + size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((word ^ (word >> np.uint64(31))) >> np.uint64(11)) / 2.0**53
