"""Levels of candidates for a trimmed mean: scores of an exponential mechanism, in exact integers.

Neighbours change a few of N numbers. A candidate's *level* is how many ranks the window of the
mean must be shifted before its mean passes the candidate; changing r numbers moves every level by
at most r, so that noise follows the spread of the numbers instead of their range. Proofs:
docs/proofs/blocks.md.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from private_ate.arrays import Integers
from private_ate.errors import NumericRangeError

__all__ = ["CentreRule"]

_LARGEST_SUM: Final = 1 << 62  # so that window sums and their differences stay within int64


@dataclass(frozen=True, slots=True)
class CentreRule:
    """What is public about a trimmed centre.

    Attributes
    ----------
    candidates : array of int64, shape (c,)
        What may be released, in ascending order and within ``±bound``.
    bound : int
        The numbers are clipped to ``±bound``.
    trim : int
        How many of the smallest and of the largest numbers the mean leaves out, if enough remain.
    """

    candidates: Integers
    bound: int
    trim: int

    def __post_init__(self) -> None:
        if self.bound < 1 or self.trim < 0 or self.candidates.size == 0:
            msg = "a centre needs candidates, a positive bound and a trim from 0"
            raise NumericRangeError(msg)
        if (self.candidates[1:] < self.candidates[:-1]).any():
            msg = "candidates for a centre are in ascending order"
            raise NumericRangeError(msg)
        if max(int(self.candidates[-1]), -int(self.candidates[0])) > self.bound:
            msg = "candidates for a centre lie within its bound"
            raise NumericRangeError(msg)

    def fingerprint(self) -> str:
        """Return a text that no other rule has."""
        digest = hashlib.sha256(self.candidates.astype("<i8").tobytes())
        return f"{digest.hexdigest()}/{self.bound}/{self.trim}"

    def window(self, size: int) -> int:
        """Return how many of the ordered numbers the mean takes (W); its ends are symmetric."""
        return max(size - 2 * self.trim, 2 - size % 2)

    def levels(self, values: Integers) -> Integers:
        """Return for each candidate the shift of the window that reaches it; exact.

        ``U_j`` is the mean of the window shifted up by j ranks, ``L_j`` that of the window shifted
        down, ranks outside counting as ``±bound``; the level of c is the least j with
        ``L_j ≤ c ≤ U_j``.
        """
        size = values.size
        window = self.window(size)
        if size < 1 or 3 * size * self.bound >= _LARGEST_SUM:
            msg = "too many numbers for an exact centre on this grid"
            raise NumericRangeError(msg)
        low = (size - window) // 2
        reach = size - low  # shifted by so many ranks the window holds the bound alone
        edge = np.full(reach, self.bound, dtype=np.int64)
        ordered = np.sort(np.clip(values.astype(np.int64), -self.bound, self.bound))
        sums = np.concatenate([[0], np.cumsum(np.concatenate([-edge, ordered, edge]))])
        shifts = np.arange(reach + 1)
        above, below = reach + low + shifts, reach + low - shifts
        upper = sums[above + window] - sums[above]
        lower = sums[below + window] - sums[below]
        # Means are few and candidates many and in order, so each mean is looked up among them:
        # U_j < W·c means c > ⌊U_j / W⌋, and W·c < L_j means c < ⌈L_j / W⌉.
        passed = np.searchsorted(self.candidates, upper // window, side="right")
        ahead = np.searchsorted(self.candidates, -(-lower // window), side="left")
        counts = np.arange(reach + 2)
        last = self.candidates.size
        up = np.repeat(counts, np.diff(passed, prepend=0, append=last))
        down = np.repeat(counts[::-1], np.diff(ahead[::-1], prepend=0, append=last))
        return np.maximum(up, down, out=up)
