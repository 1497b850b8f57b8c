"""Propensity scores of two arms or more: ridge multinomial regression by folds over the rows.

The loss is ``J(W) = mean −log e_T(x) + λ Σ_k ‖w_k‖²`` with ``e_t = exp(w_t·z)/Σ_k exp(w_k·z)``,
``z = (1, x)`` and ``x`` in [0, 1]ᵈ: a weight vector for every arm, none of them privileged. The
minimiser's vectors add up to zero, so the fit works in coordinates V with ``W = BᵀV``, of which
there are K − 1 for every column. Of two arms V is ``w_1 − w_0``, the log odds of treatment, and J
the logistic loss with ``(λ/2)‖V‖²``; of more B has orthonormal rows. Rows of B have the squared
length c, one half or one, so that ``λ‖W‖² = cλ‖V‖²``.

For public columns the walk to the minimum is damped Newton, which near the minimum makes do with
one Hessian of all rows, corrected by a few that are at hand. For private ones it is a schedule that
follows public numbers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from private_ate.arrays import Floats
from private_ate.models.folds import LossSums
from private_ate.study import Block, Rows, Study

__all__ = [
    "SOLVER_GRADIENT",
    "PropensityModel",
    "Schedule",
    "contrast_basis",
    "convexity",
    "fit_propensity",
    "fit_propensity_obliviously",
    "log_odds",
    "schedule_of",
]

# Rows that stand for all while far from the minimum: enough for each weight that full steps
# from their fit contract, and no more than memory holds easily.
_FEW: Final = 6_000
_FEW_PER_WEIGHT: Final = 300
_MOST_FEW: Final = 60_000
SOLVER_GRADIENT: Final = 1e-9  # γ: the gradient norm that an oblivious fit provably reaches
_PUBLIC_GRADIENT: Final = 1e-10  # the gradient norm that a fit of public columns reaches
_CLOSE: Final = 1e-2  # squared Newton decrement below which full steps contract
_STEPS: Final = 100
_NEWTON_STEPS: Final = 6
_TITLE: Final = "propensity model"
_NO_HESSIAN: Final[Floats] = np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class PropensityModel:
    """Probabilities of the arms given covariates.

    Attributes
    ----------
    coefficients : array, shape (K, d + 1)
        A row per arm: intercept first, then one slope per feature; the rows add up to zero.
    gradient_norm : float or None
        The norm of the gradient when it was last measured; None for a model that was released.
    """

    coefficients: Floats
    gradient_norm: float | None = None

    @classmethod
    def from_coordinates(
        cls, coordinates: Floats, arms: int, gradient_norm: float | None = None
    ) -> PropensityModel:
        """Return the model of coordinates V, K − 1 runs of d + 1 numbers."""
        return cls(contrast_basis(arms).T @ coordinates.reshape(arms - 1, -1), gradient_norm)

    @property
    def coordinates(self) -> Floats:
        """The coordinates V; of two arms the log odds of treatment, intercept first."""
        basis = contrast_basis(self.arms)
        return (basis @ self.coefficients).ravel() / _scale(self.arms)

    @property
    def arms(self) -> int:
        """The number of arms (K)."""
        return int(self.coefficients.shape[0])

    def predictors(self, covariates: Floats) -> Floats:
        """Return w_t·z for rows of encoded covariates, shape (K, m)."""
        return _linear(self.coefficients, covariates)

    def probabilities(self, covariates: Floats) -> Floats:
        """Return the probability of every arm for every row, shape (m, K)."""
        linear = self.predictors(covariates)
        shares: Floats = np.exp(linear - linear.max(axis=0))
        shares /= shares.sum(axis=0)
        return np.ascontiguousarray(shares.T)

    def scores(self, covariates: Floats, arm: int) -> Floats:
        """Return the log odds of one arm against all others, ``log e_t/(1 − e_t)``; shape (m,)."""
        return log_odds(self.predictors(covariates), arm)


def log_odds(linear: Floats, arm: int) -> Floats:
    """Return the log odds of one arm against all others, given w_t·z of all arms, shape (K, m)."""
    others = np.delete(linear, arm, axis=0)
    top = others.max(axis=0)
    odds: Floats = linear[arm] - top - np.log(np.exp(others - top).sum(axis=0))
    return odds


def contrast_basis(arms: int) -> Floats:
    """Return B, shape (K − 1, K): orthogonal rows of one length that add up to zero.

    Of two arms (−½, ½); of more Helmert's: row j has j + 1 equal negative entries, one positive
    and zeros after it.
    """
    matrix = np.zeros((arms - 1, arms))
    for row in range(arms - 1):
        before = row + 1
        matrix[row, :before] = -1 / math.sqrt(before * (before + 1))
        matrix[row, before] = before / math.sqrt(before * (before + 1))
    return np.array([[-0.5, 0.5]]) if arms == 2 else matrix


def _scale(arms: int) -> float:
    """Return c, the squared length of the rows of B."""
    return 0.5 if arms == 2 else 1.0


def convexity(ridge: float, arms: int) -> float:
    """Return the least eigenvalue of the Hessian in coordinates V that the penalty provides."""
    return 2 * _scale(arms) * ridge


def schedule_of(columns: int, ridge: float, arms: int) -> Schedule:
    """Return what is known of the loss in coordinates V, for z of ``columns`` columns.

    The largest eigenvalue of ``diag(e) − eeᵀ`` is at most ½, the loss at zero is ln K, and logits
    along V have a range of at most ``√(2c) ‖V‖‖z‖``.
    """
    scale, least = _scale(arms), convexity(ridge, arms)
    return Schedule(scale * columns / 2 + least, least, math.log(arms), 2 * scale * columns)


def fit_propensity(study: Study, ridge: float) -> PropensityModel:
    """Fit by damped Newton until the gradient norm is at most 1e-10; for public columns.

    The norm is that in coordinates V. Large studies start from the fit of an evenly spaced subset
    of their rows, which then also shows how the Hessian changes from step to step: one full Hessian
    and few gradients suffice. Arms that hold no row are fitted too: their probability is small,
    and positive by the penalty.
    """
    arms = study.domain.treatment.size
    start = np.zeros((arms - 1) * (study.dimension + 1))
    stride = study.size // min(max(_FEW, _FEW_PER_WEIGHT * start.size), _MOST_FEW)
    few = None
    if stride > 1:
        rows = _joined(study.fold(_few_rows(stride), title=_TITLE))
        few = _Loss(lambda kernel: kernel(rows), ridge, arms)
        start = _minimize(few, None, start, tolerance=1e-6).point
    found = _minimize(
        _Loss(partial(study.fold, title=_TITLE), ridge, arms),
        few,
        start,
        tolerance=_PUBLIC_GRADIENT,
    )
    return PropensityModel.from_coordinates(found.point, arms, found.gradient_norm)


def fit_propensity_obliviously(rows: Rows, ridge: float, arms: int) -> PropensityModel:
    """Fit in a number of passes that depends on K, d and λ only, whatever the rows are.

    Its gradient norm, in coordinates V, is at most γ = 1e-9.
    Proof: docs/proofs/propensity.md, and of several arms docs/proofs/several-arms.md.
    """
    columns = rows.dimension + 1
    schedule = schedule_of(columns, ridge, arms)
    found = _minimize_obliviously(
        _Loss(partial(rows.fold, title=_TITLE), ridge, arms), (arms - 1) * columns, schedule
    )
    return PropensityModel.from_coordinates(found.point, arms, found.gradient_norm)


def _few_rows(stride: int) -> Callable[[Block], tuple[Block]]:
    """Return a kernel that gathers covariates and arms of one row in ``stride``."""

    def kernel(block: Block) -> tuple[Block]:
        # Copies: views would keep the whole block alive.
        covariates, arm = block.covariates[::stride].copy(), block.arm[::stride].copy()
        return (Block(covariates, arm, None, arms=block.arms),)

    return kernel


def _joined(blocks: Sequence[Block]) -> Block:
    """Return gathered rows as one block."""
    covariates = np.concatenate([block.covariates for block in blocks])
    arm = np.concatenate([block.arm for block in blocks])
    return Block(covariates, arm, None, arms=blocks[0].arms)


@dataclass(frozen=True, slots=True)
class _Loss:
    """The mean loss of rows with its ridge, as a function of coordinates V; ``fold`` adds up."""

    fold: Callable[[Callable[[Block], LossSums]], LossSums]
    ridge: float
    arms: int

    def derivatives(self, point: Floats) -> _Derivatives:
        """Return gradient, Hessian and value at some coordinates."""
        sums, penalty = self._sums(point, curved=True), convexity(self.ridge, self.arms)
        gradient = sums.gradient / sums.rows + penalty * point
        hessian = sums.hessian / sums.rows
        hessian[np.diag_indices(point.size)] += penalty
        loss = float(sums.loss / sums.rows + penalty / 2 * point @ point)
        return _Derivatives(gradient, hessian, loss)

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient alone."""
        sums = self._sums(point, curved=False)
        return sums.gradient / sums.rows + convexity(self.ridge, self.arms) * point

    def _sums(self, point: Floats, *, curved: bool) -> LossSums:
        basis = contrast_basis(self.arms)
        coordinates = point.reshape(self.arms - 1, -1)

        def kernel(block: Block) -> LossSums:
            return _loss_sums(coordinates, basis, block, curved=curved)

        return self.fold(kernel)


def _loss_sums(coordinates: Floats, basis: Floats, block: Block, *, curved: bool) -> LossSums:
    """Return the sums over rows of −log e_T and its derivatives in coordinates V.

    As ``diag(e) − eeᵀ = Σ_{s<t} e_s e_t (δ_s − δ_t)(δ_s − δ_t)ᵀ``, the Hessian is a sum over pairs
    of arms of a matrix product of rows each. Without ``curved`` only the gradient is computed.
    """
    covariates, arms = block.covariates, basis.shape[1]
    linear = basis.T @ _linear(coordinates, covariates)
    linear -= linear.max(axis=0)
    own, loss = block.arm == np.arange(arms)[:, None], 0.0
    if curved:
        loss = -float(linear[own].sum())
    chance = np.exp(linear, out=linear)
    totals = chance.sum(axis=0)
    chance /= totals
    hessian = _NO_HESSIAN
    if curved:
        loss += float(np.log(totals).sum())
        pairs = list(combinations(range(arms), 2))
        products = np.array([_products(covariates, chance[s] * chance[t]) for s, t in pairs])
        apart = np.array([basis[:, s] - basis[:, t] for s, t in pairs])
        hessian = np.einsum("pi,pj,pab->iajb", apart, apart, products, optimize=True)
        hessian = hessian.reshape(coordinates.size, coordinates.size)
    residual = basis @ np.subtract(chance, own, out=chance)
    gradient = np.column_stack([residual.sum(axis=1), residual @ covariates])
    return LossSums(block.arm.size, loss, gradient.ravel(), hessian)


def _products(covariates: Floats, weights: Floats) -> Floats:
    """Return the weighted sum of zzᵀ over rows, shape (d + 1, d + 1)."""
    found = np.empty((covariates.shape[1] + 1,) * 2)
    root = covariates * np.sqrt(weights)[:, None]
    found[1:, 1:] = root.T @ root  # one half of it is computed, the other copied
    found[0, 1:] = found[1:, 0] = weights @ covariates
    found[0, 0] = weights.sum()
    return found


def _linear(coefficients: Floats, covariates: Floats) -> Floats:
    """Return every row of coefficients times z of every row, shape (·, m)."""
    linear: Floats = coefficients[:, 1:] @ covariates.T
    linear += coefficients[:, :1]
    return linear


class _Derivatives(NamedTuple):
    """A mean loss with its ridge at one point: gradient, Hessian and value."""

    gradient: Floats
    hessian: Floats
    loss: float


class _Minimum(NamedTuple):
    """Where the walk ended, and the norm of the gradient when it was last measured."""

    point: Floats
    gradient_norm: float


def _minimize(loss: _Loss, few: _Loss | None, start: Floats, *, tolerance: float) -> _Minimum:
    """Run damped Newton; near the minimum, steps with a Hessian that was not computed anew.

    ``few`` is the same loss over a few of the rows, or None.
    """
    current = start
    gradient, hessian, value = loss.derivatives(current)
    for _ in range(_STEPS):
        if np.linalg.norm(gradient) <= tolerance:
            # The last step needs no pass, and leaves a small part of the error measured.
            last = np.linalg.solve(hessian, gradient)
            return _Minimum(current - last, float(np.linalg.norm(gradient)))
        step = np.linalg.solve(hessian, gradient).astype(np.float64)
        reached = _Point(current, gradient)
        if float(gradient @ step) <= _CLOSE:
            reached = _polish(loss, few, reached, hessian, tolerance=tolerance)
        if reached.point is current:  # far away, or near by the mean of a loss that is not
            current, (gradient, hessian, value) = _descend(loss, current, step, value)
            continue
        current, gradient = reached
        if np.linalg.norm(gradient) > tolerance:
            gradient, hessian, value = loss.derivatives(current)
    return _Minimum(current, float(np.linalg.norm(gradient)))


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is known of a loss for every data set in the domain, and the steps that follow.

    Attributes
    ----------
    smoothness, convexity : float
        Bounds on the eigenvalues of the Hessian, from above (L) and from below (μ).
    start : float
        The loss at zero, which also bounds the penalty of the minimiser.
    steepness : float
        R²: along v a third derivative is at most R‖v‖ times the second.
    """

    smoothness: float
    convexity: float
    start: float
    steepness: float

    @property
    def momentum(self) -> float:
        """The constant momentum of Nesterov's method."""
        ends = math.sqrt(self.smoothness), math.sqrt(self.convexity)
        return (ends[0] - ends[1]) / (ends[0] + ends[1])

    @property
    def gradient_steps(self) -> int:
        """The number of accelerated steps after which Newton's method squares its error."""
        reduction = 2 * self.smoothness * 2 * self.start * 4 * self.steepness / self.convexity**2
        shrinking = -math.log1p(-math.sqrt(self.convexity / self.smoothness))
        return math.ceil(math.log(reduction) / shrinking)


def _minimize_obliviously(loss: _Loss, size: int, schedule: Schedule) -> _Minimum:
    """Walk from zero in a number of passes that follows public numbers, whatever the rows are.

    Accelerated gradient steps reach the region where Newton's method squares its error, for every
    data set in the domain; six Newton steps then bring the gradient norm below γ = 1e-9.
    Proof: docs/proofs/propensity.md.
    """
    previous = current = np.zeros(size)
    momentum = schedule.momentum
    for _ in range(schedule.gradient_steps):
        ahead = current + momentum * (current - previous)
        previous, current = current, ahead - loss.gradient(ahead) / schedule.smoothness
    for _ in range(_NEWTON_STEPS):
        gradient, hessian, _ = loss.derivatives(current)
        current = current - np.linalg.solve(hessian, gradient)
    return _Minimum(current, float(np.linalg.norm(loss.gradient(current))))


def _descend(
    loss: _Loss, current: Floats, step: Floats, value: float
) -> tuple[Floats, _Derivatives]:
    """Go along a Newton step, half as far until the loss falls."""
    size = 1.0
    while True:
        candidate = current - size * step
        derivatives = loss.derivatives(candidate)
        if derivatives.loss < value or size < 1e-6:
            return candidate, derivatives
        size /= 2


class _Point(NamedTuple):
    point: Floats
    gradient: Floats


def _polish(
    loss: _Loss, few: _Loss | None, reached: _Point, hessian: Floats, *, tolerance: float
) -> _Point:
    """Repeat steps with one Hessian, while each shortens the gradient eightfold; keep no other.

    If a few rows are at hand, the change of their Hessian since the first point is added to it:
    its sampling error shrinks with the distance, so that steps are nearly Newton's own.
    """
    before = None
    norm = float(np.linalg.norm(reached.gradient))
    while norm > tolerance:
        curvature = hessian
        if few is not None:
            now = few.derivatives(reached.point).hessian
            before = now if before is None else before
            curvature = hessian + (now - before)
        ahead = reached.point - np.linalg.solve(curvature, reached.gradient)
        gradient = loss.gradient(ahead)
        shorter = float(np.linalg.norm(gradient))
        if shorter > norm / 8:
            break
        reached, norm = _Point(ahead, gradient), shorter
    return reached
