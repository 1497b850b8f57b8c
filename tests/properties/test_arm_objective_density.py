"""Lemma 2K in numbers: the density of the minimiser on neighbouring rows, with the code's ridge."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.models.private_logistic import LogisticObjective
from private_ate.models.private_multinomial import MultinomialObjective
from private_ate.models.standardization import Scaling
from private_ate.privacy.linf_noise import helmert, largest_column
from private_ate.privacy.objective import (
    ArmObjectiveCalibration,
    ObjectiveCalibration,
    Perturbation,
)


def study_of(features, arm, arms, present=None):
    """Rows of given features in [−1, 1], which the identity scaling brings back."""
    covariates = np.ascontiguousarray((np.asarray(features, dtype=float).T + 1) / 2)
    names = {f"x{j}": Interval(0, 1) for j in range(covariates.shape[0])}
    domain = Domain(Treatment("t", arms=tuple(map(str, range(arms)))), ("y", Interval(0, 1)), names)
    codes = np.asarray(arm, dtype=np.uint8)
    return LocalStudy(
        domain, covariates, codes.view(bool) if arms == 2 else codes, None,
        takes_part=None if present is None else np.asarray(present),
    )  # fmt: skip


def identity(dimension):
    return Scaling(np.full(dimension, 2.0), np.full(dimension, -1.0))


def objective_of(features, arm, arms, present=None):
    study = study_of(features, arm, arms, present)
    return MultinomialObjective(study, identity(study.dimension), arms)


def log_parts(objective, law, point):
    """Return both parts of the ideal minimiser's log density: that of b, and the log Jacobian."""
    sums = objective.sums(objective.study, point, curved=True)
    linear = -sums.gradient - law.ridge * point
    curvature = sums.hessian + law.ridge * np.eye(point.size)
    size = largest_column(linear, objective.arms)
    return -size / float(law.radius_unit), np.linalg.slogdet(curvature)[1]


def losses(one, other, law, point):
    """Return how far either part differs between two data sets."""
    parts = zip(log_parts(one, law, point), log_parts(other, law, point), strict=True)
    return [abs(before - after) for before, after in parts]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 5),
    st.sampled_from(["0.05", "1", "8"]),
    st.integers(1, 3),
    st.floats(0.01, 8),
)
def test_the_density_ratio_of_neighbours_stays_within_the_budget(
    seed, arms, epsilon, changes, size
):
    rng = np.random.default_rng(seed)
    rows, dimension = int(rng.integers(changes, 20)), int(rng.integers(1, 4))
    # Corners of the domain, where neighbours are as far apart as they can be.
    features, arm = rng.choice([-1.0, 1.0, 0.3], (rows, dimension)), rng.integers(0, arms, rows)
    moved, moved_arm, present = features.copy(), arm.copy(), np.ones(rows, dtype=bool)
    moved[:changes] = rng.choice([-1.0, 1.0, 0.0], (changes, dimension))
    moved_arm[:changes] = rng.integers(0, arms, changes)
    present[:changes] = rng.random(changes) < 0.8
    one = objective_of(features, arm, arms)
    other = objective_of(moved, moved_arm, arms, present)
    law = ArmObjectiveCalibration.by_arm(one, changes, Fraction(epsilon))

    linear, curvature = losses(one, other, law, size * rng.standard_normal(one.dimension))

    assert linear <= float(law.linear) * (1 + 1e-9)
    assert curvature <= float(law.curvature) * (1 + 1e-9)


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_the_budget_of_the_linear_term_is_used_up_somewhere(arms):
    half = 1000
    # The second feature decides between the first and the last arm, and every row is in the other
    # one of these; the first feature's column adds up, the constant's cancels.
    features = np.repeat([[1.0, 0.1], [-1.0, -0.1]], half, axis=0)
    arm = np.repeat([arms - 1, 0], half)
    moved = features.copy()
    moved[0, 0] = -1.0
    one, other = objective_of(features, arm, arms), objective_of(moved, arm, arms)
    law = ArmObjectiveCalibration.by_arm(one, 1, Fraction(100))
    weights = np.zeros((arms, 3))
    weights[0, 2], weights[-1, 2] = 200.0, -200.0

    linear, _ = losses(one, other, law, (helmert(arms) @ weights).ravel())

    assert linear == pytest.approx(float(law.linear), rel=1e-6)


@pytest.mark.parametrize("arms", [2, 3, 5])
@pytest.mark.parametrize("changes", [1, 2])
def test_the_budget_of_the_ridge_is_used_up_somewhere(arms, changes):
    features, arm = np.ones((changes, 3)), np.zeros(changes)
    one = objective_of(features, arm, arms)
    other = objective_of(features, arm, arms, np.zeros(changes, dtype=bool))  # takes no part
    law = ArmObjectiveCalibration.by_arm(one, changes, Fraction(1, 100))

    _, curvature = losses(one, other, law, np.zeros(one.dimension))

    # Several rows at one place: a little less, as the second finds the first's curvature there.
    assert curvature == pytest.approx(float(law.curvature), rel=1e-6 if changes == 1 else 0.01)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.floats(0.01, 5))
def test_the_solver_inverts_the_map_of_the_proof(seed, arms, size):
    rng = np.random.default_rng(seed)
    objective = objective_of(rng.uniform(-1, 1, (40, 3)), rng.integers(0, arms, 40), arms)
    law = ArmObjectiveCalibration.by_arm(objective, 1, Fraction(2))
    point = size * rng.standard_normal(objective.dimension)
    linear = -objective.gradient(point) - law.ridge * point

    found = objective.minimize(Perturbation(linear, law.ridge, law.tolerance))

    assert np.allclose(found, point, rtol=0, atol=2 * law.tolerance / law.ridge + 1e-12)


@pytest.mark.parametrize("epsilon", ["0.05", "1", "40"])
def test_two_arms_have_the_ridge_the_scale_and_the_minimiser_of_the_logistic_objective(epsilon):
    rng = np.random.default_rng(3)
    study = study_of(rng.uniform(-1, 1, (60, 2)), rng.integers(0, 2, 60), 2)
    ours = MultinomialObjective(study, identity(2), 2)
    theirs = LogisticObjective(study, identity(2), "treatment")
    law = ArmObjectiveCalibration.by_arm(ours, 2, Fraction(epsilon))
    binary = ObjectiveCalibration.of(theirs, 2, Fraction(epsilon))

    # b = (−b₁, b₁) has a largest column of 2·max|b₁|, and ‖W‖² is half of ‖w₁ − w₀‖².
    assert law.radius_unit == 2 * binary.radius_unit
    assert law.ridge == pytest.approx(2 * binary.ridge, rel=1e-12)

    drawn = [Fraction(1, 3), Fraction(-2), Fraction(1, 2)]
    tilt = law.perturbation_by_arm([[-value / 2, value / 2] for value in drawn])
    weights = helmert(2).T @ ours.minimize(tilt).reshape(1, -1)
    expected = theirs.minimize(binary.perturbation(drawn))
    np.testing.assert_allclose(weights[1] - weights[0], expected, atol=1e-9)
