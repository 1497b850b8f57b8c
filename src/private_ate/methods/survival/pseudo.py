"""Pseudo-values: a bounded number for each time and event, from released curves.

With survival S, censoring G and ``r(u) = ∫_u^τ S / S(u)``, a row has

    θ(u, event) = μ + C(u) − r(u)/G(u),   θ(u, censored) = μ + C(u),   C(u) = ∫₀^u r/G dΛ,

and one beyond the horizon ``μ + C(τ)``. Its mean is the restricted mean survival time if either
curve is right (Lemma 3 of docs/proofs/survival.md). The risk has ``r(u) = S(τ)/S(u)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats
from private_ate.domain.outcome import HORIZON_STEPS, happened, steps_of
from private_ate.methods.calibrated.clipping import outcomes_of
from private_ate.methods.survival.curves import Hazards
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.study import Block

__all__ = ["FINE", "PseudoCodes", "PseudoTable", "Quantity", "code_tables", "pseudo_table"]

Quantity = Literal["rmst", "risk"]

FINE: Final = 480  # steps of a table over the horizon
_LEAST_SURVIVAL: Final = 1e-4
# Floors of the censoring curve; the first whose table is narrow enough is taken.
_FLOORS: Final = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
_WIDEST: Final = 3.0  # in horizons, or in units of risk


@dataclass(frozen=True, slots=True)
class PseudoTable:
    """Pseudo-values of one arm and stratum on a public grid of times, in units of the horizon.

    Attributes
    ----------
    target : float
        What the released curves say themselves: the mean survival time, or the risk.
    event, censored : array, shape (481,)
        Pseudo-values at each step of the grid.
    chances, values : array
        The distribution of a row's pseudo-value under the released curves.
    floor : float
        What the censoring curve was held above.
    least : float
        The least value of the censoring curve before that.
    """

    target: float
    event: Floats = field(repr=False)
    censored: Floats = field(repr=False)
    chances: Floats = field(repr=False)
    values: Floats = field(repr=False)
    floor: float
    least: float

    @property
    def low(self) -> float:
        """The least pseudo-value."""
        return float(min(self.event.min(), self.censored.min()))

    @property
    def high(self) -> float:
        """The largest pseudo-value."""
        return float(max(self.event.max(), self.censored.max()))

    @property
    def mean(self) -> float:
        """The mean of a row's pseudo-value under the released curves."""
        return float(self.chances @ self.values)

    @property
    def variance(self) -> float:
        """The variance of a row's pseudo-value under the released curves."""
        return float(self.chances @ (self.values - self.mean) ** 2)


def pseudo_table(hazards: Hazards, quantity: Quantity) -> PseudoTable:
    """Return the table of one curve, with the lowest floor that keeps it narrow."""
    for floor in _FLOORS:
        table = _table(hazards, quantity, floor)
        if table.high - table.low <= _WIDEST:
            break
    return table


def expected_value(table: PseudoTable, other: PseudoTable) -> float:
    """Return the mean of another table's pseudo-values for rows as this one's curves say."""
    return float(table.chances @ other.values)


def _table(hazards: Hazards, quantity: Quantity, floor: float) -> PseudoTable:
    times = np.linspace(0.0, 1.0, FINE + 1)
    edges = np.arange(hazards.bins + 1) / hazards.bins
    events, exits = (
        np.interp(times, edges, np.concatenate([[0.0], np.cumsum(part)]) / hazards.bins)
        for part in (hazards.event, hazards.censoring)
    )
    survival = np.maximum(np.exp(-events), _LEAST_SURVIVAL)
    curve = np.exp(-exits)
    observed = np.maximum(curve, floor)
    area = np.concatenate([[0.0], np.cumsum(_middle(survival))]) / FINE
    if quantity == "rmst":
        target, rest = float(area[-1]), (area[-1] - area) / survival
    else:
        target, rest = float(survival[-1]), survival[-1] / survival
    ratio = rest / observed
    added = np.concatenate([[0.0], np.cumsum(_middle(ratio) * np.diff(events))])
    censored = target + added
    event = censored - ratio
    if quantity == "risk":  # of the event, not of surviving it
        target, censored, event = 1.0 - target, 1.0 - censored, 1.0 - event
    alive = np.exp(-(events + exits))
    leaves, of_event, both = -np.diff(alive), np.diff(events), np.diff(events + exits)
    share = np.where(both > 0, of_event / np.where(both > 0, both, 1.0), 0.0)
    chances = np.concatenate([leaves * share, leaves * (1.0 - share), alive[-1:]])
    values = np.concatenate([_middle(event), _middle(censored), censored[-1:]])
    return PseudoTable(
        target, event, censored, chances / chances.sum(), values, floor, float(curve[-1])
    )


def _middle(values: Floats) -> Floats:
    return np.asarray((values[1:] + values[:-1]) / 2)


@dataclass(frozen=True, slots=True)
class PseudoCodes:
    """All tables as integers on the grid {0, …, 2³⁰} across a range that they share.

    Attributes
    ----------
    low, high : float
        The range, in units of the horizon or of risk.
    steps : array of int32, shape (arms · strata, 2, 481)
        Codes of censored times and of events at each step of the grid.
    """

    low: float
    high: float
    steps: npt.NDArray[np.int32] = field(repr=False)

    def coder(
        self, places: Callable[[Block], npt.NDArray[np.int64]]
    ) -> Callable[[Block], npt.NDArray[np.int32]]:
        """Return a kernel that looks up the code of each row; it is total.

        ``places`` returns each row's arm and stratum.
        """
        steps = self.steps

        def code(block: Block) -> npt.NDArray[np.int32]:
            outcome = outcomes_of(block)
            step = np.rint(steps_of(outcome) * (FINE / HORIZON_STEPS)).astype(np.int64)
            return np.asarray(steps[places(block), happened(outcome).astype(np.int64), step])

        return code


def code_tables(tables: Sequence[PseudoTable]) -> PseudoCodes:
    """Round all tables to integers across their common range, in the order of arms and strata."""
    low, high = min(one.low for one in tables), max(one.high for one in tables)
    both = np.stack([np.stack([one.censored, one.event]) for one in tables])
    share = np.clip((both - low) / (high - low), 0.0, 1.0)
    return PseudoCodes(low, high, np.rint(share * OUTCOME_STEPS).astype(np.int32))
