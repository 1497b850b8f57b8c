"""What the service's tests share: a store with people and a data set, on either kind of store."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from house_people import House, furnish

from postgres_server import location, postgres_url  # noqa: F401  # fixtures are found by name
from private_ate.ledger.stores import store_for
from private_ate.service import release_times


@pytest.fixture
def house(location, tmp_path):  # noqa: F811  # a fixture
    found = furnish(location, tmp_path)
    yield found
    found.store.close()


@pytest.fixture(autouse=True)
def no_haste(request, monkeypatch):
    """Answers are due after minutes, so that a busy machine is not late; tests set clocks forward.

    Tests marked ``real_ticks`` measure when answers appear.
    """
    if request.node.get_closest_marker("real_ticks") is None:
        monkeypatch.setattr(release_times, "_START", 300.0)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """Make a furnished folder once; tests get copies."""
    folder = tmp_path_factory.mktemp("template")
    found = furnish(folder / "service.db", folder)
    found.store.close()
    return found


@pytest.fixture
def small_house(template, tmp_path):
    """The same on SQLite alone, for what does not depend on the store."""
    shutil.copytree(template.folder, tmp_path, dirs_exist_ok=True)
    place = tmp_path / "service.db"
    store = store_for(place, must_exist=True)
    yield House(str(place), tmp_path, store, dict(template.tokens))
    store.close()
