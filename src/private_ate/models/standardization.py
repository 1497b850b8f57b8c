"""Private standardisation: centre and stretch covariates by released moments.

Declared bounds are usually loose. Released means and variances bring every covariate to a scale
on which a penalised model can see it, and the result is clipped to [−1, 1] again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from private_ate.arrays import Floats
from private_ate.errors import NumericRangeError
from private_ate.privacy.noise import Noise
from private_ate.study import Block, Study

__all__ = ["Scaling", "noise_bits", "release_scaling"]


_LARGEST_SPREAD = 0.5
_SMALLEST_SPREAD = 1e-3
_FINEST_GRID = 47  # 2¹⁴ values of a block, each at most 2⁴⁷ steps, stay below 2⁶²


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


@dataclass(frozen=True, slots=True)
class _Moments:
    """Sums over rows of 2x − 1 and of 2(2x − 1)² − 1, in grid steps."""

    steps: tuple[int, ...]

    def __add__(self, other: _Moments) -> _Moments:
        return _Moments(tuple(a + b for a, b in zip(self.steps, other.steps, strict=True)))


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
        "standardisation", sums.steps, sensitivity=2 * changes << bits, epsilon=epsilon
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


def noise_bits(sensitivity: float, epsilon: Fraction) -> int:
    """Return the bits of a grid for values of unit size, at most 2⁻²⁰ of the noise scale.

    At least 24, so that rounding the values themselves is out of sight; never above 40 for the
    budgets that are allowed. From 48 on a block's sums could leave 64 bits: refused.
    """
    bits = max(24, 20 - math.floor(math.log2(sensitivity / float(epsilon))))
    if bits > _FINEST_GRID:
        msg = f"an epsilon of {float(epsilon):g} needs sums finer than 2^-{_FINEST_GRID}; use less"
        raise NumericRangeError(msg)
    return bits


def _moments(block: Block, bits: int) -> _Moments:
    grid = float(1 << bits)
    counted = block.shares
    centred = 2 * block.covariates.T - 1
    first = np.rint(np.rint(centred * grid) * counted).astype(np.int64).sum(axis=1)
    np.square(centred, out=centred)
    second = np.rint(np.rint((2 * centred - 1) * grid) * counted).astype(np.int64).sum(axis=1)
    return _Moments(tuple(int(step) for step in (*first, *second)))
