"""The service's documentation names tests, commands and files that are there."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)
from house_people import OLGA

from private_ate.cli.serve import app
from private_ate.service.web.models import _lines

ROOT = Path(__file__).parents[2]
COMMANDS = {command.name or command.callback.__name__ for command in app.registered_commands}


def test_every_threat_names_a_test_that_is_there():
    page = (ROOT / "docs/explanation/service.md").read_text("utf-8")
    table = page.partition("## Threats")[2].partition("## What")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")][1:]
    files = (
        path for part in ("service", "pages") for path in (ROOT / "tests" / part).glob("test_*")
    )
    tests = "".join(path.read_text("utf-8") for path in files)

    assert len(rows) >= 14
    for threat, _, guards in rows:
        named = re.findall(r"`(test_\w+)`", guards)
        assert named, threat
        assert all(f"def {name}(" in tests for name in named), threat


@pytest.mark.parametrize(
    "path",
    ["docs/how-to/serve-a-hospital.md", "docs/how-to/audit-a-service.md", "deploy/compose.yaml"],
)
def test_every_command_that_is_named_is_there(path):
    text = (ROOT / path).read_text("utf-8")
    named = set(re.findall(r"(?:private-ate |\[)serve,? ([a-z]+)", text))

    assert named
    assert named <= COMMANDS


def test_the_auditor_s_own_check_agrees_with_ours(small_house):
    page = (ROOT / "docs/how-to/audit-a-service.md").read_text("utf-8")
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], names)  # noqa: S102  # our page
    small_house.ask()
    small_house.worker().step()
    with small_house.store.snapshot() as execute:
        from private_ate.service.store.events import read_events

        events = read_events(execute)
    lines = list(_lines(small_house.ledger.history(), events))

    assert names["chain_holds"](lines, "ledger")
    assert names["chain_holds"](lines, "event")
    spoiled = json.loads(lines[1])
    lines[1] = json.dumps({**spoiled, "analyst": "mallory"})
    assert not names["chain_holds"](lines, "ledger")
    assert small_house.service.requests(OLGA)
