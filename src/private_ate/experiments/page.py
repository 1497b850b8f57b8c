"""The results page of an experiment, and the index of several."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from private_ate.experiments.arms import missing_arms
from private_ate.experiments.catalogue import Experiment
from private_ate.experiments.claims import Claim, name_set
from private_ate.experiments.markdown import markdown_table
from private_ate.experiments.results import Row, Timing, versions
from private_ate.experiments.sources import PAPER_SETS, is_installed
from private_ate.experiments.summary import Summary

__all__ = ["Report", "index_page", "machine", "results_page"]

_NOT_PRIVATE = (
    "**Nothing on this page is private.** Every release was drawn from a seed and says "
    "`guarantee: none (seeded)`; the errors compare it with the records themselves. The data sets "
    "are public benchmarks, and their domains declare the observed ranges, as the paper does."
)


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
