"""Families of generated studies for `accuracy_blocks.py`, each with the truth of every estimand.

- ``correlated``: correlated covariates of which every third is seen as yes or no only, so that a
  part of the confounding is unmeasured (``private_ate.datasets.Correlated``);
- ``measured``: the same with all covariates seen;
- ``randomized``: the same without selection, the design declared; ``unselected``: not declared;
- ``varied``: linear in the score, effects that rise with it, so that estimands differ;
- ``curved``: strong logistic selection, outcomes that follow a normal distribution function of
  the covariates, effects that vary with the score;
- ``nonlinear``: selection and outcome through a product and an absolute value;
- ``bent``: two to four products, absolute values, jumps or sines of random covariates beside a
  linear part; covariates are normal, lognormal or yes and no;
- ``skewed``: lognormal outcomes, an effect in proportion to their level;
- ``earnings``: the same with a third of the outcomes zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import expit, ndtr

from private_ate import Domain, Interval, Treatment
from private_ate.datasets import Correlated, generate

ESTIMANDS = ("ate", "att", "atc", "ato")


@dataclass(frozen=True, slots=True)
class Units:
    """What a study does not see: gaps between both outcomes and chances of treatment, by unit."""

    gaps: np.ndarray
    chances: np.ndarray
    takes: np.ndarray

    def effects(self, among: np.ndarray | None = None) -> dict[str, float]:
        """Return the true effects by estimand, of all units or of some."""
        chosen = np.ones(self.gaps.size, dtype=bool) if among is None else among
        weights = {
            "ate": np.ones(self.gaps.size), "att": self.takes, "atc": ~self.takes,
            "ato": self.chances * (1 - self.chances),
        }  # fmt: skip
        return {
            name: float(np.average(self.gaps[chosen], weights=weight[chosen]))
            for name, weight in weights.items()
        }


@dataclass(frozen=True, slots=True)
class Study:
    """A generated study, what is declared of it and its true effects by estimand."""

    frame: pl.DataFrame
    domain: Domain
    effects: dict[str, float]
    design: str = "unknown"
    units: Units | None = None


def make_study(family: str, size: int, dimension: int, share: float, seed: int) -> Study:
    if family in OWN:
        return OWN[family](size, dimension, share, np.random.default_rng(seed))
    random = family in ("randomized", "unselected")
    dataset = generate(
        Correlated(
            size, dimension, share,
            selection=0.0001 if random else 1.0,
            dichotomized=family == "correlated",
        ),
        seed,
    )  # fmt: skip
    effects = {"ate": float(dataset.true_effect)}
    design = "randomized" if family == "randomized" else "unknown"
    return Study(dataset.frame, dataset.domain, effects, design)


def varied(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent, score, prognosis = _linear(size, dimension, rng)
    chances = expit(score + _intercept(score, share))
    effects = 1 + 0.6 * np.tanh(score)
    outcome = 0.7 * prognosis + 0.7 * rng.standard_normal(size)
    return _study(latent, chances, outcome, outcome + effects, (-7.0, 7.0), rng)


def curved(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent, score, prognosis = _linear(size, dimension, rng)
    chances = expit(1.6 * score + _intercept(1.6 * score, share))
    effects = 0.1 * (1 + 0.6 * np.tanh(score))
    outcome = 0.05 + 0.5 * ndtr(prognosis) + 0.3 * rng.random(size)
    return _study(latent, chances, outcome, outcome + effects, (0.0, 1.1), rng)


def nonlinear(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent = rng.standard_normal((size, dimension))
    bent = latent[:, 0] * latent[:, 1] + (np.abs(latent[:, 2]) - 0.8) / 0.6
    bent = (bent - bent.mean()) / bent.std()
    straight = latent @ rng.standard_normal(dimension) / np.sqrt(dimension)
    score = 0.9 * bent + 0.44 * straight
    chances = expit(score + _intercept(score, share))
    outcome = 0.8 * bent + 0.5 * straight + 0.7 * rng.standard_normal(size)
    return _study(latent, chances, outcome, outcome + 1.0, (-6.0, 6.0), rng)


def bent(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent, score, prognosis = _linear(size, dimension, rng)
    kinds = rng.integers(0, 4, dimension)
    seen = latent.copy()
    seen[:, kinds == 1] = latent[:, kinds == 1] > 0.4 * rng.standard_normal((kinds == 1).sum())
    seen[:, kinds == 2] = np.minimum(np.exp(0.7 * latent[:, kinds == 2]), 6.0)
    standard = (seen - seen.mean(axis=0)) / seen.std(axis=0)
    numbers = np.flatnonzero(kinds != 1) if (kinds != 1).any() else np.arange(dimension)
    bends = np.zeros((2, size))
    for _ in range(rng.integers(2, 5)):
        first, second = standard[:, rng.choice(numbers)], standard[:, rng.integers(dimension)]
        shapes = (
            first * second, np.abs(first - 0.3 * rng.standard_normal()),
            (first > 0.5 * rng.standard_normal()).astype(float), np.sin(2 * first),
        )  # fmt: skip
        bend = shapes[rng.choice(4, p=[0.5, 0.25, 0.15, 0.1])]
        bend = rng.choice([-1.0, 1.0]) * (bend - bend.mean()) / bend.std()
        bends += np.outer(rng.uniform([0.4, 0.3], 1.0), bend)
    bends /= bends.std(axis=1, keepdims=True)
    straight = rng.uniform(0.3, 0.7)
    score = straight * score + np.sqrt(1 - straight**2) * bends[0]
    chances = expit(0.9 * score + _intercept(0.9 * score, share))
    prognosis = straight * prognosis + np.sqrt(1 - straight**2) * bends[1]
    outcome = prognosis + 0.8 * rng.uniform(-1.7, 1.7, size)
    return _study(seen, chances, outcome, outcome + 1.0, (-6.0, 6.0), rng, Interval(-4, 6))


def skewed(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent, score, prognosis = _linear(size, dimension, rng)
    chances = expit(score + _intercept(score, share))
    outcome = np.exp(0.6 * prognosis + 0.5 * rng.standard_normal(size))
    return _study(latent, chances, outcome, 1.5 * outcome, (0.0, 30.0), rng)


def earnings(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent, score, prognosis = _linear(size, dimension, rng)
    chances = expit(score + _intercept(score, share))
    outcome = np.exp(0.6 * prognosis + 0.5 * rng.standard_normal(size))
    outcome *= rng.random(size) < expit(0.8 + prognosis)
    return _study(latent, chances, outcome, 1.5 * outcome, (0.0, 30.0), rng)


OWN = {
    "varied": varied, "curved": curved, "nonlinear": nonlinear, "bent": bent, "skewed": skewed,
    "earnings": earnings,
}  # fmt: skip
FAMILIES = ("correlated", "measured", "randomized", "unselected", *OWN)


def _linear(
    size: int, dimension: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return correlated covariates, a score and a prognosis that is 0.7 correlated with it."""
    gaps = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    latent = rng.standard_normal((size, dimension)) @ np.linalg.cholesky(0.3**gaps).T
    score, other = (latent @ rng.standard_normal(dimension) for _ in range(2))
    score /= score.std()
    other -= (other @ score) / (score @ score) * score
    return latent, score, 0.7 * score + np.sqrt(0.51) * other / other.std()


def _study(
    latent: np.ndarray,
    chances: np.ndarray,
    control: np.ndarray,
    treated: np.ndarray,
    bounds: tuple[float, float],
    rng: np.random.Generator,
    declared: Interval | None = None,
) -> Study:
    """Assign treatment; the truth is a mean over the units of their clipped outcomes' gaps."""
    takes = rng.random(chances.size) < chances
    control, treated = (np.clip(values, *bounds) for values in (control, treated))
    units = Units(treated - control, chances, takes)
    names = [f"x{j}" for j in range(latent.shape[1])]
    columns = {"t": takes.astype(np.int8), "y": np.where(takes, treated, control)}
    frame = pl.DataFrame(columns | dict(zip(names, latent.T.copy(), strict=True)))
    domain = Domain(
        Treatment("t", 1, 0), ("y", Interval(*bounds)),
        dict.fromkeys(names, declared or Interval(-4, 4)),
    )  # fmt: skip
    return Study(frame, domain, units.effects(), units=units)


def _intercept(score: np.ndarray, share: float) -> float:
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(score + middle).mean() > share else (middle, high)
    return (low + high) / 2
