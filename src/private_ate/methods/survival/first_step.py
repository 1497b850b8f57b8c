"""The first step: a noisy histogram of times and events, its curves, and pseudo-values.

A row's cell is a function of its time, its event and public numbers: an event in a bin, censored in
a bin, or observed beyond the horizon. How far curves may be off is a parametric bootstrap: rows are
drawn from the released curves and noise from its own distribution, by fixed uniform variables, so
that bands are functions of what was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, cast

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrik

from private_ate.arrays import Codes, Floats, Integers
from private_ate.domain import Interval, Outcome, Survival
from private_ate.domain.outcome import HORIZON_STEPS, bins_of, happened, steps_of
from private_ate.methods.calibrated.clipping import outcomes_of
from private_ate.methods.survival.curves import (
    Hazards,
    PseudoCodes,
    PseudoTable,
    Quantity,
    at_edges,
    code_tables,
    expected_value,
    hazards_of,
    pseudo_table,
)
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.release.intervals import fixed_uniforms, noise_draws
from private_ate.request import Request
from private_ate.study import Added, Block, MatchingStudy

__all__ = [
    "CurveErrors", "FirstStep", "PseudoValues", "PublicSums", "RowCounts", "bootstrap_curve",
    "cells_of", "make_values", "merge_strata", "public_kernel", "release_cells",
    "release_curves",
]  # fmt: skip

# Weight of an arm in a stratum times ε over its largest weight. A judgement between two measured
# sizes: at 55 strata cost more than they repaired, at 139 they did not.
_SMALLEST_STRATUM: Final = 100.0
_LEAST_TOTAL: Final = 20.0  # what the noisy size of an arm is held above
_FEWEST_BINS: Final = 4
_MOST_BINS: Final = 20
DRAWS: Final = 200
_TABLES: Final = 20  # draws whose pseudo-values are made
_LEAST_ROWS: Final = 10  # of a bootstrap


def one_stratum(block: Block) -> Codes:
    """Return one stratum for all rows."""
    return np.zeros(block.arm.size, dtype=np.uint8)


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
    stratum: Callable[[Block], Codes] = one_stratum
    strata: int = 1

    def places(self, block: Block) -> Integers:
        """Return the place of each row's arm and stratum among all of them."""
        return block.arm.astype(np.int64) * self.strata + self.stratum(block)


@dataclass(frozen=True, slots=True)
class PublicSums(Added):
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
    largest: Integers = field(metadata={"add": np.maximum})


@dataclass(frozen=True, slots=True)
class ReleasedCells:
    """The noisy histogram of one arm and stratum, in units of weight.

    Attributes
    ----------
    counts : array, shape (2J + 1,)
        Noisy sums of weights.
    total : float
        What they add up to: known where weights are public, else the sum of the noisy cells.
    effective : float
        How many rows of equal weight it amounts to.
    noise : NoiseDistribution
        The noise of a cell.
    """

    counts: Floats
    total: float
    effective: float
    noise: NoiseDistribution


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
) -> list[list[ReleasedCells]]:
    """Release the histogram of times and events of all arms and strata.

    Neighbours: at label level one person's times and events replaced, at sample level whole
    records. Sensitivity: a row leaves one cell and enters one, so ``moves`` is twice the rows of a
    person, and each move changes one cell by at most the largest integer weight of its arm and
    stratum (1 without ``public`` weights). Cost: ε. Proof: Lemma 1 of docs/proofs/survival.md.
    """
    arms = study.domain.treatment.size
    exact = study.fold(cell_kernel(counts, arms, bins), title="times and events")
    largest = np.ones(exact.shape[:2], dtype=np.int64)
    if public is not None:
        largest = np.maximum(public.largest, 1)
    flat = noise.staircase_by_arm(
        "times and events",
        [int(value) for value in exact.ravel()],
        sensitivities=np.repeat(largest.ravel(), exact.shape[2]).tolist(),
        moves=moves,
        epsilon=epsilon,
    )
    noisy = np.array([float(Fraction(value, 2 * counts.unit)) for value in flat])
    noisy = noisy.reshape(exact.shape)

    def released(*place: int) -> ReleasedCells:
        size = int(largest[place]) / counts.unit
        total = effective = max(float(noisy[place].sum()), _LEAST_TOTAL)
        if public is not None:
            total = float(public.totals[place]) / counts.unit
            effective = total**2 / max(float(public.squares[place]), 1e-300)
        distribution = NoiseDistribution("staircase", size, epsilon / moves)
        return ReleasedCells(noisy[place], total, effective, distribution)

    return [[released(arm, one) for one in range(counts.strata)] for arm in range(arms)]


def bins_for(size: float) -> int:
    """Return how many bins balance noise with what interpolation within a bin leaves.

    ``size`` is an arm's weight times ε over the largest weight. The noise of S(t) is about
    1.9·√J/size and interpolation leaves about 0.3/J².
    """
    return int(np.clip(round((0.15 * size) ** 0.4), _FEWEST_BINS, _MOST_BINS))


@dataclass(frozen=True, slots=True)
class CurveErrors:
    """Simulated errors of one arm's released curve.

    Attributes
    ----------
    survival : array, shape (J + 1,)
        The released curve at the edges.
    errors : array, shape (draws, J + 1)
        Errors of the curve at the edges.
    """

    survival: Floats
    errors: Floats = field(repr=False)

    def half_each(self, coverage: float) -> Floats:
        """Return the half-widths that cover each edge by itself."""
        return np.asarray(np.quantile(np.abs(self.errors), _nominal(coverage), axis=0))

    def half_all(self, coverage: float) -> Floats:
        """Return the half-widths that cover all edges at once."""
        deviations = np.sqrt((self.errors**2).mean(axis=0))
        scale = np.maximum(deviations[1:], 1e-6)
        largest = (np.abs(self.errors[:, 1:]) / scale).max(axis=1)
        reach = float(np.quantile(largest, _nominal(coverage)))
        return np.concatenate([[0.0], reach * scale])


def _nominal(coverage: float) -> float:
    """Return the level of drawn errors whose quantile covers as often as asked.

    Drawn curves are shrunk twice and vary a little too little: at 95 %, bands covered 90 % of 600
    measured curves and single times 91 to 95 %. Two fifths of what may miss are kept back.
    """
    return 1 - 0.6 * (1 - coverage)


def bootstrap_curve(
    name: str, hazards: Hazards, total: float, effective: float, noise: NoiseDistribution
) -> tuple[CurveErrors, Hazards]:
    """Repeat the first step on rows drawn from one released curve; return errors and hazards."""
    bins = hazards.bins
    alive = np.concatenate([[1.0], np.exp(-np.cumsum(hazards.event + hazards.censoring) / bins)])
    leaves, both = -np.diff(alive), hazards.event + hazards.censoring
    share = np.where(both > 0, hazards.event / np.where(both > 0, both, 1.0), 0.5)
    chances = np.concatenate([leaves * share, leaves * (1.0 - share), alive[-1:]])
    rows = max(int(effective), _LEAST_ROWS)
    uniforms = fixed_uniforms(f"curve of {name}", 2 * chances.size, DRAWS)
    counts = _multinomial(rows, chances, uniforms[: chances.size])
    cells = counts * (total / rows) + noise_draws(noise, uniforms[chances.size :]).T
    drawn = hazards_of(cells, total, noise.variance)
    survival = at_edges(hazards.event)
    return CurveErrors(survival, at_edges(drawn.event) - survival), drawn


def _multinomial(rows: int, chances: Floats, uniforms: Floats) -> Floats:
    """Draw counts by conditional binomials, shape (draws, cells)."""
    left = np.full(uniforms.shape[1], float(rows))
    counts = np.zeros((uniforms.shape[1], chances.size))
    rest = 1.0
    for cell, chance in enumerate(chances[:-1].tolist()):
        odds = min(max(chance / max(rest, 1e-300), 1e-15), 1 - 1e-15)
        drawn = np.ceil(np.nan_to_num(bdtrik(uniforms[cell], np.maximum(left, 1.0), odds)))
        counts[:, cell] = np.clip(drawn, 0.0, left)
        left -= counts[:, cell]
        rest -= chance
    counts[:, -1] = left
    return counts


def second_order(table: PseudoTable, drawn: Hazards, quantity: Quantity) -> float:
    """Return the mean square of what the curves' errors leave in the mean of pseudo-values."""
    again = [pseudo_table(drawn.row(place), quantity) for place in range(_TABLES)]
    gaps = [expected_value(table, one) - table.mean for one in again]
    return float(np.mean(np.square(gaps)))


@dataclass(frozen=True, slots=True)
class StratumCurve:
    """The curves of one arm and stratum: what was released, and a bootstrap of it.

    Attributes
    ----------
    cells : ReleasedCells
        The noisy histogram.
    hazards, drawn : Hazards
        Released hazards, and those of a bootstrap.
    errors : CurveErrors
        Simulated errors of the survival curve.
    """

    cells: ReleasedCells
    hazards: Hazards
    drawn: Hazards
    errors: CurveErrors


@dataclass(frozen=True, slots=True)
class FirstStep:
    """What the first step released and what follows from it.

    Attributes
    ----------
    counts : RowCounts
        How rows were counted, and their strata.
    strata : int
        How many strata were declared; small ones are merged.
    curves : list of list of StratumCurve
        The curves by arm and stratum.
    """

    counts: RowCounts
    strata: int
    curves: list[list[StratumCurve]]

    @property
    def bins(self) -> int:
        """The number of bins (J)."""
        return self.curves[0][0].hazards.bins

    def shares(self, arm: int) -> Floats:
        """Return the share of each stratum in an arm's weight."""
        totals = np.array([one.cells.total for one in self.curves[arm]])
        return np.asarray(totals / totals.sum())

    def errors(self, arm: int) -> CurveErrors:
        """Return the errors of an arm's curve, a weighted mean of its strata's curves."""
        parts = [one.errors for one in self.curves[arm]]
        return CurveErrors(
            np.tensordot(self.shares(arm), [one.survival for one in parts], 1),
            np.tensordot(self.shares(arm), [one.errors for one in parts], 1),
        )

    def uncensored(self, arm: int) -> Floats:
        """Return the share that is not yet censored at every edge, over an arm's strata."""
        edges = [at_edges(one.hazards.censoring) for one in self.curves[arm]]
        return np.tensordot(self.shares(arm), edges, 1)


def release_curves(
    study: MatchingStudy,
    request: Request,
    counts: RowCounts,
    public: PublicSums | None,
    epsilon: Fraction,
    noise: Noise,
    *,
    strata: int = 1,
) -> FirstStep:
    """Release the histogram, turn it into curves, and simulate how far these may be off.

    Neighbours and sensitivity: see `release_cells`. Cost: ``epsilon``; the rest is post-processing.
    """
    outcome = cast("Survival", study.domain.outcome)
    size = study.size / study.domain.treatment.size
    if public is not None:
        size = float((public.totals / np.maximum(public.largest, 1)).min())
    released = release_cells(
        study, counts, public, bins=outcome.bins or bins_for(size * float(epsilon)),
        moves=2 * request.rows_per_person, epsilon=epsilon, noise=noise,
    )  # fmt: skip
    curves = [
        [_curve_of(f"arm {arm}, {stratum}", cells) for stratum, cells in enumerate(row)]
        for arm, row in enumerate(released)
    ]
    return FirstStep(counts, strata, curves)


def _curve_of(name: str, cells: ReleasedCells) -> StratumCurve:
    hazards = hazards_of(cells.counts, cells.total, cells.noise.variance).row(0)
    errors, drawn = bootstrap_curve(name, hazards, cells.total, cells.effective, cells.noise)
    return StratumCurve(cells, hazards, drawn, errors)


@dataclass(frozen=True, slots=True)
class PseudoValues:
    """Pseudo-values as an outcome: its bounds, the integers of every table, their variances.

    Attributes
    ----------
    outcome : Outcome
        The plain outcome that stands for the time to an event, in its own units.
    unit : float
        What a horizon, or a risk of one, is in these units.
    tables : list of list of PseudoTable
        Tables by arm and stratum.
    codes : PseudoCodes
        The same as integers.
    variances : array, shape (arms,)
        The variance of a row's pseudo-value in each arm, in squared horizons or risks.
    second_order : array, shape (arms,)
        The mean square of what the curves' errors leave in an arm's mean.
    """

    outcome: Outcome
    unit: float
    tables: list[list[PseudoTable]]
    codes: PseudoCodes
    variances: Floats
    second_order: Floats

    @property
    def deviation(self) -> float:
        """The largest standard deviation of an arm's pseudo-values, in units of the outcome."""
        return self.unit * float(np.sqrt(self.variances.max()))


def make_values(step: FirstStep, outcome: Survival, quantity: Quantity) -> PseudoValues:
    """Make pseudo-values of released curves; a function of what was released and declared.

    Variances take the released risk of an arm to be no smaller than its noise: curves without a
    released event would imply a variance of zero.
    """
    tables = [[pseudo_table(one.hazards, quantity) for one in row] for row in step.curves]
    codes = code_tables([one for row in tables for one in row])
    unit = outcome.horizon if quantity == "rmst" else 1.0
    plain = Outcome(
        outcome.column, Interval(unit * codes.low, unit * codes.high), outcome.missing,
        unit=outcome.unit if quantity == "rmst" else None,
    )  # fmt: skip
    variances, rests = np.zeros(len(tables)), np.zeros(len(tables))
    for arm, row in enumerate(step.curves):
        for share, one, table in zip(step.shares(arm), row, tables[arm], strict=True):
            spread = one.cells.noise.variance * one.cells.counts.size
            least = math.sqrt(spread) / max(one.cells.total, 1e-300)
            variances[arm] += (
                share * pseudo_table(one.hazards.with_least_risk(least), quantity).variance
            )
            rests[arm] += share**2 * second_order(table, one.drawn, quantity)
    return PseudoValues(plain, unit, tables, codes, variances, rests)
