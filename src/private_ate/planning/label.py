"""Predictions at label level: the public phase of an estimate, on real or made-up people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.estimators.calibrated.cap_path import CapPath, CapPoint, walk_caps
from private_ate.estimators.calibrated.method import (
    INTERVAL_SHARE,
    CalibratedOptions,
    imbalance_of,
    outcome_share,
    plan_clip,
    pose_caps,
)
from private_ate.estimators.guesses import ExpectedError, PeopleGuess, make_up_rows
from private_ate.estimators.request import Request
from private_ate.planning.plan import PlanRow
from private_ate.planning.search import Predict
from private_ate.planning.sizes import StudySizes
from private_ate.privacy.quantiles import staircase_and_normal_quantile, staircase_variance
from private_ate.study import Block

__all__ = ["People", "label_planner", "made_up_people", "people_like"]

_MOST_ROWS: Final = 20_000  # beyond, as many rows stand for all
_FEWEST: Final = 8
_STEP: Final = 1.25  # between numbers of rows that are drawn in a search
_REACH: Final = 4.0  # deviations of a made-up covariate that its range holds on either side
_SEED: Final = 21
_ALIKE: Final = 0.8  # of the outcome's variance: what pairs of like units differ by


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


def made_up_people(sizes: StudySizes, guess: PeopleGuess) -> People:
    """Return made-up people for these sizes and guesses."""
    names = [f"x{place}" for place in range(1, sizes.covariates + 1)]
    domain = Domain("t", ("y", sizes.bounds), dict.fromkeys(names, Interval(0, 1)))

    def draw(rows: int) -> LocalStudy:
        made = make_up_rows(guess, rows, sizes.covariates)
        treatment = made.treatment
        if treatment.all() or not treatment.any():  # both arms are there, however few rows
            treatment = np.arange(rows) < max(round(guess.share * rows), 1)
        covariates = np.clip(made.covariates / (2 * _REACH) + 0.5, 0.0, 1.0)
        return LocalStudy(domain, np.ascontiguousarray(covariates.T), treatment, None)

    return People(sizes.rows, False, sizes.bounds, draw)


def people_like(study: LocalStudy) -> People:
    """Return the people of a study, or others like them, drawn with replacement."""

    def draw(rows: int) -> LocalStudy:
        if rows == study.size:
            return study
        known = _gathered(study)
        drawn = np.random.default_rng(_SEED).integers(0, known.treatment.size, rows)
        arms = known.treatment[drawn]
        if arms.all() or not arms.any():
            drawn[0], drawn[-1] = np.argmax(known.treatment), np.argmin(known.treatment)
        covariates = np.ascontiguousarray(known.covariates[drawn].T)
        return LocalStudy(study.domain, covariates, known.treatment[drawn], None)

    return People(study.size, True, study.domain.bounds, draw)


@dataclass(frozen=True, slots=True)
class _People:
    """Public rows gathered from blocks."""

    covariates: Floats  # shape (m, d)
    treatment: Bits

    def __add__(self, other: _People) -> _People:
        return _People(
            np.concatenate([self.covariates, other.covariates]),
            np.concatenate([self.treatment, other.treatment]),
        )


def _gathered(study: LocalStudy) -> _People:
    """Return some of the public rows, by their places."""
    stride = max(study.size // (2 * _MOST_ROWS), 1)

    def kernel(block: Block) -> _People:
        kept = np.arange(-block.first % stride, block.treatment.size, stride)
        return _People(block.covariates[kept], block.treatment[kept])

    return study.fold(kernel, title="people")


def label_planner(
    people: People, request: Request, options: CalibratedOptions, guess: PeopleGuess
) -> Predict:
    """Return predictions for the method calibrated: its public phase, then its noise."""
    bounds = people.bounds
    spread, clip = outcome_share(bounds, options), plan_clip(bounds, options)
    pays = request.confidence is not None and request.target == "balance"
    left = 1 - float(clip.share) - (float(INTERVAL_SHARE) if pays else 0.0)
    reach = request.rows_per_person * clip.kept_share

    @lru_cache(maxsize=64)
    def path_of(rows: int) -> CapPath:
        study = people.draw(rows)
        return walk_caps(study, pose_caps(study, request))

    def predict(rows: int, epsilon: float) -> PlanRow:
        walked = people.walked(rows)
        path, stands_for = path_of(walked), rows / walked
        used = epsilon * left
        point = path.choose(staircase_variance(used) * reach**2 / stands_for, spread)
        unit = bounds.width / rows
        likely, wide = (
            math.sqrt(stands_for) * size * unit for size in _spreads(path, point, spread)
        )
        scale = reach * point.cap * unit
        expected = ExpectedError.of_staircase(used, scale, likely, request.coverage)
        half = staircase_and_normal_quantile(request.coverage, used, scale, wide)
        return PlanRow.of(epsilon, expected.with_half_width(half), rows, f"cap {point.cap:.3g}")

    return predict


def _spreads(path: CapPath, point: CapPoint, spread: float) -> tuple[float, float]:
    """Return guessed deviations of n times the estimate over B: likely, and covered."""
    squares = sum(solution.sums.squares for solution in point.solutions)
    imbalance = imbalance_of(path.problem, point.solutions)
    return (
        spread * math.sqrt(_ALIKE * squares + imbalance / 4),
        spread * math.sqrt(squares + imbalance),
    )
