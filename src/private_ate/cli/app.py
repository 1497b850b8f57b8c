"""The `private-ate` program: its commands, and one sentence for every error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Final

import typer

from private_ate.cli import datasets, experiments, serve
from private_ate.cli.ask import ask
from private_ate.cli.audit import audit
from private_ate.cli.check import check
from private_ate.cli.combine import combine
from private_ate.cli.demo import demo
from private_ate.cli.domain import domain
from private_ate.cli.estimate import estimate
from private_ate.cli.flags import BinsCommand, PlainCommand, PlainGroup, with_flag
from private_ate.cli.ledger import app as ledger
from private_ate.cli.plan import plan
from private_ate.cli.report import report
from private_ate.errors import BudgetError, PrivateAteError

app = typer.Typer(
    name="private-ate",
    help="Average treatment effects from observational data under differential privacy.",
    no_args_is_help=True,
    cls=PlainGroup,
    pretty_exceptions_enable=False,  # its tracebacks show local variables: records
    context_settings={"help_option_names": ["-h", "--help"]},
)
# What a command returns to the shell; the reference page is made from it.
EXIT_CODES: Final = {
    0: "done",
    1: "a check or an audit has a finding, or an error that nobody foresaw; nothing was released",
    2: "arguments, a schema, a file, a ledger or a saved release are refused",
    3: "the budget refuses; nothing was spent",
}
# Commands that run as printed, after `private-ate demo --out demo`.
_EXAMPLES: Final = {
    "check": "private-ate check demo/clinic.csv --domain demo/clinic.toml --level label",
    "plan": "private-ate plan demo/clinic.csv --domain demo/clinic.toml --level label",
    "estimate": (
        "private-ate estimate demo/clinic.csv --domain demo/clinic.toml --level label "
        "--epsilon 1.0 --out release.json --report report.html"
    ),
    "report": "private-ate report release.json --out table.md",
    "create": "private-ate ledger create budget.db --dataset clinic --epsilon 5",
    "show": "private-ate ledger show budget.db",
    "history": "private-ate ledger history budget.db --dataset clinic",
    "verify": "private-ate ledger verify budget.db --release release.json",
}


def _example(command: Callable[..., None]) -> str | None:
    line = _EXAMPLES.get(command.__name__)
    return None if line is None else f"Example: {line}"


for command in (domain, check, plan, estimate):
    app.command(cls=BinsCommand, epilog=_example(command))(command)
for plain in (report, ask, combine, demo, audit):
    app.command(cls=PlainCommand, epilog=_example(plain))(plain)
for name, group in (
    ("ledger", ledger), ("serve", serve.app), ("datasets", datasets.app),
    ("experiment", experiments.app),
):  # fmt: skip
    for below in group.registered_commands:
        below.cls = PlainCommand
        if group is ledger and below.callback is not None:
            below.epilog = _example(below.callback)
    app.add_typer(group, name=name, cls=PlainGroup)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks (they may hold records).")
    ] = False,
) -> None:
    """Hold the options that belong to no command."""
    if version:
        from private_ate._version import VERSION  # metadata is slow to read

        typer.echo(f"private-ate {VERSION}")
        raise typer.Exit
    if debug:
        os.environ["PRIVATE_ATE_DEBUG"] = "1"


def main() -> None:
    """Run a command; exit 0 if fine, 2 on bad arguments or schema, 3 if the budget refuses.

    A check that finds a problem exits with 1, as does an unforeseen error.
    """
    try:
        app()
    except BudgetError as error:
        _stop(error, with_flag(error), 3)
    except PrivateAteError as error:
        _stop(error, with_flag(error), 2)
    except Exception as error:  # noqa: BLE001  # an unforeseen text could quote a record
        name = type(error).__name__
        _stop(error, f"unexpected {name}; nothing was released. Run with --debug to see more", 1)


def _stop(error: Exception, message: str, code: int) -> None:
    if os.environ.get("PRIVATE_ATE_DEBUG"):
        raise error
    typer.echo(f"error: {message}", err=True)
    sys.exit(code)
