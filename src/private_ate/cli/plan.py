"""`private-ate plan`: what to expect before any ε is spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from private_ate.cli import flags
from private_ate.cli.arms import ArmFlags, with_survival
from private_ate.cli.output import print_json, watch
from private_ate.errors import ArgumentError
from private_ate.parameters import keywords_of

if TYPE_CHECKING:
    from private_ate.domain import Domain, Treatment


@flags.takes_flags("plan")
def plan(
    data: Annotated[
        Path | None,
        typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="[DATA]"),
    ] = None,
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Show expected error and interval width for a list of ε; spends nothing."""
    from private_ate.cli.estimate import (  # keeps --help fast
        declared_domain,
        described,
        method_options,
    )
    from private_ate.planning import plan_ate  # as above

    declared = None
    if data is None:
        source = _sizes(given)
        declared = _several_arms(given)
        known = _several_outcomes(given["domain"], given["outcome"])
        if given["horizon"] is not None or (given["domain"] is not None and known is None):
            known = _planned_survival(given)
    else:
        source, known = described(data, given), declared_domain(given)
    settings = [*(given["settings"] or []), *["means=true"] * given["means"]]
    chosen = method_options("auto", given["level"], settings)
    with watch("planning", quiet=given["quiet"] or given["json"]) as progress:
        planned = plan_ate(
            source,
            treatment=declared,
            domain=known,
            options=cast("Any", chosen),
            progress=progress,
            **keywords_of("plan", "plan_ate", given),
        )
    if given["plot"] is not None:
        from private_ate.report.plots import draw_plan  # matplotlib is an extra

        draw_plan(planned, given["plot"])
    if given["json"]:
        print_json(planned.to_dict())
    else:
        typer.echo(str(planned))


def _several_outcomes(path: Path | None, outcome: list[str] | None) -> Domain | None:
    """Return the domain of several outcomes of a study that is not there yet; None for one."""
    from private_ate.data.inputs import resolve_domain  # keeps --help fast
    from private_ate.domain import Domain  # as above

    if path is None:
        if outcome is not None and len(set(outcome)) > 1:
            msg = "without DATA several outcomes are those of a --domain FILE"
            raise ArgumentError(msg)
        return None
    names = list(dict.fromkeys(outcome)) if outcome else None
    known = resolve_domain(Domain.read(path), None, names)
    return known if known.further else None


def _planned_survival(given: Mapping[str, Any]) -> Domain | None:
    """Return the domain of a time to an event in a study that is not there yet; None for others."""
    from private_ate.domain import Domain, Survival  # as above

    path = given["domain"]
    base = Domain("t", given["time"] or "time") if path is None else Domain.read(path)
    if path is None:
        usual = {"time": "time", "event": "event", "event_label": "1"}
        given = {**given, **{name: given[name] or word for name, word in usual.items()}}
    known = with_survival(base, given)
    return known if isinstance(known.outcome, Survival) else None


def _several_arms(given: Mapping[str, Any]) -> Treatment | None:
    """Return three arms or more of a study that is not there yet; None for two."""
    from private_ate.domain import Domain, Treatment  # keeps --help fast

    path = given["domain"]
    base = Treatment("t") if path is None else Domain.read(path).treatment
    declared = ArmFlags.of(given).declare(base)
    return declared if declared.size > 2 else None


def _sizes(given: Mapping[str, Any]) -> object:
    """Return the sizes of a study that is not there yet; a domain file gives what it can."""
    from private_ate.domain import Binary, Domain, Interval  # keeps --help fast
    from private_ate.planning import StudySizes  # as above

    known = None if given["domain"] is None else Domain.read(given["domain"])
    limits = None if known is None else known.outcome.bounds
    if given["horizon"] is not None:
        limits = Interval(0, given["horizon"])
    if given["binary_outcome"]:
        limits = Binary()
    elif given["outcome_bounds"] is not None:
        limits = Interval(*given["outcome_bounds"])
    if known is not None and known.weights is not None:
        msg = "sampling weights are a column of a table; they are planned for with DATA"
        raise ArgumentError(msg)
    dimension = given["dimension"]
    if dimension is None and known is not None:
        dimension = len(known.features)
    if dimension is None or limits is None:
        msg = "without DATA give --dimension and --outcome-bounds LO HI, or --domain FILE"
        raise ArgumentError(msg)
    return StudySizes.declared(given["rows"], dimension, limits)
