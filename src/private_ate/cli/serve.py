"""`private-ate serve`: a service for analysts who may not touch records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from private_ate.cli import flags

if TYPE_CHECKING:
    from private_ate.ledger.stores import Execute, Store
    from private_ate.service.operations import Service
    from private_ate.service.processes import Config

app = typer.Typer(
    help="A service: analysts ask by plan, records stay with a worker, a ledger counts.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Folder = Annotated[Path, typer.Argument(help="The service's folder.", metavar="FOLDER")]


@contextmanager
def _worker_side(folder: Path) -> Iterator[tuple[Config, Store, Service]]:
    """Open a service with the worker's address of its store."""
    from private_ate.service import processes  # keeps --help fast

    config = processes.read_config(folder).for_worker()
    with processes.open_service(config) as (store, service):
        yield config, store, service


@contextmanager
def _changes(folder: Path) -> Iterator[Execute]:
    with _worker_side(folder) as (_, store, _), store.transaction() as execute:
        yield execute


@app.command()
def demo(
    port: Annotated[int, typer.Option(help="Port on loopback.")] = 8470,
    folder: Annotated[
        Path | None, typer.Option(help="Keep it here; otherwise it is gone afterwards.")
    ] = None,
) -> None:
    """Run on loopback with a simulated study and a token for each role.

    A terminal shows the tokens; otherwise they are in a file, tokens.txt, in the folder.
    """
    import sys  # keeps --help fast
    import tempfile  # as above

    from private_ate.service import processes  # keeps --help fast

    shows_tokens = sys.stdout.isatty()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        processes.run_demo(folder, port, typer.echo, shows_tokens=shows_tokens)
        return
    with tempfile.TemporaryDirectory(prefix="private-ate-") as config:
        processes.run_demo(Path(config), port, typer.echo, shows_tokens=shows_tokens)


@app.command()
def init(
    folder: Folder,
    store: Annotated[
        str, typer.Option(help="A postgresql:// URL; a SQLite file in FOLDER without.")
    ] = "",
    origin: Annotated[
        str, typer.Option(help="Address as browsers see it, e.g. https://ate.example.org.")
    ] = "",
    port: Annotated[int, typer.Option(help="Port on loopback.")] = 8470,
    curator: Annotated[str, typer.Option(help="Name of the first curator.")] = "curator",
) -> None:
    """Make a folder with a store, keys and systemd units; print the first curator's token."""
    from private_ate.service import processes  # keeps --help fast

    token = processes.create_service(folder, store=store, origin=origin, port=port, curator=curator)
    units = processes.write_units(folder)
    typer.echo(f"The token of {curator!r}, shown once:\n\n  {token}\n")
    typer.echo(f"Put records into {folder / 'data'}, readable by the worker's user alone.")
    typer.echo(f"Units for systemd are in {units}.")


@app.command()
@flags.takes_flags("domain", only=flags.READING)
def add(
    folder: Folder,
    source: Annotated[str, typer.Argument(help="File below the worker's data folder.")],
    domain: Annotated[Path, typer.Option(help="TOML file that declares it.", metavar="FILE")],
    name: Annotated[str, typer.Option(help="Name of the data set.")],
    population: Annotated[str, typer.Option(help="The persons; their budget is shared.")],
    level: Annotated[str, typer.Option(help="What is private: label or sample.")],
    epsilon: Annotated[
        str | None, typer.Option(help="Total budget of a new population.", metavar="E")
    ] = None,
    rows_per_person: Annotated[int, typer.Option(help="Rows one person may have.")] = 1,
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Register a data set on the worker's side: reads the header and counts the rows."""
    from private_ate.domain import Domain  # keeps --help fast
    from private_ate.service import processes  # keeps --help fast
    from private_ate.service.store.catalogue import write_source  # as above

    with _worker_side(folder) as (config, store, _):
        processes.add_file(
            config, store, write_source(source, **given), Domain.read(domain), name=name,
            population=population, level=level, epsilon=epsilon, rows_per_person=rows_per_person,
        )  # fmt: skip
    typer.echo(f"data set {name!r} belongs to population {population!r}")


@app.command()
def web(folder: Folder) -> None:
    """Serve pages and the interface for programs; needs no right to the records."""
    from private_ate.service import processes  # keeps --help fast

    processes.run_web(processes.read_config(folder))


@app.command()
def work(
    folder: Folder,
    name: Annotated[str, typer.Option(help="Name of this worker, if there are several.")] = "",
) -> None:
    """Run requests, one process each; no other command reads records."""
    from private_ate.service import processes  # keeps --help fast

    processes.run_work(processes.read_config(folder), name)


@app.command()
def verify(
    folder: Folder,
    head: Annotated[
        str | None, typer.Option(help="A hash from a release or from /v1/heads.")
    ] = None,
) -> None:
    """Check both histories, the budgets and every request's state; exits with 2 if not."""
    from private_ate.service import processes  # keeps --help fast
    from private_ate.service.histories import verify_service  # as above

    config = processes.read_config(folder)
    if (folder / "worker.toml").is_file():
        config = config.for_worker()
    with processes.open_service(config) as (store, _):
        found = verify_service(store, head)
    typer.echo(
        f"verified: {found.entries} entries of the ledger, {found.events} events, "
        f"{found.requests} requests\nhead {found.head}"
    )


@app.command()
def policy(
    folder: Folder,
    dataset: Annotated[str, typer.Argument(help="Name of the data set.", metavar="DATASET")],
    file: Annotated[
        Path, typer.Argument(help="JSON with what is approved at once.", metavar="FILE")
    ],
    curator: Annotated[str, typer.Option(help="Who decides; for the history.")] = "setup",
) -> None:
    """Replace what a data set's policy approves by itself, on the worker's side."""
    from json import loads  # keeps --help fast

    from private_ate.errors import ArgumentError  # as above
    from private_ate.service.policy import Policy  # as above
    from private_ate.service.store.catalogue import set_policy  # as above

    try:
        new = Policy.read(loads(file.read_text("utf-8")))
    except (OSError, ValueError) as cause:
        msg = f"the policy {str(file)!r} cannot be read as JSON"
        raise ArgumentError(msg) from cause
    with _changes(folder) as execute:
        is_held = set_policy(execute, dataset, new, curator)
    done = "was replaced" if is_held else "is proposed; a second person confirms it"
    typer.echo(f"the policy of {dataset!r} {done}")


@app.command()
def user(
    folder: Folder,
    name: Annotated[str, typer.Argument(help="Who it is.", metavar="NAME")],
    role: Annotated[str, typer.Option(help="analyst, curator or auditor.")] = "curator",
    days: Annotated[int, typer.Option(help="Days until the token ends.")] = 90,
) -> None:
    """Add a user on the machine itself and print a token, shown once.

    Two curators count as two persons only if neither issued an account or a token to the other.
    """
    from private_ate.service.store.events import now  # keeps --help fast
    from private_ate.service.store.users import add_user, issue_token  # as above

    with _changes(folder) as execute:
        add_user(execute, name, role, "setup", now())
        token = issue_token(execute, name, "setup", now(), days=days)
    typer.echo(f"The token of {name!r}, shown once:\n\n  {token}\n")


@app.command()
def approve(
    folder: Folder,
    request: Annotated[str, typer.Argument(help="Id of the request.", metavar="REQUEST")],
    plan: Annotated[str, typer.Option(help="Hash of the plan that is approved.", metavar="HASH")],
    curator: Annotated[str, typer.Option(help="Who approves.")],
) -> None:
    """Approve a plan that waits, on the worker's side."""
    from private_ate.service import processes  # keeps --help fast

    with _worker_side(folder) as (_, _, service):
        state = processes.approve_plan(service, request, plan, curator)
    typer.echo(f"request {request} is {state}")


@app.command()
def rights(
    folder: Folder,
    role: Annotated[str, typer.Argument(help="The web's role in the database.", metavar="ROLE")],
) -> None:
    """Let the web's own role in PostgreSQL ask, and neither pay nor approve."""
    from private_ate.errors import ArgumentError  # keeps --help fast
    from private_ate.service.store.tables import grant_web  # as above

    with _worker_side(folder) as (config, store, _):
        if "://" not in config.store:
            msg = "a SQLite file has no roles; separate ones need PostgreSQL"
            raise ArgumentError(msg)
        grant_web(store, role)
    typer.echo(f"role {role!r} has the rights of the web process, and no others")
