"""`private-ate ledger`: make budgets, look at them, check their history."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from private_ate.cli import flags
from private_ate.cli.output import print_json, print_table, read_text, show_release
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    from private_ate.ledger.binding import Binding
    from private_ate.ledger.chain import Entry
    from private_ate.ledger.ledger import Ledger

app = typer.Typer(
    help="Privacy budgets of data sets: a SQLite file or a PostgreSQL database.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Location = Annotated[str, typer.Argument(help="File or postgresql:// URL.", metavar="LEDGER")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OneDataset = Annotated[str | None, typer.Option("--dataset", help="Only this data set.")]
DatasetName = Annotated[
    str, typer.Option("--dataset", help="Name of the data set.", metavar="NAME")
]
BoundLevel = Annotated[
    str | None,
    typer.Option("--level", help="What the total protects: label or sample.", metavar="LEVEL"),
]
PublicColumns = Annotated[
    str | None,
    typer.Option("--public", help="Public columns at label level, with commas.", metavar="A,B"),
]
PublicGaps = Annotated[
    str | None,
    typer.Option(
        "--public-gaps",
        help="Private columns of which it is public who lacks a value, with commas.",
        metavar="Y,Z",
    ),
]
BoundRows = Annotated[
    int | None, typer.Option("--rows-per-person", help="Rows one person may have.", metavar="M")
]
OthersAllowed = Annotated[
    bool, typer.Option("--others-allowed", help="Analysts without a cap may spend, too.")
]


@app.command()
def create(
    location: Location,
    dataset: DatasetName,
    epsilon: Annotated[str, typer.Option(help="Total budget, e.g. 2.0.", metavar="E")],
    delta: Annotated[str, typer.Option(help="Total δ, for methods that need one.")] = "0",
    cap: Annotated[
        list[str] | None, typer.Option(help="An analyst's own limit of ε.", metavar="ANALYST=E")
    ] = None,
    others_allowed: OthersAllowed = False,
    domain: Annotated[
        Path | None, typer.Option(help="TOML file that the data set is bound to.", metavar="FILE")
    ] = None,
    level: BoundLevel = None,
    public: PublicColumns = None,
    public_gaps: PublicGaps = None,
    rows_per_person: BoundRows = None,
    json: AsJson = False,
) -> None:
    """Add a data set with its total budget; makes the ledger if there is none."""
    from private_ate.ledger.ledger import Ledger  # keeps --help fast

    columns, binding = _declared(domain, level, _split(public))
    ledger = Ledger.create(
        location, dataset, epsilon=epsilon, delta=delta,
        caps=_caps(cap or []), uncapped="allowed" if others_allowed else None,
        level=cast("Any", level), public=columns, rows_per_person=rows_per_person,
        public_gaps=_split(public_gaps), binding=binding,
    )  # fmt: skip
    with closing(ledger):
        _show(ledger, dataset, "Budget", as_json=json)


@app.command()
def bind(
    location: Location,
    dataset: DatasetName,
    level: BoundLevel = None,
    public: PublicColumns = None,
    public_gaps: PublicGaps = None,
    rows_per_person: BoundRows = None,
    others_allowed: OthersAllowed = False,
    json: AsJson = False,
) -> None:
    """Say what `create` left open: level, public columns and gaps, rows per person, analysts."""
    from private_ate.ledger.ledger import Ledger  # keeps --help fast

    with closing(Ledger.open(location)) as ledger:
        ledger.bind(
            dataset, level=cast("Any", level), public=_split(public),
            rows_per_person=rows_per_person, public_gaps=_split(public_gaps),
            uncapped="allowed" if others_allowed else None,
        )  # fmt: skip
        _show(ledger, dataset, "Budget", as_json=json)


@app.command()
def show(
    location: Location,
    dataset: OneDataset = None,
    release: Annotated[
        str | None,
        typer.Option(help="Print the release that is stored for this request.", metavar="ID"),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what each data set has spent and has left, and what it is bound to.

    With --release ID, print a stored release again; that costs nothing.
    """
    from private_ate.ledger.ledger import Ledger  # keeps --help fast

    with closing(Ledger.open(location)) as ledger:
        if release is None:
            _show(ledger, dataset, "Budgets", as_json=json)
            return
        stored = ledger.release(release, dataset)
    if json:  # as it was stored, to the letter
        typer.echo(stored)
        return
    from private_ate.release.release import Release  # keeps --help fast

    show_release(Release.from_json(stored), as_json=False)


@app.command()
def history(location: Location, dataset: OneDataset = None, json: AsJson = False) -> None:
    """List every entry in order: budgets granted, charges, releases stored."""
    from private_ate.ledger.ledger import Ledger  # keeps --help fast

    with closing(Ledger.open(location)) as ledger:
        entries = ledger.history(dataset)
    if json:
        print_json([_entry(entry) for entry in entries])
        return
    typer.echo("\n".join(["History", *(_entry_lines(entry) for entry in entries)]))


@app.command()
def verify(
    location: Location,
    head: flags.Head = None,
    release: Annotated[
        Path | None,
        typer.Option(help="A saved release; it must be what was stored.", metavar="R.json"),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check every hash and every balance; exits with 2 if the history was altered.

    With --release R.json, also that the file is the release that the ledger stored: an edited
    number exits with 2.
    """
    from private_ate.ledger.ledger import Ledger  # as above

    text = None if release is None else read_text(release)
    with closing(Ledger.open(location)) as ledger:
        found = ledger.verify(head, release=text)
    stored = found.stored
    if json:
        row: dict[str, Any] = {"verified": True, "entries": found.entries, "head": found.head}
        if stored is not None:
            row["release"] = {"dataset": stored.dataset, "request": stored.request}
        print_json([row])
        return
    typer.echo(f"The history verifies: {found.entries} entries.")
    typer.echo(f"  head  {found.head}")
    if stored is not None:
        typer.echo("The file is the release that the ledger stored.")
        typer.echo(f"  data set  {stored.dataset}")
        typer.echo(f"  request   {stored.request}")
        typer.echo(f"  stored    {stored.at}, entry {stored.sequence}")


def _declared(
    domain: Path | None, level: str | None, public: list[str] | None
) -> tuple[list[str] | None, Binding | None]:
    """Return the public columns and the binding; a domain's outcome is private in any case."""
    if domain is None:
        return public, None
    from dataclasses import replace  # keeps --help fast

    from private_ate.charging import binding_of  # as above
    from private_ate.domain import Domain  # as above
    from private_ate.ledger.roles import Roles  # as above

    known = Domain.read(domain)
    roles = Roles(private=frozenset(known.private_columns))
    if level in get_args(Level) and has_public_covariates(cast("Level", level)) and public is None:
        public = list(known.public_columns)
    return public, replace(binding_of(known), roles=roles)


def _split(names: str | None) -> list[str] | None:
    if names is None:
        return None
    return [name.strip() for name in names.split(",") if name.strip()]


def _caps(texts: list[str]) -> dict[str, str]:
    caps: dict[str, str] = {}
    for text in texts:
        analyst, sign, epsilon = text.rpartition("=")
        if not (sign and analyst and epsilon):
            msg = f"write --cap ANALYST=E, for example --cap alice=0.5, not {text[:60]!r}"
            raise ArgumentError(msg)
        if analyst in caps:
            msg = f"the analyst {analyst!r} has two caps; give one"
            raise ArgumentError(msg)
        caps[analyst] = epsilon
    return caps


def _show(ledger: Ledger, dataset: str | None, title: str, *, as_json: bool) -> None:
    """Print the accounts of a ledger and what its data sets are bound to."""
    accounts = ledger.accounts(dataset)
    bound: dict[str, dict[str, Any]] = {}
    for name in sorted({account.dataset for account in accounts}):
        roles = ledger.roles(name)
        bound[name] = {
            "level": roles.level,
            "public": sorted(roles.public),
            "public_gaps": sorted(roles.public_gaps or ()),
            "rows_per_person": roles.rows_per_person,
        }
    rows = [
        {
            "dataset": account.dataset,
            "analyst": account.analyst or None,
            "epsilon": float(account.total.epsilon_text),
            "spent": float(account.spent.epsilon_text),
            "left": float(account.left.epsilon_text),
            "delta": float(account.total.delta_text),
            "delta_left": float(account.left.delta_text),
        }
        for account in accounts
    ]
    if as_json:
        print_json(
            [row | bound[account.dataset] for row, account in zip(rows, accounts, strict=True)]
        )
        return
    print_table(rows, title)
    print_table(
        [
            {"dataset": name} | {key: ", ".join(held) if isinstance(held, list) else held
                                 for key, held in facts.items()}
            for name, facts in bound.items()
        ],
        "Bound to",
    )  # fmt: skip


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "at": entry.at,
        "kind": entry.kind,
        "dataset": entry.dataset,
        "analyst": entry.analyst or None,
        "request": entry.request or None,
        "epsilon": float(entry.cost.epsilon_text),
        "delta": float(entry.cost.delta_text),
        "hash": entry.hash,
    }


def _entry_lines(entry: Entry) -> str:
    """Return an entry over several lines, so that 80 columns hold a whole hash."""
    grants = {"create": "grants ", "cap": "caps at ", "charge": "spends "}
    amount = f"  {grants[entry.kind]}{entry.cost}" if entry.kind in grants else ""
    named = [
        ("data set", entry.dataset),
        ("analyst", entry.analyst),
        ("request", entry.request if entry.plan else ""),
        ("hash", entry.hash),
    ]
    lines = [f"{entry.sequence:4}  {entry.kind:7}  {entry.at}{amount}"]
    lines += [f"      {name:8}  {text}" for name, text in named if text]
    return "\n".join(lines)
