"""Drafts of a domain: short, from names and types alone, and clear about what is left to do."""

import json
import shlex
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import Domain, DomainError, Survival
from private_ate.cli.app import app
from private_ate.cli.domain import reason_against

ASKED = ("--treatment", "t", "--outcome", "y")


@pytest.fixture
def drafted(tmp_path):
    data, out = tmp_path / "d.csv", tmp_path / "d.toml"

    def make(header, *words):
        data.write_text(header + "\n", "utf-8")
        done = CliRunner().invoke(app, ["domain", str(data), "--out", str(out), "--force", *words])
        return done, out.read_text("utf-8") if done.exit_code == 0 else ""

    return make


def _declared(text):
    """Return the lines below [covariates] that are no comments."""
    below = text.partition("[covariates]")[2].splitlines()
    return [line.partition(" = ")[0] for line in below if line and not line.startswith("#")]


def test_a_wide_file_takes_a_line_for_each_column(drafted):
    names = [f"x{place}" for place in range(65)]
    _, text = drafted(",".join(["t", "y", *names]), *ASKED)

    assert _declared(text) == names
    assert len(text.splitlines()) <= 90


def test_a_draft_for_the_label_level_asks_for_outcome_and_arms_alone(drafted):
    names = [f"x{place}" for place in range(65)]
    _, text = drafted(",".join(["t", "y", *names]), *ASKED, "--level", "label")
    filled = text.replace("treated = ???", "treated = 1").replace("control = ???", "control = 0")
    filled = filled.replace("\nlow = ???", "\nlow = 0").replace("\nhigh = ???", "\nhigh = 9")

    known = Domain.from_toml(filled.replace("\nmissing = ???", '\nmissing = "public"'))

    assert not known.covariates
    assert f'--covariates "{",".join(names)}"' in text
    assert sum("???" in line and not line.startswith("#") for line in text.splitlines()) == 5


def test_named_covariates_are_drafted_alone_whatever_their_names_say(drafted):
    _, text = drafted("t,y,age,patient_id,sex", *ASKED, "--covariates", "patient_id,age")

    assert _declared(text) == ["patient_id", "age"]
    assert "sex" not in text
    assert _declared(drafted("t,y,age,uid", *ASKED, "--covariates", "all")[1]) == ["age", "uid"]


def test_a_covariate_that_is_not_there_and_an_unknown_level_are_refused(drafted):
    for words in (("--covariates", "age,nowhere"), ("--level", "both")):
        done, _ = drafted("t,y,age", *ASKED, *words)
        assert done.exit_code != 0


def test_columns_that_are_seldom_covariates_are_comments_with_a_reason(drafted):
    done, text = drafted("t,y,age,patient_id,visit_date,survey_weight,bp_followup,y_24", *ASKED)

    assert _declared(text) == ["age"]
    reasons = [line for line in text.splitlines() if line.startswith("# ") and " = { low" in line]
    assert [line.split()[1] for line in reasons] == [
        "patient_id", "visit_date", "survey_weight", "bp_followup", "y_24",
    ]  # fmt: skip
    assert "tells rows apart" in reasons[0]
    assert "left out 5 of 8 columns" in done.output


def test_types_speak_where_a_file_has_them(tmp_path):
    frame = pl.DataFrame(schema={"t": pl.Int8, "y": pl.Float64, "when": pl.Date, "ward": pl.String})
    frame.write_parquet(tmp_path / "d.parquet")
    CliRunner().invoke(
        app, ["domain", str(tmp_path / "d.parquet"), "--out", str(tmp_path / "d.toml"), *ASKED]
    )
    text = (tmp_path / "d.toml").read_text("utf-8")

    assert _declared(text) == ["ward"]
    assert "# when = " in text


def test_a_column_of_true_and_false_is_drafted_as_binary(tmp_path):
    data, out = tmp_path / "d.parquet", tmp_path / "d.toml"
    pl.DataFrame(schema={"t": pl.Boolean, "y": pl.Boolean, "smoker": pl.Boolean}).write_parquet(
        data
    )

    done = CliRunner().invoke(app, ["domain", str(data), "--out", str(out), *ASKED])
    text = out.read_text("utf-8")
    for gap, fitting in (("treated = ???", "treated = 1"), ("control = ???", "control = 0")):
        text = text.replace(gap, fitting)

    assert done.exit_code == 0
    domain = Domain.from_toml(text.replace("missing = ???", 'missing = "private"'))
    assert domain.bounds.is_binary
    assert domain.covariates["smoker"].is_binary


@pytest.mark.parametrize(
    "name",
    ["patientId", "ID", "SubjectID", "uuid", "AdmissionDate", "dob", "IPTW", "pweight", "wgt",
     "", "sampling weight", "outcome2", "died", "cens", "censored", "event", "change_score",
     "follow_up_bp", "y.1", "pscore"],
)  # fmt: skip
def test_a_name_speaks_against_a_column(name):
    assert reason_against(name, None, "y")


@pytest.mark.parametrize(
    "name",
    ["age", "weight", "birth_weight", "body weight", "year", "education", "diabetes", "identity",
     "width", "update", "outcome_baseline", "change_before", "y_baseline", "candidate", "grid",
     "married", "年齢", "re75", "posture", "rapid"],
)  # fmt: skip
def test_most_names_speak_for_nothing(name):
    assert reason_against(name, None, "y") is None


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("lwage", "wage"), ("wage", "lwage"), ("log_wage", "wage"), ("wagesq", "wage"),
        ("Wage_Squared", "wage"), ("time", "years"), ("followup_days", "followup_months"),
        ("stay.hours", "stay.days"),
    ],
)  # fmt: skip
def test_the_name_of_another_form_of_the_outcome_speaks_against_a_column(name, outcome):
    assert reason_against(name, None, outcome)


@pytest.mark.parametrize(
    ("name", "outcome"),
    [("age", "wage"), ("year", "hours"), ("education", "years"), ("lung", "g"), ("stay", "days")],
)
def test_a_name_that_only_resembles_the_outcome_speaks_for_nothing(name, outcome):
    assert reason_against(name, None, outcome) is None


@pytest.mark.parametrize(
    ("table", "column", "line"),
    [
        ("[covariates]\nage = { low = 1, high = ??? }", "age", 8),
        ('[covariates]\n"a # b" = { low = ???, high = ??? } # ???', "a # b", 8),
        ("[covariates.age]\nlow = 1\nhigh = ???", "age", 9),
        ('[covariates."an age"]\nlow = ??? # or so', "an age", 8),
        ('[covariates]\n# x = ???\nward = { categories = ["???", "other"] }', "ward", 9),
    ],
)
def test_a_forgotten_mark_tells_its_column_and_line(table, column, line):
    text = '[treatment]\ncolumn = "t"\n[outcome]\ncolumn = "y" # ???\nlow = 0\nhigh = 1\n' + table

    with pytest.raises(DomainError, match=rf"line {line} .*covariate '{column}'") as caught:
        Domain.from_toml(text)

    assert caught.value.column == column


def test_another_mistake_before_a_forgotten_mark_is_told_as_well():
    text = '[treatment]\ncolumn = \n[outcome]\ncolumn = "y"\nlow = ???\n'

    with pytest.raises(DomainError, match=r"at line 2.*; and line 5 .*low of \[outcome\]"):
        Domain.from_toml(text)


def test_a_mark_within_a_label_is_a_label():
    known = Domain.from_toml(
        '[treatment]\ncolumn = "t"\n[outcome]\ncolumn = "y"\nlow = 0\nhigh = 1\n'
        '[covariates]\nx = { categories = ["why???", "b"] }  # ???\n'
    )

    assert known.covariates["x"].labels == ("why???", "b")


def test_the_command_that_a_draft_ends_with_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.csv").write_text("id;age;arm;change\n1;40,5;a;1\n2;50;b;2\n3;60;a;3\n4;45;b;4\n")
    asked = ["domain", "own.csv", "--out", "own.toml", "--level", "label", "--sep", ";"]
    arms = ["--treatment", "arm", "--treated", "a", "--control", "b", "--outcome", "change"]
    done = CliRunner().invoke(app, [*asked, "--decimal", ",", *arms])
    words = shlex.split(done.stdout.splitlines()[-1])
    filled = (
        Path("own.toml").read_text("utf-8").replace("low = ???\nhigh = ???", "low = 0\nhigh = 9", 1)
    )
    Path("own.toml").write_text(filled.replace("missing = ???", 'missing = "public"', 1))

    checked = CliRunner().invoke(app, [*words[1:], "--json"])

    assert words[:2] == ["private-ate", "check"]
    assert words[-2:] == ["--covariates", "age"]
    assert checked.exit_code in {0, 1}, checked.output
    assert json.loads(checked.stdout)


def test_a_draft_without_roles_says_what_would_shorten_it(tmp_path):
    (tmp_path / "own.csv").write_text("age,arm,change\n1,2,3\n")
    asked = ["domain", str(tmp_path / "own.csv"), "--out", str(tmp_path / "own.toml")]

    done = CliRunner().invoke(app, [*asked, "--level", "label"])

    assert "name --treatment and --outcome" in done.stdout
    assert "--covariates" not in done.stdout


def test_a_time_to_an_event_is_drafted_from_flags_and_read_back(drafted):
    words = ("--time", "days", "--event", "status", "--event-label", "dead", "--horizon", "1826")
    _, text = drafted("t,days,status,age", "--treatment", "t", *words, "--level", "label")
    filled = text.replace("treated = ???", "treated = 1").replace("control = ???", "control = 0")

    known = Domain.from_toml(filled.replace("\nmissing = ???", '\nmissing = "public"'))

    assert known.outcome == Survival(
        "days", "status", event_label="dead", horizon=1826, missing="public"
    )
    assert '--covariates "age"' in text


def test_what_flags_leave_open_of_a_time_to_an_event_is_asked_for(drafted):
    _, text = drafted("t,days,status,age", "--treatment", "t", "--time", "days")

    gaps = [line for line in text.splitlines() if line.endswith("???") and line[0] != "#"]
    assert {"event = ???", "event_label = ???", "horizon = ???", "missing = ???"} <= set(gaps)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--event", "status"), "name --time"),
        (("--time", "days", "--outcome", "status"), "leave out --outcome"),
        (("--time", "tage"), "no time column"),
    ],
)
def test_words_of_survival_that_do_not_fit_are_refused(drafted, words, sentence):
    done, _ = drafted("t,days,status,age", *words)

    assert done.exit_code != 0
    assert sentence in str(done.exception)
