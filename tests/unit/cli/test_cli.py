"""The command line: flags, files, exit codes and one sentence for every error."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import Domain, DomainError, Interval, Release, Treatment, estimate_ate
from private_ate.cli import main
from private_ate.cli.app import app
from private_ate.release.release import FIELDS

FLAGS = ["--treatment", "drug", "--outcome", "drop", "--treated", "yes", "--control", "no",
         "--outcome-bounds", "-10", "30", "--bounds", "age=18:90",
         "--categories", "ward=a|b|other"]  # fmt: skip
DOMAIN = """
[treatment]
column = "drug"
treated = "yes"
control = "no"
[outcome]
column = "drop"
low = -10
high = 30
[covariates.age]
low = 18
high = 90
[covariates.ward]
categories = ["a", "b", "other"]
"""


@pytest.fixture
def data(tmp_path) -> Path:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "age": rng.integers(18, 90, 200),
            "ward": rng.choice(["a", "b", "c"], 200),
            "drug": rng.choice(["yes", "no"], 200),
            "drop": rng.normal(10, 8, 200).round(2),
        }
    )
    frame.write_csv(tmp_path / "study.csv")
    frame.write_parquet(tmp_path / "study.parquet")
    (tmp_path / "domain.toml").write_text(DOMAIN, "utf-8")
    return tmp_path / "study.csv"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the program as the shell would; return its exit code, output and error text."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.delenv("PRIVATE_ATE_DEBUG", raising=False)
        monkeypatch.setattr(sys, "argv", ["private-ate", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return call


@pytest.mark.parametrize("level", ["label", "sample"])
def test_flags_a_domain_file_and_python_give_the_same_release(run, data, level):
    common = ["--level", level, "--epsilon", "0.5", "--seed", "3", "--json"]

    flags = run("estimate", data, *FLAGS, *common)
    file = run("estimate", data, "--domain", data.with_name("domain.toml"), *common)
    parquet = run("estimate", data.with_suffix(".parquet"), *FLAGS, *common)
    python = estimate_ate(
        data, domain=Domain.read(data.with_name("domain.toml")), level=level, epsilon="0.5", seed=3
    )

    assert flags == file == parquet
    assert flags[0] == 0
    warned = [f"warning: {text}" for text in python.warnings]
    assert flags[2].splitlines() == warned
    assert Release.from_json(flags[1]) == python


def test_json_prints_one_object_with_exactly_the_promised_fields(run, data):
    code, out, _ = run("estimate", data, *FLAGS, "--level", "label", "--epsilon", "1", "--json")
    plain = json.loads(out)
    assert code == 0
    assert list(plain) == list(FIELDS)
    assert plain["guarantee"] == "pure 1-DP, label level"
    assert plain["adjacency"] == "replace-one: same n, one unit's outcome differs"


def test_without_json_a_table_is_printed(run, data):
    code, out, err = run("estimate", data, *FLAGS, "--level", "sample", "--epsilon", "1")
    assert (code, err) == (0, "")
    assert "Average treatment effect" in out
    assert "pure 1-DP, sample level" in out


def test_out_writes_the_release_that_is_printed(run, data, tmp_path):
    out = tmp_path / "release.json"
    code, printed, _ = run(
        "estimate", data, *FLAGS, "--level", "label", "--epsilon", "1", "--json", "--out", out
    )
    assert code == 0
    assert json.loads(out.read_text("utf-8")) == json.loads(printed)
    assert not list(tmp_path.glob("*.part"))


def test_every_flag_reaches_the_release(run, data):
    _, out, _ = run(
        "estimate", data, *FLAGS, "--level", "label", "--epsilon", "1", "--json",
        "--neighbors", "2", "--confidence", "0.8", "--rows-per-person", "3", "--covariates", "age",
        "--method", "published", "--set", "k=4", "--set", "ridge=0.5", "--engine", "local",
    )  # fmt: skip
    settings = json.loads(out)["settings"]
    assert (settings["neighbors"], settings["confidence"]) == (2, 0.8)
    assert (settings["rows_per_person"], settings["ridge"]) == (3, 0.5)
    assert 4 in settings["matching_limit"].values()


def test_a_binary_outcome_and_no_confidence_are_flags_too(run, data):
    _, out, _ = run(
        "estimate", data, "--treatment", "drug", "--outcome", "drop", "--treated", "yes",
        "--control", "no", "--binary-outcome", "--level", "label", "--epsilon", "1", "--json",
        "--confidence", "none", "--covariates", "all",
    )  # fmt: skip
    assert json.loads(out)["settings"]["confidence"] == 0.95


def test_seeds_and_bounds_from_data_are_spelled_out_in_the_guarantee(run, data):
    bare = ["estimate", data, "--treatment", "drug", "--outcome", "drop", "--treated", "yes",
            "--level", "sample", "--epsilon", "1", "--json"]  # fmt: skip
    assert json.loads(run(*bare, "--bounds-from-data")[1])["guarantee"] == "none"
    assert json.loads(run(*bare, *FLAGS, "--seed", "1")[1])["guarantee"] == "none (seeded)"


LABEL = ["--level", "label", "--epsilon", "1"]
SAMPLE = ["--level", "sample", "--epsilon", "1"]
ROLES = ["--treatment", "drug", "--outcome", "drop"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*ROLES, *SAMPLE, "--outcome-bounds", "0", "1"], "--bounds age=LO:HI"),
        ([*ROLES, *SAMPLE, "--bounds", "age=0:99", "--bounds", "ward=0:1"], "--outcome-bounds"),
        ([*ROLES, *LABEL, "--covariates", "all"], "--outcome-bounds LO HI"),
        ([*ROLES, *LABEL, "--outcome-bounds", "0", "1"], "--covariates A,B"),
        (["--outcome", "drop", *LABEL], "--treatment"),
        (["--treatment", "drug", *LABEL], "--outcome"),
        ([*FLAGS, "--level", "row", "--epsilon", "1"], "level is 'label' or 'sample'"),
        ([*FLAGS, "--level", "label", "--epsilon", "zero"], "epsilon"),
        ([*FLAGS, *LABEL, "--method", "magic"], "no method 'magic'"),
        ([*FLAGS, *LABEL, "--neighbors", "0"], "neighbors"),
        ([*FLAGS, *LABEL, "--confidence", "high"], "confidence"),
        ([*FLAGS, *LABEL, "--engine", "gpu"], "engine"),
        ([*FLAGS, *LABEL, "--set", "k"], "--set OPTION=VALUE"),
        ([*FLAGS, *LABEL, "--set", "z=1"], "no option 'z'"),
        ([*FLAGS, *LABEL, "--method", "published", "--set", "ridge=abc"], "ridge penalty"),
        ([*FLAGS, *LABEL, "--bounds", "age"], "--bounds COL=LO:HI"),
        ([*FLAGS, *LABEL, "--bounds", "age=a:b"], "--bounds COL=LO:HI"),
        ([*FLAGS, *LABEL, "--bounds", "age=9:1"], "low bound"),
        ([*FLAGS, *LABEL, "--categories", "ward"], "--categories"),
        ([*FLAGS, *LABEL, "--covariates", "height"], "no covariate column 'height'"),
        ([*FLAGS, *LABEL, "--treated", "no"], "same label"),
        ([*FLAGS, *LABEL, "--domain", "absent.toml"], "cannot be read"),
        ([*FLAGS, *LABEL, "--out", "absent/release.json"], "does its folder exist"),
        ([*FLAGS, *LABEL, "--treated", "aspirin"], "is neither 'aspirin' nor 'no' in"),
        ([*FLAGS, *LABEL, "--treated", "aspirin"], "here: --leave-out-undeclared"),
        ([*FLAGS, "--level", "sample", "--epsilon", "1", "--leave-out-undeclared"], "label level"),
    ],
)
def test_errors_are_one_sentence_with_exit_code_2(run, data, arguments, message):
    code, out, err = run("estimate", data, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_a_flag_that_does_not_exist_exits_with_2(run, data):
    assert run("estimate", data, "--gamma", "1")[0] == 2
    assert run("estimate")[0] == 2
    assert run("nonsense")[0] == 2


def test_data_that_cannot_be_read_is_one_sentence(run, tmp_path):
    for name, message in (("absent.csv", "no file"), ("odd.parquet", "cannot be read as Parquet")):
        if name == "odd.parquet":
            (tmp_path / name).write_bytes(b"canary-4711")
        code, _, err = run("estimate", tmp_path / name, *FLAGS, *LABEL)
        assert code == 2
        assert message in err
        assert "canary" not in err


def test_a_failed_run_writes_nothing(run, data, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    run("estimate", data, *ROLES, *LABEL, "--out", tmp_path / "release.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_an_unforeseen_error_hides_its_text_and_exits_with_1(run, data, monkeypatch):
    def fail(*_arguments, **_keywords):
        msg = "canary-4711"
        raise RuntimeError(msg)

    monkeypatch.setattr("private_ate.api.estimate_ate", fail)
    code, out, err = run("estimate", data, *FLAGS, *LABEL)
    assert (code, out) == (1, "")
    assert "unexpected RuntimeError; nothing was released" in err
    assert "canary" not in err


def test_a_refused_budget_exits_with_3(run, data, monkeypatch):
    from private_ate.errors import BudgetError

    def refuse(*_arguments, **_keywords):
        msg = "0.5 of 1.0 is left"
        raise BudgetError(msg)

    monkeypatch.setattr("private_ate.api.estimate_ate", refuse)
    assert run("estimate", data, *FLAGS, *LABEL) == (3, "", "error: 0.5 of 1.0 is left\n")


def test_debug_shows_the_traceback(data, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["private-ate", "--debug", "estimate", str(data), *LABEL])
    monkeypatch.setenv("PRIVATE_ATE_DEBUG", "")
    with pytest.raises(ValueError, match="treatment="):
        main()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_domain_is_drafted_from_the_schema_without_a_value(run, data, tmp_path, suffix):
    out = tmp_path / "draft.toml"
    code, printed, _ = run(
        "domain", data.with_suffix(suffix), "--out", out, "--treatment", "drug", "--outcome", "drop"
    )
    text = out.read_text("utf-8")
    assert code == 0
    assert "fill in every ???" in printed
    assert "\nage = { low = ???, high = ??? }" in text
    assert 'column = "drug"' in text
    assert ("# or { categories = [???" in text) is (suffix == ".csv")
    filled = text.replace("low = ???", "low = 0").replace("high = ???", "high = 99")
    filled = filled.replace("missing = ???", 'missing = "private"')
    with pytest.raises(
        DomainError, match=r"line \d+ .* \?\?\? .*: fill in treated of \[treatment\]"
    ):
        Domain.from_toml(filled)
    filled = filled.replace("treated = ???", 'treated = "yes"').replace(
        "control = ???", "control = 0"
    )
    if suffix == ".parquet":
        with pytest.raises(DomainError, match="what is declared of covariate 'ward'"):
            Domain.from_toml(filled)
    done = filled.replace("[???, ", '["a", "b", ')
    assert set(tomllib.loads(done)["covariates"]) == {"age", "ward"}
    assert Domain.from_toml(done).covariates["age"] == Interval(0, 99)


def test_the_draft_is_the_same_whatever_the_values_are(run, tmp_path):
    texts = ["x,t,y\n1,0,3\n", "x,t,y\ncanary-4711,,\n,,,,,\n\n9,9,9\n", "x,t,y\n"]
    drafts = set()
    for position, text in enumerate(texts):
        (tmp_path / f"{position}.csv").write_text(text, "utf-8")
        run("domain", tmp_path / f"{position}.csv", "--out", tmp_path / f"{position}.toml")
        drafts.add((tmp_path / f"{position}.toml").read_text("utf-8"))
    assert len(drafts) == 1
    assert "canary" not in drafts.pop()


def test_a_draft_overwrites_only_when_forced_and_names_missing_columns(run, data, tmp_path):
    out = tmp_path / "domain.toml"
    code, _, err = run("domain", data, "--out", out)
    assert code == 2
    assert "--force" in err
    assert out.read_text("utf-8") == DOMAIN
    assert run("domain", data, "--out", out, "--force")[0] == 0
    assert "???" in out.read_text("utf-8")
    code, _, err = run("domain", data, "--out", tmp_path / "new.toml", "--outcome", "z")
    assert (code, err.count("\n")) == (2, 1)
    assert not (tmp_path / "new.toml").exists()


def test_an_unfilled_draft_is_refused(run, data, tmp_path):
    run("domain", data, "--out", tmp_path / "draft.toml")
    code, _, err = run("estimate", data, "--domain", tmp_path / "draft.toml", *LABEL)
    assert code == 2
    line = 1 + (tmp_path / "draft.toml").read_text("utf-8").splitlines().index("column = ???")
    assert f"line {line} of the domain still holds ???" in err
    assert "fill in column of [treatment]" in err


def test_the_demonstration_writes_its_files(run, tmp_path):
    folder = tmp_path / "deep" / "demo"
    code, out, err = run("demo", "--out", folder, "--epsilon", "2")
    assert (code, err) == (0, "")
    names = sorted(path.name for path in folder.iterdir())
    releases = ["release-label.json", "release-sample.json"]
    assert names == ["clinic.csv", "clinic.toml", *releases, "report.html"]
    assert f"a browser: {folder / 'report.html'}" in out.replace("\n", " ")
    assert out.rstrip().endswith("--level label --epsilon 0.5")
    for level in ("label", "sample"):
        release = Release.from_json((folder / f"release-{level}.json").read_text("utf-8"))
        assert (release.level, release.n, release.is_private) == (level, 5000, True)
        assert f"pure 2-DP, {level} level" in out
    assert Domain.read(folder / "clinic.toml").treatment == Treatment("drug", "yes", "no")
    assert " estimate " in out


def test_the_package_runs_as_a_module():
    command = [sys.executable, "-m", "private_ate", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("private-ate ")


def test_typer_itself_reports_help_and_version():
    runner = CliRunner()
    assert "estimate" in runner.invoke(app, ["--help"]).output
    assert runner.invoke(app, ["--version"]).output.startswith("private-ate ")
    assert (
        "--rows-per-person"
        in runner.invoke(app, ["estimate", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    )


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "PRIVATE_ATE_DEBUG"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "private_ate.cli", *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment, timeout=120,
    )  # fmt: skip


def test_the_program_runs_as_a_process_of_its_own(data):
    fine = program("estimate", data, *FLAGS, *SAMPLE, "--json")
    assert fine.returncode == 0
    assert fine.stderr == ""
    assert Release.from_json(fine.stdout).is_private
    wrong = program("estimate", data, *ROLES, *SAMPLE)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: covariate 'age' has no declared bounds")
