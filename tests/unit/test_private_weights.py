"""Sampling weights at sample level: private, clipped, and what they estimate."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    BlocksOptions,
    Domain,
    Interval,
    Release,
    StudySizes,
    Treatment,
    estimate_ate,
    plan_ate,
)
from private_ate.report.html import release_page

DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(0, 1)), {"a": Interval(0, 1), "b": Interval(0, 1)},
    weights=("w", Interval(0, 12)),
)  # fmt: skip
UNWEIGHTED = replace(DOMAIN, weights=None)
ASKED = {"level": "sample", "domain": DOMAIN, "seed": 1}
UNADJUSTED = [
    {"options": BlocksOptions(adjust=False)},
]


def sampled(rows=4000, seed=1):
    """People whose effect grows with b, of whom those with a large b were sampled rarely."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(rows), rng.random(rows)
    treated = rng.random(rows) < 1 / (1 + np.exp(1 - 2 * a))
    weight = np.exp(1.5 * b) * rng.uniform(0.5, 1.5, rows)
    outcome = np.clip(0.2 + 0.3 * a + treated * (0.1 + 0.3 * b) + rng.normal(0, 0.05, rows), 0, 1)
    return pl.DataFrame({"a": a, "b": b, "t": treated.astype(int), "y": outcome, "w": weight})


def effects_of(frame):
    """The mean effect of the population and that of the sample."""
    each, weight = 0.1 + 0.3 * frame["b"].to_numpy(), frame["w"].to_numpy()
    return weight @ each / weight.sum(), each.mean()


@pytest.mark.parametrize(
    "ways",
    [{}, {"options": BlocksOptions(adjust=True, partitions=1)}],
)
def test_the_effect_is_that_of_the_target_population_and_says_so(ways):
    frame = sampled()
    population, sample = effects_of(frame)
    weight = frame["w"].to_numpy()

    release = estimate_ate(frame, epsilon=20, **ASKED, **ways)

    assert release.settings["adjusted"]
    assert abs(release.ate - population) < 0.012 < abs(population - sample) / 2
    assert release.settings["population"].endswith(", weighted to the target population")
    told = release.settings["private_weights"]
    assert (told["column"], told["bound"]) == ("w", 12)
    assert told["mean"] == pytest.approx(weight.mean(), rel=0.02)
    assert told["worth"] == pytest.approx(weight.sum() ** 2 / (weight @ weight), rel=0.05)


@pytest.mark.parametrize("ways", UNADJUSTED)
def test_without_adjustment_it_is_the_weighted_difference_in_means(ways):
    frame = sampled()
    y, t, w = (frame[name].to_numpy() for name in "ytw")
    arms = [np.average(y[t == arm], weights=w[t == arm]) for arm in (0, 1)]

    release = estimate_ate(frame, epsilon=5000, **ASKED, **ways)

    assert release.ate == pytest.approx(arms[1] - arms[0], abs=1e-4)


def test_a_trial_is_weighted_too():
    rng = np.random.default_rng(5)
    frame = sampled().with_columns(t=pl.Series(rng.random(4000) < 0.4).cast(int))
    effect = 0.1 + 0.3 * frame["b"]
    frame = frame.with_columns(y=(0.2 + 0.2 * frame["a"] + effect * frame["t"]).clip(0, 1))

    release = estimate_ate(frame, epsilon=50, design="randomized", probability=0.4, **ASKED)

    assert release.ate == pytest.approx(effects_of(frame)[0], abs=0.02)
    assert "weighted to the target population" in release.settings["population"]
    assert release.settings["private_weights"]["worth"] > 1000


@pytest.mark.parametrize("ways", [{}, *UNADJUSTED])
def test_weights_are_clipped_to_their_bound_and_missing_ones_are_zero(ways):
    odd = sampled(1500).with_columns(
        w=pl.when(pl.col("a") < 0.1).then(1e9)
        .when(pl.col("a") < 0.2).then(None)
        .when(pl.col("a") < 0.3).then(-3.0)
        .when(pl.col("a") < 0.4).then(float("nan"))
        .otherwise(pl.col("w"))
    )  # fmt: skip
    plain = odd.with_columns(
        w=pl.when(pl.col("a") < 0.1).then(12.0)
        .when(pl.col("a") < 0.4).then(0.0)
        .otherwise(pl.col("w"))
    )  # fmt: skip

    first, second = (estimate_ate(frame, epsilon=2, **ASKED, **ways) for frame in (odd, plain))

    assert (first.ate, first.interval) == (second.ate, second.interval)


@pytest.mark.parametrize("ways", UNADJUSTED)
def test_noise_grows_by_the_bound_over_the_mean_weight(ways):
    frame = sampled()
    wide = replace(DOMAIN, weights=("w", Interval(0, 48)))

    widths = [
        np.ptp(
            estimate_ate(frame, epsilon=5, **(ASKED | {"domain": domain}), **ways).noise_interval
        )
        for domain in (DOMAIN, wide)
    ]

    assert widths[1] == pytest.approx(4 * widths[0], rel=0.1)


def test_an_arm_or_a_study_without_weight_raises_nothing():
    frame = sampled(1500).with_columns(w=pl.lit(0.0))

    release = estimate_ate(frame, epsilon=1, **ASKED)

    assert -1 <= release.ate <= 1


@pytest.mark.parametrize(
    ("ways", "reason"),
    [
        ({"method": "ipw"}, "use method 'blocks'"),
    ],
)
def test_what_takes_no_weights_refuses_before_a_record_is_read(ways, reason):
    unread = pl.LazyFrame({"a": [0.0], "b": [0.0], "t": [0], "y": [0.0], "w": [1.0]})

    with pytest.raises(ArgumentError, match=reason):
        estimate_ate(unread, epsilon=1, **ASKED, **ways)


def test_a_plan_says_that_noise_grows_by_the_bound_over_the_guessed_mean():
    frame = sampled()
    asked = {"level": "sample", "epsilons": ["1"], "options": BlocksOptions(adjust=False)}
    none = plan_ate(frame.drop("w"), domain=replace(DOMAIN, weights=None), **asked)
    half, quarter = (
        plan_ate(frame, domain=DOMAIN, mean_weight=mean, **asked) for mean in (None, 3.0)
    )

    assert "sampling weights" not in none.caveat
    assert "whose bound is 2 times their mean (a guess: weights are private)" in half.caveat
    assert "whose bound is 4 times their mean" in quarter.caveat
    noises = [plan.rows[0].noise_error for plan in (none, half, quarter)]
    np.testing.assert_allclose(np.divide(noises, noises[0]), [1, 2, 4], rtol=0.02)
    assert half.rows[0].half_width > none.rows[0].half_width


@pytest.mark.parametrize("ways", [{}, {"probability": 0.5, "design": "randomized"}, *UNADJUSTED])
def test_a_plan_foresees_the_width_of_weighted_intervals(ways):
    """Where the mean weight is guessed right and weights are spread evenly, as it supposes."""
    rng = np.random.default_rng(6)
    share = rng.random(4000)
    frame = sampled().with_columns(w=pl.Series(12 * share), t=pl.Series(rng.random(4000) < 0.5))
    known = {name: value for name, value in ways.items() if name != "method"}
    spread = {"outcome_sd": 0.12, "explained": 0.5}
    plan = plan_ate(
        frame, domain=DOMAIN, level="sample", epsilons=["2"], mean_weight=6, **spread, **known
    )

    widths = [
        np.ptp(estimate_ate(frame, epsilon=2, **(ASKED | {"seed": seed}), **ways).interval) / 2
        for seed in range(3)
    ]

    assert plan.rows[0].half_width == pytest.approx(np.median(widths), rel=0.6)


def test_sizes_of_a_study_that_is_not_there_yet_tell_the_mean_weight():
    sizes = StudySizes(4000, 2, 1.0, weight_share=0.25)

    plan = plan_ate(sizes, level="sample", epsilons=["1"])

    assert "whose bound is 4 times their mean" in plan.caveat
    with pytest.raises(ArgumentError, match="plan with a table, or without them"):
        plan_ate(sizes, level="label", epsilons=["1"])
    with pytest.raises(ArgumentError, match="declared and private"):
        plan_ate(sizes, level="sample", epsilons=["1"], mean_weight=2)


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ("label", "by them alone the arms are worth"),
        ("sample", "private, with a mean of about"),
    ],
)
def test_text_and_page_have_a_line_for_the_weights(level, words):
    frame = sampled(1500)
    release = estimate_ate(frame, epsilon=2, **(ASKED | {"level": level}))
    told = " ".join(str(release).split())

    for shown in (told, " ".join(release_page(release).split())):
        assert "declared as 0 to 12" in shown
        assert words in shown
        assert "weighted to the target population" in shown
    again = Release.from_json(release.to_json())
    assert str(again) == str(release)
    plain = estimate_ate(
        frame.drop("w"), epsilon=2, **(ASKED | {"level": level, "domain": UNWEIGHTED})
    )
    assert "declared as 0 to" not in str(plain)
