"""What a release will show before any record is read: quantities whose values are not known.

The steps are those of the method on expected counts and on a guessed spread of outcomes. Noise has
median zero and a half-width grows with each noisy number, so what comes out is near the median.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from private_ate.effects.estimate import Quantity
from private_ate.effects.quantities import Prediction
from private_ate.methods.assumptions import Assumptions, Predict
from private_ate.methods.blocks.centres import centre_quantity, joint_rule
from private_ate.methods.blocks.compare import Forms, lifted_square
from private_ate.methods.blocks.plan import (
    Ask,
    BlocksOptions,
    BlocksPlan,
    plain_shares,
    plan_blocks,
)
from private_ate.methods.blocks.run import Counts
from private_ate.methods.blocks.table import scaled_quantity
from private_ate.request import Request, options_for

_LEARNT: Final = 0.9  # of what covariates explain is found inside blocks


def predictor(assumed: Assumptions, request: Request) -> Predict:
    """Return predictions of the contrast of two arms, or of the contrasts and means of more."""
    options = options_for(request, BlocksOptions, "blocks")
    shares, trial, weight = assumed.shares, assumed.probability, assumed.weight_share
    width = assumed.bounds.width
    how = "" if trial is None else " (trial)"
    arms = np.eye(len(shares))

    def foresee(rows: int, epsilon: float) -> tuple[Prediction, ...]:
        exact = Fraction(epsilon).limit_denominator(10**15)
        ask = Ask(
            rows, assumed.covariates, float(exact / request.rows_per_person),
            arms=len(shares), estimand=request.estimand, design=request.design,
            probability=trial, binary=assumed.bounds.is_binary,
        )  # fmt: skip
        counts = Counts.known(rows, shares)
        if weight != 1:  # evenly spread weights
            counts = Counts(counts.rows * weight, 0.0, (1 + weight) / (2 * weight))
        members = float(counts.members[0]) * counts.effective_share
        plan = plan_blocks(ask, options, members=members, rarer=min(shares))
        adjusts = plan_blocks(ask, options).adjusts and plan.adjusts
        if adjusts:
            found = _adjusted(ask, plan, assumed, exact, request)
            note = f"adjusts ({plan.blocks} blocks of {round(plan.rows)} rows){how}"
        else:
            forms = Forms.of(counts, trial)
            found = _compared(ask, forms, assumed, exact, request)
            random = " (randomised)" if request.design == "randomized" else ""
            note = f"does not adjust{how or random}"
        contrasts = arms[1:] - arms[0] if len(found) < len(shares) else arms
        return tuple(
            Prediction(
                replace(scaled_quantity(quantity, width), arms=tuple(form.tolist())),
                width**2 * sampling, note, adjusts, "in_squares",
            )
            for (quantity, sampling), form in zip(found, contrasts, strict=True)
        )  # fmt: skip

    return foresee


def _adjusted(
    ask: Ask, plan: BlocksPlan, assumed: Assumptions, epsilon: Fraction, request: Request
) -> list[tuple[Quantity, float]]:
    """Predict contrasts with the reference and their sampling variances, in units of the range."""
    changes, guess, shares = request.rows_per_person, assumed.guess, assumed.shares
    left = epsilon * (1 - ask.counting)
    # Few candidates do: a search for ε predicts many times.
    rule = joint_rule(replace(plan, candidate_bits=12), ask.coordinates, left / changes)
    rate = left / (2 * changes * plan.partitions)
    rest = guess.deviation**2 * (1 - _LEARNT * guess.explained)
    found = []
    for share in shares[1:]:
        spread = math.sqrt(rest * (1 / share + 1 / shares[0]) / ask.freedom(plan.rows))
        quantity = centre_quantity(rule, plan, request, rate, centre=0, spread=spread, flag=False)
        found.append((quantity, changes * spread**2 / plan.blocks))
    return found


def _compared(
    ask: Ask, forms: Forms, assumed: Assumptions, epsilon: Fraction, request: Request
) -> list[tuple[Quantity, float]]:
    """Predict the forms of arms that are compared as they are, and their sampling variances."""
    changes, guess, trial = request.rows_per_person, assumed.guess, forms.probability
    with_interval = request.confidence is not None
    shares = plain_shares(ask, with_interval=with_interval)
    square = guess.deviation**2
    if trial is not None:
        square /= trial.typical * (1 - trial.typical)
    lifted, largest = square, forms.largest_square(guess.middle)
    if with_interval:
        scale = changes / (float(forms.counts.members[0]) * float(epsilon * shares.interval))
        lifted = lifted_square(square / largest, scale) * largest
    unit = forms.noise(epsilon * shares.effect, changes if forms.count == 1 else 2 * changes)
    grid, steps = forms.steps(guess.middle)
    released, sampling = (forms.sampling(one, changes)[0].tolist() for one in (lifted, square))
    return [
        (Quantity(0.0, (unit.scaled(size * grid),), (variance,)), expected)
        for size, variance, expected in zip(steps[0].tolist(), released, sampling, strict=True)
    ]
