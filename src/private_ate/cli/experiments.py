"""`private-ate experiment`: rerun the paper's figures and our own comparisons."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from private_ate.cli import flags
from private_ate.cli.output import watch

app = typer.Typer(help="Rerun the paper's figures and tables.", no_args_is_help=True)


@app.command("list")
def list_experiments() -> None:
    """List the experiments and what they repeat."""
    from private_ate.experiments.catalogue import EXPERIMENTS  # keeps --help fast

    width = max(map(len, EXPERIMENTS))
    for experiment in EXPERIMENTS.values():
        typer.echo(f"{experiment.name:<{width}}  {experiment.title} ({experiment.origin})")


@app.command("run")
def run_experiments(
    name: Annotated[str, typer.Argument(help="Name of an experiment, or all.", metavar="NAME")],
    quick: Annotated[bool, typer.Option("--quick", help="A few minutes instead of hours.")] = False,
    out: Annotated[Path, typer.Option(help="Results directory.", metavar="DIR")] = Path("results"),
    jobs: Annotated[int, typer.Option(help="Processes.", metavar="J")] = 1,
    seed: Annotated[int, typer.Option(help="Base seed of all releases.", metavar="S")] = 1,
    appendix: Annotated[
        bool,
        typer.Option(
            "--appendix/--no-appendix", help="Other numbers of neighbours than N = 5 too."
        ),
    ] = True,
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Go on where a run stopped, or start anew.")
    ] = True,
    quiet: flags.Quiet = False,
) -> None:
    """Run an experiment; nothing in its results is private, because releases are seeded."""
    from private_ate.experiments.catalogue import EXPERIMENTS  # keeps --help fast
    from private_ate.experiments.execution import (
        RunSettings,
        experiment_named,
        run_experiment,
        write_index,
    )

    settings = RunSettings(quick=quick, seed=seed, jobs=jobs, resume=resume, appendix=appendix)
    chosen = list(EXPERIMENTS.values()) if name == "all" else [experiment_named(name)]
    reports = []
    for experiment in chosen:
        with watch(experiment.name, quiet=quiet) as progress:
            report = run_experiment(experiment, out, settings, partial(progress, ""))
        reports.append(report)
        typer.echo(f"wrote {report.folder / 'page.md'}")
    if name == "all":
        typer.echo(f"wrote {write_index(reports, out, settings)}")
