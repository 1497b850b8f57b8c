"""Mechanisms that baselines alone use: noise in whole grid steps, for (ε, δ) or ρ of zCDP.

A part of the choke point `Noise`, which records and draws; the smooth ones answer in half steps.
Proofs: docs/proofs/baselines.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from private_ate.arrays import Integers
from private_ate.errors import NumericRangeError
from private_ate.privacy.accounting import discrete_gaussian_variance
from private_ate.privacy.entropy import Entropy
from private_ate.privacy.metrics import Metric, Spend
from private_ate.privacy.rejection_samplers import (
    discrete_gaussian,
    discrete_gaussian_rows,
    draw_index,
)
from private_ate.privacy.samplers import cauchy, two_sided

__all__ = ["BaselineNoise", "rate_of"]

Output = TypeVar("Output")


class BaselineNoise(ABC):
    """The mechanisms of `Noise` that are priced in (ε, δ) or ρ, or scaled by a private bound."""

    entropy: Entropy

    @abstractmethod
    def _release(self, spend: Spend, values: object, draw: Callable[[], Output]) -> Output:
        """Have the first draw paid for, write the cost down, show it to the recorder, draw."""

    def gaussian(
        self,
        step: str,
        values: Sequence[int],
        *,
        sensitivity: int,
        epsilon: Fraction,
        delta: Fraction,
        part: str = "",
    ) -> list[int]:
        """Add discrete Gaussian noise to a short integer vector.

        Neighbours: vectors at L2 distance ≤ ``sensitivity``. Cost: (ε, δ), by the analytic
        formula and the distance between grid and line (docs/proofs/baselines.md).
        """
        exact = [int(value) for value in values]
        size, declared = len(exact), (sensitivity,)
        variance = discrete_gaussian_variance(
            epsilon, delta, sensitivity=sensitivity, dimension=size
        )
        return self._release(
            Spend(step, "gaussian", epsilon, declared, size, delta, part=part, metric=Metric.L2),
            exact,
            lambda: [value + discrete_gaussian(variance, self.entropy) for value in exact],
        )

    def gaussian_cells(
        self, step: str, values: Integers, *, squared_sensitivity: int, rho: Fraction
    ) -> npt.NDArray[np.generic]:
        """Add discrete Gaussian noise of variance Δ²/(2ρ) to every entry of a long vector.

        Neighbours: vectors at L2 distance ≤ Δ, given as its square. Cost: ρ-zCDP
        (docs/proofs/baselines.md). Answers int64, or Python integers in an object array where the
        noise could leave 64 bits.
        """
        if squared_sensitivity < 1 or rho <= 0:
            msg = "Gaussian noise needs a positive sensitivity and a positive budget"
            raise NumericRangeError(msg)
        variance = Fraction(squared_sensitivity) / (2 * rho)
        spend = Spend(
            step, "gaussian_cells", Fraction(0), (squared_sensitivity,), values.size,
            rho=rho, metric=Metric.L2_SQUARED,
        )  # fmt: skip
        return self._release(
            spend,
            values,
            lambda: np.add(values, discrete_gaussian_rows(variance, values.size, self.entropy)),
        )

    def select(self, step: str, scores: Sequence[int], *, sensitivity: int, rho: Fraction) -> int:
        """Choose an index by the exponential mechanism with ε = √(8ρ), rounded down.

        Neighbours: each score moves by at most ``sensitivity``, in either direction. Cost: ε pure,
        hence ε²/8 ≤ ρ-zCDP. Drawn exactly (docs/proofs/baselines.md).
        """
        epsilon = Fraction(math.isqrt(math.floor(8 * rho * 4**60)), 2**60)
        spend = Spend(
            step, "select", Fraction(0), (sensitivity,), len(scores), rho=rho, metric=Metric.LINF
        )
        return self._choose(spend, scores, epsilon)

    def smooth_laplace(
        self, step: str, value: int, *, smooth: int, epsilon: Fraction, delta: Fraction
    ) -> int:
        """Add Laplace noise of scale 2·smooth/ε, in half steps like all Laplace noise.

        Neighbours: data sets for which ``smooth`` bounds the local sensitivity in steps and changes
        by a factor of at most ``exp(smoothing_rate(ε, δ))``. Cost: (ε, δ), proved in
        docs/proofs/baselines.md.
        """
        rate = rate_of(epsilon, 2 * smooth)
        return self._release(
            Spend(step, "smooth_laplace", epsilon, (), 1, delta, metric=Metric.SMOOTH),
            (value, smooth),
            lambda: 2 * value + two_sided(rate, self.entropy, public=False),
        )

    def smooth_cauchy(self, step: str, value: int, *, smooth: int, epsilon: Fraction) -> int:
        """Add Cauchy noise of scale 2·smooth/ε in half steps; idealized numerics.

        Neighbours: as for ``smooth_laplace``, by a factor of at most ``exp(ε/2)``. The noise is
        drawn in floating point and rounded to the grid, so the proof speaks of ideal numbers.
        Cost: ε (docs/proofs/baselines.md).
        """
        scale = 4 * float(smooth) / float(epsilon)
        return self._release(
            Spend(step, "smooth_cauchy", epsilon, (), 1, metric=Metric.SMOOTH),
            (value, smooth),
            lambda: 2 * value + round(scale * cauchy(self.entropy)),
        )

    def _choose(self, spend: Spend, scores: Sequence[int], epsilon: Fraction) -> int:
        rate = rate_of(epsilon, 2 * spend.sensitivity[0])
        exact = [int(score) for score in scores]
        return self._release(spend, exact, lambda: draw_index(exact, rate, self.entropy))


def rate_of(epsilon: Fraction, sensitivity: int) -> Fraction:
    """Return ε per grid step; refuse what is no sensitivity or no budget."""
    if sensitivity < 1 or epsilon <= 0:
        msg = "a mechanism needs a positive sensitivity in grid steps and a positive epsilon"
        raise NumericRangeError(msg)
    return epsilon / sensitivity
