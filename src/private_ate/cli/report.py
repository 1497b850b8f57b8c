"""`private-ate report`: a saved release shown again, as text, as a page or as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from private_ate.arguments import one_of
from private_ate.cli import flags
from private_ate.cli.saved import read_release, require_apart
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.report.html import PublicFacts

__all__ = ["report"]


def report(
    release: Annotated[
        Path, typer.Argument(help="A release in JSON, as --out saves it.", metavar="R.json")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Write a file: .html (a page), .md, .tex, .csv or .txt.", metavar="PAGE"),
    ] = None,
    domain: flags.DomainFile = None,
    contrasts: flags.ShownContrasts = "all",
    p_values: Annotated[
        bool, typer.Option("--p-values", help="In .md, .tex and .csv: add tests of no effect.")
    ] = False,
) -> None:
    """Show a saved release again, here or as a file; spends nothing and needs no data.

    The file is taken at its word: "private-ate ledger verify --release R.json" says whether it is
    what the ledger stored.
    """
    from private_ate.cli.estimate import require_writable, show  # keeps --help fast
    from private_ate.data.files import write_whole  # as above

    one_of("contrasts", contrasts, ("all", "reference"))
    shown = cast("Literal['all', 'reference']", contrasts)
    saved = read_release(release)
    if out is None:
        show(saved, as_json=False, contrasts=shown)
        return
    require_writable(out)
    require_apart({"R.json": release, "--out": out, "--domain": domain})
    write_whole(out, _written(saved, out, domain, shown, p_values=p_values))


def _written(
    release: Release,
    out: Path,
    domain: Path | None,
    contrasts: Literal["all", "reference"],
    *,
    p_values: bool,
) -> str:
    """Return a release in the form that the name of a file asks for."""
    match out.suffix.lower():
        case ".html" | ".htm":
            return release.to_html(_facts(release, domain), contrasts=contrasts)
        case ".md":
            return release.to_markdown(contrasts, p_values=p_values)
        case ".tex":
            return release.to_latex(contrasts, p_values=p_values)
        case ".csv":
            return release.to_csv(p_values=p_values)
        case ".txt":
            return release.to_text(contrasts) + "\n"
    msg = f"a release is written as .html, .md, .tex, .csv or .txt, not as {out.name!r}"
    raise ArgumentError(msg)


def _facts(release: Release, domain: Path | None) -> PublicFacts:
    """Return what a file with the declared domain adds to a page; it is about the same columns."""
    from private_ate.report.html import PublicFacts  # keeps --help fast

    if domain is None:
        return PublicFacts()
    from private_ate.domain import Domain  # as above

    known = Domain.read(domain)
    named = (release.treatment, known.treatment), (release.outcome, known.outcome)
    if any(told is not None and told.column != said.column for told, said in named):
        msg = f"{str(domain)!r} declares another treatment or outcome than the release has"
        raise ArgumentError(msg)
    return PublicFacts(domain=known.to_toml())
