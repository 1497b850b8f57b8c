"""The orthogonal method of several arms, step by step on numbers that can be worked out."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate import ArgumentError, OrthogonalOptions, estimate_ate
from private_ate.domain import Binary, Categories, Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.estimators.orthogonal.several_arms.cells import (
    ArmCells,
    CountNoise,
    NoisyCells,
    smooth_cells,
)
from private_ate.estimators.orthogonal.several_arms.estimate import estimate_several_arms
from private_ate.estimators.orthogonal.several_arms.levels import shrunken_levels
from private_ate.estimators.orthogonal.several_arms.limits import (
    Limits,
    Weights,
    drift_variances,
    limited_weights,
)
from private_ate.estimators.orthogonal.several_arms.plan import (
    Ask,
    Path,
    interval_features,
    plan_path,
    shares_of,
    signal_ratio,
    size_share,
)
from private_ate.estimators.orthogonal.several_arms.rows import log_odds
from private_ate.estimators.orthogonal.several_arms.sizes import NoisySizes, project
from private_ate.estimators.request import Request
from private_ate.models.squares import SquaredFeatures
from private_ate.models.standardization import Scaling
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.sums import OUTCOME_STEPS
from private_ate.study import Block

EFFECTS = (0.0, 0.1, 0.25)


def sizes_of(*shares, members=10_000):
    return NoisySizes(np.array(shares) * members, members, 4.0)


def confounded(rows=20_000, seed=0, strength=1.0):
    """A study of three arms whose covariates decide about arm and outcome; true levels follow."""
    rng = np.random.default_rng(seed)
    covariates = rng.random((3, rows))
    total = (covariates - 0.5).sum(axis=0) * 2
    chances = np.exp(strength * np.outer(total, [-1.0, 0.0, 1.0]))
    passed = (chances / chances.sum(axis=1, keepdims=True)).cumsum(axis=1)
    arm = np.minimum((passed < rng.random(rows)[:, None]).sum(axis=1), 2)
    outcome = 0.4 + 0.1 * total + np.array(EFFECTS)[arm] + 0.05 * rng.standard_normal(rows)
    domain = Domain(
        Treatment("t", arms=("none", "low", "high")),
        ("y", Interval(0, 1)),
        {f"x{j}": Interval(0, 1) for j in range(3)},
    )
    steps = np.rint(np.clip(outcome, 0, 1) * OUTCOME_STEPS).astype(np.int32)
    return LocalStudy(domain, covariates, arm.astype(np.uint8), steps)


def test_the_signal_of_one_of_many_arms_falls_as_the_design_says():
    ratios = [round(signal_ratio(arms), 3) for arms in (2, 3, 4, 5, 6, 8, 10)]

    assert ratios == [1.0, 0.487, 0.315, 0.231, 0.182, 0.127, 0.097]


@pytest.mark.parametrize(
    ("counts", "members"),
    [
        ([50.0, 30.0, 20.0], 100),
        ([90.0, 30.0, -15.0], 100),
        ([-3.0, -2.0, -50.0], 12),
        ([1.0] * 20, 4),
    ],
)
def test_projected_sizes_add_up_and_none_is_near_zero(counts, members):
    sizes = project(np.array(counts), members)

    assert sizes.sum() == pytest.approx(members)
    assert sizes.min() >= min(max(2.0, 0.005 * members), members / len(counts)) - 1e-9
    assert (np.diff(sizes[np.argsort(counts)]) >= 0).all()


def test_sizes_that_add_up_already_stay_as_they_are():
    assert project(np.array([50.0, 30.0, 20.0]), 100).tolist() == [50.0, 30.0, 20.0]


@pytest.mark.parametrize(
    ("epsilon", "shares", "path"),
    [
        (0.05, (0.4, 0.3, 0.3), Path.PLAIN),
        (0.2, (0.4, 0.3, 0.3), Path.PROGNOSIS),
        (2.0, (0.4, 0.3, 0.3), Path.SCORE),
        (2.0, (0.79, 0.2, 0.01), Path.SCORE),  # an arm of one percent has no say
        (2.0, (0.76, 0.2, 0.04), Path.PROGNOSIS),
    ],
)
def test_released_sizes_decide_how_far_to_adjust(epsilon, shares, path):
    ask = Ask(10_000, 5, 3, 3, epsilon)

    assert plan_path(ask, sizes_of(*shares), OrthogonalOptions()).path is path


def test_users_force_a_path_or_move_the_thresholds():
    ask, sizes = Ask(10_000, 5, 3, 3, 0.05), sizes_of(0.4, 0.3, 0.3)

    assert plan_path(ask, sizes, OrthogonalOptions(adjust=True)).path is Path.SCORE
    assert plan_path(ask, sizes, OrthogonalOptions(adjust_threshold=0)).path is Path.PROGNOSIS
    assert plan_path(ask, sizes, OrthogonalOptions(score_threshold=0)).path is Path.SCORE
    bare = Ask(10_000, 0, 0, 3, 5.0)
    assert plan_path(bare, sizes, OrthogonalOptions(adjust=True)).path is Path.PLAIN


def test_thresholds_of_two_arms_are_what_they_were():
    assert OrthogonalOptions().threshold() == 3500
    assert OrthogonalOptions().threshold(3) == 800
    assert OrthogonalOptions(adjust_threshold=5).threshold(3) == 5
    assert OrthogonalOptions().of_two_arms() == {
        "adjust_threshold": 3500.0, "adjust": None, "shares": OrthogonalOptions().shares,
    }  # fmt: skip


@pytest.mark.parametrize("path", Path)
@pytest.mark.parametrize("size", [24, 10**9])
@pytest.mark.parametrize("with_interval", [False, True])
def test_what_a_path_does_without_is_left_to_the_estimate(path, size, with_interval):
    ask = Ask(size, 5, 3, 3, 1.0)
    shares = shares_of(path, ask, with_interval=with_interval, with_means=True)

    assert shares.sizes == size_share(size, 1.0)
    assert shares.levels > Fraction(1, 10)
    assert (shares.interval > 0) == with_interval
    assert (shares.means > 0) == (path is not Path.PLAIN)


def test_squares_are_those_of_numbers_and_not_of_labels():
    kinds = {
        "a": Categories("u", "v", "w"),
        "b": Interval(0, 1),
        "c": Binary(),
        "d": Interval(2, 3),
    }
    domain = Domain(Treatment("t", arms=("x", "y", "z")), ("o", Interval(0, 1)), kinds)

    assert interval_features(domain) == (3, 5)


def test_squares_of_scaled_covariates_lie_within_one():
    scaling = Scaling(np.array([2.0, 4.0]), np.array([-1.0, -1.0]))
    block = Block(np.array([[0.0, 0.25], [0.5, 1.0]]), np.zeros(2, np.uint8), None, arms=3)

    features = SquaredFeatures(scaling, (1,)).features(block)

    assert features.tolist() == [[1, 1], [-1, 0], [0, 1], [-1, 1]]


def test_levels_are_shrunk_towards_that_of_all_rows_as_their_noise_asks():
    sizes = NoisySizes(np.array([500.0, 400.0, 100.0]), 1000, 0.0)
    sums = np.array([50.0, 80.0, 40.0])

    exact, lost = (shrunken_levels(sums, sizes, 1.0, scale) for scale in (1e-9, 1e9))

    assert exact == pytest.approx([0.1, 0.2, 0.4])
    assert lost == pytest.approx([0.17] * 3)


def test_counts_without_noise_are_smoothed_to_the_shares_behind_them():
    share = np.array([[0.1, 0.2, 0.4, 0.6], [0.5, 0.5, 0.5, 0.5], [0.3, 0.25, 0.2, 0.1]])
    rows = 1e6
    cells = smooth_cells(NoisyCells(rows * share, rows * (1 - share)), CountNoise(1e-3, 1e-3))

    assert cells.share == pytest.approx(share, abs=1e-3)
    assert cells.weight == pytest.approx(np.full((3, 4), 0.25))


def test_the_weights_of_an_arm_add_up_to_all_rows_whatever_the_limit():
    cells = ArmCells(np.full(4, 0.25), np.array([0.01, 0.2, 0.4, 0.6]))

    for limit in (1.5, 5.0, 1000.0):
        weights = limited_weights(cells, limit)
        assert (cells.weight * cells.share * weights).sum() == pytest.approx(1)
        assert weights.max() / weights.min() <= max(limit, 1) + 1e-9
    assert weights == pytest.approx(1 / cells.share)


def test_limits_that_leave_rows_behind_widen_the_interval():
    share = np.array([[0.02, 0.1, 0.3, 0.6], [0.25, 0.25, 0.25, 0.25]])
    cells = ArmCells(np.full((2, 4), 0.25), share)
    given = Limits(1.4, np.zeros(2), 10_000, 1.0)

    tight, loose = (
        drift_variances(cells, Weights(limited_weights(cells, limit), np.full(2, limit)), given)
        for limit in (2.0, 1000.0)
    )

    assert tight[0] > 1e-4
    assert tight[1] == pytest.approx(0)
    assert loose == pytest.approx([0, 0])


@pytest.mark.parametrize("path", Path)
def test_every_path_spends_exactly_what_it_was_given(path):
    options = {
        Path.PLAIN: OrthogonalOptions(adjust=False),
        Path.PROGNOSIS: OrthogonalOptions(adjust_threshold=0, score_threshold=1e9, means=True),
        Path.SCORE: OrthogonalOptions(adjust=True, means=True),
    }[path]
    noise = Noise(SeededEntropy(0))
    request = Request("sample", Fraction(7, 5), options=options)

    estimate = estimate_several_arms(confounded(500), request, options, noise)

    assert noise.spent == Fraction(7, 5)
    assert estimate.settings.path == path.value
    assert sum(estimate.settings.budget.values()) == pytest.approx(1.4)
    assert all(arm.mean is not None for arm in estimate.comparison.arms)


@pytest.mark.parametrize("model", ["separate", "joint"])
def test_adjusting_finds_the_levels_that_a_plain_comparison_misses(model):
    study = confounded()
    errors = {}
    for path, adjust in (("plain", False), ("score", True)):
        options = OrthogonalOptions(adjust=adjust, score_model=model)
        release = estimate_ate(study, level="sample", epsilon=4, seed=1, options=options)
        assert release.settings["path"] == path
        effects = [release.contrast(label, "none").effect for label in ("low", "high")]
        errors[path] = np.abs(np.array(effects) - EFFECTS[1:]).max()

    assert errors["plain"] > 0.05
    assert errors["score"] < 0.02


def test_log_odds_of_a_joint_model_are_those_of_its_probabilities():
    linear = np.array([[0.3, -2.0], [1.0, 0.0], [-0.4, 700.0]])
    shares = np.exp(linear[:, 0]) / np.exp(linear[:, 0]).sum()

    odds = log_odds(linear)

    assert odds[:, 0] == pytest.approx(np.log(shares / (1 - shares)))
    assert np.isfinite(odds).all()


def test_an_unknown_score_model_is_refused():
    with pytest.raises(ArgumentError, match="score model"):
        OrthogonalOptions(score_model="both")


def test_means_are_released_if_they_are_paid_for():
    study = confounded()
    asked = {"level": "sample", "epsilon": 4, "seed": 1}

    free = estimate_ate(study, **asked, options=OrthogonalOptions(adjust=True))
    paid = estimate_ate(study, **asked, options=OrthogonalOptions(adjust=True, means=True))

    assert [arm.mean for arm in free.arms] == [None] * 3
    assert [arm.mean for arm in paid.arms] == pytest.approx(
        [0.4 + effect for effect in EFFECTS], abs=0.02
    )


@pytest.mark.parametrize("model", ["none", "separate", "joint"])
def test_what_rows_hold_that_take_no_part_makes_no_difference(model):
    study, absent = confounded(400), np.arange(400) % 5 == 0
    hidden = replace(study, takes_part=~absent)
    covariates, arm, outcome = study.covariates.copy(), study.arm.copy(), study.outcome.copy()
    covariates[:, absent], arm[absent], outcome[absent] = 1.0, 2, OUTCOME_STEPS
    other = replace(hidden, covariates=covariates, treatment=arm, outcome=outcome)
    options = OrthogonalOptions(adjust=False)
    if model != "none":
        options = OrthogonalOptions(adjust=True, means=True, score_model=model)
    request = Request("sample", Fraction(4), options=options)

    one, same = (
        estimate_several_arms(rows, request, options, Noise(SeededEntropy(5))).comparison
        for rows in (hidden, other)
    )

    assert one == same


def test_rows_that_take_no_part_do_not_shrink_the_levels():
    study = confounded(8000, strength=0.0)
    missing = np.arange(8000) % 2 == 0
    half = LocalStudy(
        study.domain, study.covariates, study.treatment, study.outcome, takes_part=~missing
    )

    release = estimate_ate(
        half, level="sample", epsilon=4, seed=2, options=OrthogonalOptions(adjust=False)
    )

    assert release.contrast("high", "none").effect == pytest.approx(0.25, abs=0.02)
    assert sum(release.settings["arm_shares"].values()) == pytest.approx(1)
    assert [arm.mean for arm in release.arms] == pytest.approx(
        [0.4 + effect for effect in EFFECTS], abs=0.03
    )
