"""Several arms on the command line: flags, the domain file, and who of them wins."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import Domain, DomainError, Interval, Treatment
from private_ate.cli import estimate as estimate_command
from private_ate.cli.app import app
from private_ate.cli.declared import ARM_FLAGS, declared_arms
from private_ate.parameters import parameters_of

BASE = Treatment("t")
FILE = Treatment("t", arms=("none", "low", "high"), reference="low", other="none")
DOSE = Treatment("t", bins=(0, 1, 6, 100), labels=("zero", "few", "many"))
FLAGS = ["--treatment", "t", "--outcome", "y", "--outcome-bounds", "0", "1", "--bounds", "x=0:1"]


@pytest.fixture
def domain_of(monkeypatch):
    """Return the domain that a command makes of its arguments, without an estimate."""
    caught = []

    def keep(*_, **options):
        caught.append(options["domain"])
        raise SystemExit(0)

    monkeypatch.setattr("private_ate.api.estimate_ate", keep)
    monkeypatch.setattr("private_ate.checking.check.check_data", keep)
    monkeypatch.setattr("private_ate.planning.plan_ate", keep)

    def run(*arguments, command="estimate"):
        common = {"estimate": ["--level", "label", "--epsilon", "1"], "check": [],
                  "plan": ["--level", "label"]}[command]  # fmt: skip
        done = CliRunner().invoke(app, [command, *common, *map(str, arguments)])
        assert done.exit_code == 0, done.output
        return caught.pop()

    return run


@pytest.mark.parametrize("command", ["estimate", "check", "plan"])
def test_arms_and_bins_are_flags_of_every_command_that_takes_a_domain(domain_of, command):
    listed = domain_of("d.csv", *FLAGS, "--arms", "none, low,high", "--reference", "high",
                       command=command)  # fmt: skip
    assert listed.treatment == Treatment("t", arms=("none", "low", "high"), reference="high")
    binned = domain_of("d.csv", *FLAGS, "--treatment-bins", "0", "1", "6", "11", "100",
                       command=command)  # fmt: skip
    assert binned.treatment == Treatment("t", bins=(0, 1, 6, 11, 100))


@pytest.mark.parametrize(
    "words",
    [
        ["--treatment-bins", "-5", "0", ".5", "1e2"],
        ["--treatment-bins=-5,0,0.5,100"],
        ["--treatment-bins", "-5,0, .5,100"],
        ["--treatment-bins", "-5,", "0,", "0.5", "100"],
    ],
)
def test_edges_are_as_many_as_follow_however_they_are_written(domain_of, words):
    wanted = Treatment("t", bins=(-5, 0, 0.5, 100))
    assert domain_of("d.csv", *FLAGS, *words).treatment == wanted
    assert domain_of(*words, "d.csv", *FLAGS).treatment == wanted  # the file ends the numbers
    assert domain_of(*FLAGS, *words, "--", "d.csv").treatment == wanted


def test_words_after_two_dashes_are_no_flags():
    done = CliRunner().invoke(app, ["check", *FLAGS, "--", "--treatment-bins", "0", "1"])
    assert done.exit_code == 2
    assert "unexpected extra argument" in done.output.replace("\n", " ").lower()


@pytest.mark.parametrize(
    ("base", "given", "wanted"),
    [
        (FILE, {}, FILE),
        (DOSE, {}, DOSE),
        (FILE, {"reference": "high"},
         Treatment("t", arms=("none", "low", "high"), reference="high", other="none")),
        (FILE, {"arms": "high,none"}, Treatment("t", "none", "high", "none")),
        (FILE, {"treated": "high", "control": "none"}, Treatment("t", "high", "none", "none")),
        (DOSE, {"reference": "few"},
         Treatment("t", bins=(0, 1, 6, 100), labels=("zero", "few", "many"), reference="few")),
        (DOSE, {"reference": "2"},
         Treatment("t", bins=(0, 1, 6, 100), labels=("zero", "few", "many"), reference="many")),
        (DOSE, {"arms": "a,b,c"}, Treatment("t", arms=("a", "b", "c"))),
        (BASE, {"treatment_bins": "0,1,2,3", "reference": "1"}, Treatment("t", bins=(0, 1, 2, 3),
                                                                  reference=1)),
        (BASE, {"treatment_bins": "0,1,2", "reference": "[1, 2]"}, Treatment("t", bins=(0, 1, 2),
                                                                     reference="[1, 2]")),
        (BASE, {"reference": "0"}, BASE),
        (BASE, {"reference": "1"}, Treatment("t", "0", "1")),
        (BASE, {"treated": "yes", "control": "no"}, Treatment("t", "yes", "no")),
    ],
)  # fmt: skip
def test_flags_win_over_the_file_and_leave_what_they_do_not_name(base, given, wanted):
    assert declared_arms(dict.fromkeys(ARM_FLAGS) | given, base) == wanted


@pytest.mark.parametrize(
    ("base", "given", "message"),
    [
        (BASE, {"arms": "a,b", "treatment_bins": "0,1,2"}, "keep one of them"),
        (BASE, {"arms": "a,b", "treated": "b"}, "keep one of them"),
        (BASE, {"treated": "a", "reference": "b"}, "--control is the reference"),
        (DOSE, {"treated": "many"}, "bins of a dose"),
        (BASE, {"arms": "a,,b"}, "none of them empty"),
        (BASE, {"treatment_bins": "0,one"}, "edges that rise, not '0,one'"),
        (BASE, {"treatment_bins": ""}, "edges that rise"),
        (BASE, {"treatment_bins": "0,nan,1"}, "finite numbers"),
        (FILE, {"arms": "a,b,c"}, "'none', is none of the declared"),
    ],
)
def test_flags_that_contradict_each_other_or_the_file_are_refused(base, given, message):
    with pytest.raises(ValueError, match=message):
        declared_arms(dict.fromkeys(ARM_FLAGS) | given, base)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--arms", ",".join(map(str, range(21)))], "--treatment-bins"),
        (["--arms", "a,b,c", "--reference", "d"], "here: --reference LABEL"),
        (["--arms", "only"], "here: --arms A,B,C"),
        (["--treatment-bins", "--json"], "write --treatment-bins 0 1 6 100"),
    ],
)
def test_errors_about_arms_end_with_the_flag_that_helps(monkeypatch, capsys, words, hint):
    from private_ate.cli import main

    monkeypatch.setattr("sys.argv", ["private-ate", "check", "absent.csv", *FLAGS, *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert hint in error
    assert error.count("\n") == 1


def test_a_label_that_holds_a_comma_comes_from_the_file(tmp_path):
    path = tmp_path / "domain.toml"
    Domain(Treatment("t", arms=("a, b", "c", "d")), ("y", Interval(0, 1))).write(path)
    asked = {one.name: one.default for one in parameters_of("check")}
    known = estimate_command.declared_domain({**asked, "domain": path, "reference": "a, b"})
    assert known.treatment.labels == ("a, b", "c", "d")


def test_a_draft_holds_the_arms_that_flags_declare_and_looks_no_label_up(tmp_path):
    data, out = tmp_path / "d.csv", tmp_path / "d.toml"
    data.write_text("t,y,x\ncanary,1,2\nodd,3,4\nthird,5,6\n", "utf-8")

    def drafted(*words):
        done = CliRunner().invoke(
            app, ["domain", str(data), "--out", str(out), "--force", "--treatment", "t",
                  "--outcome", "y", *words],
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        text = out.read_text("utf-8")
        assert not any(label in text for label in ("canary", "odd", "third"))
        filled = text.replace("low = ???", "low = 0").replace("high = ???", "high = 9")
        return Domain.from_toml(filled.replace("missing = ???", "missing = 1"))

    with pytest.raises(DomainError, match=r"fill in treated of \[treatment\]"):
        drafted()  # no label is a default here
    assert drafted("--treated", "b", "--control", "a").treatment == Treatment("t", "b", "a")
    assert drafted("--arms", "a,b,c", "--reference", "b").treatment == Treatment(
        "t", arms=("a", "b", "c"), reference="b"
    )
    assert drafted("--treatment-bins", "0", "1", "6").treatment == Treatment("t", bins=(0, 1, 6))
    assert 'arms = ["none", "low", "high"]' in out.read_text("utf-8")


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(3)
    path = tmp_path / "study.csv"
    pl.DataFrame(
        {"t": rng.choice(["none", "low", "high"], 300), "dose": rng.integers(0, 30, 300),
         "x": rng.random(300), "y": rng.random(300)}
    ).write_csv(path)  # fmt: skip
    return path


def test_a_file_of_three_arms_becomes_a_table_and_two_pages(study, tmp_path):
    report, curator = tmp_path / "report.html", tmp_path / "curator.html"
    words = ["estimate", study, *FLAGS, "--arms", "none,low,high", "--level", "label",
             "--epsilon", "2", "--report", report, "--diagnostics", curator]  # fmt: skip
    every = CliRunner().invoke(app, [str(word) for word in words])
    few = CliRunner().invoke(app, [*map(str, words), "--contrasts", "reference"])
    assert (every.exit_code, few.exit_code) == (0, 0), every.output + few.output
    rows = [[line.split()[:2] for line in done.output.splitlines()] for done in (every, few)]
    assert ["high", "low"] in rows[0]
    assert ["high", "low"] not in rows[1]
    assert all(["high", "none"] in told for told in rows)
    assert "high" in report.read_text("utf-8")
    assert "Not private" in curator.read_text("utf-8")


def test_a_plan_of_doses_has_a_row_for_each_pair_of_bins(study):
    words = ["plan", str(study), "--treatment", "dose", *FLAGS[2:], "--level", "label",
             "--epsilons", "2", "--treatment-bins", "0", "1", "6", "100"]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert done.output.count("against [0, 1)") == 2
    assert done.output.count("against [1, 6)") == 1


def test_contrasts_that_are_none_are_refused_before_anything_is_spent(study, tmp_path):
    from private_ate import Ledger

    path = tmp_path / "budget.db"
    ledger = Ledger.create(path, "trial", epsilon="1")
    words = ["estimate", study, *FLAGS, "--arms", "none,low,high", "--level", "label",
             "--epsilon", "1", "--ledger", path, "--contrasts", "some"]  # fmt: skip
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert "contrasts is 'all' or 'reference'" in str(done.exception)
    assert ledger.accounts()[0].left.epsilon_text == "1"
    ledger.close()
