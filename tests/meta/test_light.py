"""The front door stays light: what is optional is imported when it is used."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["private_ate", "private_ate.api"])
def test_importing_the_package_imports_no_cluster_and_no_peer(module):
    heavy = ("pyspark", "pyarrow", "pandas", "sklearn", "matplotlib")
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
