"""The summary that a terminal shows, in the shape statisticians know."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from private_ate.effects import standard_error
from private_ate.report.effects_table import (
    Cells,
    Scope,
    by_outcome,
    effect_tables,
    equal_effects_lines,
    has_outcomes,
    in_brackets,
)
from private_ate.report.phrasing import (
    assumption,
    compared_line,
    factor_text,
    headline,
    noise_error,
    number_text,
    sampling_words,
    uncertainty,
)
from private_ate.report.summary_table import ratio_rows
from private_ate.report.survival import curve_cells, survival_rows
from private_ate.settings import Facts

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from private_ate.release.release import Release

_WIDTH = 88
_LEVELS = {
    "label": "outcomes are private; covariates and treatment are public",
    "sample": "whole records are private; only n and the declared domain are public",
    "hidden size": "whole records and their number are private; the declared domain is public",
}
_PATHS = {
    "plain": "plain: arms compared as they are",
    "prognosis": "prognosis: adjusted by a private model of the outcome",
    "score": "score: adjusted by private models of the outcome and of each arm",
}


def summarize(release: Release, contrasts: Scope = "all") -> str:
    """Return the release as aligned plain text.

    Of three arms or more ``contrasts`` says which are shown and covered together: all pairs, or
    those against the reference.
    """
    rows = list(summary_rows(release))
    width = max(len(name) for name, _ in rows) + 2
    lines = [
        textwrap.fill(
            value, _WIDTH, initial_indent=name.ljust(width), subsequent_indent=" " * width
        )
        for name, value in rows
    ]
    top = [*_compared(release), *(textwrap.fill(text, _WIDTH) for text in _head(release))]
    tables = [_aligned(cells) for cells in _tables(release, contrasts)]
    return "\n".join([*top, *tables, *lines])


def _compared(release: Release) -> list[str]:
    """Return what was compared, in one line however long; nothing where that is not known."""
    return [line] if (line := compared_line(release)) else []


def _head(release: Release) -> list[str]:
    """Return the warnings and the title."""
    return [*(f"WARNING: {text}" for text in release.warnings), _title(release)]


def _tables(release: Release, contrasts: Scope) -> list[Cells]:
    """Return the tables of effects, and the curves of a time to an event."""
    curves = [curve_cells(release)] if release.curves else []
    return [*effect_tables(release, contrasts), *curves]


def _aligned(cells: Cells) -> str:
    """Return a table with aligned columns; one that is too wide has its numbers in lines below."""
    if cells.title:
        return f"{cells.title}\n{_aligned(replace(cells, title=''))}"
    table = [cells.head, *cells.rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if sum(widths) + 3 * (len(widths) - 1) <= _WIDTH:
        return "\n".join(
            "   ".join(
                text.rjust(width) if is_number else text.ljust(width)
                for text, width, is_number in zip(row, widths, cells.numbers, strict=True)
            ).rstrip()
            for row in table
        )
    texts = [place for place, is_number in enumerate(cells.numbers) if not is_number]
    return "\n".join(
        "  ".join(row[place] for place in texts if row[place])
        + "".join(
            f"\n    {name} {text}"
            for name, text, is_number in zip(cells.head, row, cells.numbers, strict=True)
            if is_number and text
        )
        for row in cells.rows
    )


def release_table(release: Release, contrasts: Scope = "all") -> Table | Group:
    """Return the release as a rich table, which wraps to the width of the terminal.

    Three arms or more have tables of arms and contrasts above it.
    """
    from rich.table import Table  # not needed for plain text

    title = "\n".join([*_compared(release), *_head(release)])
    tables = [_rich_table(cells) for cells in _tables(release, contrasts)]
    table = Table(
        title=None if tables else title, title_justify="left", show_header=False, box=None,
        pad_edge=False,
    )  # fmt: skip
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for name, value in summary_rows(release):
        table.add_row(name, value)
    if not tables:
        return table
    from rich.console import Group  # as above
    from rich.text import Text

    return Group(Text(title, style="italic"), *tables, table)


def _rich_table(cells: Cells) -> Table:
    from rich.table import Table  # as above

    table = Table(
        box=None, pad_edge=False, header_style="bold",
        title=cells.title or None, title_justify="left",
    )  # fmt: skip
    for name, is_number in zip(cells.head, cells.numbers, strict=True):
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in cells.rows:
        table.add_row(*row)
    return table


def _title(release: Release) -> str:
    name = headline(release).removesuffix(" (ATE)")
    return f"{name}, released by private-ate"


def summary_rows(release: Release) -> Iterator[tuple[str, str]]:
    """Yield name and value of each line of the summary."""
    facts = release.facts
    digits = uncertainty(release)
    if has_outcomes(release):
        yield "headline", release.effects[0].outcome
    yield from _several_rows(release) if release.arms else _number_rows(release, digits)
    for view in by_outcome(release):
        named = f"{view.effects[0].outcome}: " if has_outcomes(release) else ""
        for line in equal_effects_lines(view):
            yield "equal effects", f"{named}{line}"
    hides_size = release.adjacency.startswith("add/remove")
    yield ("units (noisy n)" if hides_size else "units (n)"), f"{release.n:,}"
    if facts.arms is not None:
        yield "arms", f"{facts.arms.treated:,} treated, {facts.arms.control:,} control"
    if facts.population is not None:
        yield "population", facts.population
    if facts.sampling is not None:
        yield "weights", sampling_words(facts.sampling)
    yield from _balance(facts)
    yield from _means(facts, digits)
    yield from ratio_rows(release)
    yield from survival_rows(release)
    yield "method", f"{release.method}, {release.level} level"
    yield "guarantee", release.guarantee
    yield "  neighbours", release.adjacency
    yield "  protects", _LEVELS["hidden size" if hides_size else release.level]
    yield from _meaning(release)
    for note in facts.notes:
        yield "note", note


def _number_rows(release: Release, digits: float) -> Iterator[tuple[str, str]]:
    """Yield the number of two arms, its error and its intervals."""
    facts = release.facts
    unit = "" if release.outcome is None or release.outcome.unit is None else release.outcome.unit
    yield _name(release), f"{number_text(release.ate, digits)} {unit}".rstrip()
    if assumption(release):
        yield "  assumes", assumption(release)
    error = standard_error(release)
    if error is not None:
        known = number_text(error, error)
        yield "standard error", f"{known} (half the interval over its normal quantile)"
    share = f"{100 * facts.confidence:g} %"
    if release.interval is not None:
        yield f"{share} interval", in_brackets(release.interval, digits)
        if facts.interval_covers is not None:
            yield "  covers", facts.interval_covers
    if release.noise_interval is not None:
        yield f"{share} noise interval", in_brackets(release.noise_interval, noise_error(release))
        if facts.noise_interval_covers is not None:
            yield "  covers", facts.noise_interval_covers


def _several_rows(release: Release) -> Iterator[tuple[str, str]]:
    """Yield what the tables of several arms leave to say."""
    facts = release.facts
    if release.outcome is not None and release.outcome.unit is not None:
        yield "unit", release.outcome.unit
    if assumption(release):
        yield "assumes", assumption(release)
    if release.interval is not None:
        if facts.interval_covers is not None:
            yield "intervals", f"cover {facts.interval_covers}"
    elif facts.noise_interval_covers is not None:
        yield "intervals", f"cover {facts.noise_interval_covers}"
    if facts.path is not None:
        yield "path", _PATHS.get(facts.path, facts.path)


def _balance(facts: Facts) -> Iterator[tuple[str, str]]:
    """Sum up the public balance table; only the label level has one."""
    if facts.balance:
        before, after = (max(abs(pair[side]) for pair in facts.balance.values()) for side in (0, 1))
        where = " over all pairs of arms" if facts.several_arms else ""
        sides = f"{before:.3f} before, {after:.3f} after weighting"
        yield "balance", f"largest standardised difference{where} {sides}"


def _means(facts: Facts, digits: float) -> Iterator[tuple[str, str]]:
    means = facts.means
    if means is not None:
        treated, control = (number_text(mean, digits) for mean in (means.treated, means.control))
        yield "means", f"{treated} if treated, {control} if not"


def _meaning(release: Release) -> Iterator[tuple[str, str]]:
    if not release.is_private:
        yield "  means", "nothing: do not publish this number as private"
        return
    yield "  means", factor_text(release.level, float(release.epsilon), release.delta)


def _name(release: Release) -> str:
    """Return what stands beside the number: an estimand by its letters, or what was compared."""
    if release.estimand == "difference":
        return "difference in means"
    known = release.facts.estimand if release.schema == 1 else release.estimand
    return f"effect ({known.upper()})"
