"""The private half: exact integer sums of weighted outcomes, and staircase noise for linear forms.

Weights are public and integers. What is released are linear forms of the arms' sums: of two arms
their contrast, which needs one draw of noise; of more, or where means are asked for, every arm's
sum. No arm is in two forms, so that an outcome moves one of them. Where who lacks an outcome is
private, each arm's mean is the ratio of two noisy sums: of observed outcomes and observed weight.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.effects.estimate import Quantity
from private_ate.methods.calibrated.clipping import OutcomeRange, outcomes_of
from private_ate.methods.calibrated.design import fold_with_base
from private_ate.methods.calibrated.weights import PublicWeights
from private_ate.privacy.distributions import NoiseDistribution, sum_noise
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_BITS, WEIGHT_BITS, weighted_sum
from private_ate.study import ALL_PRESENT, Block, MatchingStudy

__all__ = [
    "WHOLE_STEPS", "Errors", "Form", "NoiseRule", "add_outcomes", "draws_of", "error_of",
    "forms_of", "release_observed_means", "release_quantities",
]  # fmt: skip

_LEAST_SHARE: Final = 0.02  # of the weight: less than this is not divided by
_LEAST_SCALES: Final = 2.0  # nor less than so many scales of its noise
_REPLAYS: Final = 1 << 15

Form = tuple[int, ...]
"""A linear form: -1, 0 or 1 for every arm in the order of the codes."""

Errors = Sequence[tuple[Floats, float]]
"""Of every arm: equally likely squared errors apart from noise, and how much of them is bias."""

WHOLE_STEPS = 1 << (OUTCOME_BITS + WEIGHT_BITS)  # a weight of one times the whole outcome range


def forms_of(arms: int, *, means: bool) -> tuple[Form, ...]:
    """Return what is released: of two arms their contrast, else or if asked for every mean."""
    if arms == 2 and not means:
        return ((-1, 1),)
    return tuple(tuple(int(arm == code) for arm in range(arms)) for code in range(arms))


def draws_of(forms: Sequence[Form]) -> tuple[tuple[int, ...], ...]:
    """Return the arms that share each draw of noise."""
    return tuple(tuple(arm for arm, sign in enumerate(form) if sign) for form in forms)


@dataclass(frozen=True, slots=True)
class NoiseRule:
    """How a person with several rows is paid for; public numbers alone.

    So many ``moves`` of one form each lead from a table to its neighbour, every one by at most
    ``rows`` rows' sensitivity: m moves of one row, or one move of m rows for each form that they
    can be in. The rule with less noise is taken.
    """

    moves: int
    rows: int

    @classmethod
    def of(cls, rows_per_person: int, forms: int, epsilon: Fraction, outcomes: int) -> NoiseRule:
        """Return the rule whose noise has the smaller variance."""
        rules = (cls(min(rows_per_person, forms), rows_per_person), cls(rows_per_person, 1))
        return min(rules, key=lambda rule: rule.variance(epsilon, outcomes))

    def variance(self, epsilon: Fraction, outcomes: int) -> float:
        """Return the variance of a form's noise in squared one-row sensitivities."""
        return self.rows**2 * self.distribution(epsilon, outcomes).variance

    def distribution(self, epsilon: Fraction, outcomes: int) -> NoiseDistribution:
        """Return the distribution of a form's noise, for what one move changes."""
        return sum_noise(outcomes, epsilon, self.moves)


def add_outcomes(
    study: MatchingStudy,
    weights: PublicWeights,
    values: Callable[[Block], Sequence[npt.NDArray[np.integer]]],
) -> list[list[int]]:
    """Return ``Σ w·value`` of every arm for each of the values, exactly.

    ``values`` are integers below 2³¹ in size. Rows whose outcome is publicly missing carry no
    weight; who lacks one privately is hidden from the weights.
    """
    is_public = study.domain.outcome.missing == "public"

    def kernel(block: Block, base: Floats | None) -> npt.NDArray[np.object_]:
        columns = values(block)
        shown = block if is_public else replace(block, observed=ALL_PRESENT)
        sums = [
            [weighted_sum(steps, column[rows]) for column in columns]
            for rows, steps in weights.steps(shown, base)
        ]
        return np.array(sums, dtype=object)  # Python integers: they may leave 64 bits

    found = fold_with_base(study, weights.design.base, kernel, title="outcomes")
    return [[int(total) for total in arm] for arm in found]


def release_quantities(  # noqa: PLR0913  # sums, and the public numbers that scale them
    study: MatchingStudy,
    weights: PublicWeights,
    kept: OutcomeRange,
    widths: Sequence[int],
    forms: Sequence[Form],
    errors: Errors,
    *,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> tuple[Quantity, ...]:
    """Release linear forms of the arms' sums with staircase noise; all forms share one ε.

    Outcomes are clipped to the range ``kept`` and counted from its middle; those of an arm lie
    within ``widths`` grid steps of each other.

    Neighbours: one person's outcomes replaced; the weights are public. Sensitivity: an outcome is
    in the sum of one arm and hence in one form, which it moves by at most the arm's largest
    integer weight in use times the range of the arm's outcomes; see `NoiseRule` for a person with
    several rows. Cost: ε, because draws are independent and one form moves at a time.
    Proof: docs/proofs/calibrated.md.
    """
    sums = add_outcomes(study, weights, lambda block: (kept.centre(outcomes_of(block)),))
    totals = [total for (total,) in sums]
    sensitivities = [most * width for most, width in zip(weights.largest, widths, strict=True)]
    bounds, middle, size = study.domain.bounds, kept.middle_in(study.domain.bounds), study.size
    rule = NoiseRule.of(rows, len(forms), epsilon, noise.outcomes)
    exact = [sum(sign * total for sign, total in zip(form, totals, strict=True)) for form in forms]
    draws = draws_of(forms)
    sizes = [max(1, rule.rows * max(sensitivities[arm] for arm in arms)) for arms in draws]
    if len(forms) == 1:
        noisy = [noise.staircase("outcome sum", exact[0], sensitivity=sizes[0], epsilon=epsilon)]
    elif rule.moves == 1:
        noisy = noise.staircase_disjoint(
            "outcome sums", exact, sensitivities=sizes, epsilon=epsilon
        )
    else:
        noisy = noise.staircase_by_arm(
            "outcome sums", exact, sensitivities=sizes, moves=rule.moves, epsilon=epsilon
        )
    distribution = rule.distribution(epsilon, noise.outcomes)
    step = bounds.width / size / WHOLE_STEPS
    found = []
    for form, arms, answer, sensitivity in zip(forms, draws, noisy, sizes, strict=True):
        value = float(Fraction(answer, 2)) * step  # answers come in half steps
        if len(arms) == 1:
            value = min(max(value + middle, bounds.low), bounds.high)
        else:
            value = min(max(value, -bounds.width), bounds.width)
        added = distribution.scaled(float(sensitivity) * step)
        variances, bias = error_of(errors, arms)
        found.append(Quantity(value, (added,), variances, bias, tuple(map(float, form))))
    return tuple(found)


def error_of(errors: Errors, arms: Sequence[int]) -> tuple[tuple[float, ...], float]:
    """Return the likely squared errors of a form of some arms and their bias; none of no errors."""
    if not errors:
        return (), 0.0
    likely = np.sum([errors[arm][0] for arm in arms], axis=0)
    return tuple(likely.tolist()), sum(errors[arm][1] for arm in arms)


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

    control: ArmMean
    treated: ArmMean

    @property
    def effect(self) -> float:
        """The difference of both means in units of the outcome's range."""
        return self.treated.mean - self.control.mean

    def half_width(self, coverage: float, deviations: Floats | None = None) -> float:
        """Return the half-width that covers the noise and, if given, a normal error of any of them.

        In units of the range.
        """
        draws = _replays()
        errors = self.treated.replayed(draws[:2]) - self.control.replayed(draws[2:4])
        if deviations is not None:
            errors = errors + np.resize(deviations, _REPLAYS) * draws[4]
        return float(np.quantile(np.abs(errors), coverage))


def release_observed_means(
    sums: Sequence[Sequence[int]],
    largest: Sequence[int],
    kept: OutcomeRange,
    size: int,
    *,
    epsilon: Fraction,
    rows: int,
    noise: Noise,
) -> ObservedMeans:
    """Release each arm's weighted sum of observed outcomes and its observed weight.

    ``sums`` are ``Σ wR(y − middle)`` and ``Σ wR`` of every arm, R being 1 for an observed outcome;
    ``largest`` are the arms' largest integer weights in use.

    Neighbours: one person's outcomes replaced, or missing in one of both tables; the weights are
    public. The weight is counted in steps of the shorter half of the range: an outcome that
    changes moves its arm's sum by its weight times the range at most, one that comes or goes moves
    the sum by the longer half and the weight by the shorter one. Either way the L1 distance of the
    arm's two numbers is at most the largest weight of the arm times the range, and a person with m
    rows moves shares of both arms that add up to at most m. Cost: ε for both arms together.
    Proof: docs/proofs/calibrated.md.
    """
    shorter, whole = max(kept.width // 2, 1), size << WEIGHT_BITS
    sensitivities = [max(1, rows * weight * kept.width) for weight in largest]
    arms = (1, 0)  # the treated first
    noisy = noise.laplace_disjoint(
        "observed sums",
        [value for arm in arms for value in (sums[arm][0], shorter * sums[arm][1])],
        sensitivities=[sensitivities[arm] for arm in arms for _ in range(2)],
        epsilon=epsilon,
    )
    half = (kept.width - kept.width // 2) / (1 << OUTCOME_BITS)

    def divide(outcomes: int, weight: int, sensitivity: int) -> ArmMean:
        """Return the ratio of two released numbers, given in half steps; reads nothing else."""
        scale = Fraction(sensitivity) / epsilon
        share_scale = float(scale / (shorter * whole))
        least = min(max(_LEAST_SHARE, _LEAST_SCALES * share_scale), 1.0)
        share = min(max(float(Fraction(weight, 2 * shorter * whole)), least), 1.0)
        total = float(Fraction(outcomes, 2 * whole << OUTCOME_BITS))
        mean = min(max(total / share, -half), half)
        sum_scale = float(scale / (whole << OUTCOME_BITS))
        return ArmMean(mean, share, total, sum_scale, share_scale, half, least)

    return ObservedMeans(
        treated=divide(noisy[0], noisy[1], sensitivities[1]),
        control=divide(noisy[2], noisy[3], sensitivities[0]),
    )


@lru_cache(maxsize=1)
def _replays() -> Floats:
    """Return four rows of unit Laplace variables and one of normal ones, shape (5, replays).

    They simulate on released numbers and protect nothing: the same in every run, so that an
    interval is a function of what was released.
    """
    stream = hashlib.shake_128(b"replays of the noise of observed means").digest(40 * _REPLAYS)
    uniform = (np.frombuffer(stream, dtype="<u8") >> np.uint64(12)).astype(np.float64) + 0.5
    shares = uniform.reshape(5, _REPLAYS) / 2.0**52
    centred = 2 * shares[:4] - 1.0
    laplace = -np.sign(centred) * np.log1p(-np.abs(centred))
    return np.vstack([laplace, ndtri(shares[4])])
