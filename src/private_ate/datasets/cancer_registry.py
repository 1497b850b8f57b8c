"""A simulated cancer registry: hormone therapy after surgery, and the time to relapse or death.

Nobody's data. Older patients with more positive nodes get the therapy more often, so a plain
comparison understates it; nearly half of the patients are censored within five years, more in some
centres than in others. The truth is known because the registry is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.domain import Categories, Domain, Interval, Survival, Treatment

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DOMAIN", "TRUE_EFFECT", "RegistryStudy", "draw_registry"]

HORIZON: Final = 1826  # days, five years
TRUE_EFFECT: Final = 102.3  # days up to the horizon, over four million simulated patients
DOMAIN: Final = Domain(
    treatment=Treatment("hormones", treated="yes", control="no"),
    outcome=Survival("days", "status", event_label="relapse", horizon=HORIZON, unit="days"),
    covariates={
        "age": Interval(25, 90),
        "size": Interval(0, 120),
        "nodes": Interval(0, 30),
        "grade": Categories("I", "II", "III"),
        "centre": Categories("A", "B", "C"),
    },
)


@dataclass(frozen=True, slots=True)
class RegistryStudy:
    """The simulated patients, and the days up to the horizon that the therapy gives them."""

    frame: pl.DataFrame
    domain: Domain
    true_effect: float


def draw_registry(patients: int = 3000, seed: int = 2026) -> RegistryStudy:
    """Simulate the registry; the default is what the tutorial uses."""
    import polars as pl

    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(58, 11, patients), 25, 90).round()
    size = np.clip(rng.gamma(5, 6, patients), 1, 120).round()
    nodes = np.clip(rng.poisson(rng.gamma(1.2, 3.0, patients)), 0, 30)
    grade = rng.choice(3, patients, p=[0.15, 0.6, 0.25])
    centre = rng.choice(3, patients, p=[0.4, 0.35, 0.25])
    log_odds = 0.05 * (age - 58) + 0.12 * np.minimum(nodes, 12) - 0.9
    hormones = rng.random(patients) < 1 / (1 + np.exp(-log_odds))
    event = _times(rng, np.stack([age, size, nodes, grade]).astype(np.float64), hormones)
    leaving = rng.exponential(HORIZON / np.array([0.25, 0.35, 0.6])[centre])
    end = rng.uniform(900, 3200, patients)  # the day on which the registry was closed
    seen = np.minimum(leaving, end)
    days = np.maximum(np.minimum(event, seen).round(), 1)
    frame = pl.DataFrame(
        {
            "age": age.astype(np.int64),
            "size": size.astype(np.int64),
            "nodes": nodes.astype(np.int64),
            "grade": np.array(["I", "II", "III"])[grade],
            "centre": np.array(["A", "B", "C"])[centre],
            "hormones": np.where(hormones, "yes", "no"),
            "days": days.astype(np.int64),
            "status": np.where(event <= seen, "relapse", "censored"),
        }
    )
    return RegistryStudy(frame, DOMAIN, TRUE_EFFECT)


def _times(rng: np.random.Generator, patients: Floats, hormones: Bits) -> Floats:
    """Draw times to relapse; the therapy takes a third off the hazard."""
    age, size, nodes, grade = patients
    risk = 0.012 * (age - 58) + 0.012 * (size - 30) + 0.09 * np.minimum(nodes, 12) + 0.3 * grade
    rate = 0.45 * np.exp(risk - 0.6 - 0.4 * hormones)
    return np.asarray(HORIZON * (rng.exponential(size=age.size) / rate) ** (1 / 1.2))
