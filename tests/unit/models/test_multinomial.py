"""The propensity model of several arms: the minimum it reaches, and its symmetries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from scipy.special import logsumexp, softmax

from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines import local
from private_ate.engines.local import LocalStudy
from private_ate.models import propensity
from private_ate.models.propensity import (
    SOLVER_GRADIENT,
    PropensityModel,
    contrast_basis,
    fit_propensity,
    fit_propensity_obliviously,
    schedule_of,
)


def study_of(covariates, arm, arms):
    labels = tuple(f"arm {code}" for code in range(arms))
    domain = Domain(Treatment("t", arms=labels), ("y", Interval(0, 1)))
    codes = np.asarray(arm, dtype=np.uint8)
    return LocalStudy(
        domain, np.ascontiguousarray(covariates, dtype=float),
        codes.view(bool) if arms == 2 else codes, None,
    )  # fmt: skip


def arms_of(study):
    return study.domain.treatment.size


def draw_study(seed, rows, dimension, arms, strength=2.0):
    rng = np.random.default_rng(seed)
    covariates = rng.random((dimension, rows))
    linear = rng.normal(0, strength, (arms, dimension)) @ (covariates - 0.5)
    return study_of(covariates, (linear + rng.gumbel(size=linear.shape)).argmax(axis=0), arms)


def loss_and_gradient(weights, study, ridge):
    """The loss of the module's first lines, without a word of its code."""
    design = np.vstack([np.ones(study.size), study.covariates])
    linear = weights.reshape(arms_of(study), -1) @ design
    chosen = linear[study.arm, np.arange(study.size)]
    loss = (logsumexp(linear, axis=0) - chosen).mean() + ridge * weights @ weights
    residual = softmax(linear, axis=0) - (np.arange(arms_of(study))[:, None] == study.arm)
    return loss, (residual @ design.T / study.size).ravel() + 2 * ridge * weights


def best_weights(study, ridge):
    start = np.zeros(arms_of(study) * (study.dimension + 1))
    found = optimize.minimize(
        loss_and_gradient, start, (study, ridge), jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    return found.x.reshape(arms_of(study), -1)


ADVERSARIAL = {
    "separable": study_of(np.linspace(0, 1, 60)[None], np.arange(60) // 20, 3),
    "constant": study_of(np.full((3, 40), 0.5), np.arange(40) % 4, 4),
    "one row": study_of(np.array([[1.0], [0.0]]), [2], 3),
    "one arm only": study_of(np.ones((4, 30)), np.full(30, 1), 3),
    "an empty arm": study_of(np.random.default_rng(1).random((2, 90)), np.arange(90) % 3, 4),
    "an arm of one unit": study_of(np.eye(3)[:, np.arange(90) % 3], np.arange(90) == 89, 3),
    "collinear": study_of(np.vstack([np.linspace(0, 1, 40)] * 5), np.arange(40) % 5, 5),
    "no covariates": study_of(np.zeros((0, 9)), np.array([0, 0, 0, 0, 1, 1, 1, 2, 2]), 3),
}


@pytest.mark.parametrize("arms", [2, 3, 5, 20])
def test_the_rows_of_the_basis_are_orthogonal_of_one_length_and_add_up_to_zero(arms):
    basis, length = contrast_basis(arms), 0.5 if arms == 2 else 1.0

    np.testing.assert_allclose(basis @ basis.T, length * np.eye(arms - 1), atol=1e-15)
    np.testing.assert_allclose(basis.sum(axis=1), 0, atol=1e-15)
    np.testing.assert_allclose(basis.T @ basis, length * (np.eye(arms) - 1 / arms), atol=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_the_fit_reaches_its_gradient_and_the_minimum_of_an_independent_solver(seed):
    study = draw_study(seed, 150 + 80 * seed, 1 + seed, 3 + seed)
    ridge = 1 / study.size

    fit = fit_propensity(study, ridge)

    slope = loss_and_gradient(fit.coefficients.ravel(), study, ridge)[1]
    assert fit.gradient_norm <= 1e-10
    assert np.linalg.norm(slope) <= 1.01e-10
    np.testing.assert_allclose(fit.coefficients, best_weights(study, ridge), atol=1e-5)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_fit_is_finite_and_reaches_its_gradient_on_adversarial_data(name):
    study = ADVERSARIAL[name]

    fit = fit_propensity(study, 1 / study.size)

    assert np.all(np.isfinite(fit.coefficients))
    slope = loss_and_gradient(fit.coefficients.ravel(), study, 1 / study.size)[1]
    assert np.linalg.norm(slope) <= 1.01e-10


@pytest.mark.parametrize(("rows", "arms"), [(700, 3), (700, 20), (20_000, 4)])
def test_relabelling_the_arms_only_permutes_the_rows_of_the_fit(rows, arms):
    study = draw_study(6, rows, 3, arms)
    places = np.random.default_rng(7).permutation(arms)
    relabelled = study_of(study.covariates, places[study.arm], arms)

    fit, other = fit_propensity(study, 1 / rows), fit_propensity(relabelled, 1 / rows)

    np.testing.assert_allclose(other.coefficients[places], fit.coefficients, atol=1e-12)


def test_the_weights_of_all_arms_add_up_to_zero_and_a_penalty_shrinks_them():
    study = draw_study(8, 400, 3, 4)

    loose, tight = fit_propensity(study, 1e-6), fit_propensity(study, 1.0)

    for fit in (loose, tight):
        np.testing.assert_allclose(fit.coefficients.sum(axis=0), 0, atol=1e-13)
    assert np.linalg.norm(tight.coefficients) < 0.2 * np.linalg.norm(loose.coefficients)


def test_without_covariates_the_probabilities_are_the_shares_of_the_arms():
    study = ADVERSARIAL["no covariates"]

    fit = fit_propensity(study, 1e-9)

    np.testing.assert_allclose(fit.probabilities(np.zeros((2, 0))), [[4 / 9, 3 / 9, 2 / 9]] * 2,
                               atol=1e-7)  # fmt: skip


def test_twenty_arms_of_many_columns_are_fitted():
    study = draw_study(9, 13_000, 12, 20, strength=1.0)  # 247 free numbers

    fit = fit_propensity(study, 1 / study.size)

    slope = loss_and_gradient(fit.coefficients.ravel(), study, 1 / study.size)[1]
    assert np.linalg.norm(slope) <= 1.01e-10


def test_a_large_study_starts_warm_and_ends_at_the_same_minimum(monkeypatch):
    study = draw_study(10, 30_000, 3, 3)
    warm = fit_propensity(study, 1e-4)
    monkeypatch.setattr(propensity, "_MOST_FEW", 10**9)
    monkeypatch.setattr(propensity, "_FEW", 10**9)
    monkeypatch.setattr(local, "_BLOCK_ROWS", 1_000)
    cold = fit_propensity(study, 1e-4)

    assert max(warm.gradient_norm, cold.gradient_norm) <= 1e-10
    np.testing.assert_allclose(warm.coefficients, cold.coefficients, atol=1e-9)


def test_scores_are_log_odds_and_probabilities_add_up_to_one():
    rng = np.random.default_rng(11)
    model = PropensityModel(rng.normal(0, 2, (4, 3)))
    covariates = rng.random((50, 2))

    shares = model.probabilities(covariates)

    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-15)
    for arm in range(4):
        odds = np.log(shares[:, arm] / (1 - shares[:, arm]))
        np.testing.assert_allclose(model.scores(covariates, arm), odds, atol=1e-12)


def test_scores_far_out_are_finite_and_of_two_arms_opposite():
    model = PropensityModel(np.array([[-500.0, -900.0], [500.0, 900.0]]))
    covariates = np.array([[0.0], [1.0]])

    np.testing.assert_array_equal(model.scores(covariates, 1), [1000.0, 2800.0])
    np.testing.assert_array_equal(model.scores(covariates, 0), [-1000.0, -2800.0])


@pytest.mark.parametrize("ridge", [0.001, 0.01, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_oblivious_fit_reaches_its_bound_on_adversarial_data(name, ridge):
    study = ADVERSARIAL[name]

    fit = fit_propensity_obliviously(study, ridge, arms_of(study))

    slope = loss_and_gradient(fit.coefficients.ravel(), study, ridge)[1]
    assert fit.gradient_norm <= SOLVER_GRADIENT
    assert np.linalg.norm(slope) <= SOLVER_GRADIENT


@pytest.mark.parametrize("name", ["separable", "one arm only", "constant"])
def test_the_accelerated_steps_alone_reach_the_region_where_newton_squares_its_error(
    name, monkeypatch
):
    monkeypatch.setattr("private_ate.models.propensity._NEWTON_STEPS", 0)
    study = ADVERSARIAL[name]
    columns = study.dimension + 1

    fit = fit_propensity_obliviously(study, 0.01, arms_of(study))

    assert fit.gradient_norm <= 2 * 0.01 / (2 * np.sqrt(2 * columns))


def count_passes(study, ridge, monkeypatch):
    passes, plain = [], LocalStudy.fold

    def counting(self, kernel, *, title=""):
        passes.append(title)
        return plain(self, kernel, title=title)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStudy, "fold", counting)
        fit_propensity_obliviously(study, ridge, arms_of(study))
    return len(passes)


def test_the_number_of_passes_depends_on_arms_dimension_and_ridge_only(monkeypatch):
    easy = draw_study(13, 50, 2, 3)
    hard = study_of(np.repeat([[1.0], [0.0]], 3000, axis=1), np.full(3000, 2), 3)

    counts = [count_passes(study, 0.01, monkeypatch) for study in (easy, hard)]

    assert counts[0] == counts[1] == schedule_of(3, 0.01, 3).gradient_steps + 7


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 30),
    dimension=st.integers(0, 3),
    arms=st.integers(3, 5),
    ridge=st.sampled_from([0.01, 0.1, 1.0]),
)
@settings(max_examples=40, deadline=None)
def test_replacing_one_record_moves_the_coordinates_by_no_more_than_declared(
    seed, rows, dimension, arms, ridge
):
    rng = np.random.default_rng(seed)
    covariates = rng.integers(0, 2, (dimension, rows)).astype(float)
    arm = rng.integers(0, arms, rows)
    other, moved_arm = covariates.copy(), arm.copy()
    other[:, 0] = rng.integers(0, 2, dimension)
    moved_arm[0] = (arm[0] + 1) % arms

    fits = [
        fit_propensity_obliviously(study, ridge, arms).coordinates
        for study in (study_of(covariates, arm, arms), study_of(other, moved_arm, arms))
    ]

    columns = dimension + 1
    moved = np.abs(fits[0] - fits[1]).sum()
    exact = columns * np.sqrt(2 * (arms - 1)) / (rows * ridge)
    assert moved <= exact + np.sqrt((arms - 1) * columns) * SOLVER_GRADIENT / ridge


def test_coordinates_and_coefficients_are_the_same_model():
    fit = fit_propensity(draw_study(14, 300, 2, 4), 0.01)

    again = PropensityModel.from_coordinates(fit.coordinates, 4)

    np.testing.assert_allclose(again.coefficients, fit.coefficients, atol=1e-14)
    assert np.linalg.norm(fit.coordinates) == pytest.approx(np.linalg.norm(fit.coefficients))
