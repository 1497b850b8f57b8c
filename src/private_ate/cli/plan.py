"""`private-ate plan`: what to expect before any ε is spent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from private_ate.cli import flags
from private_ate.cli.declared import declared_arms, declared_domain, with_survival
from private_ate.cli.estimate import described, method_options
from private_ate.cli.output import print_json, watch
from private_ate.errors import ArgumentError
from private_ate.parameters import keywords_of

if TYPE_CHECKING:
    from private_ate.domain import Domain, Treatment
    from private_ate.planning import StudySizes


@flags.takes_flags("plan")
def plan(
    data: Annotated[
        Path | None,
        typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="[DATA]"),
    ] = None,
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Show expected error and interval width for a list of ε; spends nothing."""
    from private_ate.planning import plan_ate  # keeps --help fast

    source: Any
    if data is None:
        source, known, declared = _planned_study(given)
    else:
        source, known, declared = described(data, given), declared_domain(given), None
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


def _planned_study(
    given: Mapping[str, Any],
) -> tuple[StudySizes, Domain | None, Treatment | None]:
    """Return what is known of a study that is not there yet; a domain file gives what it can.

    That are its sizes, its domain if it has several outcomes or a time to an event, and its arms if
    there are three or more.
    """
    from private_ate.data.inputs import resolve_domain  # keeps --help fast
    from private_ate.domain import Domain, Treatment  # as above

    names = list(dict.fromkeys(given["outcome"] or ())) or None
    if given["domain"] is None:
        if names is not None and len(names) > 1:
            msg = "without DATA several outcomes are those of a --domain FILE"
            raise ArgumentError(msg)
        known = None
        arms = declared_arms(given, Treatment("t"))
    else:
        known = Domain.read(given["domain"])
        arms = declared_arms(given, known.treatment)
    sizes = _sizes(given, known)
    named = None if known is None else resolve_domain(known, None, names)
    if given["horizon"] is not None or (named is not None and not named.further):
        named = _planned_survival(given, known)
    return sizes, named, arms if arms.size > 2 else None


def _planned_survival(given: Mapping[str, Any], known: Domain | None) -> Domain | None:
    """Return the domain of a time to an event in a study that is not there yet; None for others."""
    from private_ate.domain import Domain, Survival  # as above

    if known is None:
        known = Domain("t", given["time"] or "time")
        usual = {"time": "time", "event": "event", "event_label": "1"}
        given = {**given, **{name: given[name] or word for name, word in usual.items()}}
    declared = with_survival(known, given)
    return declared if isinstance(declared.outcome, Survival) else None


def _sizes(given: Mapping[str, Any], known: Domain | None) -> StudySizes:
    """Return the sizes of a study that is not there yet."""
    from private_ate.domain import Binary, Interval  # keeps --help fast
    from private_ate.planning import StudySizes  # as above

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
