"""P-values of no effect: calibrated under the null, and in step with the intervals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest

from private_ate import ArgumentError, Release, p_value
from private_ate.effects import p_value_of
from private_ate.privacy.distributions import NoiseDistribution, staircase_variance
from private_ate.privacy.quantiles import staircase_quantile
from private_ate.release.intervals import half_width
from private_ate.settings import Facts
from sites import made_up_site, noisy_step
from smoking import smoking_release

EPSILON = 0.9  # of the last step of a made-up site at ε = 1


@pytest.mark.parametrize(("sampling", "noise"), [(1.0, 0.5), (0.3, 2.0), (1.0, 0.01), (1e-9, 1.0)])
@pytest.mark.parametrize("level", [0.8, 0.3, 0.05, 0.01, 1e-4])
def test_the_level_of_a_known_law_is_the_p_value(level, sampling, noise):
    unit = noise / np.sqrt(staircase_variance(EPSILON))
    law = NoiseDistribution("staircase", unit, EPSILON)
    size = half_width(1 - level, [law], [(sampling**2,)], "convolved")
    assert p_value(made_up_site(-size, sampling, noise)) == pytest.approx(level, rel=0.02)


def test_under_no_effect_p_values_are_uniform_and_without_noise_they_are_not():
    draws = np.random.default_rng(7)
    unit = 1.5 / np.sqrt(staircase_variance(EPSILON))
    levels = draws.random(100)
    noise = unit * np.array([staircase_quantile(one, EPSILON) for one in levels])
    noise *= draws.choice([-1, 1], 100)
    errors = noise + draws.normal(size=100)
    found = [p_value(made_up_site(float(error), 1.0, 1.5)) for error in errors]
    naive = 2 * ndtr(-np.abs(errors))  # as if sampling, of deviation one, were all
    assert kstest(found, "uniform").pvalue > 0.01
    assert kstest(naive, "uniform").pvalue < 1e-4


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_p_value_at_an_intervals_end_is_one_less_its_coverage(confidence):
    site = made_up_site(2.0, 1.0, 0.7, confidence=confidence)
    half = site.interval[1] - 2.0
    moved = made_up_site(half, 1.0, 0.7, confidence=confidence)
    assert moved.interval[0] == pytest.approx(0, abs=1e-9)
    assert p_value(moved) == pytest.approx(1 - confidence, rel=1e-6)


UNTOLD = (noisy_step(0.9, name="centre", mechanism="trimmed_centre"),)
NORMAL = (noisy_step(0.9, name="mean score", mechanism="gaussian"),)


@pytest.mark.parametrize("steps", [UNTOLD, NORMAL, ()])
def test_every_law_agrees_with_the_interval_about_zero(steps):
    site = made_up_site(2.0, 1.0, 0.7, steps=steps)
    half = site.interval[1] - 2.0
    assert p_value(made_up_site(0.999 * half, 1.0, 0.7, steps=steps)) > 0.05
    assert p_value(made_up_site(1.001 * half, 1.0, 0.7, steps=steps)) < 0.05


def test_noise_of_an_untold_shape_counts_as_the_one_with_longer_tails():
    far = [p_value(made_up_site(6.0, 0.1, 1.5, steps=steps)) for steps in (UNTOLD, NORMAL)]
    assert far[0] > 2 * far[1] > 0


def test_several_arms_have_a_p_value_for_each_pair_in_either_order():
    release = smoking_release()
    for row in release.contrasts:
        found = p_value(release, arm=row.arm, against=row.against)
        assert found == p_value(release, arm=row.against, against=row.arm)
        holds = row.interval[0] <= 0 <= row.interval[1]
        assert holds == (found > 0.05)
    head = Facts.of(release.settings).headline
    assert p_value(release) == p_value(release, arm=head.arm, against=head.against)


@pytest.mark.parametrize("rule", ["convolved", "in_squares"])
@pytest.mark.parametrize("level", [0.5, 0.05, 1e-3])
def test_the_level_of_several_arms_inverts_their_interval(level, rule):
    release = smoking_release()
    first, second = release.arms[:2]
    size = half_width(
        1 - level, [first.noise, second.noise], [first.variances, second.variances], rule
    )
    rows = tuple(
        replace(row, estimate=-size) if {row.arm, row.against} == {first.label, second.label}
        else row
        for row in release.effects
    )  # fmt: skip
    asked = replace(release, effects=rows, settings={**release.settings, "interval_rule": rule})
    found = p_value(asked, arm=second.label, against=first.label)
    assert found == pytest.approx(level, rel=0.01)


def test_a_release_without_an_interval_has_no_p_value():
    with pytest.raises(ArgumentError, match="needs an interval") as refused:
        p_value(replace(made_up_site(1.0), interval=None, effects=()))
    assert refused.value.parameter == "confidence"


def test_an_interval_that_was_cut_on_both_sides_tells_nothing():
    site = made_up_site(1.0)
    cut = replace(site.effects[0], interval=(-100.0, 100.0))
    assert p_value_of(site, cut) == 1.0


def test_no_errors_at_all_leave_nothing_to_chance():
    site = made_up_site(1.0)
    point = replace(site.effects[0], interval=(1.0, 1.0), noise_interval=(1.0, 1.0))
    assert p_value_of(site, point) == 0.0
    assert (
        p_value_of(site, replace(point, estimate=0.0, interval=(0, 0), noise_interval=(0, 0))) == 1
    )


def test_the_p_value_of_a_release_of_an_old_schema_follows_from_its_intervals():
    old = Release.from_json(
        '{"ate": 0.29, "interval": [0.08, 0.5], "noise_interval": [0.2, 0.38], "epsilon": 1.0, '
        '"delta": 0.0, "level": "label", "adjacency": "x", "guarantee": "pure 1-DP", "method": '
        '"calibrated", "n": 100, "settings": {"confidence": 0.95}, "version": "0.1"}'
    )
    assert 0.001 < p_value(old) < 0.05
