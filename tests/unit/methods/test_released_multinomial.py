"""The model of several arms at sample level: what is declared and released."""

import math
from fractions import Fraction

import numpy as np
import pytest

from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.methods.published.matching import ScoreNoise, release_model
from private_ate.models.propensity import SOLVER_GRADIENT, fit_propensity_obliviously
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from replay import Recording, broken_promises

RIDGE = 0.01


def study_of(covariates, arm, arms):
    domain = Domain(Treatment("t", arms=tuple(map(str, range(arms)))), ("y", Interval(0, 1)))
    codes = np.asarray(arm, dtype=np.uint8)
    return LocalStudy(domain, covariates, codes.view(bool) if arms == 2 else codes, None)


def draw_study(arms, rows=60, dimension=2, seed=0):
    rng = np.random.default_rng(seed)
    return study_of(rng.random((dimension, rows)), rng.integers(0, arms, rows), arms)


def release(study, rows=1, source=None, seed=1, epsilon=Fraction(1)):
    recording = Recording(source=source)
    noise = Noise(SeededEntropy(seed), recording)
    return release_model(study, RIDGE, epsilon, rows, noise), recording


@pytest.mark.parametrize("arms", [3, 6])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_declared_steps_of_the_coordinates_are_those_of_the_proof(arms, rows):
    study = draw_study(arms)
    columns = study.dimension + 1

    _, recording = release(study, rows)

    distance = rows * columns * math.sqrt(2 * (arms - 1)) / (study.size * RIDGE)
    distance += math.sqrt((arms - 1) * columns) * SOLVER_GRADIENT / RIDGE
    grid = 2.0 ** (math.floor(math.log2(distance)) - 20)
    (declared,) = recording.spends[0].sensitivity
    assert declared == pytest.approx(distance / grid + (arms - 1) * columns, abs=1.001)
    assert declared >= distance / grid + (arms - 1) * columns


@pytest.mark.parametrize("arms", [3, 4])
def test_a_record_that_changes_everything_moves_the_model_by_no_more_than_declared(arms):
    study = draw_study(arms, rows=8)
    first, heard = release(study)
    for code in range(arms):
        for corner in ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)):
            covariates, arm = study.covariates.copy(), study.arm.copy()
            covariates[:, 0], arm[0] = corner, code
            second, replayed = release(study_of(covariates, arm, arms), source=heard, seed=2)

            assert broken_promises(heard, replayed) == []
            np.testing.assert_array_equal(second.coefficients, first.coefficients)


def test_the_released_model_has_vectors_that_add_up_to_zero():
    model, _ = release(draw_study(4))

    assert model.coefficients.shape == (4, 3)
    np.testing.assert_allclose(model.coefficients.sum(axis=0), 0, atol=1e-10)


def test_a_large_budget_releases_the_fit_itself():
    study = draw_study(3)

    model, _ = release(study, epsilon=Fraction(10**12))

    fitted = fit_propensity_obliviously(study, RIDGE, 3).coefficients
    np.testing.assert_allclose(model.coefficients, fitted, atol=1e-4)


def test_scores_of_several_arms_are_noised_for_two_and_their_rounding():
    two, four = ScoreNoise(Fraction(1, 20), 3), ScoreNoise(Fraction(1, 20), 3, arms=4)

    assert two.sensitivity == 3 << two.bits
    assert four.sensitivity == 3 * ((2 << four.bits) + 4)
