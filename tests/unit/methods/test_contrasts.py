"""Contrasts of several arms from their released levels."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from private_ate import Domain, Interval, Treatment
from private_ate.effects.estimate import Quantity
from private_ate.effects.table import ALL_PAIRS, TO_REFERENCE, AboutArms
from private_ate.methods.effect_tables import estimate_of_quantities
from private_ate.methods.public_arms import greatest_over_pairs
from private_ate.methods.published.method import PublishedLabelArmsSettings
from private_ate.privacy.distributions import NoiseDistribution
from private_ate.release import Contrast
from private_ate.release.intervals import half_width, noise_draws, noise_half_width
from private_ate.request import Request
from private_ate.settings import ABSENT, Facts

DOSES = Treatment("dose", arms=("low", "none", "mid", "high"), reference="none")
DOMAIN = Domain(DOSES, ("y", Interval(0, 10)))
REQUEST = Request("label", "1")
LIKELY = (0.02, 0.03, 0.05)


def settings():
    return PublishedLabelArmsSettings(
        neighbors=5, matching_limit={}, matching_order="as given", ridge=0.1, confidence=0.95,
        rows_per_person=1, population="all n units", budget={}, arms={}, largest_weight={},
        equals_difference_in_means=False, noise_interval_covers="noise",
    )  # fmt: skip


def arm(level, unit=0.2, variances=LIKELY, name="laplace"):
    return Quantity(level, (NoiseDistribution(name, unit, Fraction(9, 10)),), variances)


LEVELS = (arm(5.0), arm(6.0), arm(4.5, 0.4), arm(9.0, 0.1))  # none, low, mid, high


def estimate(arms=LEVELS, request=REQUEST, rule="convolved", domain=DOMAIN, *, means=True):
    about = AboutArms(means)
    return estimate_of_quantities(arms, domain, request, settings(), about, rule=rule)


def contrasts(found, domain=DOMAIN):
    """Return the rows of an estimate with the labels of their arms."""
    labels = domain.treatment.coded
    return [
        Contrast(
            labels[row.arm], labels[row.against], row.effect,
            row.interval, row.simultaneous, row.noise_interval,
        )
        for row in found.rows
    ]  # fmt: skip


def test_contrasts_are_against_the_reference_first_then_the_other_pairs():
    found = contrasts(estimate())
    assert [(row.arm, row.against) for row in found] == [
        ("low", "none"), ("mid", "none"), ("high", "none"),
        ("mid", "low"), ("high", "low"), ("high", "mid"),
    ]  # fmt: skip
    assert [row.effect for row in found] == pytest.approx([1.0, -0.5, 4.0, -1.5, 3.0, 4.5])
    for row in found:
        for inner, outer in ((row.noise_interval, row.interval), (row.interval, row.simultaneous)):
            assert outer[0] < inner[0] < row.effect < inner[1] < outer[1]


def test_the_headline_is_the_last_declared_arm_against_the_reference():
    found = estimate()
    facts = Facts.of(found.settings)
    assert (facts.headline.arm, facts.headline.against) == ("high", "none")
    row = found.rows[2]
    assert (found.ate, found.interval, found.noise_interval) == (
        row.effect, row.interval, row.noise_interval,
    )  # fmt: skip


@pytest.mark.parametrize("rule", ["convolved", "in_squares"])
def test_intervals_are_those_of_both_arms_errors(rule):
    row = estimate(rule=rule).rows[3]  # mid against low
    laws = [*LEVELS[2].noise, *LEVELS[1].noise]
    half = half_width(0.95, laws, [LIKELY, LIKELY], rule)
    assert row.interval == pytest.approx((-1.5 - half, -1.5 + half))
    half = noise_half_width(0.95, laws)
    assert row.noise_interval == pytest.approx((-1.5 - half, -1.5 + half))
    mean = estimate(rule=rule).arms[2]
    half = half_width(0.95, laws[:1], [LIKELY], rule)
    assert mean.label == "mid"
    assert mean.interval == pytest.approx((4.5 - half, 4.5 + half))


@pytest.mark.parametrize("name", ["laplace", "staircase"])
def test_simultaneous_intervals_cover_all_contrasts_at_once(name):
    arms = (arm(5, 0.2, name=name), arm(5, 0.5, name=name), arm(5, 0.3, name=name),
            arm(5, 0.1, (0.3,), name=name))  # fmt: skip
    found = estimate(arms)
    factors = Facts.of(found.settings).simultaneous_factor
    rows = found.rows
    rng = np.random.default_rng(5)
    errors = [
        noise_draws(*one.noise, rng.random(100_000))
        + np.sqrt(rng.choice(one.variances, 100_000)) * rng.normal(size=100_000)
        for one in arms
    ]
    places = [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (3, 2)]
    for scope, kept in ((ALL_PAIRS, 6), (TO_REFERENCE, 3)):
        covered = np.ones(100_000, dtype=bool)
        for row, (first, second) in list(zip(rows, places, strict=True))[:kept]:
            half = factors[scope] * (row.interval[1] - row.effect)
            covered &= np.abs(errors[first] - errors[second]) <= half
        assert covered.mean() == pytest.approx(0.95, abs=0.006)
    assert 1 < factors[TO_REFERENCE] < factors[ALL_PAIRS] < 1.6
    for row in rows:
        half = factors[ALL_PAIRS] * (row.interval[1] - row.effect)
        assert row.simultaneous == pytest.approx((row.effect - half, row.effect + half))


def test_contrasts_stay_within_the_width_of_the_bounds_and_means_within_them():
    wild = (arm(-3.0, 5.0), arm(14.0, 5.0), arm(5.0, 0.1))
    domain = Domain(Treatment("t", arms=("a", "b", "c")), ("y", Interval(0, 10)))
    found = estimate(wild, domain=domain)
    assert found.rows[0].effect == 10
    for row in found.rows:
        for pair in (row.interval, row.simultaneous, row.noise_interval):
            assert -10 <= pair[0] <= row.effect <= pair[1] <= 10
    assert [one.mean for one in found.arms] == [0, 10, 5]
    for one in found.arms:
        assert 0 <= one.interval[0] <= one.mean <= one.interval[1] <= 10


@pytest.mark.parametrize("how", ["no confidence", "no variances"])
def test_without_a_paid_variance_there_are_noise_intervals_only(how):
    request = replace(REQUEST, confidence=None) if how == "no confidence" else REQUEST
    arms = LEVELS
    if how == "no variances":
        arms = tuple(replace(a, variances=()) for a in LEVELS)
    found = estimate(arms, request)
    assert found.interval is None
    assert found.settings.simultaneous_factor is ABSENT
    assert found.settings.interval_rule is ABSENT
    for row in found.rows:
        assert row.interval is row.simultaneous is None
        assert row.noise_interval is not None


def test_means_that_were_not_paid_for_are_not_shown():
    found = estimate(means=False)
    assert all(one.mean is one.interval is one.noise_interval is None for one in found.arms)
    assert found.rows == estimate().rows


def test_a_release_among_one_arm_says_so():
    found = estimate(request=replace(REQUEST, among="mid"))
    assert (found.settings.among, found.estimand) == ("mid", "att")
    found = estimate(request=replace(REQUEST, among="none"))
    assert (found.settings.among, found.estimand) == ("none", "atc")
    assert estimate().estimand is None


def test_the_order_of_arms_moves_no_number():
    turned = Treatment("dose", arms=("high", "mid", "low", "none"), reference="none")
    arms = (LEVELS[0], LEVELS[3], LEVELS[2], LEVELS[1])
    rows = {(row.arm, row.against): row for row in contrasts(estimate())}
    turned = replace(DOMAIN, treatment=turned)
    other = contrasts(estimate(arms, domain=turned), turned)
    for row in other:
        known = rows.get((row.arm, row.against)) or rows[row.against, row.arm].flipped()
        assert row.effect == pytest.approx(known.effect, abs=1e-12)
        assert row.interval == pytest.approx(known.interval, abs=1e-12)
        assert row.simultaneous == pytest.approx(known.simultaneous, abs=1e-12)


def test_twenty_arms_have_all_their_contrasts():
    labels = tuple(f"arm {place}" for place in range(20))
    domain = Domain(Treatment("t", arms=labels), ("y", Interval(0, 10)))
    found = estimate(tuple(arm(5 + place / 10) for place in range(20)), domain=domain)
    assert len(found.rows) == 190
    factors = found.settings.simultaneous_factor
    assert 1.3 < factors[TO_REFERENCE] < factors[ALL_PAIRS] < 2.2


def test_the_greatest_difference_over_pairs_is_that_of_the_furthest_arms():
    means = {
        "a": {"age": (0.3, 0.0), "sex": (0.0, 0.1)},
        "b": {"age": (-0.2, 0.05), "sex": (0.1, 0.1)},
        "c": {"age": (0.1, -0.1), "sex": (-0.4, 0.1)},
    }
    found = greatest_over_pairs(means)
    for name, pair in found.items():
        for side in (0, 1):
            differences = [
                abs(one[name][side] - other[name][side])
                for one, other in combinations(means.values(), 2)
            ]
            assert pair[side] == pytest.approx(max(differences))
