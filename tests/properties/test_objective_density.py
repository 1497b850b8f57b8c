"""Lemma 2 in numbers: the density of the minimiser on neighbouring rows, with the code's ridge."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.models.private_score import Scaling, ScoreObjective
from private_ate.privacy.objective import ObjectiveCalibration, Perturbation

DIMENSION = 3


def objective_of(features, treated):
    """A model of treatment on given features in [−1, 1]."""
    covariates = np.ascontiguousarray((features.T + 1) / 2)
    names = {f"x{j}": Interval(0, 1) for j in range(DIMENSION)}
    study = LocalStudy(
        Domain("t", ("y", Interval(0, 1)), names), covariates, np.asarray(treated, bool), None
    )
    return ScoreObjective(study, Scaling(np.full(DIMENSION, 2.0), np.full(DIMENSION, -1.0)))


def log_density(objective, law, weights):
    """Log density of the ideal minimiser, up to a constant: that of b plus the log Jacobian."""
    sums = objective.sums(objective.study, weights, curved=True)
    linear = -sums.gradient - law.ridge * weights
    curvature = sums.hessian + law.ridge * np.eye(weights.size)
    return -np.abs(linear).max() / float(law.radius_unit) + np.linalg.slogdet(curvature)[1]


numbers = st.integers(0, 2**32 - 1)


@settings(max_examples=150, deadline=None)
@given(numbers, st.sampled_from(["0.05", "1", "8"]), st.integers(1, 3), st.floats(0.01, 8))
def test_the_density_ratio_of_neighbours_stays_within_the_budget(seed, epsilon, changes, size):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(changes, 30))
    # Corners of the domain, where neighbours are as far apart as they can be.
    features, treated = rng.choice([-1.0, 1.0, 0.3], (rows, DIMENSION)), rng.random(rows) < 0.5
    other_features, other_treated = features.copy(), treated.copy()
    other_features[:changes] = rng.choice([-1.0, 1.0, 0.0], (changes, DIMENSION))
    other_treated[:changes] = ~treated[:changes]
    one, other = objective_of(features, treated), objective_of(other_features, other_treated)
    law = ObjectiveCalibration.of(one, changes, Fraction(epsilon))
    weights = size * rng.standard_normal(DIMENSION + 1)

    ratio = abs(log_density(one, law, weights) - log_density(other, law, weights))

    assert ratio <= float(law.linear + law.curvature) * (1 + 1e-9)


def test_the_budget_of_the_linear_term_is_nearly_used_up_somewhere():
    ones = np.ones((4, DIMENSION))
    one, other = objective_of(ones, np.zeros(4)), objective_of(ones, np.array([1.0, 0, 0, 0]))
    law = ObjectiveCalibration.of(one, 1, Fraction(1))
    # Far out, one row's treatment moves every coordinate of the gradient by 1 of the 2 allowed.
    weights = np.full(DIMENSION + 1, 40.0)

    ratio = abs(log_density(one, law, weights) - log_density(other, law, weights))

    assert ratio == pytest.approx(float(law.linear) / 2, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(numbers, st.floats(0.01, 5))
def test_the_solver_inverts_the_map_of_the_proof(seed, size):
    rng = np.random.default_rng(seed)
    objective = objective_of(rng.uniform(-1, 1, (40, DIMENSION)), rng.random(40) < 0.5)
    law = ObjectiveCalibration.of(objective, 1, Fraction(2))
    weights = size * rng.standard_normal(DIMENSION + 1)
    linear = -objective.gradient(weights) - law.ridge * weights

    found = objective.minimize(Perturbation(linear, law.ridge, law.tolerance))

    assert np.allclose(found, weights, rtol=0, atol=2 * law.tolerance / law.ridge + 1e-12)
