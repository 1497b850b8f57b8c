"""The non-private reference, and the label level without limits and with hardly any noise."""

import numpy as np
import polars as pl
import pytest

from oracles import fit_propensity, share_ties
from private_ate import (
    Domain,
    Interval,
    PublishedOptions,
    SchemaError,
    Treatment,
    diagnose_ate,
    estimate_ate,
    exact_effect,
)

SAME_DISTANCE = 1e-9  # far above the rounding of scores, far below any gap in these data


def draw_study(seed: int, rows: int, *, discrete: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    covariates = (
        rng.integers(0, 4, (rows, 3)).astype(float) if discrete else rng.random((rows, 3)) * 4
    )
    treatment = rng.random(rows) < 1 / (1 + np.exp(1.0 - 0.5 * covariates[:, 0]))
    treatment[:2] = True, False
    outcome = 2.0 * treatment + covariates @ [0.3, -0.2, 0.1] + rng.normal(0, 0.3, rows)
    columns = {f"x{i}": column for i, column in enumerate(covariates.T)}
    return pl.DataFrame(columns | {"t": treatment.astype(int), "y": outcome})


def domain_for(frame: pl.DataFrame) -> Domain:
    return Domain(
        Treatment("t", 1, 0),
        ("y", Interval(-4, 6)),
        {name: Interval(0, 4) for name in frame.columns[:3]},
    )


def brute_force(frame: pl.DataFrame, neighbors: int) -> float:
    covariates = frame.select("x0", "x1", "x2").to_numpy() / 4
    treatment = frame["t"].to_numpy() == 1
    weights = fit_propensity(covariates, treatment, 1 / frame.height)
    scores = 1 / (1 + np.exp(-(covariates @ weights[1:] + weights[0])))
    mass = 1 + share_ties(scores, treatment, neighbors, SAME_DISTANCE)
    outcome = np.clip(frame["y"].to_numpy(), -4, 6)
    return float(np.where(treatment, mass, -mass) @ outcome / frame.height)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("neighbors", [1, 3, 5])
def test_the_reference_is_what_a_quadratic_matcher_computes(discrete, neighbors):
    for seed in range(8):
        frame = draw_study(seed, 30 + 20 * seed, discrete=discrete)
        if seed % 2:
            frame = pl.concat([frame, frame.head(15)])  # duplicated rows are ties

        found = exact_effect(frame, domain=domain_for(frame), neighbors=neighbors)

        assert found == pytest.approx(brute_force(frame, neighbors), abs=1e-12)


def test_the_reference_does_not_depend_on_the_order_of_rows():
    frame = draw_study(3, 200, discrete=True)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=1)
    domain = domain_for(frame)

    assert exact_effect(shuffled, domain=domain) == pytest.approx(
        exact_effect(frame, domain=domain), abs=1e-12
    )


def test_fewer_opposite_units_than_neighbours_are_all_used():
    frame = draw_study(4, 40).with_columns(t=pl.Series([1, 1] + [0] * 38))

    found = exact_effect(frame, domain=domain_for(frame), neighbors=5)

    assert found == pytest.approx(brute_force(frame, 5), abs=1e-12)


@pytest.mark.parametrize("seed", range(50))
def test_hardly_any_noise_and_no_limits_give_the_reference(seed):
    frame = draw_study(1000 + seed, 1500)
    domain = domain_for(frame)

    release = estimate_ate(
        frame, domain=domain, level="label", epsilon="1e6", method="published",
        options=PublishedOptions(k=None), neighbors=1 + seed % 7,
    )  # fmt: skip

    expected = exact_effect(frame, domain=domain, neighbors=1 + seed % 7)
    assert release.ate == pytest.approx(expected, rel=1e-6)


def test_outcomes_without_declared_bounds_are_taken_as_they_are():
    frame = draw_study(5, 100)
    wide = Domain(Treatment("t", 1, 0), ("y", Interval(-1000, 1000)))

    assert exact_effect(frame, treatment="t", outcome="y") == pytest.approx(
        exact_effect(frame, domain=wide), abs=1e-9
    )


def test_an_empty_arm_is_a_clear_error_at_label_level():
    frame = draw_study(6, 50).with_columns(t=pl.lit(1))

    for call in (
        lambda: exact_effect(frame, domain=domain_for(frame)),
        lambda: estimate_ate(frame, domain=domain_for(frame), level="label", epsilon=1),
    ):
        with pytest.raises(SchemaError, match="no unit is control: check the treatment column"):
            call()


def test_diagnostics_show_nothing_unless_they_are_asked():
    frame = draw_study(7, 300)

    seen = diagnose_ate(frame, domain=domain_for(frame), epsilon=4)

    assert repr(seen) == "Diagnostics(note='not private, do not share')"
    assert seen.treated + seen.control == 300
    assert seen.exact_effect == pytest.approx(
        exact_effect(frame, domain=domain_for(frame)), rel=1e-5
    )
    assert set(seen.balance) == {"x0", "x1", "x2"}
    before, after = seen.balance["x0"]
    assert abs(after) < abs(before)
    assert 0 < seen.effective_control <= seen.control
