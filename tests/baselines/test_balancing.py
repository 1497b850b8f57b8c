"""Weights that balance covariates: the fit, its density on neighbours, sums and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_ate import ArgumentError, BalancingOptions, Domain, Interval, Treatment, estimate_ate
from private_ate.api import METHODS, estimate_study
from private_ate.audit.replay import Recording
from private_ate.baselines.steps import balancing_weights
from private_ate.engines.local import LocalStudy
from private_ate.models.private_score import Scaling, ScoreObjective, loss_bounds_of, row_losses
from private_ate.privacy.objective import ObjectiveCalibration, Perturbation
from private_ate.request import Request
from replaced_records import assert_promises_hold

ESTIMANDS = ("ate", "att", "atc", "ato")
TAILORED = ESTIMANDS[:3]
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(-1, 3)), {"a": Interval(0, 1), "b": Interval(0, 1)}
)
PLAIN = Scaling(np.full(2, 2.0), np.full(2, -1.0))
seeds = st.integers(0, 2**32 - 1)


def draw_study(seed, rows=3000, domain=DOMAIN):
    rng = np.random.default_rng(seed)
    covariates = rng.random((2, rows))
    treated = rng.random(rows) < 1 / (1 + np.exp(-(2 * covariates[0] - 1)))
    share = np.clip(0.1 + 0.5 * covariates[0] + 0.2 * treated + rng.normal(0, 0.05, rows), 0, 1)
    used = covariates[: len(domain.covariates)]
    return LocalStudy(domain, used, treated, np.rint(share * 2**30).astype(np.int32))


def release(study, epsilon="1000000", **asked):
    return estimate_ate(study, level="sample", epsilon=epsilon, method="balancing", seed=7, **asked)


@pytest.mark.parametrize("treated", [True, False])
@pytest.mark.parametrize("estimand", TAILORED)
def test_slopes_and_bends_are_derivatives_and_stay_within_their_bounds(estimand, treated):
    points = np.linspace(-6, 6, 1201)
    arm = np.full(points.size, treated)
    found = row_losses(estimand, points, arm, 0.1)
    step = points[1] - points[0]
    bounds = loss_bounds_of(estimand, 0.1)

    assert np.gradient(found.value, step)[1:-1] == pytest.approx(found.slope[1:-1], abs=0.05)
    assert np.all(np.diff(found.slope) >= -1e-12)  # convex
    assert np.abs(found.slope).max() <= bounds.lipschitz * (1 + 1e-12)
    assert np.diff(found.slope).max() / step <= float(bounds.curvature) * (1 + 1e-9)
    assert found.curvature.max() <= float(bounds.curvature) * (1 + 1e-9)
    knot = math.log(9)
    smooth = np.abs(np.abs(points) - knot) > 2 * step
    assert np.gradient(found.slope, step)[smooth] == pytest.approx(
        found.curvature[smooth], abs=0.06
    )


def test_bounds_of_the_losses_are_those_of_the_proof():
    assert loss_bounds_of("ate", 0.25) == replace(loss_bounds_of("att", 0.25), lipschitz=4)
    assert loss_bounds_of("att", 0.25).lipschitz == 3
    assert loss_bounds_of("atc", 0.25).curvature == 3


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_without_noise_weighted_covariates_balance(estimand):
    study = draw_study(1, 4000)
    recording = Recording()
    asked = Request("sample", Fraction(10**6), estimand=estimand, options=BalancingOptions(0.01))
    estimate_study(study, asked, METHODS["balancing"], seed=1, recorder=recording)
    (weights,) = (call.output for call in recording.calls if call.spend.mechanism == "objective")
    features = np.vstack([np.ones(4000), 2 * study.covariates - 1])
    scores = 1 / (1 + np.exp(-np.asarray(weights) @ features))
    used = balancing_weights(estimand, scores, study.treatment)
    sums = [features[:, arm] @ used[arm] for arm in (study.treatment, ~study.treatment)]

    raw = features[:, study.treatment].mean(axis=1) - features[:, ~study.treatment].mean(axis=1)

    assert np.abs(raw).max() * 4000 > 500
    assert sums[0] == pytest.approx(sums[1], abs=2)  # the ridge of 1, times weights


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_without_noise_weights_remove_the_confounding(estimand):
    study = draw_study(1, 8_000)
    values = study.outcome / 2**30 * 4
    raw = values[study.treatment].mean() - values[~study.treatment].mean()

    assert raw - 0.8 > 0.2
    assert release(study, estimand=estimand).ate == pytest.approx(0.8, abs=0.02)


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(TAILORED), st.sampled_from([0.1, 0.3]), st.floats(0.01, 3))
def test_the_density_ratio_of_neighbours_stays_within_the_budget(seed, estimand, least, size):
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(1, 8))
    corners = rng.choice([0.0, 1.0, 0.6], (2, rows))
    other = corners.copy()
    other[:, 0] = rng.choice([0.0, 1.0], 2)
    treated = rng.random(rows) < 0.5
    changed = treated.copy()
    changed[0] = not treated[0]
    weights = size * rng.standard_normal(3)
    densities = []
    for covariates, arm in ((corners, treated), (other, changed)):
        study = LocalStudy(DOMAIN, covariates, arm, np.zeros(rows, np.int32))
        objective = ScoreObjective(study, PLAIN, estimand, least)
        law = ObjectiveCalibration.of(objective, 1, Fraction(1))
        sums = objective.sums(study, weights, curved=True)
        linear = -sums.gradient - law.ridge * weights
        hessian = sums.hessian + law.ridge * np.eye(3)
        radius = np.abs(linear).max() / float(law.radius_unit)
        densities.append(np.linalg.slogdet(hessian)[1] - radius)

    assert abs(densities[0] - densities[1]) <= float(law.linear + law.curvature) * (1 + 1e-9)


def test_the_budget_of_the_fit_is_attained_so_that_no_smaller_noise_would_do():
    # A treated row just inside one knot becomes a control beyond the other one: the gradient moves
    # by 2L where the weight is largest, and the determinant loses all that a row can add to it.
    knot = math.log(9)
    point = np.array([-5 - knot + 1e-9, 10.0, -5.0])
    densities = []
    for corner, arm in ((1.0, True), (0.0, False)):
        covariates = np.array([[1.0], [corner]])
        study = LocalStudy(DOMAIN, covariates, np.array([arm]), np.zeros(1, np.int32))
        objective = ScoreObjective(study, PLAIN, "ate", 0.1)
        law = ObjectiveCalibration.of(objective, 1, Fraction(1))
        sums = objective.sums(study, point, curved=True)
        radius = np.abs(sums.gradient + law.ridge * point).max() / float(law.radius_unit)
        hessian = sums.hessian + law.ridge * np.eye(3)
        densities.append(np.linalg.slogdet(hessian)[1] - radius)

    assert densities[0] - densities[1] == pytest.approx(float(law.linear + law.curvature), rel=1e-6)


def test_a_unit_of_the_whole_epsilon_would_lose_more_than_that():
    # At the knot the determinant loses nearly all of its share to a row that changes arm: with b of
    # scale 2L/ε in place of 2L/(0.9 ε) nothing would be left for it.
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {})
    knot = np.array([math.log(9) - 1e-9])
    plain = Scaling(np.zeros(0), np.zeros(0))
    moved, logs = [], []
    for arm in (True, False):
        study = LocalStudy(domain, np.zeros((0, 1)), np.array([arm]), np.zeros(1, np.int32))
        objective = ScoreObjective(study, plain, "ate", 0.1)
        law = ObjectiveCalibration.of(objective, 1, Fraction(1))
        sums = objective.sums(study, knot, curved=True)
        moved.append(sums.gradient[0])
        logs.append(math.log(sums.hessian[0, 0] + law.ridge))

    assert abs(moved[0] - moved[1]) == pytest.approx(1 + 1 / 9 + 10, rel=1e-6)
    assert abs(moved[0] - moved[1]) <= 2 * law.loss_bounds.lipschitz
    assert abs(logs[0] - logs[1]) > 0.8 * float(law.curvature)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("dimension", [2, 0])
def test_replacing_a_record_moves_no_step_further_than_it_declares(estimand, dimension):
    domain = DOMAIN if dimension else Domain(Treatment("t", 1, 0), ("y", Interval(-1, 3)), {})
    request = Request("sample", Fraction(1), estimand=estimand, confidence=0.95)
    assert_promises_hold("balancing", request, lambda seed: draw_study(seed, 40, domain))


def test_a_record_of_the_largest_weight_moves_the_sums_by_the_whole_sensitivity():
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {})
    outcome = np.array([1 << 30, 0, 1 << 30], np.int32)
    recordings = []
    for arms in ([True, True, False], [False, True, False]):
        study = LocalStudy(domain, np.zeros((0, 3)), np.array(arms), outcome)
        recordings.append(Recording(source=recordings[0] if recordings else None))
        request = Request("sample", Fraction(1), options=BalancingOptions(0.45), confidence=None)
        estimate_study(study, request, METHODS["balancing"], seed=3, recorder=recordings[-1])
    (one,), (other,) = ([c for c in t.calls if c.spend.step == "weighted sums"] for t in recordings)
    moved = sum(abs(a - b) for a, b in zip(one.values, other.values, strict=True))

    assert 0.8 * one.spend.sensitivity[0] < moved <= one.spend.sensitivity[0]


@settings(max_examples=20, deadline=None)
@given(seeds, st.sampled_from(TAILORED))
def test_both_walks_arrive_where_the_gradient_vanishes(seed, estimand):
    rng = np.random.default_rng(seed)
    study = draw_study(int(rng.integers(100)), 60)
    objective = ScoreObjective(study, PLAIN, estimand, 0.1)
    perturbation = Perturbation(30 * rng.standard_normal(3), 20.0, 1e-8)
    found = objective.minimize(perturbation)
    start = rng.standard_normal(3)
    walked = objective._walk(start, perturbation)

    assert np.linalg.norm(objective._perturbed(found, perturbation)) <= perturbation.tolerance
    assert walked == pytest.approx(found, abs=1e-8)


def test_where_newtons_steps_do_not_arrive_the_other_walk_does(monkeypatch):
    objective = ScoreObjective(draw_study(2, 60), PLAIN, "ate", 0.1)
    perturbation = Perturbation(np.array([40.0, -30.0, 5.0]), 20.0, 1e-8)
    expected = objective.minimize(perturbation)
    monkeypatch.setattr(ScoreObjective, "_newton", lambda _self, _rows, state, *_, **__: state)

    assert objective.minimize(perturbation) == pytest.approx(expected, abs=1e-8)


def test_a_loss_without_a_floor_has_its_minimiser_bounded_by_its_slope():
    # Linear beyond the knots, so that the loss falls for ever: the logistic bound does not hold.
    rows = 4000
    study = LocalStudy(DOMAIN, np.ones((2, rows)), np.ones(rows, bool), np.zeros(rows, np.int32))
    objective = ScoreObjective(study, PLAIN, "att", 0.1)
    law = ObjectiveCalibration.of(objective, 1, Fraction(1))
    found = np.linalg.norm(objective.minimize(Perturbation(np.zeros(3), law.ridge, 1e-6)))

    assert found <= law._reach(0.0)
    logistic = math.sqrt(2 * rows * math.log(2) / law.ridge)
    assert found > logistic / 2


def test_only_overlap_weights_have_an_interval():
    for estimand in TAILORED:
        found = release(draw_study(2, 300), epsilon="1", estimand=estimand)
        assert found.interval is None
        assert {step.name for step in found.steps} == {"balancing weights", "weighted sums"} | {
            "balancing weights, rounding"
        }
        assert sum(step.epsilon for step in found.steps) == pytest.approx(1)


def test_a_release_is_pure_and_pays_for_three_steps():
    found = estimate_ate(
        draw_study(2, 300), level="sample", epsilon="1", method="balancing", estimand="ato"
    )

    assert found.guarantee == (
        "pure 1-DP, sample level, up to a chance of 3e-27 in the rounding of its solver"
    )
    spent = {step.name: step.epsilon for step in found.steps}
    assert sum(spent.values()) == pytest.approx(1)
    assert spent["weighted sums"] == pytest.approx(0.3)
    assert spent["squares of the interval"] == pytest.approx(0.1)
    assert found.interval[0] <= found.noise_interval[0]
    assert found.noise_interval[1] <= found.interval[1]


@pytest.mark.parametrize(("asked", "text"), [
    ({"truncation": 0}, "truncation"), ({"truncation": 0.5}, "truncation"),
    ({"model_share": 0.9}, "share"), ({"model_share": "x"}, "share"),
])  # fmt: skip
def test_impossible_options_are_refused(asked, text):
    with pytest.raises(ArgumentError, match=text):
        BalancingOptions(**asked)
