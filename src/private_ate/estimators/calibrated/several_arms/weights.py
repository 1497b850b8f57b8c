"""Weights of several arms under their caps on all rows: solved there, sums repaired exactly.

A path may have been walked on a part of an arm's rows. Here such arms are solved on all of them,
one pass per question of all arms together, and weights become a function of a block of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Indices
from private_ate.estimators.calibrated.cap_path import fold_with_base, in_runs, scatter
from private_ate.estimators.calibrated.several_arms.design import (
    ArmDesign,
    ArmPath,
    CapPrice,
    Designs,
    members_of,
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
from private_ate.models.folds import FEATURE_ROWS
from private_ate.study import Block, MatchingStudy

__all__ = ["ArmWeights", "WeightedRows", "settle_arms"]

_CURVED_ROWS: Final = 100_000  # rows of an arm that stand for all in second derivatives


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows of a block that carry weight in an arm, and their weights."""

    rows: Indices
    weights: Floats


@dataclass(frozen=True, slots=True)
class ArmWeights:
    """One arm's weights as a function of a block of rows; they add up to n exactly.

    ``lift`` and ``cut`` repair the sum by moving every weight in proportion to its room below the
    cap or above zero.
    """

    design: ArmDesign
    cap: float
    solution: Solution = field(repr=False)
    lift: float = 0.0
    cut: float = 0.0

    @property
    def squares(self) -> float:
        """The sum of squared weights."""
        return self.solution.sums.squares

    @property
    def effective(self) -> float:
        """How many units of equal weight the arm is worth."""
        return self.design.problem.total**2 / self.squares

    @property
    def imbalance(self) -> float:
        """``‖Fᵀw − g‖²``, what calibration left unbalanced; nothing where weights are given."""
        if self.design.fixed:
            return 0.0
        left = self.solution.sums.features - self.design.problem.target
        return float(left @ left)

    def of(self, block: Block, base: Floats | None) -> WeightedRows:
        """Return the arm's rows in a block and their weights, all from 0 to the cap."""
        rows = members_of(block, self.design.features.arm)
        if self.design.is_constant(self.cap):
            return WeightedRows(rows, np.full(rows.size, self.design.equal_weight))
        weights = np.empty(rows.size)
        for start in range(0, rows.size, FEATURE_ROWS):
            run = rows[start : start + FEATURE_ROWS]
            priced = _price(self.design, self.solution.dual, self.cap, block, run, base)
            weights[start : start + run.size] = priced.weights
        weights += self.lift * (self.cap - weights)
        weights *= 1.0 - self.cut
        return WeightedRows(rows, weights)


def settle_arms(
    public: MatchingStudy,
    designs: Designs,
    paths: tuple[ArmPath, ...],
    chosen: tuple[CapPrice, ...],
) -> tuple[ArmWeights, ...]:
    """Solve on all rows at the chosen caps, then repair the sums of all arms exactly."""
    climbs = {
        arm: Climb(path.design.problem, point.solution.dual, 10 * TOLERANCE, reuses=True)
        for arm, (path, point) in enumerate(zip(paths, chosen, strict=True))
        if not path.is_complete and not path.design.is_constant(point.cap)
    }
    caps = tuple(point.cap for point in chosen)
    _climb_together(public, designs, caps, climbs)
    return tuple(
        _repair(path.design, point.cap, climbs[arm].solution if arm in climbs else point.solution)
        for arm, (path, point) in enumerate(zip(paths, chosen, strict=True))
    )


def _repair(design: ArmDesign, cap: float, solution: Solution) -> ArmWeights:
    """Find what lifts or cuts an arm's weights so that they add up to n."""
    weights = ArmWeights(design, cap, solution)
    weight = solution.sums.weight
    gap, room = design.problem.total - weight, design.members * cap - weight
    if gap > 0 and room > 0:
        return replace(weights, lift=min(gap / room, 1.0))
    return replace(weights, cut=-gap / weight) if gap < 0 else weights


def _climb_together(
    public: MatchingStudy, designs: Designs, caps: tuple[float, ...], climbs: dict[int, Climb]
) -> None:
    """Climb the duals of some arms on all rows, a pass for the questions of all."""
    # Some rows tell the first second derivatives well enough; who asks again gets those of all.
    shares = {arm: min(1.0, _CURVED_ROWS / designs.arms[arm].members) for arm in climbs}
    while True:
        asked = {arm: each.question for arm, each in climbs.items() if each.question is not None}
        if not asked:
            return
        kernel = _answer_kernel(designs, caps, asked, shares)
        answers = fold_with_base(public, designs.base, in_runs(kernel)).by_arm
        for arm, sums in answers.items():
            climbs[arm].hear(sums.mapped(designs.arms[arm].features.matrix()))
        shares = dict.fromkeys(climbs, 1.0)


@dataclass(frozen=True, slots=True)
class _Answers:
    """The dual's sums of the arms that asked, in terms of their basis; from one pass."""

    by_arm: dict[int, DualSums]

    def __add__(self, other: _Answers) -> _Answers:
        return _Answers({arm: sums + other.by_arm[arm] for arm, sums in self.by_arm.items()})


@dataclass(frozen=True, slots=True)
class _Priced:
    """Some rows of an arm: basis of the features, prices, weights to stay near and weights.

    ``units`` are their sampling weights, None without any.
    """

    basis: Floats
    price: Floats
    near: Floats
    weights: Floats
    units: Floats | None


def _price(
    design: ArmDesign, dual: Floats, cap: float, block: Block, rows: Indices, base: Floats | None
) -> _Priced:
    """Express the dual in terms of the basis and return the rows' weights at their prices."""
    mapped = dual[:-1] @ design.features.matrix()
    basis = design.features.basis(np.take(block.covariates.T, rows, axis=1).T)
    price = mapped[:-1] @ basis + (mapped[-1] + dual[-1])
    units = design.units(block, rows)
    near = design.near(rows.size, units) if base is None else base[rows]
    return _Priced(basis, price, near, weights_at(price, near, cap, units), units)


def _answer_kernel(
    designs: Designs,
    caps: tuple[float, ...],
    asked: dict[int, DualQuestion],
    shares: dict[int, float],
) -> Callable[[Block, Floats | None], _Answers]:
    """Answer arms' questions in terms of the basis; curvature from a share of the rows."""

    def answer(block: Block, base: Floats | None, arm: int, question: DualQuestion) -> DualSums:
        rows, cap = members_of(block, arm), caps[arm]
        priced = _price(designs.arms[arm], question.dual, cap, block, rows, base)
        free = None
        if question.curved:
            free = (priced.weights > 0.0) & (priced.weights < cap)
            if shares[arm] < 1.0:
                free &= scatter(block.first, block.arm.size)[rows] < shares[arm]
        sums = weighted_sums(
            priced.basis.T, priced.near, priced.price, priced.weights, free, priced.units
        )
        return replace(sums, curvature=sums.curvature / shares[arm])

    return lambda block, base: _Answers(
        {arm: answer(block, base, arm, question) for arm, question in asked.items()}
    )
