"""The path of caps: how much an estimate moves for every limit on the largest weight.

The public phase of the calibrated estimator. It walks from the loosest useful cap to the tightest
possible one, keeps what each would cost in balance, and picks the cap that makes noise and
imbalance together least for a given ε. Everything is computed from public columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Final, Protocol, TypeVar

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.estimators.calibrated.features import UNEXPLAINED, FeatureMap
from private_ate.estimators.calibrated.rich_features import RichFeatureMap, scatter
from private_ate.estimators.calibrated.sampled_units import (
    SampledUnits,
    carries_weight,
    sampled_units,
    weighted_population,
)
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
from private_ate.estimators.request import Estimand
from private_ate.models.folds import FEATURE_ROWS, by_chunks, rows_of, runs
from private_ate.study import ArmSizes, Block, MatchingStudy, RowWeights, Summable

__all__ = [
    "CapPath",
    "CapPoint",
    "CapProblem",
    "PricedCap",
    "fold_with_base",
    "in_runs",
    "members_of",
    "pose_problem",
    "predicted_error",
    "scatter",
    "stop_after_minimum",
    "walk_caps",
]

S = TypeVar("S", bound=Summable)

_CAPS: Final = 16
_PATH_ROWS: Final = 20_000  # rows of an arm on which the path is walked


class PricedCap(Protocol):
    """A cap and what it costs in balance (Q)."""

    @property
    def cap(self) -> float:
        """The limit on the largest weight."""

    @property
    def loss(self) -> float:
        """The weighted loss of balance."""


@dataclass(frozen=True, slots=True)
class CapPoint:
    """One cap, the weighted loss of balance under it (Q), and the solutions of both arms."""

    cap: float
    loss: float
    solutions: tuple[Solution, Solution] = field(repr=False)


@dataclass(frozen=True, slots=True)
class CapProblem:
    """The public inputs of both arms: features, targets and weights to stay close to."""

    features: FeatureMap | RichFeatureMap
    arms: ArmSizes  # rows that carry weight: all, or those whose outcome is publicly known to exist
    rows: int  # all rows, which the weights of either arm add up to
    targets: tuple[ArmProblem, ArmProblem]
    fixed: tuple[bool, bool]  # arms whose weights are constant by the estimand
    base: RowWeights | None  # weights to stay close to; None for equal weights
    units: SampledUnits | None = None  # sampling weights to stay close to instead; None for none
    overlap: float | None = None  # sum of what the ATO counts units by; None for other estimands

    @property
    def equal_weights(self) -> tuple[float, float]:
        """The weights of a plain difference in means."""
        return self.rows / self.arms.treated, self.rows / self.arms.control

    def near(self, arm: int, rows: int, units: Floats | None) -> Floats:
        """Return what the weights of an arm's rows stay close to, without base weights."""
        if self.units is None or units is None:
            return np.full(rows, self.equal_weights[arm])
        return np.asarray(self.units.levels[arm] * units)

    def is_constant(self, arm: int, cap: float) -> bool:
        """Whether an arm's weights are all n/m: by the estimand, or as the cap leaves no room."""
        return self.fixed[arm] or cap <= self.equal_weights[arm] * (1 + 1e-12)


@dataclass(frozen=True, slots=True)
class CapPath:
    """Caps from loose to tight with their solutions, as far as the walk went."""

    problem: CapProblem
    points: tuple[CapPoint, ...]
    is_complete: bool  # whether the path was walked on all rows

    def choose(self, noise_variance: float, outcome_share: float) -> CapPoint:
        """Return the cap of least predicted error ``v A² + (sd/B)² Q(A)`` (times B²/n²)."""
        return min(
            self.points, key=lambda point: predicted_error(point, noise_variance, outcome_share)
        )


@dataclass(frozen=True, slots=True)
class _Totals:
    """Sums of features and of weighted features in either arm, shape (2, p)."""

    features: Floats
    weighted: Floats

    def __add__(self, other: _Totals) -> _Totals:
        return _Totals(self.features + other.features, self.weighted + other.weighted)


@dataclass(frozen=True, slots=True)
class _Overlap:
    """Sums over all rows of features times overlap, shape (p,), and of overlap."""

    features: Floats
    weight: float

    def __add__(self, other: _Overlap) -> _Overlap:
        return _Overlap(self.features + other.features, self.weight + other.weight)


@dataclass(frozen=True, slots=True)
class _Sample:
    """Feature rows, base weights and sampling weights gathered from either arm."""

    features: tuple[tuple[Floats, ...], tuple[Floats, ...]]
    base: tuple[tuple[Floats, ...], tuple[Floats, ...]]
    units: tuple[tuple[Floats, ...], tuple[Floats, ...]]

    def __add__(self, other: _Sample) -> _Sample:
        return _Sample(
            (self.features[0] + other.features[0], self.features[1] + other.features[1]),
            (self.base[0] + other.base[0], self.base[1] + other.base[1]),
            (self.units[0] + other.units[0], self.units[1] + other.units[1]),
        )


@dataclass(frozen=True, slots=True)
class _ArmRows:
    """One arm's rows on which the path is walked; each stands for ``scale`` rows."""

    features: Floats
    base: Floats
    scale: float
    units: Floats | None = None


def pose_problem(
    public: MatchingStudy,
    features: FeatureMap | RichFeatureMap,
    arms: ArmSizes,
    *,
    estimand: Estimand,
    base: RowWeights | None,
    observed: ArmSizes | None = None,
    is_centred: bool = True,
) -> CapProblem:
    """Settle each arm's targets: balance with everybody, with one arm, or with base weights.

    Features that are centred over these rows (``is_centred``) add up to zero over everybody.

    The overlap population (ATO) counts every unit by its chance of treatment times that of none.
    Where some rows are known to have no outcome, ``observed`` counts the others: they carry all
    the weight and are balanced with everybody. Sampling weights multiply targets and units; both
    arms are then calibrated, whatever the estimand, as a cap may bind in either.
    """
    units = sampled_units(public, members_of)
    if units is not None:
        meant = weighted_population(public, features, estimand)
        problem = ArmProblem(arms.total * meant.means, float(arms.total))
        counted = arms if observed is None else observed
        overlap = meant.weight if estimand == "ato" else None
        return CapProblem(
            features, counted, arms.total, (problem, problem), (False, False), None, units, overlap
        )
    n = float(arms.total)
    members = arms if observed is None else observed
    targets, overlap = np.zeros((2, features.size)), None
    if estimand == "ato":
        tilted = public.fold(
            by_chunks(_overlap_kernel(features), FEATURE_ROWS), title="calibration"
        )
        targets, overlap = np.tile(n * tilted.features / tilted.weight, (2, 1)), tilted.weight
    elif base is not None or estimand != "ate" or not is_centred:
        totals = fold_with_base(public, base, in_runs(_totals_kernel(features)))
        if base is not None:
            targets = totals.weighted
        elif estimand == "ate":
            targets = np.tile(totals.features.sum(axis=0), (2, 1))
        else:
            arm, size = {"att": (0, arms.treated), "atc": (1, arms.control)}[estimand]
            targets = np.tile(n * totals.features[arm] / size, (2, 1))
    fixed = (
        estimand == "att" and members.treated == arms.treated,
        estimand == "atc" and members.control == arms.control,
    )
    problems = ArmProblem(targets[0], n), ArmProblem(targets[1], n)
    return CapProblem(features, members, arms.total, problems, fixed, base, overlap=overlap)


def walk_caps(
    public: MatchingStudy,
    problem: CapProblem,
    keep_on: Callable[[list[CapPoint]], bool] = lambda _: True,
) -> CapPath:
    """Solve for caps from loose to tight, each from the last solution, while asked to keep on."""
    sizes = (problem.arms.treated, problem.arms.control)
    is_complete = max(sizes) <= _PATH_ROWS
    shares = (_PATH_ROWS / sizes[0], _PATH_ROWS / sizes[1])
    sample = fold_with_base(public, problem.base, _sample_kernel(problem, shares))
    arms = []
    for arm in (0, 1):
        gathered = np.concatenate(sample.features[arm])
        units = np.concatenate(sample.units[arm]) if problem.units is not None else None
        base = (
            np.concatenate(sample.base[arm])
            if problem.base is not None
            else problem.near(arm, gathered.shape[0], units)
        )
        arms.append(_ArmRows(gathered, base, sizes[arm] / gathered.shape[0], units))
    # On a sample of the rows the path only ranks caps; the chosen one is solved again on all.
    tolerance = TOLERANCE if is_complete else 100 * TOLERANCE
    points = _walk(problem, arms, tolerance, keep_on)
    return CapPath(problem, tuple(points), is_complete)


def stop_after_minimum(
    noise_variance: float, outcome_share: float
) -> Callable[[Sequence[PricedCap]], bool]:
    """Return the rule that ends a walk once the predicted error has risen twice.

    The least loss under a cap is convex in the cap, and so is the predicted error: after it has
    risen it does not fall again. The second rise allows for the solver's tolerance.
    """

    def keep_on(points: Sequence[PricedCap]) -> bool:
        errors = [predicted_error(point, noise_variance, outcome_share) for point in points]
        best = int(np.argmin(errors))
        return len(errors) - 1 - best < 2

    return keep_on


def predicted_error(point: PricedCap, noise_variance: float, outcome_share: float) -> float:
    """Return the predicted mean squared error in units of (B/n)²."""
    return noise_variance * point.cap**2 + outcome_share**2 * point.loss


def fold_with_base(
    study: MatchingStudy, base: RowWeights | None, kernel: Callable[[Block, Floats | None], S]
) -> S:
    """Fold a kernel that also wants the base weight of each row, if there are any."""
    if base is None:
        return study.fold(lambda block: kernel(block, None), title="calibration")
    return study.fold_with(base, kernel, title="calibration")


def members_of(block: Block) -> tuple[Bits, Bits]:
    """Return which rows of a public block carry weight in the treated and in the control arm."""
    treated, control = block.treatment, ~block.treatment
    for mask in (block.observed, carries_weight(block)):
        if mask is not None:
            treated, control = treated & mask, control & mask
    return treated, control


def in_runs(
    kernel: Callable[[Block, Floats | None], S],
) -> Callable[[Block, Floats | None], S]:
    """Return a kernel that adds up ``kernel`` over runs whose features stay in the cache."""

    def chunked(block: Block, base: Floats | None) -> S:
        parts = (
            kernel(rows_of(block, run), None if base is None else base[run])
            for run in runs(block, FEATURE_ROWS)
        )
        return reduce(add, parts)

    return chunked


def _walk(
    problem: CapProblem,
    arms: list[_ArmRows],
    tolerance: float,
    keep_on: Callable[[list[CapPoint]], bool],
) -> list[CapPoint]:
    tightest = max(problem.equal_weights)
    zero = np.zeros(problem.features.size + 1)
    duals = [zero, zero]
    loosest = tightest
    for arm in (0, 1):
        if problem.fixed[arm]:
            continue
        rows = arms[arm]
        weights = rows.base
        if problem.base is None:
            duals[arm] = _solve(problem, arm, rows, math.inf, zero, tolerance).dual
            weights = weights_at(
                rows.features @ duals[arm][:-1] + duals[arm][-1], rows.base, math.inf, rows.units
            )
        loosest = max(loosest, float(weights.max()))
    points: list[CapPoint] = []
    for cap in np.geomspace(loosest, tightest, _CAPS if loosest > tightest else 1):
        solved = [
            _solve(problem, arm, arms[arm], float(cap), duals[arm], tolerance) for arm in (0, 1)
        ]
        duals = [solution.dual for solution in solved]
        loss = sum(_loss(problem, arm, arms[arm], solved[arm], float(cap)) for arm in (0, 1))
        points.append(CapPoint(float(cap), loss, (solved[0], solved[1])))
        if not keep_on(points):
            break
    return points


def _solve(
    problem: CapProblem, arm: int, rows: _ArmRows, cap: float, start: Floats, tolerance: float
) -> Solution:
    if problem.is_constant(arm, cap):
        constant = np.full(rows.base.size, problem.equal_weights[arm])
        none = np.zeros_like(constant)
        sums = weighted_sums(rows.features, rows.base, none, constant, none > 0, rows.units)
        return Solution(start, sums.scaled(rows.scale))

    def evaluate(question: DualQuestion) -> DualSums:
        sums = dual_sums(
            rows.features, rows.base, question.dual, cap, curved=question.curved, units=rows.units
        )
        return sums.scaled(rows.scale)

    return maximize_dual(evaluate, problem.targets[arm], start, tolerance)


def _loss(problem: CapProblem, arm: int, rows: _ArmRows, solution: Solution, cap: float) -> float:
    """Return ``r‖w‖²`` (or ``r‖w − u‖²`` when following other weights) plus ``‖Fᵀw − g‖²``.

    Distances from sampling weights s are ``Σ (w − u)²/s``, as in what the weights minimise.
    """
    squares = solution.sums.squares
    if problem.base is not None or rows.units is not None:
        dual = solution.dual
        weights = weights_at(rows.features @ dual[:-1] + dual[-1], rows.base, cap, rows.units)
        if problem.is_constant(arm, cap):
            weights = np.full(rows.base.size, problem.equal_weights[arm])
        moved = (weights - rows.base) ** 2
        squares = rows.scale * float((moved if rows.units is None else moved / rows.units).sum())
    imbalance = solution.sums.features - problem.targets[arm].target
    return UNEXPLAINED * squares + float(imbalance @ imbalance)


def _totals_kernel(
    features: FeatureMap | RichFeatureMap,
) -> Callable[[Block, Floats | None], _Totals]:
    def kernel(block: Block, base: Floats | None) -> _Totals:
        rows = features.map(block.covariates)
        arms = np.stack([block.treatment, ~block.treatment]).astype(np.float64)
        sums = arms @ rows
        return _Totals(sums, sums if base is None else (arms * base) @ rows)

    return kernel


def _overlap_kernel(features: FeatureMap | RichFeatureMap) -> Callable[[Block], _Overlap]:
    def kernel(block: Block) -> _Overlap:
        chance = features.probability(block.covariates)
        overlap = chance * (1.0 - chance)
        return _Overlap(overlap @ features.map(block.covariates), float(overlap.sum()))

    return kernel


def _sample_kernel(
    problem: CapProblem, shares: tuple[float, float]
) -> Callable[[Block, Floats | None], _Sample]:
    """Gather a share of each arm; a row's place in the study decides, however rows are blocked."""

    def kernel(block: Block, base: Floats | None) -> _Sample:
        drawn = scatter(block.first, block.treatment.size)
        picked = [
            np.flatnonzero(arm & (drawn < share))
            for arm, share in zip(members_of(block), shares, strict=True)
        ]
        rows = [problem.features.map(block.covariates[index]) for index in picked]
        bases = [() if base is None else (base[index],) for index in picked]
        counts = None if problem.units is None else problem.units.of(block)
        units = [() if counts is None else (counts[index],) for index in picked]
        return _Sample(((rows[0],), (rows[1],)), (bases[0], bases[1]), (units[0], units[1]))

    return kernel
