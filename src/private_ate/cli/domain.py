"""`private-ate domain`: draft a domain from a file's schema, without reading a value."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from private_ate.arguments import one_of, read_covariates
from private_ate.cli import flags
from private_ate.cli.arms import ArmFlags
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import has_public_covariates

if TYPE_CHECKING:
    from private_ate.cli.draft import Draft
    from private_ate.domain import Treatment

__all__ = ["domain"]


@flags.takes_flags("domain")
def domain(
    data: Annotated[
        Path, typer.Argument(help="CSV, Parquet, Stata, SPSS, Excel or R file.", metavar="DATA")
    ],
    out: Annotated[Path, typer.Option(help="Where to write the draft.", metavar="FILE")],
    treatment: Annotated[str | None, typer.Option(help="Treatment column.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Outcome column.")] = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            help="Covariates: a,b,c or the word all; default: those whose names do not speak "
            "against it.",
            metavar="NAMES",
        ),
    ] = None,
    level: Annotated[
        str,
        typer.Option(
            help="What will be private: label leaves covariates to be looked up.", metavar="LEVEL"
        ),
    ] = "sample",
    **given: Any,  # noqa: ANN401  # flags of the table of parameters
) -> None:
    """Draft a domain file from column names and types; a person fills in the bounds."""
    from private_ate.cli.draft import Draft  # keeps --help fast
    from private_ate.cli.estimate import READING  # as above
    from private_ate.data.files import described_file, read_schema, write_whole  # as above
    from private_ate.data.tables import require_column  # as above

    one_of("level", level, ("label", "sample"))
    declared = _declared_arms(treatment, ArmFlags.of(given))
    if out.exists() and not given["force"]:
        msg = f"the file {str(out)!r} exists; add --force to overwrite it"
        raise ArgumentError(msg)
    reading = {name: given[name] for name in READING}
    schema = read_schema(described_file(data, **reading))
    named = read_covariates(covariates)
    asked = [("treatment", treatment), ("outcome", outcome)]
    asked += [("covariate", name) for name in named or () if named != "all"]
    for role, name in asked:
        if name is not None:
            require_column(tuple(schema), name, role, [other for _, other in asked if other])
    numbers = sum(map(_is_number, schema)) if None in schema.values() else 0
    if numbers:
        msg = (
            f"{numbers} of the {len(schema)} names in the first line are numbers; a line of "
            "values is not drafted: give the file a header line, or write the domain by hand"
        )
        raise ArgumentError(msg)
    drafted = Draft(
        dict(schema), treatment, outcome, arms=declared, named=named, level=cast("Any", level)
    )
    write_whole(out, drafted.text())
    if drafted.left_out:
        typer.echo(
            f"left out {len(drafted.left_out)} of {len(schema)} columns for their names or types; "
            "the reasons are at the end of the draft"
        )
    if any(reason.startswith("the name of an id") for reason in drafted.left_out.values()):
        typer.echo(
            "if a person can have several rows, check by the id with --person COLUMN and say "
            "--rows-per-person N when you estimate, or at label level --person COLUMN"
        )
    if treatment is None or outcome is None:
        typer.echo("name --treatment and --outcome too, and the draft asks for less")
    check = ["private-ate", "check", str(data), "--domain", str(out), *_more(drafted, reading)]
    typer.echo(f"wrote {out}; fill in every ??? from the code book, then:\n  {shlex.join(check)}")


def _more(drafted: Draft, reading: Mapping[str, Any]) -> list[str]:
    """Return the flags that a check of the drafted domain needs beside it."""
    said = {
        f"--{name.replace('_', '-')}": str(one) for name, one in reading.items() if one is not None
    }
    words = [word for flag_and_value in said.items() for word in flag_and_value]
    words += ["--level", drafted.level]
    is_named = drafted.treatment is not None and drafted.outcome is not None
    if is_named and has_public_covariates(drafted.level):
        words += ["--covariates", ",".join(drafted.nameable)]
    return words


def _declared_arms(column: str | None, flagged: ArmFlags) -> Treatment | None:
    """Return the arms that flags declare; None if none does, as no label is a default here."""
    from private_ate.domain import Treatment  # keeps --help fast

    if flagged == ArmFlags():
        return None
    if (flagged.treated is None) != (flagged.control is None):
        msg = "give both labels, --treated and --control, or neither; the draft asks for them then"
        raise ArgumentError(msg)
    return flagged.declare(Treatment(column or "treatment"))


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
