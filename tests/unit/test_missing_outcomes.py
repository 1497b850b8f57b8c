"""Missing outcomes are declared: left out as public, left out as private, or a number."""

import math
import re
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    Binary,
    BlocksOptions,
    CalibratedOptions,
    Domain,
    Interval,
    Ledger,
    Outcome,
    Treatment,
    diagnose_ate,
    estimate_ate,
    exact_effect,
    plan_ate,
)
from private_ate.api import METHODS
from private_ate.charging import binding_of
from private_ate.cli.app import app
from private_ate.data.files import open_table, read_table
from private_ate.data.missing_rules import PAPERS_READING, MissingRules, outcome_rule
from private_ate.datasets.clinic import draw_clinic
from private_ate.engines.local import LocalStudy
from private_ate.engines.spark import SparkStudy
from private_ate.errors import ArgumentError, DomainError, LedgerError, SchemaError

COVARIATES = {"x": Interval(0, 1), "z": Interval(0, 1)}
BOUNDS = Interval(0, 40)
MIDDLE = "a missing outcome counts as the middle of the bounds"
ROWS = 600


def domain_with(rule, bounds=BOUNDS):
    return Domain(Treatment("t", 1, 0), Outcome("y", bounds, rule), COVARIATES)


def draw(rows=ROWS, share=0.3, seed=4):
    """Return a study of which some treated rows lack an outcome, more often where x is large."""
    rng = np.random.default_rng(seed)
    x, z = rng.random(rows), rng.random(rows)
    treated = rng.random(rows) < 0.3 + 0.4 * x
    outcome = 10 + 8 * x + 5 * treated + rng.normal(size=rows)
    gone = treated & (rng.random(rows) < 2 * share * x)
    return pl.DataFrame(
        {"x": x, "z": z, "t": treated.astype(int), "y": np.where(gone, np.nan, outcome)}
    )


FRAME = draw()


def release(rule, *, frame=FRAME, level="label", epsilon=1000, bounds=BOUNDS, **asked):
    domain = domain_with(rule, bounds)
    return estimate_ate(frame, domain=domain, level=level, epsilon=epsilon, seed=1, **asked)


# --- declaring ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "bounds"),
    [
        *product(["public", "private", None], [BOUNDS, Binary(), None]),
        (None, Interval(0, 40, missing=3.0)),
    ],
)
def test_a_rule_survives_its_toml(rule, bounds):
    domain = domain_with(rule, bounds)

    assert Domain.from_toml(domain.to_toml()) == domain


@pytest.mark.parametrize("value", ['"public"', '"private"', "7"])
def test_toml_takes_a_word_or_a_number(value):
    text = (
        f'[treatment]\ncolumn = "t"\n[outcome]\ncolumn = "y"\nlow = 0\nhigh = 40\nmissing = {value}'
    )

    outcome = Domain.from_toml(text).outcome

    declared = outcome.missing if outcome.missing is not None else outcome.bounds.missing
    assert declared == ({'"public"': "public", '"private"': "private", "7": 7.0}[value])
    assert not outcome.fills_undeclared


@pytest.mark.parametrize("rule", ["secret", "", 7, True])
def test_an_unknown_rule_is_refused_with_what_is_known(rule):
    with pytest.raises(DomainError, match='"public" or "private"'):
        Outcome("y", BOUNDS, rule)


def test_two_rules_are_refused():
    with pytest.raises(DomainError, match="two rules"):
        Outcome("y", Interval(0, 40, missing=3), "private")


def test_a_draft_asks_for_the_rule(tmp_path):
    data, out = tmp_path / "d.parquet", tmp_path / "d.toml"
    pl.DataFrame({"t": [0.5], "y": [0.5], "x": [0.5]}).write_parquet(data)
    words = ["domain", str(data), "--out", str(out), "--treatment", "t", "--outcome", "y"]
    assert CliRunner().invoke(app, words).exit_code == 0
    text = out.read_text("utf-8")

    assert "\nmissing = ???" in text
    filled = text.replace("missing = ???", 'missing = "private"')
    filled = re.sub(r"(control|low) = \?{3}", r"\1 = 0", filled)
    filled = filled.replace("= ???", "= 1")
    with pytest.raises(DomainError):
        Domain.from_toml(text)
    assert Domain.from_toml(filled).outcome.missing == "private"


def test_a_binding_without_a_rule_is_what_it_always_was():
    assert binding_of(domain_with(None)).declared["y"] == "0.0 to 40.0, missing 20.0"
    declared = {binding_of(domain_with(rule)).declared["y"] for rule in (None, "public", "private")}
    assert len(declared) == 3


def test_a_ledger_holds_its_data_set_to_the_rule(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "study", epsilon="10")
    asked = {"level": "label", "epsilon": "1", "ledger": ledger, "dataset": "study"}
    estimate_ate(FRAME, domain=domain_with("private"), **asked)

    with pytest.raises(LedgerError, match="missing private, not as"):
        estimate_ate(FRAME, domain=domain_with("public"), **asked)


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("public", "left out"), ("private", "private ratio"), ("7", None), (None, MIDDLE)],
)
def test_the_command_line_takes_the_rule(tmp_path, flag, expected):
    path = tmp_path / "study.csv"
    FRAME.write_csv(path)
    flags = [] if flag is None else ["--missing-outcomes", flag]

    result = CliRunner().invoke(
        app,
        ["estimate", str(path), "--level", "label", "--epsilon", "1", "--treatment", "t",
         "--outcome", "y", "--covariates", "x,z", "--outcome-bounds", "0", "40", *flags],
    )  # fmt: skip

    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert (MIDDLE in said) == (flag is None)
    assert expected is None or expected in said


def test_the_command_line_keeps_a_declared_number_when_bounds_are_given(tmp_path):
    from private_ate.cli.estimate import declared_domain
    from private_ate.parameters import parameters_of

    path = tmp_path / "domain.toml"
    domain_with(None, Interval(0, 10, missing=3)).write(path)
    asked = {one.name: one.default for one in parameters_of("check")} | {"domain": path}

    wider = declared_domain({**asked, "outcome_bounds": (0.0, 40.0)})
    other = declared_domain({**asked, "outcome_bounds": (5.0, 40.0), "missing_outcomes": "private"})

    assert wider.bounds == Interval(0, 40, missing=3)
    assert other.outcome == Outcome("y", Interval(5, 40), "private")


def test_a_word_that_is_no_rule_is_refused_on_the_command_line(tmp_path):
    path = tmp_path / "study.csv"
    FRAME.write_csv(path)

    result = CliRunner().invoke(
        app,
        ["estimate", str(path), "--level", "label", "--epsilon", "1", "--treatment", "t",
         "--outcome", "y", "--covariates", "x", "--outcome-bounds", "0", "40",
         "--missing-outcomes", "drop"],
    )  # fmt: skip

    assert isinstance(result.exception, ArgumentError)
    assert "public, private or a number" in str(result.exception)


# --- what a release says -----------------------------------------------------------------------


@pytest.mark.parametrize("method", [name for name in METHODS if not METHODS[name].is_slow])
def test_every_release_without_a_rule_says_so_whatever_the_data_hold(method):
    (level, *_) = METHODS[method].levels
    whole = FRAME.with_columns(y=pl.lit(3.0))

    for frame in (FRAME, whole):
        notes = release(None, frame=frame, level=level, method=method, epsilon=1).settings["notes"]
        assert any(note.startswith(MIDDLE) for note in notes)
    number = release(None, level=level, method=method, epsilon=1, bounds=Interval(0, 40, missing=5))
    assert not any(MIDDLE in note for note in number.settings.get("notes", ()))


@pytest.mark.parametrize("method", ["published", "difference_in_means", "ipw", "blocks"])
def test_methods_that_follow_the_paper_say_who_counts_as_control(method):
    notes = release(None, level="sample", method=method, epsilon=1).settings["notes"]

    assert (PAPERS_READING in notes) == (method != "blocks")


def test_a_rule_that_a_method_does_not_follow_is_refused_with_one_that_does():
    for method, level, rule, able in [
        ("published", "label", "private", "'calibrated'"),
        ("published", "sample", "public", "'blocks'"),
        ("ipw", "sample", "private", "'blocks'"),
    ]:
        with pytest.raises(ArgumentError, match=able):
            release(rule, level=level, method=method, epsilon=1)


def test_the_rules_in_force_are_sentences_and_public_counts():
    rules = MissingRules("a", "b", outcome_rule(Outcome("y", BOUNDS), "label"), left_out_outcome=3)

    assert rules.to_dict()["left_out_outcome"] == 3
    assert set(rules.to_dict()) == {"treatment", "covariates", "outcome", "left_out_outcome"}
    sentences = {
        outcome_rule(Outcome("y", bounds, rule), level)
        for level in ("label", "sample")
        for bounds, rule in [
            (BOUNDS, None), (Interval(0, 40, 5), None), (BOUNDS, "public"), (BOUNDS, "private"),
        ]
    }  # fmt: skip
    assert len(sentences) == 5  # at sample level a public rule reads as a private one


# --- label level -------------------------------------------------------------------------------


def left_out(frame):
    return frame["y"].is_nan().sum()


def test_public_rows_are_left_out_counted_and_made_up_for():
    told = release("public")

    assert told.settings["left_out_outcome"] == left_out(FRAME) > 50
    assert str(left_out(FRAME)) in told.settings["notes"][0]
    assert told.n == ROWS
    assert sum(told.settings["arms"].values()) == ROWS - left_out(FRAME)
    # Without balance with all rows the treated would lack those of large x, which have more.
    assert told.ate == pytest.approx(5, abs=0.35)


def test_without_missing_outcomes_the_public_rule_changes_nothing():
    whole = FRAME.with_columns(y=pl.col("y").fill_nan(20.0))
    for asked in ({}, {"estimand": "att"}, {"estimand": "ato"}, {"method": "published"}):
        declared, plain = (release(rule, frame=whole, **asked) for rule in ("public", None))

        assert declared.ate == pytest.approx(plain.ate, rel=1e-9)
        assert declared.interval == pytest.approx(plain.interval)
        assert declared.settings["left_out_outcome"] == 0
        assert not any("were left out" in note for note in declared.settings.get("notes", ()))


@pytest.mark.parametrize("estimand", ["att", "atc", "ato"])
def test_public_rows_are_made_up_for_in_every_population(estimand):
    assert release("public", estimand=estimand).ate == pytest.approx(5, abs=0.35)


def test_the_published_method_matches_those_who_have_an_outcome():
    told = release("public", method="published")
    alone = release(None, frame=FRAME.filter(~pl.col("y").is_nan()), method="published")

    assert told.ate == alone.ate
    assert told.n == alone.n == ROWS - left_out(FRAME)
    assert told.settings["left_out_outcome"] == left_out(FRAME)


@pytest.mark.parametrize("method", ["calibrated", "published"])
def test_an_arm_without_any_outcome_is_refused_where_that_is_public(method):
    nobody = FRAME.with_columns(y=pl.when(pl.col("t") == 1).then(math.nan).otherwise(pl.col("y")))

    with pytest.raises(SchemaError, match="treated"):
        release("public", frame=nobody, method=method)


def test_tracking_a_matching_on_all_rows_is_refused_where_some_lack_outcomes():
    with pytest.raises(ArgumentError, match="target 'balance'"):
        release("public", target="track")


def hajek(frame, target="balance"):
    """Return the difference of weighted means of those observed, by weights made on all rows."""
    whole = frame.with_columns(y=pl.col("y").is_not_nan().cast(float))
    observed = release(None, frame=whole, target=target, bounds=Interval(0, 40), confidence=None,
                       options=CalibratedOptions(means=True))  # fmt: skip
    filled = frame.with_columns(y=pl.col("y").fill_nan(0.0))
    sums = release(None, frame=filled, target=target, confidence=None,
                   options=CalibratedOptions(means=True))  # fmt: skip
    first, second = (
        sums.settings["means"][arm] / observed.settings["means"][arm]
        for arm in ("treated", "control")
    )
    return first - second


@pytest.mark.parametrize("rule", [None, "private", "public"])
def test_engines_agree_whether_every_row_takes_part(rule):
    """Where all do, one arm's number is n less the others': a gap would count as control."""
    odd = Treatment("t", arms=[1, 0], other=0)
    domain = replace(domain_with(rule), treatment=odd)
    here = LocalStudy.encode(read_table(FRAME), domain)
    cluster = SparkStudy(domain, ROWS, None, (0,))

    assert here.everyone_takes_part is cluster.everyone_takes_part is (rule is None)


@pytest.mark.parametrize("target", ["balance", "track"])
def test_a_private_ratio_is_the_mean_over_those_observed(target):
    told = release("private", target=target, epsilon=10_000, confidence=None)

    assert told.ate == pytest.approx(hajek(FRAME, target), abs=0.25)
    shares = told.settings["observed_share"]
    assert shares["control"] == pytest.approx(1, abs=0.01)
    assert shares["treated"] == pytest.approx(
        1 - left_out(FRAME) / FRAME["t"].sum(), abs=0.06
    )  # fmt: skip
    assert "left_out_outcome" not in told.settings


def test_releases_say_which_tables_are_neighbours():
    told = {rule: release(rule, epsilon=1).adjacency for rule in (None, "public", "private")}

    assert told[None] == "replace-one: same n, one unit's outcome differs"
    assert told["public"] == f"{told[None]}, and who has one is public"
    assert told["private"] == f"{told[None]} or is missing"
    assert "missing" not in release("private", level="sample", epsilon=1).adjacency


def test_a_private_ratio_tells_both_means_if_asked():
    told = release("private", options=CalibratedOptions(means=True))
    means = told.settings["means"]

    assert told.ate == pytest.approx(means["treated"] - means["control"])
    assert told.settings["budget"] == {"observed sums": 700.0, "variance": 300.0}


@pytest.mark.parametrize(
    "options", [CalibratedOptions(clip_share="0.1"), CalibratedOptions(outcome_sd=0.5)]
)
def test_a_private_ratio_works_within_a_private_range(options):
    wide = Interval(0, 400)

    told = release("private", options=options, bounds=wide, epsilon=20)

    assert "clipped_to" in told.settings
    assert told.ate == pytest.approx(4, abs=2.5)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_private_ratio_of_nobody_or_everybody_stays_within_the_range(share):
    gone = np.random.default_rng(0).random(ROWS) < share
    frame = FRAME.with_columns(y=pl.when(pl.Series(gone)).then(math.nan).otherwise(5.0))

    for epsilon in (0.01, 1):
        told = release("private", frame=frame, epsilon=epsilon)

        assert -40 <= told.interval[0] <= told.ate <= told.interval[1] <= 40
        assert told.noise_interval[0] <= told.ate <= told.noise_interval[1]


# --- sample level ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["blocks"])
@pytest.mark.parametrize("rule", ["public", "private"])
def test_at_sample_level_rows_without_an_outcome_take_no_part(method, rule):
    frame = draw(rows=2000, share=0.2, seed=9).with_columns(x=pl.lit(0.5))
    asked = {"level": "sample", "method": method, "epsilon": 200, "bounds": Interval(0, 100)}
    told = release(rule, frame=frame, **asked)
    filled = release(None, frame=frame, **asked)
    observed = frame.filter(~pl.col("y").is_nan())
    treated, control = (observed.filter(pl.col("t") == arm)["y"].mean() for arm in (1, 0))

    assert told.ate == pytest.approx(treated - control, abs=0.2)
    assert abs(filled.ate - (treated - control)) > 0.5
    assert "left_out_outcome" not in told.settings
    assert any("take no part" in note for note in told.settings["notes"])


@pytest.mark.parametrize("method", ["blocks"])
@pytest.mark.parametrize(
    ("adjust", "design", "assumed"),
    [
        (True, "observational", "on the declared covariates and treatment alone"),
        (False, "observational", "missingness by covariates is not corrected"),
        (True, "randomized", "missingness by covariates is not corrected"),
    ],
)
def test_a_sample_level_release_says_what_missing_outcomes_assume(method, adjust, design, assumed):
    options = BlocksOptions(adjust=adjust)
    asked = {"level": "sample", "method": method, "options": options, "design": design}
    frame = draw(rows=2000, share=0.2, seed=9)
    told = release("private", frame=frame, epsilon=20, **asked)
    assert assumed in " ".join(told.settings["notes"])
    assert assumed in " ".join(str(told).split())
    declared = release(None, frame=frame, epsilon=20, bounds=Interval(0, 40, missing=0), **asked)
    assert not any("assumes that" in note for note in declared.settings["notes"])


def test_a_private_ratio_says_that_missingness_by_covariates_is_not_corrected():
    told = " ".join(str(release("private")).split())
    assert "so missingness by covariates is not corrected" in told


@pytest.mark.parametrize("adjust", [True, False])
def test_rows_without_a_declared_treatment_are_left_out(adjust):
    frame = draw(rows=4000, share=0.0, seed=2)
    rng = np.random.default_rng(1)
    lost = pl.Series(rng.random(4000) < 0.2)
    labels = pl.when(lost).then(pl.lit("?")).otherwise(pl.col("t").cast(pl.String))
    asked = {"level": "sample", "method": "blocks", "epsilon": 400,
             "options": BlocksOptions(adjust=adjust)}  # fmt: skip

    told = release(None, frame=frame.with_columns(t=labels), **asked)
    whole = release(None, frame=frame, **asked)
    alone = release(None, frame=frame.filter(~lost), **asked)

    assert told.ate == pytest.approx(alone.ate, abs=0.15)
    assert told.ate == pytest.approx(whole.ate, abs=0.4)


@pytest.mark.parametrize("method", ["blocks"])
@pytest.mark.parametrize("options", ["nobody", "no outcome", "no treatment", "one of each"])
@pytest.mark.parametrize("adjust", [True, False])
def test_nothing_raises_at_sample_level(method, options, adjust):
    frame = FRAME.with_columns(t=pl.col("t").cast(pl.String))
    if options in ("nobody", "no outcome"):
        frame = frame.with_columns(y=pl.lit(math.nan))
    if options in ("nobody", "no treatment"):
        frame = frame.with_columns(t=pl.lit("?"))
    if options == "one of each":
        few = pl.int_range(pl.len()) < 2
        frame = frame.with_columns(y=pl.when(few).then(pl.col("y")).otherwise(math.nan))
    chosen = METHODS[method].options(adjust=adjust)

    for epsilon in (0.1, 30):
        told = release(
            "private", frame=frame, level="sample", method=method, epsilon=epsilon, options=chosen
        )

        assert -40 <= told.interval[0] <= told.ate <= told.interval[1] <= 40


# --- engines and the planner -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("rule", ["public", "private"])
def test_a_streamed_file_knows_who_lacks_an_outcome(tmp_path, kind, rule):
    path = tmp_path / f"study.{kind}"
    getattr(FRAME, f"write_{kind}")(path)
    domain = domain_with(rule)

    held = LocalStudy.encode(read_table(path), domain)
    streamed = LocalStudy.encode(open_table(path, 0), domain)

    np.testing.assert_array_equal(held.observed, ~FRAME["y"].is_nan().to_numpy())
    np.testing.assert_array_equal(held.observed, streamed.observed)
    for level in ("label", "sample"):
        releases = [
            release(rule, frame=path, level=level, memory_limit=limit) for limit in (0, 1e9)
        ]
        assert releases[0] == releases[1]


def test_a_study_without_a_rule_holds_no_second_mask():
    assert LocalStudy.encode(read_table(FRAME), domain_with(None)).observed is None


def test_a_text_that_is_no_number_is_a_missing_outcome(tmp_path):
    path = tmp_path / "study.csv"
    words = pl.when(pl.col("y").is_nan()).then(pl.lit("n/a")).otherwise(pl.col("y").cast(pl.String))
    FRAME.with_columns(y=words).write_csv(path)

    assert release("public", frame=path).settings["left_out_outcome"] == left_out(FRAME)


@pytest.mark.parametrize("rule", ["public", "private"])
@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_plan_can_be_made_under_every_rule(rule, level):
    planned = plan_ate(FRAME, level=level, domain=domain_with(rule), epsilons=["1"])
    plain = plan_ate(FRAME, level=level, domain=domain_with(None), epsilons=["1"])

    assert planned.rows[0] == plain.rows[0]


def test_rows_may_be_put_in_another_order_with_their_masks():
    study = LocalStudy.encode(read_table(FRAME), domain_with("private"))
    order = np.arange(ROWS)[::-1].copy()

    turned = study.reordered(order)
    with study.thinned(3) as few:
        np.testing.assert_array_equal(few.observed, study.observed[::3])

    np.testing.assert_array_equal(turned.observed, study.observed[::-1])
    assert not study.everyone_takes_part
    assert not replace(study, takes_part=None).everyone_takes_part


@pytest.mark.parametrize("rule", ["public", "private"])
def test_the_curator_sees_those_who_have_an_outcome(rule):
    observed = FRAME.filter(~pl.col("y").is_nan())

    exact, alone = (
        exact_effect(frame, domain=domain_with(chosen))
        for frame, chosen in ((FRAME, rule), (observed, None))
    )
    diagnosed = diagnose_ate(FRAME, domain=domain_with(rule))

    assert exact == pytest.approx(alone)
    assert diagnosed.exact_effect == pytest.approx(alone, abs=1e-3)
    assert diagnosed.treated + diagnosed.control == observed.height


# --- as a practitioner meets it ----------------------------------------------------------------


def clinic_without(share, seed=11):
    """Return the clinic, whose drug lowers pressure by about eight, less treated outcomes."""
    study = draw_clinic(patients=2500, seed=seed)
    rng = np.random.default_rng(seed)
    gone = pl.Series(rng.random(2500) < share) & (pl.col("drug") == "yes")
    frame = study.frame.with_columns(
        pressure_drop=pl.when(gone).then(None).otherwise(pl.col("pressure_drop"))
    )
    return frame, study.domain


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize("rule", ["public", "private"])
def test_two_fifths_of_the_treated_outcomes_missing_do_not_bend_the_effect(level, rule):
    frame, domain = clinic_without(0.4)
    whole, _ = clinic_without(0.0)
    declared = Domain(domain.treatment, replace(domain.outcome, missing=rule), domain.covariates)
    asked = {"level": level, "epsilon": 20, "seed": 3}

    truth = estimate_ate(whole, domain=domain, **asked).ate
    told = estimate_ate(frame, domain=declared, **asked)
    bent = estimate_ate(frame, domain=domain, **asked)

    assert told.interval[0] < truth < told.interval[1]
    assert abs(told.ate - truth) < 0.9 < abs(bent.ate - truth)
