"""`private-ate ledger`: make budgets, look at them, check their history."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from rich.table import Table

    from private_ate.privacy.ledger_chain import Account, Entry

__all__ = ["app"]

app = typer.Typer(
    help="Privacy budgets of data sets: a SQLite file or a PostgreSQL database.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Location = Annotated[str, typer.Argument(help="File or postgresql:// URL.", metavar="LEDGER")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OneDataset = Annotated[str | None, typer.Option("--dataset", help="Only this data set.")]


@app.command()
def create(
    location: Location,
    dataset: Annotated[str, typer.Option(help="Name of the data set.", metavar="NAME")],
    epsilon: Annotated[str, typer.Option(help="Total budget, e.g. 2.0.", metavar="E")],
    delta: Annotated[str, typer.Option(help="Total δ, for methods that need one.")] = "0",
    cap: Annotated[
        list[str] | None, typer.Option(help="An analyst's own limit of ε.", metavar="ANALYST=E")
    ] = None,
    domain: Annotated[
        Path | None, typer.Option(help="TOML file that the data set is bound to.", metavar="FILE")
    ] = None,
    json: AsJson = False,
) -> None:
    """Add a data set with its total budget; makes the ledger if there is none."""
    from private_ate.charging import binding_of  # noqa: PLC0415  # keeps --help fast
    from private_ate.domain import Domain  # noqa: PLC0415  # as above
    from private_ate.privacy.ledger import Ledger  # noqa: PLC0415  # as above

    caps = dict(_parse_cap(text) for text in cap or [])
    binding = None if domain is None else binding_of(Domain.read(domain))
    ledger = Ledger.create(
        location, dataset, epsilon=epsilon, delta=delta, caps=caps, binding=binding
    )
    accounts = ledger.accounts(dataset)
    ledger.close()
    _print([_account(account) for account in accounts], "Budget", as_json=json)


@app.command()
def show(location: Location, dataset: OneDataset = None, json: AsJson = False) -> None:
    """Show what each data set has spent and has left."""
    from private_ate.privacy.ledger import Ledger  # noqa: PLC0415  # keeps --help fast

    ledger = Ledger.open(location)
    accounts = ledger.accounts(dataset)
    ledger.close()
    _print([_account(account) for account in accounts], "Budgets", as_json=json)


@app.command()
def history(location: Location, dataset: OneDataset = None, json: AsJson = False) -> None:
    """List every entry in order: budgets granted, charges, releases stored."""
    from private_ate.privacy.ledger import Ledger  # noqa: PLC0415  # keeps --help fast

    ledger = Ledger.open(location)
    entries = ledger.history(dataset)
    ledger.close()
    _print([_entry(entry, whole=json) for entry in entries], "History", as_json=json)


@app.command()
def verify(
    location: Location,
    head: Annotated[
        str | None,
        typer.Option(help="A hash that a release carries: finds a history cut at its end."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check every hash and every balance; exits with 2 if the history was altered."""
    from private_ate.privacy.ledger import Ledger  # noqa: PLC0415  # keeps --help fast

    ledger = Ledger.open(location)
    try:
        found = ledger.verify(head)
    finally:
        ledger.close()
    row = {"verified": True, "entries": found.entries, "head": found.head}
    _print([row], "The history verifies", as_json=json)


def _parse_cap(text: str) -> tuple[str, str]:
    analyst, sign, epsilon = text.rpartition("=")
    if not (sign and analyst and epsilon):
        msg = f"write --cap ANALYST=E, for example --cap alice=0.5, not {text[:60]!r}"
        raise ArgumentError(msg)
    return analyst, epsilon


def _account(account: Account) -> dict[str, Any]:
    return {
        "dataset": account.dataset,
        "analyst": account.analyst or None,
        "epsilon": float(account.total.epsilon_text),
        "spent": float(account.spent.epsilon_text),
        "left": float(account.left.epsilon_text),
        "delta": float(account.total.delta_text),
        "delta_left": float(account.left.delta_text),
    }


def _entry(entry: Entry, *, whole: bool) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "at": entry.at,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "analyst": entry.analyst or None,
        "request": entry.request or None,
        "epsilon": float(entry.cost.epsilon_text),
        "delta": float(entry.cost.delta_text),
        "hash": entry.hash if whole else entry.hash[:12],
    }


def _print(rows: list[dict[str, Any]], title: str, *, as_json: bool) -> None:
    if as_json:
        import json  # noqa: PLC0415  # keeps --help fast

        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from rich.console import Console  # noqa: PLC0415  # keeps --help fast

    Console(highlight=False).print(_table(rows, title))


def _table(rows: list[dict[str, Any]], title: str) -> Table:
    from rich.table import Table  # noqa: PLC0415  # keeps --help fast
    from rich.text import Text  # noqa: PLC0415  # names are shown as they are, not as markup

    table = Table(title=title, title_justify="left")
    for name in rows[0] if rows else ():
        numeric = isinstance(rows[0][name], int | float)
        table.add_column(name.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    return table


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)
