"""Three arms and more at label level: what weights, means and intervals must be."""

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

import replay
from private_ate import ArgumentError, SchemaError, estimate_ate
from private_ate.domain import Domain, Interval, Outcome, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.methods.calibrated import design as designs
from private_ate.methods.calibrated.design import pose
from private_ate.methods.calibrated.method import estimate_calibrated
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.calibrated.private import NoiseRule
from private_ate.methods.calibrated.weights import choose_cap, try_caps, weigh
from private_ate.methods.published.method import PublishedOptions, estimate_published
from private_ate.models.propensity import fit_propensity
from private_ate.privacy.distributions import staircase_variance
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from several_arms import arm_domain, arm_study, arm_table

ASKED = Request("label", Fraction(1))
METHODS = [estimate_calibrated, estimate_published]
NOISELESS = Request("label", Fraction(10**6), confidence=None)


def levels(method, study, request=NOISELESS):
    """Return the means of a run whose noise is too small to see."""
    run = replay.record(method, study, request)
    return np.array([arm.value for arm in run.estimate.quantities])


def weights_of(study, request=ASKED, variance=10.0, guess=0.125):
    """Return every row's weight, and the arms' settled weights."""
    public = study.public()
    design = pose(public, request)
    draws = [(arm,) for arm in range(len(design.arms))]
    settled = weigh(public, design, draws, variance, guess)
    base = None if design.base is None else design.base.values
    return settled.of(public._block(0), base), settled.arms


@pytest.mark.parametrize("arms", [3, 6])
@pytest.mark.parametrize("asked", [{}, {"target": "track"}, {"among": "a2"}])
def test_calibrated_weights_of_each_arm_add_up_to_all_units_below_their_caps(arms, asked):
    study = arm_study(arms, rows=1200, seed=arms)

    rows, settled = weights_of(study, replace(ASKED, **asked))

    np.testing.assert_allclose(np.bincount(study.arm, rows), study.size, rtol=1e-9)
    assert rows.min() >= 0
    for arm, each in enumerate(settled):
        assert rows[study.arm == arm].max() <= each.cap * (1 + 1e-12)


def test_calibrated_weights_make_every_arm_like_everybody_or_like_one_arm():
    study = arm_study(3, rows=2000)
    for among, wanted in ((None, study.covariates), ("a1", study.covariates[:, study.arm == 1])):
        rows, _ = weights_of(study, replace(ASKED, among=among), variance=0.01)
        for arm in range(3):
            inside = study.arm == arm
            mean = np.average(study.covariates[:, inside], axis=1, weights=rows[inside])
            np.testing.assert_allclose(mean, wanted.mean(axis=1), atol=0.02)


def test_the_arm_whose_units_are_meant_keeps_equal_weights():
    study = arm_study(3, rows=400)

    rows, settled = weights_of(study, replace(ASKED, among="a1"))

    inside = study.arm == 1
    np.testing.assert_allclose(rows[inside], study.size / inside.sum())
    assert settled[1].imbalance == pytest.approx(0, abs=1e-9)


def test_every_arm_chooses_the_cap_of_its_own_least_error():
    study = arm_study(3, rows=800)
    design = pose(study.public(), ASKED)
    paths = [list(try_caps(design, (arm,))) for arm in range(3)]

    chosen = [choose_cap(design, path, 1.0, 0.125) for path in paths]

    assert len({point.cap for point in chosen}) == 3
    for arm, path, point in zip(design.arms, paths, chosen, strict=True):
        assert point.cap >= arm.equal_weight
        whole = 1.3 + arm.features.share
        errors = [each.cap**2 + 0.125**2 / whole * each.loss for each in path]
        assert min(errors) == point.cap**2 + 0.125**2 / whole * point.loss
        assert all(one.cap > next_.cap for one, next_ in pairwise(path))


def test_arms_of_many_rows_are_solved_on_all_of_them(monkeypatch):
    study = arm_study(3, rows=3000, seed=2)
    monkeypatch.setattr(designs, "_FIT_ROWS", 1000)
    request = replace(ASKED, options=CalibratedOptions(terms="plain"))

    rows, settled = weights_of(study, request)

    np.testing.assert_allclose(np.bincount(study.arm, rows), study.size, rtol=1e-9)
    for arm in settled:
        left = arm.used.features - arm.problem.target
        np.testing.assert_allclose(left, arm.dual[:-1], atol=1e-3 * study.size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("asked", [{}, {"target": "track"}])
def test_relabelling_and_reordering_arms_changes_no_estimate(method, asked):
    study = arm_study(4, rows=300, seed=8)
    order = np.array([2, 0, 3, 1])  # the new code of each arm
    turned = replace(study, treatment=order[study.arm].astype(np.uint8))
    request = replace(NOISELESS, **asked)

    first, second = levels(method, study, request), levels(method, turned, request)

    np.testing.assert_allclose(first, second[order], atol=2e-6)


def test_the_door_gives_the_same_effects_whatever_the_order_of_declared_arms():
    study = arm_study(3, rows=300, seed=1)
    frame = arm_table(study)
    effects = {}
    for labels in (("a0", "a1", "a2"), ("a2", "a0", "a1")):
        domain = replace(study.domain, treatment=Treatment("t", arms=labels, reference="a0"))
        release = estimate_ate(
            frame, domain=domain, level="label", epsilon=10**6, confidence=None, seed=1
        )
        effects[labels] = release.settings["headline"], release.ate
    (first, ate), (second, turned) = effects.values()
    assert (first["arm"], second["arm"]) == ("a2", "a1")
    means = levels(estimate_calibrated, study)
    assert (ate, turned) == pytest.approx((means[2] - means[0], means[1] - means[0]), abs=1e-6)


def test_published_means_are_weighted_means_of_matched_units():
    study = arm_study(3, rows=200, seed=6)
    request = replace(NOISELESS, options=PublishedOptions(k=None))
    pool = study.pool(fit_propensity(study.public(), 1 / study.size).coefficients)
    weights = pool.match_sharing_ties(5).values  # no two scores are equal

    found = levels(estimate_published, study, request)

    sums = np.bincount(study.arm, weights * study.outcome / OUTCOME_STEPS)
    np.testing.assert_allclose(found, sums / study.size, atol=1e-6)


def test_matching_and_calibration_take_confounding_away():
    rng = np.random.default_rng(5)
    study = arm_study(3, rows=6000, seed=5)
    expected = 0.3 + 0.4 * study.covariates[0]
    noisy = np.clip(expected + 0.1 * study.arm + 0.05 * rng.standard_normal(study.size), 0, 1)
    study = replace(study, outcome=np.rint(noisy * OUTCOME_STEPS).astype(np.int32))
    plain = np.bincount(study.arm, noisy) / np.bincount(study.arm)
    true = expected.mean() + 0.1 * np.arange(3)
    assert np.abs(np.diff(plain) - 0.1).max() > 0.03
    for method in METHODS:
        np.testing.assert_allclose(levels(method, study), true, atol=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_a_declared_arm_that_holds_nobody_is_named(method):
    study = arm_study(3)
    gone = replace(study, treatment=np.where(study.arm == 1, 2, study.arm).astype(np.uint8))

    with pytest.raises(SchemaError, match=r"no unit is in arm 'a1': remove it from the declared"):
        replay.record(method, gone, ASKED)


@pytest.mark.parametrize("method", METHODS)
def test_an_arm_of_one_unit_stands_for_all_and_is_noted(method):
    study = arm_study(3, rows=200)
    codes = np.where(study.arm == 2, 0, study.arm).astype(np.uint8)
    codes[7] = 2
    alone = replace(study, treatment=codes)

    estimate = replay.record(method, alone, ASKED).estimate

    assert any(note.startswith("arm 'a2' has 1 unit: ") for note in estimate.settings.notes)
    assert levels(method, alone)[2] == pytest.approx(alone.outcome[7] / OUTCOME_STEPS, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_equal_scores_and_no_covariates_compare_plain_means(method):
    study = arm_study(3, rows=240)
    outcome = study.outcome / OUTCOME_STEPS
    plain = np.bincount(study.arm, outcome) / np.bincount(study.arm)
    constant = replace(study, covariates=np.full((3, 240), 0.5))
    bare = LocalStudy(arm_domain(3, 0), np.zeros((0, 240)), study.treatment, study.outcome)
    if method is estimate_calibrated:
        np.testing.assert_allclose(levels(method, constant), plain, atol=1e-7)
        np.testing.assert_allclose(levels(method, bare), plain, atol=1e-7)
    else:  # ties are broken by the secret order within limits that use everybody alike
        tight = replace(NOISELESS, options=PublishedOptions(k=1))
        for one in (constant, bare):
            np.testing.assert_allclose(levels(method, one, tight), plain, atol=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_separated_arms_are_finite_and_warned_of(method):
    study = arm_study(3, rows=300)
    codes = np.minimum(np.floor(study.covariates[0] * 3), 2).astype(np.uint8)

    estimate = replay.record(method, replace(study, treatment=codes), ASKED).estimate

    assert all(np.isfinite(arm.value) for arm in estimate.quantities)
    assert estimate.warnings
    assert "poor overlap of the arms" in estimate.warnings[0]


@pytest.mark.parametrize("method", METHODS)
def test_twenty_arms_are_compared(method):
    study = arm_study(20, rows=600, covariates=2)

    estimate = replay.record(method, study, replace(ASKED, confidence=None)).estimate

    assert len(estimate.quantities) == 20
    assert len(estimate.rows) == 190


def test_missing_outcomes_of_several_arms_are_left_out_where_public():
    study = arm_study(3, rows=400)
    observed = np.arange(400) % 7 != 3
    spoilt = np.where(observed, study.outcome, OUTCOME_STEPS).astype(np.int32)
    left = replace(study, domain=arm_domain(3, missing="public"), observed=observed, outcome=spoilt)
    for method in METHODS:
        kept = LocalStudy(
            study.domain, study.covariates[:, observed], study.treatment[observed],
            study.outcome[observed],
        )  # fmt: skip
        estimate = replay.record(method, left, NOISELESS).estimate
        assert estimate.settings.left_out_outcome == 400 - observed.sum()
        assert any("have no outcome" in note for note in estimate.settings.notes)
        found = np.array([arm.value for arm in estimate.quantities])
        np.testing.assert_allclose(found, levels(method, kept), atol=0.03)
        assert np.abs(found - levels(method, replace(study, outcome=spoilt))).max() > 0.05


def test_nobody_with_an_outcome_in_an_arm_is_said():
    study = replace(arm_study(3), domain=arm_domain(3, missing="public"))
    study = replace(study, observed=study.arm != 1)

    with pytest.raises(SchemaError, match="no unit of arm 'a1' has an outcome"):
        replay.record(estimate_calibrated, study, ASKED)


class Unread:
    def __getattr__(self, name):
        raise AssertionError(name)


@pytest.mark.parametrize(
    ("asked", "missing", "said"),
    [
        ({}, "private", "private missing outcomes can be left out of two arms only"),
        ({"method": "published", "among": "a1"}, None, "'published' compares 3 arms among all"),
        ({"estimand": "att"}, None, "name the arm whose units are meant: among="),
        ({"estimand": "ato"}, None, "the ATO compares two arms"),
    ],
)
def test_what_several_arms_cannot_have_is_refused_before_a_record_is_read(asked, missing, said):
    with pytest.raises(ArgumentError, match=re.escape(said)):
        estimate_ate(Unread(), domain=arm_domain(3, missing=missing), level="label", epsilon=1,
                     **asked)  # fmt: skip


@pytest.mark.parametrize(
    ("study", "asked", "said"),
    [
        (arm_study(3), {"among": "a1"}, "target 'balance'"),
        (replace(arm_study(3), domain=arm_domain(3, missing="public")), {}, "some may have no"),
    ],
)
def test_matching_is_not_followed_where_it_has_no_meaning(study, asked, said):
    with pytest.raises(ArgumentError, match=said):
        replay.record(estimate_calibrated, study, replace(ASKED, target="track", **asked))


def test_a_person_with_several_rows_is_paid_for_by_the_rule_of_less_noise():
    assert NoiseRule.of(7, 1, Fraction(1), 1) == NoiseRule(1, 7)  # one form, one draw
    assert NoiseRule.of(1, 3, Fraction(1), 1) == NoiseRule(1, 1)
    assert NoiseRule.of(5, 3, Fraction(1), 1) == NoiseRule(5, 1)
    assert NoiseRule.of(100, 3, Fraction(60), 1) == NoiseRule(3, 100)
    for rows, epsilon in ((5, 1.0), (100, 60.0)):
        rule = NoiseRule.of(rows, 3, Fraction(epsilon), 1)
        rules = rows**2 * staircase_variance(epsilon / 3), staircase_variance(epsilon / rows)
        assert rule.variance(Fraction(epsilon), 1) == pytest.approx(min(rules))


@pytest.mark.parametrize("rows", [1, 4])
def test_the_noise_told_is_the_noise_that_was_drawn(rows):
    study = arm_study(3, rows=120)
    request = replace(ASKED, rows_per_person=rows, confidence=None)
    run = replay.record(estimate_calibrated, study, request)
    (spend,) = run.noise.spends

    assert spend.epsilon == 1
    for arm, sensitivity in zip(run.estimate.quantities, spend.sensitivity, strict=True):
        (noise,) = arm.noise
        assert noise.name == "staircase"
        assert noise.epsilon == Fraction(1, rows)
        assert noise.unit == pytest.approx(sensitivity / 2**54 / study.size)


def test_clipping_tightens_all_arms_at_once():
    study = arm_study(3, rows=900)
    narrow = (study.outcome * 0.02 + 0.4 * OUTCOME_STEPS).astype(np.int32)
    study = replace(study, outcome=narrow)
    options = CalibratedOptions(outcome_sd=0.01)
    request = Request("label", Fraction(4), options=options, confidence=None)

    tight = replay.record(estimate_calibrated, study, request).estimate
    wide = replay.record(estimate_calibrated, study, replace(request, options=None)).estimate

    low, high = tight.settings.clipped_to
    assert low < 0.4
    assert high > 0.42
    assert high - low == pytest.approx(0.08, abs=1e-6)
    (tight_noise,), (wide_noise,) = tight.quantities[0].noise, wide.quantities[0].noise
    assert tight_noise.unit < 0.2 * wide_noise.unit


def test_intervals_are_wider_than_noise_alone_and_cost_a_public_share():
    release = estimate_ate(
        arm_table(arm_study(3, rows=500)), domain=arm_domain(3), level="label", epsilon=2, seed=4
    )

    assert release.settings["budget"] == pytest.approx({"variance": 0.3, "outcome sums": 1.7})
    low, high = release.noise_interval
    assert release.interval[0] < low < high < release.interval[1]


def test_a_table_with_doses_in_bins_is_compared_by_its_bins():
    rng = np.random.default_rng(2)
    dose = rng.integers(0, 20, 600)
    frame = pl.DataFrame({"dose": dose, "y": np.clip(dose / 20, 0, 1), "x": rng.random(600)})
    treatment = Treatment("dose", bins=(0, 1, 6, 20))
    domain = Domain(treatment, Outcome("y", Interval(0, 1)), {"x": Interval(0, 1)})

    release = estimate_ate(frame, domain=domain, level="label", epsilon=10**6, seed=1)

    assert sum(release.settings["arms"].values()) == 600
    assert len(release.settings["arms"]) == 3
    assert release.ate == pytest.approx(np.mean(dose[dose >= 6]) / 20, abs=0.02)
