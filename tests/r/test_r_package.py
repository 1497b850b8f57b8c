"""The package under r/: the same release as from Python, and pages whose R code runs."""

import re
import subprocess
import tomllib

import pytest

from private_ate import estimate_ate
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


def test_package_and_program_have_one_version_and_one_licence():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    described = (PACKAGE / "DESCRIPTION").read_text("utf-8")

    # What R calls 9000 is a development version.
    assert f"\nVersion: {version.replace('.dev0', '.9000')}\n" in described
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
