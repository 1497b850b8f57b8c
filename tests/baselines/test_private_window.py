"""A window around the effects of groups: its law on neighbours, its reach, and what it spends."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import t as student

from private_ate import ArgumentError, Domain, GroupedOptions, Interval, Treatment, estimate_ate
from private_ate.api import METHODS, estimate_study
from private_ate.audit.replay import Recording
from private_ate.baselines.private_window import (
    Window,
    midpoint_rule,
    padded_distances,
    release_window,
    spread_rule,
    variance_bound,
)
from private_ate.engines.local import LocalStudy
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantiles import staircase_and_normal_quantile
from private_ate.request import Request
from replaced_records import assert_promises_hold

DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(-1, 3)), {"a": Interval(0, 1), "b": Interval(0, 1)}
)
BOUND = 1 << 24
WINSORIZED = GroupedOptions(groups=30, centre="winsorized")


def draw_study(seed, rows=600):
    rng = np.random.default_rng(seed)
    covariates = rng.random((2, rows))
    treated = rng.random(rows) < 1 / (1 + np.exp(-(2 * covariates[0] - 1)))
    share = np.clip(0.2 + 0.4 * covariates[0] + 0.2 * treated + rng.normal(0, 0.05, rows), 0, 1)
    return LocalStudy(DOMAIN, covariates, treated, np.rint(share * 2**30).astype(np.int32))


def release(study, epsilon="1000000", seed=7, options=WINSORIZED, **asked):
    return estimate_ate(
        study,
        level="sample",
        epsilon=epsilon,
        method="grouped",
        seed=seed,
        options=options,
        **asked,
    )


def draw_effects(seed, size=40, centre=0.1, spread=0.05):
    found = np.rint(np.random.default_rng(seed).normal(centre, spread, size) * BOUND)
    return np.clip(found, -BOUND, BOUND).astype(np.int64)


def window_of(values, seed=1, epsilon=Fraction(10**6), limits=(-BOUND, BOUND)):
    noise = Noise(SeededEntropy(seed))
    return release_window(values, limits, noise, midpoint=epsilon, spread=epsilon)


def log_law(rule, values, epsilon):
    """Return the log probabilities of all candidates, from the definition."""
    weights = -float(epsilon) / 2 * rule.levels(values)
    return weights - np.logaddexp.reduce(weights)


@pytest.mark.parametrize("estimand", ["ate", "att", "atc", "ato"])
@pytest.mark.parametrize("options", [
    replace(WINSORIZED, groups=6), replace(WINSORIZED, groups=20, limits=(-0.5, 1)),
    replace(WINSORIZED, groups=1),
])  # fmt: skip
def test_replacing_a_record_moves_no_step_further_than_it_declares(estimand, options):
    request = Request("sample", Fraction(80), estimand=estimand, options=options)
    assert_promises_hold("grouped", request, lambda seed: draw_study(seed, 40))


def test_an_effect_that_leaves_the_window_moves_the_sum_by_less_than_its_width():
    # Without covariates a group's effect is what its outcomes say: one of them moves it far.
    rows, domain = 300, Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {})
    arms, outcome = np.arange(rows) % 2 == 0, np.full(rows, 1 << 29, np.int32)
    outcome += np.random.default_rng(1).integers(-(1 << 24), 1 << 24, rows, dtype=np.int32)
    moved = outcome.copy()
    moved[0] = 1 << 30
    request = Request("sample", Fraction(10**4), options=replace(WINSORIZED, groups=60))
    recordings = [Recording()]
    recordings.append(Recording(source=recordings[0]))
    for recording, values in zip(recordings, (outcome, moved), strict=True):
        study = LocalStudy(domain, np.zeros((0, rows)), arms, values)
        estimate_study(study, request, METHODS["grouped"], seed=1, recorder=recording)
    (effects, _, total), (others, _, other_total) = (recording.inputs for recording in recordings)
    (width,) = recordings[0].spends[-1].sensitivity

    assert np.abs(effects - others).max() > width
    assert 0 < abs(int(total) - int(other_total)) <= width


@pytest.mark.parametrize("seed", range(4))
def test_the_exact_laws_of_neighbours_stay_within_their_share_and_come_near_it(seed):
    values = draw_effects(seed, size=21)
    neighbour = values.copy()
    neighbour[int(np.argmin(values) if seed % 2 else np.argmax(values))] = BOUND * (-1) ** (
        seed + 1
    )
    epsilon = Fraction(1)
    rule = midpoint_rule(-BOUND, BOUND, values.size)
    ratios = log_law(rule, values, epsilon) - log_law(rule, neighbour, epsilon)
    largest = [np.abs(ratios).max()]
    distances = spread_rule(2 * BOUND, values.size, epsilon)
    for midpoint in rule.candidates[::256]:
        both = [padded_distances(one, midpoint, 2 * BOUND) for one in (values, neighbour)]
        laws = [log_law(distances, one, epsilon) for one in both]
        largest.append(np.abs(laws[0] - laws[1]).max())

    assert max(largest) <= 1 + 1e-9
    assert max(largest) > 0.4


def test_drawn_midpoints_follow_the_law_of_the_proof_and_not_one_of_twice_the_budget():
    values, runs = draw_effects(3, size=25), 1500
    rule = midpoint_rule(-BOUND, BOUND, 25)
    near = np.abs(rule.candidates - np.median(values)) < BOUND // 20
    right, wrong = (np.exp(log_law(rule, values, size))[near].sum() for size in (1, 2))
    drawn = np.array([window_of(values, seed, Fraction(1)).midpoint for seed in range(runs)])
    found = np.mean(np.abs(drawn - np.median(values)) < BOUND // 20)

    assert abs(found - right) < 4 * math.sqrt(right * (1 - right) / runs)
    assert abs(found - wrong) > 4 * math.sqrt(wrong * (1 - wrong) / runs)


def test_without_noise_the_window_has_the_median_and_three_distances_that_hold_two_thirds():
    values = draw_effects(5, size=41)
    found = window_of(values)
    ordered = np.sort(values)

    assert ordered[19] <= found.midpoint <= ordered[21]
    assert 0.6 < np.mean(np.abs(values - found.midpoint) <= found.spread) < 0.7
    assert (found.low, found.high) == (
        found.midpoint - 3 * found.spread,
        found.midpoint + 3 * found.spread,
    )


@pytest.mark.parametrize("away", [-0.9, 0.0, 0.7])
def test_a_midpoint_far_from_the_effects_widens_the_window_until_it_holds_them(away):
    values = draw_effects(2, centre=0.1, spread=0.02)

    def steer(spend, _values):
        return int(away * BOUND) if spend.step.startswith("midpoint") else None

    noise = Noise(SeededEntropy(1), recorder=Recording(steer=steer))
    huge = Fraction(10**6)
    found = release_window(values, (-BOUND, BOUND), noise, midpoint=huge, spread=huge)

    assert found.low <= values.min()
    assert values.max() <= found.high


@pytest.mark.parametrize("limits", [(-BOUND, BOUND), (0, 1), (-5, -3), (100, BOUND)])
def test_any_limits_and_equal_effects_leave_a_window_of_positive_width_within_them(limits):
    for place in limits:
        for epsilon in (Fraction(1, 100), Fraction(10**6)):
            found = window_of(np.full(7, place), 3, epsilon, limits)
            assert limits[0] <= found.low < found.high <= limits[1]
            assert variance_bound(found, 7, epsilon) > 0


def test_without_noise_the_release_is_the_mean_of_winsorised_effects():
    recording = Recording()
    request = Request("sample", Fraction(10**6), options=WINSORIZED)
    found = estimate_study(draw_study(1), request, METHODS["grouped"], seed=1, recorder=recording)
    effects = recording.calls[0].values.astype(float) / BOUND * 4
    low, high = found.settings["effect_window"]

    assert effects.min() < low or high < effects.max()
    assert found.ate == pytest.approx(np.clip(effects, low, high).mean(), abs=1e-5)


def test_the_three_steps_add_up_to_the_budget_and_the_interval_is_free():
    study = draw_study(4)
    spent = {"midpoint of effects": 1.4, "distance from the midpoint": 1.0, "mean effect": 1.6}

    for confidence in (None, 0.9):
        found = release(study, epsilon="4", confidence=confidence)
        assert {step.name: step.epsilon for step in found.steps} == pytest.approx(spent)
    assert found.interval[0] < found.noise_interval[0] < found.noise_interval[1] < found.interval[1]
    assert release(study, epsilon="4", confidence=None).interval is None


def test_too_few_groups_for_their_ranks_have_a_plain_mean_and_the_release_says_so():
    found = release(draw_study(4), epsilon="2.6", confidence=None)
    enough = release(draw_study(4), epsilon="2.7", confidence=None)

    assert [step.name for step in found.steps] == ["mean effect"]
    assert found.settings["centre"] == "mean"
    assert "effect_window" not in found.settings
    assert enough.settings["centre"] == "winsorized"


def test_the_noise_follows_the_spread_and_not_the_range():
    plain, winsorized = (
        release(draw_study(5, 4000), epsilon="4", options=GroupedOptions(60, centre=centre))
        for centre in ("mean", "winsorized")
    )

    assert (
        winsorized.settings["noise_standard_deviation"]
        < 0.5 * plain.settings["noise_standard_deviation"]
    )


def test_a_release_says_which_form_was_used():
    found = estimate_ate(
        draw_study(7), level="sample", epsilon="3", method="grouped", options=WINSORIZED
    )

    assert found.guarantee == "pure 3-DP, sample level"
    assert found.settings["centre"] == "winsorized"
    assert found.settings["effect_limits"] == [-4.0, 4.0]
    assert {"midpoint", "spread", "effect_window"} <= set(found.settings)
    plain = release(draw_study(7), options=GroupedOptions())
    assert not {"centre", "midpoint", "spread", "effect_window"} & set(plain.settings)


def test_the_variance_that_is_counted_upon_falls_to_that_of_normal_effects_and_no_lower():
    spread = 1000
    window = Window(0, spread, -3 * spread, 3 * spread)
    normal = (spread / float(ndtri(0.825))) ** 2
    found = [variance_bound(window, 100, Fraction(size)) for size in ("0.05", "0.2", "0.8", "1000")]

    assert found[0] == pytest.approx((3 * spread) ** 2 * 100 / 99)  # the most that a window holds
    assert found == sorted(found, reverse=True)
    assert normal < found[-1] < 1.01 * normal


def test_the_window_may_become_the_narrower_the_more_effects_and_epsilon_there_are():
    least = [
        int(spread_rule(2 * BOUND, size, Fraction(epsilon)).candidates[0])
        for size, epsilon in ((10, "0.1"), (100, "0.15"), (100, "0.3"), (100, 1), (10**6, 9))
    ]

    assert least == [2 * BOUND >> octaves for octaves in (6, 6, 10, 16, 16)]


def test_candidates_follow_from_public_numbers_and_the_midpoint_alone():
    def rules(values):
        recording = Recording(
            steer=lambda spend, _: 1234 if spend.step.startswith("midpoint") else None
        )
        noise = Noise(SeededEntropy(1), recorder=recording)
        release_window(values, (-BOUND, BOUND), noise, midpoint=Fraction(1), spread=Fraction(1, 3))
        return [spend.rule for spend in recording.spends]

    found = rules(draw_effects(1))

    assert len(set(found)) == 2
    for other in (np.zeros(40, np.int64), np.full(40, BOUND), -draw_effects(2, spread=0.4)):
        assert rules(other) == found
    assert rules(draw_effects(1, size=41)) != found


def test_whether_a_window_is_chosen_does_not_depend_on_the_effects():
    study = draw_study(3)
    flat = LocalStudy(
        DOMAIN, np.zeros((2, 600)), np.arange(600) % 2 == 0, np.full(600, 5, np.int32)
    )

    for one in (study, flat):
        assert release(one, epsilon="3").settings["centre"] == "winsorized"


@pytest.mark.parametrize("groups", [8, 30])
def test_the_interval_is_that_of_the_window_by_students_law(groups):
    found = release(draw_study(2), epsilon="12", options=replace(WINSORIZED, groups=groups))
    settings = found.settings
    steps = BOUND / 4
    ends = (round(end * steps) for end in settings["effect_window"])
    window = Window(round(settings["midpoint"] * steps), round(settings["spread"] * steps), *ends)
    variance = variance_bound(window, groups, Fraction(3)) / steps**2
    factor = student.ppf(0.975, (groups - 1) / 2) / student.ppf(0.975, 1e9)
    low, high = settings["effect_window"]

    half = staircase_and_normal_quantile(
        0.95, 0.4 * 12, (high - low) / groups, factor * math.sqrt(variance / groups)
    )

    assert found.interval[1] - found.ate == pytest.approx(half, rel=1e-3)
    assert "skewed" in settings["interval_covers"]


def test_one_group_alone_has_no_interval():
    found = release(draw_study(2), epsilon="100", options=replace(WINSORIZED, groups=1))

    assert found.settings["centre"] == "winsorized"
    assert found.interval is None
    assert "interval_covers" not in found.settings


@pytest.mark.parametrize("centre", ["mean", "winsorized"])
def test_intervals_of_few_groups_hold_the_effect_as_often_as_they_say(centre):
    rng = np.random.default_rng(11)
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {})
    options, runs, held = GroupedOptions(groups=5, centre=centre), 400, 0
    for seed in range(runs):
        treated = np.arange(60) % 2 == 0
        share = np.clip(0.4 + 0.1 * treated + rng.normal(0, 0.08, 60), 0, 1)
        outcome = np.rint(share * 2**30).astype(np.int32)
        study = LocalStudy(domain, np.zeros((0, 60)), treated, outcome)
        low, high = release(study, "400", seed, options).interval
        held += low <= 0.1 <= high

    assert held / runs > 0.93  # .87 by the normal law


def test_an_unknown_centre_is_refused():
    with pytest.raises(ArgumentError, match="centre is 'mean' or 'winsorized'"):
        GroupedOptions(centre="median")
