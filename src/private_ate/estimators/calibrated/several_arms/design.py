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
from private_ate.estimators.calibrated.sampled_units import carries_weight, weights_of
from private_ate.estimators.calibrated.several_arms.features import ArmFeatures, FeatureSet
from private_ate.estimators.calibrated.several_arms.sampled import SampledArm, sampled_arms
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
    sampled : SampledArm or None
        Sampling weights that the arm's stay close to; None for equal ones.
    """

    features: ArmFeatures
    problem: ArmProblem
    members: int
    fixed: bool
    sampled: SampledArm | None = None

    @property
    def equal_weight(self) -> float:
        """The weight of every unit in a plain mean."""
        return self.problem.total / self.members

    def units(self, block: Block, rows: Indices) -> Floats | None:
        """Return some rows' sampling weights over the mean; None without any."""
        return None if self.sampled is None else self.sampled.of(block, rows)

    def near(self, rows: int, units: Floats | None) -> Floats:
        """Return what the weights of some rows stay close to, without base weights."""
        if self.sampled is None or units is None:
            return np.full(rows, self.equal_weight)
        return np.asarray(self.sampled.level * units)

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
    for mask in (block.observed, carries_weight(block)):
        if mask is not None:
            inside &= mask
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
    the weight and are balanced with everybody. Sampling weights multiply targets and units; all
    arms are then calibrated, as a cap may bind in any.
    """
    total = float(sizes.total)
    members = sizes if observed is None else observed
    sampled = sampled_arms(public, members_of)
    if sampled is not None:
        return _pose_sampled(public, features, members, sampled, among=among)
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


def _pose_sampled(
    public: MatchingStudy,
    features: FeatureSet,
    members: ArmSizes,
    sampled: tuple[SampledArm, ...],
    *,
    among: int | None,
) -> Designs:
    """Settle each arm's target by sampling weights; ``members`` are the rows that have any."""
    sums = fold_with_base(public, None, in_runs(_sampled_kernel(features, among)))
    total = float(public.size)
    arms = tuple(
        ArmDesign(
            each, ArmProblem(total * values / sums.values[-1], total), members[arm],
            fixed=False, sampled=sampled[arm],
        )
        for arm, (each, values) in enumerate(zip(features.arms, sums.values, strict=False))
    )  # fmt: skip
    return Designs(arms, None, features, public.size)


def walk_arms(
    public: MatchingStudy, designs: Designs, noise_variance: float, outcome_share: float
) -> tuple[ArmPath, ...]:
    """Walk every arm's path until its predicted error has risen twice, on a part of its rows."""
    sample = fold_with_base(public, designs.base, in_runs(_sample_kernel(designs)))
    keep_on = stop_after_minimum(noise_variance, outcome_share)
    paths = []
    for arm, design in enumerate(designs.arms):
        gathered = np.concatenate(sample.features[arm])
        units = None if design.sampled is None else np.concatenate(sample.units[arm])
        near = design.near(gathered.shape[0], units)
        if designs.base is not None:
            near = np.concatenate(sample.base[arm])
        rows = _ArmRows(gathered, near, design.members / gathered.shape[0], units)
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
    """Feature rows, base weights and sampling weights gathered from each arm."""

    features: tuple[tuple[Floats, ...], ...]
    base: tuple[tuple[Floats, ...], ...]
    units: tuple[tuple[Floats, ...], ...]

    def __add__(self, other: _Sample) -> _Sample:
        return _Sample(
            tuple(map(tuple.__add__, self.features, other.features)),
            tuple(map(tuple.__add__, self.base, other.base)),
            tuple(map(tuple.__add__, self.units, other.units)),
        )


@dataclass(frozen=True, slots=True)
class _ArmRows:
    """One arm's rows on which the path is walked; each stands for ``scale`` rows."""

    features: Floats
    base: Floats
    scale: float
    units: Floats | None = None


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
            sums = weighted_sums(rows.features, rows.base, none, constant, none > 0, rows.units)
            return Solution(start, sums.scaled(rows.scale))

        def evaluate(question: DualQuestion) -> DualSums:
            sums = dual_sums(
                rows.features, rows.base, question.dual, cap,
                curved=question.curved, units=rows.units,
            )  # fmt: skip
            return sums.scaled(rows.scale)

        return maximize_dual(evaluate, design.problem, start, self.tolerance)

    def _weights(self, dual: Floats, cap: float) -> Floats:
        if self.design.is_constant(cap):
            return np.full(self.rows.base.size, self.design.equal_weight)
        price = self.rows.features @ dual[:-1] + dual[-1]
        return weights_at(price, self.rows.base, cap, self.rows.units)

    def _loss(self, solution: Solution, cap: float) -> float:
        """Return ``r‖w‖²`` (or ``r‖w − u‖²`` when following other weights) plus ``‖Fᵀw − g‖²``.

        Distances from sampling weights s are ``Σ (w − u)²/s``, as in what the weights minimise.
        """
        squares, units = solution.sums.squares, self.rows.units
        if self.tracks or units is not None:
            moved = (self._weights(solution.dual, cap) - self.rows.base) ** 2
            squares = self.rows.scale * float((moved if units is None else moved / units).sum())
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


def _sampled_kernel(
    features: FeatureSet, among: int | None
) -> Callable[[Block, Floats | None], _Sums]:
    """Add up every arm's features by sampling weights, over all rows or one arm's; then weights."""

    def kernel(block: Block, _: Floats | None) -> _Sums:
        weights = weights_of(block)
        if among is not None:
            weights = weights * (block.arm == among)
        sums = [weights @ each.map(block.covariates) for each in features.arms]
        return _Sums((*sums, np.array(weights.sum())))

    return kernel


def _sample_kernel(designs: Designs) -> Callable[[Block, Floats | None], _Sample]:
    """Gather a share of each arm; a row's place in the study decides, however rows are blocked."""
    shares = [_PATH_ROWS / design.members for design in designs.arms]

    def kernel(block: Block, base: Floats | None) -> _Sample:
        drawn = scatter(block.first, block.arm.size)
        features, bases, counts = [], [], []
        for arm, design in enumerate(designs.arms):
            rows = members_of(block, arm)
            rows = rows[drawn[rows] < shares[arm]]
            features.append((design.features.map(block.covariates[rows]),))
            bases.append(() if base is None else (base[rows],))
            units = design.units(block, rows)
            counts.append(() if units is None else (units,))
        return _Sample(tuple(features), tuple(bases), tuple(counts))

    return kernel
