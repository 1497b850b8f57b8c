"""The interval of arms that are compared as they are."""

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, Treatment, estimate_ate

DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})


def half_width(effect):
    """Return the median half-width of a trial in which one in five is treated."""
    rng = np.random.default_rng(4)
    treated = rng.random(800) < 0.2
    outcome = np.clip(0.35 + effect * treated + rng.normal(0, 0.1, 800), 0, 1)
    frame = pl.DataFrame({"t": treated * 1, "y": outcome, "x": rng.random(800)})
    pairs = [
        estimate_ate(
            frame, domain=DOMAIN, level="sample", epsilon=4, seed=seed, design="randomized"
        ).interval
        for seed in range(25)
    ]
    return float(np.median([(high - low) / 2 for low, high in pairs]))


def test_a_large_effect_does_not_widen_the_interval_of_unequal_arms():
    assert half_width(0.3) == pytest.approx(half_width(0.0), rel=0.2)
