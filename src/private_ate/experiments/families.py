"""Families of generated studies whose every effect is known: one definition for all evaluations.

The referee runs `SETTINGS`, the benchmarks draw studies of a family with `make_study`. Directions,
thresholds, trees and classes are drawn with each study, so that no method can be tuned to them;
evaluations differ by their seeds. Correlated normal covariates drive treatment (log odds of
standard deviation 0.9) and outcome through one index each. The shapes of the indices:

- ``linear``, ``nonlinear`` (a product and an absolute value), ``curved`` (strong selection,
  outcomes that follow a normal distribution function), ``varied`` (effects rise with the score),
  ``plateau`` (a line that is flat beyond half a standard deviation);
- ``rules-1``, ``rules-2``: thresholds of one covariate, or of two joined;
- ``tree-2``, ``tree-3``: a random tree of that depth; ``k-of-m``: four of eight thresholds;
  ``threefold``: a product of three covariates; ``classes``: the largest of four directions;
- ``linear-opposite``, ``rules-2-opposite``: what raises treatment lowers the outcome;
- ``rare``: a tenth treated; ``few``: one in fifty; ``poor-overlap``: chances close to 0 and 1;
  ``never-treated``: nobody in a stratum of a fifth, where the effect is twice that of the others;
- ``trial``: treatment by a known probability;
- ``wide-5``, ``wide-20``: ``linear`` with bounds that many times wider;
- ``binary``, ``heavy``, ``zeros``, ``narrow``, ``nonlinear-heavy``: other outcomes;
- ``three-arms``: `private_ate.datasets.SeveralArms`, whose confounding is smooth.

``quiet-…`` studies have no confounding; after the dash stands the distribution of the outcome.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit, ndtr

from private_ate.arrays import Bits, Floats
from private_ate.datasets.dataset import Dataset
from private_ate.datasets.generators import intercept
from private_ate.datasets.several_arms import (
    OUTCOME_NOISE,
    SeveralArms,
    expected_outcomes,
    generate_several_arms,
)
from private_ate.domain import Binary, Domain, Interval, Treatment

__all__ = ["FAMILIES", "GROUPS", "SETTINGS", "Setting", "Study", "Units", "make_study"]

Rng = np.random.Generator
_MOST: Final = 2.5  # how far the index of the outcome counts
_CORRELATION: Final = 0.3  # of neighbouring covariates


@dataclass(frozen=True, slots=True)
class Units:
    """What a study does not see, by unit.

    Gaps between both outcomes, chances of treatment and arms of two; the outcome that a unit may
    expect in every arm, of shape (n, K), and the standard deviation of outcomes around these,
    where the recipe has one (elsewhere the outcomes themselves, and zero).
    """

    gaps: Floats
    chances: Floats
    takes: Bits
    expected: Floats
    noise: float

    def effects(self, among: Bits | None = None) -> dict[str, float]:
        """Return the true effects by estimand, of all units or of some."""
        chosen = np.ones(self.gaps.size, dtype=bool) if among is None else among
        weights: dict[str, Floats] = {
            "ate": np.ones(self.gaps.size), "att": self.takes.astype(np.float64),
            "atc": (~self.takes).astype(np.float64),
            "ato": self.chances * (1 - self.chances),
        }  # fmt: skip
        return {
            name: float(np.average(self.gaps[chosen], weights=weight[chosen]))
            for name, weight in weights.items()
        }


@dataclass(frozen=True, slots=True)
class Study:
    """A generated study, what is declared of it and its true effects.

    ``effects`` are by estimand and ``contrasts`` those of all pairs of arms; ``unit`` is what
    errors are divided by: the effect's size, or the outcome's standard deviation without
    confounding. A trial knows its ``probability``.
    """

    frame: pl.DataFrame
    domain: Domain
    effects: dict[str, float]
    contrasts: dict[tuple[str, str], float]
    unit: float
    units: Units
    probability: float | None = None


class _Shape(NamedTuple):
    """Indices of treatment and outcome, and how a family differs from the usual one."""

    indices: Callable[[Floats, Rng], tuple[Floats, Floats]]
    outcome: str = "normal"
    selection: float = 0.9  # standard deviation of the log odds of treatment
    sign: float = 1.0
    share: float = 0.5
    wider: float = 1.0
    has_closed_stratum: bool = False
    is_trial: bool = False


def make_study(
    family: str, size: int, dimension: int, share: float | None = None, seed: int = 1
) -> Study:
    """Draw a study; ``share`` is the expected share of treated units, the family's if None.

    Outcomes beyond the bounds of the recipe count as the bound, in the truth too: that is what
    every method here estimates. The truth is the mean gap of both outcomes over the units.
    """
    if family == "three-arms":
        return _three_arms(size, seed)
    shape, rng = _SHAPES[family], np.random.default_rng(seed)
    latent = _covariates(size, dimension, rng)
    score, prognosis = (_standard(index) for index in shape.indices(latent, rng))
    share = share or shape.share
    log_odds = shape.selection * score
    chances = expit(log_odds + intercept(log_odds, share))
    dose = np.ones(size)
    if shape.has_closed_stratum:
        closed = latent[:, 0] > np.quantile(latent[:, 0], 0.8)
        chances, dose = np.where(closed, 0.0, chances), np.where(closed, 2.0, 1.0)
    outcome = _OUTCOMES[shape.outcome]
    drawn = outcome.draw(score, shape.sign * prognosis, dose, rng)
    takes = rng.random(size) < chances
    control, treated = (np.clip(values, *outcome.bounds) for values in drawn[:2])
    gaps = treated - control
    known = control if drawn.expected is None else drawn.expected
    expected = np.stack([known, known + gaps], axis=1)
    units = Units(gaps, chances, takes, expected, drawn.noise)
    effects = units.effects()
    names = [f"x{place}" for place in range(dimension)]
    columns = {"t": takes.astype(np.int8), "y": np.where(takes, treated, control)}
    low, high = outcome.bounds
    middle, reach = (low + high) / 2, shape.wider * (high - low) / 2
    kind = Binary() if outcome.is_binary else Interval(middle - reach, middle + reach)
    return Study(
        frame=pl.DataFrame(columns | dict(zip(names, latent.T.copy(), strict=True))),
        domain=Domain(Treatment("t", 1, 0), ("y", kind), dict.fromkeys(names, Interval(-4, 4))),
        effects=effects,
        contrasts={("1", "0"): effects["ate"]},
        unit=float(drawn.control.std()) if family.startswith("quiet-") else abs(effects["ate"]),
        probability=share if shape.is_trial else None,
        units=units,
    )


def _three_arms(size: int, seed: int) -> Study:
    kind = SeveralArms(size, 3)
    dataset = generate_several_arms(kind, seed)
    contrasts = dataset.true_contrasts
    covariates = dataset.frame.select(dataset.domain.covariates.keys()).to_numpy()
    none = np.zeros(0)
    units = Units(none, none, none == 1, expected_outcomes(kind, covariates), OUTCOME_NOISE)
    unit = float(np.mean(np.abs(list(contrasts.values()))))
    return Study(dataset.frame, dataset.domain, {}, contrasts, unit, units)


def _covariates(size: int, dimension: int, rng: Rng) -> Floats:
    """Return normals whose correlation is 0.3 to the power of their distance."""
    gaps = np.abs(np.subtract.outer(np.arange(dimension), np.arange(dimension)))
    drawn: Floats = rng.standard_normal((size, dimension))
    return drawn @ np.linalg.cholesky(_CORRELATION**gaps).T


def _standard(values: Floats) -> Floats:
    standard: Floats = (values - values.mean()) / max(float(values.std()), 1e-9)
    return standard


# Indices of treatment and outcome: functions of the covariates and of what a study draws.


def _direction(z: Floats, rng: Rng) -> tuple[Floats, Floats]:
    index = z @ rng.standard_normal(z.shape[1])
    return index, index


def _linear(z: Floats, rng: Rng) -> tuple[Floats, Floats]:
    score, other = (_standard(z @ rng.standard_normal(z.shape[1])) for _ in range(2))
    other = _standard(other - (other @ score) / (score @ score) * score)
    return score, 0.7 * score + np.sqrt(0.51) * other


def _plateau(z: Floats, rng: Rng) -> tuple[Floats, Floats]:
    score, prognosis = _linear(z, rng)
    flat = _standard(np.clip(score, -0.5, 0.5))
    return flat, prognosis + 0.7 * (flat - score)


def _rules(z: Floats, rng: Rng, *, joined: int) -> tuple[Floats, Floats]:
    """Return sums of three rules, each of so many conditions on covariates of its own.

    With fewer covariates than conditions the rules share some.
    """
    cuts = 0.3 * rng.standard_normal(3 * joined) - 0.3 * (joined - 1)
    places = np.arange(3 * joined) % z.shape[1]
    holds = (z[:, places] > cuts).reshape(len(z), 3, joined).all(axis=2)
    weights = rng.uniform(0.7, 1.3, (2, 3)) * rng.choice([-1.0, 1.0], 3)
    found = holds @ weights.T
    return found[:, 0], found[:, 1] + 0.3 * z[:, -1]


def _tree(z: Floats, rng: Rng, *, depth: int) -> tuple[Floats, Floats]:
    splits = rng.integers(0, z.shape[1], 2**depth - 1)
    cuts = 0.4 * rng.standard_normal(splits.size)
    leaves = rng.standard_normal(2**depth)
    others = 0.8 * leaves + 0.3 * rng.standard_normal(leaves.size)
    node = np.zeros(len(z), dtype=int)
    for _ in range(depth):
        node = 2 * node + 1 + (z[np.arange(len(z)), splits[node]] > cuts[node])
    return leaves[node - splits.size], others[node - splits.size]


def _four_of_eight(z: Floats, rng: Rng) -> tuple[Floats, Floats]:
    enough = (z[:, np.arange(8) % z.shape[1]] > 0.3 * rng.standard_normal(8)).sum(axis=1) >= 4
    return enough + 0.1 * z[:, -1], enough + 0.3 * z[:, -2]


def _threefold(z: Floats, rng: Rng) -> tuple[Floats, Floats]:
    first, second, third = z[:, rng.permutation(z.shape[1])[:3]].T
    found = np.clip(first * second * third, -3.0, 3.0)
    return found + 0.2 * z[:, -1], found + 0.3 * z[:, -2]


def _classes(z: Floats, rng: Rng) -> tuple[Floats, Floats]:
    member = (z @ rng.standard_normal((z.shape[1], 4))).argmax(axis=1)
    values = rng.standard_normal(4)
    return values[member], (values + 0.3 * rng.standard_normal(4))[member] + 0.3 * z[:, -1]


def _nonlinear(z: Floats, rng: Rng) -> tuple[Floats, Floats]:
    shape = _standard(z[:, 0] * z[:, 1] + (np.abs(z[:, 2]) - 0.8) / 0.6)
    straight = z @ rng.standard_normal(z.shape[1]) / np.sqrt(z.shape[1])
    return 0.9 * shape + 0.44 * straight, 0.8 * shape + 0.5 * straight


# Outcomes of the score, the index of the outcome and a multiple of the effect; that without
# treatment and that with it come from the same draws.
class _Drawn(NamedTuple):
    """Both outcomes; the expected one without treatment and its noise, where a recipe has them."""

    control: Floats
    treated: Floats
    expected: Floats | None = None
    noise: float = 0.0


def _additive(
    _: Floats, prognosis: Floats, dose: Floats, rng: Rng, *, recipe: tuple[float, float, float]
) -> _Drawn:
    slope, noise, effect = recipe
    expected: Floats = 5.0 + slope * np.clip(prognosis, -_MOST, _MOST)
    control = expected + noise * rng.standard_normal(dose.size)
    return _Drawn(control, control + effect * dose, expected, noise)


def _varied(score: Floats, prognosis: Floats, _: Floats, rng: Rng) -> _Drawn:
    expected: Floats = 0.7 * prognosis
    control = expected + 0.7 * rng.standard_normal(score.size)
    return _Drawn(control, control + (1 + 0.6 * np.tanh(score)), expected, 0.7)


def _curved(score: Floats, prognosis: Floats, _: Floats, rng: Rng) -> _Drawn:
    expected: Floats = 0.2 + 0.5 * ndtr(prognosis)
    control = expected + 0.3 * (rng.random(score.size) - 0.5)
    effects = 0.1 * (1 + 0.6 * np.tanh(score))
    return _Drawn(control, control + effects, expected, 0.3 / np.sqrt(12))


def _yes_no(_: Floats, prognosis: Floats, dose: Floats, rng: Rng) -> _Drawn:
    log_odds, drawn = -3.3 + 0.7 * np.clip(prognosis, -_MOST, _MOST), rng.random(dose.size)
    control, treated = drawn < expit(log_odds), drawn < expit(log_odds + 0.8 * dose)
    return _Drawn(control.astype(np.float64), treated.astype(np.float64))


def _heavy(_: Floats, prognosis: Floats, dose: Floats, rng: Rng) -> _Drawn:
    level = np.clip(prognosis, -_MOST, _MOST)
    log: Floats = 1.0 + 0.5 * level + 0.9 * rng.standard_normal(dose.size)
    return _Drawn(np.exp(log), np.exp(log + 0.35 * dose))


def _zeros(_: Floats, prognosis: Floats, dose: Floats, rng: Rng) -> _Drawn:
    level, drawn = np.clip(prognosis, -_MOST, _MOST), rng.random(dose.size)
    amount = rng.uniform(0.0, 2.0, dose.size) * np.exp(0.4 * level)
    log_odds = -0.6 + 0.7 * level
    present = (drawn < expit(log_odds)), (drawn < expit(log_odds + 0.35 * dose))
    return _Drawn(present[0] * amount, present[1] * amount * (1.0 + 0.15 * dose))


def _quiet(
    _: Floats, prognosis: Floats, dose: Floats, rng: Rng, *, draw: Callable[[Floats, Rng], Floats]
) -> _Drawn:
    """Add three tenths of a standard deviation; of yes and no, four in a hundred become yes."""
    control = draw(np.clip(prognosis, -_MOST, _MOST), rng)
    if draw is _QUIET["binary"]:
        return _Drawn(control, np.maximum(control, rng.random(dose.size) < 0.04))
    return _Drawn(control, control + 0.3 * float(control.std()))


_QUIET: Final[dict[str, Callable[[Floats, Rng], Floats]]] = {
    "uniform": lambda level, rng: 0.5 * rng.random(level.size) + 0.1 * level + 0.25,
    "normal-8": lambda level, rng: 0.5 + (0.06 * level + 0.11 * rng.standard_normal(level.size)),
    "normal-20": lambda level, rng: 0.5 + (0.02 * level + 0.046 * rng.standard_normal(level.size)),
    "beta": lambda level, rng: rng.beta(2, 5, level.size) + 0.02 * level,
    "zeros": lambda level, rng: (
        (rng.random(level.size) < 0.4 + 0.05 * level) * rng.uniform(0.1, 0.8, level.size)
    ),
    "lognormal": lambda level, rng: np.exp(
        -2.5 + 0.3 * level + 0.6 * rng.standard_normal(level.size)
    ),
    "binary": lambda level, rng: (rng.random(level.size) < 0.1 + 0.02 * level).astype(float),
}


class _Outcome(NamedTuple):
    """The bounds of an outcome's recipe, and how it is drawn without and with treatment."""

    bounds: tuple[float, float]
    draw: Callable[[Floats, Floats, Floats, Rng], _Drawn]
    is_binary: bool = False


_OUTCOMES: Final[dict[str, _Outcome]] = {
    "normal": _Outcome((0.0, 10.0), partial(_additive, recipe=(1.1, 0.6, 0.6))),
    "narrow": _Outcome((0.0, 10.0), partial(_additive, recipe=(0.25, 0.4, 0.2))),
    "varied": _Outcome((-7.0, 7.0), _varied),
    "curved": _Outcome((0.0, 1.1), _curved),
    "binary": _Outcome((0.0, 1.0), _yes_no, is_binary=True),
    "heavy": _Outcome((0.0, 80.0), _heavy),  # about one outcome in a thousand lies above
    "zeros": _Outcome((0.0, 8.0), _zeros),
} | {
    f"quiet-{kind}": _Outcome((0.0, 1.0), partial(_quiet, draw=draw), kind == "binary")
    for kind, draw in _QUIET.items()
}

_SHAPES: Final[dict[str, _Shape]] = {
    "varied": _Shape(_linear, "varied", 1.0),
    "curved": _Shape(_linear, "curved", 1.6),
    "linear": _Shape(_linear),
    "linear-opposite": _Shape(_linear, sign=-1.0),
    "nonlinear": _Shape(_nonlinear),
    "plateau": _Shape(_plateau),
    "rules-1": _Shape(partial(_rules, joined=1)),
    "rules-2": _Shape(partial(_rules, joined=2)),
    "rules-2-opposite": _Shape(partial(_rules, joined=2), sign=-1.0),
    "tree-2": _Shape(partial(_tree, depth=2)),
    "tree-3": _Shape(partial(_tree, depth=3)),
    "k-of-m": _Shape(_four_of_eight),
    "threefold": _Shape(_threefold),
    "classes": _Shape(_classes),
    "rare": _Shape(_linear, share=0.1),
    "few": _Shape(_linear, share=0.02),
    "nonlinear-rare": _Shape(_nonlinear, share=0.1),
    "poor-overlap": _Shape(_linear, selection=3.0),
    "never-treated": _Shape(_linear, has_closed_stratum=True),
    "trial": _Shape(_linear, selection=0.0, is_trial=True),
    "trial-rare": _Shape(_linear, selection=0.0, share=0.1, is_trial=True),
    "wide-5": _Shape(_linear, wider=5.0),
    "wide-20": _Shape(_linear, wider=20.0),
    "binary": _Shape(_linear, "binary"),
    "heavy": _Shape(_linear, "heavy"),
    "zeros": _Shape(_linear, "zeros"),
    "narrow": _Shape(_linear, "narrow"),
    "nonlinear-heavy": _Shape(_nonlinear, "heavy"),
    **{f"quiet-{kind}": _Shape(_direction, f"quiet-{kind}", 0.0) for kind in _QUIET},
}
FAMILIES: Final = (*_SHAPES, "three-arms")
"""The families by name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One study design of the referee: a family at a size, and the group it is drawn in."""

    group: str
    family: str
    size: int = 10_000
    dimension: int = 20

    @property
    def name(self) -> str:
        """A short name that no other setting has."""
        return f"{self.family}-n{self.size}-d{self.dimension}"

    @property
    def words(self) -> str:
        """The family, and what differs from n = 10 000 and d = 20."""
        size = f", n = {self.size}" if self.size != 10_000 else ""
        columns = f", d = {self.dimension}" if self.dimension != 20 else ""
        return self.family.replace("-", " ") + size + columns

    @property
    def probability(self) -> float | None:
        """The known probability of treatment, of a trial alone."""
        shape = _SHAPES.get(self.family)
        return shape.share if shape is not None and shape.is_trial else None

    def draw(self, number: int) -> Dataset:
        """Draw a study as a data set with its true effect; settings share no random numbers."""
        digest = hashlib.sha256(f"{self.name}/{number}".encode()).digest()
        seed = int.from_bytes(digest[:8], "big")
        if self.family == "three-arms":
            return generate_several_arms(SeveralArms(self.size, 3), seed)
        study = make_study(self.family, self.size, self.dimension, seed=seed)
        source = f"generated, number {number}"
        return Dataset.generated(self.name, study.frame, study.domain, study.effects["ate"], source)


_S, _M, _L = 1000, 10_000, 100_000
GROUPS: Final[dict[str, tuple[Setting, ...]]] = {
    group: tuple(
        Setting(group, family, size, dimension)
        for family, size, dimension in product(families, sizes, dimensions)
    )
    for group, families, sizes, dimensions in (
        ("linear confounding", ("linear",), (_S, _M, _L), (20,)),
        ("non-linear confounding", ("nonlinear",), (_S, _M, _L), (20,)),
        ("plateaus", ("plateau",), (_S, _M), (20,)),
        ("rules of eligibility", ("rules-1", "rules-2"), (_S, _M, _L), (20,)),
        ("number of covariates", ("linear", "nonlinear"), (_M,), (5, 60)),
        ("treated share", ("rare", "few", "nonlinear-rare"), (_M,), (20,)),
        ("outcome", ("binary", "heavy", "zeros", "narrow", "nonlinear-heavy"), (_M,), (20,)),
        ("effects that vary", ("varied", "curved"), (_M,), (20,)),
        ("randomised trial", ("trial", "trial-rare"), (_S, _M), (20,)),
        ("trees", ("tree-2", "tree-3"), (_S, _M), (20,)),
        ("counts of conditions", ("k-of-m",), (_S, _M), (20,)),
        ("interactions of three", ("threefold",), (_S, _M), (20,)),
        ("latent classes", ("classes",), (_S, _M), (20,)),
        ("overlap", ("poor-overlap", "never-treated"), (_M,), (20,)),
        ("opposite confounding", ("linear-opposite", "rules-2-opposite"), (_M,), (20,)),
        ("quiet studies", tuple(f"quiet-{kind}" for kind in _QUIET), (300, 700, 1500), (5,)),
        ("wide bounds", ("wide-5", "wide-20"), (_M,), (20,)),
        ("three arms", ("three-arms",), (_S, _M), (5,)),
    )
}
"""The referee's settings by group: a base cell, one factor varied at a time, some crossings."""
SETTINGS: Final = {setting.name: setting for group in GROUPS.values() for setting in group}
