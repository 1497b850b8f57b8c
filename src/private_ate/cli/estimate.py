"""`private-ate estimate`: from a file to a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from private_ate.arguments import one_of, real_number
from private_ate.cli import flags
from private_ate.cli.arms import ArmFlags, with_survival
from private_ate.cli.output import (
    curator_text,
    public_facts,
    require_apart,
    require_folder,
    spent_before,
    watch,
)
from private_ate.errors import ArgumentError
from private_ate.parameters import keywords_of
from private_ate.privacy.levels import has_public_covariates

if TYPE_CHECKING:
    from private_ate.domain import Categories, Domain, Interval
    from private_ate.release.release import Release


@flags.takes_flags("estimate")
def estimate(
    data: Annotated[
        str, typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="DATA")
    ],
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Release a treatment effect from a file with differential privacy.

    One physical line of a CSV file is one record: a line ends at a line feed, and quotes are read
    within it. Convert a file whose fields hold line ends to Parquet first.
    """
    from private_ate.api import estimate_ate  # as above
    from private_ate.data.files import write_whole  # as above
    from private_ate.effects.to_release import warn_of_epsilon  # as above
    from private_ate.privacy.budget import parse_epsilon  # as above

    asked = SimpleNamespace(**given)
    level, out, report, diagnostics = asked.level, asked.out, asked.report, asked.diagnostics
    one_of("contrasts", asked.contrasts, ("all", "reference"))
    if out is not None:
        require_writable(out)
    require_apart(
        {
            "--out": out, "--report": report, "--diagnostics": diagnostics, "the data": Path(data),
            "--domain": asked.domain,
            "--ledger": None if asked.ledger is None else Path(asked.ledger),
        }
    )  # fmt: skip
    known = declared_domain(given)
    if diagnostics is not None:
        _refuse_curators_page(known, asked.by)
    for path in (report, diagnostics):
        require_folder(path)
    file = described(data, given)
    here = None if asked.engine == "spark" else file  # a cluster's rows do not come here
    if diagnostics is not None and here is None:
        msg = "the curator's page needs all rows on this machine; leave out --engine spark"
        raise ArgumentError(msg)
    warned = warn_of_epsilon(parse_epsilon(asked.epsilon))
    if not asked.quiet:
        _warn(warned)  # while it can still be changed
    settings = [*(asked.settings or []), *_means_asked(known, level, asked.means)]
    chosen = method_options(asked.method, level, settings)
    keywords = keywords_of("estimate", "estimate_ate", given)
    with watch("estimating", quiet=asked.quiet or asked.json) as progress:
        release = estimate_ate(
            file,
            domain=known,
            bounds="from-data" if asked.bounds_from_data else "declared",
            options=chosen,
            progress=progress,
            **keywords,
        )
    if out is not None:
        write_whole(out, release.to_json() + "\n")
    if asked.json and not asked.quiet:  # a table is headed by them
        _warn(text for text in release.warnings if text not in warned)
    # First: what was paid for is not lost if a page fails.
    show(release, as_json=asked.json, contrasts=asked.contrasts)
    named = _without_person(file, known, keywords["covariates"], asked.person)
    if report is not None:
        facts = public_facts(
            release, here, known, named, options=chosen, analyst=asked.analyst,
            spent_before=spent_before(release, asked.ledger),
        )  # fmt: skip
        write_whole(report, release.to_html(facts, contrasts=asked.contrasts))
    if diagnostics is not None and here is not None:
        text = curator_text(release, here, known, named, chosen)
        write_whole(diagnostics, text)


def _without_person(
    file: object, known: Domain, named: list[str] | Literal["all"] | None, person: str | None
) -> list[str] | Literal["all"] | None:
    """Return the covariates as a page is asked for them: by name if a column of ids is none."""
    if person is None:
        return named
    from private_ate.data.files import open_schema  # keeps --help fast
    from private_ate.data.inputs import covariate_names  # as above

    return list(covariate_names(open_schema(file), known, named, person=person))


def _means_asked(known: Domain, level: str, means: bool) -> list[str]:
    """Return the option that releases means; refused where no method would."""
    if means and known.treatment.size == 2 and not has_public_covariates(cast("Any", level)):
        msg = "at sample level means of two arms are not released; leave out --means"
        raise ArgumentError(msg)
    return ["means=true"] if means else []


def _refuse_curators_page(known: Domain, by: str | None) -> None:
    """Refuse a curator's page of what it cannot show."""
    if len(known.outcome.columns) > 1:
        msg = "the curator's page takes no time to an event; check the data instead"
        raise ArgumentError(msg)
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


def described(data: str | Path, given: Mapping[str, Any]) -> object:
    """Return a file with what flags say of how it is read."""
    from private_ate.data.files import described_file  # keeps --help fast

    return described_file(data, **{name: given[name] for name in flags.READING})


def declared_domain(given: Mapping[str, Any]) -> Domain:
    """Build the domain from a file, from flags, or from both (flags win)."""
    from private_ate.data.inputs import resolve_domain  # keeps --help fast
    from private_ate.domain import Binary, Domain, Interval, Survival
    from private_ate.domain.column_types import as_weights

    path, outcome, bounds = given["domain"], given["outcome"], given.get("bounds") or []
    binary, event_label = given["binary_outcome"], given.get("event_label")
    outcome_bounds: tuple[float, float] | None = given["outcome_bounds"]
    missing = given.get("missing_outcomes")
    names = list(dict.fromkeys(outcome)) if outcome else given.get("time")
    file = None if path is None else with_survival(Domain.read(path), given)
    base = resolve_domain(file, given["treatment"], names)
    base = with_survival(base, given)
    if base.further and (binary or event_label is not None or outcome_bounds is not None):
        msg = (
            "of several outcomes each has bounds of its own: write --bounds COL=LO:HI or "
            "--bounds COL=binary for each, or use --domain FILE (also for event labels)"
        )
        raise ArgumentError(msg)
    flagged = dict(_parse_bounds(text) for text in bounds)
    named = []
    for one in base.outcomes:
        limits = flagged.pop(one.column, one.bounds) if base.further else one.bounds
        filled = None if one.bounds is None or missing is not None else one.bounds.missing
        if binary or event_label is not None:
            limits = Binary(missing=filled)
        elif outcome_bounds is not None:
            limits = Interval(*outcome_bounds, filled)
        known_one = one
        if not isinstance(one, Survival):  # of which flags have said all
            known_one = replace(one, bounds=limits, event_label=event_label or one.event_label)
        if missing is not None:
            known_one = known_one.with_missing(_parse_missing(missing))
        named.append(known_one)
    covariates = {**base.covariates, **flagged}
    covariates.update(_parse_categories(text) for text in given.get("categories") or [])
    weights, declared = given.get("weights"), base.weights
    if weights in covariates and any(_parse_bounds(text)[0] == weights for text in bounds):
        # A bound that a flag gives to the column of weights is theirs.
        declared = as_weights((weights, covariates.pop(weights)))
    known = replace(
        base, treatment=ArmFlags.of(given).declare(base.treatment), outcome=named[0],
        further=tuple(named[1:]), covariates=covariates, weights=declared,
    )  # fmt: skip
    return resolve_domain(known, None, None, weights)


def method_options(method: str, level: str, settings: list[str]) -> object | None:
    """Turn ``--set OPTION=VALUE`` flags into the method's own options."""
    if not settings:
        return None
    from private_ate.api import options_from_texts  # keeps --help fast

    pairs = [text.partition("=") for text in settings]
    bad = next((name for name, sign, _ in pairs if not sign or not name), None)
    if bad is not None:
        msg = f"write --set OPTION=VALUE, not --set {bad}"
        raise ArgumentError(msg)
    return options_from_texts(method, level, {name: value for name, _, value in pairs})


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
