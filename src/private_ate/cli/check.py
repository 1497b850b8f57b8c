"""`private-ate check`: the curator's look at a file before any ε is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from private_ate.cli import flags
from private_ate.cli.declared import declared_domain
from private_ate.cli.estimate import described
from private_ate.cli.output import require_folder, watch
from private_ate.parameters import keywords_of

if TYPE_CHECKING:
    from private_ate.checking.findings import DataCheck


@flags.takes_flags("check")
def check(
    data: flags.DataFile,
    level: Annotated[
        str | None, typer.Option(help="The level that is planned: label or sample.")
    ] = None,
    leave_out_undeclared: Annotated[
        bool,
        typer.Option("--leave-out-undeclared", help="Rows of no arm are left out on purpose."),
    ] = False,
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Compare a file with its domain before estimating. NOT private: for the curator alone.

    Exits with status 1 if a problem would bias the estimate, 0 otherwise. Spends and stores
    nothing.
    """
    from private_ate.checking.check import check_data  # keeps --help fast
    from private_ate.data.files import write_whole  # as above

    html = given["html"]
    require_folder(html)
    known = declared_domain(given)
    asked = {**given, "level": level, "leave_out_undeclared": leave_out_undeclared}
    with watch("checking", quiet=given["quiet"] or given["json"]) as progress:
        found = check_data(
            described(data, given),
            domain=known,
            progress=progress,
            **keywords_of("check", "check_data", asked),
        )
    _show(found, as_json=given["json"])
    if html is not None:
        write_whole(html, found.to_html())
    if found.bends:
        raise typer.Exit(1)


def _show(found: DataCheck, *, as_json: bool) -> None:
    if as_json:
        typer.echo(found.to_json())
        return
    from rich.console import Console  # keeps --help fast
    from rich.text import Text  # as above

    from private_ate.checking.rendering import check_lines  # as above

    console = Console(highlight=False)
    for line, style in check_lines(found, min(console.width, 100)):
        console.print(Text(line, style), soft_wrap=True)  # never read as markup
    for finding in found.findings:
        if finding.topic == "persons":
            most = finding.counts["largest"]
            console.print(
                f"Say --rows-per-person {most} or --person {finding.column}", markup=False
            )
    if any(finding.topic == "decimal commas" for finding in found.findings):
        console.print("Decimal commas throughout the file are read with --decimal ,")
