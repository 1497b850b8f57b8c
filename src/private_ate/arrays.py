"""Names for arrays by what they hold, the same in every module."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Bits", "Codes", "Floats", "Indices", "Integers", "Words"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
Bits = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]  # of arms
Words = npt.NDArray[np.uint64]
