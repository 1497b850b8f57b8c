"""Predictions at label level: the public phase of an estimate, on real or made-up people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from private_ate.arrays import Codes, Floats
from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.estimators.calibrated.cap_path import (
    CapPath,
    CapPoint,
    scatter,
    walk_caps,
)
from private_ate.estimators.calibrated.features import UNEXPLAINED
from private_ate.estimators.calibrated.method import (
    INTERVAL_SHARE,
    CalibratedOptions,
    Features,
    error_deviations,
    expected_variance,
    imbalance_doubt,
    imbalance_of,
    outcome_share,
    plan_clip,
    pose_caps,
)
from private_ate.estimators.guesses import (
    ExpectedError,
    PeopleGuess,
    make_up_arms,
    make_up_rows,
    sum_half_width,
)
from private_ate.estimators.request import Request
from private_ate.planning.plan import PlanRow
from private_ate.planning.search import Predict
from private_ate.planning.sizes import StudySizes
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.sum_law import SumLaw
from private_ate.study import Block

__all__ = [
    "ExpectedEffect",
    "People",
    "describe_weights",
    "foresee_effect",
    "label_planner",
    "made_up_people",
    "people_like",
]

_MOST_ROWS: Final = 20_000  # beyond, as many rows stand for all
_MOST_COVARIATES: Final = 200  # of made-up people
_FEWEST: Final = 8
_STEP: Final = 1.25  # between numbers of rows that are drawn in a search
_REACH: Final = 4.0  # deviations of a made-up covariate that its range holds on either side


@dataclass(frozen=True, slots=True)
class People:
    """The public part of a study of any number of rows.

    ``size`` is the number of rows of the study, None if a plan shall say how many it takes.
    """

    size: int | None
    is_real: bool
    bounds: Interval
    draw: Callable[[int], LocalStudy]

    def walked(self, rows: int) -> int:
        """Return how many rows stand for so many: few numbers, so that each is drawn once."""
        if rows == self.size and (self.is_real or rows <= _MOST_ROWS):
            return rows
        steps = math.floor(math.log(max(rows, 1)) / math.log(_STEP) + 1e-9)
        return min(rows, _MOST_ROWS, max(round(_STEP**steps), _FEWEST))


def made_up_people(
    sizes: StudySizes,
    guess: PeopleGuess,
    treatment: Treatment | None = None,
    shares: Sequence[float] = (),
) -> People:
    """Return made-up people for these sizes and guesses.

    Three arms or more are those of the treatment, with these shares in the order of their codes.
    """
    if sizes.covariates > _MOST_COVARIATES:
        msg = (
            f"people are made up with at most {_MOST_COVARIATES} covariates; plan from the table "
            "of public covariates and treatment instead"
        )
        raise ArgumentError(msg)
    arms = 2 if treatment is None else treatment.size
    if sizes.rows is not None and sizes.rows < arms:
        each = "two rows" if arms == 2 else f"{arms} rows"
        msg = f"a study has at least {each}, one in each arm"
        raise ArgumentError(msg)
    names = [f"x{place}" for place in range(1, sizes.covariates + 1)]
    domain = Domain(
        "t" if treatment is None else treatment,
        ("y", sizes.bounds),
        dict.fromkeys(names, Interval(0, 1)),
    )

    def draw(rows: int) -> LocalStudy:
        made = make_up_rows(guess, rows, sizes.covariates)
        covariates = np.clip(made.covariates / (2 * _REACH) + 0.5, 0.0, 1.0)
        encoded = np.ascontiguousarray(covariates.T)
        if treatment is not None:
            arm = make_up_arms(made.covariates, shares, guess.selection)
            return LocalStudy(domain, encoded, arm, None)
        treated = made.treatment
        if treated.all() or not treated.any():  # both arms are there, however few rows
            treated = np.arange(rows) < max(round(guess.share * rows), 1)
        return LocalStudy(domain, encoded, treated, None)

    return People(sizes.rows, False, sizes.bounds, draw)


def people_like(study: LocalStudy) -> People:
    """Return the people of a study, or others like them, drawn with replacement."""

    def draw(rows: int) -> LocalStudy:
        if rows == study.size:
            return study
        known = _gathered(study)
        drawn = np.floor(scatter(0, rows) * known.arm.size).astype(np.int64)
        missing = np.setdiff1d(known.arm, known.arm[drawn])
        if study.arms == 2 and missing.size:
            drawn[0], drawn[-1] = np.argmax(known.arm), np.argmin(known.arm)
        elif missing.size:  # a row of every arm, however few rows
            drawn[: missing.size] = [np.argmax(known.arm == code) for code in missing]
        covariates = np.ascontiguousarray(known.covariates[drawn].T)
        arm = known.arm[drawn]
        kept = arm.view(np.bool_) if study.arms == 2 else arm
        weights = None if known.weights is None else known.weights[drawn]
        return LocalStudy(study.domain, covariates, kept, None, weights=weights)

    return People(study.size, True, study.domain.bounds, draw)


@dataclass(frozen=True, slots=True)
class _People:
    """Public rows gathered from blocks."""

    covariates: Floats  # shape (m, d)
    arm: Codes
    weights: Floats | None  # sampling weights over their bound, if there are any

    def __add__(self, other: _People) -> _People:
        return _People(
            np.concatenate([self.covariates, other.covariates]),
            np.concatenate([self.arm, other.arm]),
            None
            if self.weights is None or other.weights is None
            else np.concatenate([self.weights, other.weights]),
        )


def _gathered(study: LocalStudy) -> _People:
    """Return some of the public rows, by their places."""
    stride = max(study.size // (2 * _MOST_ROWS), 1)

    def kernel(block: Block) -> _People:
        kept = np.arange(-block.first % stride, block.arm.size, stride)
        weights = None if block.weights is None else block.weights[kept]
        return _People(block.covariates[kept], block.arm[kept], weights)

    return study.fold(kernel, title="people")


def describe_weights(study: LocalStudy) -> str:
    """Say by how much sampling weights make sensitivity grow, if there are any."""
    if study.weights is None:
        return ""
    mean = float(study.weights.mean())
    largest = float(study.weights.max(initial=0.0)) / mean if mean > 0 else 1.0
    return (
        f", on sampling weights whose largest is {largest:.3g} times the mean, which "
        "is how much more one outcome can move the estimate unless a cap binds"
    )


@dataclass(frozen=True, slots=True)
class ExpectedEffect:
    """What to expect of the effect of two arms, in units of the outcome.

    Attributes
    ----------
    drawn : SumLaw
        By which its noise is drawn.
    unit : float
        What a sensitivity of one is.
    sampling : float
        Its standard deviation without noise.
    likely : array
        The standard deviations that its interval will be made of; empty if none is paid for.
    doubt : float
        How much of their squares is what weights left unbalanced.
    cap : float
        The largest weight of a unit.
    """

    drawn: SumLaw
    unit: float
    sampling: float
    likely: Floats
    doubt: float
    cap: float

    @property
    def law(self) -> NoiseDistribution:
        """The law of its noise."""
        return NoiseDistribution.of_sum(self.drawn, self.unit)


EffectPredict = Callable[[int, float], ExpectedEffect]
"""What to expect of the effect of so many rows at an ε."""


def label_planner(
    people: People, request: Request, options: CalibratedOptions, alike_share: float
) -> Predict:
    """Return predictions for the method calibrated: its public phase, then its noise.

    ``alike_share`` is the share of the outcome's variance that like units are thought to have.
    """
    foreseen = foresee_effect(people, request, options, alike_share)

    def predict(rows: int, epsilon: float) -> PlanRow:
        found = foreseen(rows, epsilon)
        law, unit = found.drawn, found.unit
        expected = ExpectedError.of_sum(law, unit, found.sampling, request.coverage)
        if found.likely.size:
            half = sum_half_width(law, request.coverage, unit, found.likely)
            expected = expected.with_half_width(half)
        return PlanRow.of(epsilon, expected, rows, f"cap {found.cap:.3g}")

    return predict


def foresee_effect(
    people: People,
    request: Request,
    options: CalibratedOptions,
    alike_share: float,
    learned: Features | None = None,
) -> EffectPredict:
    """Return what to expect of the method calibrated for two arms, as `label_planner` has it.

    ``learned`` are features that were learnt from more rows than those of the people.
    """
    bounds = people.bounds
    spread, clip = outcome_share(bounds, options), plan_clip(bounds, options)
    pays = request.confidence is not None and request.target == "balance"
    left = 1 - float(clip.share) - (float(INTERVAL_SHARE) if pays else 0.0)
    reach = request.rows_per_person * clip.kept_share
    alike = alike_share * spread**2

    @lru_cache(maxsize=64)
    def path_of(rows: int) -> CapPath:
        study = people.draw(rows)
        return walk_caps(study, pose_caps(study, request, learned))

    def predict(rows: int, epsilon: float) -> ExpectedEffect:
        walked = people.walked(rows)
        path, more = path_of(walked), rows / walked
        used, unit = epsilon * left, bounds.width / rows
        share = epsilon * float(INTERVAL_SHARE)
        known = expected_variance(path.problem, spread, clip, share, request)
        known = replace(known, released=min(alike, known.ceiling), scale=known.scale / more)
        weighed = known.corrected_guess() if pays else spread
        law = SumLaw.of(request.outcomes, Fraction(used))
        point = path.choose(law.variance * reach**2 / more, weighed)
        scale = reach * point.cap * unit
        sampling = math.sqrt(more * _likely_square(path, point, known.released, spread)) * unit
        wide, values = np.zeros(0), np.array([known.released])
        if pays:
            values = known.likely_values()
            wide = error_deviations(path.problem, point.solutions, spread, values)
            wide = math.sqrt(more) * unit * wide
        doubt = imbalance_doubt(path.problem, point.solutions, spread, values)
        return ExpectedEffect(law, scale, sampling, wide, more * unit**2 * doubt, point.cap)

    return predict


def _likely_square(path: CapPath, point: CapPoint, variance: float, spread: float) -> float:
    """Return the mean square of n times the estimate over B, less its noise, by prior guesses."""
    squares = sum(solution.sums.squares for solution in point.solutions)
    loss = point.loss - UNEXPLAINED * squares
    if (
        path.problem.base is not None or path.problem.units is not None
    ):  # the loss of following weights is about those weights
        loss = imbalance_of(path.problem, point.solutions)
    return variance * squares + spread**2 * max(loss, 0.0)
