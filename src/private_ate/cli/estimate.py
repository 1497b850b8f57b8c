"""`private-ate estimate`: from a file to a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from private_ate.arguments import one_of
from private_ate.cli import flags
from private_ate.cli.declared import declared_domain
from private_ate.cli.output import (
    curator_text,
    public_facts,
    require_apart,
    require_folder,
    require_writable,
    show_release,
    spent_before,
    watch,
)
from private_ate.errors import ArgumentError
from private_ate.parameters import keywords_of
from private_ate.privacy.levels import has_public_covariates

if TYPE_CHECKING:
    from private_ate.domain import Domain


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
    show_release(release, as_json=asked.json, contrasts=asked.contrasts)
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
    for is_asked, msg, parameter in (
        (len(known.outcome.columns) > 1,
         "the curator's page takes no time to an event; check the data instead", ""),
        (bool(known.further),
         "the curator's page shows one outcome; ask for it with one --outcome at a time", ""),
        (known.weights is not None,
         "the curator's page compares with matching, which takes no sampling weights", ""),
        (by is not None,
         "the curator's page speaks of all units; leave out subgroups, or the page", "by"),
    ):  # fmt: skip
        if is_asked:
            raise ArgumentError(msg, parameter=parameter)


def _warn(texts: Iterable[str]) -> None:
    for text in texts:
        typer.echo(f"warning: {text}", err=True)


def described(data: str | Path, given: Mapping[str, Any]) -> object:
    """Return a file with what flags say of how it is read."""
    from private_ate.data.files import described_file  # keeps --help fast

    return described_file(data, **{name: given[name] for name in flags.READING})


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
