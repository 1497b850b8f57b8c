"""`private-ate plan`: what to expect before any ε is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from private_ate.cli import flags
from private_ate.cli.arms import ArmFlags
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.domain import Domain, Treatment
    from private_ate.planning import Plan

__all__ = ["plan"]


def plan(
    level: flags.LevelName,
    data: Annotated[
        Path | None,
        typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="[DATA]"),
    ] = None,
    treatment: flags.TreatmentColumn = None,
    outcome: flags.OutcomeColumn = None,
    covariates: flags.Covariates = None,
    domain: flags.DomainFile = None,
    weights: flags.WeightsColumn = None,
    outcome_bounds: flags.OutcomeBounds = None,
    binary_outcome: flags.IsBinary = False,
    bounds: flags.Bounds = None,
    categories: flags.Categories = None,
    treated: flags.Treated = None,
    control: flags.Control = None,
    arms: flags.Arms = None,
    reference: flags.Reference = None,
    treatment_bins: flags.TreatmentBins = None,
    target: flags.TargetName = "balance",
    neighbors: flags.Neighbors = 5,
    estimand: flags.EstimandName = "ate",
    among: flags.Among = None,
    by: flags.By = None,
    overall: flags.Overall = False,
    design: flags.DesignName = "unknown",
    probability: flags.Probability = None,
    confidence: flags.Confidence = "0.95",
    means: flags.Means = False,
    rows_per_person: flags.RowsPerPerson = 1,
    person: flags.Person = None,
    outcome_sd: flags.OutcomeDeviation = None,
    settings: flags.Settings = None,
    epsilons: Annotated[
        str, typer.Option(help="Budgets to compare, separated by commas.")
    ] = "0.1,0.2,0.5,1,2,4,8",
    half_width: Annotated[
        float | None, typer.Option(help="Find what reaches this half-width.", metavar="W")
    ] = None,
    solve: Annotated[
        str | None,
        typer.Option(help="Find epsilon or rows; without --rows and DATA: rows.", metavar="WHAT"),
    ] = None,
    treated_share: Annotated[
        float, typer.Option(help="Guessed share of treated units, if treatment is not read.")
    ] = 0.5,
    arm_shares: Annotated[
        str | None,
        typer.Option(help="Guessed shares of several arms, if not read.", metavar="P,Q,R"),
    ] = None,
    overlap: Annotated[
        str, typer.Option(help="Guessed overlap of the arms, if not read: good or poor.")
    ] = "good",
    mean_weight: Annotated[
        float | None,
        typer.Option(help="Guessed mean sampling weight at sample level; default: half its bound."),
    ] = None,
    explained: Annotated[
        float | None,
        typer.Option(help="Guessed share of the outcome's variance that covariates explain."),
    ] = None,
    rows: Annotated[int | None, typer.Option(help="Without DATA: number of rows.")] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Without DATA: number of encoded covariates.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw expected error against ε (.svg or .png).")
    ] = None,
    sep: flags.Separator = None,
    decimal: flags.DecimalSign = None,
    encoding: flags.EncodingName = None,
    header_row: flags.HeaderRow = None,
    skip_rows: flags.SkippedRows = None,
    sheet: flags.SheetName = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: flags.Quiet = False,
) -> None:
    """Show expected error and interval width for a list of ε; spends nothing."""
    from private_ate.cli.estimate import (  # keeps --help fast
        declared_domain,
        method_options,
        named_covariates,
        parse_confidence,
        parse_deviations,
        parse_probability,
        split_names,
    )
    from private_ate.cli.progress import watch  # as above
    from private_ate.data.files import described_file  # as above
    from private_ate.planning import plan_ate  # as above

    source: object = None
    known = declared = None
    flagged = ArmFlags(treated, control, arms, reference, treatment_bins)
    if data is None:
        source = _sizes(rows, dimension, outcome_bounds, domain, binary=binary_outcome)
        declared = _several_arms(domain, flagged)
        known = _several_outcomes(domain, outcome)
    else:
        source = described_file(
            data, sep=sep, decimal=decimal, encoding=encoding, header_row=header_row,
            skip_rows=skip_rows, sheet=sheet,
        )  # fmt: skip
        known = declared_domain(
            treatment, outcome, domain, outcome_bounds=outcome_bounds, binary=binary_outcome,
            bounds=bounds or [], categories=categories or [], arms=flagged,
            weights=weights,
        )  # fmt: skip
    with watch("planning", quiet=quiet or json) as progress:
        planned = plan_ate(
            source,
            level=cast("Any", level),
            treatment=declared,
            domain=known,
            epsilons=split_names(epsilons) or [],
            half_width=half_width,
            covariates=named_covariates(covariates),
            target=cast("Any", target),
            neighbors=neighbors,
            estimand=cast("Any", estimand),
            design=cast("Any", design),
            probability=parse_probability(probability),
            confidence=parse_confidence(confidence),
            rows_per_person=rows_per_person,
            person=person,
            outcome_sd=parse_deviations(outcome_sd),
            explained=explained,
            solve=cast("Any", solve),
            treated_share=treated_share,
            arm_shares=None if arm_shares is None else _shares(arm_shares),
            among=among,
            by=[] if by is None else [text.strip() for text in by.split(",")],
            overall=overall,
            overlap=cast("Any", overlap),
            mean_weight=mean_weight,
            options=cast(
                "Any",
                method_options("auto", level, [*(settings or []), *["means=true"] * means]),
            ),
            progress=progress,
        )
    if plot is not None:
        from private_ate.report.plots import draw_plan  # matplotlib is an extra

        draw_plan(planned, plot)
    _show(planned, as_json=json)


def _several_outcomes(path: Path | None, outcome: list[str] | None) -> Domain | None:
    """Return the domain of several outcomes of a study that is not there yet; None for one."""
    from private_ate.data.inputs import resolve_domain  # keeps --help fast
    from private_ate.domain import Domain  # as above

    if path is None:
        if outcome is not None and len(outcome) > 1:
            msg = "without DATA several outcomes are those of a --domain FILE"
            raise ArgumentError(msg)
        return None
    known = resolve_domain(Domain.read(path), None, outcome or None)
    return known if known.further else None


def _several_arms(path: Path | None, flagged: ArmFlags) -> Treatment | None:
    """Return three arms or more of a study that is not there yet; None for two."""
    from private_ate.domain import Domain, Treatment  # keeps --help fast

    base = Treatment("t") if path is None else Domain.read(path).treatment
    declared = flagged.declare(base)
    return declared if declared.size > 2 else None


def _shares(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as cause:
        msg = f"write --arm-shares 0.6,0.3,0.1: a share for each arm, not {text[:60]!r}"
        raise ArgumentError(msg) from cause


def _sizes(
    rows: int | None,
    dimension: int | None,
    outcome_bounds: tuple[float, float] | None,
    path: Path | None,
    *,
    binary: bool,
) -> object:
    """Return the sizes of a study that is not there yet; a domain file tells what it can."""
    from private_ate.domain import Binary, Domain, Interval  # keeps --help fast
    from private_ate.planning import StudySizes  # as above

    known = None if path is None else Domain.read(path)
    limits = None if known is None else known.outcome.bounds
    if binary:
        limits = Binary()
    elif outcome_bounds is not None:
        limits = Interval(*outcome_bounds)
    if known is not None and known.weights is not None:
        msg = "sampling weights are a column of a table; they are planned for with DATA"
        raise ArgumentError(msg)
    if dimension is None and known is not None:
        dimension = len(known.features)
    if dimension is None or limits is None:
        msg = "without DATA give --dimension and --outcome-bounds LO HI, or --domain FILE"
        raise ArgumentError(msg)
    return StudySizes.declared(rows, dimension, limits)


def _show(planned: Plan, *, as_json: bool) -> None:
    if as_json:
        import json  # keeps --help fast

        typer.echo(json.dumps(planned.to_dict(), indent=2, ensure_ascii=False))
        return
    typer.echo(str(planned))
