"""What a release will show before any record is read: quantities whose values are not known.

The steps are those of the method on expected counts and on a guessed spread of outcomes. Noise has
median zero and a half-width grows with each noisy number, so what comes out is near the median.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.effects.estimate import Quantity
from private_ate.effects.predictions import Prediction
from private_ate.methods.assumptions import Assumptions, PopulationGuess, Predict
from private_ate.methods.blocks.centres import (
    GRID,
    Replay,
    half_width,
    joint_rule,
    quantity_of,
)
from private_ate.methods.blocks.compare import Forms, sampling_variances
from private_ate.methods.blocks.counts import Counts
from private_ate.methods.blocks.plan import (
    Ask,
    BlocksOptions,
    BlocksPlan,
    plain_shares,
    plan_blocks,
)
from private_ate.methods.blocks.trial import expected_trial
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.request import Request, options_for

__all__ = ["predict", "predictor"]

_UNADJUSTED: Final = "does not adjust"
_LEARNT: Final = 0.9  # of what covariates explain is found inside blocks


@dataclass(frozen=True, slots=True)
class Predicted:
    """What to expect, in units of the outcome's range.

    Attributes
    ----------
    quantities : tuple of Quantity
        Where blocks are cut the contrast of each arm with the reference; otherwise the contrast of
        two arms, or a mean of each of more. With noise and the variances that intervals will be
        made of; values are zero.
    sampling : tuple of float
        Their sampling variances.
    adjusted : bool
        Whether blocks are cut.
    plan : BlocksPlan
        The blocks.
    """

    quantities: tuple[Quantity, ...]
    sampling: tuple[float, ...]
    adjusted: bool
    plan: BlocksPlan


def predictor(assumed: Assumptions, request: Request) -> Predict:
    """Return predictions of the contrast of two arms, or of the contrasts and means of more."""
    options = options_for(request, BlocksOptions, "blocks")
    shares, trial, width = assumed.shares, assumed.probability, assumed.bounds.width
    guess = assumed.guess
    probability = request.probability

    def foresee(rows: int, epsilon: float) -> tuple[Prediction, ...]:
        exact = Fraction(epsilon).limit_denominator(10**15)
        ask = Ask(
            rows, assumed.covariates, float(exact / request.rows_per_person),
            arms=len(shares), estimand=request.estimand, design=request.design,
            probability=probability if isinstance(probability, float) else None,
            binary=assumed.bounds.is_binary,
        )  # fmt: skip
        found = predict(
            ask, options, guess, shares,
            epsilon=exact, changes=request.rows_per_person, coverage=request.coverage,
            with_interval=request.confidence is not None, weight_share=assumed.weight_share,
        )  # fmt: skip
        how = "" if trial is None else " (trial)"
        if trial is not None and not (found.adjusted and trial.constant is not None):
            expected = expected_trial(
                guess, trial, size=rows, epsilon=epsilon, changes=request.rows_per_person,
                coverage=request.coverage, weight_share=assumed.weight_share,
                with_interval=request.confidence is not None,
            )  # fmt: skip
            note = _UNADJUSTED + how
            return (Prediction.of_errors(expected.times(width), note, adjusted=False),)
        if found.adjusted:
            note = f"adjusts ({found.plan.blocks} blocks of {round(found.plan.rows)} rows){how}"
        else:
            note = _UNADJUSTED + (" (randomised)" if request.design == "randomized" else "")
        return tuple(
            Prediction(
                _in_units(quantity, width, form), width**2 * sampling, note,
                found.adjusted, "in_squares",
            )
            for quantity, sampling, form in zip(
                found.quantities, found.sampling, _forms(found, len(shares)), strict=True
            )
        )  # fmt: skip

    return foresee


def _forms(found: Predicted, arms: int) -> list[tuple[float, ...]]:
    """Return the linear form of arms that each quantity is."""
    if len(found.quantities) == arms:
        return [tuple(float(code == arm) for code in range(arms)) for arm in range(arms)]
    return [
        tuple(float(code == arm) - float(code == 0) for code in range(arms))
        for arm in range(1, arms)
    ]


def _in_units(quantity: Quantity, width: float, form: tuple[float, ...]) -> Quantity:
    """Return a predicted quantity of the range in units of the outcome."""
    return replace(
        quantity,
        noise=tuple(one.scaled(width) for one in quantity.noise),
        variances=tuple(width**2 * one for one in quantity.variances),
        arms=form,
    )


def predict(  # noqa: PLR0913  # public numbers and guesses
    ask: Ask,
    options: BlocksOptions,
    guess: PopulationGuess,
    shares: tuple[float, ...],
    *,
    epsilon: Fraction,
    changes: int,
    coverage: float,
    with_interval: bool = True,
    weight_share: float = 1.0,
) -> Predicted:
    """Predict a release of one outcome; ``shares`` of the arms are in the order of their codes.

    ``weight_share`` is the guessed mean of sampling weights over their bound, 1 without any.
    """
    counts = Counts.known(ask.size, shares)
    if weight_share != 1:  # evenly spread weights
        counts = Counts(counts.rows * weight_share, 0.0, (1 + weight_share) / (2 * weight_share))
    effective = float(counts.members[0]) * counts.effective_share
    plan = plan_blocks(ask, options, members=effective, rarer=min(shares))
    if plan_blocks(ask, options).adjusts and plan.adjusts:
        return _adjusted(ask, plan, guess, shares, epsilon, changes, coverage)
    return _compared(ask, plan, guess, counts, epsilon, changes, with_interval=with_interval)


def _adjusted(
    ask: Ask,
    plan: BlocksPlan,
    guess: PopulationGuess,
    shares: tuple[float, ...],
    epsilon: Fraction,
    changes: int,
    coverage: float,
) -> Predicted:
    left = epsilon * (1 - ask.counting)
    # Few candidates do: a search for ε predicts many times.
    rule = joint_rule(replace(plan, candidate_bits=12), ask.coordinates, left / changes)
    rate = left / (2 * changes * plan.partitions)
    rest = guess.deviation**2 * (1 - _LEARNT * guess.explained)
    freedom = max(plan.rows - 1.1 * ask.dimension, plan.rows / 4)
    quantities, sampling = [], []
    for share in shares[1:]:
        spread = math.sqrt(rest * (1 / share + 1 / shares[0]) / freedom)
        steps = np.abs(np.log(np.array(rule.spreads) / (GRID * spread)))
        replay = Replay.of(rule, plan.size, rate, centre=0, spread=int(steps.argmin()))
        reach = replay.quantile(coverage)
        half = half_width(plan, spread, reach, changes=changes, coverage=coverage, flag=False)
        quantities.append(quantity_of(0.0, reach, half, coverage))
        sampling.append(changes * spread**2 / plan.blocks)
    return Predicted(tuple(quantities), tuple(sampling), True, plan)


def _compared(
    ask: Ask,
    plan: BlocksPlan,
    guess: PopulationGuess,
    counts: Counts,
    epsilon: Fraction,
    changes: int,
    *,
    with_interval: bool,
) -> Predicted:
    shares = plain_shares(ask.size, ask.epsilon, with_interval=with_interval)
    used = epsilon * shares.effect
    forms = Forms.of(counts)
    low, high = (one[0] for one in forms.reach(guess.middle))
    square = guess.deviation**2
    largest = (0.5 + abs(guess.middle)) ** 2
    lifted = square
    if with_interval:
        scale = changes / (float(counts.members[0]) * float(epsilon * shares.interval))
        lifted = min(square / largest + scale, 1.0) * largest
    sampling = sampling_variances(counts, square, changes)[0]
    released = sampling_variances(counts, lifted, changes)[0]
    quantities = []
    for place in range(low.size):
        if low.size == 1:
            distribution = NoiseDistribution(
                "staircase", changes * float(high[0] - low[0]), float(used)
            )
        else:
            unit = max(float(high[place]), -float(low[place]))
            distribution = NoiseDistribution("staircase", unit, float(used) / (2 * changes))
        quantities.append(Quantity(0.0, (distribution,), (float(released[place]),)))
    return Predicted(tuple(quantities), tuple(sampling.tolist()), False, plan)
