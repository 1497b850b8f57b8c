import importlib.util
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


def _browser_module():
    spec = importlib.util.spec_from_file_location("page_browser", _HERE / "browser.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["page_browser"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    module = _browser_module()
    if module.BROWSER is None:
        pytest.skip(module.ABSENT)
    with module.start_browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="session")
def inspection():
    return (_HERE / "inspection.js").read_text(encoding="utf-8")
