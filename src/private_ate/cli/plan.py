"""`private-ate plan`: what to expect before any ε is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from private_ate.cli import flags
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    from private_ate.planning import Plan

__all__ = ["plan"]


def plan(
    level: flags.LevelName,
    data: Annotated[
        Path | None, typer.Argument(help="CSV or Parquet file.", metavar="[DATA]")
    ] = None,
    treatment: flags.TreatmentColumn = None,
    outcome: flags.OutcomeColumn = None,
    covariates: flags.Covariates = None,
    domain: flags.DomainFile = None,
    outcome_bounds: flags.OutcomeBounds = None,
    binary_outcome: flags.IsBinary = False,
    bounds: flags.Bounds = None,
    categories: flags.Categories = None,
    treated: flags.Treated = None,
    control: flags.Control = None,
    target: flags.TargetName = "balance",
    neighbors: flags.Neighbors = 5,
    estimand: flags.EstimandName = "ate",
    design: flags.DesignName = "unknown",
    confidence: flags.Confidence = "0.95",
    rows_per_person: flags.RowsPerPerson = 1,
    settings: flags.Settings = None,
    epsilons: Annotated[
        str, typer.Option(help="Budgets to compare, separated by commas.")
    ] = "0.1,0.2,0.5,1,2,4,8",
    half_width: Annotated[
        float | None, typer.Option(help="Find the ε for this half-width.", metavar="W")
    ] = None,
    treated_share: Annotated[
        float, typer.Option(help="Sample level: guessed share of treated units.")
    ] = 0.5,
    rows: Annotated[
        int | None, typer.Option(help="Sample level without DATA: number of rows.")
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Sample level without DATA: number of covariates.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw expected error against ε (.svg or .png).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show expected error and interval width for a list of ε; spends nothing."""
    from private_ate.cli.estimate import (  # keeps --help fast
        declared_domain,
        method_options,
        named_covariates,
        parse_confidence,
        split_names,
    )
    from private_ate.cli.progress import watch  # as above
    from private_ate.planning import plan_ate  # as above

    source: object = data
    known = None
    if data is None:
        source = _sizes(level, rows, dimension, outcome_bounds, binary=binary_outcome)
    else:
        known = declared_domain(
            treatment, outcome, domain, outcome_bounds=outcome_bounds, binary=binary_outcome,
            bounds=bounds or [], categories=categories or [], treated=treated, control=control,
        )  # fmt: skip
    with watch("planning", quiet=json) as progress:
        planned = plan_ate(
            source,
            level=cast("Any", level),
            domain=known,
            epsilons=split_names(epsilons) or [],
            half_width=half_width,
            covariates=named_covariates(covariates),
            target=cast("Any", target),
            neighbors=neighbors,
            estimand=cast("Any", estimand),
            design=cast("Any", design),
            confidence=parse_confidence(confidence),
            rows_per_person=rows_per_person,
            treated_share=treated_share,
            options=cast("Any", method_options("auto", level, settings or [])),
            progress=progress,
        )
    if plot is not None:
        from private_ate.report.plots import draw_plan  # matplotlib is an extra

        draw_plan(planned, plot)
    _show(planned, as_json=json)


def _sizes(
    level: str,
    rows: int | None,
    dimension: int | None,
    outcome_bounds: tuple[float, float] | None,
    *,
    binary: bool,
) -> object:
    from private_ate.planning import StudySizes  # keeps --help fast

    if level in get_args(Level) and has_public_covariates(cast("Level", level)):
        msg = f"the {level} level plans from the public covariates and treatment; give DATA"
        raise ArgumentError(msg)
    bounds = (0.0, 1.0) if binary else outcome_bounds
    if rows is None or dimension is None or bounds is None:
        msg = "without DATA give --rows, --dimension and --outcome-bounds LO HI"
        raise ArgumentError(msg)
    return StudySizes(rows, dimension, bounds[1] - bounds[0], binary)


def _show(planned: Plan, *, as_json: bool) -> None:
    if as_json:
        import json  # keeps --help fast

        typer.echo(json.dumps(planned.to_dict(), indent=2, ensure_ascii=False))
        return
    from rich.console import Console  # keeps --help fast
    from rich.table import Table  # as above

    table = Table(title=f"What to expect, {planned.level} level", title_justify="left")
    for name in ("ε", "noise", "sampling", "error", "half-width"):
        table.add_column(name, justify="right")
    table.add_column("note")
    for row in planned.rows:
        table.add_row(f"{row.epsilon:g}", *row.texts, row.note)
    console = Console(highlight=False)
    console.print(table)
    if planned.answer:
        console.print(planned.answer)
    console.print(f"This plan {planned.caveat}. Nothing was spent.")
