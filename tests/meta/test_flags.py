"""The core speaks of parameters; only the command line speaks of flags and commands."""

import ast
import re
from pathlib import Path

import pytest

from private_ate.cli import flags
from private_ate.cli.app import app
from private_ate.errors import BudgetError, DomainError, LedgerError, PrivateAteError

SOURCE = Path(__file__).resolve().parents[2] / "src" / "private_ate"
# An experiment's page says which command repeats it.
CORE = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.parent.name != "cli" and path.name != "execution.py"
]


def messages(tree):
    """Yield the texts that are assigned to msg or why, or handed to an error."""
    for node in ast.walk(tree):
        named = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("msg", "why")
        if named or isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_error_of_the_core_names_a_flag_or_a_command(path):
    for text in messages(ast.parse(path.read_text("utf-8"))):
        assert not re.search(r"--[a-z]|private-ate [a-z]+ ", text), text


def test_every_parameter_that_an_error_names_has_a_flag():
    named = {
        item.value.value
        for path in CORE
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        for item in node.exc.keywords
        if item.arg == "parameter" and isinstance(item.value, ast.Constant)
    }

    assert {"bounds", "outcome bounds", "covariates", "analyst"} <= named <= set(flags._FLAGS)


def test_the_command_line_adds_the_flag_and_nothing_else():
    bare = BudgetError("0.5 of 1.0 is left")
    bounds = DomainError("no bounds", parameter="bounds", column="{odd}")

    assert flags.with_flag(bare) == "0.5 of 1.0 is left"
    assert "--bounds {odd}=LO:HI or --categories '{odd}=a|b|c'" in flags.with_flag(bounds)
    assert flags.with_flag(LedgerError("none", parameter="ledger")).endswith("ledger create")
    assert flags.with_flag(PrivateAteError("odd", parameter="unknown")) == "odd"


def test_every_flag_that_is_named_exists():
    import typer

    commands = typer.main.get_command(app).commands
    estimate = {name for item in commands["estimate"].params for name in item.opts}
    plan = {name for item in commands["plan"].params for name in item.opts}
    bind = {name for item in commands["ledger"].commands["bind"].params for name in item.opts}

    for text in flags._FLAGS.values():
        known = bind if "ledger" in text else estimate | plan
        assert set(re.findall(r"--[a-z-]+", text)) <= known, text
