"""Steps that several competitors share: row splits, noise on sums, estimand weights, intervals.

A row is in one part of a split, chosen by a hash of its index and never by a record, so what is
released from one part costs nothing to the rows of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, Final, TypeVar, assert_never

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats
from private_ate.domain import Domain
from private_ate.effects.estimate import Quantity
from private_ate.errors import ArgumentError
from private_ate.parameters import Estimand
from private_ate.privacy.accounting import discrete_gaussian_variance, noise_delta
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import two_laplace_quantile
from private_ate.release.metadata import Pair
from private_ate.request import Request
from private_ate.settings import Settings
from private_ate.study import Block, Study, Summable

__all__ = [
    "SCORE_BITS",
    "BaselineSettings",
    "Budget",
    "NoisyValue",
    "RowSplit",
    "all_rows",
    "around",
    "balancing_weights",
    "common_settings",
    "release_integer",
    "release_vector",
    "require_positive_delta",
    "row_hashes",
    "split_folds",
    "split_rows",
    "unit_laplace",
]

S = TypeVar("S", bound=Summable)
SCORE_BITS: Final = 24
"""Scores of rows live on the grid 2⁻²⁴ of the outcome's range."""
_FINE: Final = 40  # bits of the grid below the sensitivity
_CHUNK: Final = 1 << 20
_HASHES: Final = 1 << 32  # a row's hash is a place below this
_POPULATIONS: Final[dict[Estimand, str]] = {
    "ate": "all n units (ATE)",
    "att": "the treated units (ATT)",
    "atc": "the control units (ATC)",
    "ato": "units weighted by overlap (ATO)",
}


class BaselineSettings(Settings):
    """Settings of competitors: keys that mean the same in several of them.

    Attributes
    ----------
    columns : count and sizes
        How many columns were synthesised, and how many values each can take.
    neighbors : int
        Neighbours (N) that each synthetic unit is matched with.
    noise_standard_deviation : float
        Standard deviation of the effect's own noise, in units of the outcome.
    overlap : float
        Least propensity, and distance from one, that scores are held to.
    rho : float
        What was spent, in zero-concentrated privacy.
    ridge : float
        Penalty λ of the models.
    split : pair of int
        How many rows trained the models and how many the effect was estimated on.
    synthetic_rows : int
        How many records were made up.
    truncation : float
        Least propensity, and distance from one, that weights are held to.
    """

    __slots__ = ()
    levels: ClassVar[tuple[str, ...]] = ("sample",)


def common_settings(request: Request, noise: Noise | None = None) -> Mapping[str, Any]:
    """Return what all settings say: the coverage, the population and, with noise, what it cost."""
    said = {"confidence": request.coverage, "population": _POPULATIONS[request.estimand]}
    if noise is None:
        return said
    return said | {"budget": {spend.step: float(spend.epsilon) for spend in noise.spends}}


@dataclass(frozen=True, slots=True)
class Budget:
    """What one set of rows may cost: (ε, δ), or pure ε if δ is zero."""

    epsilon: Fraction
    delta: Fraction
    part: str


@dataclass(frozen=True, slots=True)
class NoisyValue:
    """A released number and the public scale of its noise (Gaussian, or Laplace if pure)."""

    value: float
    scale: float
    pure: bool

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.scale * math.sqrt(2) if self.pure else self.scale

    def half_width(self, coverage: float) -> float:
        """Return the half-width that the noise stays within, with the given probability."""
        if self.pure:
            return two_laplace_quantile(coverage, self.scale, 0.0)
        return self.scale * NormalDist().inv_cdf((1 + coverage) / 2)

    def quantity(self, coverage: float) -> Quantity:
        """Return the number with the interval of its noise."""
        noise = (NoiseDistribution("laplace", self.scale, 1.0),) if self.pure else ()
        half = self.half_width(coverage)
        return Quantity(self.value, noise, noise_interval=(self.value - half, self.value + half))


def require_positive_delta(delta: str | float, method: str) -> None:
    """Refuse a δ of zero for a method that adds Gaussian noise."""
    if noise_delta(delta) == 0:
        msg = f"{method} adds Gaussian noise and needs a positive delta"
        raise ArgumentError(msg)


def release_vector(
    noise: Noise,
    step: str,
    values: Sequence[Fraction] | Floats,
    *,
    sensitivity: float,
    budget: Budget,
) -> Floats:
    """Release a vector of floats or fractions whose L2 sensitivity is given.

    Put on a grid 2⁻⁴⁰ of the sensitivity first; rounding can add one step per coordinate, which
    is added to the sensitivity. Pure ε uses Laplace noise and ``L1 ≤ √d·L2``.
    """
    grid = Fraction(2) ** (math.floor(math.log2(sensitivity)) - _FINE)
    steps = [round(Fraction(value) / grid) for value in values]
    size = len(steps)
    if budget.delta:
        whole = math.ceil(Fraction(sensitivity) / grid) + math.isqrt(size) + 1
        noisy = noise.gaussian(
            step, steps, sensitivity=whole, epsilon=budget.epsilon, delta=budget.delta,
            part=budget.part,
        )  # fmt: skip
        return np.array([float(value * grid) for value in noisy])
    whole = math.ceil(Fraction(sensitivity * math.sqrt(size) * (1 + 1e-9)) / grid) + size
    halves = noise.laplace(step, steps, sensitivity=whole, epsilon=budget.epsilon, part=budget.part)
    return np.array([float(value * grid / 2) for value in halves])


def release_integer(
    noise: Noise, step: str, value: int, *, sensitivity: int, unit: Fraction, budget: Budget
) -> NoisyValue:
    """Release one exact integer of the given sensitivity; ``unit`` is the size of a step."""
    if budget.delta:
        variance = discrete_gaussian_variance(
            budget.epsilon, budget.delta, sensitivity=sensitivity, dimension=1
        )
        (noisy,) = noise.gaussian(
            step, [value], sensitivity=sensitivity, epsilon=budget.epsilon, delta=budget.delta,
            part=budget.part,
        )  # fmt: skip
        return NoisyValue(float(noisy * unit), math.sqrt(variance) * float(unit), pure=False)
    (halves,) = noise.laplace(
        step, [value], sensitivity=sensitivity, epsilon=budget.epsilon, part=budget.part
    )
    scale = float(Fraction(sensitivity) / budget.epsilon * unit)
    return NoisyValue(float(halves * unit / 2), scale, pure=True)


@dataclass(frozen=True, slots=True)
class RowSplit:
    """The rows of one part by themselves, covariates rescaled to [−1, 1].

    ``size`` is at least one so that an empty part, which only a tiny n can bring about, still has
    means (of nothing, zero); whether it ``is_empty`` is public.
    """

    study: Study
    salt: int
    low: int
    high: int
    size: int
    is_empty: bool

    @property
    def domain(self) -> Domain:
        """The declared domain."""
        return self.study.domain

    @property
    def dimension(self) -> int:
        """The number of encoded covariates (d)."""
        return self.study.dimension

    def fold(self, kernel: Callable[[Block], S], *, title: str = "pass over a part") -> S:
        """Return the sum of the kernel over this part's rows."""
        return self.study.fold(lambda block: kernel(self._rows(block)), title=title)

    def _rows(self, block: Block) -> Block:
        places = row_hashes(block.first, block.treatment.size, self.salt)
        mine = (places >= self.low) & (places < self.high)
        outcome = None if block.outcome is None else block.outcome[mine]
        return Block(2.0 * block.covariates[mine] - 1.0, block.arm[mine], outcome)


def all_rows(study: Study) -> RowSplit:
    """Return all rows as one part, for methods that pay for every pass over them."""
    return RowSplit(study, 0, 0, _HASHES, max(study.size, 1), study.size == 0)


def split_rows(study: Study, share: float, entropy: Entropy) -> tuple[RowSplit, RowSplit]:
    """Split the rows at random into a training and an evaluation part of public sizes."""
    training, evaluation = _split(study, [0, round(share * _HASHES), _HASHES], entropy)
    return training, evaluation


def split_folds(study: Study, folds: int, entropy: Entropy) -> list[RowSplit]:
    """Split the rows at random into folds of nearly equal, public sizes."""
    return _split(study, [fold * _HASHES // folds for fold in range(folds + 1)], entropy)


def row_hashes(first: int, rows: int, salt: int) -> npt.NDArray[np.int64]:
    """Hash the indices of a run of rows to places below 2³² (splitmix64)."""
    state = np.arange(first + 1, first + 1 + rows, dtype=np.uint64)
    state = state * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((state ^ (state >> np.uint64(31))) >> np.uint64(32)).astype(np.int64)


def _split(study: Study, edges: list[int], entropy: Entropy) -> list[RowSplit]:
    salt = int.from_bytes(entropy.draw(8))
    sizes = np.zeros(len(edges) - 1, dtype=np.int64)
    for first in range(0, study.size, _CHUNK):
        places = row_hashes(first, min(_CHUNK, study.size - first), salt)
        sizes += np.histogram(places, bins=edges)[0]
    return [
        RowSplit(study, salt, low, high, max(int(size), 1), int(size) == 0)
        for low, high, size in zip(edges[:-1], edges[1:], sizes, strict=True)
    ]


def balancing_weights(estimand: Estimand, scores: Floats, treated: Bits) -> Floats:
    """Return ``h/e`` for treated units and ``h/(1 − e)`` for controls; scores lie within (0, 1).

    A unit counts by h(e) in the population of the estimand: 1 for all units, e for the treated,
    1 − e for the controls, e(1 − e) for the overlap.
    """
    own = np.where(treated, scores, 1 - scores)
    match estimand:
        case "ate":
            return 1 / own
        case "att":
            return scores / own
        case "atc":
            return (1 - scores) / own
        case "ato":
            return scores * (1 - scores) / own
        case _:
            assert_never(estimand)


def around(effect: float, half: float, width: float) -> Pair:
    """Return an interval around an effect in ranges, within what an effect can be."""
    return width * max(effect - half, -1.0), width * min(effect + half, 1.0)


def unit_laplace(uniforms: Floats) -> Floats:
    """Turn fixed uniform variables into Laplace variables of scale one, for simulations."""
    centred = 2 * uniforms - 1
    drawn: Floats = -np.sign(centred) * np.log1p(-np.abs(centred))
    return drawn
