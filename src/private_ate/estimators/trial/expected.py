"""What a trial's release will show before any record is read: its steps with noise left out."""

from __future__ import annotations

import math
from typing import Final

from private_ate.estimators.blocks.expected import Asked
from private_ate.estimators.blocks.method import combined_half_width
from private_ate.estimators.blocks.unadjusted import lifted_variance
from private_ate.estimators.guesses import ExpectedError, PeopleGuess
from private_ate.estimators.trial.method import TrialScore
from private_ate.estimators.trial.plan import plan_trial
from private_ate.estimators.trial.probability import Probability
from private_ate.privacy.quantiles import staircase_quantile

__all__ = ["expected_trial"]

_PROGNOSIS_WIDTH: Final = 1.4  # of outcomes less their prognosis, in units of the range
_LEARNT: Final = 0.9  # of what covariates explain is found by a private model, once it is tried


def expected_trial(
    asked: Asked, guess: PeopleGuess, probability: Probability
) -> tuple[ExpectedError, bool]:
    """Return what to expect of a trial, and whether outcomes are compared with a prognosis.

    Rows are taken to have an arm and an outcome all of them, but their number is paid for.
    """
    size, changes, epsilon = asked.size, asked.changes, float(asked.epsilon)
    plan = plan_trial(
        size, asked.dimension, float(asked.per_row),
        rarer=probability.rarer, counted=True, with_interval=asked.with_interval,
    )  # fmt: skip
    width, left = 1.0, 1.0
    centre = guess.middle
    if plan.has_prognosis:
        width, left = _PROGNOSIS_WIDTH, 1 - _LEARNT * guess.explained
    score = TrialScore.of(probability, centre, width)
    chance = probability.typical
    square = left * guess.deviation**2 / (chance * (1 - chance))
    used = epsilon * float(plan.effect)
    unit = (score.high - score.low) * changes / asked.mass
    sampling = math.sqrt(changes * square / asked.worth)
    error = ExpectedError.of_staircase(used, unit, sampling, asked.coverage)
    if not asked.with_interval:
        return error, plan.has_prognosis
    largest = max(score.high, -score.low) ** 2
    scale = changes / (asked.mass * epsilon * float(plan.interval))
    released = largest * lifted_variance(square / largest * asked.mass / asked.worth, scale)
    reach = unit * staircase_quantile(asked.coverage, used)
    half = combined_half_width(changes * released / asked.mass, reach, asked.coverage)
    return error.with_half_width(half), plan.has_prognosis
