"""Bounds far wider than the outcomes: a range around a private centre, by a public plan."""

from functools import cache

import numpy as np
import polars as pl
import pytest

from private_ate import Binary, CalibratedOptions, Domain, Interval, estimate_ate, plan_ate
from private_ate.methods.calibrated.options import plan_clip

EFFECT = 1.0


def clinic(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(rows)
    treated = rng.random(rows) < 0.3 + 0.4 * x
    return pl.DataFrame(
        {"x": x, "t": treated, "y": 3 + 2 * x + EFFECT * treated + rng.normal(0, 0.7, rows)}
    )


def domain(factor):
    """Bounds of eight standard deviations, or so many times as wide and off centre."""
    return Domain("t", ("y", Interval(4.5 - 3 * factor, 4.5 + 5 * factor)), {"x": Interval(0, 1)})


@cache
def errors(factor, options, epsilon="0.5"):
    return [
        abs(
            estimate_ate(
                clinic(seed=seed), domain=domain(factor), level="label", epsilon=epsilon,
                options=options, seed=seed,
            ).ate
            - EFFECT
        )
        for seed in range(12)
    ]  # fmt: skip


@pytest.mark.parametrize("factor", [5, 20])
def test_bounds_many_times_too_wide_cost_little_once_the_spread_is_guessed(factor):
    tight = np.mean(errors(1, None))

    assert np.mean(errors(factor, CalibratedOptions(outcome_sd=1.0))) < 3 * tight
    assert np.mean(errors(20, CalibratedOptions(outcome_sd=1.0, clip_share=0))) > 5 * tight


@pytest.mark.parametrize(
    ("bounds", "options", "clips"),
    [
        (Interval(0, 15), CalibratedOptions(outcome_sd=1.0), False),
        (Interval(0, 16), CalibratedOptions(outcome_sd=1.0), True),
        (Interval(0, 1000), CalibratedOptions(outcome_sd=1.0, clip_share=0), False),
        (Interval(0, 1000), CalibratedOptions(), False),
        (Binary(), CalibratedOptions(outcome_sd=0.4), False),
    ],
)
def test_bounds_and_the_guessed_spread_alone_decide(bounds, options, clips):
    plan = plan_clip(bounds, options)

    assert (plan.share > 0) is clips
    assert plan.kept_share == pytest.approx(8 / bounds.width if clips else 1.0)


def test_the_release_says_where_outcomes_were_clipped_and_how_many():
    frame = clinic(rows=5000).with_columns(
        pl.when(pl.int_range(pl.len()) < 500).then(400.0).otherwise("y").alias("y")
    )
    release = estimate_ate(
        frame, domain=Domain("t", ("y", Interval(0, 500)), {"x": Interval(0, 1)}),
        level="label", epsilon=4, options=CalibratedOptions(outcome_sd=1.0), seed=3,
    )  # fmt: skip

    low, high = release.settings["clipped_to"]
    beyond = release.settings["outcomes_beyond"]
    assert high - low == pytest.approx(8, abs=0.01)
    assert low < 2.5
    assert high > 7.0
    assert abs(beyond["count"] - 500) < 2 * beyond["within"]
    assert "clipped" in release.settings["notes"][0]
    assert sum(release.settings["budget"].values()) == pytest.approx(4)


def test_a_range_wider_than_the_outcomes_reaches_stays_inside_the_declared_one():
    frame = clinic().with_columns(y=pl.lit(0.0))
    release = estimate_ate(
        frame, domain=Domain("t", ("y", Interval(0, 100)), {"x": Interval(0, 1)}),
        level="label", epsilon=4, options=CalibratedOptions(outcome_sd=1.0), seed=3,
    )  # fmt: skip

    assert release.settings["clipped_to"] == pytest.approx([0, 8], abs=0.01)


def test_the_planner_expects_the_tighter_range():
    loose, clipped = (
        plan_ate(
            clinic(), domain=domain(20), level="label", epsilons=["1"],
            options=CalibratedOptions(outcome_sd=1.0, clip_share=share),
        ).rows[0]
        for share in (0, None)
    )  # fmt: skip

    assert clipped.noise_error < loose.noise_error / 4
    assert clipped.half_width < loose.half_width
