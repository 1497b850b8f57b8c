"""`private-ate check`: flags, exit codes, the watermark, and that nothing is spent or stored."""

import json
import sys

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from private_ate.cli import main
from private_ate.datasets.clinic import draw_clinic

FLAGS = [
    "--treatment", "drug", "--treated", "yes", "--control", "no", "--outcome", "pressure_drop",
    "--outcome-bounds", "-40", "60", "--bounds", "age=18:95", "--bounds", "pressure_before=110:220",
    "--bounds", "weight=40:160", "--bounds", "diabetes=0:1",
    "--categories", "smoker=never|former|current|unknown",
]  # fmt: skip
MARK = "NOT PRIVATE, DO NOT SHARE"


@pytest.fixture
def folder(tmp_path):
    clinic = draw_clinic(800)
    clinic.frame.write_csv(tmp_path / "clinic.csv")
    clinic.frame.write_parquet(tmp_path / "clinic.parquet")
    clinic.domain.write(tmp_path / "clinic.toml")
    three = np.random.default_rng(1).choice(["yes", "no", "half"], 800)
    clinic.frame.with_columns(drug=pl.Series(three)).write_csv(tmp_path / "three.csv")
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys):
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.delenv("PRIVATE_ATE_DEBUG", raising=False)
        monkeypatch.setattr(sys, "argv", ["private-ate", "check", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        seen = capsys.readouterr()
        return stop.value.code or 0, seen.out, seen.err

    return call


def test_a_clean_study_exits_with_0_between_two_watermarks(run, folder):
    code, out, err = run(folder / "clinic.csv", "--domain", folder / "clinic.toml")
    lines = out.splitlines()

    assert (code, err) == (0, "")
    assert lines[0].startswith(MARK)
    assert lines[-1].startswith(MARK)
    assert "No problem found that would bias the estimate" in out
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in out


def test_a_problem_that_would_bias_the_estimate_exits_with_1(run, folder):
    code, out, _ = run(folder / "three.csv", "--domain", folder / "clinic.toml")

    assert code == 1
    assert '"half"' in out
    assert "1 problem would bias or stop the estimate" in out


def test_rows_left_out_on_purpose_exit_with_0(run, folder):
    code, _, _ = run(
        folder / "three.csv", "--domain", folder / "clinic.toml", "--leave-out-undeclared"
    )

    assert code == 0


def test_flags_and_a_domain_file_say_the_same_of_csv_parquet_and_streams(run, folder):
    file = run(folder / "clinic.csv", "--domain", folder / "clinic.toml", "--json")
    flags = run(folder / "clinic.csv", *FLAGS, "--json")
    parquet = run(folder / "clinic.parquet", *FLAGS, "--json")
    streamed = run(folder / "clinic.csv", *FLAGS, "--json", "--memory-limit", "1KB")
    plain, other = json.loads(file[1]), json.loads(flags[1])

    assert flags == parquet == streamed
    for item in (item for item in plain["findings"] if item["topic"] != "overlap"):
        assert item in other["findings"]
    assert len(plain["findings"]) == len(other["findings"])
    assert (plain["private"], plain["note"]) == (False, "not private, do not share")
    assert plain["rows"] == 800
    assert plain["bends"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--treatment", "drug"], "name the outcome column"),
        (["--domain", "nowhere.toml"], "cannot be read"),
        ([*FLAGS, "--level", "both"], "level is"),
        ([*FLAGS, "--person", "nobody"], "no person column"),
        ([*FLAGS, "--covariates", "height"], "no covariate column"),
    ],
)
def test_usage_errors_exit_with_2(run, folder, arguments, said):
    code, out, err = run(folder / "clinic.csv", *arguments)

    assert (code, out) == (2, "")
    assert said in err


def test_a_person_column_is_a_flag(run, folder):
    persons = [f"p{row // 2}" for row in range(800)]
    frame = draw_clinic(800).frame.with_columns(patient=pl.Series(persons))
    frame.write_csv(folder / "pairs.csv")
    arguments = (folder / "pairs.csv", "--domain", folder / "clinic.toml", "--person", "patient")

    assert run(*arguments)[0] == 1
    assert run(*arguments, "--rows-per-person", "2")[0] == 0


def test_a_page_is_written_when_asked_for_and_watermarked(run, folder):
    code, _, _ = run(
        folder / "three.csv", "--domain", folder / "clinic.toml", "--html", folder / "check.html"
    )
    page = (folder / "check.html").read_text("utf-8")

    assert code == 1
    assert page.count("Not private, do not share") >= 2
    assert "&quot;half&quot;" in page
    assert "<h2>Overlap</h2>" in page
    refused = run(
        folder / "three.csv", "--domain", folder / "clinic.toml", "--html", folder / "no/check.html"
    )
    assert refused[0] == 2


def test_nothing_is_written_anywhere(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    run(folder / "three.csv", "--domain", folder / "clinic.toml")

    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_terminal_gets_colours_and_labels_are_no_markup(run, folder, monkeypatch):
    odd = draw_clinic(800).frame.with_columns(smoker=pl.lit("[red]smokes[/red]"))
    odd.write_csv(folder / "odd.csv")
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **_: Console(force_terminal=True, color_system="standard", width=80),
    )
    _, out, _ = run(folder / "odd.csv", "--domain", folder / "clinic.toml")

    assert "\x1b[" in out
    assert "[red]smokes[/red]" in out
