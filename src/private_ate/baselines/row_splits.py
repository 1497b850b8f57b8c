"""Disjoint sets of rows, chosen by a hash of the row index and never by a record.

A row is in one set, so what is released from one set costs nothing to the rows of another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.domain import Domain
from private_ate.privacy.entropy import Entropy
from private_ate.study import Block, Study, Summable

__all__ = ["RowSplit", "all_rows", "row_hashes", "split_folds", "split_rows"]

S = TypeVar("S", bound=Summable)
_CHUNK = 1 << 20
_HASHES = 1 << 32  # a row's hash is a place below this


@dataclass(frozen=True, slots=True)
class RowSplit:
    """The rows of one part by themselves, covariates rescaled to [−1, 1].

    ``size`` is at least one so that an empty part, which only a tiny n can bring about, still has
    means (of nothing, zero); whether it ``is_empty`` is public.
    """

    study: Study
    salt: int
    low: int
    high: int
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

    def fold(self, kernel: Callable[[Block], S], *, title: str = "pass over a part") -> S:
        """Return the sum of the kernel over this part's rows."""
        return self.study.fold(lambda block: kernel(self._rows(block)), title=title)

    def _rows(self, block: Block) -> Block:
        places = row_hashes(block.first, block.treatment.size, self.salt)
        mine = (places >= self.low) & (places < self.high)
        outcome = None if block.outcome is None else block.outcome[mine]
        return Block(2.0 * block.covariates[mine] - 1.0, block.arm[mine], outcome)


def all_rows(study: Study) -> RowSplit:
    """Return all rows as one part, for methods that pay for every pass over them."""
    return RowSplit(study, 0, 0, _HASHES, max(study.size, 1), study.size == 0)


def split_rows(study: Study, share: float, entropy: Entropy) -> tuple[RowSplit, RowSplit]:
    """Split the rows at random into a training and an evaluation part of public sizes."""
    training, evaluation = _split(study, [0, round(share * _HASHES), _HASHES], entropy)
    return training, evaluation


def split_folds(study: Study, folds: int, entropy: Entropy) -> list[RowSplit]:
    """Split the rows at random into folds of nearly equal, public sizes."""
    return _split(study, [fold * _HASHES // folds for fold in range(folds + 1)], entropy)


def row_hashes(first: int, rows: int, salt: int) -> npt.NDArray[np.int64]:
    """Hash the indices of a run of rows to places below 2³² (splitmix64)."""
    state = np.arange(first + 1, first + 1 + rows, dtype=np.uint64)
    state = state * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(32)).astype(np.int64)


def _split(study: Study, edges: list[int], entropy: Entropy) -> list[RowSplit]:
    salt = int.from_bytes(entropy.draw(8))
    sizes = np.zeros(len(edges) - 1, dtype=np.int64)
    for first in range(0, study.size, _CHUNK):
        places = row_hashes(first, min(_CHUNK, study.size - first), salt)
        sizes += np.histogram(places, bins=edges)[0]
    return [
        RowSplit(study, salt, low, high, max(int(size), 1), int(size) == 0)
        for low, high, size in zip(edges[:-1], edges[1:], sizes, strict=True)
    ]
