"""Every module loads, on each Python and with each set of packages that the checks install."""

import importlib
import pkgutil

import private_ate

# Modules that say how to install what they need, where it is not installed.
NEED_AN_EXTRA = {"private_ate.dowhy", "private_ate.sklearn"}


def test_every_module_can_be_imported():
    names = [one.name for one in pkgutil.walk_packages(private_ate.__path__, "private_ate.")]
    failed = {}
    for name in names:
        if name.endswith(".__main__"):  # it would run
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            if name not in NEED_AN_EXTRA or "pip install" not in str(error):
                failed[name] = error

    assert len(names) > 100
    assert failed == {}
