"""Matching within declared cells, noise scaled to smooth sensitivity (after Koga et al. 2024).

Every unit's missing outcome is the mean of the other arm in its cell. How far one record can move
the estimate depends on the counts in the cells; a smooth upper bound on that, which is private
itself and is never shown, scales the noise. Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from private_ate.arguments import settle
from private_ate.arrays import Integers
from private_ate.baselines.steps import BaselineSettings, common_settings
from private_ate.domain import Categories, Domain
from private_ate.effects.estimate import Estimate, Quantity
from private_ate.errors import ArgumentError
from private_ate.methods.composition import options_of
from private_ate.privacy.accounting import DEFAULT_DELTA, noise_delta, smoothing_rate
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS
from private_ate.request import Request
from private_ate.settings import ABSENT, Absent
from private_ate.study import Added, Block, MatchingStudy

__all__ = [
    "Cells",
    "SmoothMatchingOptions",
    "cell_kernel",
    "cells_of",
    "estimate_smooth_matching",
    "matched_effect",
    "release_matched_effect",
    "smooth_sensitivity",
]


_FINE = 34  # bits of the output grid below 2B/n, the least value of the smooth sensitivity
_SMALLEST_EPSILON = Fraction(1, 10**6)  # below it neighbouring scales are one float
_MOST_CELLS = 1 << 16
_MATCHED = "all n units (ATE); units without a match in their cell count as zero effect"
_COMPARED = "all n units, arms compared as they are (the ATE if treatment was random)"
_TOGETHER = 1 << 20  # pairs of a cell and a distance looked at together


@dataclass(frozen=True, slots=True)
class SmoothMatchingOptions:
    """Parameters of matching within cells.

    Attributes
    ----------
    cells : names of covariates or None
        Covariates that form the cells, numbers cut at the middle of their bounds, categories as
        they are. None takes the first two of the domain, three from n = 2000.
    delta : str or float
        δ of the guarantee; 0 uses Cauchy noise and is pure ε in idealized numerics.
    """

    cells: tuple[str, ...] | None = None
    delta: str | float = DEFAULT_DELTA

    def __post_init__(self) -> None:
        given: object = self.cells
        if isinstance(given, str):
            given = [name for name in given.split(",") if name]
        if given is not None:
            if not isinstance(given, tuple | list) or not all(isinstance(n, str) for n in given):
                msg = "cells are names of covariates, or none for the first of the domain"
                raise ArgumentError(msg)
            settle(self, cells=tuple(given))
        noise_delta(self.delta)


@dataclass(frozen=True, slots=True)
class Cells(Added):
    """Counts and outcome sums by cell and arm (control, treated), each of shape (cells, 2)."""

    counts: Integers
    sums: Integers


@dataclass(frozen=True, slots=True)
class MatchingCells:
    """Which covariates make up the cells, and how many cells there are."""

    covariates: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothMatchingSettings(BaselineSettings):
    """Settings of matching within cells, of which one makes the difference in means.

    Attributes
    ----------
    cells : covariates and count
        Which covariates make up the cells, and how many cells there are.
    noise : str
        What is said of the noise.
    """

    methods: ClassVar[tuple[str, ...]] = ("smooth_matching", "difference_in_means")

    cells: MatchingCells
    confidence: float
    budget: Mapping[str, float]
    noise: str
    population: str
    notes: tuple[str, ...] | Absent = ABSENT


def estimate_smooth_matching(study: MatchingStudy, request: Request, noise: Noise) -> Estimate:
    """Release the effect of matching within cells.

    Neighbours: one record replaced. Cost: (ε, δ), or ε with δ = 0.
    Proof: docs/proofs/baselines.md.
    """
    options = options_of(request, SmoothMatchingOptions, "smooth_matching")
    names = options.cells
    if names is None:
        names = tuple(study.domain.covariates)[: 2 if study.size < 2000 else 3]
    return release_matched_effect(study, request, noise, names, noise_delta(options.delta))


def release_matched_effect(
    study: MatchingStudy, request: Request, noise: Noise, names: tuple[str, ...], delta: Fraction
) -> Estimate:
    """Match within the cells of the named covariates and release the effect."""
    if request.epsilon < _SMALLEST_EPSILON:
        msg = "noise scaled to smooth sensitivity needs an epsilon of at least 1e-6"
        raise ArgumentError(msg)
    coding = cells_of(study.domain, names)
    cells = study.fold(cell_kernel(coding))
    beta = smoothing_rate(request.epsilon, delta) * (1 - 1e-6)  # slack for rounding S to the grid
    smooth = smooth_sensitivity(cells.counts, study.size, beta)
    # Rounding S to the grid must change its logarithm by far less than the slack left in β.
    fine = max(_FINE, math.ceil(24 - math.log2(beta)))
    scale = study.size << (fine - 1)  # steps per range of the outcome
    value = math.floor(matched_effect(cells, study.size) * scale)
    steps = math.ceil(smooth * (1 + 1e-9) * scale) + 1
    step = "matched effect"
    if delta:
        noisy = noise.smooth_laplace(
            step, value, smooth=steps, epsilon=request.epsilon, delta=delta
        )
    else:
        noisy = noise.smooth_cauchy(step, value, smooth=steps, epsilon=request.epsilon)
    ate = float(Fraction(noisy, 2 * scale) * Fraction(study.domain.bounds.width))
    settings = SmoothMatchingSettings(
        cells=MatchingCells(tuple(names), coding.count),
        noise="its scale depends on the records and is not shown",
        **{**common_settings(request, noise), "population": _MATCHED if names else _COMPARED},
    )
    numerics = "" if delta else "idealized numerics"
    return replace(
        Estimate.of(Quantity(ate), settings),
        delta=delta, numerics=numerics, adjusted=bool(names),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CellCoding:
    """Which encoded columns form a cell: (first column, number of levels) per covariate."""

    columns: tuple[tuple[int, int], ...]
    count: int


def cells_of(domain: Domain, names: tuple[str, ...]) -> CellCoding:
    """Return the public coding of cells by the named covariates."""
    places: dict[str, tuple[int, int]] = {}
    first = 0
    for name, kind in domain.covariates.items():
        levels = len(kind.labels) if isinstance(kind, Categories) else 1
        places[name] = (first, levels)
        first += levels
    unknown = [name for name in names if name not in places]
    if unknown:
        msg = f"cells are formed by covariates of the domain; {unknown[0]!r} is not one"
        raise ArgumentError(msg)
    columns = tuple(places[name] for name in names)
    count = math.prod(max(levels, 2) for _, levels in columns)
    if count > _MOST_CELLS:
        msg = f"these covariates form {count} cells; choose some that form fewer than {_MOST_CELLS}"
        raise ArgumentError(msg)
    return CellCoding(columns, count)


def cell_kernel(coding: CellCoding) -> Callable[[Block], Cells]:
    """Return the kernel that counts rows and adds outcomes by cell and arm."""

    def kernel(block: Block) -> Cells:
        cell = np.zeros(block.treatment.size, dtype=np.int64)
        for first, levels in coding.columns:
            if levels == 1:
                cell = 2 * cell + (block.covariates[:, first] >= 0.5)
            else:
                group = block.covariates[:, first : first + levels]
                cell = levels * cell + group.argmax(axis=1)
        index = 2 * cell + block.treatment
        outcome = np.zeros(cell.size) if block.outcome is None else block.outcome
        size = 2 * coding.count
        # A block's sums stay below 2⁵³, so the float sums are exact.
        sums = np.bincount(index, weights=outcome, minlength=size)
        counts = np.bincount(index, minlength=size)
        shape = (coding.count, 2)
        return Cells(counts.reshape(shape), sums.astype(np.int64).reshape(shape))

    return kernel


def matched_effect(cells: Cells, size: int) -> Fraction:
    """Return the exact effect in units of the outcome's range."""
    total = Fraction(0)
    for (control, treated), (low, high) in zip(
        cells.counts.tolist(), cells.sums.tolist(), strict=True
    ):
        if control and treated:
            total += (control + treated) * (Fraction(high, treated) - Fraction(low, control))
    return total / (size << OUTCOME_BITS)


def smooth_sensitivity(counts: Integers, size: int, beta: float) -> float:
    """Return ``max over k of exp(−βk)·A_k`` in units of the outcome's range.

    ``A_k = min(2, (2/n)(1 + max min(opposite + k, n − o)/o))`` with ``o = max(own − k, 1)``, over
    all cells and both arms, bounds the local sensitivity of every data set k replacements away.
    """
    pairs = np.unique(np.concatenate((counts, counts[:, ::-1])), axis=0)
    own, opposite = pairs[:, :1], pairs[:, 1:]
    stride = max(1, _TOGETHER // len(pairs))
    largest = 0.0
    for first in range(0, size + 1, stride):
        if largest >= 2.0 * math.exp(-beta * first):
            break
        distance = np.arange(first, min(first + stride, size + 1))
        nearest = np.maximum(own - distance, 1)
        ratio = (np.minimum(opposite + distance, size - nearest) / nearest).max(axis=0)
        bound = np.minimum(2.0, (2.0 / size) * (1.0 + ratio))
        largest = max(largest, float((np.exp(-beta * distance) * bound).max()))
    return largest
