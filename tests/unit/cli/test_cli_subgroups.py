"""Subgroups on the command line: --by and --overall of estimate and check."""

import json

import pytest
from typer.testing import CliRunner

from private_ate import Ledger, Release, estimate_ate
from private_ate.cli.app import app
from private_ate.cli.flags import with_flag
from private_ate.datasets.clinic import draw_clinic

BY = ["weight<85", "age<60"]
ASKED = ["--level", "label", "--epsilon", "1", "--seed", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clinic")
    clinic = draw_clinic(600)
    clinic.frame.write_csv(folder / "clinic.csv")
    clinic.domain.write(folder / "clinic.toml")
    return folder


def run(folder, command, *words):
    named = [str(folder / "clinic.csv"), "--domain", str(folder / "clinic.toml")]
    return CliRunner().invoke(app, [command, *named, *words])


@pytest.mark.parametrize("overall", [False, True])
def test_an_estimate_by_flags_is_the_estimate_by_names(folder, overall):
    flags = ["--by", "weight<85, age<60", *(["--overall"] if overall else [])]
    done = run(folder, "estimate", *ASKED, *flags, "--json")
    assert done.exit_code == 0, done.output
    clinic = draw_clinic(600)
    named = estimate_ate(
        clinic.frame, domain=clinic.domain, level="label", epsilon="1", seed=3, by=BY,
        overall=overall,
    )  # fmt: skip
    found = Release.from_json(done.stdout)
    assert found.effects == named.effects
    assert found.settings["subgroups"] == named.settings["subgroups"]


def test_a_table_is_shown_and_a_page_is_written(folder):
    page = folder / "page.html"
    done = run(folder, "estimate", *ASKED, "--by", "age<60", "--report", str(page))
    assert done.exit_code == 0, done.output
    for part in ("age<60", "age≥60", "all units", "equal effects"):
        assert part in done.stdout
    assert "Forest plot" in page.read_text(encoding="utf-8")


def test_one_request_is_one_charge(folder):
    path = folder / "budget.db"
    Ledger.create(path, "clinic", epsilon="1").close()
    asked = ["--level", "label", "--epsilon", "1", "--by", "age<60", "--overall"]
    done = run(folder, "estimate", *asked, "--ledger", str(path), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["settings"]["ledger"]["left"] == 0


@pytest.mark.parametrize(
    ("words", "part", "flag"),
    [
        (["--by", "age"], "name where it is cut", "--by COLUMN,COLUMN<NUMBER"),
        (["--by", "height"], "not by 'height'", "--bounds height=LO:HI or --categories"),
        (["--overall"], "name these too", "--by COLUMN,COLUMN<NUMBER"),
        (["--by", "age<60", "--diagnostics", "page.html"], "speaks of all units", "--by"),
        (["--by", "age<60", "--method", "published"], "has no subgroups", "--method"),
    ],
)
def test_refusals_name_the_flag(folder, words, part, flag):
    done = run(folder, "estimate", *ASKED, *words)
    assert done.exit_code != 0
    assert part in str(done.exception)
    assert flag in with_flag(done.exception)


def test_the_check_counts_subgroups(folder):
    done = run(folder, "check", "--by", "weight<85,age<60", "--json")
    (found,) = [
        one for one in json.loads(done.stdout)["findings"]
        if one["topic"] == "subgroups" and "counts" in one and one["severity"] == "ok"
    ]  # fmt: skip
    assert sum(sum(arms.values()) for arms in found["counts"]["cells"].values()) == 600
