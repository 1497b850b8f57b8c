"""Every mechanism of the choke point, with the two checks that each must come with.

A new public method of ``Noise`` needs an entry in ``MECHANISMS``; ``tests/meta/test_mechanisms.py``
fails without one. An entry cannot be written without

- ``draw`` and ``law``: draws of the noise for a given sensitivity, and a p-value of such draws
  under the law that the proof speaks of, computed without the package. Run with the sensitivity
  that is declared the law must hold; run with one a quarter too small it must be rejected;
- ``neighbours`` and ``call``: two inputs exactly as far apart as the metric allows, and a call on
  one of them. The replay must find nothing, and must find a sensitivity declared too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from oracles import staircase_probabilities
from private_ate.privacy.accounting import discrete_gaussian_variance, smoothing_rate
from private_ate.privacy.joint import JointRule
from private_ate.privacy.metrics import Metric
from private_ate.privacy.noise import Noise
from private_ate.privacy.objective import LOGISTIC, LossBounds
from private_ate.privacy.trimmed_mean import CentreRule

ONE = Fraction(1)
SMALL = Fraction(1, 10**6)
LARGE = Fraction(100)
FINE = 5 << 10  # so fine a grid that some draws cannot tell the continuous law from the discrete
SQUARE = 1 << 22
BOUND = 160  # a private one, of which nothing is remembered between draws: coarser is faster
DRAWS = 1500


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What a mechanism is checked with; ``declared`` is the sensitivity it is honest with."""

    metric: Metric
    declared: int
    draw: Callable[[Noise, int], np.ndarray]
    law: Callable[[np.ndarray], float]
    neighbours: tuple[Any, Any]
    call: Callable[[Noise, Any, int], object]

    @property
    def too_small(self) -> int:
        """A sensitivity that is a quarter too small, the planted fault."""
        return self.declared * 3 // 4


def symmetric(drawn: np.ndarray, sizes: Callable[[np.ndarray], float]) -> float:
    """Return the p-value of the sizes and of the signs, twice the smaller one."""
    heads = int((drawn > 0).sum())
    return 2 * min(sizes(np.abs(drawn)), stats.binomtest(heads, drawn.size).pvalue)


def laplace_law(scale: float, unit: float = 2.0):
    """Return the test of ``unit`` times a Laplace variable of this scale."""
    return lambda drawn: symmetric(
        drawn, lambda sizes: stats.kstest(sizes / (unit * scale), stats.expon.cdf).pvalue
    )


def staircase_law(sensitivity: int, epsilon: float):
    """Return the χ² test of half-step staircase noise of the best inner width."""
    inner = round(sensitivity / (1 + math.exp(epsilon / 2)))
    law = staircase_probabilities(sensitivity, epsilon, inner, 12 * sensitivity)
    points = sorted(law)

    def fit(drawn: np.ndarray) -> float:
        counts = np.array([np.count_nonzero(drawn == point) for point in points])
        expected = np.array([law[point] for point in points]) * drawn.size
        common = expected > 5
        observed = np.append(counts[common], drawn.size - counts[common].sum())
        wanted = np.append(expected[common], drawn.size - expected[common].sum())
        return float(stats.chisquare(observed, wanted).pvalue)

    return fit


def normal_law(deviation: float):
    """Return the test of a normal variable; the grid is far finer than its deviation."""
    return lambda drawn: symmetric(
        drawn, lambda sizes: stats.kstest(sizes / deviation, stats.halfnorm.cdf).pvalue
    )


def share_law(probability: float):
    """Return the test of yes-or-no draws."""
    return lambda drawn: stats.binomtest(int(drawn.sum()), drawn.size, probability).pvalue


def frequency_law(shares: list[float]):
    """Return the χ² test of codes that should have these shares."""
    wanted = np.array(shares)
    return lambda drawn: float(
        stats.chisquare(
            np.bincount(drawn, minlength=wanted.size), wanted * drawn.size / wanted.sum()
        ).pvalue
    )


def radius_law(dimension: int, scale: float):
    """Return the test of the largest coordinate under the L∞ law ∝ exp(−max|v|/scale)."""
    return lambda drawn: float(
        stats.kstest(np.abs(drawn).max(axis=1) / scale, stats.gamma(dimension).cdf).pvalue
    )


def repeated(call: Callable[[Noise, int], object], draws: int = DRAWS):
    """Return draws of a mechanism that answers one number or a short vector at a time."""
    return lambda noise, size: np.array(
        [np.asarray(call(noise, size), dtype=np.float64) for _ in range(draws)]
    ).squeeze()


@dataclass(frozen=True, slots=True)
class Flat:
    """An objective whose loss is a plane, so that its minimiser under a ridge is known exactly."""

    slope: tuple[float, ...]
    size: int = 100
    loss_bounds: LossBounds = LOGISTIC

    @property
    def dimension(self) -> int:
        return len(self.slope)

    def gradient(self, point: np.ndarray) -> np.ndarray:
        return np.array(self.slope) + 0 * point

    def minimize(self, tilt: Any) -> np.ndarray:
        return -(np.array(self.slope) + tilt.linear) / tilt.ridge


def objective_law(dimension: int, changes: int):
    """Return the test of −b/Λ: of 99 % of ε nine tenths pay for b; Λ is 1 where ε is large."""
    assert dimension / (4 * math.expm1(0.099 * LARGE / changes)) < 1
    return radius_law(dimension, 2 * changes / (0.99 * 0.9 * LARGE))


def call_smooth(mechanism: str, **more: Any):
    """Return a call whose private bound is the given one times a share of an honest one."""

    def call(noise: Noise, values: tuple[int, int], size: int) -> object:
        value, bound = values
        scaled = bound * size // BOUND
        return getattr(noise, mechanism)("x", value, smooth=scaled, epsilon=ONE, **more)

    return call


def smooth_neighbours(delta: Fraction) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return values one bound apart whose bounds differ by as much as they may."""
    larger = math.floor(BOUND * math.exp(smoothing_rate(ONE, delta)))
    return (0, BOUND), (BOUND, larger)


def draw_cubes(noise: Noise, size: int) -> np.ndarray:
    """Return the second row of a table whose sensitivities are as one to two to a thousand."""
    scales = [1, 2, 1000]
    _, drawn = noise.cubes(
        "x", [[0, 0, 0]] * 2, epsilon=ONE,
        sensitivities=[[1, 1, 1], [size * scale for scale in scales]],
    )  # fmt: skip
    return np.array(drawn) / scales


GAUSSIAN_DEVIATION = math.sqrt(
    discrete_gaussian_variance(ONE, SMALL, sensitivity=FINE, dimension=1)
)

RANKED = np.arange(-40, 41)
MEDIAN = CentreRule(np.array([0, 32]), bound=100, trim=40)

# Eighty blocks that agree on 0, of which 500 is 72 blocks away and 0 itself 17.
AGREED = np.tile([0, 10, 0, 0, 0], (80, 1))
JOINT = JointRule(CentreRule(np.array([0, 500]), 1000, 8), (10,), 1, False, False)

MECHANISMS: dict[str, Mechanism] = {
    "laplace": Mechanism(
        Metric.L1,
        FINE,
        repeated(lambda noise, size: noise.laplace("x", [0], sensitivity=size, epsilon=ONE)),
        laplace_law(FINE),
        ([0, 0, 5], [FINE // 2, -FINE // 2, 5]),
        lambda noise, x, size: noise.laplace("x", x, sensitivity=size, epsilon=ONE),
    ),
    "laplace_disjoint": Mechanism(
        Metric.SHARES,
        FINE,
        repeated(
            lambda noise, size: noise.laplace_disjoint(
                "x", [0, 0], sensitivities=[1, size], epsilon=ONE
            )[1:]
        ),
        laplace_law(FINE),
        ([0, 0], [FINE // 2, FINE]),
        lambda noise, x, size: noise.laplace_disjoint(
            "x", x, sensitivities=[size, 2 * size], epsilon=ONE
        ),
    ),
    "laplace_rows": Mechanism(
        Metric.L1,
        FINE,
        lambda noise, size: noise.laplace_rows(
            "x", np.zeros(DRAWS, np.int64), sensitivity=size, epsilon=ONE
        ).astype(np.float64),
        laplace_law(FINE),
        (np.zeros(100, np.int64), np.array([FINE // 4] * 4 + [0] * 96)),
        lambda noise, x, size: noise.laplace_rows("x", x, sensitivity=size, epsilon=ONE),
    ),
    "randomized_response": Mechanism(
        Metric.L1,
        4,
        lambda noise, size: noise.randomized_response(
            "x", np.zeros(30_000, bool), changes=size, epsilon=ONE
        ),
        share_law(1 / (1 + math.exp(1 / 4))),
        (np.zeros(70, bool), np.arange(70) < 4),
        lambda noise, x, size: noise.randomized_response("x", x, changes=size, epsilon=ONE),
    ),
    "generalized_response": Mechanism(
        Metric.PLACES,
        4,
        lambda noise, size: noise.generalized_response(
            "x", np.full(60_000, 2, np.uint8), arms=4, changes=size, epsilon=ONE
        ),
        frequency_law([1, 1, math.exp(1 / 4), 1]),
        (np.zeros(70, np.uint8), np.where(np.arange(70) < 4, 2, 0).astype(np.uint8)),
        lambda noise, x, size: noise.generalized_response(
            "x", x, arms=3, changes=size, epsilon=ONE
        ),
    ),
    "staircase": Mechanism(
        Metric.L1,
        12,
        repeated(lambda noise, size: noise.staircase("x", 0, sensitivity=size, epsilon=ONE), 2000),
        staircase_law(12, 1.0),
        (-3, 9),
        lambda noise, x, size: noise.staircase("x", x, sensitivity=size, epsilon=ONE),
    ),
    "staircase_disjoint": Mechanism(
        Metric.ONE_OF,
        12,
        repeated(
            lambda noise, size: noise.staircase_disjoint(
                "x", [0, 0], sensitivities=[1, size], epsilon=ONE
            )[1:],
            2000,
        ),
        staircase_law(12, 1.0),
        ([7, 0], [7, 24]),
        lambda noise, x, size: noise.staircase_disjoint(
            "x", x, sensitivities=[size, 2 * size], epsilon=ONE
        ),
    ),
    "staircase_by_arm": Mechanism(
        Metric.MOVES,
        12,
        repeated(
            lambda noise, size: noise.staircase_by_arm(
                "x", [0, 0], sensitivities=[1, size], moves=2, epsilon=2 * ONE
            )[1:],
            2000,
        ),
        staircase_law(12, 1.0),
        ([7, 0, 3], [19, -24, 3]),  # a row goes from the second arm to the first
        lambda noise, x, size: noise.staircase_by_arm(
            "x", x, sensitivities=[size, 2 * size, size], moves=2, epsilon=ONE
        ),
    ),
    "cube": Mechanism(
        Metric.LINF,
        FINE,
        repeated(
            lambda noise, size: noise.cube("x", [0, 0, 0], sensitivity=size, epsilon=ONE), 500
        ),
        radius_law(3, 2.0 * FINE),
        ([0, 0, 0], [FINE, -FINE, FINE]),
        lambda noise, x, size: noise.cube("x", x, sensitivity=size, epsilon=ONE),
    ),
    "cubes": Mechanism(
        Metric.GROUPS,
        FINE,
        repeated(draw_cubes, 500),
        radius_law(3, 2.0 * FINE),
        # Three quarters of a person's rows move the first arm's sums, one quarter the second's.
        ([[0, 0], [5, 5]], [[3 * FINE // 4, -3 * FINE // 2], [5 + FINE // 4, 5]]),
        lambda noise, x, size: noise.cubes(
            "x", x, sensitivities=[[size, 2 * size], [size, size]], epsilon=ONE
        ),
    ),
    "objective": Mechanism(
        Metric.GRADIENT,
        4,
        repeated(
            lambda noise, size: noise.objective("x", Flat((0.0,) * 3), changes=size, epsilon=LARGE),
            500,
        ),
        objective_law(3, 4),
        (Flat((0.0, 0.0)), Flat((8.0, -8.0))),
        lambda noise, x, size: noise.objective("x", x, changes=size, epsilon=ONE),
    ),
    "trimmed_centre": Mechanism(
        Metric.PLACES,
        8,
        repeated(
            lambda noise, size: noise.trimmed_centre(
                "x", RANKED, rule=MEDIAN, changes=size, epsilon=ONE
            ),
            2000,
        ),
        # The candidate 32 lies 32 ranks from the median of −40…40.
        lambda drawn: share_law(1 / (1 + math.exp(2)))(drawn == 32),
        (RANKED, np.where(np.arange(81) < 8, 40, RANKED)),
        lambda noise, x, size: noise.trimmed_centre("x", x, rule=MEDIAN, changes=size, epsilon=ONE),
    ),
    "joint_centres": Mechanism(
        Metric.ROWS,
        8,
        repeated(
            lambda noise, size: noise.joint_centres(
                "x", AGREED, rule=JOINT, changes=size, epsilon=ONE
            ).centres[0],
            2000,
        ),
        lambda drawn: share_law(1 / (1 + math.exp(55 / 16)))(drawn == 500),
        (AGREED, np.where(np.arange(80)[:, None] < 8, [500, 10, 0, 0, 0], AGREED)),
        lambda noise, x, size: noise.joint_centres(
            "x", x, rule=JOINT, changes=size, epsilon=ONE
        ).centres[0],
    ),
    "choose": Mechanism(
        Metric.LINF,
        8,
        repeated(
            lambda noise, size: noise.choose("x", [0, 32], sensitivity=size, epsilon=ONE), 2000
        ),
        share_law(1 / (1 + math.exp(-2))),
        ([0, 1, 2], [8, 9, -6]),
        lambda noise, x, size: noise.choose("x", x, sensitivity=size, epsilon=ONE),
    ),
    "gaussian": Mechanism(
        Metric.L2,
        FINE,
        repeated(
            lambda noise, size: noise.gaussian(
                "x", [0], sensitivity=size, epsilon=ONE, delta=SMALL
            ),
            700,
        ),
        normal_law(GAUSSIAN_DEVIATION),
        ([0, 0], [3 * FINE // 5, 4 * FINE // 5]),
        lambda noise, x, size: noise.gaussian("x", x, sensitivity=size, epsilon=ONE, delta=SMALL),
    ),
    "gaussian_cells": Mechanism(
        Metric.L2_SQUARED,
        SQUARE,
        lambda noise, size: noise.gaussian_cells(
            "x", np.zeros(20_000, np.int64), squared_sensitivity=size, rho=ONE / 2
        ).astype(np.float64),
        normal_law(math.sqrt(SQUARE)),
        (np.zeros(9, np.int64), np.array([1024] * 4 + [0] * 5)),
        lambda noise, x, size: noise.gaussian_cells("x", x, squared_sensitivity=size, rho=ONE / 2),
    ),
    "select": Mechanism(
        Metric.LINF,
        8,
        repeated(
            lambda noise, size: noise.select("x", [0, 16], sensitivity=size, rho=ONE / 2), 2000
        ),
        share_law(1 / (1 + math.exp(-2))),
        ([0, 1, 2], [8, 9, -6]),
        lambda noise, x, size: noise.select("x", x, sensitivity=size, rho=ONE / 2),
    ),
    "smooth_laplace": Mechanism(
        Metric.SMOOTH,
        BOUND,
        repeated(
            lambda noise, size: noise.smooth_laplace("x", 0, smooth=size, epsilon=ONE, delta=SMALL),
            1200,
        ),
        laplace_law(2.0 * BOUND),
        smooth_neighbours(SMALL),
        call_smooth("smooth_laplace", delta=SMALL),
    ),
    "smooth_cauchy": Mechanism(
        Metric.SMOOTH,
        BOUND,
        repeated(lambda noise, size: noise.smooth_cauchy("x", 0, smooth=size, epsilon=ONE), 6000),
        lambda drawn: symmetric(
            drawn, lambda sizes: stats.kstest(sizes / (4 * BOUND), stats.halfcauchy.cdf).pvalue
        ),
        smooth_neighbours(Fraction(0)),
        call_smooth("smooth_cauchy"),
    ),
}
