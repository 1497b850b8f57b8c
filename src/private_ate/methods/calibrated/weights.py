"""Capped weights of every arm: caps tried on some rows, the chosen one solved for on all.

Arms whose sums share a draw of noise share a cap: of two arms one contrast is released, whose
noise follows the largest weight of either; arms that are released apart have caps of their own.
Everything is computed from public columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Indices
from private_ate.methods.calibrated.design import (
    ArmProblem,
    Design,
    Sums,
    fold_with_base,
    members_of,
)
from private_ate.methods.calibrated.features import LINES, UNEXPLAINED, weights_at
from private_ate.methods.calibrated.solver import (
    TOLERANCE,
    DualAscent,
    DualSums,
    Solution,
    curvature_of,
    dual_sums,
    maximize_dual,
)
from private_ate.models.folds import scatter
from private_ate.privacy.quantization import quantize_weights
from private_ate.study import Block, MatchingStudy

__all__ = [
    "ArmWeights", "CapPoint", "PublicWeights", "WeightedRows", "choose_cap", "expected_misses",
    "settle", "try_caps", "weigh",
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
class WeightedRows:
    """Rows of a block that carry weight in an arm, their weights and, if asked, ``F'w``."""

    rows: Indices
    weights: Floats
    sums: Floats


@dataclass(frozen=True, slots=True)
class ArmWeights:
    """One arm's weights as a function of a block of rows, and what they add up to.

    Attributes
    ----------
    problem : ArmProblem
        What was solved.
    cap : float
        The limit on the largest weight.
    dual : array, shape (p + 1,)
        The solution.
    lift, cut : float
        They repair the sum by moving every weight in proportion to its room below the cap or above
        zero, so that weights add up to n.
    sums : WeightSums
        What the weights in use add up to.
    """

    problem: ArmProblem
    cap: float
    dual: Floats = field(repr=False)
    lift: float = 0.0
    cut: float = 0.0
    sums: WeightSums | None = None

    @property
    def is_constant(self) -> bool:
        """Whether all weights are n/m, as the cap leaves no room."""
        return self.cap <= self.problem.equal_weight * (1 + 1e-9)

    @property
    def used(self) -> WeightSums:
        """What the weights in use add up to."""
        if self.sums is None:
            msg = "these weights have not been added up yet"
            raise TypeError(msg)
        return self.sums

    @property
    def effective(self) -> float:
        """The effective sample size of the arm."""
        return self.problem.total**2 / self.used.squares

    @property
    def imbalance(self) -> float:
        """``‖F'w − g‖²``, and what non-linear terms can be expected to miss."""
        left = self.used.features - self.problem.target
        return float(left @ left) + expected_misses(self.problem)

    def of(
        self, block: Block, near: Floats, units: Floats, *, adding: bool = False
    ) -> WeightedRows:
        """Return the rows that carry weight in the arm and their weights, from 0 to the cap."""
        rows = np.flatnonzero((block.arm == self.problem.code) & members_of(block))
        features = self.problem.features
        if self.is_constant:
            equal = np.full(rows.size, self.problem.equal_weight)
            sums = features.add_up(block.covariates, rows, equal) if adding else np.zeros(0)
            return WeightedRows(rows, equal, sums)
        found = features.weigh(
            block.covariates, rows, self.dual, self.problem.level * near[rows], units[rows],
            self.cap, adding=adding, lift=self.lift, cut=self.cut,
        )  # fmt: skip
        return WeightedRows(rows, found.weights, found.sums)


@dataclass(frozen=True, slots=True)
class WeightSums:
    """What weights in use add up to over an arm's rows.

    ``largest`` is the largest integer weight, ``features`` is ``F'w``, shape (p,); ``covariates``
    is ``Σ w x``, shape (d,).
    """

    squares: float
    largest: int
    features: Floats = field(repr=False)
    covariates: Floats = field(repr=False)

    def __add__(self, other: WeightSums) -> WeightSums:
        return WeightSums(
            self.squares + other.squares,
            max(self.largest, other.largest),
            self.features + other.features,
            self.covariates + other.covariates,
        )


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
        near, units = self.design.near(block, base), self.design.units(block)
        weights = np.zeros(block.arm.size)
        for arm in self.arms:
            held = arm.of(block, near, units)
            weights[held.rows] = held.weights
        return weights

    def steps(self, block: Block, base: Floats | None) -> Iterator[tuple[Indices, Indices]]:
        """Yield of every arm the rows that carry weight and their integer weights.

        None exceeds ``largest``, which was found in another pass: sensitivities rest on it, so that
        they hold whatever a second evaluation of the same weights rounds differently.
        """
        near, units = self.design.near(block, base), self.design.units(block)
        for arm in self.arms:
            held = arm.of(block, near, units)
            yield held.rows, np.minimum(quantize_weights(held.weights), arm.used.largest)


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


def expected_misses(problem: ArmProblem) -> float:
    """Return what leaves can be expected to miss of what they moved, by the evidence for them."""
    return (_MISSED * problem.features.evidence) ** 2 * problem.missed


def try_caps(design: Design, arms: tuple[int, ...]) -> Iterator[CapPoint]:
    """Yield solutions for caps from the loosest useful one to the tightest possible one."""
    rows = [_rows_of(design, design.arms[arm], _PATH_ROWS) for arm in arms]
    tightest = max(one.problem.equal_weight for one in rows)
    starts = [one.solve(math.inf, np.zeros(one.problem.target.size + 1)) for one in rows]
    loosest = max(one.largest(start.dual) for one, start in zip(rows, starts, strict=True))
    duals = [start.dual for start in starts]
    count = _CAPS if loosest > tightest * (1 + 1e-9) else 1
    for cap in np.geomspace(max(loosest, tightest), tightest, count):
        solved = [one.solve(float(cap), dual) for one, dual in zip(rows, duals, strict=True)]
        duals = [solution.dual for solution in solved]
        loss = sum(
            one.loss(solution, float(cap)) for one, solution in zip(rows, solved, strict=True)
        )
        yield CapPoint(arms, float(cap), loss, tuple(solved))


@dataclass(frozen=True, slots=True)
class _ArmRows:
    """One arm's rows at hand; each stands for ``stands_for`` rows."""

    problem: ArmProblem
    features: Floats
    near: Floats
    units: Floats
    stands_for: float

    def solve(self, cap: float, start: Floats) -> Solution:
        """Solve on these rows; equal weights where the cap leaves no room."""
        problem = self.problem
        if cap <= problem.equal_weight * (1 + 1e-9):
            equal = np.full(self.near.size, problem.equal_weight)
            none = np.zeros_like(equal)
            sums = dual_sums(none, equal, self.units, equal, equal @ self.features)
            return Solution(start, sums.scaled(self.stands_for))
        return maximize_dual(
            self.features, self.near, self.units, cap, problem.target, problem.total, start,
            stands_for=self.stands_for,
            tolerance=TOLERANCE if self.stands_for == 1 else 100 * TOLERANCE,
        )  # fmt: skip

    def largest(self, dual: Floats) -> float:
        """Return the largest weight without a cap."""
        price = self.features @ dual[:-1] + dual[-1]
        return float(weights_at(price, self.near, self.units, math.inf).max(initial=0.0))

    def loss(self, solution: Solution, cap: float) -> float:
        """Return ``r Σ (w − u)²/s + ‖F'w − g‖²``: what the weights minimise.

        Of equal weights u the first term is ``r‖w‖²`` up to a number that no cap changes: what
        sampling costs where nothing explains the outcome.
        """
        left = solution.sums.features - self.problem.target
        price = self.features @ solution.dual[:-1] + solution.dual[-1]
        weights = weights_at(price, self.near, self.units, cap)
        if cap <= self.problem.equal_weight * (1 + 1e-9):
            weights = np.full(self.near.size, self.problem.equal_weight)
        moved = self.stands_for * float(((weights - self.near) ** 2 / self.units).sum())
        return UNEXPLAINED * moved + float(left @ left)


def _rows_of(design: Design, problem: ArmProblem, most: int) -> _ArmRows:
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
    return _ArmRows(problem, features, near, sample.units[rows], stands_for)


def settle(public: MatchingStudy, design: Design, chosen: Sequence[CapPoint]) -> PublicWeights:
    """Solve every arm on all rows under its cap, repair the sums, and add up what is in use."""
    caps, starts = {}, {}
    for point in chosen:
        for arm, solution in zip(point.arms, point.solutions, strict=True):
            caps[arm], starts[arm] = point.cap, solution.dual
    solved = _solve(public, design, caps, starts)
    arms = []
    for problem, solution in zip(design.arms, solved, strict=True):
        cap, weight = caps[problem.code], solution.sums.weight
        gap, room = problem.total - weight, problem.members * cap - weight
        lift = min(gap / room, 1.0) if gap > 0 and room > 0 else 0.0
        cut = -gap / weight if gap < 0 else 0.0
        arms.append(ArmWeights(problem, cap, solution.dual, lift, cut))

    def kernel(block: Block, base: Floats | None) -> Sums[WeightSums]:
        near, units = design.near(block, base), design.units(block)
        return Sums(tuple(_add_up(block, arm.of(block, near, units, adding=True)) for arm in arms))

    found = fold_with_base(public, design.base, kernel).of
    return PublicWeights(
        design, tuple(replace(arm, sums=sums) for arm, sums in zip(arms, found, strict=True))
    )


def _add_up(block: Block, held: WeightedRows) -> WeightSums:
    weights = np.zeros(block.arm.size)
    weights[held.rows] = held.weights
    return WeightSums(
        float(held.weights @ held.weights),
        int(quantize_weights(held.weights).max(initial=0)),
        held.sums,
        weights @ block.covariates,
    )


def _solve(
    public: MatchingStudy, design: Design, caps: dict[int, float], starts: dict[int, Floats]
) -> list[Solution]:
    """Solve all arms, on the sample where it holds all rows, else by passes that they share."""
    if design.is_complete:
        return [
            _rows_of(design, problem, problem.members).solve(
                caps[problem.code], starts[problem.code]
            )
            for problem in design.arms
        ]
    ascents = [_ascent_of(design, problem, caps[problem.code], starts[problem.code])
              for problem in design.arms]  # fmt: skip
    while any(ascent.point is not None for ascent in ascents):
        asked = [
            (problem, ascent.point)
            for problem, ascent in zip(design.arms, ascents, strict=True)
            if ascent.point is not None
        ]
        kernel = _dual_kernel(design, asked, caps)
        answers = iter(fold_with_base(public, design.base, kernel).of)
        for ascent in ascents:
            if ascent.point is not None:
                ascent.take(next(answers))
    return [ascent.solution for ascent in ascents]


def _ascent_of(design: Design, problem: ArmProblem, cap: float, start: Floats) -> DualAscent:
    """Return an ascent on all rows whose second derivatives come from some of them."""
    some = _rows_of(design, problem, _CURVED_ROWS)
    start = some.solve(cap, start).dual
    # Equal weights need one pass, for their sums.
    equal = cap <= problem.equal_weight * (1 + 1e-9)
    return DualAscent(
        problem.target, problem.total, start,
        lambda dual: some.stands_for * curvature_of(
            some.features, some.near, some.units, dual, cap
        ),
        math.inf if equal else _PASS_TOLERANCE,
        learning=True,
    )  # fmt: skip


def _dual_kernel(
    design: Design, asked: list[tuple[ArmProblem, Floats]], caps: dict[int, float]
) -> Callable[[Block, Floats | None], Sums[DualSums]]:
    def answer(block: Block, near: Floats, problem: ArmProblem, dual: Floats) -> DualSums:
        rows = np.flatnonzero((block.arm == problem.code) & members_of(block))
        own, units = problem.level * near[rows], design.units(block)[rows]
        cap = caps[problem.code]
        if cap <= problem.equal_weight * (1 + 1e-9):
            equal = np.full(rows.size, problem.equal_weight)
            sums = problem.features.add_up(block.covariates, rows, equal)
            return dual_sums(np.zeros(rows.size), own, units, equal, sums)
        found = problem.features.weigh(block.covariates, rows, dual, own, units, cap, adding=True)
        return dual_sums(found.price, own, units, found.weights, found.sums)

    def kernel(block: Block, base: Floats | None) -> Sums[DualSums]:
        near = design.near(block, base)
        return Sums(tuple(answer(block, near, *one) for one in asked))

    return kernel
