"""Made-up persons of a declared domain: for testing a script before any ε is spent.

Nobody's data: what is drawn follows from the domain alone, so it may be shown to anybody. The
effect is built in and reported, so that a script can be checked against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from private_ate.arguments import whole_number
from private_ate.domain import Categories, Domain, Interval, Survival, Treatment, label_text

if TYPE_CHECKING:
    import polars as pl

    from private_ate.arrays import Floats

__all__ = ["DUMMY_NOTE", "DummyStudy", "draw_dummy"]

DUMMY_NOTE: Final = "none (dummy data)"
_SHARE: Final = 0.1  # of the outcome's range: the effect that is built in
_CENSORING: Final = 0.5  # hazard of censoring per horizon, of a time to an event
_SEED: Final = 2026


@dataclass(frozen=True, slots=True)
class DummyStudy:
    """Made-up persons and the effect that was built into them, in units of the outcome."""

    frame: pl.DataFrame
    effect: float


def draw_dummy(
    domain: Domain,
    rows: int = 1000,
    seed: int = _SEED,
    *,
    trial: float | str | None = None,
) -> DummyStudy:
    """Draw persons from a domain: treatment follows the covariates, the outcome follows both.

    Covariates lie within their bounds or among their labels, the log odds of treatment are linear
    in them, and every arm but the reference adds a tenth of the outcome's range, or, for a binary
    outcome, a tenth to its probability. Outcomes stay within their bounds, so that the effect is
    exact. In a trial treatment is drawn with that probability instead, or with that of a column.
    Sampling weights lie anywhere up to their bound.
    """
    import polars as pl

    rows = whole_number("the number of rows", rows, 2, 10**6)
    rng = np.random.default_rng(seed)
    columns: dict[str, list[object]] = {}
    score = np.zeros(rows)
    for place, (name, kind) in enumerate(domain.covariates.items()):
        unit = rng.random(rows)
        columns[name] = _entries(kind, unit)
        score += (unit - 0.5) * (1.0 if place % 2 == 0 else -0.6)
    spread = max(float(np.sqrt(len(domain.covariates))), 1.0)
    chance = 1 / (1 + np.exp(-2.4 * score / spread))
    if trial is not None:
        known = columns[trial] if isinstance(trial, str) else trial
        chance = np.broadcast_to(np.asarray(known, dtype=float), rows)
    treated = rng.random(rows) < chance
    treated[:2] = (True, False)  # both arms are there, however few the rows
    arm = treated * (1 + np.floor(rng.random(rows) * (domain.treatment.size - 1))).astype(np.int64)
    entries = _arm_entries(domain.treatment)
    columns[domain.treatment.column] = [entries[code] for code in arm]
    if domain.weights is not None:
        drawn = rng.random(rows)
        columns[domain.weights.column] = _entries(Interval(0, domain.weights.high), drawn)
    bounds = domain.bounds  # of several outcomes the headline's
    effect = _SHARE if bounds.is_binary else _SHARE * bounds.width
    level = 0.45 + 0.2 * np.tanh(score) - (_SHARE / 2) + _SHARE * treated
    for one in domain.outcomes:
        columns[one.column] = _outcomes(one.bounds or bounds, level, rng)
        if isinstance(one, Survival):
            columns |= _censored(one, columns[one.column], rng)
    return DummyStudy(pl.DataFrame(columns), effect)


def _entries(kind: Interval | Categories, unit: Floats) -> list[object]:
    if isinstance(kind, Categories):
        labels = [label_text(label) for label in kind.labels]
        return [labels[int(place)] for place in np.floor(unit * len(labels))]
    if kind.is_binary:
        return [int(value) for value in unit < 0.5]
    return [float(f"{value:.6g}") for value in kind.low + kind.width * unit]


def _arm_entries(treatment: Treatment) -> list[object]:
    """Return what stands in the column for each arm, the reference first; of a bin its middle."""
    if treatment.bins is None:
        return list(treatment.coded)
    middles = [(low + high) / 2 for low, high in pairwise(treatment.bins)]
    return [middles[treatment.labels.index(label)] for label in treatment.coded]


def _censored(
    outcome: Survival, times: list[object], rng: np.random.Generator
) -> dict[str, list[object]]:
    """Censor some times independently of the event."""
    exits = rng.exponential(outcome.horizon / _CENSORING, len(times))
    lost = exits < np.array(times, dtype=np.float64)
    early = np.minimum(exits, np.array(times, dtype=np.float64))
    event = str(outcome.event_label)
    other = "0" if event != "0" else "1"
    return {
        outcome.column: [float(f"{time:.6g}") for time in early],
        outcome.event: [other if gone else event for gone in lost],
    }


def _outcomes(bounds: Interval, level: Floats, rng: np.random.Generator) -> list[object]:
    """Turn expected places within the bounds, 0.2 to 0.7, into outcomes around them."""
    if bounds.is_binary:
        return [int(value) for value in rng.random(level.size) < level]
    around = level + 0.2 * (rng.random(level.size) - 0.5) * 2
    return [float(f"{value:.6g}") for value in bounds.low + bounds.width * around]
