"""Help that shows how, completion that knows names, and output that can be silenced."""

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from private_ate import Domain
from private_ate.audit import Finding, run
from private_ate.cli import app as program
from private_ate.cli import audit as audit_command
from private_ate.cli import output
from private_ate.cli.app import app
from private_ate.cli.flags import GROUPS
from private_ate.datasets import load
from private_ate.methods.registry import METHODS

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
    monkeypatch.setattr(output, "_PATIENCE", 0.0)
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
    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    with output.watch("estimating") as step:
        step("propensity model", 1, 2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "asked",
    [
        ["plan", "--level", "label"],
        ["check", "--level", "label"],
    ],
    ids=lambda asked: asked[0],
)
def test_plans_and_checks_can_be_quiet(asked, tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text(CSV)
    named = ["--treatment", "t", "--outcome", "y", "--outcome-bounds", "0", "1"]
    command, *rest = asked
    words = [command, str(tmp_path / "data.csv"), *rest, *named, "--covariates", "a"]
    told = []

    @contextmanager
    def watch(_, *, quiet=False):
        told.append(quiet)
        yield lambda *_: None

    monkeypatch.setattr(f"private_ate.cli.{command}.watch", watch)
    outputs = [RUNNER.invoke(app, [*words, *flag]).stdout for flag in ([], ["--quiet"])]

    assert told == [False, True]
    assert outputs[0] == outputs[1] != ""


def test_an_experiment_can_be_quiet(monkeypatch):
    told = []

    @contextmanager
    def bar(_, *, quiet):
        told.append(quiet)
        yield lambda *_: None

    monkeypatch.setattr("private_ate.cli.experiments.watch", bar)
    monkeypatch.setattr(
        "private_ate.experiments.execution.run_experiment",
        lambda *_: SimpleNamespace(folder=Path("results")),
    )
    for flag in ([], ["--quiet"]):
        assert RUNNER.invoke(app, ["experiment", "run", "limit-label", *flag]).exit_code == 0

    assert told == [False, True]


def test_the_usual_audit_is_fast_and_a_thorough_one_is_not(monkeypatch):
    seen = []

    def note(kind):
        def line(*asked, **named):
            seen.append((kind, asked, named))
            return iter(()) if kind == "steps" else None

        return line

    monkeypatch.setattr(run, "audit_steps", note("steps"))
    monkeypatch.setattr(run, "audit_release", note("releases"))
    monkeypatch.setattr(run, "_sampler_line", note("samplers"))
    spent = {}
    for fast in (True, False):
        seen.clear()
        list(run.run_audit(fast=fast))
        lines = [named["patience"] for kind, _, named in seen if kind == "releases"]
        spent[fast] = sum(lines)

    assert spent[True] < 40  # seconds; draws of steps and samplers take as long again
    assert spent[False] > 300


def test_decimal_commas_in_a_check_name_the_flag(tmp_path):
    rows = "".join(f'{i % 2};{i % 7},5;"{i % 5},25"\n' for i in range(40))
    (tmp_path / "data.csv").write_text("t;y;a\n" + rows)
    named = ["--treatment", "t", "--outcome", "y", "--outcome-bounds", "0", "9"]
    words = ["check", str(tmp_path / "data.csv"), "--sep", ";", *named, "--covariates", "a"]

    assert "--decimal ," in RUNNER.invoke(app, words).stdout
    assert "--decimal ," not in RUNNER.invoke(app, [*words, "--decimal", ","]).stdout


def test_a_data_set_is_saved_as_a_file_and_its_domain(tmp_path):
    done = RUNNER.invoke(app, ["datasets", "save", "synth", "--out", str(tmp_path / "new")])

    assert done.exit_code == 0
    lines = (tmp_path / "new" / "synth.csv").read_text().splitlines()
    assert len(lines) == 1 + load("synth").frame.height
    assert Domain.read(tmp_path / "new" / "synth.toml") == load("synth").domain


def test_the_last_line_of_the_demo_runs_as_printed_in_a_folder_whose_name_needs_quotes(tmp_path):
    environment = {**os.environ, "PATH": "/usr/bin:/bin"}  # no shell knows the program
    shown = subprocess.run(
        [sys.executable, "-m", "private_ate", "demo", "--out", "a folder"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    line = shown.stdout.splitlines()[-1]

    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "effect (ATE)" in done.stdout


def every_command(command, path=()):
    """Yield the path and the command of everything that has a help page."""
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from every_command(below, (*path, name))


COMMANDS = dict(every_command(typer.main.get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_no_type_stands_beside_a_switch(path):
    shown = RUNNER.invoke(app, [*path, "--help"], env={"COLUMNS": "160"}).stdout

    assert "--help" in shown
    assert "bool" not in shown.lower().split("example")[0]


@pytest.mark.parametrize("name", ["estimate", "plan", "check", "domain"])
def test_every_flag_of_a_study_is_shown_in_a_panel(name):
    command = COMMANDS[name,]
    found = command.get_params(command.make_context(name, [], resilient_parsing=True))

    flags = [each.name for each in found if each.param_type_name == "option"]
    named = [one for names in GROUPS.values() for one in names]
    assert set(flags) <= set(named), "name the flag in private_ate.cli.flags.GROUPS"
    assert flags == [one for one in named if one in flags]


def test_the_first_panel_holds_the_nine_flags_of_a_newcomer():
    shown = RUNNER.invoke(app, ["estimate", "--help"], env={"COLUMNS": "120"}).stdout

    panels = [line.split("─")[1].strip() for line in shown.splitlines() if line.startswith("╭")]
    assert panels == ["Arguments", *GROUPS]
    first = shown.split("─ To begin with ")[1].split("╰")[0]
    assert first.count("--") == 9
