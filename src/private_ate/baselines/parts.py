"""Two parts of the rows, chosen by a hash of the row index and never by a record.

A row is in one part, so what is released from one part costs nothing to the rows of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.domain import Domain
from private_ate.privacy.entropy import Entropy
from private_ate.study import Block, Study, Summable

__all__ = ["Part", "split_rows"]

S = TypeVar("S", bound=Summable)
Bits = npt.NDArray[np.bool_]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one part as a study of their own, covariates rescaled to [−1, 1].

    ``size`` is at least one so that an empty part, which only a tiny n can bring about, still has
    means (of nothing, zero); whether it ``is_empty`` is public.
    """

    study: Study
    salt: int
    threshold: int
    training: bool
    size: int
    is_empty: bool

    @property
    def domain(self) -> Domain:
        """The declared domain."""
        return self.study.domain

    @property
    def dimension(self) -> int:
        """The number of encoded covariates (d)."""
        return self.study.dimension

    def public(self) -> Self:
        """Parts hold private rows; there is no public view of them."""
        msg = "a part of the rows has no public view"
        raise TypeError(msg)

    def fold(self, kernel: Callable[[Block], S], *, title: str = "pass over a part") -> S:
        """Return the sum of the kernel over this part's rows."""
        return self.study.fold(lambda block: kernel(self._rows(block)), title=title)

    def _rows(self, block: Block) -> Block:
        index = np.arange(block.first, block.first + block.treatment.size, dtype=np.uint64)
        mine = _in_training(index, self.salt, self.threshold) == self.training
        outcome = None if block.outcome is None else block.outcome[mine]
        return Block(2.0 * block.covariates[mine] - 1.0, block.treatment[mine], outcome)


def split_rows(study: Study, share: float, entropy: Entropy) -> tuple[Part, Part]:
    """Split the rows at random into a training and an evaluation part of public sizes."""
    salt = int.from_bytes(entropy.draw(8))
    threshold = round(share * 2**32)
    training = 0
    for first in range(0, study.size, _CHUNK):
        index = np.arange(first, min(first + _CHUNK, study.size), dtype=np.uint64)
        training += int(np.count_nonzero(_in_training(index, salt, threshold)))
    evaluation = study.size - training
    return (
        Part(study, salt, threshold, True, max(training, 1), training == 0),
        Part(study, salt, threshold, False, max(evaluation, 1), evaluation == 0),
    )


def _in_training(index: npt.NDArray[np.uint64], salt: int, threshold: int) -> Bits:
    """Hash the indices (splitmix64) and compare the upper half of the bits."""
    state = (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    chosen: Bits = ((state ^ (state >> np.uint64(31))) >> np.uint64(32)) < np.uint64(threshold)
    return chosen
