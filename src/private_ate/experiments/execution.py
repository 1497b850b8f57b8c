"""Runs an experiment from its plan to its page; the one function behind the command line."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from private_ate.data.files import write_whole
from private_ate.errors import ArgumentError
from private_ate.experiments.arms import runnable_arms
from private_ate.experiments.catalogue import EXPERIMENTS, Experiment
from private_ate.experiments.grid import Cell, chunks_of
from private_ate.experiments.page import Report, index_page, machine, results_page
from private_ate.experiments.plans import Scale
from private_ate.experiments.plots import require_plots
from private_ate.experiments.results import collect_rows, summarize, to_csv
from private_ate.experiments.runner import Watch, run_chunks
from private_ate.experiments.sources import PAPER_SETS, is_installed
from private_ate.experiments.summary import Summary

__all__ = ["RunSettings", "experiment_named", "run_experiment", "write_index"]

_CHUNKS: Final = ".chunks"
_MOST_JOBS: Final = 256


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How an experiment is run: how much of it, from which seed, on how many processes.

    With ``resume`` a run that was stopped goes on; without it everything is computed anew.
    ``datasets`` restricts the paper's sets; those that are not installed are left out anyway.
    Without its ``appendix`` an experiment has the paper's number of neighbours only.
    """

    quick: bool = False
    seed: int = 1
    jobs: int = 1
    resume: bool = True
    datasets: tuple[str, ...] = PAPER_SETS
    appendix: bool = True

    def __post_init__(self) -> None:
        if self.seed < 0:
            msg = "the base seed is a whole number from 0"
            raise ArgumentError(msg)
        if not 1 <= self.jobs <= _MOST_JOBS:
            msg = f"the number of jobs lies between 1 and {_MOST_JOBS}"
            raise ArgumentError(msg)

    @property
    def scale(self) -> Scale:
        """What can be run here."""
        installed = tuple(name for name in self.datasets if is_installed(name))
        return Scale(self.quick, installed, runnable_arms(), self.appendix)

    @property
    def sentence(self) -> str:
        """Say how much was run."""
        size = "A quick run, good for a look only:" if self.quick else "The full run:"
        if not self.quick and not self.appendix:
            size = "The full run without the appendix's numbers of neighbours:"
        return f"{size} base seed {self.seed}."

    def command(self, name: str) -> str:
        """Return the command that repeats this run."""
        quick = " --quick" if self.quick else ""
        part = "" if self.appendix else " --no-appendix"
        return f"private-ate experiment run {name}{quick}{part} --seed {self.seed}"


def experiment_named(name: str) -> Experiment:
    """Return the experiment of that name."""
    if name not in EXPERIMENTS:
        msg = f"there is no experiment {name[:40]!r}; choose all, {', '.join(EXPERIMENTS)}"
        raise ArgumentError(msg)
    return EXPERIMENTS[name]


def run_experiment(
    experiment: Experiment, out: Path, settings: RunSettings, watch: Watch | None = None
) -> Report:
    """Run what is missing, then write results, summary, timings, figures and the page.

    Results and summary are the same bytes for any number of jobs and however often the run was
    stopped in between.
    """
    require_plots()
    folder = out / experiment.name
    if experiment.conduct is not None:
        origin = f"{settings.sentence} Command: `{settings.command(experiment.name)}`; {machine()}."
        claims, figures = experiment.conduct(
            folder, quick=settings.quick, seed=settings.seed, jobs=settings.jobs,
            resume=settings.resume, origin=origin, watch=watch,
        )  # fmt: skip
        return Report(experiment, folder, claims, figures)
    cells = list(experiment.plan(settings.scale))
    _compute(experiment, cells, folder, settings, watch)
    return _write(experiment, cells, folder, settings)


def write_index(reports: Sequence[Report], out: Path, settings: RunSettings) -> Path:
    """Write the page that leads to the pages of several experiments."""
    path = out / "README.md"
    origin = f"{settings.sentence} Command: `{settings.command('all')}`; {machine()}."
    write_whole(path, index_page(reports, out, origin))
    return path


def _compute(
    experiment: Experiment,
    cells: Sequence[Cell],
    folder: Path,
    settings: RunSettings,
    watch: Watch | None,
) -> None:
    if not settings.resume:
        shutil.rmtree(folder / _CHUNKS, ignore_errors=True)
    chunks = list(
        chunks_of(experiment.name, cells, seed=settings.seed, isolated=experiment.isolated)
    )
    run_chunks(chunks, folder / _CHUNKS, jobs=settings.jobs, watch=watch)


def _write(
    experiment: Experiment, cells: Sequence[Cell], folder: Path, settings: RunSettings
) -> Report:
    chunks = chunks_of(experiment.name, cells, seed=settings.seed, isolated=experiment.isolated)
    rows, timings = collect_rows(chunks, folder / _CHUNKS)
    summary = Summary(tuple(summarize(rows)))
    for name, table in (("results", rows), ("summary", summary.rows), ("timings", timings)):
        write_whole(folder / f"{name}.csv", to_csv(table))
    drawn = [] if experiment.draw is None else experiment.draw(summary, folder)
    answered = summary.select(lambda row: row.n > 0)
    report = Report(experiment, folder, experiment.claims(answered, timings), drawn)
    finished = max(path.stat().st_mtime for path in (folder / _CHUNKS).iterdir())
    origin = (
        f"{settings.sentence} Command: `{settings.command(experiment.name)}`. Finished on "
        f"{datetime.fromtimestamp(finished, UTC).date()}; {machine()}."
    )
    page = results_page(report, rows, summary, timings, origin)
    write_whole(folder / "page.md", page)
    return report
