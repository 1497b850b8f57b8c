"""The ledger on the command line."""

import json
import sqlite3
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from private_ate import ArgumentError, LedgerError
from private_ate.cli.ledger import app

CSV = "t,y,a\n" + "".join(f"{i % 2},{i % 7 / 7},{i % 5 / 5}\n" for i in range(40))


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def program(*arguments):
    """Run the whole program, exit codes included."""
    return subprocess.run(
        [sys.executable, "-m", "private_ate.cli", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    made = run("create", path, "--dataset", "trial", "--epsilon", "1.0", "--cap", "bob=0.25")
    assert made.exit_code == 0
    return path


def test_a_new_data_set_shows_its_budget(ledger):
    shown = json.loads(run("show", ledger, "--json").stdout)
    assert [(row["dataset"], row["analyst"], row["left"]) for row in shown] == [
        ("trial", None, 1.0),
        ("trial", "bob", 0.25),
    ]
    assert "trial" in run("show", ledger).stdout


def test_history_and_verification_agree_on_the_last_hash(ledger):
    history = json.loads(run("history", ledger, "--json").stdout)
    verified = json.loads(run("verify", ledger, "--head", history[0]["hash"], "--json").stdout)
    assert [row["kind"] for row in history] == ["create", "cap"]
    assert verified == [{"verified": True, "entries": 2, "head": history[-1]["hash"]}]
    assert "verifies" in run("verify", ledger).stdout
    assert "create" in run("history", ledger).stdout


def test_a_name_that_looks_like_markup_is_shown_as_it_is(tmp_path):
    path = tmp_path / "budget.db"
    run("create", path, "--dataset", "[red]x[/red]", "--epsilon", "1")
    assert "[red]x[/red]" in run("show", path).stdout


@pytest.mark.parametrize("cap", ["bob", "=1", "bob=", "bob=2"])
def test_a_bad_cap_is_refused(tmp_path, cap):
    path = tmp_path / "budget.db"
    refused = run("create", path, "--dataset", "trial", "--epsilon", "1", "--cap", cap)
    assert isinstance(refused.exception, ArgumentError)
    assert not path.exists()


def test_an_altered_history_is_reported(ledger):
    connection = sqlite3.connect(ledger)
    connection.execute("UPDATE accounts SET epsilon_total = 2000000000")
    connection.commit()
    connection.close()
    assert isinstance(run("verify", ledger).exception, LedgerError)


def test_the_program_charges_repeats_and_refuses_with_exit_code_three(tmp_path, ledger):
    data = tmp_path / "data.csv"
    data.write_text(CSV)
    asked = [
        "estimate", data, "--treatment", "t", "--outcome", "y", "--outcome-bounds", 0, 1,
        "--level", "label", "--epsilon", "0.7", "--ledger", ledger, "--json", "--covariates", "all",
    ]  # fmt: skip
    first = program(*asked, "--request-id", "one")
    again = program(*asked, "--request-id", "one")
    assert first.returncode == again.returncode == 0
    assert first.stdout == again.stdout
    assert json.loads(first.stdout)["settings"]["ledger"]["left"] == 0.3
    refused = program(*asked, "--request-id", "two")
    assert refused.returncode == 3
    assert refused.stdout == ""
    assert refused.stderr.startswith("error: asked for ε = 0.7 but data set 'trial' has ε = 0.3")
    seeded = program(*asked, "--seed", "1")
    assert seeded.returncode == 2
    assert program("ledger", "verify", tmp_path / "none.db").returncode == 2
    head = json.loads(first.stdout)["settings"]["ledger"]["head"]
    assert program("ledger", "verify", ledger, "--head", head).returncode == 0
    assert program("ledger", "verify", ledger, "--head", "ab" * 32).returncode == 2
