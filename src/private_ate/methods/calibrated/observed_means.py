"""Means over those who have an outcome, where who lacks one is private: two noisy sums per arm.

Weights are public and made on all rows. Of each arm the weighted sum of observed outcomes and the
observed weight are released together, and their ratio is the arm's mean.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.methods.calibrated.clipping import OutcomeRange, outcomes_of
from private_ate.methods.calibrated.private import add_outcomes
from private_ate.methods.calibrated.weights import PublicWeights
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, WEIGHT_BITS
from private_ate.study import Block, MatchingStudy

__all__ = ["ArmMean", "ObservedMeans", "add_observed", "release_observed_means"]

_LEAST_SHARE: Final = 0.02  # of the weight: less than this is not divided by
_LEAST_SCALES: Final = 2.0  # nor less than so many scales of its noise
_REPLAYS: Final = 1 << 15


def add_observed(
    study: MatchingStudy, weights: PublicWeights, kept: OutcomeRange
) -> tuple[tuple[int, ...], ...]:
    """Return ``Σ wR(y − middle)`` and ``Σ wR`` of every arm, R being 1 for an observed outcome."""

    def values(block: Block) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        seen = block.observed.astype(np.int64)
        return kept.centre(outcomes_of(block)) * seen, seen

    return add_outcomes(study, weights, values)


@dataclass(frozen=True, slots=True)
class ArmMean:
    """One arm's released ratio, in units of the outcome's range from its middle.

    ``share`` is the released share of weight that is observed; ``sum_scale`` and ``share_scale``
    are the Laplace scales of the sum, in units of the range times n, and of the share.
    """

    mean: float
    share: float
    total: float
    sum_scale: float
    share_scale: float
    half: float  # the kept range is this far on either side of its middle
    least: float

    def replayed(self, laplace: Floats) -> Floats:
        """Return errors of the mean under fresh noise, from unit draws of shape (2, replays)."""
        total = self.total + self.sum_scale * laplace[0]
        share = np.maximum(self.share + self.share_scale * laplace[1], self.least)
        errors: Floats = np.clip(total / share, -self.half, self.half) - self.mean
        return errors


@dataclass(frozen=True, slots=True)
class ObservedMeans:
    """Both arms' released means."""

    treated: ArmMean
    control: ArmMean

    @property
    def effect(self) -> float:
        """The difference of both means in units of the outcome's range."""
        return self.treated.mean - self.control.mean

    def noise_half(self, coverage: float) -> float:
        """Return the half-width that covers the noise alone, in units of the range."""
        return float(np.quantile(np.abs(self._errors()), coverage))

    def half_width(self, coverage: float, deviations: Floats) -> float:
        """Return the half-width that covers the noise and a normal error of unsure size."""
        errors = self._errors() + np.resize(deviations, _REPLAYS) * _replays().normal
        return float(np.quantile(np.abs(errors), coverage))

    def _errors(self) -> Floats:
        laplace = _replays().laplace
        return self.treated.replayed(laplace[:2]) - self.control.replayed(laplace[2:])


def release_observed_means(
    sums: Sequence[tuple[int, ...]],
    largest: Sequence[int],
    kept: OutcomeRange,
    size: int,
    *,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> ObservedMeans:
    """Release each arm's weighted sum of observed outcomes and its observed weight.

    ``largest`` are the arms' largest integer weights in use.

    Neighbours: one person's outcomes replaced, or missing in one of both tables; the weights are
    public. The weight is counted in steps of the shorter half of the range: an outcome that
    changes moves its arm's sum by its weight times the range at most, one that comes or goes moves
    the sum by the longer half and the weight by the shorter one. Either way the L1 distance of the
    arm's two numbers is at most the largest weight of the arm times the range, and a person with m
    rows moves shares of both arms that add up to at most m. Cost: ε for both arms together.
    Proof: docs/proofs/calibrated.md.
    """
    shorter = max(kept.width // 2, 1)
    sensitivities = [max(1, rows * weight * kept.width) for weight in largest]
    arms = (1, 0)  # the treated first
    noisy = noise.laplace_disjoint(
        "observed sums",
        [value for arm in arms for value in (sums[arm][0], shorter * sums[arm][1])],
        sensitivities=[sensitivities[arm] for arm in arms for _ in range(2)],
        epsilon=epsilon,
    )
    treated, control = (
        _divide(noisy[at], noisy[at + 1], sensitivities[arm], shorter, kept, size, epsilon)
        for arm, at in zip(arms, (0, 2), strict=True)
    )
    return ObservedMeans(treated, control)


def _divide(  # two numbers and their public scales
    outcomes: int,
    weight: int,
    sensitivity: int,
    shorter: int,
    kept: OutcomeRange,
    size: int,
    epsilon: Fraction,
) -> ArmMean:
    """Return the ratio of two released numbers, given in half steps; reads nothing else."""
    whole = size << WEIGHT_BITS
    scale = Fraction(sensitivity) / epsilon
    share_scale = float(scale / (shorter * whole))
    least = min(max(_LEAST_SHARE, _LEAST_SCALES * share_scale), 1.0)
    share = min(max(float(Fraction(weight, 2 * shorter * whole)), least), 1.0)
    total = float(Fraction(outcomes, 2 * whole << OUTCOME_BITS))
    half = (kept.width - kept.width // 2) / (1 << OUTCOME_BITS)
    return ArmMean(
        mean=min(max(total / share, -half), half),
        share=share,
        total=total,
        sum_scale=float(scale / (whole << OUTCOME_BITS)),
        share_scale=share_scale,
        half=half,
        least=least,
    )


@dataclass(frozen=True, slots=True)
class _Replays:
    """Unit Laplace variables of shape (4, replays), and as many normal ones."""

    laplace: Floats
    normal: Floats


@lru_cache(maxsize=1)
def _replays() -> _Replays:
    """Return fixed variables for a simulation on released numbers; they protect nothing.

    The same in every run, so that an interval is a function of what was released.
    """
    stream = hashlib.shake_128(b"replays of the noise of observed means").digest(40 * _REPLAYS)
    uniform = (np.frombuffer(stream, dtype="<u8") >> np.uint64(12)).astype(np.float64) + 0.5
    shares = uniform.reshape(5, _REPLAYS) / 2.0**52
    centred = 2 * shares[:4] - 1.0
    laplace: Floats = -np.sign(centred) * np.log1p(-np.abs(centred))
    return _Replays(laplace, np.asarray(ndtri(shares[4])))
