"""Records as small integer codes for the synthesisers, and back again.

Numbers fall into bins of equal width between their declared bounds, a group of category columns
is one column of labels, the treatment has two codes. Where no label is declared for undeclared and
missing ones, a further code stands for them. All of it is public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from private_ate.arguments import whole_number
from private_ate.arrays import Integers
from private_ate.domain import Categories, Domain
from private_ate.engines.local import LocalStudy
from private_ate.privacy.entropy import Generator
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS
from private_ate.study import Block

__all__ = ["ContingencyTables", "PairCounts", "RecordCoding"]


_ROWS_TOGETHER = 2048  # rows whose indicator matrix is held at once


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Counts of all pairs of codes, shape (codes, codes); adds up over blocks."""

    counts: Integers

    def __add__(self, other: PairCounts) -> PairCounts:
        return PairCounts(self.counts + other.counts)


@dataclass(frozen=True, slots=True)
class ContingencyTables:
    """Flat contingency tables, one per asked set of columns; adds up over blocks."""

    tables: tuple[Integers, ...]

    def __add__(self, other: ContingencyTables) -> ContingencyTables:
        pairs = zip(self.tables, other.tables, strict=True)
        return ContingencyTables(tuple(mine + theirs for mine, theirs in pairs))


@dataclass(frozen=True, slots=True)
class RecordCoding:
    """The public coding: covariates in the order of the domain, then treatment, then outcome.

    Attributes
    ----------
    domain : Domain
        The declared domain.
    sizes : tuple of int
        Number of codes of each column.
    """

    domain: Domain
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, domain: Domain, bins: int, outcome_bins: int) -> RecordCoding:
        """Return the coding with the given numbers of bins for numbers and for the outcome."""
        for name, value in (("bins", bins), ("outcome_bins", outcome_bins)):
            whole_number(name, value, 2, 64)
        covariates = [
            _codes_of(kind) if isinstance(kind, Categories) else bins
            for kind in domain.covariates.values()
        ]
        outcome = 2 if domain.bounds.is_binary else outcome_bins
        return cls(domain, (*covariates, 2, outcome))

    @property
    def count(self) -> int:
        """The number of columns (k)."""
        return len(self.sizes)

    @property
    def treatment(self) -> int:
        """The place of the treatment."""
        return len(self.sizes) - 2

    @property
    def outcome(self) -> int:
        """The place of the outcome."""
        return len(self.sizes) - 1

    @property
    def starts(self) -> tuple[int, ...]:
        """Where each column's codes start among all codes, and their total number at the end."""
        return (0, *accumulate(self.sizes))

    def codes(self, block: Block) -> Integers:
        """Return the codes of a block, shape (rows, columns)."""
        coded = np.empty((block.treatment.size, self.count), dtype=np.int64)
        first = 0
        for place, kind in enumerate(self.domain.covariates.values()):
            size = self.sizes[place]
            if isinstance(kind, Categories):
                marks = block.covariates[:, first : first + len(kind.labels)]
                # A row without any mark has no declared label; the last code is theirs.
                coded[:, place] = np.where(marks.any(axis=1), marks.argmax(axis=1), size - 1)
                first += len(kind.labels)
            else:
                coded[:, place] = np.minimum(block.covariates[:, first] * size, size - 1)
                first += 1
        coded[:, self.treatment] = block.treatment
        outcome = np.zeros(1, np.int64) if block.outcome is None else block.outcome.astype(np.int64)
        size = self.sizes[self.outcome]
        coded[:, self.outcome] = np.minimum(outcome * size >> OUTCOME_BITS, size - 1)
        return coded

    def count_pairs(self, block: Block) -> PairCounts:
        """Count all pairs of codes of a block at once, as a product of indicator matrices."""
        codes = self.codes(block) + np.array(self.starts[:-1])
        total = np.zeros((self.starts[-1], self.starts[-1]))
        for first in range(0, len(codes), _ROWS_TOGETHER):
            some = codes[first : first + _ROWS_TOGETHER]
            marked = np.zeros((len(some), self.starts[-1]), dtype=np.float32)
            np.put_along_axis(marked, some, 1.0, axis=1)
            total += marked.T @ marked  # counts below 2²⁴ are exact in single precision
        return PairCounts(total.astype(np.int64))

    def count_tables(
        self, wanted: Sequence[tuple[int, ...]]
    ) -> Callable[[Block], ContingencyTables]:
        """Return the kernel that counts the flat tables of the wanted sets of columns."""

        def kernel(block: Block) -> ContingencyTables:
            codes = self.codes(block)
            return ContingencyTables(tuple(self._count(codes, places) for places in wanted))

        return kernel

    def _count(self, codes: Integers, places: tuple[int, ...]) -> Integers:
        shape = tuple(self.sizes[place] for place in places)
        index = np.ravel_multi_index(tuple(codes[:, place] for place in places), shape)
        return np.bincount(index, minlength=int(np.prod(shape)))

    def decode(self, codes: Integers, rng: Generator) -> LocalStudy:
        """Return synthetic records: numbers uniform within their bin, outcomes in its middle."""
        rows = len(codes)
        covariates = np.zeros((len(self.domain.features), rows))
        first = 0
        for place, kind in enumerate(self.domain.covariates.values()):
            size, column = self.sizes[place], codes[:, place]
            if isinstance(kind, Categories):
                marked = np.flatnonzero(column < len(kind.labels))
                covariates[first + column[marked], marked] = 1.0
                first += len(kind.labels)
            else:
                covariates[first] = (column + rng.random(rows)) / size
                first += 1
        size, column = self.sizes[self.outcome], codes[:, self.outcome]
        binary = self.domain.bounds.is_binary
        share = column / max(size - 1, 1) if binary else (column + 0.5) / size
        return LocalStudy(
            self.domain,
            covariates,
            codes[:, self.treatment] == 1,
            np.rint(share * OUTCOME_STEPS).astype(np.int32),
        )


def _codes_of(kind: Categories) -> int:
    return len(kind.labels) + (kind.other is None)
