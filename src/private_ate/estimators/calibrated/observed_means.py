"""Means over those who have an outcome, where who lacks one is private: two noisy sums per arm.

Weights are public and made on all rows. Of each arm the weighted sum of observed outcomes and the
observed weight are released together, and their ratio is the arm's mean.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from private_ate.arrays import Bits, Floats, Integers
from private_ate.estimators.calibrated.clipping import OutcomeRange, outcomes_of
from private_ate.estimators.calibrated.design import fold_with_base
from private_ate.estimators.calibrated.weights import PublicWeights
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, WEIGHT_BITS, weighted_sum
from private_ate.study import Block, MatchingStudy

__all__ = [
    "ArmMean",
    "ObservedArms",
    "ObservedMeans",
    "ObservedSums",
    "add_observed",
    "observe_arm",
    "observed_rows",
    "release_observed_means",
]


_LEAST_SHARE: Final = 0.02  # of the weight: less than this is not divided by
_LEAST_SCALES: Final = 2.0  # nor less than so many scales of its noise
_REPLAYS: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class ObservedSums:
    """Exact integers of one arm: ``Σ wR(y − middle)``, ``Σ wR`` and the largest weight."""

    outcomes: int
    weight: int
    largest: int

    def __add__(self, other: ObservedSums) -> ObservedSums:
        return ObservedSums(
            self.outcomes + other.outcomes,
            self.weight + other.weight,
            max(self.largest, other.largest),
        )


@dataclass(frozen=True, slots=True)
class ObservedArms:
    """What the rows with an outcome add up to in both arms."""

    treated: ObservedSums
    control: ObservedSums

    def __add__(self, other: ObservedArms) -> ObservedArms:
        return ObservedArms(self.treated + other.treated, self.control + other.control)


def observed_rows(block: Block) -> Bits:
    """Say who has an outcome; everybody, where the study holds no such column."""
    return np.ones(block.arm.size, np.bool_) if block.observed is None else block.observed


def add_observed(study: MatchingStudy, weights: PublicWeights, kept: OutcomeRange) -> ObservedArms:
    """Add up both arms, with weights that know nothing of who is observed."""

    def kernel(block: Block, base: Floats | None) -> ObservedArms:
        centred, observed = kept.centre(outcomes_of(block)), observed_rows(block)
        everybody = replace(block, observed=None)
        control, treated = (
            observe_arm(steps, centred[rows], observed[rows])
            for rows, steps in weights.steps(everybody, base)
        )
        return ObservedArms(treated, control)

    return fold_with_base(study, weights.design.base, kernel, title="outcomes")


def observe_arm(steps: Integers, centred: npt.NDArray[np.int32], observed: Bits) -> ObservedSums:
    """Add up one arm's rows; one without an outcome adds nothing, and its weight counts as used."""
    seen = observed.astype(np.int64)
    return ObservedSums(
        weighted_sum(steps, centred * seen),
        weighted_sum(steps, seen),
        int(steps.max(initial=0)),
    )


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
    sums: ObservedArms,
    kept: OutcomeRange,
    size: int,
    *,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> ObservedMeans:
    """Release each arm's weighted sum of observed outcomes and its observed weight.

    Neighbours: one person's outcomes replaced, or missing in one of both tables; the weights are
    public. The weight is counted in steps of the shorter half of the range: an outcome that
    changes moves its arm's sum by its weight times the range at most, one that comes or goes moves
    the sum by the longer half and the weight by the shorter one. Either way the L1 distance of the
    arm's two numbers is at most the largest weight of the arm times the range, and a person with m
    rows moves shares of both arms that add up to at most m. Cost: ε for both arms together.
    Proof: docs/proofs/calibrated.md.
    """
    shorter = max(kept.width // 2, 1)
    arms = (sums.treated, sums.control)
    sensitivities = [max(1, rows * arm.largest * kept.width) for arm in arms]
    noisy = noise.laplace_disjoint(
        "observed sums",
        [value for arm in arms for value in (arm.outcomes, shorter * arm.weight)],
        sensitivities=[size for size in sensitivities for _ in range(2)],
        epsilon=epsilon,
    )
    means = [
        _divide(
            noisy[2 * arm], noisy[2 * arm + 1], sensitivities[arm], shorter, kept, size, epsilon
        )
        for arm in (0, 1)
    ]
    return ObservedMeans(means[0], means[1])


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
