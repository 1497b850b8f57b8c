"""Objective perturbation of several arms: the law's public numbers, and the solver on hard data."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.models.private_logistic import PrivateFit
from private_ate.models.private_multinomial import (
    MultinomialObjective,
    release_private_multinomial,
)
from private_ate.models.standardization import Scaling
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.linf_noise import helmert, zero_sum_linf
from private_ate.privacy.noise import Noise
from private_ate.privacy.objective import ArmObjectiveCalibration
from replay import Recording, broken_promises


def study_of(covariates, arm, arms=3, present=None):
    names = {f"x{j}": Interval(0, 1) for j in range(covariates.shape[0])}
    domain = Domain(Treatment("t", arms=tuple(map(str, range(arms)))), ("y", Interval(0, 1)), names)
    codes = np.asarray(arm, dtype=np.uint8)
    return LocalStudy(domain, covariates, codes, None, takes_part=present)


def identity(dimension):
    return Scaling(np.full(dimension, 2.0), np.full(dimension, -1.0))


def objective_of(covariates, arm, arms=3, present=None):
    study = study_of(covariates, arm, arms, present)
    return MultinomialObjective(study, identity(study.dimension), arms)


def hard_studies(rows=2000):
    rng = np.random.default_rng(0)
    x = rng.random((4, rows))
    ends = (x > 0.5).astype(float)
    third = (3 * x[0]).astype(int)
    yield "random", x, (third + rng.integers(0, 2, rows)) % 3
    yield "separable", x, third
    yield "separable by a hair", 0.5 + 1e-6 * (x - 0.5), third
    yield "separable at the ends", ends, ends[0] + ends[1]
    yield "one exception", ends, np.where(np.arange(rows) == 7, 2, ends[0])
    yield "constant", np.full((4, rows), 0.5), third
    yield "collinear", np.repeat(x[:1], 4, axis=0), third
    yield "one arm only", x, np.full(rows, 1)
    yield "an empty arm", x, 2 * (x[0] > rng.random(rows))


@pytest.mark.parametrize("epsilon", ["0.01", "1", "1000000"])
@pytest.mark.parametrize(
    ("covariates", "arm"),
    [case[1:] for case in hard_studies()],
    ids=[case[0] for case in hard_studies()],
)
def test_the_solver_meets_its_tolerance_without_extra_passes(monkeypatch, epsilon, covariates, arm):
    monkeypatch.setattr("private_ate.models.private_logistic._EXTRA_PASSES", 0)
    monkeypatch.setattr(PrivateFit, "_walk", lambda _self, start, _tilt: start)
    objective = objective_of(covariates, arm)
    law = ArmObjectiveCalibration.by_arm(objective, 1, Fraction(epsilon))
    tilt = law.perturbation_by_arm(zero_sum_linf(3, 5, SeededEntropy(1)))

    weights = objective.minimize(tilt)

    gradient = objective.gradient(weights) + tilt.ridge * weights + tilt.linear
    assert np.linalg.norm(gradient) <= tilt.tolerance


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_where_newtons_steps_do_not_arrive_the_tolerance_is_met_all_the_same(monkeypatch, arms):
    monkeypatch.setattr(PrivateFit, "_newton", lambda _self, _rows, state, *_, **__: state)
    x = np.random.default_rng(arms).random((2, 60))
    objective = objective_of(x, (arms * x[0]).astype(int), arms)
    law = ArmObjectiveCalibration.by_arm(objective, 1, Fraction(1))
    tilt = law.perturbation_by_arm(zero_sum_linf(arms, 3, SeededEntropy(1)))

    weights = objective.minimize(tilt)

    gradient = objective.gradient(weights) + tilt.ridge * weights + tilt.linear
    assert np.linalg.norm(gradient) <= tilt.tolerance


@pytest.mark.parametrize("arms", [3, 20])
def test_the_rounding_of_a_gradient_is_within_the_tolerance(arms):
    rng = np.random.default_rng(arms)
    objective = objective_of(rng.random((3, 500)), rng.integers(0, arms, 500), arms)
    law = ArmObjectiveCalibration.by_arm(objective, 1, Fraction(1, 10))
    for size in (0.1, 10.0, 1000.0):
        point = size * rng.standard_normal(objective.dimension)
        point *= min(1.0, np.sqrt(1000 * np.log(arms) / law.ridge) / np.linalg.norm(point))

        wide = point.astype(np.longdouble).reshape(arms - 1, -1)
        basis = helmert_in_long_doubles(arms)
        design = np.vstack([np.ones(500), 2 * objective.study.covariates - 1])
        design = design.astype(np.longdouble)
        linear = (basis.T @ wide) @ design
        shares = np.exp(linear - linear.max(axis=0))
        shares /= shares.sum(axis=0)
        shares[objective.study.arm, np.arange(500)] -= 1
        exact = (basis @ (shares @ design.T)).ravel()

        error = float(np.linalg.norm(objective.gradient(point) - exact))
        assert 0 < error <= law.tolerance


def helmert_in_long_doubles(arms):
    basis = np.zeros((arms - 1, arms), dtype=np.longdouble)
    for row in range(arms - 1):
        root = np.sqrt(np.longdouble((row + 1) * (row + 2)))
        basis[row, : row + 1], basis[row, row + 1] = -1 / root, (row + 1) / root
    return basis


def test_the_minimiser_is_that_of_an_independent_solver_and_rows_without_part_are_left_out():
    rng = np.random.default_rng(1)
    x, arm, present = rng.random((2, 400)), rng.integers(0, 4, 400), rng.random(400) < 0.8
    objective = objective_of(x, arm, 4, present)
    law = ArmObjectiveCalibration.by_arm(objective, 1, Fraction(1))
    tilt = law.perturbation_by_arm(zero_sum_linf(4, 3, SeededEntropy(2)))
    design = np.vstack([np.ones(400), 2 * x - 1])[:, present]
    basis = helmert(4)

    def loss(point):
        linear = basis.T @ point.reshape(3, 3) @ design
        chosen = linear[arm[present], np.arange(design.shape[1])]
        value = (logsumexp(linear, axis=0) - chosen).sum()
        return value + tilt.ridge / 2 * point @ point + tilt.linear @ point

    reference = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-5}).x

    assert np.allclose(objective.minimize(tilt), reference, atol=1e-5)


@pytest.mark.parametrize("arms", [2, 3, 10])
@pytest.mark.parametrize("changes", [1, 3])
def test_the_parts_of_the_law_add_up_and_the_ridge_keeps_its_promise(arms, changes):
    objective = objective_of(np.zeros((4, 10)), np.zeros(10), arms)
    law = ArmObjectiveCalibration.by_arm(objective, changes, Fraction(1))

    assert law.linear + law.curvature + law.smoothing == 1
    assert (law.columns, law.dimension) == (5, 5 * (arms - 1))
    growth = changes * (arms - 1) * np.log1p(law.columns / (arms * law.ridge))
    assert growth <= float(law.curvature)
    assert growth == pytest.approx(float(law.curvature), rel=1e-6)
    assert law.radius_unit == 4 * changes / law.linear


def test_the_final_rounding_is_out_of_sight():
    rng = np.random.default_rng(2)
    objective = objective_of(rng.random((4, 3000)), rng.integers(0, 4, 3000), 4)
    law = ArmObjectiveCalibration.by_arm(objective, 1, Fraction(1))

    assert float(law.sensitivity * law.grid / law.smoothing) < 1e-3


def test_a_release_is_a_model_of_all_arms_and_costs_what_was_asked_for():
    rng = np.random.default_rng(3)
    study = study_of(rng.random((2, 300)), rng.integers(0, 3, 300))
    noise = Noise(SeededEntropy(0))

    model = release_private_multinomial(
        study, identity(2), noise, changes=1, epsilon=Fraction(1, 3)
    )

    assert noise.spent == Fraction(1, 3)
    assert [spend.mechanism for spend in noise.spends] == ["objective_by_arm", "laplace"]
    assert model.coefficients.shape == (3, 3)
    np.testing.assert_allclose(model.coefficients.sum(axis=0), 0, atol=1e-12)


def test_a_record_that_changes_its_arm_moves_the_gradient_by_no_more_than_declared():
    rng = np.random.default_rng(4)
    covariates, arm = rng.integers(0, 2, (2, 12)).astype(float), rng.integers(0, 3, 12)
    first = Recording()
    study = study_of(covariates, arm)
    model = release_private_multinomial(
        study, identity(2), Noise(SeededEntropy(1), first), changes=1, epsilon=Fraction(2)
    )
    for code in range(3):
        for corner in ((0, 0), (0, 1), (1, 1)):
            moved, moved_arm = covariates.copy(), arm.copy()
            moved[:, 0], moved_arm[0] = corner, code
            second = Recording(source=first)
            other = release_private_multinomial(
                study_of(moved, moved_arm), identity(2), Noise(SeededEntropy(2), second),
                changes=1, epsilon=Fraction(2),
            )  # fmt: skip

            assert broken_promises(first, second) == []
            np.testing.assert_array_equal(other.coefficients, model.coefficients)


def test_a_large_study_finds_its_arms_again():
    rng = np.random.default_rng(5)
    x = rng.random((2, 20_000))
    truth = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]])
    linear = truth @ np.vstack([np.ones(20_000), 2 * x - 1])
    arm = (linear + rng.gumbel(size=linear.shape)).argmax(axis=0)

    model = release_private_multinomial(
        study_of(x, arm), identity(2), Noise(SeededEntropy(6)), changes=1, epsilon=Fraction(1)
    )

    np.testing.assert_allclose(model.coefficients, truth, atol=0.15)
