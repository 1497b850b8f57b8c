"""How far a sum of independent errors reaches: noises, and normals of unknown variance.

All of it follows from released numbers, so nothing here spends anything.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, assert_never

import numpy as np
from scipy.special import ndtri

from private_ate.arrays import Floats
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.privacy.quantiles import (
    linf_cdf,
    linf_quantile,
    staircase_cdf,
    staircase_quantile,
    two_laplace_quantile,
    two_staircase_quantile,
)
from private_ate.settings import IntervalRule

Cdf = Callable[[Floats], Floats]

_POINTS: Final = 1 << 13  # of the grid, for two or three errors; more have more
_STEEP: Final = 10.0
_BEYOND: Final = 1e-7  # the chance that one error lies beyond its part of the grid
_ROUNDING: Final = 1e-12  # an error smaller than this share of the largest is none
_LEAST: Final = 1e-9  # the least chance that is reported
_TABLE: Final = 4096  # quantiles of a staircase from which simulations draw


def half_width(
    coverage: float,
    noises: Sequence[NoiseDistribution],
    variances: Sequence[Sequence[float]],
    rule: IntervalRule,
) -> float:
    """Return h such that the sum of all errors is within ±h with the wanted probability.

    ``noises`` are independent; so are normal errors, one for each entry of ``variances``, which
    lists its equally likely variances. "convolved" takes the distribution of the sum, "in_squares"
    the root of both squared half-widths, which is wider.
    """
    match rule:
        case "convolved":
            return _convolved(coverage, noises, variances)
        case "in_squares":
            normal = float(ndtri((1 + coverage) / 2))
            variance = sum(sum(likely) / len(likely) for likely in variances)
            return math.hypot(normal * math.sqrt(variance), noise_half_width(coverage, noises))
    assert_never(rule)


def chance_beyond(
    size: float,
    noises: Sequence[NoiseDistribution],
    variances: Sequence[Sequence[float]],
    rule: IntervalRule,
) -> float:
    """Return the level at which :func:`half_width` is ``size``: a p-value, at least 1e-9.

    It is the chance that the sum of all errors is that large; under "in_squares" a bound on it.
    """
    if size <= 0:
        return 1.0
    if rule == "convolved":
        found = _size_of(noises, variances)
        return _LEAST if found is None else max(found.beyond(size), _LEAST)
    low, high = math.log(_LEAST), 0.0  # half-widths fall as the level grows
    for _ in range(50):
        middle = (low + high) / 2
        if half_width(-math.expm1(middle), noises, variances, rule) > size:
            low = middle
        else:
            high = middle
    return math.exp(high)


def noise_half_width(coverage: float, noises: Sequence[NoiseDistribution]) -> float:
    """Return q such that the sum of independent noises is within ±q with that probability.

    Exact for one noise and for two Laplace ones; within a few parts in a thousand for two
    staircases above ε = 10, whose stairs no grid resolves; otherwise as :func:`half_width`.
    """
    felt = _felt(noises)
    names = [noise.name for noise in felt]
    if not felt:
        return 0.0
    if len(felt) == 1:
        return felt[0].unit * noise_quantile(felt[0], coverage)
    if names == ["laplace", "laplace"] and all(noise.outcomes == 1 for noise in felt):
        first, second = (noise.unit / float(noise.epsilon) for noise in felt)
        return two_laplace_quantile(coverage, first, second)
    same = felt[0].epsilon == felt[1].epsilon
    if names == ["staircase", "staircase"] and same and felt[0].epsilon > _STEEP:
        return two_staircase_quantile(
            coverage, float(felt[0].epsilon), felt[0].unit, felt[1].unit
        )  # fmt: skip
    return _convolved(coverage, felt, ())


def expected_size(
    noises: Sequence[NoiseDistribution], variances: Sequence[Sequence[float]]
) -> float:
    """Return the expected size of the sum of all errors, as in :func:`half_width`."""
    found = _size_of(noises, variances)
    return 0.0 if found is None else found.mean


def _felt(noises: Sequence[NoiseDistribution]) -> list[NoiseDistribution]:
    """Return the noises that move a sum; weights that cancel leave some that are rounding alone."""
    felt = [noise for noise in noises if _is_felt(noise)]
    largest = max((noise.unit for noise in felt), default=0.0)
    return [noise for noise in felt if noise.unit > _ROUNDING * largest]


@dataclass(frozen=True, slots=True)
class _Size:
    """The distribution of a sum's size: chances of the bins of a grid, each about ``step`` wide."""

    step: float
    chances: Floats  # of sizes within half a bin of 0, 1, 2, … steps

    def quantile(self, coverage: float) -> float:
        """Return the size that is not exceeded with this chance."""
        within = np.cumsum(self.chances)
        edges = (np.arange(within.size) + 0.5) * self.step
        return float(np.interp(coverage * within[-1], within, edges))

    def beyond(self, size: float) -> float:
        """Return the chance of a larger size."""
        within = np.concatenate([[0.0], np.cumsum(self.chances)])
        edges = np.concatenate([[0.0], (np.arange(self.chances.size) + 0.5) * self.step])
        return 1 - float(np.interp(size, edges, within / within[-1]))

    @property
    def mean(self) -> float:
        """The expected size."""
        return float(self.chances @ np.arange(self.chances.size)) * self.step


def _convolved(
    coverage: float, noises: Sequence[NoiseDistribution], variances: Sequence[Sequence[float]]
) -> float:
    found = _size_of(noises, variances)
    return 0.0 if found is None else found.quantile(coverage)


def _size_of(
    noises: Sequence[NoiseDistribution], variances: Sequence[Sequence[float]]
) -> _Size | None:
    """Convolve the distributions on a grid; None if there is no error at all.

    Every noise is moved to the middle of its bin, so that the sum moves by at most half a bin
    for each, and the quantile with it; bins are less than a four thousandth of the errors'
    reaches together. Normals enter by their characteristic functions. Chances beyond the grid are
    1e-7 for each error. Measured against closed forms and simulations it is right to four digits
    at ε up to 10.
    """
    felt = _felt(noises)
    most = _ROUNDING * max((max(likely) for likely in variances), default=0.0)
    normals = [np.asarray(likely, dtype=np.float64) for likely in variances if max(likely) > most]
    reach = float(ndtri(1 - _BEYOND / 2))
    sizes = [noise.unit * noise_quantile(noise, 1 - _BEYOND) for noise in felt]
    sizes += [reach * math.sqrt(float(likely.max())) for likely in normals]
    if not sizes:
        return None
    points = _POINTS << max(0, (len(sizes) - 1).bit_length() - 2)
    step = 2 * sum(sizes) / (points - 2 * len(sizes))
    edges = (np.arange(points // 2 + 1, dtype=np.float64) + 0.5) * step  # all are symmetric
    product = np.ones(points // 2 + 1, dtype=np.complex128)
    for noise in felt:
        above = np.diff(_cdf_of(noise)(edges), prepend=0.5)
        middle = 2 * above[:1]
        product *= np.fft.rfft(np.concatenate([middle, above[1:], above[-2:0:-1]]))
    squared = (2 * np.pi / points * np.arange(product.size)) ** 2 / 2  # frequencies of one bin
    for likely in normals:
        bins = (np.sqrt(likely) / step) ** 2  # in bins: squares of tiny numbers would vanish
        # Beyond, every part of the mixture is below 1e-17.
        kept = int(np.searchsorted(squared * float(bins.min()), 40.0))
        product[:kept] *= np.exp(-bins[:, None] * squared[:kept]).mean(axis=0)
        product[kept:] = 0.0
    masses = np.fft.irfft(product, points)[: points // 2]  # zero and what lies above it
    return _Size(step, np.concatenate([masses[:1], 2 * masses[1:]]))


def noise_quantile(noise: NoiseDistribution, coverage: float) -> float:
    """Return q with ``P(|X| ≤ q) = coverage`` for a draw X of sensitivity one."""
    epsilon = float(noise.epsilon)
    match noise.name:
        case "laplace":
            if noise.outcomes > 1:
                return linf_quantile(coverage, noise.outcomes) / epsilon
            return -math.log1p(-coverage) / epsilon
        case "staircase":
            return staircase_quantile(coverage, epsilon)
    assert_never(noise.name)


def _is_felt(noise: NoiseDistribution) -> bool:
    """Say whether noise moves a number at all: at ε in the thousands a staircase is a point."""
    return noise.unit > 0 and noise_quantile(noise, 1 - _BEYOND) > 0


def _cdf_of(noise: NoiseDistribution) -> Cdf:
    epsilon = float(noise.epsilon)
    if noise.name == "staircase":
        return lambda values: staircase_cdf(values / noise.unit, epsilon)
    scale = noise.unit / epsilon
    if noise.outcomes > 1:
        return lambda values: linf_cdf(values / scale, noise.outcomes)

    def laplace(values: Floats) -> Floats:
        tail = np.exp(-np.abs(values) / scale) / 2
        return np.where(values >= 0, 1 - tail, tail)

    return laplace


def fixed_uniforms(name: str, rows: int, draws: int) -> Floats:
    """Return fixed uniform variables for a simulation on released numbers; they protect nothing.

    The same in every run, so that an interval is a function of what was released.
    """
    stream = hashlib.shake_128(name.encode()).digest(8 * rows * draws)
    whole = (np.frombuffer(stream, dtype="<u8") >> np.uint64(12)).astype(np.float64) + 0.5
    uniforms: Floats = whole.reshape(rows, draws) / 2.0**52
    return uniforms


def noise_draws(noise: NoiseDistribution, uniform: Floats) -> Floats:
    """Turn uniform variables into draws of a noise, for simulations on released numbers.

    Staircases and cubes are read off 4096 quantiles of their size, finer than the simulations.
    """
    if not _is_felt(noise):
        return np.zeros_like(uniform)
    size = np.abs(2 * uniform - 1)
    if noise.outcomes > 1:
        reach = np.interp(size, *_cube_table(noise.outcomes)) / float(noise.epsilon)
    elif noise.name == "laplace":
        reach = -np.log1p(-size) / float(noise.epsilon)
    else:
        reach = np.interp(size, *_quantile_table(float(noise.epsilon)))
    draws: Floats = noise.unit * np.sign(uniform - 0.5) * reach
    return draws


@lru_cache(maxsize=32)
def _quantile_table(epsilon: float) -> tuple[Floats, Floats]:
    known = (np.arange(_TABLE) + 0.5) / _TABLE
    return known, np.array([staircase_quantile(share, epsilon) for share in known.tolist()])


@lru_cache(maxsize=32)
def _cube_table(outcomes: int) -> tuple[Floats, Floats]:
    known = (np.arange(_TABLE) + 0.5) / _TABLE
    return known, np.array([linf_quantile(share, outcomes) for share in known.tolist()])
