"""The law of what several arms' errors add up to: noises, and normals of unknown variance.

All of it follows from released numbers, so nothing here spends anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, assert_never

import numpy as np
from scipy.special import ndtr, ndtri

from private_ate.arrays import Floats
from private_ate.contents.arms import NoiseLaw
from private_ate.privacy.quantiles import (
    staircase_cdf,
    staircase_quantile,
    two_laplace_quantile,
    two_staircase_quantile,
)

__all__ = ["Rule", "expected_size", "half_width", "law_draws", "law_quantile", "noise_half_width"]

Rule = Literal["convolved", "in_squares"]
Cdf = Callable[[Floats], Floats]

_POINTS: Final = 1 << 14  # of the grid, for two or three errors; more have more
_BEYOND: Final = 1e-7  # the chance that one error lies beyond its part of the grid
_TABLE: Final = 4096  # quantiles of a staircase from which simulations draw


def half_width(
    coverage: float,
    noises: Sequence[NoiseLaw],
    variances: Sequence[Sequence[float]],
    rule: Rule,
) -> float:
    """Return h such that the sum of all errors is within ±h with the wanted probability.

    ``noises`` are independent; so are normal errors, one for each entry of ``variances``, which
    lists its equally likely variances. "convolved" takes the law of the sum, "in_squares" the root
    of both squared half-widths, which is wider.
    """
    match rule:
        case "convolved":
            return _convolved(coverage, noises, variances)
        case "in_squares":
            normal = float(ndtri((1 + coverage) / 2))
            variance = sum(sum(likely) / len(likely) for likely in variances)
            return math.hypot(normal * math.sqrt(variance), noise_half_width(coverage, noises))
    assert_never(rule)


def noise_half_width(coverage: float, noises: Sequence[NoiseLaw]) -> float:
    """Return q such that the sum of independent noises is within ±q with that probability.

    Exact for one noise and for two Laplace ones; within a few parts in a thousand for two
    staircases; otherwise as :func:`half_width`.
    """
    felt = [law for law in noises if _is_felt(law)]
    names = [law.name for law in felt]
    if not felt:
        return 0.0
    if len(felt) == 1:
        return felt[0].unit * law_quantile(felt[0], coverage)
    if names == ["laplace", "laplace"]:
        first, second = (law.unit / float(law.epsilon) for law in felt)
        return two_laplace_quantile(coverage, first, second)
    if names == ["staircase", "staircase"] and felt[0].epsilon == felt[1].epsilon:
        return two_staircase_quantile(
            coverage, float(felt[0].epsilon), felt[0].unit, felt[1].unit
        )  # fmt: skip
    return _convolved(coverage, felt, ())


def expected_size(noises: Sequence[NoiseLaw], variances: Sequence[Sequence[float]]) -> float:
    """Return the expected size of the sum of all errors, as in :func:`half_width`."""
    found = _size_of(noises, variances)
    return 0.0 if found is None else found.mean


def law_quantile(law: NoiseLaw, coverage: float) -> float:
    """Return q with ``P(|X| ≤ q) = coverage`` for a draw X of the law, of sensitivity one."""
    epsilon = float(law.epsilon)
    match law.name:
        case "laplace":
            return -math.log1p(-coverage) / epsilon
        case "staircase":
            return staircase_quantile(coverage, epsilon)
    assert_never(law.name)


def _is_felt(law: NoiseLaw) -> bool:
    """Say whether noise moves a number at all: at ε in the thousands a staircase is a point."""
    return law.unit > 0 and law_quantile(law, 1 - _BEYOND) > 0


@dataclass(frozen=True, slots=True)
class _Size:
    """The law of a sum's size on a grid: chances of its cells, each about ``step`` wide."""

    step: float
    chances: Floats  # of sizes within half a cell of 0, 1, 2, … steps

    def quantile(self, coverage: float) -> float:
        """Return the size that is not exceeded with this chance."""
        within = np.cumsum(self.chances)
        edges = (np.arange(within.size) + 0.5) * self.step
        return float(np.interp(coverage * within[-1], within, edges))

    @property
    def mean(self) -> float:
        """The expected size."""
        return float(self.chances @ np.arange(self.chances.size)) * self.step


def _convolved(
    coverage: float, noises: Sequence[NoiseLaw], variances: Sequence[Sequence[float]]
) -> float:
    found = _size_of(noises, variances)
    return 0.0 if found is None else found.quantile(coverage)


def _size_of(noises: Sequence[NoiseLaw], variances: Sequence[Sequence[float]]) -> _Size | None:
    """Convolve the laws on a grid; None if there is no error at all.

    Every error is moved to the middle of its cell, so that the sum moves by at most half a cell
    for each, and the quantile with it; cells are less than an eight thousandth of the errors'
    reaches together. Chances beyond the grid are 1e-7 for each error. Measured against closed
    forms and simulations it is right to five digits at ε up to 10.
    """
    parts: list[tuple[float, Cdf]] = [
        (law.unit * law_quantile(law, 1 - _BEYOND), _cdf_of(law)) for law in noises if _is_felt(law)
    ]
    reach = float(ndtri(1 - _BEYOND / 2))
    for likely in variances:
        deviations = np.sqrt(np.asarray(likely, dtype=np.float64))
        if deviations.max() > 0:
            parts.append((reach * float(deviations.max()), _mixture_cdf(deviations)))
    if not parts:
        return None
    points = _POINTS << max(0, (len(parts) - 1).bit_length() - 2)
    step = 2 * sum(size for size, _ in parts) / (points - 2 * len(parts))
    edges = (np.arange(points // 2 + 1, dtype=np.float64) + 0.5) * step  # all laws are symmetric
    product = np.ones(points // 2 + 1, dtype=np.complex128)
    for _, cdf in parts:
        above = np.diff(cdf(edges), prepend=0.5)
        middle = 2 * above[:1]
        product *= np.fft.rfft(np.concatenate([middle, above[1:], above[-2:0:-1]]))
    masses = np.fft.irfft(product, points)[: points // 2]  # zero and what lies above it
    return _Size(step, np.concatenate([masses[:1], 2 * masses[1:]]))


def _cdf_of(law: NoiseLaw) -> Cdf:
    epsilon = float(law.epsilon)
    if law.name == "staircase":
        return lambda values: staircase_cdf(values / law.unit, epsilon)
    scale = law.unit / epsilon

    def laplace(values: Floats) -> Floats:
        tail = np.exp(-np.abs(values) / scale) / 2
        return np.where(values >= 0, 1 - tail, tail)

    return laplace


def _mixture_cdf(deviations: Floats) -> Cdf:
    kept = np.maximum(deviations, 1e-12 * float(deviations.max()))

    def mixture(values: Floats) -> Floats:
        total = np.zeros_like(values)
        for deviation in kept.tolist():
            total += ndtr(values / deviation)
        return total / kept.size

    return mixture


def law_draws(law: NoiseLaw, uniform: Floats) -> Floats:
    """Turn uniform variables into draws of a noise, for simulations on released numbers.

    Staircases are read off 4096 quantiles of their size, finer than simulations can tell.
    """
    if not _is_felt(law):
        return np.zeros_like(uniform)
    size = np.abs(2 * uniform - 1)
    if law.name == "laplace":
        reach = -np.log1p(-size) / float(law.epsilon)
    else:
        known = (np.arange(_TABLE) + 0.5) / _TABLE
        quantiles = [staircase_quantile(share, float(law.epsilon)) for share in known.tolist()]
        reach = np.interp(size, known, quantiles)
    draws: Floats = law.unit * np.sign(uniform - 0.5) * reach
    return draws
