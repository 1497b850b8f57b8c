"""Groups of rows with an effect each: the estimate, its sensitivity, and what a group may hold."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from private_ate import ArgumentError, Domain, GroupedOptions, Interval, Treatment, estimate_ate
from private_ate.api import METHODS, estimate_study
from private_ate.audit.replay import Recording, broken_promises, moved_share
from private_ate.baselines.grouped import (
    Limits,
    group_effects,
    number_of_groups,
    spread_of,
)
from private_ate.engines.local import LocalStudy
from private_ate.request import Request
from private_ate.study import Groups

ESTIMANDS = ("ate", "att", "atc", "ato")
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(-1, 3)), {"a": Interval(0, 1), "b": Interval(0, 1)}
)


def draw_study(seed, rows=400):
    rng = np.random.default_rng(seed)
    covariates = rng.random((2, rows))
    treated = rng.random(rows) < 1 / (1 + np.exp(-(3 * covariates[0] - 1.5)))
    share = np.clip(0.2 + 0.4 * covariates[0] + 0.2 * treated + rng.normal(0, 0.05, rows), 0, 1)
    return LocalStudy(DOMAIN, covariates, treated, np.rint(share * 2**30).astype(np.int32))


def release(study, epsilon="1000000", seed=7, **asked):
    return estimate_ate(
        study, level="sample", epsilon=epsilon, method="grouped", seed=seed, **asked
    )


def weighted_by_hand(study, estimand, ridge=0.1, cut=0.02):
    """Return the weighted effect of all rows, without the package."""
    features = np.vstack((np.ones(study.size), 2 * study.covariates - 1)).T
    sign = np.where(study.treatment, 1.0, -1.0)
    fitted = minimize(
        lambda w: np.logaddexp(0, -sign * (features @ w)).sum() + ridge / 2 * w @ w,
        np.zeros(3),
        tol=1e-12,
    ).x
    score = np.clip(1 / (1 + np.exp(-features @ fitted)), cut, 1 - cut)
    counted = {"ate": 1 + 0 * score, "att": score, "atc": 1 - score, "ato": score * (1 - score)}
    weight = counted[estimand] / np.where(study.treatment, score, 1 - score)
    values = -1 + 4 * (study.outcome / 2**30)
    means = [np.average(values[arm], weights=weight[arm])
             for arm in (study.treatment, ~study.treatment)]  # fmt: skip
    return means[0] - means[1]


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_one_group_without_noise_is_the_weighted_effect_of_the_estimand(estimand):
    study = draw_study(1)
    found = release(study, estimand=estimand, options=GroupedOptions(groups=1), confidence=None)

    assert found.ate == pytest.approx(weighted_by_hand(study, estimand), abs=1e-4)
    assert found.estimand == estimand


def test_the_estimands_differ_where_effects_do():
    study = draw_study(2, 4000)
    share = study.outcome / 2**30 + 0.3 * study.treatment * (study.covariates[0] - 0.5)
    varying = replace(study, outcome=np.rint(np.clip(share, 0, 1) * 2**30).astype(np.int32))
    att, ato, atc = (release(varying, estimand=one).ate for one in ("att", "ato", "atc"))

    assert att > ato + 0.02 > atc + 0.04


def test_the_rule_for_groups_reads_public_numbers():
    wide, near = Limits.of(GroupedOptions(), 4.0), Limits.of(GroupedOptions(limits=(-1, 1)), 4.0)
    asked = Request("sample", Fraction(1))

    assert (wide.width, near.width) == (2 << 24, 1 << 23)
    assert number_of_groups(20_000, 8, asked, GroupedOptions(), wide) == 100
    assert number_of_groups(20_000, 8, asked, GroupedOptions(), near) == 50
    assert number_of_groups(1_000, 8, asked, GroupedOptions(), wide) == 11
    assert number_of_groups(50, 8, asked, GroupedOptions(), wide) == 1
    assert number_of_groups(50, 8, asked, GroupedOptions(groups=90), wide) == 50


def worst_replacement(study, rng):
    row = int(rng.integers(study.size))
    treatment, outcome, covariates = (
        study.treatment.copy(), study.outcome.copy(), study.covariates.copy(),
    )  # fmt: skip
    treatment[row] = not treatment[row]
    outcome[row] = rng.choice([0, 1 << 30])
    covariates[:, row] = rng.integers(2, size=2)
    return replace(study, treatment=treatment, outcome=outcome, covariates=covariates)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("options", [
    GroupedOptions(groups=6), GroupedOptions(groups=20, limits=(-0.5, 1)), GroupedOptions(groups=1),
])  # fmt: skip
def test_replacing_a_record_moves_no_step_further_than_it_declares(estimand, options):
    rng = np.random.default_rng(4)
    request = Request("sample", Fraction(1), estimand=estimand, options=options)
    shares = []
    for seed in range(6):
        study = draw_study(seed, 40)
        first = Recording()
        one = estimate_study(study, request, METHODS["grouped"], seed=1, recorder=first)
        second = Recording(source=first)
        neighbour = worst_replacement(study, rng)
        other = estimate_study(neighbour, request, METHODS["grouped"], seed=1, recorder=second)
        assert broken_promises(first, second) == []
        assert one == other
        shares += [float(moved_share(a, b))
                   for a, b in zip(first.calls, second.calls, strict=True)]  # fmt: skip

    assert max(shares) > 0.02


def test_a_group_of_two_rows_reaches_both_limits():
    outcome = np.array([1 << 30, 0], dtype=np.int32)
    studies = [
        LocalStudy(DOMAIN, np.zeros((2, 2)), np.array(arms), outcome)
        for arms in ([True, False], [False, True])
    ]
    effects = []
    for study in studies:
        found = Groups(study.covariates.T[None], study.treatment[None], outcome[None],
                       np.ones((1, 2), np.bool_))  # fmt: skip
        effects.append(
            float(group_effects(found, "ate", GroupedOptions(ridge=1.0, truncation=0.02))[0])
        )

    assert effects == [1.0, -1.0]


def test_the_sensitivity_of_the_spread_is_reached_and_never_passed():
    steps, count = range(-2, 3), 4
    bound = (count - 1) * (steps[-1] - steps[0]) ** 2
    largest = 0
    for others in product(steps, repeat=count - 1):
        spreads = [spread_of(np.array([*others, one])) for one in steps]
        largest = max(largest, max(spreads) - min(spreads))

    assert largest == bound


def test_the_spread_is_the_sample_variance():
    values = np.array([3, 9, 4, 4, -20])

    assert spread_of(values) / (5 * 4) == pytest.approx(values.var(ddof=1))


@pytest.mark.parametrize("arms", [[True] * 6, [False] * 6, [True] + [False] * 5])
def test_a_group_of_one_arm_or_one_treated_row_counts_without_a_word(arms):
    study = draw_study(3, 6)
    study = replace(study, treatment=np.array(arms))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = release(study, epsilon="1", options=GroupedOptions(groups=3))

    assert math.isfinite(found.ate)


def test_an_interval_holds_the_noise_interval_and_costs_a_tenth():
    found = release(draw_study(5, 4000), epsilon="2", confidence=0.9)
    spent = {step.name: step.epsilon for step in found.steps}

    assert spent == pytest.approx({"mean effect": 1.8, "spread of effects": 0.2})
    assert found.interval[0] < found.noise_interval[0] < found.noise_interval[1] < found.interval[1]
    assert release(draw_study(5, 4000), epsilon="2", confidence=None).interval is None
    single = release(draw_study(5), epsilon="2", options=GroupedOptions(groups=1))
    assert single.interval is None
    assert [step.epsilon for step in single.steps] == [2.0]


def test_the_noise_interval_holds_the_mean_as_often_as_it_says():
    study = draw_study(6, 600)
    options = GroupedOptions(groups=30)
    hits = 0
    for seed in range(120):
        request = Request("sample", Fraction(1), confidence=0.8, options=options)
        recording = Recording()
        found = estimate_study(study, request, METHODS["grouped"], seed=seed, recorder=recording)
        total = recording.calls[0].values / (30 * 2**24) * 4
        hits += found.noise_interval[0] <= total <= found.noise_interval[1]

    assert abs(hits / 120 - 0.8) < 4 * math.sqrt(0.16 / 120)


def test_a_release_is_pure_and_says_how_it_came_about():
    found = estimate_ate(draw_study(7), level="sample", epsilon="1", method="grouped")

    assert found.guarantee == "pure 1-DP, sample level"
    assert found.settings["groups"] == 5
    assert found.settings["effect_limits"] == [-4.0, 4.0]
    assert found.settings["population"] == "all n units (ATE)"


@pytest.mark.parametrize(("asked", "text"), [
    ({"groups": 0}, "groups"), ({"limits": (1, 0)}, "smaller one first"),
    ({"limits": 3}, "two numbers"), ({"ridge": 0}, "ridge"), ({"truncation": 0.5}, "truncation"),
])  # fmt: skip
def test_impossible_options_are_refused(asked, text):
    with pytest.raises(ArgumentError, match=text):
        GroupedOptions(**asked)


def test_limits_that_no_effect_can_reach_are_refused_before_any_charge():
    with pytest.raises(ArgumentError, match="outside the outcome's range"):
        release(draw_study(1), options=GroupedOptions(limits=(5, 6)))
