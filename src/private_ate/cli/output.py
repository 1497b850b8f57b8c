"""What commands write beside their release: files, pages, progress on standard error."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from private_ate.errors import ArgumentError, SchemaError
from private_ate.privacy.levels import has_public_covariates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from private_ate.data.inputs import Covariates
    from private_ate.domain import Domain
    from private_ate.release.public_facts import PublicFacts
    from private_ate.release.release import Release

_PATIENCE = 1.0  # seconds before a bar appears


def read_release(path: Path) -> Release:
    """Read a release that was saved as JSON; errors name the file."""
    from private_ate.release.release import Release  # keeps --help fast

    text = read_text(path)
    try:
        return Release.from_json(text)
    except ArgumentError as cause:
        msg = f"{str(path)!r}: {cause}"
        raise ArgumentError(msg) from cause


def read_text(path: Path) -> str:
    """Read the file of a release."""
    if not path.exists():
        msg = f"there is no file {str(path)!r}"
        raise ArgumentError(msg)
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        msg = f"the release {str(path)!r} cannot be read"
        raise ArgumentError(msg) from cause


def show_release(
    release: Release, *, as_json: bool, contrasts: Literal["all", "reference"] = "all"
) -> None:
    """Print a release as JSON or as a table."""
    if as_json:
        typer.echo(release.to_json())
        return
    from rich.console import Console  # keeps --help fast

    from private_ate.report.text import release_table  # as above

    Console(highlight=False).print(release_table(release, contrasts))


def print_json(value: object) -> None:
    """Print plain values as indented JSON."""
    import json  # keeps --help fast

    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(rows: list[dict[str, Any]], title: str) -> None:
    """Print rows as a table: numbers stay whole, names are folded where a terminal is narrow."""
    from rich.console import Console  # keeps --help fast
    from rich.table import Table  # as above
    from rich.text import Text  # names are shown as they are, not as markup

    table = Table(title=title, title_justify="left")
    for name in rows[0] if rows else ():
        if any(isinstance(row[name], int | float) for row in rows):
            widest = max(len(_cell(row[name])) for row in rows)
            table.add_column(name.replace("_", " "), justify="right", min_width=widest)
        else:
            table.add_column(name.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    Console(highlight=False).print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def require_apart(files: Mapping[str, Path | None]) -> None:
    """Refuse two roles for one file, before anything is spent or overwritten.

    ``files`` are paths by the flag or word that names them. A curator's page in the place of a page
    to share would be handed on; a page in the place of the data or of a ledger would destroy them.
    """
    named = [(role, path) for role, path in files.items() if path is not None]
    for (first, one), (second, other) in combinations(named, 2):
        if _same(one, other):
            msg = f"{first} and {second} name the same file, {str(one)!r}; nothing was done"
            raise ArgumentError(msg)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.resolve() == other.resolve() or one.samefile(other)
    except OSError:  # a file that is not there yet is not another one
        return False


@contextmanager
def watch(
    title: str, *, quiet: bool = False, lines: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callable ``(title, done, total)`` that draws a bar once work takes a second.

    A bar shows how far its pass is, the rate and the time that is left; the next pass of the same
    title starts it anew. Where standard error is no terminal nothing is drawn, unless ``lines``
    asks for a line at the start of each pass: for work that sees no records.
    """
    from rich.console import Console  # keeps --help fast
    from rich.progress import (  # as above
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    rate = TextColumn("{task.fields[rate]}")
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate,
        TimeRemainingColumn(),
        console=console, transient=True, disable=quiet or not console.is_terminal,
    )  # fmt: skip
    writes_lines = lines and not quiet and not console.is_terminal
    tasks: dict[str, TaskID] = {}
    done_before: dict[str, int] = {}
    start = time.monotonic()

    def step(name: str, done: int, total: int) -> None:
        if time.monotonic() - start < _PATIENCE:
            return
        if not tasks:
            bar.start()
        if writes_lines and name not in tasks:
            typer.echo(f"{title}: {name}", err=True)
        if name not in tasks:
            # What an earlier run left is there at once and does not count in the rate.
            tasks[name] = bar.add_task(name or title, total=total, completed=done, rate="")
        elif done < done_before[name]:
            bar.reset(tasks[name], total=total, rate="")
        done_before[name] = done
        speed = bar.tasks[bar.task_ids.index(tasks[name])].speed
        known = "" if speed is None else f"{speed:,.0f}/s"
        bar.update(tasks[name], completed=done, total=total, rate=known)

    try:
        yield step
    finally:
        if bar.live.is_started:  # rich before 14.3 ends a bar that it never drew with an empty line
            bar.stop()


def require_writable(path: Path) -> None:
    """Refuse a path that cannot be written before any budget is spent on what it would hold."""
    if path.is_dir() or not path.parent.is_dir():
        msg = f"the file {str(path)!r} cannot be written; does its folder exist?"
        raise ArgumentError(msg)


def require_folder(path: Path | None) -> None:
    """Refuse a page that could not be written, before any ε is spent."""
    if path is not None and not path.parent.is_dir():
        msg = f"the folder of {str(path)!r} does not exist; nothing was spent"
        raise ArgumentError(msg)


def public_facts(
    release: Release,
    data: object | None,
    domain: Domain,
    covariates: Covariates,
    *,
    options: object | None = None,
    analyst: str | None = None,
    spent_before: float | None = None,
) -> PublicFacts:
    """Gather what a page may add to the release: the command, the domain, public columns by arm.

    Without data, as when a cluster holds them, there is no overlap to show.
    """
    from private_ate.release.public_facts import PublicFacts  # keeps --help fast

    overlap, table = None, None
    if has_public_covariates(release.level) and data is not None:
        from private_ate.diagnostics.overlap import describe_overlap  # as above

        # A release that was made without names, such as one without a guarantee, used all.
        used = "all" if covariates is None and not domain.covariates else covariates
        overlap = describe_overlap(data, domain=domain, covariates=used)
        if domain.weights is None:
            from private_ate.diagnostics.table_one import describe_arms  # as above

            table = describe_arms(release, data, domain=domain, covariates=used, options=options)
    return PublicFacts(
        command=shlex.join(["private-ate", *map(_without_secrets, sys.argv[1:])]),
        domain=domain.to_toml(),
        treatment=domain.treatment.column,
        outcome=domain.outcome.column,
        overlap=overlap,
        table=table,
        analyst=analyst or "",
        spent_before=spent_before,
    )


def spent_before(release: Release, ledger: str | None) -> float | None:
    """Return what the data's budget had spent before this release, as its ledger has it."""
    note = release.facts.ledger
    if ledger is None or note is None:
        return None
    from private_ate.ledger.ledger import Ledger  # as above

    with closing(Ledger.open(ledger)) as held:
        account = next(each for each in held.accounts(note.dataset) if not each.analyst)
    return float(account.total.epsilon_text) - note.left - float(release.epsilon)


def curator_text(
    release: Release,
    data: object,
    domain: Domain,
    covariates: Covariates,
    options: object | None = None,
) -> str:
    """Return the curator's page; what it cannot show it says on the page and nowhere else."""
    from private_ate.diagnostics.exact import diagnose_ate  # numba loads here
    from private_ate.report.curator import refused_page  # keeps --help fast

    try:
        diagnostics = diagnose_ate(
            data,
            domain=domain,
            covariates=covariates,
            epsilon=float(release.epsilon),
            neighbors=release.facts.neighbors or 5,
            release=release,
            options=options,
        )
    except SchemaError as error:  # an empty arm is private at sample level
        return refused_page(str(error))
    return diagnostics.to_html(release)


def _without_secrets(argument: str) -> str:
    """Keep of a URL its scheme only: the address of a team's ledger may hold a password."""
    return re.sub(r"(\w+://).*", r"\1…", argument, flags=re.DOTALL)
