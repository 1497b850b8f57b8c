"""Models of the treatment under objective perturbation, by folds over the rows.

With f = z·w and p = σ(f), the derivatives of a treated and of a control row's loss are

    ATE: −1/p and 1/(1 − p)        ATT: −1 and p/(1 − p)        ATC: −(1 − p)/p and 1,

so that the gradient vanishes exactly where the weighted sums of z agree in both arms. Beyond
|f| = log((1 − η)/η) these losses go on along their tangent: they stay convex, and one row's slope
and curvature are bounded. The loss whose weights are those of the ATO, 1 − p and p, is the logistic
one and needs no tangent.

Declared bounds are usually loose: released means and variances may bring every covariate to a scale
on which a penalised model can see it, clipped to [−1, 1] again. Proofs: docs/proofs/orthogonal.md
for the logistic loss, section 12 of docs/proofs/baselines.md for the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from typing import assert_never

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Bits, Floats
from private_ate.models.folds import LossSums, by_chunks
from private_ate.parameters import Estimand
from private_ate.privacy.noise import Noise
from private_ate.privacy.objective import LOGISTIC, LossBounds, Perturbation
from private_ate.privacy.quantization import noise_bits
from private_ate.study import Block, Study

__all__ = [
    "RowLoss", "Scaling", "ScoreObjective", "loss_bounds_of", "release_scaling", "row_losses",
]  # fmt: skip

_START_ROWS = 20_000
_START_PASSES = 15  # over the rows of the start
_FULL_PASSES = 7  # over all rows
_RENEWED = (0, 1, 2)  # which of them compute second derivatives anew; the others keep theirs
_EXTRA_PASSES = 200  # only rows whose order deceives the start were found to need any
_NO_HESSIAN: Floats = np.zeros((0, 0))
_LONGEST_STEP = 1000.0  # in L1; a longer Newton step starts from where the loss is flat
_LARGEST_SPREAD = 0.5
_SMALLEST_SPREAD = 1e-3


@dataclass(frozen=True, slots=True)
class Scaling:
    """An affine map of every encoded covariate, followed by clipping; shape (d,) each."""

    slope: Floats
    shift: Floats

    @property
    def columns(self) -> int:
        """The number of features (p): one per covariate and the constant."""
        return self.slope.size + 1

    def features(self, block: Block) -> Floats:
        """Return a constant and the scaled covariates, all in [−1, 1]; shape (d + 1, m)."""
        features = np.empty((self.slope.size + 1, block.arm.size))
        features[0] = 1.0
        scaled = features[1:]
        np.multiply(block.covariates.T, self.slope[:, None], out=scaled)
        scaled += self.shift[:, None]
        np.clip(scaled, -1.0, 1.0, out=scaled)
        return features


def release_scaling(
    study: Study, noise: Noise, *, epsilon: Fraction, changes: int, stretch: float
) -> Scaling:
    """Release the means and mean squares of all covariates and scale by them.

    Neighbours: ``changes`` rows replaced. Sensitivity (L∞): ``2·changes``, because every
    coordinate of the sum adds values in [−1, 1], rounded to the grid one by one; a row that takes
    no part adds zero, one with a sampling weight something between. Cost: ε, by the L∞ mechanism.
    Proof: docs/proofs/orthogonal.md.
    """
    bits = noise_bits(2 * changes, epsilon)
    sums = study.fold(lambda block: _moments(block, bits), title="standardisation")
    noisy = noise.cube(
        "standardisation", sums.tolist(), sensitivity=2 * changes << bits, epsilon=epsilon
    )
    unit = study.size << (bits + 1)
    released = np.array([value / unit for value in noisy]).reshape(2, study.dimension)
    mean = np.clip(released[0], -1.0, 1.0)
    square = np.clip((released[1] + 1) / 2, 0.0, 1.0)
    noise_scale = changes / float(epsilon) / study.size
    floor = max(8 * study.dimension * noise_scale / math.sqrt(3), _SMALLEST_SPREAD)
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    spread = np.minimum(np.maximum(spread, floor), _LARGEST_SPREAD)
    width = np.minimum(stretch * spread, 1 + np.abs(mean))
    return Scaling(2 / width, (-1 - mean) / width)


def _moments(block: Block, bits: int) -> npt.NDArray[np.object_]:
    """Return sums of 2x − 1 and of 2(2x − 1)² − 1 in grid steps: integers of any size."""
    grid = float(1 << bits)
    counted = block.shares
    centred = 2 * block.covariates.T - 1
    first = np.rint(np.rint(centred * grid) * counted).astype(np.int64).sum(axis=1)
    np.square(centred, out=centred)
    second = np.rint(np.rint((2 * centred - 1) * grid) * counted).astype(np.int64).sum(axis=1)
    return np.concatenate([first, second]).astype(object)


@dataclass(frozen=True, slots=True)
class RowLoss:
    """Loss, slope and curvature of rows by their predictors, shape (m,) each."""

    value: Floats
    slope: Floats
    curvature: Floats


def loss_bounds_of(estimand: Estimand, truncation: float) -> LossBounds:
    """Return bounds on one row's loss: its Lipschitz constant is 1/η (ATE) or (1 − η)/η."""
    if estimand == "ato":
        return LOGISTIC
    least = Fraction(truncation)
    odds = (1 - least) / least
    return LossBounds(math.ceil(1 + odds if estimand == "ate" else odds), odds, None)


def row_losses(estimand: Estimand, predictors: Floats, treated: Bits, truncation: float) -> RowLoss:
    """Return the loss of each row with its derivatives, along the tangent beyond the knots."""
    if estimand == "ato":
        small = np.exp(-np.abs(predictors))
        chance = np.where(predictors >= 0, 1.0, small) / (1.0 + small)
        value = np.log1p(small) + np.maximum(predictors, 0.0) - treated * predictors
        return RowLoss(value, chance - treated, chance * (1.0 - chance))
    knot = math.log((1 - truncation) / truncation)
    inside = np.clip(predictors, -knot, knot)
    sign = np.where(treated, -1.0, 1.0)
    growing = np.exp(sign * inside)  # (1 − p)/p of a treated row, p/(1 − p) of a control
    match estimand:
        case "ate":
            curved, straight = np.ones_like(growing), np.ones_like(growing)
        case "att":
            curved, straight = (~treated).astype(np.float64), treated.astype(np.float64)
        case "atc":
            curved, straight = treated.astype(np.float64), (~treated).astype(np.float64)
        case _:
            assert_never(estimand)
    slope = sign * (curved * growing + straight)
    value = curved * growing + straight * sign * inside + slope * (predictors - inside)
    curvature = curved * growing * (np.abs(predictors) <= knot)
    return RowLoss(value, slope, curvature)


@dataclass(frozen=True, slots=True)
class _State:
    """A point of the iteration with the perturbed loss, its gradient and the Newton direction.

    ``reach`` bounds how far the direction moves a row's predictor.
    """

    point: Floats
    loss: float
    gradient: Floats
    hessian: Floats
    direction: Floats
    reach: float

    @property
    def norm(self) -> float:
        """The L2 norm of the gradient."""
        return float(np.linalg.norm(self.gradient))

    @property
    def safe_length(self) -> float:
        """The share of the Newton step that always lowers the loss.

        The third derivative of a logistic loss is at most the second times the reach r of the
        direction; then ``log(1 + r)/r`` is safe.
        """
        return math.log1p(self.reach) / self.reach if self.reach > 0 else 1.0

    @property
    def first_length(self) -> float:
        """The whole step, unless it leads out of all proportion."""
        return 1.0 if self.reach <= _LONGEST_STEP else self.safe_length


@dataclass(frozen=True, slots=True)
class ScoreObjective:
    """A loss over rows of scaled covariates that is minimised under a perturbation.

    A row that takes no part adds nothing to the loss, one with a sampling weight its share.
    Weights by the fitted score suit the ``estimand``; they are bounded by the ``truncation`` (η),
    which the logistic loss, that of the ATO, does without.
    """

    study: Study = field(repr=False)
    scaling: Scaling = field(repr=False)
    estimand: Estimand = "ato"
    truncation: float = 0.0

    @property
    def dimension(self) -> int:
        """The number of weights (p): one per feature and the intercept, which comes first."""
        return self.scaling.columns

    @property
    def size(self) -> int:
        """The number of rows (n)."""
        return self.study.size

    @property
    def loss_bounds(self) -> LossBounds:
        """Bounds on the slope and the curvature of one row's loss."""
        return loss_bounds_of(self.estimand, self.truncation)

    def sums(self, rows: Study, point: Floats, *, curved: bool = False) -> LossSums:
        """Return sums over rows of the loss and its derivatives; the Hessian only if asked for."""
        kernel = by_chunks(_kernel(self, point, curved=curved))
        return rows.fold(kernel, title="model of the treatment")

    def reach(self, direction: Floats) -> float:
        """Return the L1 norm, which bounds ``|z·direction|``."""
        return float(np.abs(direction).sum())

    @property
    def smoothness(self) -> float:
        """A bound on the eigenvalues of the loss's Hessian, as no feature exceeds 1."""
        return self.size * float(self.loss_bounds.curvature) * self.dimension

    def gradient(self, point: Floats) -> Floats:
        """Return the gradient of the loss alone, a sum over rows."""
        return self.sums(self.study, point).gradient

    def minimize(self, perturbation: Perturbation) -> Floats:
        """Run damped Newton in a fixed number of passes, on a part of the rows, then on all.

        Passes are added only while the gradient norm exceeds the tolerance, so the result always
        meets it. How many follows the records, so no progress is reported of them (what their time
        may show is said in docs/proofs/orthogonal.md). Nothing proves that Newton's steps arrive;
        where they do not, accelerated gradient steps do.
        """
        stride = self.size // _START_ROWS
        with self.study.thinned(stride) if stride > 1 else nullcontext(self.study) as few:
            start = self._state(few, np.zeros(self.dimension), perturbation)
            start = self._newton(few, start, perturbation, _START_PASSES)
        state = self._state(self.study, start.point, perturbation)
        state = self._newton(self.study, state, perturbation, _FULL_PASSES, renewed=_RENEWED)
        quiet = self.study.unannounced()
        if state.norm > perturbation.tolerance:  # the old Hessian leads no further: renew it
            state = self._state(quiet, state.point, perturbation)
        for _ in range(_EXTRA_PASSES):
            if state.norm <= perturbation.tolerance:
                return state.point
            state = self._newton(quiet, state, perturbation, 2)
        return self._walk(state.point, perturbation)

    def _walk(self, start: Floats, perturbation: Perturbation) -> Floats:
        """Walk by Nesterov's steps until the gradient norm is within the tolerance.

        After k steps it is at most ``√(2L/Λ)·(1 − √(Λ/L))^(k/2)`` times what it was, L being the
        smoothness with the ridge: so many suffice for every data set.
        """
        smoothness = self.smoothness + perturbation.ridge
        root = math.sqrt(perturbation.ridge / smoothness)
        momentum = (1 - root) / (1 + root)
        distance = float(np.linalg.norm(self._perturbed(start, perturbation)))
        distance /= perturbation.tolerance
        steps = math.ceil(math.log(2 / root**2 * distance**2) / -math.log1p(-root))
        previous = current = start
        for _ in range(steps):
            ahead = current + momentum * (current - previous)
            slope = self._perturbed(ahead, perturbation)
            if float(np.linalg.norm(slope)) <= perturbation.tolerance:
                return ahead
            previous, current = current, ahead - slope / smoothness
        return current

    def _perturbed(self, point: Floats, perturbation: Perturbation) -> Floats:
        """Return the gradient of the perturbed loss; without a progress report."""
        loss = self.sums(self.study.unannounced(), point).gradient
        gradient: Floats = loss + perturbation.ridge * point + perturbation.linear
        return gradient

    def _newton(
        self,
        rows: Study,
        state: _State,
        perturbation: Perturbation,
        passes: int,
        renewed: tuple[int, ...] | None = None,
    ) -> _State:
        """Try Newton steps; one that does not help is shortened in the next pass.

        Second derivatives are computed in every pass, or only in those that are ``renewed``: near
        the minimum old ones serve as well and a pass without them costs a third.
        """
        length = state.first_length
        for index in range(passes):
            kept = None if renewed is None or index in renewed else state.hessian
            trial = self._state(rows, state.point - length * state.direction, perturbation, kept)
            if trial.loss < state.loss or trial.norm < state.norm / 2:
                state, length = trial, trial.first_length
            else:
                length = min(length / 4, state.safe_length)
        return state

    def _state(
        self, rows: Study, point: Floats, perturbation: Perturbation, hessian: Floats | None = None
    ) -> _State:
        """Look at a point from all rows, or from some that stand for all."""
        sums = self.sums(rows, point, curved=hessian is None)
        weight = self.size / sums.rows
        gradient: Floats = weight * sums.gradient + perturbation.ridge * point + perturbation.linear
        if hessian is None:
            hessian = weight * sums.hessian + perturbation.ridge * np.eye(self.dimension)
        loss = weight * sums.loss + perturbation.ridge / 2 * float(point @ point)
        direction = np.linalg.solve(hessian, gradient).astype(np.float64, copy=False)
        loss += float(perturbation.linear @ point)
        return _State(point, loss, gradient, hessian, direction, self.reach(direction))


def _kernel(
    objective: ScoreObjective, point: Floats, *, curved: bool
) -> Callable[[Block], LossSums]:
    scaling, estimand, truncation = objective.scaling, objective.estimand, objective.truncation

    def kernel(block: Block) -> LossSums:
        features, counted = scaling.features(block), block.shares
        found = row_losses(estimand, point @ features, block.treatment, truncation)
        loss, gradient = float(found.value @ counted), features @ (found.slope * counted)
        if not curved:
            return LossSums(block.arm.size, loss, gradient, _NO_HESSIAN)
        features *= np.sqrt(found.curvature * counted)  # in place: no second large array
        return LossSums(block.arm.size, loss, gradient, features @ features.T)

    return kernel
