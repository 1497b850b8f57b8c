"""R for tests: whether it is here, a run of a script, and the program that its package calls."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "r"
ABSENT = "R WAS NOT RUN: `make r-base` installs it"
_PACKAGES = ("bit64", "jsonlite")


def require_r():
    """Skip where R or a package that tests use is absent."""
    program = shutil.which("Rscript")
    needed = "; ".join(f"loadNamespace('{name}')" for name in _PACKAGES)
    if program is None or subprocess.run([program, "-e", needed], capture_output=True).returncode:  # noqa: PLW1510
        pytest.skip(ABSENT)


def run_r(script, folder, library=None):
    """Run a script in a folder; return what it printed."""
    wrapper = folder / "private-ate"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m private_ate "$@"\n')
    wrapper.chmod(0o700)
    path = folder / "script.R"
    path.write_text(script, encoding="utf-8")
    environment = os.environ | {"PRIVATE_ATE": str(wrapper)}
    if library is not None:
        environment["R_LIBS"] = str(library)
    done = subprocess.run(
        ["Rscript", path], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
