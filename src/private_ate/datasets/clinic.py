"""The bundled synthetic study: a drug against high blood pressure, given to sicker patients.

Nobody's data. Doctors give the drug to older and sicker patients, so the plain difference in means
understates what it does; the truth is known because the study is simulated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from private_ate.domain import Categories, Domain, Interval, Treatment

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DOMAIN", "TRUE_EFFECT", "ClinicStudy", "draw_clinic"]

TRUE_EFFECT = 8.0  # millimetres of mercury
DOMAIN = Domain(
    treatment=Treatment("drug", treated="yes", control="no"),
    outcome=("pressure_drop", Interval(-40, 60)),
    covariates={
        "age": Interval(18, 95),
        "pressure_before": Interval(110, 220),
        "weight": Interval(40, 160),
        "smoker": Categories("never", "former", "current", "unknown", other="unknown"),
        "diabetes": Interval(0, 1),
    },
)


@dataclass(frozen=True, slots=True)
class ClinicStudy:
    """The simulated patients and the effect that was built into them."""

    frame: pl.DataFrame
    domain: Domain
    true_effect: float


def draw_clinic(patients: int = 5000, seed: int = 2026) -> ClinicStudy:
    """Simulate the study; the default is what the demonstration uses."""
    import polars as pl

    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(58, 14, patients), 18, 95).round()
    before = np.clip(rng.normal(152, 16, patients) + 0.25 * (age - 58), 110, 220).round()
    weight = np.clip(rng.normal(82, 15, patients), 40, 160).round(1)
    smoker = rng.choice(np.array(["never", "former", "current"]), patients, p=[0.5, 0.3, 0.2])
    diabetes = rng.random(patients) < 0.12 + 0.002 * (weight - 60).clip(0)
    sickness = 0.03 * (age - 58) + 0.045 * (before - 152) + 0.8 * diabetes
    drug = rng.random(patients) < 1 / (1 + np.exp(0.3 - sickness))
    recovery = 6 - 0.15 * (age - 58) - 0.12 * (before - 152) - 3 * diabetes
    recovery -= 2 * (smoker == "current")
    effect = TRUE_EFFECT + 0.05 * (before - before.mean())
    drop = np.clip(recovery + effect * drug + rng.normal(0, 8, patients), -40, 60)
    frame = pl.DataFrame(
        {
            "age": age.astype(np.int64),
            "pressure_before": before.astype(np.int64),
            "weight": weight,
            "smoker": smoker,
            "diabetes": diabetes.astype(np.int64),
            "drug": np.where(drug, "yes", "no"),
            "pressure_drop": drop.round(1),
        }
    )
    return ClinicStudy(frame, DOMAIN, TRUE_EFFECT)
