"""The calibrated estimator: its weights, its targets and what it reports."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from private_ate import (
    ArgumentError,
    Binary,
    CalibratedOptions,
    Domain,
    Interval,
    SchemaError,
    Treatment,
    estimate_ate,
    exact_effect,
)
from private_ate.engines.local import LocalStudy
from private_ate.methods.calibrated import design as designs
from private_ate.methods.calibrated import weights as capped
from private_ate.methods.calibrated.design import pose
from private_ate.methods.calibrated.features import UNEXPLAINED, weights_at
from private_ate.methods.calibrated.pairing import like_pairs
from private_ate.methods.calibrated.solver import maximize_dual
from private_ate.methods.calibrated.variance import share_for_variance
from private_ate.methods.calibrated.weights import choose_cap, settle, try_caps, weigh
from private_ate.request import Request

DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(0, 1)), {f"x{j}": Interval(0, 1) for j in range(3)}
)


def confounded(rows=400, seed=0, strength=2.0):
    rng = np.random.default_rng(seed)
    covariates = rng.random((3, rows))
    score = strength * (covariates.sum(axis=0) - 1.5)
    treated = rng.random(rows) < 1 / (1 + np.exp(-score))
    outcome = np.clip(
        0.2 * covariates.sum(axis=0) + 0.2 * treated + rng.normal(0, 0.05, rows), 0, 1
    )
    return covariates, treated, outcome


def study_of(covariates, treated, outcome=None):
    steps = None if outcome is None else np.rint(outcome * 2**30).astype(np.int32)
    return LocalStudy(DOMAIN, covariates, treated, steps)


def frame_of(covariates, treated, outcome):
    return pl.DataFrame({f"x{j}": covariates[j] for j in range(3)} | {"t": treated, "y": outcome})


def design_of(study, **request):
    return pose(study, Request("label", Fraction(1), **request))


def path_of(study, **request):
    design = design_of(study, **request)
    return design, list(try_caps(design, (0, 1)))


def values_of(study, design, point):
    base = None if design.base is None else design.base.values
    return settle(study, design, [point]).of(study._block(0), base)


@pytest.mark.parametrize("cap", [1.6, 2.5, 8.0])
def test_the_dual_solution_is_the_minimum_of_the_primal(cap):
    rng = np.random.default_rng(3)
    features, base = rng.normal(size=(12, 3)), 1 + rng.random(12) * 2
    target = rng.normal(size=3)

    def loss(weights):
        gap = features.T @ weights - target
        return UNEXPLAINED / 2 * ((weights - base) ** 2).sum() + gap @ gap / 2

    solution = maximize_dual(features, base, np.ones(12), cap, target, 18.0, np.zeros(4))
    weights = weights_at(features @ solution.dual[:-1] + solution.dual[-1], base, np.ones(12), cap)
    reference = minimize(
        loss, np.full(12, 1.5), method="SLSQP", bounds=[(0, cap)] * 12,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 18.0},
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip

    assert weights.sum() == pytest.approx(18.0, abs=1e-4)
    assert loss(weights) == pytest.approx(reference.fun, rel=1e-5)
    assert np.allclose(weights, reference.x, atol=2e-3)


@pytest.mark.parametrize(
    "request_", [{}, {"target": "track"}, {"estimand": "att"}, {"estimand": "atc"}]
)
def test_every_cap_is_kept_and_both_arms_sum_to_n(request_):
    covariates, treated, _ = confounded()
    study = study_of(covariates, treated)

    design, points = path_of(study, **request_)

    for point in points[::3]:
        values = values_of(study, design, point)
        assert values.min() >= 0
        assert values.max() <= point.cap * (1 + 1e-12)
        assert values[treated].sum() == pytest.approx(400, rel=1e-9)
        assert values[~treated].sum() == pytest.approx(400, rel=1e-9)


def test_a_tighter_cap_never_lowers_the_loss_and_trying_may_stop_at_the_minimum(monkeypatch):
    study = study_of(*confounded()[:2])
    design, points = path_of(study)
    losses = [point.loss for point in points]
    monkeypatch.setattr(capped, "settle", lambda _, __, chosen: chosen)

    assert all(after >= before * (1 - 1e-6) for before, after in pairwise(losses))
    for variance in (0.01, 1.0, 100.0, 1e5):
        (found,) = weigh(study, design, [(0, 1)], variance, 0.125)
        assert found.cap == choose_cap(design, points, variance, 0.125).cap


def test_balance_weights_remove_the_measured_differences():
    covariates, treated, outcome = confounded(rows=2000)

    release = estimate_ate(
        frame_of(covariates, treated, outcome), domain=DOMAIN, level="label", epsilon=10
    )

    for before, after in release.settings["balance"].values():
        assert abs(before) > 0.2
        assert abs(after) < 0.05
    assert release.ate == pytest.approx(0.2, abs=0.02)


def test_att_weights_bring_controls_to_the_treated():
    covariates, treated, _ = confounded(rows=3000)
    study = study_of(covariates, treated)
    design = design_of(study, estimand="att")

    values = values_of(study, design, next(try_caps(design, (0, 1))))

    assert np.allclose(values[treated], 3000 / treated.sum())
    moved = covariates[:, ~treated] @ values[~treated] / 3000
    gap = np.abs(moved - covariates[:, treated].mean(axis=1)).max()
    naive = np.abs(covariates[:, ~treated].mean(axis=1) - covariates[:, treated].mean(axis=1)).max()
    assert gap < naive / 20


def test_track_without_a_binding_cap_is_the_matching_estimate():
    frame = frame_of(*confounded())

    release = estimate_ate(
        frame, domain=DOMAIN, level="label", epsilon=10**6, target="track", confidence=None
    )

    assert release.ate == pytest.approx(exact_effect(frame, domain=DOMAIN), rel=1e-5)


def test_track_does_not_depend_on_the_order_of_rows():
    covariates, treated, outcome = confounded()
    covariates = np.round(covariates * 3) / 3  # many ties
    order = np.random.default_rng(1).permutation(400)
    requests = {"domain": DOMAIN, "level": "label", "epsilon": 10**6, "confidence": None}

    first = estimate_ate(frame_of(covariates, treated, outcome), target="track", **requests)
    second = estimate_ate(
        frame_of(covariates[:, order], treated[order], outcome[order]), target="track", **requests
    )

    assert first.ate == pytest.approx(second.ate, rel=1e-5)


def test_a_study_larger_than_the_sample_is_solved_on_all_rows(monkeypatch):
    covariates, treated, outcome = confounded(rows=6000)
    frame = frame_of(covariates, treated, outcome)
    requests = {"domain": DOMAIN, "level": "label", "epsilon": 10**6, "confidence": None}
    whole = estimate_ate(frame, **requests)
    monkeypatch.setattr(designs, "_FIT_ROWS", 2000)
    monkeypatch.setattr(capped, "_PATH_ROWS", 500)

    sampled = estimate_ate(frame, **requests)

    assert sampled.ate == pytest.approx(whole.ate, rel=0.02)
    worst = max(abs(after) for _, after in sampled.settings["balance"].values())
    assert worst < 0.01


def test_passes_over_all_rows_and_rows_at_hand_lead_to_the_same_weights(monkeypatch):
    covariates, treated, _ = confounded(rows=3000)
    study = study_of(covariates, treated)
    design, points = path_of(study)
    point = points[len(points) // 2]
    whole = values_of(study, design, point)
    monkeypatch.setattr(designs.Design, "is_complete", property(lambda _: False))
    monkeypatch.setattr(capped, "_CURVED_ROWS", 300)  # too few: the solver takes more steps

    by_passes = values_of(study, design, point)

    np.testing.assert_allclose(by_passes, whole, atol=0.02)


def test_prices_and_sums_by_leaves_are_those_of_the_features():
    covariates, treated, _ = confounded(rows=2000)
    design = design_of(study_of(covariates, treated))
    features = design.arms[1].features
    mapped, rng = features.map(covariates.T), np.random.default_rng(1)
    rows = np.flatnonzero(rng.random(2000) < 0.6)
    dual, near, units = rng.normal(size=features.size + 1), *rng.random((2, rows.size))
    price = mapped[rows] @ dual[:-1] + dual[-1]
    weights = weights_at(price, near, units, 1.5)

    found = features.weigh(covariates.T, rows, dual, near, units, 1.5)

    assert features.trees is not None
    np.testing.assert_allclose(found.price, price, atol=1e-9)
    np.testing.assert_allclose(found.weights, weights, atol=1e-9)
    np.testing.assert_allclose(found.sums, weights @ mapped[rows], atol=1e-8)
    again = features.add_up(covariates.T, rows, weights)
    np.testing.assert_allclose(again, weights @ mapped[rows], atol=1e-8)


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 400])
def test_an_arms_rows_are_paired_once_with_the_nearest_that_is_left(rows):
    covariates, treated, _ = confounded()
    features = design_of(study_of(covariates, treated)).arms[1].features
    chosen = np.random.default_rng(2).permutation(400)[:rows]

    first, second = like_pairs(features, covariates.T, chosen)

    points = features.standardise(covariates.T)
    score = points @ features.line[1:]
    scale = np.sqrt(3) / 2 / max(score[chosen].std(), 1e-9) if rows else 1.0
    points = np.column_stack([points, scale * score])
    left = chosen[np.argsort(score[chosen], kind="stable")].tolist()
    for one, other in zip(first, second, strict=True):
        near = left[1:129]  # as few covariates are compared with 128 rows
        distances = ((points[near] - points[one]) ** 2).sum(axis=1)
        assert (one, other) == (left[0], near[distances.argmin()])
        left = [row for row in left if row not in (one, other)]
    assert len(left) == rows % 2


def test_features_have_the_declared_shares_of_variance():
    covariates, treated, _ = confounded(rows=5000)
    covariates[2] = covariates[2] > 0.5
    design = design_of(study_of(covariates, treated))
    features = design.arms[1].features

    variances = features.map(covariates.T).var(axis=0)

    assert features.squares.tolist() == [0, 1]  # the binary column has no square
    assert variances[:3].sum() == pytest.approx(1.0)
    assert variances[3] == pytest.approx(0.03)
    assert variances[4:].sum() == pytest.approx(features.share)
    assert variances[features.mean.size :].sum() == pytest.approx(0.65 * features.share)


def test_a_trial_balances_nothing_but_the_covariates():
    design = design_of(study_of(*confounded()[:2]), design="randomized")

    assert design.arms[0].features.size == 3 + 1
    assert design.arms[0].features.share == 0


@pytest.mark.parametrize("constant", [0.0, 0.5])
def test_constant_covariates_are_dropped_and_the_estimate_is_the_difference_in_means(constant):
    _, treated, outcome = confounded()
    frame = frame_of(np.full((3, 400), constant), treated, outcome)

    release = estimate_ate(frame, domain=DOMAIN, level="label", epsilon=10**6, confidence=None)

    difference = outcome[treated].mean() - outcome[~treated].mean()
    assert release.ate == pytest.approx(difference, rel=1e-5)


def test_no_covariates_at_all_give_the_difference_in_means():
    _, treated, outcome = confounded()
    frame = pl.DataFrame({"t": treated, "y": outcome})
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)))

    release = estimate_ate(frame, domain=domain, level="label", epsilon=10**6, covariates=[])

    assert release.ate == pytest.approx(
        outcome[treated].mean() - outcome[~treated].mean(), rel=1e-4
    )


def test_means_and_ratios_of_a_binary_outcome_follow_from_the_release():
    covariates, treated, outcome = confounded(rows=4000)
    binary = (np.random.default_rng(5).random(4000) < outcome).astype(float)
    domain = Domain(Treatment("t", 1, 0), ("y", Binary()), DOMAIN.covariates)

    release = estimate_ate(
        frame_of(covariates, treated, binary), domain=domain, level="label", epsilon=5,
        options=CalibratedOptions(means=True),
    )  # fmt: skip

    one, zero = release.settings["means"]["treated"], release.settings["means"]["control"]
    assert release.ate == pytest.approx(one - zero)
    assert release.settings["risk_ratio"] == pytest.approx(one / zero)
    assert release.settings["odds_ratio"] == pytest.approx(one * (1 - zero) / (zero * (1 - one)))
    assert "risk ratio" in str(release)


def test_an_interval_costs_a_public_share_of_epsilon_and_none_saves_it():
    frame = frame_of(*confounded())

    paid = estimate_ate(frame, domain=DOMAIN, level="label", epsilon=1)
    saved = estimate_ate(frame, domain=DOMAIN, level="label", epsilon=1, confidence=None)

    assert paid.settings["budget"] == pytest.approx({"outcome sum": 0.85, "variance": 0.15})
    assert paid.interval[0] < paid.noise_interval[0] < paid.noise_interval[1] < paid.interval[1]
    assert saved.settings["budget"] == {"outcome sum": 1.0}
    assert saved.interval is None


def test_the_share_for_the_variance_grows_with_epsilon_and_with_the_rows():
    shares = {}
    for rows in (400, 3000):
        design = design_of(study_of(*confounded(rows=rows)[:2]))
        for epsilon in (1, 4):
            shares[rows, epsilon] = share_for_variance(design, [(0, 1)], Fraction(epsilon), 1, 1)

    assert shares[400, 1] <= shares[400, 4]
    assert shares[400, 1] <= shares[3000, 1]
    assert all(Fraction(1, 20) <= share <= Fraction(3, 10) for share in shares.values())


def test_several_rows_per_person_widen_the_noise_in_proportion():
    frame = frame_of(*confounded())
    requests = {"domain": DOMAIN, "level": "label", "epsilon": 1, "confidence": None}

    one = estimate_ate(frame, **requests)
    three = estimate_ate(frame, rows_per_person=3, **requests)

    half_widths = [np.diff(release.noise_interval)[0] / 2 for release in (one, three)]
    caps = [release.settings["weight_cap"] for release in (one, three)]
    assert half_widths[1] / half_widths[0] == pytest.approx(3 * caps[1] / caps[0], rel=1e-3)
    assert "person" in three.adjacency


def test_an_empty_arm_is_a_clear_error():
    covariates, _, outcome = confounded()
    frame = frame_of(covariates, np.zeros(400, dtype=bool), outcome)

    with pytest.raises(SchemaError, match="no unit is treated"):
        estimate_ate(frame, domain=DOMAIN, level="label", epsilon=1)


def test_following_matching_for_the_treated_alone_is_refused_with_a_way_out():
    with pytest.raises(ArgumentError, match="target 'balance'"):
        estimate_ate(
            frame_of(*confounded()), domain=DOMAIN, level="label", epsilon=1,
            target="track", estimand="att",
        )  # fmt: skip


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf")])
def test_a_guess_of_the_spread_is_a_positive_number(bad):
    with pytest.raises(ArgumentError, match="outcome_sd"):
        CalibratedOptions(outcome_sd=bad)


def long_tailed(rows=2000):
    """Outcomes of which almost all lie in a fiftieth of the declared range."""
    covariates, treated, outcome = confounded(rows=rows)
    return frame_of(covariates, treated, outcome / 50 + 0.3)


def test_clipping_to_a_private_range_shrinks_the_noise_of_loose_bounds():
    requests = {"domain": DOMAIN, "level": "label", "epsilon": 4, "confidence": None}
    frame = long_tailed(rows=8000)

    plain = estimate_ate(frame, **requests)
    clipped = estimate_ate(frame, options=CalibratedOptions(clip_share="0.1"), **requests)

    low, high = clipped.settings["clipped_to"]
    assert 0.2 < low < 0.306
    assert 0.31 < high < 0.45
    assert np.diff(clipped.noise_interval)[0] < np.diff(plain.noise_interval)[0] / 3
    assert clipped.ate == pytest.approx(0.2 / 50, rel=0.3)
    assert clipped.settings["budget"] == {
        "upper bound": 0.2, "lower bound": 0.2, "outcome sum": 3.6,
    }  # fmt: skip


def test_clipping_keeps_the_means_where_they_are():
    options = CalibratedOptions(clip_share="0.1", means=True)

    release = estimate_ate(
        long_tailed(rows=8000), domain=DOMAIN, level="label", epsilon=10, options=options
    )

    assert release.settings["means"]["control"] == pytest.approx(0.306, abs=0.002)
    assert release.interval[0] < 0.2 / 50 < release.interval[1]


@pytest.mark.parametrize("bad", ["a lot", "0.7", "-0.1", "1/0"])
def test_a_share_for_clipping_is_a_small_part_of_epsilon(bad):
    with pytest.raises(ArgumentError, match="clip_share"):
        CalibratedOptions(clip_share=bad)
