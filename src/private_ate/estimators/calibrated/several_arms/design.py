"""One arm's design: what it balances, its path of caps and the cap that suits ε.

Arms do not touch each other once the score is fitted. Each has its own target and its own path of
caps from the loosest useful one down to equal weights. An arm's noise depends on its own cap
alone, so the cap of least predicted error for the arm's mean is best for every set of contrasts.
Everything is computed from public columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from private_ate.arrays import Floats, Indices
from private_ate.estimators.calibrated.cap_path import (
    fold_with_base,
    in_runs,
    predicted_error,
    scatter,
    stop_after_minimum,
)
from private_ate.estimators.calibrated.features import UNEXPLAINED
from private_ate.estimators.calibrated.several_arms.features import ArmFeatures, FeatureSet
from private_ate.estimators.calibrated.solver import (
    TOLERANCE,
    ArmProblem,
    DualQuestion,
    DualSums,
    Solution,
    dual_sums,
    maximize_dual,
    weighted_sums,
    weights_at,
)
from private_ate.study import ArmSizes, Block, MatchingStudy, RowWeights

__all__ = ["ArmDesign", "ArmPath", "CapPrice", "Designs", "members_of", "pose_designs", "walk_arms"]

_CAPS: Final = 16
_PATH_ROWS: Final = 20_000  # rows of an arm on which its path is walked


@dataclass(frozen=True, slots=True)
class ArmDesign:
    """The public inputs of one arm.

    Attributes
    ----------
    features : ArmFeatures
        What is balanced.
    problem : ArmProblem
        The target of the features' weighted sums, and the total weight n.
    members : int
        Rows that carry weight: all of the arm, or those that publicly have an outcome.
    fixed : bool
        Whether weights are equal by the estimand: effects among this arm's units.
    """

    features: ArmFeatures
    problem: ArmProblem
    members: int
    fixed: bool

    @property
    def equal_weight(self) -> float:
        """The weight of every unit in a plain mean."""
        return self.problem.total / self.members

    def is_constant(self, cap: float) -> bool:
        """Whether all weights are n/m: by the estimand, or as the cap leaves no room."""
        return self.fixed or cap <= self.equal_weight * (1 + 1e-12)


@dataclass(frozen=True, slots=True)
class Designs:
    """All arms in the order of their codes, and weights to stay close to; None for equal ones."""

    arms: tuple[ArmDesign, ...]
    base: RowWeights | None
    features: FeatureSet
    rows: int


@dataclass(frozen=True, slots=True)
class CapPrice:
    """One cap of one arm, the weighted loss of balance under it (Q), and the solution."""

    cap: float
    loss: float
    solution: Solution = field(repr=False)


@dataclass(frozen=True, slots=True)
class ArmPath:
    """One arm's caps from loose to tight, as far as the walk went."""

    design: ArmDesign
    points: tuple[CapPrice, ...]
    is_complete: bool  # whether it was walked on all rows of the arm

    def choose(self, noise_variance: float, outcome_share: float) -> CapPrice:
        """Return the cap of least predicted error ``v A² + (sd/B)² Q(A)`` (times B²/n²)."""
        return min(
            self.points, key=lambda point: predicted_error(point, noise_variance, outcome_share)
        )


def members_of(block: Block, arm: int) -> Indices:
    """Return the rows of a public block that carry weight in an arm."""
    inside = block.arm == arm
    if block.observed is not None:
        inside &= block.observed
    return np.flatnonzero(inside)


def pose_designs(
    public: MatchingStudy,
    features: FeatureSet,
    sizes: ArmSizes,
    *,
    among: int | None = None,
    base: RowWeights | None = None,
    observed: ArmSizes | None = None,
) -> Designs:
    """Settle each arm's target: everybody, one arm's units, or what base weights add up to.

    Where some rows are known to have no outcome, ``observed`` counts the others: they carry all
    the weight and are balanced with everybody.
    """
    total = float(sizes.total)
    members = sizes if observed is None else observed
    targets = [np.zeros(arm.size) for arm in features.arms]
    if among is not None or base is not None:
        sums = fold_with_base(public, base, in_runs(_target_kernel(features, among)))
        share = 1.0 if among is None else total / sizes[among]
        targets = [share * values for values in sums.values]
    arms = tuple(
        ArmDesign(
            each, ArmProblem(targets[arm], total), members[arm],
            fixed=arm == among and members[arm] == sizes[arm],
        )
        for arm, each in enumerate(features.arms)
    )  # fmt: skip
    return Designs(arms, base, features, sizes.total)


def walk_arms(
    public: MatchingStudy, designs: Designs, noise_variance: float, outcome_share: float
) -> tuple[ArmPath, ...]:
    """Walk every arm's path until its predicted error has risen twice, on a part of its rows."""
    sample = fold_with_base(public, designs.base, in_runs(_sample_kernel(designs)))
    keep_on = stop_after_minimum(noise_variance, outcome_share)
    paths = []
    for arm, design in enumerate(designs.arms):
        gathered = np.concatenate(sample.features[arm])
        near = np.full(gathered.shape[0], design.equal_weight)
        if designs.base is not None:
            near = np.concatenate(sample.base[arm])
        rows = _ArmRows(gathered, near, design.members / gathered.shape[0])
        is_complete = design.members <= _PATH_ROWS
        # On a sample of the rows the path only ranks caps; the chosen one is solved again on all.
        tolerance = TOLERANCE if is_complete else 100 * TOLERANCE
        walk = _Walk(design, rows, tolerance, tracks=designs.base is not None)
        paths.append(ArmPath(design, tuple(walk.points(keep_on)), is_complete))
    return tuple(paths)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of features, one array per arm; adds up over blocks."""

    values: tuple[Floats, ...]

    def __add__(self, other: _Sums) -> _Sums:
        pairs = zip(self.values, other.values, strict=True)
        return _Sums(tuple(one + another for one, another in pairs))


@dataclass(frozen=True, slots=True)
class _Sample:
    """Feature rows and base weights gathered from each arm."""

    features: tuple[tuple[Floats, ...], ...]
    base: tuple[tuple[Floats, ...], ...]

    def __add__(self, other: _Sample) -> _Sample:
        return _Sample(
            tuple(map(tuple.__add__, self.features, other.features)),
            tuple(map(tuple.__add__, self.base, other.base)),
        )


@dataclass(frozen=True, slots=True)
class _ArmRows:
    """One arm's rows on which the path is walked; each stands for ``scale`` rows."""

    features: Floats
    base: Floats
    scale: float


@dataclass(frozen=True, slots=True)
class _Walk:
    """A walk along one arm's caps; ``tracks`` if weights stay close to those of matching."""

    design: ArmDesign
    rows: _ArmRows
    tolerance: float
    tracks: bool

    def points(self, keep_on: Callable[[list[CapPrice]], bool]) -> list[CapPrice]:
        """Solve for caps from loose to tight, each from the last solution."""
        dual = np.zeros(self.design.features.size + 1)
        tightest = loosest = self.design.equal_weight
        if not self.design.fixed:
            weights = self.rows.base
            if not self.tracks:
                dual = self._solve(math.inf, dual).dual
                weights = self._weights(dual, math.inf)
            loosest = max(loosest, float(weights.max()))
        points: list[CapPrice] = []
        for cap in np.geomspace(loosest, tightest, _CAPS if loosest > tightest else 1).tolist():
            solution = self._solve(cap, dual)
            dual = solution.dual
            points.append(CapPrice(cap, self._loss(solution, cap), solution))
            if not keep_on(points):
                break
        return points

    def _solve(self, cap: float, start: Floats) -> Solution:
        rows, design = self.rows, self.design
        if design.is_constant(cap):
            constant = np.full(rows.base.size, design.equal_weight)
            none = np.zeros_like(constant)
            sums = weighted_sums(rows.features, rows.base, none, constant, none > 0)
            return Solution(start, sums.scaled(rows.scale))

        def evaluate(question: DualQuestion) -> DualSums:
            sums = dual_sums(rows.features, rows.base, question.dual, cap, curved=question.curved)
            return sums.scaled(rows.scale)

        return maximize_dual(evaluate, design.problem, start, self.tolerance)

    def _weights(self, dual: Floats, cap: float) -> Floats:
        if self.design.is_constant(cap):
            return np.full(self.rows.base.size, self.design.equal_weight)
        return weights_at(self.rows.features @ dual[:-1] + dual[-1], self.rows.base, cap)

    def _loss(self, solution: Solution, cap: float) -> float:
        """Return ``r‖w‖²`` (or ``r‖w − u‖²`` when following base weights) plus ``‖Fᵀw − g‖²``."""
        squares = solution.sums.squares
        if self.tracks:
            moved = self._weights(solution.dual, cap) - self.rows.base
            squares = self.rows.scale * float(moved @ moved)
        imbalance = solution.sums.features - self.design.problem.target
        return UNEXPLAINED * squares + float(imbalance @ imbalance)


def _target_kernel(
    features: FeatureSet, among: int | None
) -> Callable[[Block, Floats | None], _Sums]:
    """Add up every arm's features over one arm's rows, or over its own by their base weights."""

    def kernel(block: Block, base: Floats | None) -> _Sums:
        sums = []
        for each in features.arms:
            rows = np.flatnonzero(block.arm == (each.arm if among is None else among))
            values = each.map(block.covariates[rows])
            sums.append(values.sum(axis=0) if base is None else base[rows] @ values)
        return _Sums(tuple(sums))

    return kernel


def _sample_kernel(designs: Designs) -> Callable[[Block, Floats | None], _Sample]:
    """Gather a share of each arm; a row's place in the study decides, however rows are blocked."""
    shares = [_PATH_ROWS / design.members for design in designs.arms]

    def kernel(block: Block, base: Floats | None) -> _Sample:
        drawn = scatter(block.first, block.arm.size)
        features, bases = [], []
        for arm, design in enumerate(designs.arms):
            rows = members_of(block, arm)
            rows = rows[drawn[rows] < shares[arm]]
            features.append((design.features.map(block.covariates[rows]),))
            bases.append(() if base is None else (base[rows],))
        return _Sample(tuple(features), tuple(bases))

    return kernel
