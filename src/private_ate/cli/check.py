"""`private-ate check`: the curator's look at a file before any ε is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from private_ate.cli import flags
from private_ate.cli.arms import ArmFlags

if TYPE_CHECKING:
    from private_ate.checking.findings import DataCheck

__all__ = ["check"]


def check(
    data: Annotated[
        Path, typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="DATA")
    ],
    level: Annotated[
        str | None, typer.Option(help="The level that is planned: label or sample.")
    ] = None,
    treatment: flags.TreatmentColumn = None,
    outcome: flags.OutcomeColumn = None,
    covariates: flags.Covariates = None,
    domain: flags.DomainFile = None,
    outcome_bounds: flags.OutcomeBounds = None,
    binary_outcome: flags.IsBinary = False,
    event_label: flags.EventLabel = None,
    missing_outcomes: flags.MissingOutcomes = None,
    bounds: flags.Bounds = None,
    categories: flags.Categories = None,
    treated: flags.Treated = None,
    control: flags.Control = None,
    arms: flags.Arms = None,
    reference: flags.Reference = None,
    treatment_bins: flags.TreatmentBins = None,
    by: flags.By = None,
    person: flags.Person = None,
    rows_per_person: flags.RowsPerPerson = 1,
    leave_out_undeclared: Annotated[
        bool,
        typer.Option("--leave-out-undeclared", help="Rows of no arm are left out on purpose."),
    ] = False,
    memory_limit: Annotated[
        str, typer.Option(help="Memory above which a file is streamed.", metavar="SIZE")
    ] = "1GB",
    sep: flags.Separator = None,
    decimal: flags.DecimalSign = None,
    encoding: flags.EncodingName = None,
    header_row: flags.HeaderRow = None,
    skip_rows: flags.SkippedRows = None,
    sheet: flags.SheetName = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Curator only: also write a page.", metavar="OUT.html")
    ] = None,
    quiet: flags.Quiet = False,
) -> None:
    """Compare a file with its domain before estimating. NOT private: for the curator alone.

    Exits with 1 if something would bend the estimate, 0 otherwise. Spends and stores nothing.
    """
    from private_ate.checking.check import check_data  # keeps --help fast
    from private_ate.cli.estimate import declared_domain, named_covariates  # as above
    from private_ate.cli.pages import require_folder  # as above
    from private_ate.cli.progress import watch  # as above
    from private_ate.data.files import described_file, write_whole  # as above

    require_folder(html)
    known = declared_domain(
        treatment, outcome, domain, outcome_bounds=outcome_bounds, binary=binary_outcome,
        event_label=event_label, missing=missing_outcomes,
        bounds=bounds or [], categories=categories or [],
        arms=ArmFlags(treated, control, arms, reference, treatment_bins),
    )  # fmt: skip
    file = described_file(
        data, sep=sep, decimal=decimal, encoding=encoding, header_row=header_row,
        skip_rows=skip_rows, sheet=sheet,
    )  # fmt: skip
    with watch("checking", quiet=quiet or json) as progress:
        found = check_data(
            file,
            domain=known,
            level=cast("Any", level),
            covariates=named_covariates(covariates),
            by=[] if by is None else [text.strip() for text in by.split(",")],
            person=person,
            rows_per_person=rows_per_person,
            leave_out_undeclared=leave_out_undeclared,
            memory_limit=memory_limit,
            progress=progress,
        )
    _show(found, as_json=json)
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

    from private_ate.checking.text import check_lines  # as above

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
