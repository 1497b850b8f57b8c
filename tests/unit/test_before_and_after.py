"""The effect on the treated, on declared changes, is the weighted difference in differences."""

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, Treatment, estimate_ate

EFFECT = 5.0


@pytest.fixture(scope="module")
def panel():
    rng = np.random.default_rng(7)
    people = 4000
    age = rng.uniform(25, 60, people).round()
    ability = rng.normal(0, 8, people)
    treated = rng.random(people) < 1 / (1 + np.exp(0.6 + 0.06 * (age - 42) + 0.08 * ability))
    before = 50 + ability + rng.normal(0, 3, people)
    after = before + 4 - 0.1 * (age - 42) + EFFECT * treated + rng.normal(0, 3, people)
    return pl.DataFrame(
        {"age": age, "t": treated.astype(int), "level": after, "change": after - before}
    )


def effect_on_treated(panel, outcome, low, high, **asked):
    domain = Domain(Treatment("t"), (outcome, Interval(low, high)), {"age": Interval(18, 70)})
    return estimate_ate(
        panel, domain=domain, level="label", estimand="att", seed=1, **{"epsilon": "100", **asked}
    )


def test_changes_give_the_effect_that_levels_do_not(panel):
    change = effect_on_treated(panel, "change", -30, 30)
    level = effect_on_treated(panel, "level", 0, 200)

    assert change.ate == pytest.approx(EFFECT, abs=0.4)
    assert change.interval[0] < EFFECT < change.interval[1]
    assert level.ate < EFFECT - 2


def test_without_privacy_it_is_abadies_weighted_difference(panel):
    from scipy.optimize import minimize

    age = (panel["age"].to_numpy() - 42) / 10
    treated, change = panel["t"].to_numpy(), panel["change"].to_numpy()
    design = np.column_stack([np.ones_like(age), age])
    fitted = minimize(
        lambda beta: np.logaddexp(0, design @ beta).sum() - (treated * (design @ beta)).sum(),
        np.zeros(2),
    ).x
    odds = np.exp(design @ fitted)
    weights = np.where(treated == 1, 0.0, odds)
    abadie = change[treated == 1].mean() - (weights * change).sum() / weights.sum()

    private = effect_on_treated(panel, "change", -30, 30, epsilon="100000")

    assert private.ate == pytest.approx(abadie, abs=0.1)


def test_noise_follows_the_width_of_the_declared_change(panel):
    tight = effect_on_treated(panel, "change", -30, 30, epsilon="1")
    wide = effect_on_treated(panel, "change", -200, 200, epsilon="1")

    tight_half, wide_half = (one.noise_interval[1] - one.ate for one in (tight, wide))
    assert wide_half > 4 * tight_half
