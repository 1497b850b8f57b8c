"""Cells along a private score: which one a row falls into, and counts and sums of each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from private_ate.arrays import Floats, Integers
from private_ate.models.folds import by_chunks
from private_ate.models.private_score import Scaling
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, OUTCOME_STEPS, noise_bits
from private_ate.study import Added, Block, Study

__all__ = [
    "CellCounts", "CellNoise", "OneCell", "Partition", "Strata", "release_cells", "release_strata",
]  # fmt: skip


_COUNT_BITS: Final = 20  # counts are released on the grid 2⁻²⁰
_MAD_TO_SPREAD: Final = 1.2533  # the standard deviation of a normal over its mean deviation


@dataclass(frozen=True, slots=True)
class CellCounts:
    """Released counts and outcome sums per arm and cell; sums in units of the declared range."""

    treated: Floats
    control: Floats
    treated_sum: Floats
    control_sum: Floats


@dataclass(frozen=True, slots=True)
class CellNoise:
    """Laplace scales of the counts and sums, the range of outcomes and the number of rows."""

    count_scale: float
    sum_scale: float
    width: float
    size: float


@dataclass(frozen=True, slots=True)
class CellRows:
    """Cells, arms and centred outcomes of a run of rows, outcomes in steps of 2⁻³⁰."""

    cell: npt.NDArray[np.intp]
    treated: npt.NDArray[np.bool_]
    outcome: Floats


class Partition(Protocol):
    """A map from rows to cells that looks at one row at a time."""

    @property
    def count(self) -> int:
        """The number of cells (G)."""

    @property
    def half_range(self) -> int:
        """The largest size of an outcome, in steps of 2⁻³⁰."""

    def rows(self, block: Block) -> CellRows:
        """Return the cells and outcomes of a block."""


@dataclass(frozen=True, slots=True)
class OneCell:
    """All rows in one cell: no adjustment."""

    count: int = 1
    half_range: int = OUTCOME_STEPS // 2

    def rows(self, block: Block) -> CellRows:
        """Return the rows with the middle of the range as zero."""
        return CellRows(
            np.zeros(block.treatment.size, dtype=np.intp), block.treatment, _centred(block)
        )


@dataclass(frozen=True, slots=True)
class Strata:
    """Cells of equal probability under a normal score.

    Attributes
    ----------
    slopes : array, shape (d,)
        Weights of the score, without the intercept.
    centre, spread : float
        The score's released mean and standard deviation.
    """

    scaling: Scaling
    slopes: Floats
    count: int
    centre: float = 0.0
    spread: float = 1.0

    @property
    def half_range(self) -> int:
        """The largest size of an outcome, in steps of 2⁻³⁰."""
        return OUTCOME_STEPS // 2

    def score(self, features: Floats) -> Floats:
        """Return the linear score; equal rows get equal scores, wherever they stand."""
        return _linear(self.slopes, features[1:])

    def rows(self, block: Block) -> CellRows:
        """Return the cells, and outcomes with the middle of the range as zero."""
        features = self.scaling.features(block)
        place = ndtr((self.score(features) - self.centre) / self.spread)
        cell = np.minimum((self.count * place).astype(np.intp), self.count - 1)
        return CellRows(cell, block.treatment, _centred(block))


@dataclass(frozen=True, slots=True)
class _Counts(Added):
    """Exact counts and outcome sums by arm and cell: controls first, shape (2·cells,)."""

    rows: Integers
    sums: Integers


def release_strata(
    study: Study, strata: Strata, noise: Noise, *, epsilon: Fraction, changes: int
) -> Strata:
    """Release the score's mean and mean deviation and place the cells by them.

    Neighbours: ``changes`` rows replaced, given the released weights. Sensitivity: a score lies
    in ±‖w‖₁ and a deviation is clipped to [0, R₂], both in units of that bound; half of ε each.
    Proof: docs/proofs/baselines.md.
    """
    norm = float(np.linalg.norm(strata.slopes))
    reach = float(np.abs(strata.slopes).sum())
    furthest = min(3 * norm, 2 * reach)
    bits = noise_bits(changes, epsilon / 2)
    unit = study.size << (bits + 1)

    def mean_kernel(block: Block) -> int:
        score = strata.score(strata.scaling.features(block)) / reach
        return _quantized(np.clip(score, -1.0, 1.0) * block.shares, bits)

    total = study.fold(by_chunks(mean_kernel), title="score")
    noisy = noise.laplace(
        "score mean", [total], sensitivity=2 * changes << bits, epsilon=epsilon / 2
    )
    centre = reach * min(max(noisy[0] / unit, -1.0), 1.0)

    def deviation_kernel(block: Block) -> int:
        score = strata.score(strata.scaling.features(block))
        away = np.clip(np.abs(score - centre) / furthest, 0.0, 1.0)
        return _quantized(away * block.shares, bits)

    total = study.fold(by_chunks(deviation_kernel), title="score")
    noisy = noise.laplace("score spread", [total], sensitivity=changes << bits, epsilon=epsilon / 2)
    spread = min(max(_MAD_TO_SPREAD * furthest * noisy[0] / unit, 0.05 * norm), furthest)
    return Strata(strata.scaling, strata.slopes, strata.count, centre, spread)


def release_cells(
    study: Study,
    partition: Partition,
    noise: Noise,
    *,
    count_epsilon: Fraction,
    sum_epsilon: Fraction,
    changes: int,
) -> CellCounts:
    """Release counts and outcome sums of every arm and cell.

    Neighbours: ``changes`` rows replaced, given the cells. Sensitivity (L1): a row leaves one
    count and enters another, ``2·changes``, or less if it takes no part or counts by a sampling
    weight; it moves the sums by the range of outcomes at most, because outcomes are centred:
    ``|y − y'|`` in one sum or ``|y| + |y'|`` in two. Proof: docs/proofs/baselines.md.
    """
    exact = _count_cells(study, partition)
    rows = noise.laplace(
        "cell counts",
        exact.rows.tolist(),
        sensitivity=2 * changes << _COUNT_BITS,
        epsilon=count_epsilon,
    )
    sums = noise.laplace(
        "cell sums",
        exact.sums.tolist(),
        sensitivity=2 * partition.half_range * changes,
        epsilon=sum_epsilon,
    )
    counts = np.array([value / (1 << (_COUNT_BITS + 1)) for value in rows]).reshape(2, -1)
    totals = np.array([value / (1 << (OUTCOME_BITS + 1)) for value in sums]).reshape(2, -1)
    return CellCounts(counts[1], counts[0], totals[1], totals[0])


def _count_cells(study: Study, partition: Partition) -> _Counts:
    """Count rows that take part and add their outcomes by arm and cell, exactly.

    Counts are in steps of 2⁻²⁰; with sampling weights both are rounded row by row.
    """
    size = 2 * partition.count

    def kernel(block: Block) -> _Counts:
        rows = partition.rows(block)
        place = rows.cell + partition.count * rows.treated
        # At most 2¹² integers below 2³⁰ are exact in doubles; 2³³ of them fit into 64 bits.
        counted = block.shares
        sums = np.bincount(place, weights=np.rint(rows.outcome * counted), minlength=size)
        steps = np.rint(counted * float(1 << _COUNT_BITS))
        counts = np.bincount(place, weights=steps, minlength=size)
        return _Counts(counts.astype(np.int64), sums.astype(np.int64))

    return study.fold(by_chunks(kernel), title="cells")


def _quantized(values: Floats, bits: int) -> int:
    return int(np.rint(values * float(1 << bits)).astype(np.int64).sum())


def _centred(block: Block) -> Floats:
    if block.outcome is None:
        msg = "this method needs a study with outcomes"
        raise TypeError(msg)
    centred: Floats = block.outcome - np.float64(OUTCOME_STEPS // 2)
    return centred


def _linear(slopes: Floats, features: Floats) -> Floats:
    # Feature by feature: a matrix product may round equal rows differently.
    linear = np.zeros(features.shape[1])
    for slope, feature in zip(slopes, features, strict=True):
        linear += slope * feature
    return linear
