"""What the service's tests share: a store with people and a data set, on either kind of store."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from house_people import furnish

from postgres_server import location, postgres_url  # noqa: F401  # fixtures are found by name


@pytest.fixture
def house(location, tmp_path):  # noqa: F811  # a fixture
    found = furnish(location, tmp_path)
    yield found
    found.store.close()


@pytest.fixture
def small_house(tmp_path):
    """The same on SQLite alone, for what does not depend on the store."""
    found = furnish(tmp_path / "service.db", tmp_path)
    yield found
    found.store.close()
