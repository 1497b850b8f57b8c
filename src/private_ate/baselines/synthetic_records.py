"""Records as small integer codes for the synthesisers, and what both synthesisers share.

Numbers fall into bins of equal width between their declared bounds, a group of category columns
is one column of labels, the treatment has two codes. Where no label is declared for undeclared and
missing ones, a further code stands for them. All of it is public. Effects are matched on the
synthetic records.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from private_ate.arguments import one_of, real_number, settle, whole_number
from private_ate.arrays import Integers
from private_ate.baselines.steps import require_positive_delta
from private_ate.domain import Categories, Domain
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import fit_propensity
from private_ate.privacy.entropy import Generator
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS
from private_ate.settings import Settings
from private_ate.study import Block, Study

__all__ = [
    "Adjacency",
    "Clock",
    "NeighbourRule",
    "RecordCoding",
    "default_bins",
    "matched_effect_of",
    "report_progress",
    "rows_for",
    "settle_shared_options",
    "synthetic_estimate",
]

_ROWS_TOGETHER = 2048  # rows whose indicator matrix is held at once
Adjacency = Literal["replace", "add_remove"]
_FEWEST_ROWS = 20_000  # synthetic rows cost nothing and small tables distort the marginals
_MOST_ROWS = 1_000_000  # a noisy total can be anything


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

    def count_pairs(self, block: Block) -> Integers:
        """Count all pairs of codes of a block, by a product of indicators; (codes, codes)."""
        codes = self.codes(block) + np.array(self.starts[:-1])
        total = np.zeros((self.starts[-1], self.starts[-1]))
        for first in range(0, len(codes), _ROWS_TOGETHER):
            some = codes[first : first + _ROWS_TOGETHER]
            marked = np.zeros((len(some), self.starts[-1]), dtype=np.float32)
            np.put_along_axis(marked, some, 1.0, axis=1)
            total += marked.T @ marked  # counts below 2²⁴ are exact in single precision
        return total.astype(np.int64)

    def count_tables(self, study: Study, wanted: Sequence[tuple[int, ...]]) -> list[Integers]:
        """Count the flat contingency tables of the wanted sets of columns in one pass."""
        shapes = [tuple(self.sizes[place] for place in places) for places in wanted]
        ends = np.cumsum([math.prod(shape) for shape in shapes])

        def kernel(block: Block) -> Integers:
            codes = self.codes(block)
            found = []
            for places, shape in zip(wanted, shapes, strict=True):
                index = np.ravel_multi_index(tuple(codes[:, place] for place in places), shape)
                found.append(np.bincount(index, minlength=math.prod(shape)))
            return np.concatenate(found)

        return np.split(study.fold(kernel), ends[:-1])

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


@dataclass(frozen=True, slots=True)
class NeighbourRule:
    """Which data sets are neighbours, and how far a table of counts moves between them.

    Under replace-one a record leaves one cell and enters another: L1 distance 2, squared L2
    distance 2, and n is public. Under add/remove-one it enters or leaves: 1, 1, n is private.
    """

    adjacency: Adjacency

    def __post_init__(self) -> None:
        one_of("adjacency", self.adjacency, ("replace", "add_remove"))

    @property
    def replaces(self) -> bool:
        """Whether n is public."""
        return self.adjacency == "replace"

    @property
    def distance(self) -> int:
        """The L1 distance of a table; also its squared L2 distance."""
        return 2 if self.replaces else 1

    @property
    def text(self) -> str:
        """What the release says; empty for the usual replace-one."""
        return "" if self.replaces else "add/remove-one: one unit's record is present or absent"


@dataclass(frozen=True, slots=True)
class Clock:
    """A limit on running time, asked only between steps whose inputs are released."""

    deadline: float | None

    @classmethod
    def start(cls, seconds: float | None) -> Clock:
        """Start the clock."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.deadline is not None and time.monotonic() > self.deadline


def settle_shared_options(options: Any, method: str) -> None:  # noqa: ANN401  # of either method
    """Check the options that both synthesisers have and write them back; for ``__post_init__``.

    ``None`` leaves the number of bins to ε, and the time without a limit.
    """
    NeighbourRule(options.adjacency)
    for name in ("bins", "outcome_bins"):
        count = getattr(options, name)
        if count is not None:
            settle(options, **{name: whole_number(name, count, 2, 64)})
    if options.time_limit is not None:
        settle(options, time_limit=real_number("the time limit", options.time_limit, 0, 1e6))
    require_positive_delta(options.delta, method)


def default_bins(epsilon: Fraction, bins: int | None, outcome_bins: int | None) -> tuple[int, int]:
    """Return the bins of covariates and outcome: 4 and 8 up to ε = 1.5, 8 and 16 above."""
    few = epsilon <= Fraction(3, 2)
    return bins or (4 if few else 8), outcome_bins or (8 if few else 16)


def rows_for(total: float) -> int:
    """Return how many synthetic rows to make for a released total."""
    return round(min(max(total, _FEWEST_ROWS), _MOST_ROWS))


def matched_effect_of(study: LocalStudy, neighbors: int) -> float:
    """Match synthetic records on their propensity score; no effect if an arm is empty.

    Works on released records only, so it may look at them as it likes.
    """
    if not 0 < np.count_nonzero(study.treatment) < study.size:
        return 0.0
    public = study.public()
    pool = public.pool(fit_propensity(public, 1.0 / study.size).coordinates)
    weights = pool.match_sharing_ties(neighbors)
    return study.effect(weights) * study.domain.bounds.width / study.size


def synthetic_estimate(
    effect: float, settings: Settings, neighbours: NeighbourRule, total: float, delta: Fraction
) -> Estimate:
    """Return an effect in synthetic records; n is the released total where it is private."""
    size = None if neighbours.replaces else max(1, round(total))
    return replace(
        Estimate.of(Quantity(effect), settings),
        delta=delta, adjacency=neighbours.text, size=size,
    )  # fmt: skip


def report_progress(study: Study, title: str, done: int, total: int) -> None:
    """Say how far a method is, where somebody watches."""
    progress = getattr(study, "progress", None)
    if progress is not None:
        progress(title, done, total)
