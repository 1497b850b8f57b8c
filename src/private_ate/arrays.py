"""Names for arrays by what they hold, the same in every module."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Bits", "Floats", "Indices", "Integers", "Words"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
Bits = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
