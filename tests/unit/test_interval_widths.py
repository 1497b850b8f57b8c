"""Widths of intervals from what was released, each part of them computed a second time."""

import math
from fractions import Fraction

import numpy as np
import pytest

from private_ate.audit.replay import Recording
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.methods.blocks.plan import BlocksOptions
from private_ate.methods.calibrated import method as calibrated
from private_ate.methods.calibrated.design import pose
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.calibrated.variance import AMONG_LIKE, PairVariance
from private_ate.methods.calibrated.weights import weigh
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_and_normal_quantile
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
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


def test_intervals_of_arms_as_they_are_cover_the_effect_of_a_random_treatment():
    """Without the last step's noise in them about 80 % would."""
    rng = np.random.default_rng(7)
    request = Request("sample", Fraction(1, 2), options=BlocksOptions(adjust=False))
    covered = 0
    for seed in range(300):
        study = draw_study(rng, 1000)
        low, high = estimate_blocks(study, request, Noise(SeededEntropy(seed))).interval
        covered += low <= 0.2 <= high

    assert covered / 300 >= 0.91


@pytest.mark.parametrize("rows", [1, 2])
def test_the_calibrated_interval_holds_the_imbalance_that_the_cap_left(monkeypatch, rows):
    study = draw_study(np.random.default_rng(5), 300, confounded=True)
    request = Request("label", Fraction(2), rows_per_person=rows)
    recording = Recording(steer=lambda *_: 0)
    weights, imbalance = weigh_again(study, request)
    spread = 0.125**2 * AMONG_LIKE  # among like units, if outcomes spread as guessed
    known = PairVariance(spread, 1e-9 * spread, 0.25, 0.125)
    squares = float((weights**2).sum())
    monkeypatch.setattr(calibrated, "release_pair_variance", lambda *_: known)

    estimate = calibrated.estimate_calibrated(study, request, Noise(SeededEntropy(1), recording))

    (outcome,) = recording.spends
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
    """Return the weights and ‖F'w − g‖² of both arms, computed from the rows."""
    public = study.public()
    design = pose(public, request)
    budget = calibrated.plan_budget(design, study.domain.bounds, request, CalibratedOptions(), 1)
    settled = weigh(public, design, [(0, 1)], budget.noise_variance, 0.125)
    weights = settled.of(Block(study.covariates.T, study.treatment, None), None)
    imbalance = 0.0
    for arm in settled.arms:
        inside = study.arm == arm.problem.code
        rows = arm.problem.features.map(study.covariates.T)
        left = weights[inside] @ rows[inside] - rows.sum(axis=0)
        missed = 0.12 * arm.problem.features.evidence
        imbalance += float(left @ left) + missed**2 * arm.problem.missed
    assert math.isclose(weights[study.treatment].sum(), study.size, rel_tol=1e-9)
    return weights, imbalance
