"""Families of studies for the referee, written for it alone: no method was tuned on them.

Rules of eligibility came after blocks had non-linear terms; trees, counts, interactions of three,
classes, poor overlap, the opposite sign, quiet studies and wide bounds came after both defaults
were rebuilt, with constants of their own. Each was written before any method saw it.
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

Confounding = Literal[
    "linear", "nonlinear", "rules", "tree2", "tree3", "count", "threefold", "classes", "none"
]
Overlap = Literal["good", "poor", "never"]

_CORRELATION: Final = 0.5  # of neighbouring latent normals
_SELECTION: Final = 0.8  # standard deviation of the log odds of treatment
_POOR_SELECTION: Final = 3.0  # the same where hardly anybody could be in either arm
_NEVER: Final = 1.0392304845413265  # a fifth of standardised uniform covariates lies above
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
    confounding : str
        How covariates drive treatment and outcome: by a line, by products, absolute values and
        waves ("nonlinear"), by rules of eligibility that join thresholds, by a tree of depth two
        or three, by a count of thresholds (four of eight), by a product of three covariates, or by
        latent classes; "none" is a randomised trial.
    size, dimension : int
        Units (n) and covariates (d).
    share : float
        Expected share of treated units.
    outcome : "uniform", "rare", "heavy", "zeros" or "narrow"
        The distribution of the outcome.
    varying : bool
        Whether effects grow with the probability of treatment.
    opposite : bool
        Whether what raises treatment lowers the outcome.
    overlap : "good", "poor" or "never"
        Whether chances of treatment come close to 0 and 1, or are 0 in a stratum of a fifth.
    wider : int
        How many times wider than the recipe's the declared bounds of the outcome are.
    """

    family: str
    confounding: Confounding = "linear"
    size: int = 10_000
    dimension: int = 20
    share: float = 0.5
    outcome: Outcome = "uniform"
    varying: bool = False
    opposite: bool = False
    overlap: Overlap = "good"
    wider: int = 1

    def __post_init__(self) -> None:
        if self.size < 2 or self.dimension < _LEAST_DIMENSION or not 0 < self.share < 1:
            msg = f"a setting has two units, {_LEAST_DIMENSION} covariates and a share in (0, 1)"
            raise ArgumentError(msg)

    @property
    def name(self) -> str:
        """A short name that no other setting has."""
        kind = "trial" if self.is_trial else self.confounding
        further = [
            "-varying" if self.varying else "",
            "-opposite" if self.opposite else "",
            f"-{self.overlap}" if self.overlap != "good" else "",
            f"-wide{self.wider}" if self.wider != 1 else "",
        ]
        base = f"{kind}-n{self.size}-d{self.dimension}-t{self.share:g}-{self.outcome}"
        return base + "".join(further)

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
    *(Setting("trees", kind, size) for kind in ("tree2", "tree3") for size in _SIZES[:2]),
    *(Setting("counts of conditions", "count", size) for size in _SIZES[:2]),
    *(Setting("interactions of three", "threefold", size) for size in _SIZES[:2]),
    *(Setting("latent classes", "classes", size) for size in _SIZES[:2]),
    *(Setting("overlap", overlap=kind) for kind in ("poor", "never")),
    Setting("opposite confounding", opposite=True),
    Setting("opposite confounding", "rules", opposite=True),
    *(
        Setting("quiet studies", "none", size, 5, outcome=outcome)
        for size in (300, 700)
        for outcome in ("uniform", "narrow")
    ),
    *(Setting("wide bounds", wider=wider) for wider in (5, 20)),
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
    outcome = -standard[:, 1] if setting.opposite else standard[:, 1]
    if setting.is_trial:
        return outcome, np.full(len(latent), setting.share)
    return outcome, _chances(setting, latent, scale.intercept + _score(setting, standard[:, 0]))


def _score(setting: Setting, index: Floats) -> Floats:
    score: Floats = (_POOR_SELECTION if setting.overlap == "poor" else _SELECTION) * index
    return score


def _chances(setting: Setting, latent: Floats, score: Floats) -> Floats:
    """Return the chances of treatment at log odds; nobody is treated in a closed stratum."""
    if setting.overlap != "never":
        return _sigmoid(score)
    closed = _standardised(latent[:, :1])[:, 0] > _NEVER
    chances: Floats = np.where(closed, 0.0, _sigmoid(score))
    return chances


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
            nonlinear = _waves(covariates)
        case "rules":
            nonlinear = _rules(covariates)
        case "tree2" | "tree3":
            nonlinear = _leaves(covariates, depth=int(setting.confounding[-1]))
        case "count":
            nonlinear = _counts(covariates)
        case "threefold":
            nonlinear = _products(covariates)
        case "classes":
            nonlinear = _classes(covariates)
        case _:
            return linear
    whole: Floats = 0.5 * linear + nonlinear
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


_SPLITS: Final = (2, 4, 0, 3, 1, 2, 0)  # covariates at the nodes of a tree, level by level
_CUTS: Final = (0.2, -0.3, 0.4, 0.0, 0.1, -0.6, -0.2)
_LEAVES: Final = np.array(
    [[1.1, 0.9], [-0.7, -0.9], [0.3, 0.6], [-1.2, -0.8], [0.8, 1.2], [-0.4, -0.2], [1.4, 0.7],
     [-0.9, -1.1]]
)  # fmt: skip


def _leaves(covariates: Floats, depth: int) -> Floats:
    """Return the values of a tree's leaves; a row goes right above a node's cut."""
    splits, cuts = np.array(_SPLITS), np.array(_CUTS)
    rows, node = np.arange(len(covariates)), np.zeros(len(covariates), dtype=np.int64)
    for _ in range(depth):
        node = 2 * node + 1 + (covariates[rows, splits[node]] > cuts[node])
    found: Floats = _LEAVES[node + 1 - 2**depth]
    return found


_THRESHOLDS: Final = np.array([0.1, 0.0, -0.2, -0.3, 0.3, 0.0, 0.2, -0.1])


def _counts(covariates: Floats) -> Floats:
    """Return whether at least half of up to eight conditions hold."""
    thresholds = _THRESHOLDS[: covariates.shape[1]]
    holds = (covariates[:, : thresholds.size] > thresholds).sum(axis=1)
    return np.outer(2 * holds >= thresholds.size, [1.8, 1.6])


def _products(covariates: Floats) -> Floats:
    first, third, fifth = covariates[:, [0, 2, 4]].T
    return np.outer(np.clip(first * third * fifth, -3.0, 3.0), [1.2, 1.0])


_CLASSES: Final = np.array([[1.2, 1.0], [-0.9, -1.1], [0.4, 0.7], [-0.7, -0.4]])


def _classes(covariates: Floats) -> Floats:
    """Return the values of four classes; a row is in the one along whose direction it is most."""
    places = np.arange(covariates.shape[1])
    directions = np.cos(np.outer(places, [0.7, 1.3, 2.1, 2.9]))
    found: Floats = _CLASSES[(covariates @ directions).argmax(axis=1)]
    return found


@lru_cache(maxsize=64)
def _scale_of(setting: Setting) -> _Scale:
    """Find from a fixed reference sample what makes indices standard and the share right."""
    rng = np.random.default_rng(_REFERENCE_SEED)
    latent = _latent(rng, _REFERENCE_ROWS, setting.dimension)
    raw = _raw_indices(setting, _standardised(latent))
    mean, deviation = raw.mean(axis=0), raw.std(axis=0)
    score = _score(setting, (raw[:, 0] - mean[0]) / deviation[0])
    low, high = -30.0, 30.0
    while high - low > _FLAT:
        middle = (low + high) / 2
        if _chances(setting, latent, score + middle).mean() > setting.share:
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
    low, high = OUTCOME_BOUNDS[setting.outcome]
    more = (setting.wider - 1) * (high - low) / 2
    kind = Binary() if setting.outcome == "rare" else Interval(low - more, high + more)
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
