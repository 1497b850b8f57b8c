"""Prints constraints that hold every dependency of the package at the oldest version it allows."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOOR = re.compile(r"(?P<name>[\w.-]+)(?:\[[^]]*\])?>=(?P<version>[\w.]+)$")


def floors(project: dict[str, object], extras: tuple[str, ...]) -> list[str]:
    """Return ``name==version`` for each requirement of the package and of some extras."""
    optional = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(line for name in extras for line in optional[name])]
    found = [FLOOR.match(line) for line in wanted]
    return sorted({f"{one['name']}=={one['version']}" for one in found if one})


if __name__ == "__main__":
    import sys

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    print(*floors(project, tuple(sys.argv[1:])), sep="\n")
