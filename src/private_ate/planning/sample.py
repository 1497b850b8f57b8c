"""Predictions at sample level: from n, the number of covariates and guesses alone."""

from __future__ import annotations

import math
from fractions import Fraction

from private_ate.estimators.blocks.expected import Asked, expected_centre, expected_comparison
from private_ate.estimators.blocks.plan import BlocksOptions, plan_blocks, worth_trying
from private_ate.estimators.guesses import ExpectedError, PeopleGuess
from private_ate.estimators.orthogonal.plan import OrthogonalOptions, plan_orthogonal
from private_ate.estimators.request import Request
from private_ate.estimators.trial.expected import expected_trial
from private_ate.estimators.trial.probability import Probability
from private_ate.planning.plan import PlanRow
from private_ate.planning.search import Predict
from private_ate.planning.sizes import StudySizes

__all__ = ["blocks_planner", "orthogonal_planner"]

_UNADJUSTED = "does not adjust"


def blocks_planner(
    sizes: StudySizes,
    request: Request,
    options: BlocksOptions,
    guess: PeopleGuess,
    trial: Probability | None = None,
) -> Predict:
    """Return predictions for the method blocks: its own steps on expected values.

    ``trial`` is the known probability of treatment.
    """
    width = sizes.outcome_width

    def predict(rows: int, epsilon: float) -> PlanRow:
        asked = _asked(sizes, request, rows, epsilon)
        if trial is not None:
            expected, adjusted = expected_trial(asked, guess, trial)
            note = "compares outcomes with a prognosis" if adjusted else _UNADJUSTED
            return PlanRow.of(
                epsilon, expected.times(width), rows, f"{note} (trial)", adjusted=adjusted
            )
        worth, mass = (None, None) if asked.weight_share == 1 else (asked.worth, asked.mass)
        even, plan = (
            plan_blocks(
                rows, sizes.covariates, float(asked.per_row),
                share=share, members=members, mass=added, estimand=request.estimand,
                with_interval=asked.with_interval, options=options,
            )
            for share, members, added in ((0.5, None, None), (guess.share, worth, mass))
        )  # fmt: skip
        tried = worth_trying(rows, even, request.design, options)
        if not (tried and plan.enough):
            expected = expected_comparison(asked, guess, tried=tried)
            note = _UNADJUSTED + (" (randomised)" if request.design == "randomized" else "")
            return PlanRow.of(epsilon, expected.times(width), rows, note, adjusted=False)
        expected = expected_centre(asked, plan, guess)
        note = f"adjusts ({plan.blocks} blocks of {plan.rows} rows, {plan.model})"
        return PlanRow.of(epsilon, expected.times(width), rows, note.replace("_", " "))

    return predict


def orthogonal_planner(
    sizes: StudySizes, request: Request, options: OrthogonalOptions, guess: PeopleGuess
) -> Predict:
    """Return predictions for the method orthogonal: its budget on a guessed reach of scores."""
    changes = request.rows_per_person

    def predict(rows: int, epsilon: float) -> PlanRow:
        asked = _asked(sizes, request, rows, epsilon)
        layout = plan_orthogonal(rows, sizes.covariates, float(asked.per_row), options)
        signal = f"signal/noise {layout.signal_to_noise:.2g}"
        if not layout.adjusted:
            expected = expected_comparison(asked, guess, tried=False).times(sizes.outcome_width)
            return PlanRow.of(epsilon, expected, rows, f"{_UNADJUSTED} ({signal})", adjusted=False)
        used = epsilon * float(options.budget(with_interval=asked.with_interval)["effect"])
        reach = max(4.0, 1 / min(guess.share, 1 - guess.share))
        reach *= 1.4 if layout.prognosis else 1.0
        expected = ExpectedError.of_staircase(
            used,
            changes * reach / asked.mass,
            _deviation(guess, asked.worth, changes),
            request.coverage,
        )
        note = f"adjusts ({signal}, K = 4)"
        return PlanRow.of(epsilon, expected.times(sizes.outcome_width), rows, note)

    return predict


def _asked(sizes: StudySizes, request: Request, rows: int, epsilon: float) -> Asked:
    return Asked(
        rows,
        sizes.covariates,
        Fraction(epsilon).limit_denominator(10**15),
        request.rows_per_person,
        request.coverage,
        request.confidence is not None,
        sizes.is_binary,
        request.estimand,
        sizes.weight_share,
    )


def _deviation(guess: PeopleGuess, rows: float, changes: int) -> float:
    """Return the standard deviation of a difference in means, in units of the range."""
    return guess.deviation * math.sqrt(changes / (rows * guess.share * (1 - guess.share)))
