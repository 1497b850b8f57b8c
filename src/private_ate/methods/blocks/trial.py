"""The effect of a trial with whole records private: one mean of a score that is never biased.

With T treated and the probability p known, ``(T − p)(y − g)/(p(1 − p))`` has the effect as its
mean, whatever g is. g is a private guess of the outcome, one number. No count of the arms and no
score is paid for. Where n·ε suffices and everybody has the same probability, blocks of rows use the
covariates instead. Privacy: docs/proofs/trials.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.effects.predictions import ExpectedError
from private_ate.methods.assumptions import PopulationGuess
from private_ate.methods.blocks.compare import outcomes_of, within_centres
from private_ate.methods.blocks.counts import Counts, Steps, Subgroups, release_counts
from private_ate.methods.blocks.plan import PlainShares, plain_shares
from private_ate.methods.probability import Probability
from private_ate.models.folds import Total, by_chunks
from private_ate.models.standardization import noise_bits
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_quantile
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.study import Block, Study

__all__ = [
    "TrialEffect",
    "TrialScore",
    "estimate_trial",
    "expected_trial",
    "lifted_variance",
    "plan_trial",
]

_COUNT_PART: Final = Fraction(1, 5)  # of what counting takes where the share of treated is unknown
_EFFECT_SPREAD: Final = 0.15  # of the range: how large an effect is thought to be
_SHIFT: Final = 1.5  # scales of its noise by which a variance is shifted up
_FLOOR: Final = 2.0  # and the least value that it has
_SCORE_BITS: Final = 20  # the score's grid lies at least this far below the scale of its noise


def plan_trial(size: int, epsilon: float, *, counted: bool, with_interval: bool) -> PlainShares:
    """Split ε between the steps of a trial; ``epsilon`` is the budget per row.

    ``counted`` says that rows may take no part, so that their number is paid for.
    """
    plain = plain_shares(size, epsilon, with_interval=with_interval)
    return replace(plain, counts=plain.counts * _COUNT_PART if counted else Fraction(0))


@dataclass(frozen=True, slots=True)
class TrialEffect:
    """A released effect in units of the outcome's range.

    ``noise`` covers the last step's noise, ``half`` noise and sampling; None if not paid for.
    """

    value: float
    noise: float
    half: float | None


@dataclass(frozen=True, slots=True)
class TrialScore:
    """The score ``(T − p)(y − centre)/(p(1 − p))`` and the bounds that no row can leave."""

    probability: Probability
    centre: float
    low: float
    high: float

    @classmethod
    def of(cls, probability: Probability, centre: float) -> TrialScore:
        """Take the bounds over both arms, all outcomes and all probabilities."""
        treated, control = 1 / probability.low, 1 / (1 - probability.high)
        high = max(treated * (0.5 - centre), control * (0.5 + centre))
        low = max(treated * (0.5 + centre), control * (0.5 - centre))
        return cls(probability, centre, -low, high)

    def values(self, block: Block) -> Floats:
        """Return the score of each row, clipped to the bounds."""
        chance = self.probability.of(block)
        rate = np.where(block.treatment, 1 / chance, -1 / (1 - chance))
        scores = rate * (outcomes_of(block) - self.centre)
        return np.clip(scores, self.low, self.high)


def estimate_trial(
    study: Study, request: Request, noise: Noise, probability: Probability
) -> TrialEffect:
    """Release the effect of a trial; spends exactly the request's ε.

    Neighbours: one person's rows replaced, n public; the probability is a function of a row.
    Cost: the steps' shares add up to ε. Proof: docs/proofs/trials.md.
    """
    changes, epsilon = request.rows_per_person, request.epsilon
    plan = plan_trial(
        study.size, float(epsilon) / changes, counted=not study.everyone_takes_part,
        with_interval=request.confidence is not None,
    )  # fmt: skip
    counted = _count(study, noise, epsilon * plan.counts, changes)
    members = study.size if counted is None else round(float(counted.members[0]))
    sums = _release_sums(study, noise, epsilon * plan.means, changes)
    centre, anchor = _centre(sums, probability, members, changes / float(epsilon * plan.means))
    score = TrialScore.of(probability, centre)
    anchor = min(max(anchor, score.low), score.high)
    value, unit = _release_effect(
        study, score, noise,
        anchor=anchor, members=members, epsilon=epsilon * plan.effect, changes=changes,
    )  # fmt: skip
    value = min(max(value, -1.0), 1.0)
    reach = unit * staircase_quantile(request.coverage, float(epsilon * plan.effect))
    half = None
    if plan.interval:
        square = _release_square(
            study, score, noise,
            effect=value, members=members, epsilon=epsilon * plan.interval, changes=changes,
        )  # fmt: skip
        normal = float(ndtri((1 + request.coverage) / 2))
        sampling = changes * square / members
        if counted is not None:  # a sum of weights is noisier
            sampling += ((value - anchor) * counted.deviation / members) ** 2
        half = math.hypot(normal * math.sqrt(sampling), reach)
    return TrialEffect(value, reach, half)


def _count(study: Study, noise: Noise, epsilon: Fraction, changes: int) -> Counts | None:
    """Count the rows that take part, where some may not."""
    if study.everyone_takes_part:
        return None
    return release_counts(
        study, Subgroups(), noise, epsilon=epsilon, changes=changes, step="rows that take part"
    )


def _release_sums(
    study: Study, noise: Noise, epsilon: Fraction, changes: int
) -> tuple[float, float]:
    """Release the outcome sums of both arms in units of the range.

    Neighbours: ``changes`` rows replaced. A row adds at most half the outcomes' range to one of
    the two sums, so L1 sensitivity is ``changes`` times that range. Cost: ε.
    """

    def kernel(block: Block) -> Steps:
        steps = np.rint((outcomes_of(block) * OUTCOME_STEPS) * block.shares).astype(np.int64)
        treated = (steps * block.treatment).sum()
        return Steps(np.array([steps.sum() - treated, treated]))

    exact = study.fold(by_chunks(kernel), title="arms").values
    noisy = noise.laplace(
        "arm sums", exact.tolist(),
        sensitivity=changes * OUTCOME_STEPS, epsilon=epsilon,
    )  # fmt: skip
    return noisy[0] / (2 * OUTCOME_STEPS), noisy[1] / (2 * OUTCOME_STEPS)


def _centre(
    sums: tuple[float, float], probability: Probability, members: int, scale: float
) -> tuple[float, float]:
    """Return the centre at which the score varies least, and a shrunken guess of the effect.

    Arms that differ in size weigh the other's mean more: ``(1 − p)·E y(1) + p·E y(0)``.
    """
    chance = probability.typical
    treated, control = chance * members, (1 - chance) * members
    raw = sums[1] / treated - sums[0] / control
    variance = 2 * scale**2 * (1 / treated**2 + 1 / control**2)
    effect = raw * _EFFECT_SPREAD**2 / (_EFFECT_SPREAD**2 + variance)
    mean = within_centres((sums[0] + sums[1]) / members)
    return within_centres(mean + (1 - 2 * chance) * effect), effect


def _release_effect(  # a score, where it is anchored, and the step's parameters
    study: Study,
    score: TrialScore,
    noise: Noise,
    *,
    anchor: float,
    members: int,
    epsilon: Fraction,
    changes: int,
) -> tuple[float, float]:
    """Release the mean score with staircase noise; return it and its sensitivity.

    Neighbours: ``changes`` rows replaced, given what was released before. Every row's score is
    clipped to the score's bounds and rounded to a grid; a row that takes no part adds zero, as
    scores are added less an anchor between the bounds. Sensitivity of the sum: ``changes`` times
    the width of the bounds. Cost: ε.
    """
    width = score.high - score.low
    exponent = math.floor(math.log2(width * changes / float(epsilon))) - _SCORE_BITS
    grid = 2.0 ** min(exponent, math.floor(math.log2(width)) - 24)
    low, high = math.floor((score.low - anchor) / grid), math.ceil((score.high - anchor) / grid)

    def kernel(block: Block) -> Total:
        steps = np.rint((score.values(block) - anchor) / grid)
        counted = np.rint(np.clip(steps, low, high) * block.shares)
        return Total(int(counted.astype(np.int64).sum()))

    total = study.fold(by_chunks(kernel), title="effect").steps
    sensitivity = (high - low) * changes
    noisy = noise.staircase("effect", total, sensitivity=sensitivity, epsilon=epsilon)
    away = float(Fraction(noisy, 2 * members) * Fraction(grid))
    return anchor + away, float(Fraction(sensitivity, members) * Fraction(grid))


def _release_square(  # as above
    study: Study,
    score: TrialScore,
    noise: Noise,
    *,
    effect: float,
    members: int,
    epsilon: Fraction,
    changes: int,
) -> float:
    """Release the mean squared distance of scores from the effect, a little too high.

    Neighbours: as for the effect. Sensitivity of the sum: ``changes`` times the bound to which
    every square is clipped. Cost: ε.
    """
    largest = max(score.high, -score.low) ** 2
    bits = noise_bits(changes, epsilon)
    kernel = _square_kernel(score, effect, largest, bits)
    total = study.fold(by_chunks(kernel), title="variance").steps
    noisy = noise.laplace("variance", [total], sensitivity=changes << bits, epsilon=epsilon)
    share = noisy[0] / (members << (bits + 1))
    return largest * lifted_variance(share, changes / (members * float(epsilon)))


def lifted_variance(share: float, scale: float) -> float:
    """Return a noisy variance as a share of its bound, lifted by its noise's scale.

    Together with its least value the shift makes it less than half of what it should be in fewer
    than two runs of a hundred.
    """
    return min(max(share + _SHIFT * scale, _FLOOR * scale), 1.0)


def _square_kernel(
    score: TrialScore, effect: float, largest: float, bits: int
) -> Callable[[Block], Total]:
    def kernel(block: Block) -> Total:
        away = score.values(block) - effect
        share = np.minimum(away * away / largest, 1.0) * block.shares**2
        return Total(int(np.rint(share * float(1 << bits)).astype(np.int64).sum()))

    return kernel


def expected_trial(  # noqa: PLR0913  # public numbers and guesses
    guess: PopulationGuess,
    probability: Probability,
    *,
    size: int,
    epsilon: float,
    changes: int,
    coverage: float,
    weight_share: float,
    with_interval: bool,
) -> ExpectedError:
    """Return what to expect of a trial in units of the outcome's range.

    Rows are taken to have an arm and an outcome all of them, but their number is paid for.
    """
    plan = plan_trial(size, epsilon / changes, counted=True, with_interval=with_interval)
    mass, effective = size * weight_share, size * (1 + weight_share) / 2
    score = TrialScore.of(probability, guess.middle)
    chance = probability.typical
    square = guess.deviation**2 / (chance * (1 - chance))
    used = epsilon * float(plan.effect)
    unit = (score.high - score.low) * changes / mass
    error = ExpectedError.of_staircase(
        used, unit, math.sqrt(changes * square / effective), coverage
    )
    if not with_interval:
        return error
    largest = max(score.high, -score.low) ** 2
    scale = changes / (mass * epsilon * float(plan.interval))
    released = largest * lifted_variance(square / largest * mass / effective, scale)
    reach = unit * staircase_quantile(coverage, used)
    normal = float(ndtri((1 + coverage) / 2))
    return error.with_half_width(math.hypot(normal * math.sqrt(changes * released / mass), reach))
