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

from private_ate.data.files import write_whole
from private_ate.errors import ArgumentError
from private_ate.experiments.arms import missing_arms, runnable_arms
from private_ate.experiments.catalogue import EXPERIMENTS, Experiment
from private_ate.experiments.chunks import Cell, Watch, chunks_of, run_chunks
from private_ate.experiments.claims import Claim, name_set
from private_ate.experiments.markdown import markdown_table
from private_ate.experiments.plans import Scale
from private_ate.experiments.plots import require_plots
from private_ate.experiments.references import PAPER_SETS, is_installed
from private_ate.experiments.results import (
    Row,
    Summary,
    Timing,
    collect_rows,
    summarize,
    to_csv,
    versions,
)

__all__ = [
    "Report",
    "RunSettings",
    "experiment_named",
    "index_page",
    "machine",
    "results_page",
    "run_experiment",
    "write_index",
]

_NOT_PRIVATE = (
    "**Nothing on this page is private.** Every release was drawn from a seed and says "
    "`guarantee: none (seeded)`; the errors compare it with the records themselves. The data sets "
    "are public benchmarks, and their domains declare the observed ranges, as the paper does."
)
_CHUNKS: Final = ".chunks"
_MOST_JOBS: Final = 256


@dataclass(frozen=True, slots=True)
class Report:
    """What a finished experiment leaves behind."""

    experiment: Experiment
    folder: Path
    claims: Sequence[Claim]
    figures: Sequence[Path]


def results_page(
    report: Report, rows: Sequence[Row], summary: Summary, timings: Sequence[Timing], scale: str
) -> str:
    """Write the page: what was run, the figure, the paper's sentences beside our numbers."""
    experiment = report.experiment
    parts = [
        f"# {experiment.title}",
        _NOT_PRIVATE,
        f"In the paper: {experiment.origin}.",
        _what_was_run(rows, summary, scale),
        *(f"![{experiment.title}]({path.name}.svg)" for path in report.figures),
        _legend(report),
        "## What is said or asked, and what we measured",
        _claims_table(report.claims),
    ]
    if experiment.tables:
        parts.append("## Numbers")
    for table in experiment.tables:
        parts += [table.caption, table.write(summary, timings)]
    parts.append(
        "Every repetition is in `results.csv`, means and deviations in `summary.csv`, times in "
        "`timings.csv`. The error of a method whose target is not matching is measured against "
        "matching all the same in `relative_error`."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def index_page(reports: Sequence[Report], out: Path, scale: str) -> str:
    """Write the page that leads to all others and counts their verdicts."""
    rows = []
    for report in reports:
        counts = Counter(claim.verdict for claim in report.claims)
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        link = f"[{report.experiment.name}]({report.folder.relative_to(out).as_posix()}/page.md)"
        rows.append([link, report.experiment.title, report.experiment.origin, verdicts])
    table = markdown_table(["experiment", "question", "in the paper", "sentences"], rows)
    parts = ("# Experiments", _NOT_PRIVATE, scale, _left_out(), table)
    return "\n\n".join(part for part in parts if part) + "\n"


def _what_was_run(rows: Sequence[Row], summary: Summary, scale: str) -> str:
    failed = sum(row.failed for row in summary.rows)
    counts = sorted({row.n + row.failed for row in summary.rows})
    repetitions = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    lines = [
        f"{scale} {len(rows)} releases, {repetitions} a point; {versions()}.",
        _left_out(),
    ]
    if failed:
        reasons = Counter(f"{row.method}: {row.note}" for row in rows if row.note)
        shown = "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
        lines.append(f"{failed} releases were refused: {shown}.")
    return "\n".join(line for line in lines if line)


def machine() -> str:
    """Name the class of machine."""
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        memory = f", {size / 2**30:.0f} GB of memory"
    return f"{platform.system()} on {platform.machine()}, {os.cpu_count()} processors{memory}"


def _left_out() -> str:
    """Name the methods and data sets that this installation cannot run."""
    absent = [arm.display for arm in missing_arms()]
    sets = [family for family in PAPER_SETS if not is_installed(family)]
    sentences = []
    if absent:
        sentences.append(f"Left out, because the method is not registered: {', '.join(absent)}.")
    if sets:
        names = ", ".join(map(name_set, sets))
        sentences.append(f"Left out, because the data are not installed (`make data`): {names}.")
    return " ".join(sentences)


def _legend(report: Report) -> str:
    if not report.figures:
        return ""
    links = ", ".join(f"[{path.name}.png]({path.name}.png)" for path in report.figures)
    return f"{report.experiment.figure_note} As pixels: {links}."


def _claims_table(claims: Sequence[Claim]) -> str:
    return markdown_table(
        ["said or asked", "measured", "verdict"],
        [[claim.words, claim.measured, f"**{claim.verdict}**"] for claim in claims],
    )


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
    if experiment.own_run is not None:
        origin = f"{settings.sentence} Command: `{settings.command(experiment.name)}`; {machine()}."
        claims, figures = experiment.own_run(
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
