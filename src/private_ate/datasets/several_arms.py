"""Confounded studies of several arms whose mean outcomes are known, arm by arm."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from scipy.special import expit, softmax

from private_ate.arrays import Floats, Integers
from private_ate.datasets.dataset import Dataset
from private_ate.domain import Binary, Domain, Interval, Treatment
from private_ate.errors import ArgumentError

__all__ = [
    "OUTCOME_NOISE",
    "SeveralArms",
    "draw_codes",
    "expected_outcomes",
    "find_intercepts",
    "generate_several_arms",
]

_DIMENSION: Final = 5
_REACH: Final = 3.0  # covariates that are numbers are clipped to ± this
_CUT: Final = 0.3  # the last two are seen only as above this or not
_LEVEL: Final = 5.0
_LARGEST_EFFECT: Final = 1.5
OUTCOME_NOISE: Final = 0.8
"""Standard deviation of outcomes that are not binary around their expectation."""
_BASE_RATE: Final = -1.0  # log odds of a binary outcome of an average unit in the first arm
_MOST_ARMS: Final = 20
_STREAM: Final = 1000  # coefficients of K arms are drawn from this seed plus K
_ROUNDS: Final = 200  # of the intercepts' fixed point at most; it gains a digit in a few
_CLOSE: Final = 1e-9
_COVARIATES: Final = {
    f"x{j}": Interval(-_REACH, _REACH) if j <= 3 else Binary() for j in range(1, _DIMENSION + 1)
}


@dataclass(frozen=True, slots=True)
class SeveralArms:
    """What a confounded study of several arms looks like.

    Five covariates: three correlated normals clipped to ±3, two more seen as above 0.3 or not.
    Arms follow a multinomial logit that is linear in the standardised covariates and has the first
    one's square; outcomes follow another direction and the same square. The coefficients are drawn
    once for each number of arms and never again: seeds change the units.

    Attributes
    ----------
    size : int
        Units (n).
    arms : int
        Declared arms (K), from 2 to 20, named A, B, C and so on; A is the reference.
    strength : float
        How strongly covariates select the arm: 1 confounds, 0.3 does so weakly, 0 is a
        randomised study.
    shares : tuple of float or None
        Expected shares of the arms, by intercepts; without them the intercepts are 0.
    binary : bool
        Whether the outcome is 0 or 1, with effects on its log odds, or lies in [0, 10], with
        effects from 0 to 1.5 that vary with the second covariate.
    """

    size: int = 10_000
    arms: int = 3
    strength: float = 1.0
    shares: tuple[float, ...] | None = None
    binary: bool = False

    def __post_init__(self) -> None:
        if not 2 <= self.arms <= _MOST_ARMS or self.size < 2 * self.arms:
            msg = f"a study has 2 to {_MOST_ARMS} arms and at least two units for each"
            raise ArgumentError(msg)
        if self.strength < 0:
            msg = "the strength of selection is from 0"
            raise ArgumentError(msg)
        if self.shares is not None and (
            len(self.shares) != self.arms
            or min(self.shares) <= 0
            or not np.isclose(sum(self.shares), 1.0)
        ):
            msg = f"shares are {self.arms} positive numbers that add up to 1"
            raise ArgumentError(msg)

    @property
    def labels(self) -> tuple[str, ...]:
        """The arms' labels, the reference first."""
        return tuple(string.ascii_uppercase[: self.arms])


@dataclass(frozen=True, slots=True)
class _Coefficients:
    """Directions of selection ``(K, d)``, of its square ``(K,)`` and of the outcome ``(d,)``."""

    selection: Floats
    squares: Floats
    prognosis: Floats


def generate_several_arms(study: SeveralArms, seed: int) -> Dataset:
    """Generate units; true means are averages over them of the expected outcome in each arm.

    Expected outcomes are taken before clipping to [0, 10], which hardly any outcome needs.
    """
    rng = np.random.default_rng(seed)
    covariates = _draw_covariates(study.size, rng)
    standardized = (covariates - covariates.mean(axis=0)) / covariates.std(axis=0)
    square = standardized[:, 0] ** 2 - 1.0
    fixed = _coefficients(study)
    chances = _chances(standardized, square, fixed, study)
    codes = draw_codes(chances, rng)
    expected = expected_outcomes(study, covariates)
    own = expected[np.arange(study.size), codes]
    if study.binary:
        outcome = (rng.random(study.size) < own) * 1.0
    else:
        outcome = np.clip(own + OUTCOME_NOISE * rng.standard_normal(study.size), 0.0, 2 * _LEVEL)
    means = expected.mean(axis=0)
    columns = {"arm": np.array(study.labels)[codes], "y": outcome}
    bounds = Binary() if study.binary else Interval(0.0, 2 * _LEVEL)
    return Dataset.generated(
        f"several-arms-{study.arms}-{study.size}",
        pl.DataFrame(columns | dict(zip(_COVARIATES, covariates.T.copy(), strict=True))),
        Domain(Treatment("arm", arms=study.labels), ("y", bounds), _COVARIATES),
        float(means[-1] - means[0]),
        f"generated, {study}, seed {seed}",
        dict(zip(study.labels, means.tolist(), strict=True)),
    )


def find_intercepts(logits: Floats, shares: Floats) -> Floats:
    """Return the intercepts with which the arms' mean chances are the shares; shape (K,)."""
    intercepts: Floats = np.log(shares)
    for _ in range(_ROUNDS):
        gaps = np.log(shares) - np.log(softmax(logits + intercepts, axis=1).mean(axis=0))
        intercepts = intercepts + gaps
        if np.abs(gaps).max() < _CLOSE:
            break
    return intercepts


def draw_codes(chances: Floats, rng: np.random.Generator) -> Integers:
    """Draw every unit's arm from its chances, of shape (n, K)."""
    passed = (chances.cumsum(axis=1) < rng.random(len(chances))[:, None]).sum(axis=1)
    codes: Integers = np.minimum(passed, chances.shape[1] - 1)  # a sum may round below one
    return codes


def _draw_covariates(size: int, rng: np.random.Generator) -> Floats:
    """Draw normals of correlation 0.36, clip them and cut the last two."""
    own, shared = rng.standard_normal((size, _DIMENSION)), rng.standard_normal((size, 1))
    drawn = np.clip(0.8 * own + 0.6 * shared, -_REACH, _REACH)
    drawn[:, 3:] = drawn[:, 3:] > _CUT
    return drawn


def _coefficients(study: SeveralArms) -> _Coefficients:
    """Draw the coefficients that belong to this number of arms."""
    rng = np.random.default_rng(_STREAM + study.arms)
    raw = rng.standard_normal((study.arms, _DIMENSION))
    selection = (raw - raw.mean(axis=0)) * 1.1 * study.strength / np.sqrt(_DIMENSION)
    squares = 0.2 * study.strength * rng.standard_normal(study.arms)
    prognosis = selection[0] - selection[-1] + 0.5 * rng.standard_normal(_DIMENSION)
    return _Coefficients(selection, squares, prognosis / np.linalg.norm(prognosis))


def _chances(
    standardized: Floats, square: Floats, fixed: _Coefficients, study: SeveralArms
) -> Floats:
    """Return every unit's chance of every arm, of shape (n, K)."""
    logits = standardized @ fixed.selection.T + np.outer(square, fixed.squares)
    if study.shares is not None:
        logits += find_intercepts(logits, np.array(study.shares))
    chances: Floats = softmax(logits, axis=1)
    return chances


def expected_outcomes(study: SeveralArms, covariates: Floats) -> Floats:
    """Return every unit's expected outcome in every arm, of shape (n, K)."""
    standardized = (covariates - covariates.mean(axis=0)) / covariates.std(axis=0)
    square = standardized[:, 0] ** 2 - 1.0
    fixed = _coefficients(study)
    prognosis = 0.9 * (standardized @ fixed.prognosis) + 0.25 * square
    effects = np.linspace(0.0, _LARGEST_EFFECT, study.arms)
    if study.binary:
        risks: Floats = expit(_BASE_RATE + prognosis[:, None] + effects)
        return risks
    varied = np.outer(1.0 + 0.5 * standardized[:, 1], effects)
    expected: Floats = _LEVEL + prognosis[:, None] + varied
    return expected
