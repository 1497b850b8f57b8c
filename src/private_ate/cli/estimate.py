"""`private-ate estimate`: from a file to a release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from private_ate.arguments import one_of, real_number
from private_ate.cli import flags
from private_ate.cli.arms import ArmFlags
from private_ate.cli.saved import require_apart
from private_ate.errors import ArgumentError
from private_ate.estimators.registry import METHODS
from private_ate.privacy.levels import has_public_covariates

if TYPE_CHECKING:
    from private_ate.domain import Categories, Domain, Interval
    from private_ate.release import Release

__all__ = ["estimate"]


def estimate(
    data: Annotated[
        str, typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="DATA")
    ],
    level: flags.LevelName,
    epsilon: Annotated[str, typer.Option(help="Privacy budget, e.g. 1.0.", metavar="E")],
    treatment: flags.TreatmentColumn = None,
    outcome: flags.OutcomeColumn = None,
    covariates: flags.Covariates = None,
    domain: flags.DomainFile = None,
    weights: flags.WeightsColumn = None,
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
    method: Annotated[
        str,
        typer.Option(
            help=f"auto, {', '.join(METHODS)}.",
            metavar="METHOD",
            autocompletion=lambda: ["auto", *METHODS],
        ),
    ] = "auto",
    target: flags.TargetName = "balance",
    neighbors: flags.Neighbors = 5,
    estimand: flags.EstimandName = "ate",
    among: flags.Among = None,
    design: flags.DesignName = "unknown",
    probability: flags.Probability = None,
    by: flags.By = None,
    overall: flags.Overall = False,
    confidence: flags.Confidence = "0.95",
    means: flags.Means = False,
    rows_per_person: flags.RowsPerPerson = 1,
    person: flags.Person = None,
    outcome_sd: flags.OutcomeDeviation = None,
    bounds_from_data: Annotated[
        bool,
        typer.Option("--bounds-from-data", help="Look bounds up in the data: NO guarantee."),
    ] = False,
    leave_out_undeclared: Annotated[
        bool,
        typer.Option(
            "--leave-out-undeclared",
            help="Label level: leave out rows with undeclared treatment or unreadable numbers.",
        ),
    ] = False,
    settings: flags.Settings = None,
    engine: Annotated[str, typer.Option(help="auto, local or spark.")] = "auto",
    master: Annotated[
        str | None, typer.Option(help="Spark cluster, e.g. spark://host:7077.", metavar="URL")
    ] = None,
    memory_limit: Annotated[
        str, typer.Option(help="Memory above which a file is streamed.", metavar="SIZE")
    ] = "1GB",
    sep: flags.Separator = None,
    decimal: flags.DecimalSign = None,
    encoding: flags.EncodingName = None,
    header_row: flags.HeaderRow = None,
    skip_rows: flags.SkippedRows = None,
    sheet: flags.SheetName = None,
    contrasts: flags.ShownContrasts = "all",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Also write the release as JSON to a file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a page that may be shared.", metavar="OUT.html")
    ] = None,
    diagnostics: Annotated[
        Path | None,
        typer.Option(help="Curator only, NOT private: write a page.", metavar="OUT.html"),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Budget ledger: file or postgresql:// URL.", metavar="LEDGER")
    ] = None,
    head: flags.Head = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="The data set's name in the release and the ledger.", metavar="NAME"),
    ] = None,
    dataset_version: Annotated[
        str | None, typer.Option(help="What this state of the data is called.", metavar="NAME")
    ] = None,
    request_id: Annotated[
        str | None, typer.Option(help="Repeats with this id return the stored release.")
    ] = None,
    analyst: Annotated[str | None, typer.Option(help="Who asks, for caps in the ledger.")] = None,
    quiet: flags.Quiet = False,
    seed: Annotated[
        int | None, typer.Option(help="For experiments: the release guarantees nothing.")
    ] = None,
) -> None:
    """Release a treatment effect from a file with differential privacy.

    One physical line of a CSV file is one record: a line ends at a line feed, and quotes are read
    within it. Convert a file whose fields hold line ends to Parquet first.
    """
    from private_ate.cli import pages  # keeps --help fast
    from private_ate.cli.progress import watch  # keeps --help fast
    from private_ate.data.files import described_file, write_whole  # as above
    from private_ate.estimation import estimate_ate  # as above
    from private_ate.privacy.budget import parse_epsilon  # as above
    from private_ate.release.spending import warn_of_epsilon  # as above

    one_of("contrasts", contrasts, ("all", "reference"))
    shown = cast("Literal['all', 'reference']", contrasts)
    if out is not None:
        require_writable(out)
    require_apart(
        {
            "--out": out, "--report": report, "--diagnostics": diagnostics, "the data": Path(data),
            "--domain": domain, "--ledger": None if ledger is None else Path(ledger),
        }
    )  # fmt: skip
    known = declared_domain(
        treatment, outcome, domain, outcome_bounds=outcome_bounds, binary=binary_outcome,
        event_label=event_label, missing=missing_outcomes,
        bounds=bounds or [], categories=categories or [],
        arms=ArmFlags(treated, control, arms, reference, treatment_bins), weights=weights,
    )  # fmt: skip
    if diagnostics is not None:
        _refuse_curators_page(known, by)
    for path in (report, diagnostics):
        pages.require_folder(path)
    file = described_file(
        data, sep=sep, decimal=decimal, encoding=encoding, header_row=header_row,
        skip_rows=skip_rows, sheet=sheet,
    )  # fmt: skip
    here = None if engine == "spark" else file  # a cluster's rows do not come here
    if diagnostics is not None and here is None:
        msg = "the curator's page needs all rows on this machine; leave out --engine spark"
        raise ArgumentError(msg)
    warned = warn_of_epsilon(parse_epsilon(epsilon))
    if not quiet:
        _warn(warned)  # while it can still be changed
    chosen = method_options(method, level, [*(settings or []), *_means_asked(known, level, means)])
    with watch("estimating", quiet=quiet or json) as progress:
        release = estimate_ate(
            file,
            domain=known,
            covariates=named_covariates(covariates),
            level=cast("Any", level),
            epsilon=epsilon,
            method=method,
            target=cast("Any", target),
            neighbors=neighbors,
            estimand=cast("Any", estimand),
            among=among,
            design=cast("Any", design),
            probability=parse_probability(probability),
            by=[] if by is None else [text.strip() for text in by.split(",")],
            overall=overall,
            confidence=parse_confidence(confidence),
            rows_per_person=rows_per_person,
            person=person,
            outcome_sd=parse_deviations(outcome_sd),
            bounds="from-data" if bounds_from_data else "declared",
            leave_out_undeclared=leave_out_undeclared,
            options=chosen,
            engine=engine,
            master=master,
            memory_limit=memory_limit,
            seed=seed,
            progress=progress,
            ledger=ledger,
            ledger_head=head,
            dataset=dataset,
            dataset_version=dataset_version,
            request_id=request_id,
            analyst=analyst,
        )
    if out is not None:
        write_whole(out, release.to_json() + "\n")
    if json and not quiet:  # a table is headed by them
        _warn(text for text in release.warnings if text not in warned)
    show(
        release, as_json=json, contrasts=shown
    )  # first: what was paid for is not lost if a page fails
    named = _without_person(file, known, named_covariates(covariates), person)
    if report is not None:
        facts = pages.public_facts(
            release, here, known, named,
            options=chosen, analyst=analyst, spent_before=pages.spent_before(release, ledger),
        )  # fmt: skip
        write_whole(report, release.to_html(facts, contrasts=shown))
    if diagnostics is not None and here is not None:
        text = pages.curator_text(release, here, known, named, chosen)
        write_whole(diagnostics, text)


def _without_person(
    file: object, known: Domain, named: list[str] | Literal["all"] | None, person: str | None
) -> list[str] | Literal["all"] | None:
    """Return the covariates as a page is asked for them: by name if a column of ids is none."""
    if person is None:
        return named
    from private_ate.data.streams import open_schema  # keeps --help fast
    from private_ate.data.tables import covariate_names  # as above

    return list(covariate_names(open_schema(file), known, named, person=person))


def _means_asked(known: Domain, level: str, means: bool) -> list[str]:
    """Return the option that releases means; refused where no method would."""
    if means and known.treatment.size == 2 and not has_public_covariates(cast("Any", level)):
        msg = "at sample level means of two arms are not released; leave out --means"
        raise ArgumentError(msg)
    return ["means=true"] if means else []


def _refuse_curators_page(known: Domain, by: str | None) -> None:
    """Refuse a curator's page of what it cannot show."""
    if known.further:
        msg = "the curator's page shows one outcome; ask for it with one --outcome at a time"
        raise ArgumentError(msg)
    if known.weights is not None:
        msg = "the curator's page compares with matching, which takes no sampling weights"
        raise ArgumentError(msg)
    if by is not None:
        msg = "the curator's page speaks of all units; leave out subgroups, or the page"
        raise ArgumentError(msg, parameter="by")


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        typer.echo(f"warning: {text}", err=True)


def show(
    release: Release, *, as_json: bool, contrasts: Literal["all", "reference"] = "all"
) -> None:
    """Print a release as JSON or as a table."""
    if as_json:
        typer.echo(release.to_json())
        return
    from rich.console import Console  # keeps --help fast

    from private_ate.report.text import release_table  # as above

    Console(highlight=False).print(release_table(release, contrasts))


def parse_probability(text: str | None) -> float | str | None:
    """Read a probability: a number, or the name of a column."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def declared_domain(
    treatment: str | None,
    outcome: list[str] | None,
    path: Path | None,
    *,
    outcome_bounds: tuple[float, float] | None,
    binary: bool,
    event_label: str | None = None,
    missing: str | None = None,
    bounds: list[str],
    categories: list[str],
    arms: ArmFlags,
    weights: str | None = None,
) -> Domain:
    """Build the domain from a file, from flags, or from both (flags win)."""
    from private_ate.data.inputs import resolve_domain  # keeps --help fast
    from private_ate.domain import Binary, Domain, Interval
    from private_ate.domain.weights import as_weights

    base = resolve_domain(None if path is None else Domain.read(path), treatment, outcome or None)
    labels = arms.declare(base.treatment)
    if base.further and (binary or event_label is not None or outcome_bounds is not None):
        msg = (
            "of several outcomes each has bounds of its own: write --bounds COL=LO:HI or "
            "--bounds COL=binary for each, or use --domain FILE (also for event labels)"
        )
        raise ArgumentError(msg)
    told = dict(_parse_bounds(text) for text in bounds)
    named = []
    for one in base.outcomes:
        limits = told.pop(one.column, one.bounds) if base.further else one.bounds
        filled = None if one.bounds is None or missing is not None else one.bounds.missing
        if binary or event_label is not None:
            limits = Binary(missing=filled)
        elif outcome_bounds is not None:
            limits = Interval(*outcome_bounds, filled)
        known_one = replace(one, bounds=limits, event_label=event_label or one.event_label)
        if missing is not None:
            known_one = known_one.with_missing(_parse_missing(missing))
        named.append(known_one)
    covariates = dict(base.covariates)
    covariates.update(told)
    covariates.update(_parse_categories(text) for text in categories)
    known = replace(base, treatment=labels, outcome=named[0], further=tuple(named[1:]))
    if weights is None:
        return replace(known, covariates=covariates)
    # A bound that a flag gives to the column of weights is theirs.
    declared = known.weights
    if any(_parse_bounds(text)[0] == weights for text in bounds):
        declared = as_weights((weights, covariates.pop(weights)))
    whole = replace(known, covariates=covariates, weights=declared)
    return resolve_domain(whole, None, None, weights)


def method_options(method: str, level: str, settings: list[str]) -> object | None:
    """Turn ``--set OPTION=VALUE`` flags into the method's own options."""
    if not settings:
        return None
    from private_ate.estimation import options_from_texts  # keeps --help fast

    pairs = [text.partition("=") for text in settings]
    bad = next((name for name, sign, _ in pairs if not sign or not name), None)
    if bad is not None:
        msg = f"write --set OPTION=VALUE, not --set {bad}"
        raise ArgumentError(msg)
    return options_from_texts(method, level, {name: value for name, _, value in pairs})


def parse_confidence(text: str) -> float | None:
    """Read a coverage, or none."""
    if text.strip().lower() == "none":
        return None
    return real_number("confidence (or none)", text, 0.5, 0.9999)


def parse_deviations(texts: list[str] | None) -> float | dict[str, float] | None:
    """Read a guessed standard deviation, or those of several outcomes as COL=SD."""
    if not texts:
        return None
    pairs = [text.rpartition("=") for text in texts]
    if len(texts) == 1 and not pairs[0][1]:
        return real_number("the outcome's standard deviation", texts[0], 1e-150, 1e150)
    if not all(name and sign for name, sign, _ in pairs):
        msg = "of several outcomes write --outcome-sd COL=SD for each"
        raise ArgumentError(msg)
    return {
        name: real_number(f"the standard deviation of {name!r}", value, 1e-150, 1e150)
        for name, _, value in pairs
    }


def split_names(text: str | None) -> list[str] | None:
    """Split a list of column names at commas."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def named_covariates(text: str | None) -> list[str] | Literal["all"] | None:
    """Read a list of column names, or the word all."""
    return "all" if text is not None and text.strip() == "all" else split_names(text)


def require_writable(path: Path) -> None:
    """Refuse a path that cannot be written before any budget is spent on what it would hold."""
    if path.is_dir() or not path.parent.is_dir():
        msg = f"the file {str(path)!r} cannot be written; does its folder exist?"
        raise ArgumentError(msg)


def _parse_missing(text: str) -> Literal["public", "private"] | float:
    word = text.strip().lower()
    rules: dict[str, Literal["public", "private"]] = {"public": "public", "private": "private"}
    if word in rules:
        return rules[word]
    return real_number("missing outcomes (public, private or a number)", text, -1e150, 1e150)


def _parse_bounds(text: str) -> tuple[str, Interval]:
    from private_ate.domain import Binary, Interval  # keeps --help fast

    name, sign, rest = text.rpartition("=")
    if name and rest.strip().lower() == "binary":
        return name, Binary()
    low, colon, high = rest.partition(":")
    try:
        if not (sign and colon and name):
            raise ValueError  # noqa: TRY301  # one message for every way to get it wrong
        ends = float(low), float(high)
    except ValueError as cause:
        msg = f"write --bounds COL=LO:HI, for example --bounds age=16:60, not {text[:60]!r}"
        raise ArgumentError(msg) from cause
    return name, Interval(*ends)


def _parse_categories(text: str) -> tuple[str, Categories]:
    from private_ate.domain import Categories  # keeps --help fast

    name, sign, rest = text.partition("=")
    if not (sign and name and "|" in rest):
        msg = f"write --categories 'COL=a|b|c', not {text[:60]!r}"
        raise ArgumentError(msg)
    return name, Categories(*rest.split("|"))
