"""Widths of intervals from what was released, each part of them computed a second time."""

import math
from fractions import Fraction

import numpy as np
import pytest

from oracles import draw_staircase
from private_ate.audit.replay import Tape
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.estimators.calibrated import method as calibrated
from private_ate.estimators.calibrated.cap_path import walk_caps
from private_ate.estimators.calibrated.final_weights import settle_weights
from private_ate.estimators.calibrated.method import pose_caps
from private_ate.estimators.calibrated.pair_variance import AMONG_LIKE, PairVariance
from private_ate.estimators.orthogonal.method import OrthogonalOptions, estimate_orthogonal
from private_ate.estimators.request import Request
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_and_normal_quantile, staircase_variance
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block

DOMAIN = Domain("t", ("y", Interval(0, 1)), {f"x{j}": Interval(0, 1) for j in range(3)})


def draw_study(rng, rows, *, confounded=False):
    covariates = rng.random((3, rows))
    score = 0.05 + 0.9 * covariates[0] ** 2 if confounded else 0.5
    treatment = rng.random(rows) < score
    level = 0.3 + 0.2 * treatment + rng.uniform(-0.2, 0.2, rows)
    return LocalStudy(
        DOMAIN, covariates, treatment, np.rint(level * OUTCOME_STEPS).astype(np.int32)
    )


def run_orthogonal(study, adjust, variance_share):
    """Run with the effect answered as its sensitivity, the mean square as a share of its bound.

    Returns the half-widths of both intervals, the ε of the last step and its sensitivity.
    """

    def steer(spend, values):
        del values
        if spend.step == "effect":
            return 2 * spend.sensitivity[0]  # in half steps, so the estimate is a sensitivity
        if spend.step == "variance":
            offset = 1 / (study.size * float(spend.epsilon))  # added on purpose, a little too high
            return [round(2 * spend.sensitivity[0] * study.size * (variance_share - offset))]
        return None

    tape = Tape(steer=steer)
    request = Request("sample", Fraction(2), options=OrthogonalOptions(adjust=adjust))
    estimate = estimate_orthogonal(study, request, Noise(SeededEntropy(3), tape))
    (spend,) = [spend for spend in tape.spends if spend.step == "effect"]
    unit = estimate.ate
    halves = (estimate.interval[1] - unit, estimate.noise_interval[1] - unit)
    return *halves, float(spend.epsilon), unit


@pytest.mark.parametrize("adjust", [True, False])
def test_the_orthogonal_interval_adds_the_last_noise_to_the_rest_in_squares(adjust):
    study = draw_study(np.random.default_rng(1), 3000)

    halves = {share: run_orthogonal(study, adjust, share) for share in (0.0, 0.01, 0.02)}

    (least, noise, epsilon, unit), (one, *_), (two, *_) = halves.values()
    sizes = np.abs(draw_staircase(epsilon, 400_000, np.random.default_rng(2)))
    assert noise == pytest.approx(unit * np.quantile(sizes, 0.95), rel=0.01)
    assert two**2 - one**2 == pytest.approx(one**2 - least**2, rel=1e-3)
    assert least >= noise
    if not adjust:  # nothing but the last noise is left
        assert least == pytest.approx(noise, rel=1e-3)


def test_orthogonal_intervals_cover_the_effect_of_a_random_treatment_in_three_hundred_studies():
    """Without the last step's noise in them about 80 % would."""
    rng = np.random.default_rng(7)
    request = Request("sample", Fraction(1, 2), options=OrthogonalOptions(adjust=False))
    covered = 0
    for seed in range(300):
        study = draw_study(rng, 1000)
        low, high = estimate_orthogonal(study, request, Noise(SeededEntropy(seed))).interval
        covered += low <= 0.2 <= high

    assert covered / 300 >= 0.91


@pytest.mark.parametrize("rows", [1, 2])
def test_the_calibrated_interval_holds_the_imbalance_that_the_cap_left(monkeypatch, rows):
    study = draw_study(np.random.default_rng(5), 300, confounded=True)
    request = Request("label", Fraction(2), rows_per_person=rows)
    tape = Tape(steer=lambda *_: 0)
    weights, imbalance = weigh_again(study, request)
    spread = 0.125**2 * AMONG_LIKE  # among like units, if outcomes spread as guessed
    known = PairVariance(spread, 1e-9 * spread, 0.25, 0.125)
    squares = float((weights**2).sum())
    monkeypatch.setattr(calibrated, "release_pair_variance", lambda *_: known)

    estimate = calibrated.estimate_calibrated(study, request, Noise(SeededEntropy(1), tape))

    (outcome,) = tape.spends
    scale = float(Fraction(outcome.sensitivity[0], 1 << 54)) / study.size
    half, without = (
        staircase_and_normal_quantile(
            0.95, float(outcome.epsilon), scale, math.sqrt(spread * squares + extra) / study.size
        )
        for extra in (0.125**2 * imbalance, 0.0)
    )
    assert weights.max() * rows / study.size == pytest.approx(scale, rel=1e-6)
    assert estimate.interval[1] == pytest.approx(half, rel=2e-3)  # weights are solved nearly
    assert half > 1.05 * without  # the imbalance matters here


def weigh_again(study, request):
    """Return the weights and ‖Fᵀw‖² of both arms, computed from the rows."""
    public = study.public()
    variance = staircase_variance(0.9 * float(request.epsilon)) * request.rows_per_person**2
    path = walk_caps(public, pose_caps(public, request))
    settled = settle_weights(public, path, path.choose(variance, 0.125))
    weights = settled.of(Block(study.covariates.T, study.treatment, None), None)
    features = settled.problem.features.map(study.covariates.T)
    imbalance = sum(
        float(((settled.problem.features.doubt * (weights[arm] @ features[arm])) ** 2).sum())
        for arm in (study.treatment, ~study.treatment)
    )
    assert math.isclose(weights[study.treatment].sum(), study.size, rel_tol=1e-9)
    return weights, imbalance
