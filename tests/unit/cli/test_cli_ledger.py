"""The ledger on the command line."""

import json
import sqlite3
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from private_ate import ArgumentError, LedgerError
from private_ate.cli import main
from private_ate.cli.ledger import app

CSV = "t,y,a\n" + "".join(f"{i % 2},{i % 7 / 7},{i % 5 / 5}\n" for i in range(40))


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def program(monkeypatch, capsys):
    """Run the whole program, exit codes included."""

    def run_program(*arguments):
        monkeypatch.setattr(sys, "argv", ["private-ate", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        return SimpleNamespace(returncode=stop.value.code or 0, stdout=out, stderr=err)

    return run_program


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    made = run("create", path, "--dataset", "trial", "--epsilon", "1.0", "--cap", "bob=0.95")
    assert made.exit_code == 0
    return path


def test_a_new_data_set_shows_its_budget(ledger):
    shown = json.loads(run("show", ledger, "--json").stdout)
    assert [(row["dataset"], row["analyst"], row["left"]) for row in shown] == [
        ("trial", None, 1.0),
        ("trial", "bob", 0.95),
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


DOMAIN = """
[treatment]
column = "t"

[outcome]
column = "y"
low = 0
high = 1

[covariates.a]
low = 0
high = 1
"""


@pytest.fixture
def domain(tmp_path):
    path = tmp_path / "trial.toml"
    path.write_text(DOMAIN)
    return path


def created(path, *options):
    made = run("create", path, "--dataset", "trial", "--epsilon", "1", "--json", *options)
    assert made.exit_code == 0, made.exception
    return json.loads(made.stdout)[0]


def test_a_domain_names_the_public_columns_of_label_level(tmp_path, domain):
    row = created(tmp_path / "budget.db", "--domain", domain, "--level", "label")
    assert (row["level"], row["public"], row["rows_per_person"]) == ("label", ["a", "t"], 1)


def test_public_columns_may_be_named_without_a_domain(tmp_path):
    options = ["--level", "label", "--public", "t, b", "--rows-per-person", "3"]
    row = created(tmp_path / "budget.db", *options)
    assert (row["level"], row["public"], row["rows_per_person"]) == ("label", ["b", "t"], 3)


def test_the_outcome_of_a_domain_is_private_before_the_level_is_known(tmp_path, domain):
    path = tmp_path / "budget.db"
    assert created(path, "--domain", domain)["level"] is None
    said = ["bind", path, "--dataset", "trial", "--level", "label", "--public"]
    assert isinstance(run(*said, "t,y").exception, LedgerError)
    assert "label" in run(*said, "t,a").stdout


def test_public_gaps_are_named_by_a_flag_or_by_the_domain(tmp_path, domain):
    named = ["--level", "label", "--public", "t,a", "--public-gaps", "y"]
    assert created(tmp_path / "flag.db", *named)["public_gaps"] == ["y"]
    text = domain.read_text("utf-8").replace("[outcome]", '[outcome]\nmissing = "public"')
    domain.write_text(text, "utf-8")
    path = tmp_path / "toml.db"
    assert created(path, "--level", "label", "--domain", domain)["public_gaps"] == ["y"]
    assert run("bind", path, "--dataset", "trial", "--public-gaps", "z").exit_code == 0
    assert "y, z" in run("show", path).stdout


def test_sampling_weights_of_a_domain_are_public_with_its_covariates(tmp_path, domain):
    domain.write_text(domain.read_text("utf-8") + '\n[weights]\ncolumn = "w"\nhigh = 5\n', "utf-8")
    row = created(tmp_path / "budget.db", "--level", "label", "--domain", domain)
    assert row["public"] == ["a", "t", "w"]


@pytest.mark.parametrize(
    "options",
    [
        ["--level", "both"],
        ["--level", "label"],
        ["--public", "t"],
        ["--level", "sample", "--public", "t"],
        ["--level", "sample", "--public-gaps", "y"],
        ["--level", "label", "--public", "t,a", "--public-gaps", "a"],
        ["--level", "sample", "--rows-per-person", "0"],
        ["--cap", "bob=0.1", "--cap", "Bob=0.2"],
        ["--cap", "bob=0.1", "--cap", "bob=0.2"],
    ],
)
def test_what_cannot_be_bound_is_refused_and_leaves_no_file(tmp_path, options):
    path = tmp_path / "budget.db"
    refused = run("create", path, "--dataset", "trial", "--epsilon", "1", *options)
    assert isinstance(refused.exception, ArgumentError)
    assert not path.exists()


def test_others_are_allowed_by_a_flag_now_or_later(tmp_path, ledger):
    created(tmp_path / "open.db", "--cap", "bob=0.1", "--others-allowed")
    assert run("bind", ledger, "--dataset", "trial", "--others-allowed").exit_code == 0
    assert isinstance(run("bind", ledger, "--dataset", "none").exception, LedgerError)
    assert "verifies" in run("verify", ledger).stdout


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


def test_the_program_charges_repeats_and_refuses_with_exit_code_three(tmp_path, ledger, program):
    data = tmp_path / "data.csv"
    data.write_text(CSV)
    asked = [
        "estimate", data, "--treatment", "t", "--outcome", "y", "--outcome-bounds", 0, 1,
        "--level", "label", "--epsilon", "0.7", "--ledger", ledger, "--json", "--covariates", "all",
        "--analyst", "bob",
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
    for wrong in ("ab" * 32, "0" * 64, head[:12]):
        cut = program("ledger", "verify", ledger, "--head", wrong)
        assert cut.returncode == 2
        assert cut.stderr.startswith(f"error: no entry has the hash {wrong!r}")


def test_an_estimate_refuses_an_old_copy_of_the_ledger_by_its_head(ledger, tmp_path, program):
    (tmp_path / "data.csv").write_text(CSV)
    asked = [
        "estimate", tmp_path / "data.csv", "--treatment", "t", "--outcome", "y",
        "--outcome-bounds", 0, 1, "--level", "label", "--epsilon", "0.4", "--covariates", "a",
        "--bounds", "a=0:1", "--dataset", "trial", "--analyst", "bob", "--json", "--quiet",
    ]  # fmt: skip
    old = tmp_path / "old.db"
    old.write_bytes(ledger.read_bytes())
    first = program(*asked, "--ledger", ledger)
    head = json.loads(first.stdout)["settings"]["ledger"]["head"]

    refused = program(*asked, "--ledger", old, "--head", head)
    again = program(*asked, "--ledger", ledger, "--head", head)

    assert refused.returncode == 2
    assert "the end of the history is missing" in refused.stderr
    assert json.loads(run("show", old, "--json").stdout)[0]["left"] == 1.0
    assert again.returncode == 0
    assert json.loads(run("show", ledger, "--json").stdout)[0]["left"] == pytest.approx(0.2)


def test_a_head_without_a_ledger_is_refused(tmp_path, program):
    (tmp_path / "data.csv").write_text(CSV)
    done = program(
        "estimate", tmp_path / "data.csv", "--treatment", "t", "--outcome", "y",
        "--outcome-bounds", 0, 1, "--level", "label", "--epsilon", "0.4", "--covariates", "a",
        "--head", "0" * 64,
    )  # fmt: skip

    assert done.returncode == 2
    assert "belong to a ledger" in done.stderr
