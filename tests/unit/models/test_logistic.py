"""The fit of two arms: how close it comes, in how many passes, and how far neighbours are apart."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from private_ate.domain import Domain, Interval
from private_ate.engines import local
from private_ate.engines.local import LocalStudy
from private_ate.models.propensity import (
    SOLVER_GRADIENT,
    fit_propensity,
    fit_propensity_obliviously,
    schedule_of,
)

DOMAIN = Domain("t", ("y", Interval(0, 1)))


def study_of(covariates: np.ndarray, treatment: np.ndarray) -> LocalStudy:
    return LocalStudy(DOMAIN, np.ascontiguousarray(covariates, dtype=float), treatment, None)


def draw_study(seed: int, rows: int, dimension: int) -> LocalStudy:
    rng = np.random.default_rng(seed)
    covariates = rng.random((dimension, rows))
    linear = rng.normal(0, 2, dimension) @ covariates
    return study_of(covariates, rng.random(rows) < 1 / (1 + np.exp(linear.mean() - linear)))


def loss_and_gradient(weights, study, ridge):
    design = np.vstack([np.ones(study.size), study.covariates]).T
    signs = np.where(study.treatment, 1.0, -1.0)
    margin = signs * (design @ weights)
    loss = np.logaddexp(0, -margin).mean() + ridge / 2 * weights @ weights
    slope = -(signs / (1 + np.exp(np.clip(margin, -700, 700)))) @ design / study.size
    return loss, slope + ridge * weights


def best_weights(study: LocalStudy, ridge: float) -> np.ndarray:
    found = optimize.minimize(
        loss_and_gradient, np.zeros(study.dimension + 1), (study, ridge), jac=True, method="BFGS",
        options={"gtol": 1e-9},
    )  # fmt: skip
    return found.x


ADVERSARIAL = {
    "separable": study_of(np.linspace(0, 1, 50)[None], np.arange(50) >= 25),
    "constant": study_of(np.full((3, 40), 0.5), np.arange(40) % 3 == 0),
    "one row": study_of(np.array([[1.0], [0.0]]), np.array([True])),
    "duplicated": study_of(np.repeat(np.eye(3), 20, axis=1), np.arange(60) % 2 == 0),
    "all treated": study_of(np.ones((4, 30)), np.ones(30, dtype=bool)),
    "all control": study_of(np.zeros((4, 30)), np.zeros(30, dtype=bool)),
    "collinear": study_of(np.vstack([np.linspace(0, 1, 40)] * 5), np.arange(40) > 3),
    "corners": study_of(np.random.default_rng(1).integers(0, 2, (8, 100)), np.arange(100) % 7 == 0),
    "one odd unit": study_of(np.append(np.zeros(99), 1.0)[None], np.arange(100) == 99),
    "no covariates": study_of(np.zeros((0, 9)), np.arange(9) < 2),
}


@pytest.mark.parametrize("seed", range(6))
def test_the_public_fit_reaches_its_gradient_and_the_minimum(seed):
    study = draw_study(seed, 100 + 80 * seed, 1 + seed)
    ridge = 1 / study.size

    fit = fit_propensity(study, ridge)

    assert np.linalg.norm(loss_and_gradient(fit.coordinates, study, ridge)[1]) <= 1.01e-10
    assert fit.gradient_norm <= 1e-10
    np.testing.assert_allclose(fit.coordinates, best_weights(study, ridge), atol=1e-5)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_public_fit_reaches_its_gradient_on_adversarial_data(name):
    study = ADVERSARIAL[name]
    assert fit_propensity(study, 1 / study.size).gradient_norm <= 1e-10


def test_a_large_study_starts_warm_and_ends_at_the_same_minimum(monkeypatch):
    study = draw_study(9, 60_000, 3)
    warm = fit_propensity(study, 1e-4)
    monkeypatch.setattr("private_ate.models.propensity._FEW", 10**9)
    monkeypatch.setattr(local, "_BLOCK_ROWS", 1_000)
    cold = fit_propensity(study, 1e-4)

    assert max(warm.gradient_norm, cold.gradient_norm) <= 1e-10
    np.testing.assert_allclose(warm.coordinates, cold.coordinates, atol=1e-5)


def test_a_start_from_rows_unlike_the_others_does_not_lead_astray():
    rng = np.random.default_rng(10)
    rows = np.arange(60_000)
    first = rows % 10 == 0  # the evenly spaced rows that the fit starts from
    covariates = rng.random((3, rows.size)) * np.where(first, 0.01, 1.0)
    treatment = np.where(first, rng.random(rows.size) < 0.99, covariates[0] < 0.3)
    study = study_of(covariates, treatment)

    fit = fit_propensity(study, 1 / study.size)

    slope = loss_and_gradient(fit.coordinates, study, 1 / study.size)[1]
    assert np.linalg.norm(slope) <= 1.01e-10


@pytest.mark.parametrize("seed", range(6))
def test_a_rare_label_that_the_start_hardly_saw_is_fitted_all_the_same(seed):
    rng = np.random.default_rng(seed)
    rows = 120_000
    rare = rng.random(rows) < 1 / 3000
    covariates = np.stack([rng.random(rows), rng.random(rows), rare])
    chance = np.where(rare, 0.3, 1 / (1 + np.exp(covariates[0] - 2 * covariates[1])))
    study = study_of(covariates, rng.random(rows) < chance)

    fit = fit_propensity(study, 1 / rows)

    slope = loss_and_gradient(fit.coordinates, study, 1 / rows)[1]
    assert np.linalg.norm(slope) <= 1.01e-10


def test_a_handful_of_treated_units_among_many_is_fitted():
    rng = np.random.default_rng(1)
    covariates = rng.random((2, 100_000))
    treatment = np.zeros(100_000, dtype=bool)
    treatment[rng.choice(100_000, 12, replace=False) // 16 * 16 + 1] = True  # none at the start
    study = study_of(covariates, treatment)

    fit = fit_propensity(study, 1e-5)

    assert np.linalg.norm(loss_and_gradient(fit.coordinates, study, 1e-5)[1]) <= 1.01e-10


@pytest.mark.parametrize("seed", range(40))
def test_a_hardly_penalised_fit_of_few_rows_converges(seed):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(20, 400))
    covariates = rng.random((3, rows)) < rng.random((3, 1)) ** 3
    study = study_of(covariates.astype(float), rng.random(rows) < 0.2)

    fit = fit_propensity(study, 1e-9)

    assert np.linalg.norm(loss_and_gradient(fit.coordinates, study, 1e-9)[1]) <= 1.01e-10


@pytest.mark.parametrize("ridge", [0.001, 0.01, 0.1, 10.0, 1e6])
@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_oblivious_fit_reaches_its_bound_on_adversarial_data(name, ridge):
    study = ADVERSARIAL[name]

    fit = fit_propensity_obliviously(study, ridge, 2)

    assert fit.gradient_norm <= SOLVER_GRADIENT
    assert np.linalg.norm(loss_and_gradient(fit.coordinates, study, ridge)[1]) <= SOLVER_GRADIENT


def count_passes(study: LocalStudy, ridge: float, monkeypatch) -> int:
    passes = 0
    plain = LocalStudy.fold

    def counting(self, kernel, *, title=""):
        nonlocal passes
        passes += 1
        return plain(self, kernel, title=title)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStudy, "fold", counting)
        fit_propensity_obliviously(study, ridge, 2)
    return passes


def test_the_number_of_passes_depends_on_dimension_and_ridge_only(monkeypatch):
    rng = np.random.default_rng(3)
    easy = study_of(rng.random((2, 50)), rng.random(50) < 0.5)
    hard = study_of(np.repeat([[1.0], [0.0]], 3000, axis=1), np.ones(3000, dtype=bool))

    counts = [count_passes(study, 0.01, monkeypatch) for study in (easy, hard)]

    assert counts[0] == counts[1] == schedule_of(3, 0.01, 2).gradient_steps + 7


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 40),
    dimension=st.integers(0, 4),
    ridge=st.sampled_from([0.01, 0.1, 1.0]),
)
@settings(max_examples=60)
def test_replacing_one_record_moves_the_weights_by_no_more_than_declared(
    seed, rows, dimension, ridge
):
    rng = np.random.default_rng(seed)
    covariates = (
        rng.random((dimension, rows)) if seed % 2 else rng.integers(0, 2, (dimension, rows))
    )
    study = study_of(covariates, rng.random(rows) < rng.random())
    other = study.covariates.copy()
    other[:, 0] = rng.integers(0, 2, dimension)
    treatment = study.treatment.copy()
    treatment[0] = ~treatment[0]
    neighbour = replace(study, covariates=other, treatment=treatment)

    moved = np.abs(
        fit_propensity_obliviously(study, ridge, 2).coordinates
        - fit_propensity_obliviously(neighbour, ridge, 2).coordinates
    ).sum()

    weights = dimension + 1
    exact = 2 * weights / (rows * ridge)
    assert moved <= exact + 2 * np.sqrt(weights) * SOLVER_GRADIENT / ridge
