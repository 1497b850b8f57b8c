import math
from dataclasses import replace
from fractions import Fraction

import pytest

import private_ate.effects.of_releases
from private_ate import Release, arm_means, e_value, odds_ratio, risk_ratio, standard_error
from private_ate.errors import ArgumentError

RELEASE = Release(
    ate=0.29, interval=(0.08, 0.5), noise_interval=(0.2, 0.38), epsilon=Fraction(1), delta=0.0,
    level="label", adjacency="x", guarantee="pure 1-DP, label level", method="calibrated", n=100,
    settings={
        "confidence": 0.95, "means": {"treated": 0.39, "control": 0.1},
        "risk_ratio": 3.9, "odds_ratio": 5.754,
    },
)  # fmt: skip


def test_the_examples_in_the_docstrings_hold():
    import doctest

    assert doctest.testmod(private_ate.effects.of_releases).failed == 0


def test_ratios_follow_from_the_released_means():
    assert arm_means(RELEASE).treated == 0.39
    assert risk_ratio(RELEASE) == pytest.approx(3.9)
    assert odds_ratio(RELEASE) == pytest.approx((0.39 / 0.61) / (0.1 / 0.9))


def test_e_values_are_those_of_the_paper_that_defined_them():
    found = e_value(RELEASE)

    assert found.estimate == pytest.approx(3.9 + math.sqrt(3.9 * 2.9))
    assert found.limit == pytest.approx(1.8 + math.sqrt(1.8 * 0.8))


def test_a_protective_effect_has_the_e_value_of_its_inverse():
    harmful = replace(RELEASE, ate=0.1, interval=(0.05, 0.2))
    protective = replace(RELEASE, ate=-0.1, interval=(-0.2, -0.05))
    deviation = 0.25

    assert e_value(protective, outcome_sd=deviation).estimate == pytest.approx(
        e_value(harmful, outcome_sd=deviation).estimate
    )
    assert e_value(protective, outcome_sd=deviation).limit == pytest.approx(
        e_value(harmful, outcome_sd=deviation).limit
    )


def test_an_interval_that_holds_no_effect_needs_no_confounder():
    assert e_value(replace(RELEASE, interval=(-0.1, 0.5)), outcome_sd=1).limit == 1
    assert e_value(replace(RELEASE, interval=None), outcome_sd=1).limit is None


def test_a_continuous_outcome_goes_through_its_standard_deviation():
    assert e_value(RELEASE, outcome_sd=0.5).risk_ratio == pytest.approx(math.exp(0.91 * 0.58))


def test_the_standard_error_takes_the_side_that_was_not_cut():
    assert standard_error(RELEASE) == pytest.approx(0.21 / 1.959964, rel=1e-6)
    assert standard_error(replace(RELEASE, interval=(0.28, 0.5))) == standard_error(RELEASE)
    assert standard_error(replace(RELEASE, interval=None)) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda release: e_value(replace(release, settings={})),
        lambda release: e_value(release, outcome_sd=1, baseline_risk=0.5),
        lambda release: e_value(release, outcome_sd=0),
        lambda release: e_value(release, baseline_risk=1.0),
        lambda release: risk_ratio(replace(release, settings={})),
        lambda release: arm_means(replace(release, settings={})),
    ],
)
def test_what_cannot_be_computed_is_refused_with_a_sentence(call):
    with pytest.raises(ArgumentError):
        call(RELEASE)


def test_ratios_without_any_control_risk_are_infinite_or_nothing():
    none = replace(RELEASE, settings=RELEASE.settings | {"means": {"treated": 0.2, "control": 0.0}})
    both = replace(RELEASE, settings=RELEASE.settings | {"means": {"treated": 0.0, "control": 0.0}})

    assert risk_ratio(none) == odds_ratio(none) == math.inf
    assert math.isnan(risk_ratio(both))
