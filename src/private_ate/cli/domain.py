"""`private-ate domain`: draft a domain from a file's schema, without reading a value."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from private_ate.cli import flags
from private_ate.cli.arms import ArmFlags
from private_ate.errors import ArgumentError

if TYPE_CHECKING:
    from private_ate.domain import Treatment

__all__ = ["domain", "draft"]

_HEADER = """\
# Draft of a domain, from the schema alone: no value was read.
# Fill in every ??? from the code book, never from the data: bounds that follow the data leak it.
# More than two arms:       arms = ["none", "low", "high"], reference = "none"
#   (instead of treated and control; of a dose: bins = [0, 1, 6, 100] for [0, 1), [1, 6), [6, 100])
# A number between bounds:  low = 16, high = 60   (optional: missing = 38)
# Labels:                   categories = ["a", "b", "other"], other = "other"
#   (other: the label for missing and undeclared ones; without it they are a category of their own)
# Rows without an outcome:  missing = "public" if anybody may know who lacks one, "private" if not
#                           (both leave them out), or the number that they count as
"""


def domain(
    data: Annotated[Path, typer.Argument(help="CSV or Parquet file.", metavar="DATA")],
    out: Annotated[Path, typer.Option(help="Where to write the draft.", metavar="FILE")],
    treatment: Annotated[str | None, typer.Option(help="Treatment column.")] = None,
    outcome: Annotated[str | None, typer.Option(help="Outcome column.")] = None,
    arms: flags.Arms = None,
    reference: flags.Reference = None,
    treatment_bins: flags.TreatmentBins = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Draft a domain file from column names and types; a person fills in the bounds."""
    from private_ate.data.files import read_schema, write_whole  # keeps --help fast
    from private_ate.domain import Treatment  # as above

    declared = ArmFlags(arms=arms, reference=reference, bins=treatment_bins).declare(
        Treatment(treatment or "treatment")
    )
    if out.exists() and not force:
        msg = f"the file {str(out)!r} exists; add --force to overwrite it"
        raise ArgumentError(msg)
    schema = read_schema(data)
    for role, name in (("treatment", treatment), ("outcome", outcome)):
        if name is not None and name not in schema:
            msg = (
                f"the file has no {role} column {name!r} among its {len(schema)} columns; "
                "check the name, and that the file begins with a header line"
            )
            raise ArgumentError(msg)
    numbers = sum(map(_is_number, schema)) if None in schema.values() else 0
    if numbers:
        msg = (
            f"{numbers} of the {len(schema)} names in the first line are numbers; a line of "
            "values is not drafted: give the file a header line, or write the domain by hand"
        )
        raise ArgumentError(msg)
    write_whole(out, draft(dict(schema), treatment, outcome, declared))
    typer.echo(f"wrote {out}; fill in every ??? from the code book, then: private-ate check")


def draft(
    schema: dict[str, str | None],
    treatment: str | None,
    outcome: str | None,
    arms: Treatment | None = None,
) -> str:
    """Return the draft as text: TOML but for the ??? that a person replaces.

    ``arms`` are those that flags declared; no label is looked up.
    """
    from private_ate.domain import Treatment, arm_lines, toml_text  # keeps --help fast

    lines = [_HEADER, "[treatment]", f"column = {_named(treatment)}"]
    lines += [*arm_lines(Treatment("treatment") if arms is None else arms), ""]
    lines += ["[outcome]", f"column = {_named(outcome)}", "low = ???", "high = ???"]
    lines += ["missing = ???"]
    for name, kind in schema.items():
        if name in (treatment, outcome):
            continue
        lines += ["", f"[covariates.{toml_text(name)}]"]
        if kind in ("number", None):
            lines += ["low = ???", "high = ???"]
        if kind is None:
            lines += ["# or, for labels, instead of low and high:"]
        if kind != "number":
            prefix = "# " if kind is None else ""
            # Not valid TOML on purpose: a forgotten "???" would pass as a label.
            lines += [f'{prefix}categories = [???, "other"]', f'{prefix}other = "other"']
    return "\n".join(lines) + "\n"


def _named(column: str | None) -> str:
    from private_ate.domain import toml_text  # keeps --help fast

    return "???" if column is None else toml_text(column)


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
