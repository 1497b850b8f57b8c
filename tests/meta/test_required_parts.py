"""A part that a suite installs cannot go missing in silence."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from required_parts import PARTS, objection

TESTS = Path(__file__).resolve().parents[1]
SUITE = """
import pytest

def test_of_a_server():
    pytest.skip("THE POSTGRESQL LEDGER IS NOT TESTED HERE")

@pytest.mark.xfail(reason="known", strict=True)
def test_that_is_known_to_fail():
    raise AssertionError
"""
MODULE = 'import pytest\npytest.importorskip("pyspark_of_nobody", reason="no pyspark")\n'


def outcome(folder, required):
    (folder / "conftest.py").write_text(
        "from required_parts import pytest_configure, pytest_make_collect_report\n"
        "from required_parts import pytest_runtest_makereport\n"
    )
    (folder / "test_suite.py").write_text(SUITE)
    (folder / "test_module.py").write_text(MODULE)
    environment = {key: value for key, value in os.environ.items() if "PRIVATE_ATE" not in key}
    if required is not None:
        environment["PRIVATE_ATE_REQUIRE"] = required
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", folder, folder],
        env=environment | {"PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.returncode, found.stdout + found.stderr


@pytest.mark.parametrize("required", [None, "browser,dowhy"])
def test_a_skip_for_want_of_something_else_stays_a_skip(tmp_path, required):
    code, text = outcome(tmp_path, required)

    assert code == 0, text
    assert "2 skipped, 1 xfailed" in text


def test_a_skip_for_want_of_a_required_part_fails(tmp_path):
    code, text = outcome(tmp_path, "postgres,browser")

    assert code == 1, text
    assert "1 failed, 1 skipped" in text
    assert "THIS SUITE REQUIRES postgres" in text


def test_a_module_that_is_skipped_for_want_of_a_required_part_fails(tmp_path):
    code, text = outcome(tmp_path, "spark")

    assert code == 2, text
    assert "THIS SUITE REQUIRES spark" in text


def test_a_part_that_nobody_knows_is_refused(tmp_path):
    code, text = outcome(tmp_path, "sparks")

    assert code == 4, text
    assert "not sparks" in text


def test_a_reason_that_nobody_has_written_down_fails_where_parts_are_required():
    assert objection("it is Monday", None) is None
    assert "DOES NOT KNOW" in objection("it is Monday", frozenset())


def test_every_part_that_the_checks_require_is_known():
    root = TESTS.parent
    files = [root / "Makefile", *(path for path in (root / ".ci").iterdir() if path.is_file())]
    named = {
        part
        for path in files
        for words in re.findall(r"PRIVATE_ATE_REQUIRE=([\w,]+)", path.read_text("utf-8"))
        for part in words.split(",")
    }
    assert named == set(PARTS)
