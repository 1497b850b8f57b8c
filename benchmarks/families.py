"""Families of generated studies, each with the truth of every estimand.

Twenty correlated normal covariates drive treatment (log odds of standard deviation 0.9) and a
bounded outcome (noise of 0.6, effect 0.6) through one index each:

- ``linear``, ``nonlinear`` (a product and an absolute value), ``curved`` (strong selection,
  outcomes that follow a normal distribution function), ``varied`` (effects rise with the score),
  ``plateau`` (a line that is flat beyond half a standard deviation);
- ``rules-1``, ``rules-2``: thresholds of one covariate, or of two joined;
- ``tree-2``, ``tree-3``: a random tree of that depth; ``k-of-m``: four of eight thresholds;
  ``threefold``: a product of three covariates; ``classes``: the largest of four directions;
- ``linear-opposite``, ``rules-2-opposite``: what raises treatment lowers the outcome;
- ``rare``: a tenth treated; ``never-treated``: nobody in a stratum of a fifth, where the effect is
  twice that of the others; ``trial``: treatment by a known probability;
- ``wide-5``, ``wide-20``: ``linear`` with bounds that many times wider;
- ``three-arms``: ``private_ate.datasets.SeveralArms``.

``quiet-…`` studies have five covariates and no confounding; after the dash stands the distribution
of the outcome. Directions, thresholds and trees are drawn with each study.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit, ndtr

from private_ate import Binary, Domain, Interval, Treatment
from private_ate.datasets import SeveralArms, generate, several_arms

ESTIMANDS = ("ate", "att", "atc", "ato")
BOUNDS = (0.0, 10.0)


@dataclass(frozen=True, slots=True)
class Units:
    """What a study does not see: gaps between both outcomes and chances of treatment, by unit."""

    gaps: np.ndarray
    chances: np.ndarray
    takes: np.ndarray
    expected: np.ndarray  # the outcome that a unit may expect in every arm, shape (n, K)
    noise: float  # the standard deviation of outcomes around these

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
    """A generated study, what is declared of it and its true effects.

    ``contrasts`` are those of all pairs of arms, ``unit`` is what errors are divided by.
    """

    frame: pl.DataFrame
    domain: Domain
    effects: dict[str, float]
    contrasts: dict[tuple[str, str], float]
    unit: float
    units: Units
    probability: float | None = None


class Shape(NamedTuple):
    """An index of treatment and one of the outcome, and how a study differs from the usual."""

    index: Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]
    sign: float = 1.0
    share: float = 0.5
    wider: float = 1.0
    never: bool = False
    is_trial: bool = False


def make_study(
    family: str, size: int, dimension: int, share: float | None = None, seed: int = 1
) -> Study:
    """Draw a study; ``share`` is the expected share of treated units, the family's if None."""
    rng = np.random.default_rng(seed)
    if family == "three-arms":
        return three_arms(size, seed)
    if family.startswith("quiet-"):
        return quiet(family.removeprefix("quiet-"), size, dimension, rng)
    if family in OWN:
        return OWN[family](size, dimension, share or 0.5, rng)
    shape = SHAPES[family]
    return shaped(shape, size, dimension, share or shape.share, rng)


def three_arms(size: int, seed: int) -> Study:
    kind = SeveralArms(size, 3)
    dataset = generate(kind, seed)
    contrasts = dataset.true_contrasts
    unit = float(np.mean(np.abs(list(contrasts.values()))))
    drawn = dataset.frame.select(dataset.domain.covariates.keys()).to_numpy()
    standard = (drawn - drawn.mean(axis=0)) / drawn.std(axis=0)
    expected = several_arms._expected_outcomes(
        standard, standard[:, 0] ** 2 - 1.0, several_arms._coefficients(kind), kind
    )
    none = np.zeros(0)
    units = Units(none, none, none, expected, 0.8)
    return Study(dataset.frame, dataset.domain, {}, contrasts, unit, units)


def shaped(
    shape: Shape, size: int, dimension: int, share: float, rng: np.random.Generator
) -> Study:
    latent = _covariates(size, dimension, rng)
    selection, prognosis = (_standard(index) for index in shape.index(latent, rng))
    score = 0.0 * selection if shape.is_trial else 0.9 * selection
    chances = expit(score + _intercept(score, share))
    effects = np.full(size, 0.6)
    if shape.never:
        stratum = latent[:, 0] > np.quantile(latent[:, 0], 0.8)
        chances, effects = np.where(stratum, 0.0, chances), np.where(stratum, 1.2, 0.6)
    level = shape.sign * np.clip(prognosis, -2.5, 2.5)
    expected, noise = 5.0 + 1.1 * level, 0.6
    outcome = expected + noise * rng.standard_normal(size)
    study = _study(
        latent, chances, outcome, outcome + effects, BOUNDS, rng, shape.wider,
        expected=expected, noise=noise,
    )  # fmt: skip
    return replace(study, probability=share) if shape.is_trial else study


def linear(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    score, other = (_standard(z @ rng.standard_normal(z.shape[1])) for _ in range(2))
    other = _standard(other - (other @ score) / (score @ score) * score)
    return score, 0.7 * score + np.sqrt(0.51) * other


def plateau(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    score, prognosis = linear(z, rng)
    flat = _standard(np.clip(score, -0.5, 0.5))
    return flat, prognosis + 0.7 * (flat - score)


def rules(z: np.ndarray, rng: np.random.Generator, joined: int) -> tuple[np.ndarray, np.ndarray]:
    """Return sums of three rules, each of so many conditions on covariates of its own."""
    cuts = 0.3 * rng.standard_normal(3 * joined) - 0.3 * (joined - 1)
    holds = (z[:, : 3 * joined] > cuts).reshape(len(z), 3, joined).all(axis=2)
    weights = rng.uniform(0.7, 1.3, (2, 3)) * rng.choice([-1.0, 1.0], 3)
    found = holds @ weights.T
    return found[:, 0], found[:, 1] + 0.3 * z[:, -1]


def tree(z: np.ndarray, rng: np.random.Generator, depth: int) -> tuple[np.ndarray, np.ndarray]:
    splits = rng.integers(0, z.shape[1], 2**depth - 1)
    cuts = 0.4 * rng.standard_normal(splits.size)
    leaves = rng.standard_normal(2**depth)
    others = 0.8 * leaves + 0.3 * rng.standard_normal(leaves.size)
    node = np.zeros(len(z), dtype=int)
    for _ in range(depth):
        node = 2 * node + 1 + (z[np.arange(len(z)), splits[node]] > cuts[node])
    return leaves[node - splits.size], others[node - splits.size]


def four_of_eight(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    enough = (z[:, :8] > 0.3 * rng.standard_normal(8)).sum(axis=1) >= 4
    return enough + 0.1 * z[:, -1], enough + 0.3 * z[:, -2]


def threefold(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    first, second, third = z[:, rng.permutation(z.shape[1])[:3]].T
    product = np.clip(first * second * third, -3.0, 3.0)
    return product + 0.2 * z[:, -1], product + 0.3 * z[:, -2]


def classes(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    member = (z @ rng.standard_normal((z.shape[1], 4))).argmax(axis=1)
    values = rng.standard_normal(4)
    return values[member], (values + 0.3 * rng.standard_normal(4))[member] + 0.3 * z[:, -1]


def product_and_absolute(z: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    shape = _standard(z[:, 0] * z[:, 1] + (np.abs(z[:, 2]) - 0.8) / 0.6)
    straight = z @ rng.standard_normal(z.shape[1]) / np.sqrt(z.shape[1])
    return 0.9 * shape + 0.44 * straight, 0.8 * shape + 0.5 * straight


def varied(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent = _covariates(size, dimension, rng)
    score, prognosis = linear(latent, rng)
    chances = expit(score + _intercept(score, share))
    effects = 1 + 0.6 * np.tanh(score)
    expected, noise = 0.7 * prognosis, 0.7
    outcome = expected + noise * rng.standard_normal(size)
    return _study(latent, chances, outcome, outcome + effects, (-7.0, 7.0), rng,
                  expected=expected, noise=noise)  # fmt: skip


def curved(size: int, dimension: int, share: float, rng: np.random.Generator) -> Study:
    latent = _covariates(size, dimension, rng)
    score, prognosis = linear(latent, rng)
    chances = expit(1.6 * score + _intercept(1.6 * score, share))
    effects = 0.1 * (1 + 0.6 * np.tanh(score))
    expected, noise = 0.2 + 0.5 * ndtr(prognosis), 0.3 / np.sqrt(12)
    outcome = expected + 0.3 * (rng.random(size) - 0.5)
    return _study(latent, chances, outcome, outcome + effects, (0.0, 1.1), rng,
                  expected=expected, noise=noise)  # fmt: skip


def quiet(kind: str, size: int, dimension: int, rng: np.random.Generator) -> Study:
    """Draw a study without confounding; half of the units are treated, and that is not declared."""
    latent = _covariates(size, dimension, rng)
    level = np.clip(_standard(latent @ rng.standard_normal(dimension)), -2.5, 2.5)
    control = QUIET[kind](level, rng)
    effect = 0.3 * float(control.std())
    treated = control + effect
    if kind == "binary":
        treated = np.maximum(control, rng.random(size) < 0.04)
    bounds = (0.0, 1.0)
    return _study(latent, np.full(size, 0.5), control, treated, bounds, rng,
                  unit=float(control.std()), is_binary=kind == "binary")  # fmt: skip


QUIET = {
    "uniform": lambda level, rng: 0.5 * rng.random(level.size) + 0.1 * level + 0.25,
    "normal-8": lambda level, rng: 0.5 + (0.06 * level + 0.11 * rng.standard_normal(level.size)),
    "normal-20": lambda level, rng: 0.5 + (0.02 * level + 0.046 * rng.standard_normal(level.size)),
    "beta": lambda level, rng: rng.beta(2, 5, level.size) + 0.02 * level,
    "zeros": lambda level, rng: (rng.random(level.size) < 0.4 + 0.05 * level)
    * rng.uniform(0.1, 0.8, level.size),
    "lognormal": lambda level, rng: np.exp(-2.5 + 0.3 * level + 0.6 * rng.standard_normal(level.size)),  # noqa: E501
    "binary": lambda level, rng: (rng.random(level.size) < 0.1 + 0.02 * level).astype(float),
}  # fmt: skip


OWN = {"varied": varied, "curved": curved}
SHAPES = {
    "linear": Shape(linear),
    "plateau": Shape(plateau),
    "linear-opposite": Shape(linear, sign=-1.0),
    "nonlinear": Shape(product_and_absolute),
    "rules-1": Shape(lambda z, rng: rules(z, rng, 1)),
    "rules-2": Shape(lambda z, rng: rules(z, rng, 2)),
    "rules-2-opposite": Shape(lambda z, rng: rules(z, rng, 2), sign=-1.0),
    "tree-2": Shape(lambda z, rng: tree(z, rng, 2)),
    "tree-3": Shape(lambda z, rng: tree(z, rng, 3)),
    "k-of-m": Shape(four_of_eight),
    "threefold": Shape(threefold),
    "classes": Shape(classes),
    "rare": Shape(linear, share=0.1),
    "never-treated": Shape(linear, never=True),
    "trial": Shape(linear, is_trial=True),
    "wide-5": Shape(linear, wider=5.0),
    "wide-20": Shape(linear, wider=20.0),
}
FAMILIES = (*OWN, *SHAPES, "three-arms", *(f"quiet-{kind}" for kind in QUIET))


def _covariates(size: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    """Return normals whose correlation is 0.3 to the power of their distance."""
    gaps = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    return rng.standard_normal((size, dimension)) @ np.linalg.cholesky(0.3**gaps).T


def _standard(values: np.ndarray) -> np.ndarray:
    return (values - values.mean()) / max(float(values.std()), 1e-9)


def _study(
    latent: np.ndarray,
    chances: np.ndarray,
    control: np.ndarray,
    treated: np.ndarray,
    bounds: tuple[float, float],
    rng: np.random.Generator,
    wider: float = 1.0,
    *,
    unit: float | None = None,
    is_binary: bool = False,
    expected: np.ndarray | None = None,
    noise: float = 0.0,
) -> Study:
    """Assign treatment; the truth is a mean over the units of their clipped outcomes' gap."""
    takes = rng.random(chances.size) < chances
    control, treated = (np.clip(values, *bounds) for values in (control, treated))
    gaps = treated - control
    known = control if expected is None else expected  # of quiet studies only outcomes are known
    units = Units(gaps, chances, takes, np.stack([known, known + gaps], axis=1), noise)
    names = [f"x{j}" for j in range(latent.shape[1])]
    columns = {"t": takes.astype(np.int8), "y": np.where(takes, treated, control)}
    frame = pl.DataFrame(columns | dict(zip(names, latent.T.copy(), strict=True)))
    middle, reach = sum(bounds) / 2, wider * (bounds[1] - bounds[0]) / 2
    kind = Binary() if is_binary else Interval(middle - reach, middle + reach)
    domain = Domain(Treatment("t", 1, 0), ("y", kind), dict.fromkeys(names, Interval(-4, 4)))
    effects = units.effects()
    effect = effects["ate"]
    return Study(frame, domain, effects, {("1", "0"): effect}, unit or abs(effect), units)


def _intercept(score: np.ndarray, share: float) -> float:
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if expit(score + middle).mean() > share else (middle, high)
    return (low + high) / 2
