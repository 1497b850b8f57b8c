"""Sampling weights at label level: what they estimate, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    CalibratedOptions,
    Domain,
    DomainError,
    Interval,
    Ledger,
    LedgerError,
    Outcome,
    SamplingWeights,
    SchemaError,
    Treatment,
    UndeclaredError,
    estimate_ate,
    exact_effect,
    plan_ate,
)
from private_ate.cli.app import app
from private_ate.cli.flags import with_flag
from private_ate.engines.local import LocalStudy
from private_ate.methods.calibrated.solver import maximize_dual

ROWS = 900
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(0, 1)), {"a": Interval(0, 1), "b": Interval(0, 1)},
    weights=("w", Interval(0, 12)),
)  # fmt: skip
PLAIN = {"confidence": None, "options": CalibratedOptions(terms="plain"), "seed": 1}


def sampled(rows=ROWS, seed=1):
    """People whose effect grows with b, of whom those with a large b were sampled rarely."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(rows), rng.random(rows)
    treated = rng.random(rows) < 1 / (1 + np.exp(1 - 2 * a))
    weight = np.exp(1.5 * b) * rng.uniform(0.5, 1.5, rows)
    outcome = np.clip(0.2 + 0.3 * a + treated * (0.1 + 0.3 * b) + rng.normal(0, 0.05, rows), 0, 1)
    return pl.DataFrame({"a": a, "b": b, "t": treated.astype(int), "y": outcome, "w": weight})


def straight_features(x, inside):
    """Covariates and the probability of an arm by a ridge logit, with their shares of variance."""
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    z = np.column_stack([np.ones(len(x)), standard])
    ridge = np.array([1e-6, 1.0, 1.0])

    def loss(beta):
        return np.logaddexp(0, -np.where(inside, 1, -1) * (z @ beta)).sum() + ridge @ beta**2 / 2

    index = z @ minimize(loss, np.zeros(3), tol=1e-12, options={"gtol": 1e-7}).x
    chance = 1 / (1 + np.exp(-index))[:, None]
    return np.hstack(
        [
            (block - block.mean(axis=0)) / block.std(axis=0) * np.sqrt(share / block.shape[1])
            for block, share in ((standard, 1.0), (chance, 0.03))
        ]
    )


def calibrated_mean(features, s, omega, inside, y):
    """Weighted calibration of an arm's mean from its linear equations."""
    n, size = y.size, int(inside.sum())
    f, near = features[inside], n * s[inside] / s[inside].sum()
    distance, target = 0.3 * np.diag(1 / s[inside]), n * (omega @ features) / omega.sum()
    matrix = np.block([[distance + f @ f.T, np.ones((size, 1))], [np.ones((1, size)), 0]])
    weights = np.linalg.solve(matrix, np.append(distance @ near + f @ target, n))[:-1]
    assert weights.min() > 0  # else the bound at zero would bind
    return weights @ y[inside] / n


def weighted_calibration(frame):
    x, t = frame.select("a", "b").to_numpy(), frame["t"].to_numpy() == 1
    y, s = frame["y"].to_numpy(), frame["w"].to_numpy() / frame["w"].mean()
    features = straight_features(x, t)
    return calibrated_mean(features, s, s, t, y) - calibrated_mean(features, s, s, ~t, y)


def test_at_a_large_epsilon_it_is_the_weighted_calibration_without_noise():
    frame = sampled()

    release = estimate_ate(frame, level="label", epsilon=200, domain=DOMAIN, **PLAIN)

    assert release.ate == pytest.approx(weighted_calibration(frame), abs=2e-5)


def test_the_effect_is_that_of_the_target_population_and_says_so():
    frame = sampled(rows=6000)
    effects = 0.1 + 0.3 * frame["b"].to_numpy()
    in_population = np.average(effects, weights=frame["w"].to_numpy())

    release = estimate_ate(frame, level="label", epsilon=20, domain=DOMAIN, seed=1)

    assert abs(in_population - effects.mean()) > 0.03
    assert release.ate == pytest.approx(in_population, abs=0.01)
    assert release.settings["population"].endswith("weighted to the target population")
    assert release.settings["sampling_weights"]["column"] == "w"
    assert "weighted to the target population" in str(release)
    worth, arms = (release.settings[key] for key in ("effective_arms", "arms"))
    assert worth["treated"] < 0.95 * arms["treated"]


def test_equal_weights_are_no_weights():
    frame = sampled().with_columns(w=pl.lit(3.0))
    bare = replace(DOMAIN, weights=None)

    weighted = estimate_ate(frame, level="label", epsilon=1, domain=DOMAIN, **PLAIN)
    plain = estimate_ate(frame.drop("w"), level="label", epsilon=1, domain=bare, **PLAIN)

    assert weighted.ate == pytest.approx(plain.ate, abs=1e-5)


@pytest.mark.parametrize("estimand", ["att", "atc", "ato"])
def test_other_estimands_are_weighted_too(estimand):
    frame = sampled(rows=6000)
    b, w, t = (frame[name].to_numpy() for name in ("b", "w", "t"))
    chance = 1 / (1 + np.exp(1 - 2 * frame["a"].to_numpy()))
    tilt = {"att": t == 1, "atc": t == 0, "ato": chance * (1 - chance)}[estimand]
    truth = np.average(0.1 + 0.3 * b, weights=w * tilt)

    release = estimate_ate(
        frame, level="label", epsilon=20, domain=DOMAIN, estimand=estimand, seed=1
    )

    assert release.ate == pytest.approx(truth, abs=0.012)


def test_a_row_of_weight_two_is_two_rows_to_the_solver():
    rng = np.random.default_rng(3)
    features, counts = rng.normal(size=(40, 3)), rng.integers(1, 4, 40)
    target, total = np.array([5.0, -3.0, 2.0]), float(counts.sum())
    whole, ones = np.repeat(features, counts, axis=0), np.ones(counts.sum())
    units = counts.astype(float)

    weighted = maximize_dual(features, units, units, np.inf, target, total, np.zeros(4))
    repeated = maximize_dual(whole, ones, ones, np.inf, target, total, np.zeros(4))

    np.testing.assert_allclose(weighted.dual, repeated.dual, rtol=1e-6)


def test_rows_of_weight_zero_take_no_part():
    frame = sampled()
    silent = np.arange(ROWS) % 3 == 0
    weight = np.where(silent, 0.0, frame["w"].to_numpy())
    first = frame.with_columns(w=weight)
    second = first.with_columns(y=np.where(silent, 1.0, frame["y"].to_numpy()))

    one, other = (
        estimate_ate(each, level="label", epsilon=2, domain=DOMAIN, **PLAIN)
        for each in (first, second)
    )

    assert one.ate == other.ate
    arms = one.settings["arms"]
    assert arms["treated"] + arms["control"] == ROWS - silent.sum()


def test_rows_that_publicly_lack_an_outcome_are_counted_apart_from_those_of_weight_zero():
    frame = sampled()
    weight = np.where(np.arange(ROWS) % 3 == 0, 0.0, frame["w"].to_numpy())
    outcome = [None if row % 5 == 0 else value for row, value in enumerate(frame["y"])]
    domain = replace(DOMAIN, outcome=Outcome("y", Interval(0, 1), "public"))
    frame = frame.with_columns(w=weight, y=pl.Series(outcome))

    release = estimate_ate(frame, level="label", epsilon=2, domain=domain, **PLAIN)

    assert release.settings["left_out_outcome"] == ROWS // 5


def test_a_cap_below_the_largest_sampling_weight_is_told():
    frame = sampled(rows=300)

    tight = estimate_ate(frame, level="label", epsilon="0.01", domain=DOMAIN, **PLAIN)
    loose = estimate_ate(frame, level="label", epsilon=200, domain=DOMAIN, **PLAIN)

    assert any("largest sampling weight" in note for note in tight.settings["notes"])
    assert not any("largest sampling weight" in note for note in loose.settings["notes"])


@pytest.mark.parametrize("odd", [-1.0, 12.5, None, float("nan")])
def test_weights_outside_their_bounds_are_counted_and_refused_or_left_out(odd):
    values = [odd if row in (4, 7) else value for row, value in enumerate(sampled()["w"])]
    frame = sampled().with_columns(w=pl.Series(values, dtype=pl.Float64))

    with pytest.raises(UndeclaredError, match=r"'w' is missing or not between 0 and 12 in 2 of"):
        estimate_ate(frame, level="label", epsilon=1, domain=DOMAIN, seed=1)
    release = estimate_ate(
        frame, level="label", epsilon=1, domain=DOMAIN, leave_out_undeclared=True, seed=1
    )

    assert release.missing["left_out_weights"] == 2
    assert release.missing["left_out_unreadable"] == 0
    assert release.n == ROWS - 2


def test_an_arm_without_weight_is_refused():
    frame = sampled().with_columns(w=pl.col("w") * pl.col("t"))

    with pytest.raises(SchemaError, match="no control unit with an outcome has a sampling weight"):
        estimate_ate(frame, level="label", epsilon=1, domain=DOMAIN, seed=1)


def unread():
    """A table whose records cannot be read: whoever refuses in time never tries."""
    return pl.DataFrame({name: [] for name in ("a", "b", "t", "y", "w")})


def test_weights_are_declared_by_a_pair_a_value_or_a_keyword():
    bare = replace(DOMAIN, weights=None)
    given = SamplingWeights("w", 12)
    named = estimate_ate(sampled(), level="label", epsilon=1, domain=DOMAIN, weights="w", **PLAIN)
    here = estimate_ate(sampled(), level="label", epsilon=1, domain=bare, weights=given, **PLAIN)

    assert DOMAIN.weights == given
    assert named.ate == here.ate
    assert Domain.from_toml(DOMAIN.to_toml()) == DOMAIN
    assert '[weights]\ncolumn = "w"\nhigh = 12.0' in DOMAIN.to_toml()


def test_weights_without_a_bound_are_refused_and_say_how():
    with pytest.raises(DomainError, match=r"weights=\('w', Interval\(0, W\)\)"):
        estimate_ate(
            unread(), level="label", epsilon=1, domain=replace(DOMAIN, weights=None), weights="w"
        )


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        (("w", Interval(1, 12)), "between 0 and"),
        ("w", "pair"),
        (("a", Interval(0, 1)), "declared twice"),
        (("w", Interval(0, 0)), "above 0"),
    ],
)
def test_a_domain_refuses_weights_that_are_none(weights, reason):
    with pytest.raises(DomainError, match=reason):
        replace(DOMAIN, weights=weights)


def test_a_column_is_no_covariate_and_weight_at_once():
    with pytest.raises(ArgumentError, match="treatment, outcome or weights too"):
        estimate_ate(unread(), level="label", epsilon=1, domain=DOMAIN, covariates=["a", "w"])
    with pytest.raises(ArgumentError, match="sampling weights and a covariate too"):
        estimate_ate(unread(), level="label", epsilon=1, domain=DOMAIN, weights="a")
    release = estimate_ate(
        sampled(), level="label", epsilon=1, domain=DOMAIN, covariates="all", **PLAIN
    )
    assert set(release.settings["balance"]) == {"a", "b"}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"level": "sample", "method": "ipw"}, "takes no sampling weights at sample level"),
        ({"level": "label", "method": "published"}, "use method 'calibrated'"),
        ({"level": "label", "target": "track"}, "use 'balance'"),
        ({"level": "label", "weights": "v"}, "the weights column is 'v'"),
        ({"level": "label", "weights": 3}, "names the column"),
    ],
)
def test_what_takes_no_weights_refuses_before_a_record_is_read(asked, reason):
    with pytest.raises(ArgumentError, match=reason):
        estimate_ate(unread(), epsilon=1, domain=DOMAIN, **asked)


def test_a_study_refuses_other_weights_than_its_own():
    rows = np.random.default_rng(0).random((2, 50))
    study = LocalStudy(
        DOMAIN, rows, rows[0] > 0.5, np.zeros(50, dtype=np.int32), weights=np.ones(50)
    )

    with pytest.raises(ArgumentError, match="encoded with other sampling weights"):
        estimate_ate(study, level="label", epsilon=1, weights=SamplingWeights("w", 9))


def test_matching_refuses_weights():
    with pytest.raises(ArgumentError, match="matching takes no sampling weights"):
        exact_effect(sampled(), domain=DOMAIN)


def test_a_plan_says_by_how_much_the_largest_weight_makes_noise_grow():
    frame = sampled()
    weight = frame["w"].to_numpy()

    plan = plan_ate(frame, level="label", epsilons=["1"], domain=DOMAIN)
    plain = plan_ate(
        frame.drop("w"), level="label", epsilons=["1"], domain=replace(DOMAIN, weights=None)
    )

    assert f"largest is {weight.max() / weight.mean():.3g} times the mean" in plan.caveat
    assert plan.rows[0].expected_error > plain.rows[0].expected_error
    with pytest.raises(ArgumentError, match="at label level, where they are read"):
        plan_ate(frame, level="label", epsilons=["1"], domain=DOMAIN, mean_weight=2)


def test_a_ledger_binds_the_column_of_weights_as_public(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", "people", epsilon=10)

    estimate_ate(sampled(), level="label", epsilon=1, domain=DOMAIN, ledger=ledger)

    assert "w" in ledger.roles("people").public
    as_outcome = Domain(Treatment("t", 1, 0), ("w", Interval(0, 12)), DOMAIN.covariates)
    with pytest.raises(LedgerError):
        estimate_ate(sampled(), level="label", epsilon=1, domain=as_outcome, ledger=ledger)


@pytest.mark.parametrize("rows", [50, 25_000])
def test_a_streamed_file_gives_the_same_release(tmp_path, rows):
    path = tmp_path / "people.csv"
    sampled(rows=rows).write_csv(path)
    asked = {"level": "label", "epsilon": 1, "domain": DOMAIN, "seed": 1}

    whole, streamed = (estimate_ate(path, **asked, memory_limit=size) for size in ("1GB", 1))

    assert whole.ate == streamed.ate


def test_the_command_line_takes_the_column_and_its_bound(tmp_path):
    path, domain = tmp_path / "people.csv", tmp_path / "domain.toml"
    sampled().write_csv(path)
    DOMAIN.write(domain)
    flags = ["--level", "label", "--epsilon", "1", "--seed", "1", "--json"]
    bare = ["--treatment", "t", "--outcome", "y", "--covariates", "a,b", "--binary-outcome"]
    bounds = ["--bounds", "a=0:1", "--bounds", "b=0:1", "--bounds", "w=0:12"]
    run = CliRunner()

    by_flags = run.invoke(app, ["estimate", str(path), *flags, *bare, *bounds, "--weights", "w"])
    by_file = run.invoke(
        app, ["estimate", str(path), *flags, "--domain", str(domain), "--binary-outcome"]
    )
    planned = run.invoke(
        app, ["plan", str(path), "--level", "label", *bare, *bounds, "--weights", "w"]
    )

    assert json.loads(by_flags.stdout)["ate"] == json.loads(by_file.stdout)["ate"]
    assert "times the mean" in " ".join(planned.stdout.split())


def test_the_command_line_says_which_flag_declares_the_bound(tmp_path):
    path = tmp_path / "people.csv"
    sampled().write_csv(path)
    flags = ["--level", "label", "--epsilon", "1", "--treatment", "t", "--outcome", "y"]

    refused = CliRunner().invoke(app, ["estimate", str(path), *flags, "--weights", "w"])

    assert isinstance(refused.exception, DomainError)
    assert with_flag(refused.exception).endswith("--weights w --bounds w=0:W, or --domain FILE")


THREE = replace(DOMAIN, treatment=Treatment("t", arms=("a", "b", "c"), reference="b"))


def sampled_arms_frame(rows=900, seed=2):
    """Three arms: "c" works better with a large b, and such people were sampled rarely."""
    rng = np.random.default_rng([seed, 1])
    frame = sampled(rows, seed)
    a, b = frame["a"].to_numpy(), frame["b"].to_numpy()
    odds = np.exp(np.column_stack([0.5 * a, np.zeros(rows), 0.6 * b]))
    arm = (rng.random((rows, 1)) > np.cumsum(odds, axis=1) / odds.sum(axis=1)[:, None]).sum(axis=1)
    gain = np.select([arm == 0, arm == 2], [np.full(rows, 0.05), 0.1 + 0.3 * b], 0.0)
    outcome = np.clip(0.2 + 0.3 * a + gain + rng.normal(0, 0.05, rows), 0, 1)
    labels = pl.Series(np.array(["a", "b", "c"])[arm])
    return frame.with_columns(t=labels, y=pl.Series(outcome))


def weighted_arm_means(frame, among=None):
    x, y = frame.select("a", "b").to_numpy(), frame["y"].to_numpy()
    s = frame["w"].to_numpy() / frame["w"].mean()
    codes = frame["t"].replace_strict({"b": 0, "a": 1, "c": 2}).to_numpy()
    omega = s if among is None else s * (codes == among)
    means = [
        calibrated_mean(straight_features(x, codes == arm), s, omega, codes == arm, y)
        for arm in range(3)
    ]
    return dict(zip("bac", means, strict=True))


@pytest.mark.parametrize("among", [None, "c"])
def test_of_three_arms_each_is_calibrated_to_the_target_population(among):
    frame = sampled_arms_frame()
    means = weighted_arm_means(frame, None if among is None else 2)

    release = estimate_ate(frame, level="label", epsilon=10**6, domain=THREE, among=among, **PLAIN)

    assert {arm.label: arm.mean for arm in release.arms} == pytest.approx(means, abs=2e-5)
    assert release.settings["population"].endswith(", weighted to the target population")
    note, weight = release.settings["sampling_weights"], frame["w"]
    assert note["largest"] == pytest.approx(weight.max() / weight.mean())
    inside = weight.filter(frame["t"] == "a")
    assert note["worth"]["a"] == pytest.approx(inside.sum() ** 2 / (inside**2).sum())


def test_balance_of_three_arms_is_that_of_the_target_population():
    frame = sampled_arms_frame()
    release = estimate_ate(frame, level="label", epsilon=10**6, domain=THREE, seed=1)

    b, w = frame["b"].to_numpy(), frame["w"].to_numpy()
    inside = (frame["t"] == "c").to_numpy()
    away = np.average(b[inside], weights=w[inside]) - np.average(b, weights=w)
    before, after = release.settings["arm_balance"]["c"]["b"]

    assert np.sign(before) == np.sign(away)
    assert before == pytest.approx(away / b.std(), rel=0.15)
    assert abs(after) < 0.01


def test_equal_weights_of_three_arms_are_no_weights():
    frame = sampled_arms_frame().with_columns(w=pl.lit(3.0))
    plain = estimate_ate(
        frame.drop("w"), level="label", epsilon=2, domain=replace(THREE, weights=None), seed=1
    )

    weighted = estimate_ate(frame, level="label", epsilon=2, domain=THREE, seed=1)

    assert [arm.mean for arm in weighted.arms] == pytest.approx(
        [arm.mean for arm in plain.arms], abs=2e-4
    )


def test_of_three_arms_rows_of_weight_zero_take_no_part():
    frame = sampled_arms_frame()
    some = frame.with_columns(w=pl.when(pl.col("a") < 0.2).then(0.0).otherwise(pl.col("w")))
    changed = some.with_columns(y=pl.when(pl.col("a") < 0.2).then(1.0).otherwise(pl.col("y")))

    first, second = (
        estimate_ate(one, level="label", epsilon=1, domain=THREE, seed=1) for one in (some, changed)
    )

    assert first.ate == second.ate
    assert first.interval == second.interval
    assert sum(first.settings["arms"].values()) == (some["w"] > 0).sum()


def test_an_arm_of_three_without_weight_is_refused():
    frame = sampled_arms_frame()
    none = frame.with_columns(w=pl.when(pl.col("t") == "a").then(0.0).otherwise(pl.col("w")))

    with pytest.raises(SchemaError, match="no unit of arm 'a' with an outcome has a sampling"):
        estimate_ate(none, level="label", epsilon=1, domain=THREE)


def test_a_cap_below_the_largest_sampling_weight_is_told_of_the_arm():
    frame = sampled_arms_frame(seed=3).with_columns(w=pl.col("w") ** 2 / 12)

    release = estimate_ate(frame, level="label", epsilon="0.2", domain=THREE, seed=1)

    assert any(
        "arm 'a': the cap" in note and "is below the largest sampling weight" in note
        for note in release.settings["notes"]
    )


def test_a_plan_for_three_arms_reads_the_weights():
    frame = sampled_arms_frame()

    plan = plan_ate(frame, level="label", epsilons=["1"], domain=THREE)
    plain = plan_ate(
        frame.drop("w"), level="label", epsilons=["1"], domain=replace(THREE, weights=None)
    )

    assert "times the mean" in plan.caveat
    assert plan.rows[0].expected_error > plain.rows[0].expected_error


@pytest.mark.parametrize("domain", [DOMAIN, THREE])
@pytest.mark.parametrize(("overall", "asked"), [(False, {}), (True, {}), (False, {"among": "c"})])
def test_subgroups_count_by_their_sums_of_weights(domain, overall, asked):
    two = domain is DOMAIN
    frame = sampled() if two else sampled_arms_frame()
    asked = {"estimand": "att"} if two and asked else asked
    common = {"level": "label", "epsilon": 10**6, "domain": domain, "seed": 1, "confidence": None}
    cells = {
        "b<0.4": frame.filter(pl.col("b") < 0.4),
        "b≥0.4": frame.filter(pl.col("b") >= 0.4),
    }
    alone = {name: estimate_ate(rows, **common, **asked).ate for name, rows in cells.items()}

    release = estimate_ate(frame, by=["b<0.4"], overall=overall, **common, **asked)

    members = pl.lit(True) if not asked else pl.col("t") == (1 if two else "c")
    sums = [rows.filter(members)["w"].sum() for rows in cells.values()]
    found = {
        row.subgroup: row.estimate for row in release.effects if row.subgroup and row.arm != "a"
    }
    assert found == pytest.approx(alone, abs=4e-3)  # with features and weights of all rows
    rolled = np.average([found[name] for name in cells], weights=sums)
    assert release.ate == pytest.approx(rolled, abs=1e-9)
    notes = release.settings["subgroups"]["cells"]
    assert [note["weight"] for note in notes] == pytest.approx(
        [rows["w"].sum() for rows in cells.values()]
    )
    assert "weighted to the target population" in release.settings["population"]
    weight = frame["w"]
    assert release.settings["sampling_weights"]["largest"] == pytest.approx(
        weight.max() / weight.mean()
    )
