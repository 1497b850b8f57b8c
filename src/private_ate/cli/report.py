"""`private-ate report`: a saved release shown again: text, a page, a table or a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from private_ate.arguments import one_of
from private_ate.cli import flags
from private_ate.cli.output import read_release, require_apart, require_writable, show_release
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.release.public_facts import PublicFacts
    from private_ate.release.release import Release

_FIGURES = (".svg", ".png", ".pdf")


@flags.takes_flags("estimate", only=("domain", "contrasts"))
def report(
    release: Annotated[
        Path, typer.Argument(help="A release in JSON, as --out saves it.", metavar="R.json")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write a page (.html), a table (.docx, .md, .tex, .csv, .txt) or a figure "
            "(.svg, .png, .pdf).",
            metavar="FILE",
        ),
    ] = None,
    figure: Annotated[
        str,
        typer.Option(
            help="What a figure shows: effects, balance of covariates, means of several arms, or "
            "survival curves.",
            metavar="WHAT",
        ),
    ] = "effects",
    p_values: Annotated[
        bool, typer.Option("--p-values", help="In tables: add tests of no effect.")
    ] = False,
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Show a saved release again, here or as a file; spends nothing and needs no data.

    The file is taken at its word: "private-ate ledger verify --release R.json" says whether it is
    what the ledger stored.
    """
    from private_ate.data.files import write_whole  # keeps --help fast

    domain, shown = given["domain"], given["contrasts"]
    one_of("contrasts", shown, ("all", "reference"))
    saved = read_release(release)
    if out is None:
        show_release(saved, as_json=False, contrasts=shown)
        return
    require_writable(out)
    require_apart({"R.json": release, "--out": out, "--domain": domain})
    if out.suffix.lower() in _FIGURES:
        one_of("figure", figure, ("effects", "balance", "means", "curves"))
        _draw(saved, out, shown, figure)
        return
    write_whole(out, _written(saved, out, domain, shown, p_values=p_values))


def _draw(release: Release, out: Path, contrasts: Literal["all", "reference"], figure: str) -> None:
    """Draw what is asked for; the name of the file says in which form."""
    from private_ate.report import plots  # matplotlib is an extra
    from private_ate.report.phrasing import titled_balance  # keeps --help fast

    balance = titled_balance(release)
    if figure == "balance" and not balance:
        msg = "this release holds no balance of covariates, which are public at label level only"
        raise ArgumentError(msg)
    {
        "effects": lambda: plots.draw_effects(release, out, contrasts),
        "means": lambda: plots.draw_means(release, out),
        "curves": lambda: plots.draw_curves(release, out),
        "balance": lambda: plots.draw_balance(balance, out),
    }[figure]()


def _written(
    release: Release,
    out: Path,
    domain: Path | None,
    contrasts: Literal["all", "reference"],
    *,
    p_values: bool,
) -> str | bytes:
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
        case ".docx":
            return release.to_docx(contrasts, p_values=p_values)
        case ".txt":
            return release.to_text(contrasts) + "\n"
    forms = ".html, .docx, .md, .tex, .csv, .txt, .svg, .png or .pdf"
    msg = f"a release is written as {forms}, not as {out.name!r}"
    raise ArgumentError(msg)


def _facts(release: Release, domain: Path | None) -> PublicFacts:
    """Return what a file with the declared domain adds to a page; it is about the same columns."""
    from private_ate.release.public_facts import PublicFacts  # keeps --help fast

    if domain is None:
        return PublicFacts()
    from private_ate.domain import Domain  # as above

    known = Domain.read(domain)
    named = (release.treatment, known.treatment), (release.outcome, known.outcome)
    if any(
        released is not None and released.column != declared.column for released, declared in named
    ):
        msg = f"{str(domain)!r} declares another treatment or outcome than the release has"
        raise ArgumentError(msg)
    return PublicFacts(domain=known.to_toml())
