"""Help that shows how, completion that knows names, and output that can be silenced."""

import shlex

import pytest
import typer
from typer.testing import CliRunner

from private_ate.audit import Finding
from private_ate.cli import app as program
from private_ate.cli import audit as audit_command
from private_ate.cli import progress
from private_ate.cli.app import app
from private_ate.estimators.registry import METHODS

RUNNER = CliRunner()
CSV = "t,y,a\n" + "".join(f"{i % 2},{i % 7 / 7},{i % 5 / 5}\n" for i in range(40))


@pytest.mark.parametrize("name", program._EXAMPLES)
def test_the_example_of_a_command_is_in_its_help_and_parses(name):
    line = program._EXAMPLES[name]
    path = ["ledger", name] if line.startswith("private-ate ledger ") else [name]
    shown = " ".join(RUNNER.invoke(app, [*path, "--help"]).stdout.split())
    assert f"Example: {line}" in shown
    words = shlex.split(line)
    assert words[: 1 + len(path)] == ["private-ate", *path]
    command = typer.main.get_command(app)
    for part in path:
        command = command.commands[part]
    command.make_context(name, words[1 + len(path) :])


def test_help_names_every_method():
    shown = "".join(RUNNER.invoke(app, ["estimate", "--help"], env={"COLUMNS": "200"}).stdout)
    for method in METHODS:
        assert method in " ".join(shown.split())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("private-ate rep", "report"),
        ("private-ate estimate x.csv --method calib", "calibrated"),
        ("private-ate estimate x.csv --level sam", "sample"),
    ],
)
def test_a_shell_completes_commands_methods_and_levels(words, found):
    asked = {
        "_PRIVATE_ATE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = RUNNER.invoke(app, env=asked, prog_name="private-ate")
    assert done.stdout.split() == [found]


def test_quiet_leaves_the_result_and_nothing_on_standard_error(tmp_path):
    (tmp_path / "data.csv").write_text(CSV)
    asked = [
        "estimate", str(tmp_path / "data.csv"), "--treatment", "t", "--outcome", "y",
        "--outcome-bounds", "0", "1", "--level", "label", "--epsilon", "50", "--covariates", "a",
        "--bounds", "a=0:1", "--confidence", "none", "--json",
    ]  # fmt: skip
    loud, quiet = RUNNER.invoke(app, asked), RUNNER.invoke(app, [*asked, "--quiet"])
    assert "warning: " in loud.stderr
    assert quiet.stderr == ""
    assert quiet.exit_code == 0
    assert '"warnings": [' in quiet.stdout


def audited(monkeypatch, *words):
    def run_audit(_, step, *, fast):
        assert fast == ("--thorough" not in words)
        for title in ("samplers", "samplers", "calibrated"):
            step(title, 1, 2)
        yield Finding("calibrated", "ε ≤ 1", "ε ≥ 0.000", 200, passed=True)

    monkeypatch.setattr("private_ate.audit.run_audit", run_audit)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    return RUNNER.invoke(app, ["audit", *words])


def test_a_piped_audit_says_what_it_is_at_once_a_pass(monkeypatch):
    done = audited(monkeypatch)
    assert done.stderr.splitlines() == ["audit: samplers", "audit: calibrated"]
    assert audited(monkeypatch, "--quiet").stderr == ""


def test_the_audit_says_what_a_bound_of_zero_means(monkeypatch):
    shown = " ".join(audited(monkeypatch).stdout.split())
    assert audit_command._MEANING in shown
    assert "0.000 means that these runs could not tell the neighbours apart" in shown
    assert "means" not in audited(monkeypatch, "--json").stdout


def test_a_piped_estimate_shows_no_progress(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with progress.watch("estimating") as step:
        step("propensity model", 1, 2)
    assert capsys.readouterr().err == ""
