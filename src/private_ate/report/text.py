"""What a release says of itself line by line, and how a terminal shows it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from private_ate.effects import (
    e_value,
    number_needed_to_treat,
    odds_ratio_interval,
    risk_ratio_interval,
    standard_error,
)
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
    cost_text,
    covered,
    factor_text,
    headline,
    intervals_of,
    number_text,
    percent,
    sampling_words,
    span_text,
    uncertainty,
    unit_of,
)
from private_ate.report.survival import curve_cells, survival_rows

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from private_ate.effects.of_releases import NumberNeeded
    from private_ate.release.release import Release

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


Rows = Iterator[tuple[str, str]]
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


def summary_rows(release: Release) -> Rows:
    """Yield the lines of a terminal's or a notebook's summary."""
    facts = release.facts
    if has_outcomes(release):
        yield "headline", release.effects[0].outcome
    yield from _several_rows(release) if release.arms else _number_rows(release)
    for view in by_outcome(release):
        named = f"{view.effects[0].outcome}: " if has_outcomes(release) else ""
        for line in equal_effects_lines(view):
            yield "equal effects", f"{named}{line}"
    hides_size = release.adjacency.startswith("add/remove")
    yield ("units (noisy n)" if hides_size else "units (n)"), f"{release.n:,}"
    yield from _public_rows(release)
    yield from ratio_rows(release)
    yield from survival_rows(release)
    yield "method", f"{release.method}, {release.level} level"
    yield "guarantee", release.guarantee
    yield "  neighbours", release.adjacency
    yield "  protects", _LEVELS["hidden size" if hides_size else release.level]
    meaning = "nothing: do not publish this number as private"
    if release.is_private:
        meaning = factor_text(release.level, float(release.epsilon), release.delta)
    yield "  means", meaning
    for note in facts.notes:
        yield "note", note


def _public_rows(release: Release) -> Rows:
    """Yield whom a release is about and how arms compare, as far as it says so."""
    facts = release.facts
    if facts.arms is not None:
        yield "arms", f"{facts.arms.treated:,} treated, {facts.arms.control:,} control"
    if facts.population is not None:
        yield "population", facts.population
    if facts.sampling is not None:
        yield "weights", sampling_words(facts.sampling)
    if facts.balance:  # public, at label level alone
        before, after = (max(abs(pair[side]) for pair in facts.balance.values()) for side in (0, 1))
        where = " over all pairs of arms" if facts.several_arms else ""
        sides = f"{before:.3f} before, {after:.3f} after weighting"
        yield "balance", f"largest standardised difference{where} {sides}"
    if facts.means is not None:
        yield "means", "{} if treated, {} if not".format(*_means(release))


def _number_rows(release: Release) -> Rows:
    """Yield the number of two arms, its error and its intervals."""
    facts, digits = release.facts, uncertainty(release)
    name = "difference in means"
    if release.estimand != "difference":
        known = facts.estimand if release.schema == 1 else release.estimand
        name = f"effect ({known.upper()})"
    yield name, f"{number_text(release.ate, digits)} {unit_of(release)}".rstrip()
    if assumption(release):
        yield "  assumes", assumption(release)
    error = standard_error(release)
    if error is not None:
        known = number_text(error, error)
        yield "standard error", f"{known} (half the interval over its normal quantile)"
    for of_noise, pair, scale, covers in intervals_of(release):
        kind = "noise interval" if of_noise else "interval"
        yield f"{percent(release)} {kind}", in_brackets(pair, scale)
        if covers is not None:
            yield "  covers", covers


def _several_rows(release: Release) -> Rows:
    """Yield what the tables of several arms leave to say."""
    path = release.facts.path
    if unit_of(release):
        yield "unit", unit_of(release)
    if assumption(release):
        yield "assumes", assumption(release)
    if covered(release):
        yield "intervals", f"cover {covered(release)}"
    if path is not None:
        yield "path", _PATHS.get(path, path)


def page_rows(release: Release, *, analyst: str = "", spent_before: float | None = None) -> Rows:
    """Yield the facts below the number of a page: whose data, which sizes, ratios, budget."""
    facts = release.facts
    version = "" if release.dataset_version is None else f"version {release.dataset_version}"
    named = ", ".join(text for text in (release.dataset, version) if text)
    if named:
        yield "data set", named
    asked = " ".join([release.released_at or "", f"by {analyst}" if analyst else ""]).strip()
    if asked:
        yield "asked for", asked
    yield "method", f"{release.method}, {release.level} level, private-ate {release.version}"
    yield "units", _sizes(release)
    yield "speaks of", facts.population or "all n units (ATE)"
    if facts.sampling is not None:
        yield "weights", sampling_words(facts.sampling)
    if facts.left_out_outcome:
        yield "left out", f"{facts.left_out_outcome:,} units without an outcome"
    if facts.means is not None and not release.arms:
        yield "mean outcome", "{} if all were treated, {} if none were".format(*_means(release))
    yield from ratio_rows(release)
    cost = cost_text(release)
    if spent_before is not None:
        cost += f"; ε = {spent_before:.6g} was spent on these data before"
    note = release.facts.ledger
    if note is not None:
        cost += f"; ε = {note.left:.6g} of the budget of {note.dataset} is left"
    yield "privacy cost", cost


def _sizes(release: Release) -> str:
    """Say how many units there are; of two arms in each, by its label where that is known."""
    arms, effective = release.facts.arms, release.facts.effective_arms
    text = f"{release.n:,}"
    if arms is None:
        return text
    control, treated = "control", "treated"
    if release.treatment is not None:
        column, labels = release.treatment.column, release.treatment.arms
        control, treated = (
            f"with {column} = {labels[0]} (control)",
            f"with {column} = {labels[-1]} (treated)",
        )
    text += f": {arms.treated:,} {treated}, {arms.control:,} {control}"
    if effective is None:
        return text
    return f"{text}; worth {effective.treated:,.0f} and {effective.control:,.0f} of equal weight"


def _means(release: Release) -> tuple[str, str]:
    """Return the means if all were treated and if none were."""
    means, error = release.facts.means, uncertainty(release)
    return ("", "") if means is None else (
        number_text(means.treated, error), number_text(means.control, error)
    )  # fmt: skip


def ratio_rows(release: Release) -> Rows:
    """Yield what follows from two arms of a binary outcome, with intervals and for nothing.

    The number needed to treat follows from the effect; ratios and the E-value need the means.
    """
    facts = release.facts
    if release.arms or not facts.is_binary:
        return
    if facts.means is not None:
        yield "risk ratio", _ratio(release, facts.risk_ratio, risk_ratio_interval(release))
        yield "odds ratio", _ratio(release, facts.odds_ratio, odds_ratio_interval(release))
    if release.estimand != "difference":  # which says nothing about treating anybody
        yield "needed to treat", needed_text(number_needed_to_treat(release), percent(release))
    if facts.means is not None and 0 < facts.means.control < 1:
        found = e_value(release)
        text = f"{found.estimate:.3g}"
        if found.limit is not None:
            text += f", {found.limit:.3g} for the interval's end nearer to no effect"
        yield "E-value", f"{text} (with the control risk taken as known)"


def _ratio(release: Release, ratio: float | None, interval: tuple[float, float] | None) -> str:
    if ratio is None:
        return "not available: the control risk is at its bound"
    if release.interval is None:
        return f"{ratio:.3g}; no interval was paid for"
    if interval is None:
        return f"{ratio:.3g}; no interval, as a risk is within its error of 0 or 1"
    return f"{ratio:.3g}, {percent(release)} interval {span_text(*interval)}"


def needed_text(found: NumberNeeded, share: str) -> str:
    """Say how many have to be treated for one event more or less."""
    if math.isinf(found.estimate):
        return "not available: the effect is zero"
    text = f"{abs(found.estimate):.3g} for one event {'more' if found.estimate > 0 else 'less'}"
    if found.interval is None:
        return f"{text}; no interval was paid for"
    if not found.holds_none:
        ends = sorted(abs(end) for end in found.interval)
        return f"{text}, {share} interval {span_text(*ends)}"
    fewer, more = found.interval
    rays = [
        f"{abs(end):.3g} or more for one event {word}"
        for end, word in ((more, "more"), (fewer, "less"))
        if not math.isinf(end)
    ]
    return f"{text}; the {share} interval holds no effect, so it is two rays: {', or '.join(rays)}"
