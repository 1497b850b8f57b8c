"""Tables of results pages, and how names and numbers are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from private_ate.experiments.arms import arm_named
from private_ate.experiments.references import display_name
from private_ate.experiments.results import Summary, SummaryRow

__all__ = [
    "by_epsilon",
    "listing",
    "markdown_table",
    "name_arm",
    "name_set",
    "number",
    "pivot",
    "table_by_epsilon",
    "table_of_truth",
]

T = TypeVar("T")


def number(value: float | None) -> str:
    """Write an error or a time with two or three significant digits."""
    if value is None or math.isnan(value):
        return "–"
    if abs(value) < 1e-9 or 0.01 <= abs(value) < 100:
        return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:,.0f}"


def with_spread(mean: float | None, spread: float | None) -> str:
    """Write a mean, and what is known of its spread."""
    if spread is None or math.isnan(spread):
        return number(mean)
    return f"{number(mean)} ± {number(spread)}"


def listing(pairs: Iterable[tuple[str, float]]) -> str:
    """Write named numbers as one line."""
    return ", ".join(f"{name} {number(value)}" for name, value in pairs)


def name_set(family: str) -> str:
    """Return the display name of a data set."""
    return display_name(family)


def name_arm(label: str) -> str:
    """Return the display name of an arm."""
    return arm_named(label).display


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_escape, line)) + " |" for line in lines)


def _escape(entry: str) -> str:
    return entry.replace("|", "\\|").replace("\n", " ")


def pivot(
    rows: Iterable[T],
    index: Mapping[str, Callable[[T], str]],
    column: Callable[[T], str],
    entry: Callable[[T], str],
) -> str:
    """Write a table with a line for each value of the index and a column for each other value.

    Lines and columns come in the order in which they first appear; what is missing is a dash.
    """
    entries: dict[tuple[str, ...], dict[str, str]] = {}
    columns: dict[str, None] = {}
    for row in rows:
        line = tuple(name(row) for name in index.values())
        entries.setdefault(line, {})[column(row)] = entry(row)
        columns.setdefault(column(row))
    lines = [[*line, *(known.get(one, "–") for one in columns)] for line, known in entries.items()]
    return markdown_table([*index, *columns], lines)


def by_epsilon(row: SummaryRow) -> str:
    """Return the heading of the column of a row's ε."""
    return f"ε = {row.epsilon}"


def _method(row: SummaryRow) -> str:
    return name_arm(row.method) + (f", {row.parameters}" if row.parameters else "")


def table_by_epsilon(summary: Summary) -> str:
    """Write mean ± standard deviation of the relative error for N = 5, a column per ε."""
    return pivot(
        summary.where(neighbors=5).rows,
        {"data set": lambda row: name_set(row.dataset), "method": _method},
        by_epsilon,
        lambda row: with_spread(row.relative_error_mean, row.relative_error_sd),
    )


def table_of_truth(summary: Summary, *, by_size: bool = False) -> str:
    """Write mean ± standard deviation of the error against the truth, a column per ε or size."""
    index: dict[str, Callable[[SummaryRow], str]] = {"method": _method}
    if not by_size:
        index = {"data set": lambda row: name_set(row.dataset)} | index
    return pivot(
        summary.rows,
        index,
        (lambda row: name_set(row.dataset)) if by_size else by_epsilon,
        lambda row: with_spread(row.error_against_truth_mean, row.error_against_truth_sd),
    )
