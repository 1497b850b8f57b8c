"""Objective perturbation: the law's public numbers, and the solver on hard data."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.models.private_score import Scaling, ScoreObjective
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.objective import ObjectiveCalibration, proved_radius, radius_tail

IDENTITY = {d: Scaling(np.full(d, 2.0), np.full(d, -1.0)) for d in range(12)}


def study_of(covariates, treatment):
    names = {f"x{j}": Interval(0, 1) for j in range(covariates.shape[0])}
    return LocalStudy(Domain("t", ("y", Interval(0, 1)), names), covariates, treatment, None)


def hard_studies(rows=3000):
    rng = np.random.default_rng(0)
    x = rng.random((4, rows))
    ends = (x > 0.5).astype(float)
    yield "random", x, x[0] > rng.random(rows)
    yield "separable", x, x[0] > 0.5
    yield "separable by a hair", 0.5 + 1e-6 * (x - 0.5), x[0] > 0.5
    yield "separable at the ends", ends, ends[0] == 1
    yield "one exception", ends, (ends[0] == 1) ^ (np.arange(rows) == 7)
    yield "constant", np.full((4, rows), 0.5), x[0] > 0.5
    yield "collinear", np.repeat(x[:1], 4, axis=0), x[0] > rng.random(rows)
    yield "all treated", x, np.ones(rows, dtype=bool)
    yield "all control", x, np.zeros(rows, dtype=bool)


@pytest.mark.parametrize("epsilon", ["0.01", "1", "1000000"])
@pytest.mark.parametrize(
    ("covariates", "treatment"),
    [case[1:] for case in hard_studies()],
    ids=[case[0] for case in hard_studies()],
)
def test_the_solver_meets_its_tolerance_without_extra_passes(
    monkeypatch, epsilon, covariates, treatment
):
    monkeypatch.setattr("private_ate.models.private_score._EXTRA_PASSES", 0)
    monkeypatch.setattr(ScoreObjective, "_walk", lambda _self, start, _tilt: start)
    objective = ScoreObjective(study_of(covariates, treatment), IDENTITY[4])
    law = ObjectiveCalibration.of(objective, 1, Fraction(epsilon))
    tilt = law.perturbation([Fraction(1), Fraction(-2), Fraction(3), Fraction(0), Fraction(5)])

    weights = objective.minimize(tilt)

    gradient = objective.gradient(weights) + tilt.ridge * weights + tilt.linear
    assert np.linalg.norm(gradient) <= tilt.tolerance


@pytest.mark.parametrize("epsilon", ["0.01", "1", "100"])
def test_where_newtons_steps_do_not_arrive_the_tolerance_is_met_all_the_same(monkeypatch, epsilon):
    monkeypatch.setattr(ScoreObjective, "_newton", lambda _self, _rows, state, *_, **__: state)
    rng = np.random.default_rng(5)
    x = rng.random((4, 60))
    objective = ScoreObjective(study_of(x, x[0] > 0.5), IDENTITY[4])
    law = ObjectiveCalibration.of(objective, 1, Fraction(epsilon))
    tilt = law.perturbation([Fraction(1), Fraction(-2), Fraction(3), Fraction(0), Fraction(5)])

    weights = objective.minimize(tilt)

    gradient = objective.gradient(weights) + tilt.ridge * weights + tilt.linear
    assert np.linalg.norm(gradient) <= tilt.tolerance


@pytest.mark.parametrize("dimension", [1, 5, 40])
def test_the_chance_of_a_linear_term_beyond_what_is_proved_is_bounded(dimension):
    exact = stats.gamma(dimension + 1).sf(proved_radius(dimension))

    assert 0 < exact <= radius_tail(dimension) < 1e-26


def test_the_minimiser_is_that_of_an_independent_solver():
    from scipy.optimize import minimize

    rng = np.random.default_rng(1)
    x = rng.random((3, 500))
    treatment = rng.random(500) < x[0]
    objective = ScoreObjective(study_of(x, treatment), IDENTITY[3])
    law = ObjectiveCalibration.of(objective, 1, Fraction(1))
    tilt = law.perturbation([Fraction(1), Fraction(-1), Fraction(2), Fraction(0)])
    z = np.vstack([np.ones(500), 2 * x - 1])

    def loss(w):
        s = w @ z
        value = np.logaddexp(0, s).sum() - s[treatment].sum()
        return value + tilt.ridge / 2 * w @ w + tilt.linear @ w

    reference = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-6}).x

    assert np.allclose(objective.minimize(tilt), reference, atol=1e-5)


def test_the_parts_of_the_law_add_up_and_the_ridge_keeps_its_promise():
    objective = ScoreObjective(study_of(np.zeros((4, 10)), np.ones(10, bool)), IDENTITY[4])

    for changes in (1, 3):
        law = ObjectiveCalibration.of(objective, changes, Fraction(1))

        assert law.linear + law.curvature + law.smoothing == 1
        growth = changes * np.log1p(law.dimension / (4 * law.ridge))
        assert growth <= float(law.curvature)
        assert growth == pytest.approx(float(law.curvature), rel=1e-6)
        assert law.radius_unit == 2 * changes / law.linear


def test_the_final_rounding_is_out_of_sight():
    rng = np.random.default_rng(2)
    x = rng.random((4, 3000))
    objective = ScoreObjective(study_of(x, x[0] > rng.random(3000)), IDENTITY[4])
    law = ObjectiveCalibration.of(objective, 1, Fraction(1))

    scale = float(law.sensitivity * law.grid / law.smoothing)

    assert scale < 1e-4  # weights are of size one, their noise of size 0.1


def test_two_calls_cost_what_was_asked_for():
    x = np.random.default_rng(3).random((2, 200))
    objective = ScoreObjective(study_of(x, x[0] > 0.5), IDENTITY[2])
    noise = Noise(SeededEntropy(0))

    weights = noise.objective("model", objective, changes=1, epsilon=Fraction(1, 3))

    assert noise.spent == Fraction(1, 3)
    assert weights.shape == (3,)
    assert [spend.mechanism for spend in noise.spends] == ["objective", "laplace"]


def test_rows_whose_order_deceives_the_start_get_further_passes():
    rows, block = 60_000, 1 << 14
    start = np.zeros(rows, dtype=bool)
    for first in range(0, rows, block):
        start[first : first + block : rows // 20_000] = True
    ends = (np.random.default_rng(4).random((4, rows)) > 0.5).astype(float)
    treatment = np.where(start, ends[0] == 1, ends[0] == 0)
    objective = ScoreObjective(study_of(ends, treatment), IDENTITY[4])
    tilt = ObjectiveCalibration.of(objective, 1, Fraction(2)).perturbation([Fraction(0)] * 5)

    weights = objective.minimize(tilt)

    gradient = objective.gradient(weights) + tilt.ridge * weights + tilt.linear
    assert np.linalg.norm(gradient) <= tilt.tolerance
