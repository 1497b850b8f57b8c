"""What a trial's release will show before any record is read: its steps with noise left out."""

from __future__ import annotations

import math

from scipy.special import ndtri

from private_ate.effects.predictions import ExpectedError
from private_ate.methods.assumptions import PeopleGuess
from private_ate.methods.trial.method import TrialScore, lifted_variance
from private_ate.methods.trial.plan import plan_trial
from private_ate.methods.trial.probability import Probability
from private_ate.privacy.quantiles import staircase_quantile

__all__ = ["expected_trial"]


def expected_trial(  # noqa: PLR0913  # public numbers and guesses
    guess: PeopleGuess,
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
    mass, worth = size * weight_share, size * (1 + weight_share) / 2
    score = TrialScore.of(probability, guess.middle, 1.0)
    chance = probability.typical
    square = guess.deviation**2 / (chance * (1 - chance))
    used = epsilon * float(plan.effect)
    unit = (score.high - score.low) * changes / mass
    error = ExpectedError.of_staircase(used, unit, math.sqrt(changes * square / worth), coverage)
    if not with_interval:
        return error
    largest = max(score.high, -score.low) ** 2
    scale = changes / (mass * epsilon * float(plan.interval))
    released = largest * lifted_variance(square / largest * mass / worth, scale)
    reach = unit * staircase_quantile(coverage, used)
    normal = float(ndtri((1 + coverage) / 2))
    return error.with_half_width(math.hypot(normal * math.sqrt(changes * released / mass), reach))
