"""The path of caps: how much an estimate moves for every limit on the largest weight.

The public phase of the calibrated estimator. It walks from the loosest useful cap to the tightest
possible one, keeps what each would cost in balance, and picks the cap that makes noise and
imbalance together least for a given ε. Everything is computed from public columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.estimators.calibration import (
    ArmProblem,
    DualSums,
    dual_sums,
    maximize_dual,
    weights_at,
)
from private_ate.estimators.features import UNEXPLAINED, FeatureMap
from private_ate.estimators.request import Estimand
from private_ate.study import ArmSizes, Block, MatchingStudy, RowWeights, Summable

__all__ = ["CapPath", "CapPoint", "CappedWeights", "settle_weights", "walk_caps"]

S = TypeVar("S", bound=Summable)
Floats = npt.NDArray[np.float64]

_CAPS: Final = 16
_PATH_ROWS: Final = 20_000  # rows of an arm on which the path is walked
_TREATED, _CONTROL = 0, 1


@dataclass(frozen=True, slots=True)
class CapPoint:
    """One cap, the weighted loss of balance under it (Q), and the dual solutions of both arms."""

    cap: float
    loss: float
    duals: tuple[Floats, Floats] = field(repr=False)
    curvatures: tuple[Floats, Floats] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CapPath:
    """All caps from loose to tight, and what is needed to compute weights under one of them."""

    features: FeatureMap
    arms: ArmSizes
    problems: tuple[ArmProblem, ArmProblem]
    fixed: tuple[bool, bool]  # arms whose weights are constant by the estimand
    base: RowWeights | None  # weights to stay close to; None for equal weights
    points: tuple[CapPoint, ...]
    is_complete: bool  # whether the path was walked on all rows

    def choose(self, noise_variance: float, outcome_share: float) -> CapPoint:
        """Return the cap of least predicted error ``v A² + (sd/B)² Q(A)`` (times B²/n²)."""
        return min(
            self.points,
            key=lambda point: noise_variance * point.cap**2 + outcome_share**2 * point.loss,
        )

    def equal_weights(self) -> tuple[float, float]:
        """Return the weights of a plain difference in means."""
        return self.arms.total / self.arms.treated, self.arms.total / self.arms.control


@dataclass(frozen=True, slots=True)
class CappedWeights:
    """Weights under one cap as a function of a block of rows; the sums are exact."""

    path: CapPath = field(repr=False)
    cap: float
    duals: tuple[Floats, Floats] = field(repr=False)
    lifts: tuple[float, float]
    cuts: tuple[float, float]

    def of(self, block: Block, base: Floats | None) -> Floats:
        """Return the weights of a block's rows, all positive, shape (m,)."""
        features = self.path.features.map(block.covariates)
        weights = np.empty(block.treatment.size)
        for arm, rows in enumerate((block.treatment, ~block.treatment)):
            weights[rows] = self._of_arm(arm, features[rows], None if base is None else base[rows])
        return weights

    def _of_arm(self, arm: int, features: Floats, base: Floats | None) -> Floats:
        if is_constant(self.path, arm, self.cap):
            return np.full(features.shape[0], self.path.equal_weights()[arm])
        start = _base_of(self.path, arm, features, base)
        weights = weights_at(features, start, self.duals[arm], self.cap)
        weights += self.lifts[arm] * (self.cap - weights)
        weights *= 1.0 - self.cuts[arm]
        return np.clip(weights, 0.0, self.cap)


@dataclass(frozen=True, slots=True)
class _Totals:
    """Sums of features and base weights in either arm, shapes (2, p) and (2,)."""

    features: Floats
    weighted: Floats

    def __add__(self, other: _Totals) -> _Totals:
        return _Totals(self.features + other.features, self.weighted + other.weighted)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Feature rows and base weights gathered from either arm."""

    features: tuple[tuple[Floats, ...], tuple[Floats, ...]]
    base: tuple[tuple[Floats, ...], tuple[Floats, ...]]

    def __add__(self, other: _Sample) -> _Sample:
        return _Sample(
            (self.features[0] + other.features[0], self.features[1] + other.features[1]),
            (self.base[0] + other.base[0], self.base[1] + other.base[1]),
        )


@dataclass(frozen=True, slots=True)
class _Room:
    """Sums of weights and of their room below the cap, per arm, shape (2,)."""

    weight: Floats
    room: Floats

    def __add__(self, other: _Room) -> _Room:
        return _Room(self.weight + other.weight, self.room + other.room)


def walk_caps(
    public: MatchingStudy,
    features: FeatureMap,
    arms: ArmSizes,
    *,
    estimand: Estimand,
    base: RowWeights | None,
) -> CapPath:
    """Solve for every cap on the path, from loose to tight, each from the last solution."""
    totals = fold_with_base(public, base, _totals_kernel(features))
    problems = _problems(totals, arms, estimand, tracking=base is not None)
    fixed = (estimand == "att", estimand == "atc")
    strides = (-(-arms.treated // _PATH_ROWS), -(-arms.control // _PATH_ROWS))
    sample = fold_with_base(public, base, _sample_kernel(features, strides))
    path = CapPath(features, arms, problems, fixed, base, (), strides == (1, 1))
    rows = [np.concatenate(parts) for parts in sample.features]
    bases = [_base_of(path, arm, rows[arm], _joined(sample.base[arm])) for arm in (0, 1)]
    points = _walk(path, rows, bases)
    return CapPath(features, arms, problems, fixed, base, points, path.is_complete)


def settle_weights(public: MatchingStudy, path: CapPath, point: CapPoint) -> CappedWeights:
    """Solve on all rows at the chosen cap, then repair the sums of both arms exactly."""
    duals = point.duals
    if not path.is_complete:
        duals = (
            _solve_on_all(public, path, point, _TREATED),
            _solve_on_all(public, path, point, _CONTROL),
        )
    rough = CappedWeights(path, point.cap, duals, (0.0, 0.0), (0.0, 0.0))
    room = fold_with_base(public, path.base, _room_kernel(rough))
    lifts, cuts = [0.0, 0.0], [0.0, 0.0]
    for arm in (0, 1):
        gap = path.arms.total - room.weight[arm]
        if gap > 0 and room.room[arm] > 0:
            lifts[arm] = float(min(gap / room.room[arm], 1.0))
        elif gap < 0:
            cuts[arm] = float(-gap / room.weight[arm])
    return CappedWeights(path, point.cap, duals, (lifts[0], lifts[1]), (cuts[0], cuts[1]))


def fold_with_base(
    study: MatchingStudy, base: RowWeights | None, kernel: Callable[[Block, Floats | None], S]
) -> S:
    """Fold a kernel that also wants the base weight of each row, if there are any."""
    if base is None:
        return study.fold(lambda block: kernel(block, None), title="calibration")
    return study.fold_with(base, kernel, title="calibration")


def is_constant(path: CapPath, arm: int, cap: float) -> bool:
    """Whether an arm's weights are all n/m: by the estimand, or because the cap leaves no room."""
    return path.fixed[arm] or cap <= path.equal_weights()[arm] * (1 + 1e-12)


def _walk(path: CapPath, rows: list[Floats], bases: list[Floats]) -> tuple[CapPoint, ...]:
    scales = [path.arms.treated / rows[0].shape[0], path.arms.control / rows[1].shape[0]]
    tightest = max(path.equal_weights())
    zero = np.zeros(path.features.size + 1)
    duals = [zero, zero]
    loosest = tightest
    for arm in (0, 1):
        if path.fixed[arm]:
            continue
        if path.base is None:
            duals[arm] = _solve(path, arm, rows[arm], bases[arm], scales[arm], np.inf, zero)
            solution = weights_at(rows[arm], bases[arm], duals[arm], np.inf)
        else:
            solution = bases[arm]
        loosest = max(loosest, float(solution.max()))
    points = []
    for cap in np.geomspace(loosest, tightest, _CAPS if loosest > tightest else 1):
        duals = [
            duals[arm]
            if is_constant(path, arm, float(cap))
            else _solve(path, arm, rows[arm], bases[arm], scales[arm], float(cap), duals[arm])
            for arm in (0, 1)
        ]
        points.append(_point(path, rows, bases, scales, float(cap), duals))
    return tuple(points)


def _solve(  # one arm's rows and the state of its path
    path: CapPath, arm: int, rows: Floats, base: Floats, scale: float, cap: float, start: Floats
) -> Floats:
    def evaluate(dual: Floats, curved: bool) -> DualSums:  # noqa: FBT001  # as the solver calls it
        return _scaled(dual_sums(rows, base, dual, cap, curved=curved), scale)

    return maximize_dual(evaluate, path.problems[arm], start)


def _solve_on_all(public: MatchingStudy, path: CapPath, point: CapPoint, arm: int) -> Floats:
    if is_constant(path, arm, point.cap):
        return point.duals[arm]

    def evaluate(dual: Floats, curved: bool) -> DualSums:  # noqa: FBT001  # as the solver calls it
        def kernel(block: Block, base: Floats | None) -> DualSums:
            rows = block.treatment if arm == _TREATED else ~block.treatment
            features = path.features.map(block.covariates[rows])
            start = _base_of(path, arm, features, None if base is None else base[rows])
            return dual_sums(features, start, dual, point.cap, curved=curved)

        return fold_with_base(public, path.base, kernel)

    return maximize_dual(evaluate, path.problems[arm], point.duals[arm], point.curvatures[arm])


def _point(  # both arms' rows at one cap
    path: CapPath,
    rows: list[Floats],
    bases: list[Floats],
    scales: list[float],
    cap: float,
    duals: list[Floats],
) -> CapPoint:
    loss = 0.0
    curvatures = []
    for arm in (0, 1):
        if is_constant(path, arm, cap):
            weights = np.full(rows[arm].shape[0], path.equal_weights()[arm])
        else:
            weights = weights_at(rows[arm], bases[arm], duals[arm], cap)
        away = weights if path.base is None else weights - bases[arm]
        imbalance = scales[arm] * (rows[arm].T @ weights) - path.problems[arm].target
        loss += UNEXPLAINED * scales[arm] * float(away @ away) + float(imbalance @ imbalance)
        sums = dual_sums(rows[arm], bases[arm], duals[arm], cap)
        curvatures.append(scales[arm] * sums.curvature)
    return CapPoint(cap, loss, (duals[0], duals[1]), (curvatures[0], curvatures[1]))


def _problems(
    totals: _Totals, arms: ArmSizes, estimand: Estimand, *, tracking: bool
) -> tuple[ArmProblem, ArmProblem]:
    """Return each arm's targets: those of the base weights, of everybody, or of one arm."""
    n = float(arms.total)
    if tracking:
        targets = totals.weighted
    elif estimand == "ate":
        targets = np.zeros_like(totals.features)
    else:
        arm, size = (_TREATED, arms.treated) if estimand == "att" else (_CONTROL, arms.control)
        targets = np.tile(n * totals.features[arm] / size, (2, 1))
    return ArmProblem(targets[0], n), ArmProblem(targets[1], n)


def _totals_kernel(features: FeatureMap) -> Callable[[Block, Floats | None], _Totals]:
    def kernel(block: Block, base: Floats | None) -> _Totals:
        rows = features.map(block.covariates)
        arms = (block.treatment, ~block.treatment)
        sums = np.stack([rows[arm].sum(axis=0) for arm in arms])
        if base is None:
            return _Totals(sums, sums)
        return _Totals(sums, np.stack([base[arm] @ rows[arm] for arm in arms]))

    return kernel


def _sample_kernel(
    features: FeatureMap, strides: tuple[int, int]
) -> Callable[[Block, Floats | None], _Sample]:
    def kernel(block: Block, base: Floats | None) -> _Sample:
        picked = [
            np.flatnonzero(arm)[::stride]
            for arm, stride in zip((block.treatment, ~block.treatment), strides, strict=True)
        ]
        rows = [features.map(block.covariates[index]) for index in picked]
        bases = [() if base is None else (base[index],) for index in picked]
        return _Sample(((rows[0],), (rows[1],)), (bases[0], bases[1]))

    return kernel


def _room_kernel(weights: CappedWeights) -> Callable[[Block, Floats | None], _Room]:
    def kernel(block: Block, base: Floats | None) -> _Room:
        values = weights.of(block, base)
        arms = (block.treatment, ~block.treatment)
        sums = np.array([values[arm].sum() for arm in arms])
        sizes = np.array([np.count_nonzero(arm) for arm in arms])
        return _Room(sums, sizes * weights.cap - sums)

    return kernel


def _base_of(path: CapPath, arm: int, features: Floats, base: Floats | None) -> Floats:
    if base is not None:
        return base
    return np.full(features.shape[0], path.equal_weights()[arm])


def _joined(parts: tuple[Floats, ...]) -> Floats | None:
    return np.concatenate(parts) if parts else None


def _scaled(sums: DualSums, scale: float) -> DualSums:
    return DualSums(
        scale * sums.features, scale * sums.weight, scale * sums.value, scale * sums.curvature
    )
