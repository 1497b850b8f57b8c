"""Trials: a known probability of treatment, at both levels and at every door."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    Categories,
    Domain,
    Interval,
    StudySizes,
    Treatment,
    estimate_ate,
    plan_ate,
)
from private_ate.cli.app import app
from private_ate.errors import ArgumentError, LedgerError
from private_ate.ledger.ledger import Ledger
from private_ate.methods.blocks.compare import Forms
from private_ate.methods.blocks.plan import Ask, plain_shares
from private_ate.methods.blocks.run import Counts
from private_ate.methods.probability import Probability

COVARIATES = {"x": Interval(-3, 3), "p": Interval(0.2, 0.8)}
DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), COVARIATES)


def trial(rows=4000, *, seed=0, varied=False, chance=0.5, effect=1.0):
    """A trial whose rows with a high x are treated more often if it is ``varied``."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=rows), -3, 3)
    p = np.where(x > 0, 0.8, 0.2) if varied else np.full(rows, chance)
    t = rng.random(rows) < p
    y = np.clip(5 + x + effect * t + 0.7 * rng.normal(size=rows), 0, 10)
    return pl.DataFrame({"x": x, "p": p, "t": t.astype(int), "y": y})


def asked(level="sample", epsilon=2, **more):
    return {"domain": DOMAIN, "level": level, "epsilon": epsilon, "design": "randomized"} | more


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_trial_is_headed_as_an_effect_and_says_how_treatment_was_given(level):
    release = estimate_ate(trial(), **asked(level, probability=0.5, seed=1))
    assert release.estimand == "ate"
    assert release.design == "randomized"
    assert "treatment was given with probability 0.5, as declared" in str(release)
    assert release.ate == pytest.approx(1.0, abs=0.15)


def test_nothing_is_paid_to_count_the_arms_of_a_trial():
    release = estimate_ate(trial(), **asked(probability=0.5, seed=1))
    names = {step.name for step in release.steps}
    assert "treated count" not in names
    assert "propensity model" not in names
    assert sum(step.epsilon for step in release.steps) == pytest.approx(2)


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_column_of_probabilities_removes_the_confounding_that_it_makes(level):
    frame = trial(20_000, varied=True)
    plain = frame.group_by("t").agg(pl.col("y").mean()).sort("t")["y"]
    assert plain[1] - plain[0] > 1.8
    release = estimate_ate(frame, **asked(level, probability="p", seed=2))
    assert release.interval[0] < 1.0 < release.interval[1]
    assert release.interval[1] - release.interval[0] < 0.6


def test_covariates_sharpen_a_trial_and_never_bias_it():
    errors = {False: [], True: []}
    for seed in range(8):
        frame = trial(1500, seed=seed, chance=0.4)
        for named, found in errors.items():
            release = estimate_ate(
                frame, **asked(probability=0.4 if named else None, seed=seed, epsilon=4)
            )
            assert release.adjusted is named
            found.append(release.ate - 1.0)
    spread = {named: float(np.sqrt(np.mean(np.square(rows)))) for named, rows in errors.items()}
    assert spread[True] < 0.9 * spread[False]
    assert abs(np.mean(errors[True])) < 3 * spread[True] / np.sqrt(8)


def test_rows_without_an_arm_or_an_outcome_do_not_shrink_the_effect():
    frame = trial(8000, effect=2.0).with_columns(
        t=pl.when(pl.int_range(pl.len()) % 5 == 0).then(None).otherwise(pl.col("t"))
    )
    release = estimate_ate(frame, **asked(probability=0.5, seed=4))
    assert release.ate == pytest.approx(2.0, abs=0.15)


def test_the_interval_covers_on_studies_that_nothing_was_tuned_on():
    hits = 0
    for seed in range(10):
        frame = trial(1500, seed=500 + seed, chance=0.3)
        release = estimate_ate(frame, **asked(probability=0.3, seed=seed, epsilon=1))
        hits += release.interval[0] <= 1.0 <= release.interval[1]
    assert hits >= 8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"design": "unknown", "probability": 0.5}, "belongs to a trial"),
        ({"probability": 0.0}, "the probability of treatment"),
        ({"probability": 1.5}, "the probability of treatment"),
        ({"probability": True}, "the probability of treatment"),
        ({"probability": 0.5, "estimand": "att"}, "all estimands are one"),
        ({"probability": "z"}, "'z' is not among the covariates"),
        ({"probability": "x"}, "'x' needs bounds between 0 and 1"),
        ({"probability": 0.5, "method": "orthogonal"}, "'orthogonal' is retired"),
        ({"probability": 0.5, "method": "ipw"}, "'ipw' has no use for .* 'blocks'"),
    ],
)
def test_a_probability_that_is_none_is_refused_before_a_record_is_read(more, message):
    with pytest.raises(ArgumentError, match=message):
        estimate_ate(object(), **asked(**more))


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize(
    ("column", "covariates"), [("nothing", None), ("p", ["x"]), ("y", ["x"]), ("p", "declared x")]
)
def test_a_column_of_probabilities_is_one_of_the_covariates(level, column, covariates, tmp_path):
    domain = DOMAIN
    if covariates == "declared x":
        domain = Domain(DOMAIN.treatment, DOMAIN.outcome, {"x": COVARIATES["x"]})
        covariates = None
    ledger = Ledger.create(tmp_path / "ledger.db", "trial", epsilon="9")
    request = asked(level, domain=domain, probability=column, covariates=covariates)

    with pytest.raises(ArgumentError, match=f"{column!r} is not among the covariates; name it"):
        estimate_ate(trial(), **request, ledger=ledger, dataset="trial")
    assert [entry.kind for entry in ledger.history()] == ["create"]


def test_labels_are_no_probabilities_and_several_arms_have_none():
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"p": Categories("a", "b")})
    with pytest.raises(ArgumentError, match="needs bounds between 0 and 1"):
        estimate_ate(object(), **asked(domain=domain, probability="p"))
    several = Domain(Treatment("t", arms=(0, 1, 2)), ("y", Interval(0, 10)), COVARIATES)
    with pytest.raises(ArgumentError, match="one of two arms"):
        estimate_ate(object(), **asked(domain=several, probability=0.5))


def test_no_outcome_of_either_arm_leaves_the_bounds_of_the_score():
    for low, high in ((0.1, 0.1), (0.2, 0.7), (0.5, 0.95)):
        for centre in (-0.4, 0.0, 0.3):
            forms = Forms.of(Counts.known(1, (0.5, 0.5)), Probability(low, high, 0))
            bounds = [float(end[0, 0]) for end in forms.reach(centre)]
            reached = [
                rate * (outcome - centre)
                for outcome in (-0.5, 0.5)
                for chance in (low, high)
                for rate in (1 / chance, -1 / (1 - chance))
            ]
            assert (min(reached), max(reached)) == pytest.approx(bounds)
            assert max(np.square(reached)) == pytest.approx(forms.largest_square(centre), rel=0.7)
            assert max(np.square(reached)) <= forms.largest_square(centre) * (1 + 1e-12)


def test_a_trial_pays_less_to_count_its_rows_than_others_pay_for_their_arms():
    for size in (50, 1000, 10**6):
        for epsilon in (0.1, 1.0, 10.0):
            trial, other = (
                plain_shares(Ask(size, 2, epsilon, probability=known), with_interval=True)
                for known in (Probability(0.5, 0.5), None)
            )
            assert 0.5 < other.effect < trial.effect < 1
            assert 0 < trial.counts < other.counts


@pytest.mark.parametrize(("rows", "epsilon", "chance"), [(1500, 0.5, 0.5), (3000, 4, 0.3)])
def test_the_plan_of_a_trial_is_near_what_is_released(rows, epsilon, chance):
    guess = {"outcome_sd": 1.2, "explained": 0.67, "probability": chance, "design": "randomized"}
    sizes = StudySizes.declared(rows, 2, Interval(0, 10))
    planned = plan_ate(sizes, level="sample", epsilons=[epsilon], **guess).rows[0]
    widths = []
    for seed in range(3):
        release = estimate_ate(
            trial(rows, seed=seed, chance=chance),
            **asked(probability=chance, seed=seed, epsilon=epsilon),
        )
        widths.append((release.interval[1] - release.interval[0]) / 2)
    assert planned.half_width == pytest.approx(float(np.median(widths)), rel=0.5)


def test_the_command_line_takes_a_number_or_a_column(tmp_path):
    trial(600, varied=True).write_csv(tmp_path / "trial.csv")
    DOMAIN.write(tmp_path / "trial.toml")
    for chance in ("0.5", "p"):
        answer = CliRunner().invoke(
            app,
            ["estimate", str(tmp_path / "trial.csv"), "--domain", str(tmp_path / "trial.toml"),
             "--level", "sample", "--epsilon", "2", "--design", "randomized",
             "--probability", chance, "--seed", "1"],
        )  # fmt: skip
        assert answer.exit_code == 0, answer.output
        assert "as declared" in answer.output


def test_a_ledger_tells_a_trial_from_a_comparison(tmp_path):
    path = tmp_path / "budget.ledger"
    Ledger.create(path, "trial", epsilon="10").close()
    call = asked(ledger=path, request_id="one")
    first = estimate_ate(trial(400), probability=0.5, **call)
    assert estimate_ate(trial(400), probability=0.5, **call) == first
    with pytest.raises(LedgerError, match="request"):
        estimate_ate(trial(400), **call)
