"""What a terminal shows of a release and of a plan, in the shape statisticians know."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from private_ate.report.effects_table import Cells, Scope, effect_tables
from private_ate.report.phrasing import compared_line, headline
from private_ate.report.summary import summary_rows
from private_ate.report.survival import curve_cells

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from private_ate.release import Release

WIDTH = 88


def summarize(release: Release, contrasts: Scope = "all") -> str:
    """Return the release as aligned plain text.

    Of three arms or more ``contrasts`` says which are shown and covered together: all pairs, or
    those against the reference.
    """
    compared, *others = _head(release)
    top = [compared, *(textwrap.fill(text, WIDTH) for text in others)]  # one line, however long
    shown = []
    for cells in _tables(release, contrasts):
        shown += [cells.title] if cells.title else []
        shown += _aligned(cells)
    rows = list(summary_rows(release))
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join([*filter(None, top), *shown, *named_lines(rows, width, WIDTH)])


def _head(release: Release) -> list[str]:
    """Return what was compared, empty where that is not known, the warnings and the title."""
    warnings = [f"WARNING: {text}" for text in release.warnings]
    title = f"{headline(release).removesuffix(' (ATE)')}, released by private-ate"
    return [compared_line(release), *warnings, title]


def _tables(release: Release, contrasts: Scope) -> list[Cells]:
    """Return the tables of effects, and the curves of a time to an event."""
    curves = [curve_cells(release)] if release.curves else []
    return [*effect_tables(release, contrasts), *curves]


def named_lines(rows: Iterable[tuple[str, str]], margin: int, width: int) -> list[str]:
    """Return texts beside their names, wrapped."""
    return [
        textwrap.fill(
            text, width, initial_indent=name.ljust(margin), subsequent_indent=" " * margin
        )
        for name, text in rows
    ]


def aligned_lines(table: Sequence[Sequence[str]], numbers: Sequence[bool], gap: int) -> list[str]:
    """Return lines with aligned columns, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        (" " * gap)
        .join(
            text.rjust(width) if is_number else text.ljust(width)
            for text, width, is_number in zip(row, widths, numbers, strict=True)
        )
        .rstrip()
        for row in table
    ]


def _aligned(cells: Cells) -> list[str]:
    """Return a table with aligned columns; one that is too wide has its numbers in lines below."""
    table = [cells.head, *cells.rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + 3 * (len(widths) - 1) <= WIDTH:
        return aligned_lines(table, cells.numbers, 3)
    lines = []
    for row in cells.rows:
        columns = list(zip(cells.head, row, cells.numbers, strict=True))
        lines.append("  ".join(text for _, text, is_number in columns if text and not is_number))
        lines += [f"    {name} {text}" for name, text, is_number in columns if text and is_number]
    return lines


def release_table(release: Release, contrasts: Scope = "all") -> Table | Group:
    """Return the release as a rich table, which wraps to the width of the terminal.

    Three arms or more have tables of arms and contrasts above it.
    """
    from rich.console import Group  # not needed for plain text
    from rich.table import Table  # as above
    from rich.text import Text  # as above

    title = "\n".join(filter(None, _head(release)))
    tables = []
    for cells in _tables(release, contrasts):
        table = Table(
            box=None, pad_edge=False, header_style="bold",
            title=cells.title or None, title_justify="left",
        )  # fmt: skip
        for name, is_number in zip(cells.head, cells.numbers, strict=True):
            table.add_column(name, justify="right" if is_number else "left", overflow="fold")
        for row in cells.rows:
            table.add_row(*row)
        tables.append(table)
    summary = Table(
        title=None if tables else title, title_justify="left", show_header=False, box=None,
        pad_edge=False,
    )  # fmt: skip
    summary.add_column(no_wrap=True, style="bold")
    summary.add_column(overflow="fold")
    for name, value in summary_rows(release):
        summary.add_row(name, value)
    return Group(Text(title, style="italic"), *tables, summary) if tables else summary
