"""The package under r/: the same release as from Python, and pages whose R code runs."""

import re
import subprocess
import tomllib

import pytest

from private_ate import estimate_ate
from private_ate.cli import flags
from private_ate.datasets.clinic import draw_clinic
from r_session import PACKAGE, require_r, run_r

ROOT = PACKAGE.parent
BLOCK = re.compile(r"^```r\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "docs").rglob("*.md")
    if BLOCK.search(path.read_text("utf-8"))
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    require_r()
    folder = tmp_path_factory.mktemp("library")
    done = subprocess.run(
        ["R", "CMD", "INSTALL", "--no-docs", "--no-test-load", "-l", folder, PACKAGE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_the_page_of_r_has_code():
    assert "docs/how-to/r.md" in PAGES


@pytest.mark.r_session
@pytest.mark.parametrize("page", PAGES)
def test_the_r_code_on_the_page_runs(page, library, tmp_path):
    run_r("\n".join(BLOCK.findall((ROOT / page).read_text("utf-8"))), tmp_path, library)


@pytest.mark.r_session
@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_release_asked_for_from_r_is_that_of_python(library, tmp_path, level):
    study = draw_clinic(1500)
    study.frame.write_csv(tmp_path / "clinic.csv")
    study.domain.write(tmp_path / "clinic.toml")
    declared = """
      outcome_bounds = c(-40, 60), missing_outcomes = "public", arms = c("no", "yes"),
      bounds = list(age = c(18, 95), pressure_before = c(110, 220)),
      categories = list(smoker = c("never", "former", "current", "unknown"))"""
    printed = run_r(
        f"""
library(privateATE)
clinic <- read.csv("clinic.csv", stringsAsFactors = TRUE)
formula <- pressure_drop ~ drug | age + pressure_before + smoker
asked <- list(formula, clinic, level = "{level}", epsilon = 2, seed = 11)
files <- do.call(private_ate, c(asked, domain = "clinic.toml"))
arguments <- do.call(private_ate, c(asked, list({declared})))
cat(sprintf("%.17g", c(files$ate, arguments$ate)))
""",
        tmp_path,
        library,
    )

    asked = {"covariates": ["age", "pressure_before", "smoker"], "epsilon": 2, "seed": 11}
    expected = estimate_ate(study.frame, domain=study.domain, level=level, **asked).ate
    assert [float(text) for text in printed.split()] == [expected, expected]


@pytest.mark.r_session
def test_an_error_of_the_program_is_said_in_words_of_r(library, tmp_path):
    asked = [text.format("age") for text in flags._FLAGS.values() if text]
    here = [text for text in asked if not text.startswith("private-ate ")]
    (tmp_path / "errors.txt").write_text("".join(f"error: odd; here: {text}\n" for text in here))

    told = run_r(
        """
lines <- readLines("errors.txt", encoding = "UTF-8")
for (line in lines) cat(privateATE:::in_words_of_r(line, 2), "\\n", sep = "")
""",
        tmp_path,
        library,
    ).splitlines()

    assert len(told) == len(here)
    for line in told:
        assert "--" not in line
        assert not re.search(r"\b(LO|HI|FILE|NAME|LABEL|COLUMN|COL|NUMBER|[A-Z],[A-Z])\b", line), (
            line
        )
    arms = 'odd; in R: `arms = c("a", "b", "c")` or `treatment_bins = c(low, edge, high)`'
    assert f'{arms}, or `domain = "file.toml"`' in told
    assert "odd; in R: `options = list(shares = ...)`" in told
    assert "odd; in R: `leave_out_undeclared = TRUE`" in told


@pytest.mark.r_session
def test_a_value_of_a_wrong_type_is_said_without_the_program_s_usage(library, tmp_path):
    told = run_r(
        """
library(privateATE)
study <- data.frame(y = 1:4, t = c(0, 1, 0, 1), x = 1:4)
refused <- tryCatch(
  private_ate(y ~ t | x, study, level = "label", epsilon = 1, outcome_bounds = c(0, 9),
              rows_per_person = "few"),
  error = identity
)
cat(conditionMessage(refused))
""",
        tmp_path,
        library,
    )

    assert told.startswith("Invalid value for '`rows_per_person`': ")
    assert "  " not in told


def test_package_and_program_have_one_version_and_one_licence():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    described = (PACKAGE / "DESCRIPTION").read_text("utf-8")

    # What R calls 9000 is a development version.
    assert f"\nVersion: {version.replace('.dev0', '.9000')}\n" in described
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
