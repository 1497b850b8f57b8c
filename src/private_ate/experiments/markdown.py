"""Summaries as Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from private_ate.experiments.claims import name_arm, name_set, number
from private_ate.experiments.findings import PAPER_SECONDS, budget_text, median_seconds
from private_ate.experiments.results import Summary, SummaryRow, Timing

__all__ = [
    "markdown_table",
    "table_by_epsilon",
    "table_by_size",
    "table_of_memory",
    "table_of_seconds",
    "table_of_ten_percent",
    "table_of_truth",
]


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(_escape(entry) for entry in line) + " |" for line in lines)


def table_by_epsilon(summary: Summary) -> str:
    """Write mean ± standard deviation of the relative error for N = 5, a column per ε."""
    return _pivot(
        summary.where(neighbors=5), lambda row: (row.relative_error_mean, row.relative_error_sd)
    )


def table_of_truth(summary: Summary) -> str:
    """Write mean ± standard deviation of the error against the truth, a column per ε."""
    return _pivot(summary, lambda row: (row.error_against_truth_mean, row.error_against_truth_sd))


def table_by_size(summary: Summary) -> str:
    """Write the mean error against the truth, a column per size."""
    header = ["method", *(name_set(dataset) for dataset in summary.datasets)]
    rows = [
        [name_arm(method), *(
            _cell(summary.where(method=method, dataset=dataset).rows,
                  lambda row: (row.error_against_truth_mean, row.error_against_truth_sd))
            for dataset in summary.datasets
        )]
        for method in summary.methods
    ]  # fmt: skip
    return markdown_table(header, rows)


def table_of_ten_percent(summary: Summary, error: Callable[[SummaryRow], float]) -> str:
    """Write the ε for an error of 10 %, a column per data set on which the error is known."""
    known = summary.select(lambda row: not math.isnan(error(row)))
    header = ["method", *(name_set(dataset) for dataset in known.datasets)]
    rows = [
        [
            name_arm(method),
            *(budget_text(known.where(method=method, dataset=d), error) for d in known.datasets),
        ]
        for method in known.methods
    ]
    return markdown_table(header, rows)


def table_of_seconds(timings: Sequence[Timing]) -> str:
    """Write median seconds a release, those of the paper in brackets."""
    seconds = median_seconds(timings)

    def entry(method: str, dataset: str) -> str:
        paper = PAPER_SECONDS.get(method, {}).get(dataset)
        said = "" if paper is None else f" ({number(paper)})"
        return number(seconds.get((method, dataset), math.nan)) + said

    return _timing_table(timings, entry)


def table_of_memory(timings: Sequence[Timing]) -> str:
    """Write the largest memory of a process that did nothing else, in megabytes."""
    peaks = {(timing.method, timing.dataset): timing.peak_megabytes for timing in timings}

    def entry(method: str, dataset: str) -> str:
        peak = peaks.get((method, dataset))
        return "–" if peak is None else f"{peak:.0f}"

    return _timing_table(timings, entry)


def _timing_table(timings: Sequence[Timing], entry: Callable[[str, str], str]) -> str:
    datasets = list(dict.fromkeys(timing.dataset for timing in timings))
    methods = list(dict.fromkeys(timing.method for timing in timings))
    return markdown_table(
        ["method", *map(name_set, datasets)],
        [[name_arm(method), *(entry(method, d) for d in datasets)] for method in methods],
    )


def _pivot(summary: Summary, value: Callable[[SummaryRow], tuple[float, float]]) -> str:
    epsilons = summary.values("epsilon")
    lines = dict.fromkeys((row.dataset, row.method, row.parameters) for row in summary.rows)
    header = ["data set", "method", *(f"ε = {epsilon}" for epsilon in epsilons)]
    rows = [
        [
            name_set(dataset),
            name_arm(method) + (f", {parameters}" if parameters else ""),
            *(
                _cell(
                    summary.where(
                        dataset=dataset, method=method, parameters=parameters, epsilon=epsilon
                    ).rows,
                    value,
                )
                for epsilon in epsilons
            ),
        ]
        for dataset, method, parameters in lines
    ]
    return markdown_table(header, rows)


def _cell(rows: Sequence[SummaryRow], value: Callable[[SummaryRow], tuple[float, float]]) -> str:
    if not rows:
        return "–"
    mean, deviation = value(rows[0])
    return number(mean) if math.isnan(deviation) else f"{number(mean)} ± {number(deviation)}"


def _escape(entry: str) -> str:
    return entry.replace("|", "\\|").replace("\n", " ")
