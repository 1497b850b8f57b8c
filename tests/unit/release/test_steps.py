"""The scale that a step tells is the standard deviation of the noise that it drew."""

from fractions import Fraction

import numpy as np
import pytest

from private_ate.effects.to_release import list_steps
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise

WIDE, ONE, TINY = 5000, Fraction(1), Fraction(1, 10**6)
CLOSE = 0.1  # a standard deviation of 3000 heavy-tailed draws is this close, with these seeds
HALF = 2  # answers come in half steps, but for Gaussian noise

DRAWS = {
    "laplace": lambda noise: [
        x / HALF for x in noise.laplace("a", [0] * 3000, sensitivity=WIDE, epsilon=ONE)
    ],
    "laplace_disjoint": lambda noise: [
        x / HALF
        for x in noise.laplace_disjoint(
            "a", [0] * 3000, sensitivities=[WIDE] * 3000, epsilon=ONE
        )
    ],
    "laplace_rows": lambda noise: noise.laplace_rows(
        "a", np.zeros(3000, dtype=np.int64), sensitivity=WIDE, epsilon=ONE
    )
    / HALF,
    "staircase": lambda noise: [
        noise.staircase("a", 0, sensitivity=WIDE, epsilon=ONE) / HALF for _ in range(3000)
    ],
    "staircase_disjoint": lambda noise: [
        x / HALF
        for x in noise.staircase_disjoint(
            "a", [0] * 3000, sensitivities=[WIDE] * 3000, epsilon=ONE
        )
    ],
    "staircase_by_arm": lambda noise: [
        x / HALF
        for x in noise.staircase_by_arm(
            "a", [0] * 3000, sensitivities=[WIDE] * 3000, moves=4, epsilon=ONE
        )
    ],
    "cube": lambda noise: [
        x / HALF
        for _ in range(1500)
        for x in noise.cube("a", [0, 0, 0], sensitivity=WIDE, epsilon=ONE)
    ],
    "gaussian": lambda noise: noise.gaussian(
        "a", [0] * 3000, sensitivity=WIDE, epsilon=ONE, delta=TINY
    ),
    "gaussian_cells": lambda noise: noise.gaussian_cells(
        "a", np.zeros(3000, dtype=np.int64), squared_sensitivity=WIDE**2, rho=ONE
    ),
}  # fmt: skip


@pytest.mark.parametrize("mechanism", DRAWS)
def test_the_scale_of_a_step_is_the_standard_deviation_of_its_noise(mechanism):
    noise = Noise(SeededEntropy(5))

    drawn = np.array(DRAWS[mechanism](noise), dtype=np.float64)
    step = list_steps(noise.spends)[0]

    assert step.mechanism == mechanism
    assert drawn.std() == pytest.approx(step.scale[0], rel=CLOSE)


def test_a_step_that_chooses_or_flips_has_no_scale():
    noise = Noise(SeededEntropy(5))
    noise.choose("edge", [0, 1, 2], sensitivity=1, epsilon=ONE)
    noise.randomized_response("arms", np.array([True, False]), epsilon=ONE)

    assert [step.scale for step in list_steps(noise.spends)] == [None, None]
    assert [step.sensitivity for step in list_steps(noise.spends)] == [(1,), (1,)]


@pytest.mark.parametrize("smooth", [10, 4000])
def test_a_private_scale_is_never_told(smooth):
    noise = Noise(SeededEntropy(5))
    noise.smooth_laplace("matched", 0, smooth=smooth, epsilon=ONE, delta=TINY)
    noise.smooth_cauchy("matched", 0, smooth=smooth, epsilon=ONE)

    for step in list_steps(noise.spends):
        assert (step.sensitivity, step.scale) == (None, None)
