"""Shared by all tests: helper modules beside this file can be imported by name."""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

import built_once  # noqa: F401  # it changes what typer does
from learned_once import learn_anew, pytest_runtest_logstart  # noqa: F401  # as below
from repeatable import (  # noqa: F401
    pytest_runtest_setup,
    pytest_sessionstart,
)
from required_parts import (  # noqa: F401  # hooks are found by their names here
    pytest_configure,
    pytest_make_collect_report,
    pytest_runtest_makereport,
)

# numpy is not loaded yet. In tests products of matrices are so small that the threads of BLAS do
# little but wait for each other, and each process of the tests has a core for itself.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Deadlines would be timing assertions, and compiled kernels are slow on their first call.
settings.register_profile(
    "suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("suite")
