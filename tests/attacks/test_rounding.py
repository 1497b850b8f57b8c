"""Rounding adds a step for each coordinate, and every vector's declaration pays for it.

A fitted vector is put on a grid: two vectors at L1 distance s may end up ``s + d`` steps apart.
The fits below are steered to where that happens; a declaration without the ``+ d`` is found.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from studies import make_study

from private_ate.baselines.steps import Budget, release_vector
from private_ate.methods.published import matching
from private_ate.methods.published.matching import ScoreNoise, release_model
from private_ate.models.propensity import SOLVER_GRADIENT, PropensityModel
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.objective import ObjectiveCalibration
from replay import Recording, broken_promises, moved_share

RIDGE = 0.01


def weights_sensitivity(size, dimension, ridge, rows):
    """Return the L1 sensitivity of the fitted weights, as docs/proofs/propensity.md derives it."""
    return (
        rows * 2 * dimension / (size * ridge) + 2 * math.sqrt(dimension) * SOLVER_GRADIENT / ridge
    )


def straddling(distance, grid, dimension):
    """Return two vectors at an L1 distance whose rounding moves every coordinate apart.

    The first lies a hair below a half step, the second a hair above one, as far away as allowed.
    """
    hair = 2.0**-8
    whole = math.floor(distance / grid / dimension)  # steps of a coordinate
    one = np.full(dimension, 0.5 - hair)
    other = np.full(dimension, 0.5 + hair + whole - 1)
    left = distance / grid - float(np.abs(other - one).sum())
    other[0] += math.floor(left)
    return one * grid, other * grid


@pytest.mark.parametrize("rows", [1, 3])
def test_weights_that_round_apart_stay_within_what_is_declared(monkeypatch, rows):
    study = make_study()
    dimension = study.dimension + 1
    distance = weights_sensitivity(study.size, dimension, RIDGE, rows)
    grid = 2.0 ** (math.floor(math.log2(distance)) - 20)
    first, second = Recording(), Recording()
    for recording, weights in zip(
        (first, second), straddling(distance, grid, dimension), strict=True
    ):
        fit = PropensityModel.from_coordinates(weights, 2)
        monkeypatch.setattr(matching, "fit_propensity_obliviously", lambda *_, fit=fit: fit)
        noise = Noise(SeededEntropy(1), recording)
        release_model(study, RIDGE, Fraction(1), rows, noise)

    assert broken_promises(first, second) == []
    moved = moved_share(first.calls[0], second.calls[0]) * first.spends[0].sensitivity[0]
    assert moved > distance / grid + 1  # rounding did move them beyond the distance itself


@pytest.mark.parametrize("rows", [1, 3])
def test_the_declared_steps_of_the_weights_are_those_of_the_proof(rows):
    study, recording = make_study(), Recording()
    dimension = study.dimension + 1

    release_model(study, RIDGE, Fraction(1), rows, Noise(SeededEntropy(1), recording))

    distance = Fraction(weights_sensitivity(study.size, dimension, RIDGE, rows))
    grid = Fraction(2) ** (math.floor(math.log2(distance)) - 20)
    assert recording.spends[0].sensitivity == (math.ceil(distance / grid) + dimension,)


@pytest.mark.parametrize("dimension", [1, 5, 40])
def test_the_last_rounding_of_an_objective_pays_a_step_for_each_weight(dimension):
    law = ObjectiveCalibration(dimension, 1000, 1, Fraction(1), Fraction(1, 10), Fraction(1, 100))
    distance = float(law._distance)
    one, other = straddling(distance, float(law.grid), dimension)

    steps = sum(abs(a - b) for a, b in zip(law.steps(one), law.steps(other), strict=True))

    assert float(np.abs(one - other).sum()) <= distance
    assert distance / float(law.grid) < steps <= law.sensitivity


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
def test_vectors_of_the_baselines_that_round_apart_stay_within_what_is_declared(delta):
    first, second = Recording(), Recording()
    dimension, distance = 6, 1.0
    measured = Recording()
    budget = Budget(Fraction(1), delta, "")
    release_vector(
        Noise(SeededEntropy(1), measured), "x", np.ones(dimension), sensitivity=distance,
        budget=budget,
    )  # fmt: skip
    grid = 1 / float(measured.inputs[0][0])
    length = distance * math.sqrt(dimension)  # the L1 distance of an L2 distance spread evenly
    for recording, vector in zip((first, second), straddling(length, grid, dimension), strict=True):
        noise = Noise(SeededEntropy(1), recording)
        release_vector(noise, "x", vector, sensitivity=distance, budget=budget)

    assert broken_promises(first, second) == []
    if delta:  # Laplace has a slack of 1e-9 beside the rounding
        assert moved_share(first.calls[0], second.calls[0]) > 1 - 2.0**-38


@pytest.mark.parametrize("rows", [1, 3])
def test_scores_of_several_arms_that_round_up_together_stay_within_what_is_declared(rows):
    scores = ScoreNoise(Fraction(rows, 10), rows, arms=4)
    grid = 1 << scores.bits
    # Three scores lie just above a half step: all four add up to one, and rounded to more.
    third = (grid - 2) / 3 + 0.51
    spread = np.array([[third], [third], [third], [grid - 3 * third]])
    alone = np.array([[0.0], [0.0], [0.0], [grid]])
    first, second = Recording(), Recording()
    for recording, exact in zip((first, second), (spread, alone), strict=True):
        steps = np.repeat(np.rint(exact).astype(np.int64), rows, axis=1)
        answer = scores.add(steps, Noise(SeededEntropy(1), recording))
        assert answer.shape == (4, rows)

    assert broken_promises(first, second) == []
    moved = moved_share(first.calls[0], second.calls[0]) * first.spends[0].sensitivity[0]
    assert moved > rows * 2 * grid >= rows * np.abs(spread - alone).sum()
