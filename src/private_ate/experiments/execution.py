"""Runs an experiment from its plan to its page; the one function behind the command line."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import polars as pl

from private_ate.data.files import write_whole
from private_ate.errors import ArgumentError
from private_ate.experiments.arms import ARMS
from private_ate.experiments.catalogue import EXPERIMENTS, Experiment
from private_ate.experiments.claims import Claim
from private_ate.experiments.figures import require_plots
from private_ate.experiments.references import PAPER_SETS, is_installed
from private_ate.experiments.results import (
    CELL,
    RESULTS,
    TIMINGS,
    Summary,
    collect_rows,
    summarize,
    versions,
)
from private_ate.experiments.runner import Scale, Watch, chunks_of, run_chunks
from private_ate.experiments.tables import markdown_table, name_set

__all__ = ["Report", "RunSettings", "experiment_named", "run_experiment", "write_index"]

_NOT_PRIVATE = (
    "**Nothing on this page is private.** Every release was drawn from a seed and says "
    "`guarantee: none (seeded)`; the errors compare it with the records themselves. The data sets "
    "are public benchmarks, and their domains declare the observed ranges, as the paper does."
)
_CHUNKS: Final = ".chunks"
_AUDITS: Final = ".audits"
_MOST_JOBS: Final = 256


@dataclass(frozen=True, slots=True)
class Report:
    """What a finished experiment leaves behind."""

    experiment: Experiment
    folder: Path
    claims: Sequence[Claim]
    figures: Sequence[Path]


def _results_page(report: Report, rows: pl.DataFrame, summary: Summary, scale: str) -> str:
    """Write the page: what was run, the figure, the paper's sentences beside our numbers."""
    experiment = report.experiment
    claims = [[claim.words, claim.measured, f"**{claim.verdict}**"] for claim in report.claims]
    parts = [
        f"# {experiment.title}",
        experiment.opening or _NOT_PRIVATE,
        f"In the paper: {experiment.origin}.",
        _what_was_run(rows, scale),
        "" if experiment.opening else _left_out(),
    ]
    if experiment.sections is None:
        parts += [f"![{experiment.title}]({path.name}.svg)" for path in report.figures]
        parts.append(_legend(report))
    parts.append("## What is said or asked, and what we measured")
    parts.append(markdown_table(["said or asked", "measured", "verdict"], claims))
    if experiment.sections is not None:
        parts += experiment.sections(rows, report.folder)
    if experiment.tables:
        parts.append("## Numbers")
    for caption, write in experiment.tables:
        parts += [caption, write(summary, rows)]
    parts.append(
        "Every repetition is in `results.csv`, means and deviations in `summary.csv`, times in "
        "`timings.csv`. The error of a method whose target is not matching is measured against "
        "matching all the same in `relative_error`."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _what_was_run(rows: pl.DataFrame, scale: str) -> str:
    counts = sorted(set(rows.group_by(*CELL, "isolated").len()["len"])) or [0]
    repetitions = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines = [f"{scale} {rows.height} releases, {repetitions} a point; {versions()}."]
    refused = rows.filter(pl.col("note") != "")
    if refused.height:
        reasons = refused.group_by("method", "note").len().sort("method", "note")
        shown = "; ".join(f"{m}: {note} ({count})" for m, note, count in reasons.iter_rows())
        lines.append(f"{refused.height} releases were refused: {shown}.")
    return "\n".join(lines)


def _machine() -> str:
    """Name the class of machine."""
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f", {size / 2**30:.0f} GB of memory"
    return f"{platform.system()} on {platform.machine()}, {os.cpu_count()} processors{memory}"


def _left_out() -> str:
    """Name the data sets that are not installed."""
    sets = [family for family in PAPER_SETS if not is_installed(family)]
    if not sets:
        return ""
    names = ", ".join(map(name_set, sets))
    return f"Left out, because the data are not installed (`make data`): {names}."


def _legend(report: Report) -> str:
    if not report.figures:
        return ""
    links = ", ".join(f"[{path.name}.png]({path.name}.png)" for path in report.figures)
    return f"{report.experiment.figure_note} As pixels: {links}."


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
        return Scale(self.quick, installed, ARMS, self.appendix, self.seed)

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
    if not settings.resume:
        for part in (_CHUNKS, _AUDITS):
            shutil.rmtree(folder / part, ignore_errors=True)
    cells = experiment.plan(settings.scale)
    chunks = list(chunks_of(experiment.name, cells, seed=settings.seed))
    run_chunks(chunks, folder / _CHUNKS, jobs=settings.jobs, watch=watch, stage=experiment.stage)
    if experiment.audit is not None:
        experiment.audit(folder / _AUDITS, settings.scale)
    rows = collect_rows(chunks, folder / _CHUNKS)
    known = [name for name in RESULTS if rows[name].count()]
    for name, table in (
        ("results", rows.select(known)),
        ("summary", experiment.summarize(rows, folder)),
        ("timings", rows.select(TIMINGS)),
    ):
        write_whole(folder / f"{name}.csv", table.write_csv())
    summary = Summary.of(summarize(rows.filter(~pl.col("isolated"))))
    drawn = [] if experiment.draw is None else experiment.draw(summary, folder)
    answered = summary.select(lambda row: row.n > 0)
    report = Report(experiment, folder, experiment.claims(answered, rows), drawn)
    finished = max(path.stat().st_mtime for path in (folder / _CHUNKS).iterdir())
    origin = (
        f"{settings.sentence} Command: `{settings.command(experiment.name)}`. Finished on "
        f"{datetime.fromtimestamp(finished, UTC).date()}; {_machine()}."
    )
    write_whole(folder / "page.md", _results_page(report, rows, summary, origin))
    return report


def write_index(reports: Sequence[Report], out: Path, settings: RunSettings) -> Path:
    """Write the page that leads to the pages of several experiments and counts their verdicts."""
    rows = []
    for report in reports:
        counts = Counter(claim.verdict for claim in report.claims)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        link = f"[{report.experiment.name}]({report.folder.relative_to(out).as_posix()}/page.md)"
        rows.append([link, report.experiment.title, report.experiment.origin, verdicts])
    table = markdown_table(["experiment", "question", "in the paper", "sentences"], rows)
    origin = f"{settings.sentence} Command: `{settings.command('all')}`; {_machine()}."
    parts = ("# Experiments", _NOT_PRIVATE, origin, _left_out(), table)
    path = out / "README.md"
    write_whole(path, "\n\n".join(part for part in parts if part) + "\n")
    return path
