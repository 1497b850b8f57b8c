"""What to expect of a release before ε is spent: its quantities without their values.

The planner needs nothing else of this method. The public half runs on real or made-up rows once;
what a release would hold at any ε, of any number of rows like these, then follows from the caps
that were tried, with its noise and the variances that intervals would be made of.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final, cast

import numpy as np

from private_ate.effects.estimate import Quantity
from private_ate.effects.predictions import Prediction
from private_ate.methods.assumptions import Assumptions, Predict
from private_ate.methods.calibrated.design import Design, Learned, pose
from private_ate.methods.calibrated.method import imbalance_weight, plan_budget
from private_ate.methods.calibrated.options import (
    CalibratedOptions,
    outcome_share,
    plan_clip,
)
from private_ate.methods.calibrated.private import NoiseRule, draws_of, forms_of
from private_ate.methods.calibrated.variance import PairVariance, pair_scale
from private_ate.methods.calibrated.weights import (
    CapPoint,
    choose_cap,
    expected_misses,
    try_caps,
)
from private_ate.request import Request, options_for

__all__ = ["predictor"]

_MOST_WALKED: Final = 4_000  # rows that stand for more, where a plan tries other sizes


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """The public half on some rows: the weight problems, and all caps of every draw of noise."""

    design: Design
    paths: tuple[tuple[CapPoint, ...], ...]


def predictor(assumed: Assumptions, request: Request) -> Predict:
    """Return predictions of the contrast of two arms, or of the levels of three or more."""
    public = assumed.public
    if public is None:
        msg = "the method calibrated is planned on public rows"
        raise TypeError(msg)
    asked = options_for(request, CalibratedOptions, "calibrated")
    options = replace(asked, means=False)  # a plan is one for the effect
    learned = cast("Learned | None", assumed.learned)
    bounds = assumed.bounds
    spread, kept = outcome_share(bounds, options), plan_clip(bounds, options).kept_share
    alike = min(assumed.alike_share * spread**2, kept**2 / 4)

    @lru_cache(maxsize=64)
    def foreseen(rows: int) -> _Foreseen:
        design = pose(public.draw(rows).public(), request, learned)
        draws = draws_of(forms_of(len(design.arms), means=False))
        return _Foreseen(design, tuple(tuple(try_caps(design, arms)) for arms in draws))

    def predict(rows: int, epsilon: float) -> tuple[Prediction, ...]:
        walked = public.walked(rows)
        if rows != public.size:  # a search over sizes draws many studies
            walked = min(walked, _MOST_WALKED)
        found, more, unit = foreseen(walked), rows / walked, bounds.width / rows
        design, outcomes = found.design, request.outcomes
        budget = plan_budget(design, bounds, request, options, outcomes, epsilon=Fraction(epsilon))
        likely, weighed = np.array([alike]), spread
        if budget.variance:
            known = _known_variance(design, budget.variance, alike, kept, spread, request)
            known = replace(known, scale=known.scale / more)
            likely, weighed = known.likely_values(), known.corrected_guess()
        rule = NoiseRule.of(request.rows_per_person, len(budget.forms), budget.sums, outcomes)
        distribution = rule.distribution(budget.sums, outcomes)
        predictions = []
        for form, path in zip(budget.forms, found.paths, strict=True):
            point = choose_cap(design, path, budget.noise_variance / more, weighed)
            noise = distribution.scaled(rule.rows * kept * point.cap * unit)
            squares = more * sum(one.sums.squares for one in point.solutions)
            left = more * _imbalance(design, point)
            moved = imbalance_weight(weighed, likely) * left
            shown = tuple((unit**2 * (likely * squares + moved)).tolist())
            bias = unit**2 * float(moved.mean())
            expected = float(imbalance_weight(spread, np.array([alike]))[0])
            sampling = unit**2 * (alike * squares + expected * left)
            quantity = Quantity(0.0, (noise,), shown, bias, tuple(map(float, form)))
            predictions.append(Prediction(quantity, sampling, f"cap {point.cap:.3g}"))
        return tuple(predictions)

    return predict


def _known_variance(
    design: Design, epsilon: Fraction, alike: float, kept: float, guess: float, request: Request
) -> PairVariance:
    """Return the variance that a release would know if outcomes spread as guessed."""
    equal = [arm.equal_weight for arm in design.arms]
    scale = pair_scale(equal, [arm.members // 2 for arm in design.arms])
    return PairVariance(
        alike, request.rows_per_person * scale * kept**2 / float(epsilon), kept**2 / 4, guess,
        outcomes=request.outcomes,
    )  # fmt: skip


def _imbalance(design: Design, point: CapPoint) -> float:
    """Return what weights under a cap leave unbalanced, and may miss, over the arms of a draw."""
    total = 0.0
    for arm, solution in zip(point.arms, point.solutions, strict=True):
        left = solution.sums.features - design.arms[arm].target
        total += float(left @ left) + expected_misses(design.arms[arm])
    return total
