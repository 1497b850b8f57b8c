"""Birth weights of babies by how much their mothers smoke: a simulated study of four doses.

Nobody's data. Mothers who smoke are younger, have less schooling and fewer prenatal visits, so
that plain differences in means make smoking look worse than it is. Sizes of the arms and of the
effects are like those that are often reported for such studies.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from scipy.special import expit, softmax

from private_ate.arrays import Floats, Integers
from private_ate.datasets.dataset import Dataset
from private_ate.datasets.several_arms import draw_codes, find_intercepts
from private_ate.domain import Binary, Domain, Interval, Treatment
from private_ate.errors import ArgumentError

__all__ = ["BINS", "DOMAIN", "LABELS", "birth_weight"]

LABELS: Final = ("0 daily", "1-5 daily", "6-10 daily", "11+ daily")
"""The declared arms; the first is the reference."""

BINS: Final = (0, 1, 6, 11, 100)
"""The same arms as bins of the column ``cigarettes``."""

_EFFECTS: Final = np.array([0.0, -173.0, -220.0, -264.0])
_SHARES: Final = np.array([3778, 200, 337, 327]) / 4642
DOMAIN: Final = Domain(
    Treatment("smoking", arms=LABELS),
    ("weight", Interval(0, 6000)),
    {
        "age": Interval(13, 45),
        "education": Interval(0, 17),
        "married": Binary(),
        "visits": Interval(0, 40),
        "alcohol": Binary(),
        "first_baby": Binary(),
    },
)
"""Bounds that a code book would give: grams, years, visits, and yes or no as 1 or 0."""


def birth_weight(mothers: int = 4642, seed: int = 2026) -> Dataset:
    """Simulate the study; the default is what the tutorial uses.

    True means are averages over the mothers of the expected birth weight in grams, had all of them
    smoked that much. The frame also has the number of cigarettes a day.
    """
    if mothers < 100:
        msg = "the study of birth weights has at least 100 mothers"
        raise ArgumentError(msg)
    rng = np.random.default_rng(seed)
    covariates = _draw_mothers(mothers, rng)
    codes = _draw_arms(covariates, rng)
    expected = _expected_weight(covariates)
    weight = expected + _EFFECTS[codes] + 540.0 * rng.standard_normal(mothers)
    columns = {
        "smoking": np.array(LABELS)[codes],
        "cigarettes": _draw_cigarettes(codes, rng),
        "weight": np.clip(weight.round(), 340, 5500).astype(np.int64),
    }
    return Dataset.generated(
        "birth-weight",
        pl.DataFrame(columns | covariates),
        DOMAIN,
        float(_EFFECTS[-1]),
        f"generated, {mothers} mothers, seed {seed}",
        dict(zip(LABELS, (expected.mean() + _EFFECTS).tolist(), strict=True)),
    )


def _draw_mothers(mothers: int, rng: np.random.Generator) -> dict[str, Integers]:
    """Draw covariates that hang together: age, then schooling, marriage, parity, care."""
    age = np.clip(rng.normal(26.5, 5.6, mothers), 13, 45).round()
    education = np.clip(rng.normal(12.7 + 0.16 * (age - 26.5), 2.2), 0, 17).round()
    married = rng.random(mothers) < expit(0.95 + 0.11 * (age - 26.5) + 0.2 * (education - 12.7))
    first_baby = rng.random(mothers) < expit(-0.3 - 0.09 * (age - 26.5))
    visits = np.clip(rng.normal(10.2 + 1.0 * married + 0.2 * (education - 12.7), 3.4), 0, 40)
    alcohol = rng.random(mothers) < expit(-3.6 - 0.8 * married + 0.03 * (age - 26.5))
    columns = {
        "age": age, "education": education, "married": married, "visits": visits.round(),
        "alcohol": alcohol, "first_baby": first_baby,
    }  # fmt: skip
    return {name: column.astype(np.int64) for name, column in columns.items()}


def _draw_arms(covariates: dict[str, Integers], rng: np.random.Generator) -> Integers:
    """Draw arms from a multinomial logit whose intercepts give the shares."""
    less_schooling = 12.7 - covariates["education"]
    pull = (
        0.22 * less_schooling
        + 0.9 * (1 - covariates["married"])
        + 0.05 * (10.9 - covariates["visits"])
        + 1.6 * covariates["alcohol"]
        - 0.35 * covariates["first_baby"]
    )
    older = (covariates["age"] - 26.5) / 5.6
    logits = np.outer(pull, [0.0, 0.5, 0.75, 0.9]) + np.outer(older, [0.0, -0.25, 0.05, 0.35])
    logits += find_intercepts(logits, _SHARES)
    return draw_codes(softmax(logits, axis=1), rng)


def _expected_weight(covariates: dict[str, Integers]) -> Floats:
    """Return the expected birth weight in grams of a baby whose mother does not smoke."""
    older = covariates["age"] - 26.5
    weight: Floats = (
        3360.0
        + 4.0 * older
        - 0.8 * older**2
        + 9.0 * (covariates["education"] - 12.7)
        + 110.0 * covariates["married"]
        + 24.0 * (covariates["visits"] - 10.9)
        - 40.0 * covariates["alcohol"]
        - 60.0 * covariates["first_baby"]
    )
    return weight


def _draw_cigarettes(codes: Integers, rng: np.random.Generator) -> Integers:
    """Draw a number of cigarettes inside the arm's bin; few smoke more than forty."""
    low, high = np.array([0, 1, 6, 11])[codes], np.array([1, 6, 11, 41])[codes]
    return rng.integers(low, high)
