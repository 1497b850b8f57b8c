"""What the attacks share: a PostgreSQL server of their own."""

import sys
from pathlib import Path

from postgres_server import location, postgres_url  # noqa: F401  # fixtures are found by name

sys.path.insert(0, str(Path(__file__).parent))  # the attacks share studies.py
