"""Output perturbation shared by the direct baselines: vectors and sums with noise, as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from private_ate.arrays import Floats
from private_ate.effects.estimate import Quantity
from private_ate.errors import ArgumentError
from private_ate.privacy.accounting import discrete_gaussian_variance, noise_delta
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import two_laplace_quantile

__all__ = [
    "Budget",
    "NoisyValue",
    "release_integer",
    "release_vector",
    "require_positive_delta",
]


_FINE = 40  # bits of the grid below the sensitivity


@dataclass(frozen=True, slots=True)
class Budget:
    """What one set of rows may cost: (ε, δ), or pure ε if δ is zero."""

    epsilon: Fraction
    delta: Fraction
    part: str


@dataclass(frozen=True, slots=True)
class NoisyValue:
    """A released number and the public scale of its noise (Gaussian, or Laplace if pure)."""

    value: float
    scale: float
    pure: bool

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.scale * math.sqrt(2) if self.pure else self.scale

    def half_width(self, coverage: float) -> float:
        """Return the half-width that the noise stays within, with the given probability."""
        if self.pure:
            return two_laplace_quantile(coverage, self.scale, 0.0)
        return self.scale * NormalDist().inv_cdf((1 + coverage) / 2)

    def quantity(self, coverage: float) -> Quantity:
        """Return the number with the interval of its noise."""
        noise = (NoiseDistribution("laplace", self.scale, 1.0),) if self.pure else ()
        half = self.half_width(coverage)
        return Quantity(self.value, noise, noise_interval=(self.value - half, self.value + half))


def require_positive_delta(delta: str | float, method: str) -> None:
    """Refuse a δ of zero for a method that adds Gaussian noise."""
    if noise_delta(delta) == 0:
        msg = f"{method} adds Gaussian noise and needs a positive delta"
        raise ArgumentError(msg)


def release_vector(
    noise: Noise,
    step: str,
    values: Sequence[Fraction] | Floats,
    *,
    sensitivity: float,
    budget: Budget,
) -> Floats:
    """Release a vector of floats or fractions whose L2 sensitivity is given.

    Put on a grid 2⁻⁴⁰ of the sensitivity first; rounding can add one step per coordinate, which
    is added to the sensitivity. Pure ε uses Laplace noise and ``L1 ≤ √d·L2``.
    """
    grid = Fraction(2) ** (math.floor(math.log2(sensitivity)) - _FINE)
    steps = [round(Fraction(value) / grid) for value in values]
    size = len(steps)
    if budget.delta:
        whole = math.ceil(Fraction(sensitivity) / grid) + math.isqrt(size) + 1
        noisy = noise.gaussian(
            step, steps, sensitivity=whole, epsilon=budget.epsilon, delta=budget.delta,
            part=budget.part,
        )  # fmt: skip
        return np.array([float(value * grid) for value in noisy])
    whole = math.ceil(Fraction(sensitivity * math.sqrt(size) * (1 + 1e-9)) / grid) + size
    halves = noise.laplace(step, steps, sensitivity=whole, epsilon=budget.epsilon, part=budget.part)
    return np.array([float(value * grid / 2) for value in halves])


def release_integer(
    noise: Noise, step: str, value: int, *, sensitivity: int, unit: Fraction, budget: Budget
) -> NoisyValue:
    """Release one exact integer of the given sensitivity; ``unit`` is the size of a step."""
    if budget.delta:
        variance = discrete_gaussian_variance(
            budget.epsilon, budget.delta, sensitivity=sensitivity, dimension=1
        )
        (noisy,) = noise.gaussian(
            step, [value], sensitivity=sensitivity, epsilon=budget.epsilon, delta=budget.delta,
            part=budget.part,
        )  # fmt: skip
        return NoisyValue(float(noisy * unit), math.sqrt(variance) * float(unit), pure=False)
    (halves,) = noise.laplace(
        step, [value], sensitivity=sensitivity, epsilon=budget.epsilon, part=budget.part
    )
    scale = float(Fraction(sensitivity) / budget.epsilon * unit)
    return NoisyValue(float(halves * unit / 2), scale, pure=True)
