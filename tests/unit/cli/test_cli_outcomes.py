"""Several outcomes on the command line: a flag for each, bounds by column, one release."""

import json

import pytest
from typer.testing import CliRunner

from private_ate.cli.app import app
from private_ate.cli.flags import with_flag
from private_ate.errors import PrivateAteError
from several_outcomes import clinic_domain, clinic_table

COLUMNS = ["--treatment", "drug", "--arms", "none,low", "--covariates", "age,sex,site"]
OUTCOMES = [
    "--outcome", "pressure", "--outcome", "died",
    "--bounds", "pressure=60:220", "--bounds", "died=binary",
]  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    clinic_table(300).write_csv(folder / "study.csv")
    clinic_domain().write(folder / "domain.toml")
    return folder


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def told(result):
    """Return the sentence that a refusal ends with, flags and all."""
    assert isinstance(result.exception, PrivateAteError), result.output
    return with_flag(result.exception)


def estimate(study, *more):
    asked = ["--level", "label", "--epsilon", "1", "--seed", "1", "--quiet"]
    return run("estimate", study / "study.csv", *asked, *more)


def test_flags_declare_every_outcome(study):
    result = estimate(study, *COLUMNS, *OUTCOMES, "--json")
    assert result.exit_code == 0, result.output
    release = json.loads(result.stdout)
    assert [row["outcome"] for row in release["effects"]] == ["pressure", "died"]
    assert release["settings"]["outcomes"][1]["bounds"] == [0, 1]


def test_a_domain_file_declares_them_and_a_flag_chooses(study):
    whole = estimate(study, "--domain", study / "domain.toml", "--json")
    one = estimate(study, "--domain", study / "domain.toml", "--outcome", "died", "--json")
    assert len(json.loads(whole.stdout)["effects"]) == 2
    assert [row["outcome"] for row in json.loads(one.stdout)["effects"]] == ["died"]


def test_the_table_and_the_page_show_them(study):
    page = study / "page.html"
    result = estimate(study, "--domain", study / "domain.toml", "--report", page, "--by", "sex")
    assert result.exit_code == 0, result.output
    assert "died" in result.stdout
    assert "<h2>Outcomes</h2>" in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--outcome-bounds", "0", "1"], "each has bounds of its own"),
        (["--binary-outcome"], "each has bounds of its own"),
        (["--outcome-sd", "3"], "give one by column"),
        (["--outcome-sd", "died"], "number from"),
        (["--diagnostics", "page.html"], "shows one outcome"),
        (["--method", "published"], "one outcome at a time"),
        (["--outcome", "weight"], "none of the outcomes"),
    ],
)
def test_what_does_not_serve_several_outcomes_is_refused(study, more, words):
    assert words in told(estimate(study, "--domain", study / "domain.toml", *more))


def test_an_outcome_without_bounds_names_the_flag(study):
    assert "--bounds died=LO:HI" in told(estimate(study, *COLUMNS, *OUTCOMES[:-2]))


def test_spreads_are_given_by_column(study):
    result = estimate(
        study, "--domain", study / "domain.toml", "--outcome-sd", "pressure=9", "--json"
    )
    assert result.exit_code == 0, result.output


def test_plan_and_check_take_them_too(study):
    asked = ["--domain", study / "domain.toml"]
    plan = run("plan", study / "study.csv", "--level", "label", *asked, "--epsilons", "1", "--json")
    assert [row["outcome"] for row in json.loads(plan.stdout)["rows"]] == ["pressure", "died"]
    sizes = run("plan", "--level", "label", *asked, "--rows", "300", "--epsilons", "1", "--json")
    assert len(json.loads(sizes.stdout)["rows"]) == 2
    check = run("check", study / "study.csv", *asked)
    assert "died" in check.stdout
