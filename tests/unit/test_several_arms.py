"""A release of several arms: its contrasts, combinations, ratios and JSON."""

import json
import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from private_ate import (
    Binary,
    Domain,
    Release,
    arm_means,
    e_value,
    odds_ratio,
    risk_ratio,
    standard_error,
)
from private_ate.codec import encode
from private_ate.effects.estimate import Quantity
from private_ate.errors import ArgumentError
from private_ate.release.intervals import noise_draws
from smoking import (
    LABELS,
    LEVELS,
    SIZES,
    WEIGHT,
    arm_levels,
    label_settings,
    sample_settings,
    smoking_release,
)

RELEASE = smoking_release()
NONE, FEW, SOME, MANY = LABELS


def test_the_arms_are_in_the_release_with_sizes_means_and_intervals():
    assert [arm.label for arm in RELEASE.arms] == list(LABELS)
    assert [arm.units for arm in RELEASE.arms] == list(SIZES)
    assert [arm.mean for arm in RELEASE.arms] == list(LEVELS)
    for arm in RELEASE.arms:
        assert arm.interval[0] < arm.noise_interval[0] < arm.mean < arm.noise_interval[1]
        assert arm.variance == pytest.approx(np.mean(arm.variances))
    assert smoking_release(arm_levels(variances=False)).arms[0].variance is None
    assert all(arm.units is None for arm in smoking_release(level="sample").arms)


def test_the_headline_is_the_last_arm_against_the_reference():
    row = RELEASE.contrast(MANY, NONE)
    assert (RELEASE.ate, RELEASE.interval) == (row.effect, row.interval)
    assert RELEASE.noise_interval == row.noise_interval
    assert RELEASE.treatment.arms == LABELS


def test_contrasts_are_a_view_of_the_table_of_effects():
    assert len(RELEASE.contrasts) == len(RELEASE.effects) == 6
    for row, effect in zip(RELEASE.contrasts, RELEASE.effects, strict=True):
        assert (row.arm, row.against, row.effect) == (effect.arm, effect.against, effect.estimate)
        assert row.simultaneous == effect.simultaneous != row.interval
        assert (effect.outcome, effect.subgroup, effect.estimand) == ("weight", None, "ate")


def test_a_contrast_can_be_asked_for_in_either_order():
    forth, back = RELEASE.contrast(SOME, FEW), RELEASE.contrast(FEW, SOME)
    assert (back.arm, back.against, back.effect) == (FEW, SOME, -forth.effect)
    for name in ("interval", "simultaneous", "noise_interval"):
        low, high = getattr(forth, name)
        assert getattr(back, name) == (-high, -low)
    assert back.flipped() == forth
    with pytest.raises(ArgumentError, match="'x' is none of the release's arms '0 daily'"):
        RELEASE.contrast("x", NONE)
    with pytest.raises(ArgumentError, match="not with itself"):
        RELEASE.contrast(NONE, NONE)


def test_labels_that_are_numbers_are_read_as_they_were_declared():
    from private_ate import Treatment

    domain = replace(WEIGHT, treatment=Treatment("t", arms=(0, 1, 2, 3)))
    release = smoking_release(domain=domain)
    assert release.contrast(3, 0) == release.contrast("3", 0.0)
    assert release.combination({3: 1, 0: -1}).estimate == release.ate


def test_a_difference_of_two_arms_as_a_combination_is_their_contrast():
    for first, second in ((MANY, NONE), (SOME, FEW), (NONE, FEW)):
        row = RELEASE.contrast(first, second)
        found = RELEASE.combination({first: 1.0, second: -1.0})
        assert found.estimate == pytest.approx(row.effect)
        assert found.interval == pytest.approx(row.interval)
        assert found.noise_interval == pytest.approx(row.noise_interval)
    one = RELEASE.combination({FEW: 1.0})
    arm = RELEASE.arms[1]
    assert (one.estimate, one.interval) == (arm.mean, pytest.approx(arm.interval))
    assert one.noise_interval == pytest.approx(arm.noise_interval)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_trend_has_the_law_of_its_weighted_errors(level):
    release = smoking_release(level=level)
    weights = {NONE: -1.5, FEW: -0.5, SOME: 0.5, MANY: 1.5}
    found = release.combination(weights)
    assert found.estimate == pytest.approx(np.dot(list(weights.values()), LEVELS))
    rng = np.random.default_rng(3)
    errors = sum(
        weight
        * (
            noise_draws(arm.noise, rng.random(200_000))
            + np.sqrt(rng.choice(arm.variances, 200_000)) * rng.normal(size=200_000)
        )
        for arm, weight in zip(release.arms, weights.values(), strict=True)
    )
    half = found.interval[1] - found.estimate
    covered = np.mean(np.abs(errors) <= half)
    assert covered == pytest.approx(0.95, abs=0.003) if level == "label" else 0.955 < covered < 0.99


def test_noise_that_means_share_drops_out_of_weights_that_add_up_to_zero():
    from private_ate.privacy.distributions import NoiseDistribution

    shared = NoiseDistribution("laplace", 100.0, 0.1)
    # As releases of a method that is retired have it.
    noisy = replace(RELEASE, arms=tuple(replace(arm, mean_noise=shared) for arm in RELEASE.arms))
    zero = {NONE: -1.0, FEW: 0.5, SOME: 0.5}
    assert noisy.combination(zero) == RELEASE.combination(zero)
    wide = noisy.combination({FEW: 0.5, SOME: 0.5})
    assert wide.noise_interval[0] < RELEASE.combination({FEW: 0.5, SOME: 0.5}).noise_interval[0]


def test_without_means_weights_add_up_to_zero():
    release = smoking_release(means=False)
    assert release.combination({FEW: 1, NONE: -1}).estimate == pytest.approx(-167.4)
    with pytest.raises(ArgumentError, match="weights that add up to zero"):
        release.combination({FEW: 1.0})
    assert release.combination({FEW: 1, NONE: -1}).interval is not None
    bare = smoking_release(arm_levels(variances=False))
    assert bare.combination({FEW: 1.0}).interval is None


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, "other than zero"),
        ({FEW: 0}, "other than zero"),
        ({"x": 1}, "none of the release's arms"),
        ({FEW: float("nan")}, "at most 1e9"),
        ({FEW: "1"}, "is a number, not str"),
        ({FEW: True}, "is a number, not bool"),
    ],
)
def test_odd_weights_are_refused(weights, message):
    with pytest.raises(ArgumentError, match=message):
        RELEASE.combination(weights)


def test_a_combination_stays_within_what_means_can_be():
    wide = replace(RELEASE, arms=tuple(replace(arm, noise=replace(arm.noise, unit=1e5))
                                       for arm in RELEASE.arms))  # fmt: skip
    assert wide.combination({FEW: 0.5, SOME: 0.5}).interval == (0, 6000)
    assert wide.combination({FEW: 1, SOME: -1}).interval == (-6000, 6000)
    assert wide.combination({FEW: -2, SOME: 1}).noise_interval == (-12000, 6000)


def test_the_table_comes_as_a_frame():
    frame = RELEASE.to_frame()
    assert frame.height == 6
    assert frame["arm"].to_list() == [row.arm for row in RELEASE.contrasts]
    assert frame["simultaneous_low"].to_list() == [row.simultaneous[0] for row in RELEASE.contrasts]


@pytest.mark.parametrize(
    "release",
    [
        RELEASE,
        smoking_release(level="sample"),
        smoking_release(arm_levels("laplace", variances=False), means=False),
        smoking_release(among=SOME),
        smoking_release(confidence=None),
    ],
    ids=["label", "sample", "no means", "among", "no interval"],
)
def test_a_release_of_several_arms_comes_back_from_json_and_pickles(release):
    text = release.to_json()
    assert Release.from_json(text) == release
    assert Release.from_json(text).to_json() == text
    assert list(json.loads(text))[11:13] == ["effects", "arms"]
    assert pickle.loads(pickle.dumps(release)) == release  # noqa: S301  # our own
    assert deepcopy(release) == release


def test_arms_that_were_compared_as_they_are_make_differences():
    release = smoking_release(settings=sample_settings(), level="sample")
    assert (release.estimand, release.adjusted) == ("difference", False)
    assert {row.estimand for row in release.effects} == {"difference"}
    adjusted = smoking_release(settings=sample_settings(adjusted=True), level="sample")
    assert {row.estimand for row in adjusted.effects} == {"ate"}
    assert {row.estimand for row in smoking_release(among=SOME).effects} == {"att"}


def risks():
    domain = Domain(WEIGHT.treatment, ("died", Binary()), WEIGHT.covariates)
    levels = (0.1, 0.2, 0.4, 0.39)
    arms = tuple(
        Quantity(level, (replace(arm.noise[0], unit=0.001),), (1e-5,))
        for arm, level in zip(arm_levels(), levels, strict=True)
    )
    return smoking_release(arms, domain=domain)


def test_ratios_of_any_two_arms_follow_from_their_means():
    release = risks()
    assert arm_means(release) == arm_means(release, arm=MANY, against=NONE)
    assert (arm_means(release).treated, arm_means(release).control) == (0.39, 0.1)
    assert risk_ratio(release) == pytest.approx(3.9)
    assert risk_ratio(release, arm=SOME, against=FEW) == pytest.approx(2)
    assert risk_ratio(release, arm=FEW, against=SOME) == pytest.approx(0.5)
    assert odds_ratio(release, arm=FEW) == pytest.approx((0.2 / 0.8) / (0.1 / 0.9))
    assert e_value(release).risk_ratio == pytest.approx(3.9)
    found = e_value(release, arm=FEW)
    assert found.risk_ratio == pytest.approx(2)
    assert found.limit < found.estimate == pytest.approx(2 + 2**0.5)
    with pytest.raises(ArgumentError, match="declared as binary"):
        risk_ratio(RELEASE)
    with pytest.raises(ArgumentError, match="no arm means"):
        arm_means(smoking_release(means=False))


def test_the_standard_error_of_any_contrast_is_half_its_interval_over_the_normal_quantile():
    row = RELEASE.contrast(SOME, FEW)
    half = row.interval[1] - row.effect
    assert standard_error(RELEASE, arm=SOME, against=FEW) == pytest.approx(half / 1.959964)
    assert standard_error(RELEASE) == standard_error(RELEASE, arm=MANY, against=NONE)


def test_methods_leave_the_comparison_to_be_filled_in():
    assert "headline" not in encode(label_settings())
    assert RELEASE.settings["headline"] == {"arm": MANY, "against": NONE}
    assert list(RELEASE.settings["simultaneous_factor"]) == ["all pairs", "against the reference"]
