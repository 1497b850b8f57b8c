"""Confounded studies with a known effect, for questions that the benchmarks cannot answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import polars as pl
from scipy.special import expit

from private_ate.arrays import Bits, Floats
from private_ate.datasets.dataset import Dataset
from private_ate.datasets.several_arms import SeveralArms, generate_several_arms
from private_ate.domain import Binary, Domain, Interval, Treatment
from private_ate.errors import ArgumentError

__all__ = ["Confounded", "Correlated", "Tails", "generate", "intercept"]

Tails = Literal["bounded", "normal", "heavy"]

# Declared half-widths of the outcome, in its own units. Known from the recipe, not looked up:
# all but about one outcome in a thousand lie inside whatever the tails are.
_HALF_WIDTH: Final[dict[Tails, float]] = {"bounded": 6.0, "normal": 8.0, "heavy": 16.0}
_COVARIATE_BOUNDS: Final = Interval(-4, 4)
_BASE_RATE: Final = -0.5  # log odds of the outcome of an average control, if it is binary


@dataclass(frozen=True, slots=True)
class Confounded:
    """What a confounded study looks like.

    Attributes
    ----------
    size, dimension : int
        Units (n) and covariates (d), independent standard normal.
    selection : float
        Standard deviation of the log odds of treatment; 0 is a randomised study.
    overlap : float
        Propensities lie between this and one minus this, below 0.5; 0 lets them go anywhere.
    tails : "bounded", "normal" or "heavy"
        The outcome's noise: uniform, normal, or Student's t with three degrees of freedom, all
        of unit variance.
    heterogeneity : float
        Standard deviation of the units' effects relative to the average effect.
    effect : float
        The average effect, on the log odds if the outcome is binary.
    binary : bool
        Whether the outcome is 0 or 1.
    """

    size: int = 10_000
    dimension: int = 10
    selection: float = 1.0
    overlap: float = 0.0
    tails: Tails = "normal"
    heterogeneity: float = 0.0
    effect: float = 1.0
    binary: bool = False

    def __post_init__(self) -> None:
        if self.size < 2 or self.dimension < 1:
            msg = "a study has at least two units and one covariate"
            raise ArgumentError(msg)
        if self.selection < 0 or self.heterogeneity < 0 or not 0 <= self.overlap < 0.5:
            msg = "selection and heterogeneity are from 0, overlap is from 0 and below 0.5"
            raise ArgumentError(msg)
        if self.tails not in _HALF_WIDTH:
            msg = f"tails are {', '.join(_HALF_WIDTH)}, not {self.tails!r}"
            raise ArgumentError(msg)


@dataclass(frozen=True, slots=True)
class Correlated:
    """A study whose covariates are correlated and, in part, seen only as yes or no.

    Attributes
    ----------
    size, dimension : int
        Units (n) and covariates (d).
    treated_share : float
        The share of treated units that the intercept of selection aims at.
    selection : float
        Standard deviation of the log odds of treatment.
    dichotomized : bool
        Whether every third covariate is seen only as positive or not, so that a part of the
        confounding is unmeasured.
    """

    size: int = 5000
    dimension: int = 20
    treated_share: float = 0.5
    selection: float = 1.0
    dichotomized: bool = True

    def __post_init__(self) -> None:
        if self.size < 2 or self.dimension < 1:
            msg = "a study has at least two units and one covariate"
            raise ArgumentError(msg)
        if not 0 < self.treated_share < 1 or self.selection < 0:
            msg = "a treated share lies between 0 and 1, and selection is from 0"
            raise ArgumentError(msg)


def generate(study: Confounded | Correlated | SeveralArms, seed: int) -> Dataset:
    """Generate a study; covariates drive the treatment and the outcome in part together.

    The true effect is the average over the generated units of the difference of their expected
    outcomes. Domain bounds follow from the recipe and do not look at the rows.
    """
    if isinstance(study, SeveralArms):
        return generate_several_arms(study, seed)
    if isinstance(study, Correlated):
        return _generate_correlated(study, seed)
    rng = np.random.default_rng(seed)
    covariates = rng.standard_normal((study.size, study.dimension))
    drivers = _directions(study.dimension)
    score = study.selection * (covariates @ drivers[0])
    propensity = study.overlap + (1.0 - 2.0 * study.overlap) * expit(score)
    treatment = rng.random(study.size) < propensity
    baseline = covariates @ drivers[1]
    effects = study.effect * (1.0 + study.heterogeneity * (covariates @ drivers[2]))
    if study.binary:
        chances = [expit(_BASE_RATE + baseline), expit(_BASE_RATE + baseline + effects)]
        outcome = (rng.random(study.size) < np.where(treatment, chances[1], chances[0])) * 1.0
        true_effect = float((chances[1] - chances[0]).mean())
    else:
        outcome = baseline + effects * treatment + _noise(study.tails, study.size, rng)
        true_effect = float(effects.mean())
    half = _HALF_WIDTH[study.tails]
    bounds = Binary() if study.binary else Interval(-half, half)
    return _dataset(study, seed, bounds, true_effect, treatment, outcome, covariates)


def _generate_correlated(study: Correlated, seed: int) -> Dataset:
    """Mix normal covariates at random, let one direction select and a related one prognose."""
    rng = np.random.default_rng(seed)
    shape = study.dimension, study.dimension
    mixing = np.eye(study.dimension) + 0.3 * rng.standard_normal(shape)
    latent = rng.standard_normal((study.size, study.dimension)) @ mixing.T
    latent /= latent.std(axis=0)
    direction = rng.standard_normal(study.dimension)
    score = latent @ direction
    score *= study.selection / score.std()
    chances = expit(score + intercept(score, study.treated_share))
    treatment = rng.random(study.size) < chances
    prognosis = 0.7 * direction / np.linalg.norm(direction)
    prognosis += 0.3 * rng.standard_normal(study.dimension) / np.sqrt(study.dimension)
    effects = 1.0 + 0.3 * np.tanh(latent[:, 0])
    outcome = latent @ prognosis + effects * treatment + 0.7 * rng.standard_normal(study.size)
    seen = np.clip(latent, -4.0, 4.0)
    if study.dichotomized:
        seen[:, ::3] = np.where(latent[:, ::3] > 0, 4.0, -4.0)
    effect = float(effects.mean())
    return _dataset(
        study, seed, Interval(-7, 7), effect, treatment, np.clip(outcome, -7.0, 7.0), seen
    )


def intercept(score: Floats, share: float) -> float:
    """Return the intercept with which the mean chance is the share, by bisection."""
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(score + middle).mean() > share else (middle, high)
    return (low + high) / 2


def _dataset(  # what was generated
    study: Confounded | Correlated,
    seed: int,
    bounds: Interval,
    true_effect: float,
    treatment: Bits,
    outcome: Floats,
    covariates: Floats,
) -> Dataset:
    columns = {"treatment": treatment * 1.0, "y": outcome}
    names = [f"x{j}" for j in range(1, study.dimension + 1)]
    return Dataset.generated(
        f"{type(study).__name__.lower()}-{study.size}",
        pl.DataFrame(columns | dict(zip(names, covariates.T.copy(), strict=True))),
        Domain(
            Treatment("treatment", treated=1, control=0),
            ("y", bounds),
            dict.fromkeys(names, _COVARIATE_BOUNDS),
        ),
        true_effect,
        f"generated, {study}, seed {seed}",
    )


def _directions(dimension: int) -> Floats:
    """Return unit vectors for treatment, outcome and effect; the first two share half their way.

    Cosines: the drivers of treatment and of the outcome enclose an angle with cosine at least
    0.5, so that adjusting matters and knowing one is not knowing the other.
    """
    signs = np.where(np.arange(dimension) % 2 == 0, 1.0, -1.0)
    ramp = np.linspace(1.0, 0.2, dimension)
    raw = np.stack([ramp * signs, 0.5 * ramp * signs + 0.5 * ramp[::-1], ramp[::-1] * signs])
    unit: Floats = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    return unit


def _noise(tails: Tails, size: int, rng: np.random.Generator) -> Floats:
    """Draw noise of unit variance."""
    if tails == "bounded":
        return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size)
    if tails == "normal":
        return rng.standard_normal(size)
    heavy: Floats = rng.standard_t(3, size) / np.sqrt(3.0)
    return heavy
