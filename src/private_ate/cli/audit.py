"""`private-ate audit`: check this installation's noise and guarantees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from private_ate.cli import flags
from private_ate.cli.output import print_json, print_table, watch

if TYPE_CHECKING:
    from private_ate.audit import Finding

_MEANING: Final = (
    "A measured ε is a lower bound: an ε below it is ruled out. 0.000 means that these runs could "
    "not tell the neighbours apart, not that ε is 0; more runs (--thorough, --runs) find smaller "
    "flaws. "
    "FINDING means a bound above what is claimed."
)


def audit(
    runs: Annotated[
        int | None,
        typer.Option(help="Runs for either neighbour; more runs find smaller flaws.", min=100),
    ] = None,
    thorough: Annotated[
        bool,
        typer.Option(
            "--thorough", help="Many more runs: about ten minutes of a processor, not one."
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for pictures (needs matplotlib).", metavar="DIR")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: flags.Quiet = False,
) -> None:
    """Check the samplers and measure ε on worst-case neighbours; exits with 1 on a finding.

    A measured bound far below the claimed ε, 0.000 included, is no finding: with so many runs
    nothing worse was seen. It does not say that ε is smaller than claimed.
    """
    from private_ate.audit import run_audit  # keeps --help fast

    with watch("audit", quiet=quiet, lines=True) as progress:
        findings = list(run_audit(runs, progress, fast=not thorough))
    if out is not None:
        from private_ate.audit.run import plot_findings  # keeps --help fast

        plot_findings(findings, out)
    _show(findings, as_json=json)
    if not all(finding.passed for finding in findings):
        raise typer.Exit(1)


def _show(findings: list[Finding], *, as_json: bool) -> None:
    names = ("what", "claimed", "measured", "runs", "passed")
    rows = [{name: getattr(finding, name) for name in names} for finding in findings]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        row["runs"] = f"{row['runs']:,}"
        row["verdict"] = "no finding" if row.pop("passed") else "FINDING"
    print_table(rows, "Audit of this installation, 99.9 % confidence")
    from rich.console import Console  # keeps --help fast

    Console(highlight=False).print(_MEANING)
