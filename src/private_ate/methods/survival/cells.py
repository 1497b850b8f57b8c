"""A histogram of times and events for each arm, with noise.

A row's cell is a function of its time, its event and public numbers: an event in a bin, censored in
a bin, or observed beyond the horizon.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Codes, Floats, Integers
from private_ate.domain.outcome import HORIZON_STEPS, bins_of, happened, steps_of
from private_ate.methods.calibrated.clipping import outcomes_of
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.study import Block, MatchingStudy

__all__ = [
    "PublicSums", "ReleasedCells", "RowCounts", "cells_of", "count_present", "merge_strata",
    "one_stratum", "public_kernel", "release_cells",
]  # fmt: skip

# Weight of an arm in a stratum times ε over its largest weight. A judgement between two measured
# sizes: at 55 strata cost more than they repaired, at 139 they did not.
_SMALLEST_STRATUM: Final = 100.0
_LEAST_ROWS: Final = 20  # what the noisy size of an arm is held above


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How much each row counts in the histogram, and in which stratum it is.

    Attributes
    ----------
    weigh : callable
        Returns the integer weight of each row of a block in its own arm; 0 takes no part.
    unit : int
        The integer that stands for a weight of one.
    stratum : callable
        Returns the stratum of each row, from public columns alone.
    strata : int
        How many strata there are.
    """

    weigh: Callable[[Block], Integers]
    unit: int
    stratum: Callable[[Block], Codes]
    strata: int = 1

    def places(self, block: Block) -> Integers:
        """Return the place of each row's arm and stratum among all of them."""
        return block.arm.astype(np.int64) * self.strata + self.stratum(block)


@dataclass(frozen=True, slots=True)
class PublicSums:
    """Weights of every arm and stratum: their sum, squared sum and the largest; all integers.

    Attributes
    ----------
    totals, largest : array of int, shape (arms, strata)
        Sums and largest weights.
    squares : array, shape (arms, strata)
        Sums of squares.
    """

    totals: Integers
    squares: Floats
    largest: Integers

    def __add__(self, other: PublicSums) -> PublicSums:
        return PublicSums(
            self.totals + other.totals,
            self.squares + other.squares,
            np.maximum(self.largest, other.largest),
        )


@dataclass(frozen=True, slots=True)
class ReleasedCells:
    """The noisy histogram in units of weight.

    Attributes
    ----------
    counts : array, shape (arms, strata, cells)
        Noisy sums of weights.
    totals : array, shape (arms, strata)
        What they add up to: known where weights are public, else the sums of the noisy cells.
    effective : array, shape (arms, strata)
        How many rows of equal weight an arm's stratum amounts to.
    noises : list of NoiseDistribution
        The noise of a cell, by arm and stratum.
    """

    counts: Floats
    totals: Floats
    effective: Floats
    noises: list[list[NoiseDistribution]]

    @property
    def bins(self) -> int:
        """The number of bins (J)."""
        return int(self.counts.shape[-1] - 1) // 2

    def cell_variance(self, arm: int, stratum: int) -> float:
        """Return the variance of a cell's noise, in squared units of weight."""
        return self.noises[arm][stratum].variance


def one_stratum(block: Block) -> Codes:
    """Return one stratum for all rows."""
    return np.zeros(block.arm.size, dtype=np.uint8)


def count_present(block: Block) -> Integers:
    """Count every row that is present once."""
    return block.present.astype(np.int64)


def cells_of(codes: npt.NDArray[np.int32], bins: int) -> Integers:
    """Return the cell of each row: events by bin, censored by bin, beyond the horizon."""
    steps, ended = steps_of(codes), happened(codes)
    place = bins_of(steps, bins)
    within = np.where(ended, place, bins + place)
    return np.where((steps == HORIZON_STEPS) & ~ended, 2 * bins, within)


def public_kernel(counts: RowCounts, arms: int) -> Callable[[Block], PublicSums]:
    """Return a kernel that adds up public weights by arm and stratum."""

    def kernel(block: Block) -> PublicSums:
        weights, places = counts.weigh(block), counts.places(block)
        shape, size = (arms, counts.strata), arms * counts.strata
        largest = np.zeros(size, dtype=np.int64)
        np.maximum.at(largest, places, weights)
        squares: Floats = np.bincount(places, (weights / counts.unit) ** 2, size).astype(np.float64)
        # Sums of a block's integers are far below 2⁵³, so that floats hold them exactly.
        totals = np.bincount(places, weights.astype(np.float64), size).astype(np.int64)
        return PublicSums(totals.reshape(shape), squares.reshape(shape), largest.reshape(shape))

    return kernel


def merge_strata(counts: RowCounts, sums: PublicSums, epsilon: float) -> RowCounts:
    """Return the counts with the smallest strata merged until every arm is large in each.

    Strata without a row of any arm have no curve and are merged like others.
    """
    groups = [[stratum] for stratum in range(counts.strata)]
    largest = np.maximum(sums.largest.max(axis=1), 1)

    def size(group: list[int]) -> float:
        weight = sums.totals[:, group].sum(axis=1)
        return float((weight / largest).min()) * epsilon

    while len(groups) > 1:
        groups.sort(key=size)
        if size(groups[0]) >= _SMALLEST_STRATUM:
            break
        groups[:2] = [groups[0] + groups[1]]
    merged = np.zeros(counts.strata, dtype=np.uint8)
    for place, group in enumerate(sorted(groups, key=min)):
        merged[group] = place
    stratum = counts.stratum

    def code(block: Block) -> Codes:
        return np.asarray(merged[stratum(block)])

    return replace(counts, stratum=code, strata=len(groups))


def cell_kernel(counts: RowCounts, arms: int, bins: int) -> Callable[[Block], Integers]:
    """Return a kernel that adds up integer weights, shape (arms, strata, cells)."""
    width = 2 * bins + 1

    def kernel(block: Block) -> Integers:
        places = counts.places(block) * width + cells_of(outcomes_of(block), bins)
        size = arms * counts.strata * width
        sums = np.bincount(places, counts.weigh(block).astype(np.float64), size)
        return sums.astype(np.int64).reshape(arms, counts.strata, width)

    return kernel


def release_cells(
    study: MatchingStudy,
    counts: RowCounts,
    public: PublicSums | None,
    *,
    bins: int,
    moves: int,
    epsilon: Fraction,
    noise: Noise,
) -> ReleasedCells:
    """Release the histogram of times and events of all arms and strata.

    Neighbours: at label level one person's times and events replaced, at sample level whole
    records. Sensitivity: a row leaves one cell and enters one, so ``moves`` is twice the rows of a
    person, and each move changes one cell by at most the largest integer weight of its arm and
    stratum (1 without ``public`` weights). Cost: ε. Proof: Lemma 1 of docs/proofs/survival.md.
    """
    arms = study.domain.treatment.size
    exact = study.fold(cell_kernel(counts, arms, bins), title="times and events")
    largest = np.ones(exact.shape[:2], dtype=np.int64) if public is None else public.largest
    sizes = [[max(1, int(size)) for size in row] for row in largest]
    flat = noise.staircase_by_arm(
        "times and events",
        [int(value) for value in exact.ravel()],
        sensitivities=[size for row in sizes for size in row for _ in range(exact.shape[2])],
        moves=moves,
        epsilon=epsilon,
    )
    noisy = np.array([float(Fraction(value, 2 * counts.unit)) for value in flat])
    noisy = noisy.reshape(exact.shape)
    noises = [
        [NoiseDistribution("staircase", size / counts.unit, epsilon / moves) for size in row]
        for row in sizes
    ]
    if public is None:
        totals = np.maximum(noisy.sum(axis=2), _LEAST_ROWS)
        return ReleasedCells(noisy, totals, totals, noises)
    totals = public.totals / counts.unit
    return ReleasedCells(noisy, totals, totals**2 / np.maximum(public.squares, 1e-300), noises)
