"""Capped weights of every arm: caps tried on some rows, the chosen one solved for on all.

Arms whose sums share a draw of noise share a cap: of two arms one contrast is released, whose
noise follows the largest weight of either; arms that are released apart have caps of their own.
Everything is computed from public columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np

from private_ate.arrays import Floats, Indices, scatter
from private_ate.methods.calibrated.design import (
    ArmProblem,
    Design,
    Sums,
    fold_with_base,
    members_of,
)
from private_ate.methods.calibrated.features import LINES, UNEXPLAINED, PricedRows, weights_at
from private_ate.methods.calibrated.solver import (
    TOLERANCE,
    Ascent,
    DualSums,
    Solution,
    ascend,
    climb,
    curvature_of,
    dual_sums,
    maximize_dual,
)
from private_ate.privacy.quantization import quantize_weights
from private_ate.study import Added, Block, MatchingStudy

__all__ = [
    "ArmWeights", "CapPoint", "PublicWeights", "choose_cap", "imbalance_of", "settle",
    "try_caps", "weigh",
]  # fmt: skip

_CAPS: Final = 12
_PATH_ROWS: Final = 3_000  # rows of an arm on which caps are tried
_CURVED_ROWS: Final = 10_000  # rows of an arm from which second derivatives are taken
_PASS_TOLERANCE: Final = (
    1e-4  # of n: where passes cost much, a tenth of a standard error at 10⁶ rows
)
_MISSED: Final = 0.12  # of what leaves moved, expected to be missed where evidence is certain


@dataclass(frozen=True, slots=True)
class CapPoint:
    """One cap of some arms, what it costs in balance (Q), and the solutions on the rows tried."""

    arms: tuple[int, ...]
    cap: float
    loss: float
    solutions: tuple[Solution, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class WeightSums(Added):
    """What weights in use add up to over an arm's rows."""

    squares: float
    largest: int = field(metadata={"add": max})  # integer weight
    features: Floats = field(repr=False)  # F'w, shape (p,)
    covariates: Floats = field(repr=False)  # Σ w x, shape (d,)


class _ArmRows(NamedTuple):
    """Rows of a block that carry weight in an arm, and what their weights stay near to."""

    block: Block
    rows: Indices
    near: Floats
    units: Floats

    @classmethod
    def of(cls, design: Design, block: Block, base: Floats | None, problem: ArmProblem) -> _ArmRows:
        """Pick an arm's rows from a public block."""
        rows = np.flatnonzero((block.arm == problem.code) & members_of(block))
        near = problem.level * design.near(block, base)[rows]
        return cls(block, rows, near, design.units(block)[rows])


@dataclass(frozen=True, slots=True)
class ArmWeights:
    """One arm's weights as a function of a block of rows, and what they add up to.

    ``lift`` and ``cut`` repair the sum by moving every weight in proportion to its room below the
    cap or above zero, so that weights add up to n. A lift of one makes all weights equal.
    """

    problem: ArmProblem
    cap: float
    dual: Floats = field(repr=False)  # the solution, shape (p + 1,)
    lift: float
    cut: float
    used: WeightSums

    @property
    def is_constant(self) -> bool:
        """Whether all weights are n/m, as the cap leaves no room."""
        return _is_constant(self.problem, self.cap)

    @property
    def effective(self) -> float:
        """The effective sample size of the arm."""
        return self.problem.total**2 / self.used.squares

    @property
    def imbalance(self) -> float:
        """What the weights in use leave unbalanced, and may miss."""
        return imbalance_of(self.problem, self.used.features)

    def of(self, found: _ArmRows) -> Floats:
        """Return the weights of an arm's rows, from 0 to the cap."""
        return self._priced(found, adding=False).weights

    def add_up(self, found: _ArmRows) -> WeightSums:
        """Return what the weights of an arm's rows add up to."""
        _, weights, sums = self._priced(found, adding=True)
        return WeightSums(
            float(weights @ weights),
            int(quantize_weights(weights).max(initial=0)),
            sums,
            weights @ found.block.covariates[found.rows],
        )

    def _priced(self, found: _ArmRows, *, adding: bool) -> PricedRows:
        """Return ``(1 − cut)(w + lift(A − w))``, which is a clipped line of the price like w."""
        kept, lift, cap = 1.0 - self.cut, self.lift, self.cap
        return self.problem.features.weigh(
            found.block.covariates, found.rows, self.dual,
            kept * (found.near + lift * (cap - found.near)), kept * (1.0 - lift) * found.units,
            kept * cap, least=kept * lift * cap, adding=adding,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublicWeights:
    """The public half of the method: weights of every arm on a grid of integers, and their facts.

    ``arms`` are in the order of the codes. A function of public columns, n, ε and guesses.
    """

    design: Design = field(repr=False)
    arms: tuple[ArmWeights, ...]

    @property
    def largest(self) -> tuple[int, ...]:
        """The largest integer weight in use of every arm, in steps of 2⁻²⁴."""
        return tuple(arm.used.largest for arm in self.arms)

    def of(self, block: Block, base: Floats | None) -> Floats:
        """Return the weight of every row in its arm, shape (m,); 0 where it carries none."""
        weights = np.zeros(block.arm.size)
        for arm in self.arms:
            found = _ArmRows.of(self.design, block, base, arm.problem)
            weights[found.rows] = arm.of(found)
        return weights

    def steps(self, block: Block, base: Floats | None) -> Iterator[tuple[Indices, Indices]]:
        """Yield of every arm the rows that carry weight and their integer weights.

        None exceeds ``largest``, which was found in another pass: sensitivities rest on it, so that
        they hold whatever a second evaluation of the same weights rounds differently.
        """
        for arm in self.arms:
            found = _ArmRows.of(self.design, block, base, arm.problem)
            yield found.rows, np.minimum(quantize_weights(arm.of(found)), arm.used.largest)


def _is_constant(problem: ArmProblem, cap: float) -> bool:
    return cap <= problem.equal_weight * (1 + 1e-9)


def weigh(
    public: MatchingStudy,
    design: Design,
    draws: Sequence[tuple[int, ...]],
    noise_variance: float,
    spread: float,
) -> PublicWeights:
    """Choose the cap of least predicted error for every draw of noise and solve on all rows.

    ``draws`` are the arms whose sums share one draw; ``noise_variance`` is that of a draw in
    squared sensitivities, ``spread`` the outcome's standard deviation as a share of its range.
    """
    chosen = []
    for arms in draws:
        points: list[CapPoint] = []
        for point in try_caps(design, arms):
            points.append(point)
            best = points.index(choose_cap(design, points, noise_variance, spread))
            # The predicted error is convex in the cap; the second rise allows for the tolerance.
            if len(points) - 1 - best >= 2:
                break
        chosen.append(points[best])
    return settle(public, design, chosen)


def choose_cap(
    design: Design, points: Sequence[CapPoint], noise_variance: float, spread: float
) -> CapPoint:
    """Return the cap of least predicted error ``V A² + (sd/B)² Q(A)/(class)``, times B²/n².

    The shares of features and of what they leave add up to one outcome variance.
    """
    whole = LINES + UNEXPLAINED + max(design.arms[arm].features.share for arm in points[0].arms)
    return min(points, key=lambda one: noise_variance * one.cap**2 + spread**2 / whole * one.loss)


def imbalance_of(problem: ArmProblem, features: Floats) -> float:
    """Return ``‖F'w − g‖²``, and what of that which leaves moved they can be expected to miss."""
    left = features - problem.target
    return float(left @ left) + (_MISSED * problem.features.evidence) ** 2 * problem.missed


def try_caps(design: Design, arms: tuple[int, ...]) -> Iterator[CapPoint]:
    """Yield solutions for caps from the loosest useful one to the tightest possible one."""
    rows = [_rows_of(design, design.arms[arm], _PATH_ROWS) for arm in arms]
    tightest = max(one.problem.equal_weight for one in rows)
    duals = [one.solve(math.inf, np.zeros(one.problem.target.size + 1)).dual for one in rows]
    loosest = max(one.largest(dual) for one, dual in zip(rows, duals, strict=True))
    count = _CAPS if loosest > tightest * (1 + 1e-9) else 1
    for cap in np.geomspace(max(loosest, tightest), tightest, count).tolist():
        solved = [one.solve(cap, dual) for one, dual in zip(rows, duals, strict=True)]
        duals = [solution.dual for solution in solved]
        loss = sum(_loss(one.problem, found) for one, found in zip(rows, solved, strict=True))
        yield CapPoint(arms, cap, loss, tuple(solved))


@dataclass(frozen=True, slots=True)
class _RowsAtHand:
    """One arm's rows at hand; each stands for ``stands_for`` rows."""

    problem: ArmProblem
    features: Floats
    near: Floats
    units: Floats
    stands_for: float

    def solve(self, cap: float, start: Floats) -> Solution:
        """Solve on these rows; equal weights where the cap leaves no room."""
        problem = self.problem
        if _is_constant(problem, cap):
            equal, free = np.full(self.near.size, problem.equal_weight), np.zeros_like(start)
            sums = dual_sums(
                np.zeros_like(equal), self.near, self.units, equal, equal @ self.features
            )
            return Solution(free, sums.scaled(self.stands_for))
        return maximize_dual(
            self.features, self.near, self.units, cap, problem.target, problem.total, start,
            stands_for=self.stands_for,
            tolerance=TOLERANCE if self.stands_for == 1 else 100 * TOLERANCE,
        )  # fmt: skip

    def largest(self, dual: Floats) -> float:
        """Return the largest weight without a cap."""
        price = self.features @ dual[:-1] + dual[-1]
        return float(weights_at(price, self.near, self.units, math.inf).max(initial=0.0))


def _loss(problem: ArmProblem, found: Solution) -> float:
    """Return ``r Σ (w − u)²/s + ‖F'w − g‖²``: what the weights minimise.

    Of equal weights u the first term is ``r‖w‖²`` up to a number that no cap changes: what
    sampling costs where nothing explains the outcome.
    """
    sums, left = found.sums, found.sums.features - problem.target
    prices = float(found.dual[:-1] @ sums.features) + float(found.dual[-1]) * sums.weight
    return 2 * (sums.value - prices) + float(left @ left)


def _rows_of(design: Design, problem: ArmProblem, most: int) -> _RowsAtHand:
    """Return the features of at most so many rows of an arm, scattered over the sample."""
    sample = design.sample
    rows = np.flatnonzero((sample.arm == problem.code) & sample.carries)
    if rows.size > most:
        rows = np.sort(rows[np.argsort(scatter(0, rows.size), kind="stable")[:most]])
    features = problem.features.map(sample.covariates[rows])
    near = problem.level * sample.near[rows]
    stands_for = problem.members / max(rows.size, 1)
    # Of some rows the weights to stay near to add up to as much as those of all.
    near *= problem.total / max(float(near.sum()) * stands_for, 1e-300)
    return _RowsAtHand(problem, features, near, sample.units[rows], stands_for)


def settle(public: MatchingStudy, design: Design, chosen: Sequence[CapPoint]) -> PublicWeights:
    """Solve every arm on all rows under its cap, repair the sums, and add up what is in use."""
    caps = {arm: point.cap for point in chosen for arm in point.arms}
    starts = {
        arm: solution.dual
        for point in chosen
        for arm, solution in zip(point.arms, point.solutions, strict=True)
    }
    free = [problem for problem in design.arms if not _is_constant(problem, caps[problem.code])]
    solved = _solve(public, design, free, caps, starts)
    nothing = WeightSums(0.0, 0, np.zeros(0), np.zeros(0))
    arms = []
    for problem in design.arms:
        cap, lift, cut = caps[problem.code], 0.0, 0.0
        if problem.code not in solved:  # equal weights
            arms.append(
                ArmWeights(problem, problem.equal_weight, starts[problem.code], 1.0, 0.0, nothing)
            )
            continue
        weight = solved[problem.code].sums.weight
        gap, room = problem.total - weight, problem.members * cap - weight
        if gap > 0 and room > 0:
            lift = min(gap / room, 1.0)
        elif gap < 0:
            cut = -gap / weight
        arms.append(ArmWeights(problem, cap, solved[problem.code].dual, lift, cut, nothing))

    def kernel(block: Block, base: Floats | None) -> Sums[WeightSums]:
        return Sums(
            tuple(arm.add_up(_ArmRows.of(design, block, base, arm.problem)) for arm in arms)
        )

    found = fold_with_base(public, design.base, kernel).of
    return PublicWeights(
        design, tuple(replace(arm, used=sums) for arm, sums in zip(arms, found, strict=True))
    )


def _solve(
    public: MatchingStudy,
    design: Design,
    problems: Sequence[ArmProblem],
    caps: dict[int, float],
    starts: dict[int, Floats],
) -> dict[int, Solution]:
    """Solve arms, on the sample where it holds all rows, else by passes that they share."""
    if design.is_complete:
        return {
            problem.code: _rows_of(design, problem, problem.members).solve(
                caps[problem.code], starts[problem.code]
            )
            for problem in problems
        }

    def kernel(block: Block, base: Floats | None, points: dict[int, Floats]) -> Sums[DualSums]:
        found = []
        for code, dual in points.items():
            rows = _ArmRows.of(design, block, base, design.arms[code])
            price, weights, sums = design.arms[code].features.weigh(
                block.covariates, rows.rows, dual, rows.near, rows.units, caps[code]
            )
            found.append(dual_sums(price, rows.near, rows.units, weights, sums))
        return Sums(tuple(found))

    def answer(points: dict[int, Floats]) -> dict[int, DualSums]:
        found = fold_with_base(public, design.base, lambda block, base: kernel(block, base, points))
        return dict(zip(points, found.of, strict=True))

    def ascent(problem: ArmProblem) -> Ascent:
        """Ascend on all rows with second derivatives that come from some of them."""
        cap, some = caps[problem.code], _rows_of(design, problem, _CURVED_ROWS)
        return ascend(
            problem.target, problem.total, some.solve(cap, starts[problem.code]).dual,
            lambda dual: some.stands_for * curvature_of(
                some.features, some.near, some.units, dual, cap
            ),
            _PASS_TOLERANCE, learning=True,
        )  # fmt: skip

    return climb({problem.code: ascent(problem) for problem in problems}, answer)
