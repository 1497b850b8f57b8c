"""`private-ate plan` from flags to a table: with data, without any, for ε and for rows."""

import json

import pytest
from typer.testing import CliRunner

from private_ate.cli import main
from private_ate.cli.app import app
from private_ate.datasets.clinic import draw_clinic

RUNNER = CliRunner()
WITHOUT_DATA = ["--dimension", "4", "--outcome-bounds", "0", "10", "--outcome-sd", "1.5"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    study = draw_clinic(600)
    study.frame.write_csv(folder / "clinic.csv")
    study.domain.write(folder / "clinic.toml")
    return [str(folder / "clinic.csv"), "--domain", str(folder / "clinic.toml")]


def run(*words):
    result = RUNNER.invoke(app, ["plan", *words])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_table_with_its_legend_is_printed(files, level):
    text = run(*files, "--level", level, "--epsilons", "1,4", "--outcome-sd", "9")

    assert "detectable  smallest effect" in text
    assert "standard deviation of 9" in " ".join(text.split())
    assert max(len(line) for line in text.splitlines()) <= 80


@pytest.mark.parametrize("level", ["label", "sample"])
def test_sizes_alone_are_enough(level):
    words = [
        "--level", level, "--rows", "2000", *WITHOUT_DATA, "--treated-share", "0.3",
        "--overlap", "poor", "--explained", "0.4", "--epsilons", "1", "--json",
    ]  # fmt: skip

    plan = json.loads(run(*words))

    assert plan["rows"][0]["size"] == 2000
    assert plan["rows"][0]["detectable_effect"] > plan["rows"][0]["half_width"]
    assert plan["level"] == level


@pytest.mark.parametrize("level", ["label", "sample"])
def test_rows_that_are_left_out_are_solved_for(level):
    words = ["--level", level, *WITHOUT_DATA, "--half-width", "0.5", "--epsilons", "1", "--json"]

    plan = json.loads(run(*words))

    assert plan["rows_needed"] == [plan["rows"][0]["size"]]
    assert plan["rows"][0]["half_width"] <= 0.5


def test_rows_are_solved_for_people_like_those_in_a_file(files):
    text = run(
        *files, "--level", "label", "--half-width", "2", "--solve", "rows", "--epsilons", "1"
    )

    assert "A half-width of 2 needs about" in text
    assert "rows at ε = 1" in " ".join(text.split())


def test_a_domain_file_tells_bounds_and_covariates_where_there_is_no_data(files):
    domain = files[1:]

    plan = json.loads(run("--level", "sample", *domain, "--rows", "600", "--json"))

    with_data = json.loads(run(*files, "--level", "sample", "--json"))
    assert plan == with_data


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--level", "label", "--rows", "100"], "--dimension and --outcome-bounds"),
        (["--level", "sample", *WITHOUT_DATA], "--half-width W"),
        (
            ["--level", "label", *WITHOUT_DATA, "--half-width", "1", "--solve", "epsilon"],
            "--rows N",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_flag(words, message, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["private-ate", "plan", *words])

    with pytest.raises(SystemExit) as stopped:
        main()

    assert stopped.value.code != 0
    assert message in " ".join(capsys.readouterr().err.split())


def test_an_estimate_takes_the_same_flag_for_the_outcomes_deviation(files):
    words = ["estimate", *files, "--level", "label", "--epsilon", "1", "--seed", "3", "--json"]

    flag, setting, neither = (
        json.loads(RUNNER.invoke(app, [*words, *more]).output)
        for more in (["--outcome-sd", "2"], ["--set", "outcome_sd=2"], [])
    )

    assert flag == setting
    assert flag["interval"] != neither["interval"]
