"""The orthogonal method: odd data have releases of the same shape, and the plan is public."""

import json
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate.domain import Binary, Domain, Interval, Treatment
from private_ate.errors import ArgumentError
from private_ate.estimation import estimate_ate
from private_ate.estimators.orthogonal.cells import (
    CellCounts,
    CellNoise,
    choose_limit,
    smooth_cells,
)
from private_ate.estimators.orthogonal.method import OrthogonalOptions
from private_ate.estimators.orthogonal.plan import plain_shares, plan_orthogonal
from private_ate.privacy.objective import radius_tail
from private_ate.release import Release

DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"a": Interval(0, 1), "b": Interval(-5, 5), "c": Interval(0, 3)},
)
ROWS = 400


def table(**columns):
    rng = np.random.default_rng(0)
    rows = columns.pop("rows", ROWS)
    plain = {
        "t": rng.integers(0, 2, rows),
        "y": rng.uniform(0, 10, rows),
        "a": rng.random(rows),
        "b": rng.uniform(-5, 5, rows),
        "c": rng.uniform(0, 3, rows),
    }
    return pl.DataFrame(plain | columns)


half = np.arange(ROWS) % 2 == 0
ODD = {
    "plain": table(),
    "nan everywhere": table(a=np.full(ROWS, np.nan), y=np.full(ROWS, np.nan)),
    "nan in the treatment": table(t=np.where(half, np.nan, 1.0)),
    "infinite": table(a=np.where(half, np.inf, -np.inf), y=np.where(half, -np.inf, np.inf)),
    "far out of bounds": table(a=np.full(ROWS, 1e300), y=np.full(ROWS, -1e300)),
    "all treated": table(t=np.ones(ROWS)),
    "all control": table(t=np.zeros(ROWS)),
    "constant covariates": table(a=np.zeros(ROWS), b=np.zeros(ROWS), c=np.zeros(ROWS)),
    "separable": table(t=half.astype(int), a=half.astype(float)),
    "one row": table(rows=1),
    "three rows": table(rows=3),
}


def shape_of(value):
    if isinstance(value, dict):
        return {key: shape_of(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [shape_of(entry) for entry in value]
    return value if isinstance(value, str | bool) else type(value).__name__


@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize("epsilon", ["0.001", "1", "1000"])
@pytest.mark.parametrize("name", ODD)
def test_odd_data_give_a_release_of_the_same_shape(name, epsilon, adjust):
    options = OrthogonalOptions(adjust=adjust)

    releases = [
        estimate_ate(data, domain=DOMAIN, level="sample", epsilon=epsilon, options=options, seed=1)
        for data in (ODD[name], table(rows=ODD[name].height))
    ]

    shapes = [shape_of(release.to_dict()) for release in releases]
    for shape in shapes:
        shape["settings"].pop("population")  # names the limit, a released number
        shape["effects"][0].pop("estimand")  # a limit of two is the overlap population
        assert shape.pop("estimand") in (("ate", "ato") if adjust else ("difference",))
    assert shapes[0] == shapes[1]
    assert all(math.isfinite(value) for value in (releases[0].ate, *releases[0].interval))
    assert abs(releases[0].ate) <= 10
    json.loads(releases[0].to_json())


@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize(("epsilon", "rows"), [("1e-12", 1), ("1e6", 1), ("1", 10**6)])
def test_extreme_budgets_and_persons_give_finite_numbers(epsilon, rows, adjust):
    release = estimate_ate(
        table(), domain=DOMAIN, level="sample", epsilon=epsilon, rows_per_person=rows, seed=1,
        options=OrthogonalOptions(adjust=adjust),
    )  # fmt: skip

    assert all(math.isfinite(value) for value in (*release.interval, *release.noise_interval))
    assert "nan" not in release.to_json().lower()


def test_without_covariates_the_arms_are_compared():
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {})

    release = estimate_ate(
        table().select("t", "y"), domain=domain, level="sample", epsilon=1, seed=0,
        options=OrthogonalOptions(adjust=True),
    )  # fmt: skip

    assert release.settings["adjusted"] is False


def test_the_method_spends_exactly_epsilon():
    release = estimate_ate(
        table(), domain=DOMAIN, level="sample", epsilon="0.7", method="orthogonal"
    )

    assert release.method == "orthogonal"
    assert sum(release.settings["budget"].values()) == pytest.approx(0.7)
    assert release.guarantee == "pure 0.7-DP, sample level"


@pytest.mark.parametrize("method", ["orthogonal", "blocks"])
def test_a_release_names_the_chance_that_its_solver_rounds_further_than_proved(method):
    asked = {"options": OrthogonalOptions(adjust=True)}
    if method == "blocks":  # with a model of outcomes in a trial
        asked = {"design": "randomized", "probability": 0.5}
    release = estimate_ate(
        table(), domain=DOMAIN, level="sample", epsilon=30, method=method, **asked
    )
    solved = [step for step in release.steps if step.mechanism == "objective"]
    weights = 1 + len(DOMAIN.covariates)
    chance = len(solved) * radius_tail(weights)

    claim, _, caveat = release.guarantee.partition(", up to a chance of ")
    assert claim == "pure 30-DP, sample level"
    named = float(caveat.removesuffix(" in the rounding of its solver"))
    assert 0 < chance <= named < 1.5 * chance + 1e-27
    assert Release.from_json(release.to_json()).guarantee == release.guarantee


def test_no_interval_leaves_its_share_to_the_estimate():
    paid, free = (
        estimate_ate(table(), domain=DOMAIN, level="sample", epsilon=1, confidence=confidence)
        for confidence in (0.95, None)
    )

    assert free.interval is None
    assert "variance" not in free.settings["budget"]
    assert free.settings["budget"]["effect"] == pytest.approx(
        paid.settings["budget"]["effect"] + paid.settings["budget"]["variance"]
    )


def test_intervals_hold_the_estimate_and_nest():
    for adjust in (True, False):
        release = estimate_ate(
            table(), domain=DOMAIN, level="sample", epsilon=3, seed=2,
            options=OrthogonalOptions(adjust=adjust),
        )  # fmt: skip
        low, high = release.interval
        inner_low, inner_high = release.noise_interval
        assert low <= inner_low <= release.ate <= inner_high <= high


def test_models_scores_and_cells_stay_inside():
    release = estimate_ate(
        table(), domain=DOMAIN, level="sample", epsilon=3, options=OrthogonalOptions(adjust=True)
    )

    assert set(release.settings) == {
        "adjusted", "design", "signal_to_noise", "adjust_threshold", "matching_limit_K",
        "population",
        "confidence", "rows_per_person", "budget", "interval_covers", "noise_interval_covers",
        "notes",
    }  # fmt: skip
    assert len(pickle.dumps(release)) < 4000
    assert "array" not in repr(release)


def test_a_binary_outcome_works():
    domain = Domain(Treatment("t", 1, 0), ("y", Binary()), {"a": Interval(0, 1)})
    rng = np.random.default_rng(5)
    data = pl.DataFrame(
        {"t": rng.integers(0, 2, 5000), "y": rng.integers(0, 2, 5000), "a": rng.random(5000)}
    )

    release = estimate_ate(data, domain=domain, level="sample", epsilon=4, seed=1)

    assert release.settings["adjusted"] is True
    assert abs(release.ate) < 0.1


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"adjust_threshold": -1.0}, "threshold"),
        ({"adjust": "yes"}, "adjust is"),
        ({"shares": ("0.5",)}, "six shares"),
        ({"shares": ("0.5", "0.5", "0.1", "0.1", "0.1", "0.1")}, "leave a part"),
        ({"shares": ("a", "0.5", "0.1", "0.1", "0.1", "0.1")}, "decimal"),
    ],
)
def test_bad_options_are_refused(keywords, text):
    with pytest.raises(ArgumentError, match=text):
        OrthogonalOptions(**keywords)


def cells_that_differ():
    """Return exact counts of cells whose effects rise with the share of treated rows."""
    share, weight = np.linspace(0.1, 0.8, 12), np.full(12, 1 / 12)
    effect, size = 0.1 * np.linspace(0, 2, 12), 1e7
    mean = np.linspace(-0.1, 0.1, 12)
    treated, control = size * weight * share, size * weight * (1 - share)
    sums = treated * (mean + (1 - share) * effect), control * (mean - share * effect)
    return CellCounts(treated, control, *sums), share, weight, effect, mean


@pytest.mark.parametrize("estimand", ["ate", "att", "atc", "ato"])
def test_cells_are_averaged_as_the_estimand_says(estimand):
    counts, share, weight, effect, mean = cells_that_differ()
    law = CellNoise(1e-3, 1e-3, 1.0, 10_000_000)
    tilt = {"ate": 1, "att": share, "atc": 1 - share, "ato": share * (1 - share)}[estimand]

    model = smooth_cells(counts, law, estimand)
    chosen = choose_limit(model, law, epsilon=Fraction(1), changes=1)

    centre, found = chosen.score.centre, chosen.score.share
    treated = share * (1 - found) * (mean + (1 - share) * effect - centre)
    control = (1 - share) * found * (mean - share * effect - centre)
    released = float((weight * chosen.score.rate * (treated - control)).sum())
    truth = np.average(effect, weights=weight * tilt)
    assert released == pytest.approx(truth, abs=1e-4)


def test_an_estimand_is_named_with_its_limit():
    release = estimate_ate(
        table(), domain=DOMAIN, method="orthogonal", level="sample", epsilon=1, estimand="att",
        options=OrthogonalOptions(adjust=True), seed=1,
    )  # fmt: skip

    assert release.settings["estimand"] == "att"
    assert re.fullmatch(
        r"the treated units \(ATT\), overlap-limited \(K = [\d.]+\)", release.settings["population"]
    )


def test_the_plan_follows_the_published_rule():
    assert not plan_orthogonal(445, 8, 4).adjusted
    assert plan_orthogonal(10_000, 10, 1).adjusted
    assert plan_orthogonal(10_000, 10, 1).signal_to_noise == pytest.approx(11.108, abs=1e-3)
    assert plan_orthogonal(10_000, 10, 1).cells == 22
    assert plan_orthogonal(10_000_000, 10, 1).cells == 160
    assert plan_orthogonal(445, 8, 4, OrthogonalOptions(adjust_threshold=0)).adjusted


def test_shares_without_adjustment_shrink_as_the_study_grows():
    small, large = (plain_shares(n, 1.0, with_interval=True) for n in (100, 10**9))

    assert (small.counts, small.sums) == (Fraction(3, 20), Fraction(1, 10))
    assert (large.counts, large.sums) == (Fraction(3, 200), Fraction(1, 100))
    assert small.counts + small.sums + small.interval + small.effect == 1


def exact_cells(shares, means, rows_per_cell=10_000.0):
    """Cells without noise: treated shares and means along the score, an effect of 0.1."""
    treated, control = rows_per_cell * shares, rows_per_cell * (1 - shares)
    return CellCounts(
        treated, control, treated * (means + (1 - shares) * 0.1), control * (means - shares * 0.1)
    )


def test_smoothing_leaves_precise_cells_alone():
    shares, means = np.linspace(0.1, 0.8, 12), np.linspace(-0.2, 0.3, 12) ** 2
    noise = CellNoise(1e-3, 1e-3, 1.0, 120_000)

    model = smooth_cells(exact_cells(shares, means), noise)

    assert np.allclose(model.share, shares, atol=0.01)
    assert np.allclose(model.mean, means, atol=0.01)
    assert np.allclose(model.weight, 1 / 12)


def test_empty_and_negative_cells_are_smoothed_over():
    empty = np.array([0.0, -40.0, 500.0, 0.0, 3.0, -1.0])
    noise = CellNoise(20.0, 10.0, 1.0, 500)

    model = smooth_cells(CellCounts(empty, -empty, empty / 9, empty * 0), noise)

    assert np.all((model.share >= 0.005) & (model.share <= 0.995))
    assert np.all(np.isfinite(model.centre))
    assert model.weight.sum() == pytest.approx(1)


def test_the_limit_falls_as_noise_grows():
    shares = np.linspace(0.02, 0.6, 20)
    noise = CellNoise(1.0, 1.0, 1.0, 20_000)
    model = smooth_cells(exact_cells(shares, np.zeros(20), 1000.0), noise)

    limits = [
        choose_limit(model, noise, epsilon=Fraction(e), changes=1).limit for e in ("0.01", "100")
    ]

    assert limits[0] == 2
    assert limits[1] > 10
