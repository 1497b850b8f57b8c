"""The first step: from a noisy histogram to curves, their errors and tables of pseudo-values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.arrays import Floats
from private_ate.domain import Interval, Outcome, Survival
from private_ate.methods.survival.bands import (
    CurveErrors,
    bootstrap_curve,
    second_order,
    stratified,
)
from private_ate.methods.survival.cells import ReleasedCells, RowCounts
from private_ate.methods.survival.curves import Hazards, at_edges, hazards_of
from private_ate.methods.survival.pseudo import (
    PseudoCodes,
    PseudoTable,
    Quantity,
    code_tables,
    pseudo_table,
)

__all__ = ["FirstStep", "PseudoValues", "bins_for", "curve_budget", "first_step", "make_values"]

_FEWEST_BINS: Final = 4
_MOST_BINS: Final = 20


def curve_budget(epsilon: Fraction, share: Fraction) -> Fraction:
    """Return the share of ε that pays for curves, as a decimal number that a request can hold."""
    part = epsilon * share
    context = Context(prec=14)
    return Fraction(context.divide(Decimal(part.numerator), Decimal(part.denominator)))


def bins_for(size: float) -> int:
    """Return how many bins balance noise with what interpolation within a bin leaves.

    ``size`` is an arm's weight times ε over the largest weight. The noise of S(t) is about
    1.9·√J/size and interpolation leaves about 0.3/J².
    """
    return int(np.clip(round((0.15 * size) ** 0.4), _FEWEST_BINS, _MOST_BINS))


@dataclass(frozen=True, slots=True)
class FirstStep:
    """What the first step released and what follows from it.

    Attributes
    ----------
    counts : RowCounts
        How rows were counted, and their strata.
    strata : int
        How many strata were declared; small ones are merged.
    cells : ReleasedCells
        The noisy histogram.
    hazards, drawn : list of list of Hazards
        Released hazards by arm and stratum, and those of a bootstrap.
    errors : list of CurveErrors
        Simulated errors of each arm's curve.
    """

    counts: RowCounts
    strata: int
    cells: ReleasedCells
    hazards: list[list[Hazards]]
    drawn: list[list[Hazards]]
    errors: list[CurveErrors]

    def uncensored(self, arm: int) -> Floats:
        """Return the share that is not yet censored at every edge, over an arm's strata."""
        totals = self.cells.totals[arm]
        pairs = zip(totals / totals.sum(), self.hazards[arm], strict=True)
        parts = [share * at_edges(one.censoring) for share, one in pairs]
        return np.asarray(np.sum(parts, axis=0))


def first_step(counts: RowCounts, strata: int, released: ReleasedCells) -> FirstStep:
    """Turn a released histogram into curves, and simulate how far these may be off."""
    hazards: list[list[Hazards]] = []
    drawn: list[list[Hazards]] = []
    errors = []
    for arm, totals in enumerate(released.totals):
        hazards.append([])
        drawn.append([])
        parts = []
        for stratum, total in enumerate(totals.tolist()):
            noise = released.noises[arm][stratum]
            cells = released.counts[arm, stratum]
            found = hazards_of(cells, total, released.cell_variance(arm, stratum))
            one = Hazards(found.event[0], found.censoring[0])
            rows = float(released.effective[arm, stratum])
            part, again = bootstrap_curve(f"arm {arm}, {stratum}", one, total, rows, noise)
            hazards[-1].append(one)
            drawn[-1].append(again)
            parts.append(part)
        errors.append(stratified(totals / totals.sum(), parts))
    return FirstStep(counts, strata, released, hazards, drawn, errors)


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
    tables = [[pseudo_table(one, quantity) for one in row] for row in step.hazards]
    codes = code_tables([one for row in tables for one in row])
    unit = outcome.horizon if quantity == "rmst" else 1.0
    plain = Outcome(
        outcome.column, Interval(unit * codes.low, unit * codes.high), outcome.missing,
        unit=outcome.unit if quantity == "rmst" else None,
    )  # fmt: skip
    cells = step.cells
    variances, rests = np.zeros(len(tables)), np.zeros(len(tables))
    for arm, row in enumerate(step.hazards):
        shares = cells.totals[arm] / cells.totals[arm].sum()
        for stratum, one in enumerate(row):
            noise = cells.cell_variance(arm, stratum) * (2 * cells.bins + 1)
            least = float(np.sqrt(noise)) / max(float(cells.totals[arm, stratum]), 1e-300)
            held = pseudo_table(one.with_least_risk(least), quantity)
            variances[arm] += float(shares[stratum]) * held.variance
            rest = second_order(tables[arm][stratum], step.drawn[arm][stratum], quantity)
            rests[arm] += float(shares[stratum]) ** 2 * rest
    return PseudoValues(plain, unit, tables, codes, variances, rests)
