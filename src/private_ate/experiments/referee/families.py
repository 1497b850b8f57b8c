"""Families of studies for the referee, written for it alone: no method was tuned on them.

Rules of eligibility came last, after blocks had learnt to bend, and before any method saw them.
Covariates of four kinds are cut from one chain of correlated normals; treatment and outcome each
follow an index of them, linear or not. Every number below is a constant of the recipe: a study is
decided by its setting and its seed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
import polars as pl

from private_ate.arrays import Bits, Floats
from private_ate.datasets.dataset import Dataset
from private_ate.domain import Binary, Domain, Interval, Treatment
from private_ate.errors import ArgumentError
from private_ate.experiments.referee.outcomes import (
    OUTCOME_BOUNDS,
    Outcome,
    draw_outcome,
    mean_outcome,
)

__all__ = ["FAMILIES", "SETTINGS", "Confounding", "Setting", "generate_study", "setting_named"]

Confounding = Literal["linear", "nonlinear", "rules", "none"]

_CORRELATION: Final = 0.5  # of neighbouring latent normals
_SELECTION: Final = 0.8  # standard deviation of the log odds of treatment
_REFERENCE_ROWS: Final = 40_000  # from which indices are scaled and intercepts found
_REFERENCE_SEED: Final = 20_261_116
_LEAST_DIMENSION: Final = 5
_FLAT: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Setting:
    """One study design.

    Attributes
    ----------
    family : str
        The group of settings in whose plot it is drawn.
    confounding : "linear", "nonlinear", "rules" or "none"
        How covariates drive treatment and outcome: by a line, by products, absolute values and
        waves, or by rules of eligibility that join thresholds; "none" is a randomised trial.
    size, dimension : int
        Units (n) and covariates (d).
    share : float
        Expected share of treated units.
    outcome : "uniform", "rare", "heavy" or "zeros"
        The law of the outcome.
    varying : bool
        Whether effects grow with the probability of treatment.
    """

    family: str
    confounding: Confounding = "linear"
    size: int = 10_000
    dimension: int = 20
    share: float = 0.5
    outcome: Outcome = "uniform"
    varying: bool = False

    def __post_init__(self) -> None:
        if self.size < 2 or self.dimension < _LEAST_DIMENSION or not 0 < self.share < 1:
            msg = f"a setting has two units, {_LEAST_DIMENSION} covariates and a share in (0, 1)"
            raise ArgumentError(msg)

    @property
    def name(self) -> str:
        """A short name that tells it from every other setting."""
        kind = "trial" if self.is_trial else self.confounding
        varying = "-varying" if self.varying else ""
        return f"{kind}-n{self.size}-d{self.dimension}-t{self.share:g}-{self.outcome}{varying}"

    @property
    def is_trial(self) -> bool:
        """Whether treatment is randomised, with a probability that is known."""
        return self.confounding == "none"


_SIZES: Final = (1000, 10_000, 100_000)
_ALL: Final = (
    *(Setting("linear confounding", size=size) for size in _SIZES),
    *(Setting("non-linear confounding", "nonlinear", size) for size in _SIZES),
    *(Setting("rules of eligibility", "rules", size) for size in _SIZES),
    Setting("number of covariates", dimension=5),
    Setting("number of covariates", dimension=60),
    Setting("number of covariates", "nonlinear", dimension=60),
    Setting("treated share", share=0.1),
    Setting("treated share", share=0.02),
    Setting("treated share", "nonlinear", share=0.1),
    Setting("law of the outcome", outcome="rare"),
    Setting("law of the outcome", outcome="heavy"),
    Setting("law of the outcome", outcome="zeros"),
    Setting("law of the outcome", outcome="rare", share=0.1),
    Setting("law of the outcome", "nonlinear", outcome="heavy"),
    Setting("effects that vary with the score", varying=True),
    Setting("effects that vary with the score", "nonlinear", varying=True),
    Setting("randomised trial", "none", 1000),
    Setting("randomised trial", "none"),
    Setting("randomised trial", "none", share=0.1),
)
FAMILIES: Final = {
    family: tuple(setting for setting in _ALL if setting.family == family)
    for family in dict.fromkeys(setting.family for setting in _ALL)
}
"""The settings by family: a base cell, one factor varied at a time, and some crossings."""
SETTINGS: Final = tuple(setting for members in FAMILIES.values() for setting in members)


def setting_named(name: str) -> Setting:
    """Return the setting of that name."""
    return next(setting for setting in SETTINGS if setting.name == name)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Means and deviations that turn raw indices into standard ones, and the intercept."""

    mean: Floats
    deviation: Floats
    intercept: float


def generate_study(setting: Setting, draw: int, seed: int = 1) -> Dataset:
    """Generate one study; the truth is the average over its units of their expected difference.

    Outcomes beyond the declared bounds count as the bound, in the truth too: that is what every
    method here estimates.
    """
    text = f"{setting.name}/{draw}/{seed}"
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))
    latent = _latent(rng, setting.size, setting.dimension)
    index, chance = indices_of(setting, latent)
    treated: Bits = rng.random(setting.size) < chance
    outcome = draw_outcome(setting.outcome, index, treated, _effects(setting, chance), rng)
    expected = [
        mean_outcome(setting.outcome, index, arm, _effects(setting, chance)) for arm in (0, 1)
    ]
    return _dataset(setting, latent, treated, outcome, float((expected[1] - expected[0]).mean()))


def indices_of(setting: Setting, latent: Floats) -> tuple[Floats, Floats]:
    """Return the standardised index of the outcome and the chance of treatment of each row."""
    scale = _scale_of(setting)
    raw = _raw_indices(setting, _standardised(latent))
    standard = (raw - scale.mean) / scale.deviation
    if setting.is_trial:
        return standard[:, 1], np.full(len(latent), setting.share)
    return standard[:, 1], _sigmoid(scale.intercept + _SELECTION * standard[:, 0])


def _effects(setting: Setting, chance: Floats) -> Floats:
    """Return how much of the effect each unit has: one, or from 0 to 2 with its chance."""
    return 2.0 * chance if setting.varying else np.ones_like(chance)


def _latent(rng: np.random.Generator, rows: int, dimension: int) -> Floats:
    """Draw a chain of standard normals in each row."""
    chain: Floats = rng.standard_normal((rows, dimension))
    fresh = np.sqrt(1 - _CORRELATION**2)
    for column in range(1, dimension):
        chain[:, column] = _CORRELATION * chain[:, column - 1] + fresh * chain[:, column]
    return chain


def _covariates(latent: Floats) -> Floats:
    """Cut covariates of four kinds from the chain: uniform, yes or no, normal, exponential."""
    from scipy.special import ndtr

    seen = latent.copy()
    seen[:, ::4] = ndtr(latent[:, ::4])
    seen[:, 1::4] = latent[:, 1::4] > _YES
    seen[:, 2::4] = np.clip(latent[:, 2::4], -4.0, 4.0)
    seen[:, 3::4] = np.minimum(-np.log(ndtr(-latent[:, 3::4])), 8.0)
    return seen


_YES: Final = 0.5244005127080407  # three in ten lie above
_MEANS: Final = np.array([0.5, 0.3, 0.0, 1.0])
_DEVIATIONS: Final = np.array([12**-0.5, 0.21**0.5, 1.0, 1.0])
_BOUNDS: Final = (Interval(0, 1), Interval(0, 1), Interval(-4, 4), Interval(0, 8))


def _standardised(latent: Floats) -> Floats:
    kinds = np.arange(latent.shape[1]) % 4
    standard: Floats = (_covariates(latent) - _MEANS[kinds]) / _DEVIATIONS[kinds]
    return standard


def _raw_indices(setting: Setting, covariates: Floats) -> Floats:
    """Return the indices of treatment and outcome, before they are scaled, of shape (n, 2)."""
    places = np.arange(setting.dimension)
    sizes = 1.0 / np.sqrt(1.0 + places / 2.0)
    slopes = np.stack(
        [sizes * np.where(places % 3 < 2, 1.0, -1.0), sizes * np.where(places % 5 < 3, 1.0, -1.0)]
    )
    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
    linear: Floats = covariates @ slopes.T
    match setting.confounding:
        case "nonlinear":
            bent = _waves(covariates)
        case "rules":
            bent = _rules(covariates)
        case _:
            return linear
    whole: Floats = 0.5 * linear + bent
    return whole


def _waves(covariates: Floats) -> Floats:
    first, second, third, fourth = covariates[:, :4].T
    return np.column_stack(
        [
            0.8 * first * third + 0.8 * np.abs(third) - 0.6 * second * fourth,
            0.9 * first * third + 0.6 * np.abs(third) + 0.6 * np.sin(2.0 * fourth),
        ]
    )


def _rules(covariates: Floats) -> Floats:
    """Return who is eligible, urgent or excluded, as treatment and outcome weigh it."""
    first, second, third, fourth, fifth = covariates[:, :5].T
    eligible = (third > 0.3) & (fifth > -0.4)
    urgent = (second > 0) & (first < 0.5)
    excluded = (fourth > 0.6) & (third < 0.9)
    return np.column_stack(
        [
            1.4 * eligible + 1.0 * urgent - 0.9 * excluded,
            1.2 * eligible + 0.9 * urgent - 0.5 * excluded + 0.4 * np.tanh(2.0 * first * fourth),
        ]
    )


@lru_cache(maxsize=64)
def _scale_of(setting: Setting) -> _Scale:
    """Find from a fixed reference sample what makes indices standard and the share right."""
    rng = np.random.default_rng(_REFERENCE_SEED)
    latent = _latent(rng, _REFERENCE_ROWS, setting.dimension)
    raw = _raw_indices(setting, _standardised(latent))
    mean, deviation = raw.mean(axis=0), raw.std(axis=0)
    score = _SELECTION * (raw[:, 0] - mean[0]) / deviation[0]
    low, high = -30.0, 30.0
    while high - low > _FLAT:
        middle = (low + high) / 2
        if _sigmoid(score + middle).mean() > setting.share:
            high = middle
        else:
            low = middle
    return _Scale(mean, deviation, (low + high) / 2)


def _dataset(
    setting: Setting, latent: Floats, treated: Bits, outcome: Floats, truth: float
) -> Dataset:
    names = [f"x{place}" for place in range(1, setting.dimension + 1)]
    columns = dict(zip(names, _covariates(latent).T.copy(), strict=True))
    bounds = {name: _BOUNDS[place % 4] for place, name in enumerate(names)}
    kind = Binary() if setting.outcome == "rare" else Interval(*OUTCOME_BOUNDS[setting.outcome])
    count = int(treated.sum())
    return Dataset(
        name=setting.name,
        frame=pl.DataFrame({"t": treated.astype(np.int64), "y": outcome, **columns}),
        domain=Domain(Treatment("t", treated=1, control=0), ("y", kind), bounds),
        true_effect=truth,
        treated=count,
        control=setting.size - count,
        source="generated by the referee",
    )


def _sigmoid(values: Floats) -> Floats:
    chances: Floats = 1.0 / (1.0 + np.exp(-values))
    return chances
