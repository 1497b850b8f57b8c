"""`private-ate experiment` and `private-ate datasets` say what there is and run it."""

import pytest
from typer.testing import CliRunner

from private_ate.cli import datasets, experiments
from private_ate.cli.app import app
from private_ate.errors import ArgumentError

RUNNER = CliRunner()


def test_experiments_are_listed_with_what_they_repeat():
    result = RUNNER.invoke(experiments.app, ["list"])

    assert result.exit_code == 0
    assert "budget-allocation" in result.output
    assert "heat maps" in result.output


def test_an_experiment_is_run_and_its_page_named(tmp_path, monkeypatch):
    from private_ate.experiments import execution

    monkeypatch.setattr(execution, "is_installed", lambda family: family == "synth")

    result = RUNNER.invoke(
        experiments.app, ["run", "limit-label", "--quick", "--out", str(tmp_path), "--fresh"]
    )

    assert result.exit_code == 0
    assert "page.md" in result.output
    assert (tmp_path / "limit-label" / "results.csv").stat().st_size > 0


def test_all_experiments_leave_an_index(tmp_path, monkeypatch):
    from private_ate.experiments import catalogue, execution

    monkeypatch.setattr(execution, "is_installed", lambda family: family == "synth")
    few = {name: catalogue.EXPERIMENTS[name] for name in ("limit-label", "coefficient-c")}
    monkeypatch.setattr(catalogue, "EXPERIMENTS", few)

    result = RUNNER.invoke(experiments.app, ["run", "all", "--quick", "--out", str(tmp_path)])

    index = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert result.exit_code == 0
    assert "Nothing on this page is private" in index
    for name in few:
        assert f"[{name}]({name}/page.md)" in index


def test_an_unknown_experiment_is_an_argument_error(tmp_path):
    result = RUNNER.invoke(experiments.app, ["run", "nothing", "--out", str(tmp_path)])

    assert isinstance(result.exception, ArgumentError)
    assert not list(tmp_path.iterdir())


def test_data_sets_are_listed_even_where_their_packages_are_missing(monkeypatch):
    from private_ate import datasets as library
    from private_ate.errors import DatasetError

    def missing():
        msg = "run `make data`"
        raise DatasetError(msg)

    monkeypatch.setitem(library.registry, "ihdp", missing)
    result = RUNNER.invoke(datasets.app, ["list"])

    assert result.exit_code == 0
    assert "ihdp        not here: run `make data`" in result.output
    assert "489 treated, 511 control" in result.output


def test_a_data_set_is_shown_with_a_domain_that_can_be_read_back():
    from private_ate import Domain
    from private_ate.datasets import synth

    result = RUNNER.invoke(datasets.app, ["show", "synth"])

    assert result.exit_code == 0
    assert "# true effect: 0.5" in result.output
    assert "not private: 0.459357" in result.output
    assert Domain.from_toml(result.output) == synth.DOMAIN


@pytest.mark.parametrize("command", ["datasets", "experiment"])
def test_the_program_knows_the_command(command):
    result = RUNNER.invoke(app, [command, "list"])

    assert result.exit_code == 0
    assert "synth" in result.output or "end-to-end" in result.output
