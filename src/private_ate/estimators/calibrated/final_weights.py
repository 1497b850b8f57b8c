"""Weights under the chosen cap on all rows: solved there, their sums repaired exactly.

The path of caps may have been walked on a part of the rows. Here both arms are solved on all of
them, one pass per question, and the weights become a function of a block of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Floats
from private_ate.estimators.calibrated.cap_path import (
    CapPath,
    CapPoint,
    CapProblem,
    fold_with_base,
    in_runs,
    members_of,
    scatter,
)
from private_ate.estimators.calibrated.solver import (
    TOLERANCE,
    Climb,
    DualQuestion,
    DualSums,
    Solution,
    weighted_sums,
    weights_at,
)
from private_ate.models.folds import FEATURE_ROWS, runs
from private_ate.study import Block, MatchingStudy

__all__ = ["CappedWeights", "settle_weights"]


_CURVED_ROWS: Final = 100_000  # rows of an arm that stand for all in second derivatives


@dataclass(frozen=True, slots=True)
class CappedWeights:
    """Weights under one cap as a function of a block of rows; their sums are exact.

    ``lifts`` and ``cuts`` repair each arm's sum by moving every weight in proportion to its room
    below the cap or above zero.
    """

    problem: CapProblem = field(repr=False)
    cap: float
    solutions: tuple[Solution, Solution] = field(repr=False)
    lifts: tuple[float, float]
    cuts: tuple[float, float]

    def of(self, block: Block, base: Floats | None) -> Floats:
        """Return the weights of a block's rows, all from 0 to the cap, shape (m,)."""
        duals = np.stack([solution.dual for solution in self.solutions])
        prices = _Prices.of(self.problem, duals, self.cap)
        weights = np.empty(block.treatment.size)
        units = None if self.problem.units is None else self.problem.units.of(block)
        for run in runs(block, FEATURE_ROWS):
            basis = self.problem.features.basis(block.covariates[run])
            near = None if base is None else base[run]
            weights[run] = prices.weigh(
                basis, block.treatment[run], near, None if units is None else units[run]
            )
        treated = block.treatment
        weights += np.where(treated, *self.lifts) * (self.cap - weights)
        weights *= 1.0 - np.where(treated, *self.cuts)
        for arm, rows in enumerate((treated, ~treated)):
            if self.problem.is_constant(arm, self.cap):
                weights[rows] = self.problem.equal_weights[arm]
        if units is not None:  # of such a row nothing is lifted
            weights[units == 0] = 0.0
        return weights


def settle_weights(public: MatchingStudy, path: CapPath, point: CapPoint) -> CappedWeights:
    """Solve on all rows at the chosen cap, then repair the sums of both arms exactly."""
    problem = path.problem
    solutions = point.solutions
    if not path.is_complete:
        solutions = _solve_on_all(public, problem, point)
    sizes = (problem.arms.treated, problem.arms.control)
    lifts, cuts = [0.0, 0.0], [0.0, 0.0]
    for arm in (0, 1):
        weight = solutions[arm].sums.weight
        gap, room = problem.rows - weight, sizes[arm] * point.cap - weight
        if gap > 0 and room > 0:
            lifts[arm] = min(gap / room, 1.0)
        elif gap < 0:
            cuts[arm] = -gap / weight
    return CappedWeights(problem, point.cap, solutions, (lifts[0], lifts[1]), (cuts[0], cuts[1]))


def _solve_on_all(
    public: MatchingStudy, problem: CapProblem, point: CapPoint
) -> tuple[Solution, Solution]:
    """Solve both arms on all rows together, one pass per question."""
    climbs = [
        Climb(
            problem.targets[arm],
            point.solutions[arm].dual,
            tolerance=math.inf if problem.is_constant(arm, point.cap) else 10 * TOLERANCE,
            reuses=True,
        )
        for arm in (0, 1)
    ]
    matrix = problem.features.matrix()
    sizes = (problem.arms.treated, problem.arms.control)
    # Some rows tell the first second derivatives well enough; who asks again gets those of all.
    shares = [min(1.0, _CURVED_ROWS / size) for size in sizes]
    while any(climb.question is not None for climb in climbs):
        asked = [
            climb.question or DualQuestion(climb.solution.dual, curved=False) for climb in climbs
        ]
        kernel = _joint_kernel(problem, asked, point.cap, shares)
        sums = fold_with_base(public, problem.base, in_runs(kernel))
        shares = [1.0, 1.0]
        for climb, answer in zip(climbs, (sums.treated, sums.control), strict=True):
            if climb.question is not None:
                climb.hear(answer.mapped(matrix))
    return climbs[0].solution, climbs[1].solution


@dataclass(frozen=True, slots=True)
class _Both:
    """The dual's sums of both arms from one pass."""

    treated: DualSums
    control: DualSums

    def __add__(self, other: _Both) -> _Both:
        return _Both(self.treated + other.treated, self.control + other.control)


@dataclass(frozen=True, slots=True)
class _Prices:
    """Prices of both arms as a function of the basis of the features, and the weights there."""

    slopes: Floats  # shape (2, b)
    offsets: Floats  # shape (2,)
    levels: tuple[float, float]  # weights to stay close to, of a row of sampling weight one
    cap: float

    @classmethod
    def of(cls, problem: CapProblem, duals: Floats, cap: float) -> _Prices:
        """Express duals of the features in terms of their basis."""
        mapped = duals[:, :-1] @ problem.features.matrix()
        levels = problem.equal_weights if problem.units is None else problem.units.levels
        return cls(mapped[:, :-1], mapped[:, -1] + duals[:, -1], levels, cap)

    def weigh(
        self,
        basis: Floats,
        treatment: npt.NDArray[np.bool_],
        base: Floats | None,
        units: Floats | None = None,
    ) -> Floats:
        """Return each row's weight at its price in its own arm."""
        # Two products with vectors are faster than one with a matrix of two rows.
        treated, control = (
            slope @ basis + offset for slope, offset in zip(self.slopes, self.offsets, strict=True)
        )
        price = np.where(treatment, treated, control)
        near = np.where(treatment, *self.levels) if base is None else base
        if units is not None:
            near = near * units
        return weights_at(price, near, self.cap, units)


def _joint_kernel(
    problem: CapProblem, questions: list[DualQuestion], cap: float, shares: list[float]
) -> Callable[[Block, Floats | None], _Both]:
    """Answer both arms' questions in terms of the basis; curvature from a share of the rows."""
    prices = _Prices.of(problem, np.stack([question.dual for question in questions]), cap)

    def answer(block: Block, base: Floats | None, arm: int) -> DualSums:
        members = np.flatnonzero(members_of(block)[arm])
        basis = problem.features.basis(np.take(block.covariates.T, members, axis=1).T)
        price = prices.slopes[arm] @ basis + prices.offsets[arm]
        units = None if problem.units is None else problem.units.of(block)[members]
        near = problem.near(arm, members.size, units) if base is None else base[members]
        weights = weights_at(price, near, cap, units)
        free = None
        if questions[arm].curved:
            free = (weights > 0.0) & (weights < cap)
            if shares[arm] < 1.0:
                free &= scatter(block.first, block.treatment.size)[members] < shares[arm]
        if problem.is_constant(arm, cap):
            weights = np.full(members.size, problem.equal_weights[arm])
        sums = weighted_sums(basis.T, near, price, weights, free, units)
        return replace(sums, curvature=sums.curvature / shares[arm])

    return lambda block, base: _Both(answer(block, base, 0), answer(block, base, 1))
