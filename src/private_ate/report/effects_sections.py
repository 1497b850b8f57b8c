"""Sections of a page that show the table of effects: contrasts, outcomes, subgroups, arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from private_ate.effects import monotone_means, risk_ratio, risk_ratio_interval
from private_ate.report.drawings import ForestMark, draw_curve, draw_forest, short_name
from private_ate.report.effects_table import (
    Cells,
    Scope,
    arm_cells,
    arms_in_order,
    contrast_cells,
    equal_effects_lines,
    has_outcomes,
    has_subgroups,
    marked_subgroup,
    mean_error,
    of_outcome,
    outcome_cells,
    shown_contrasts,
    subgroup_cells,
    subgroup_rows,
)
from private_ate.report.glance import span_text
from private_ate.report.markup import Markup, element, stacked
from private_ate.report.numbers import number_text, pair_text
from private_ate.report.parts import balance_table
from private_ate.report.words import assumption, headline, noun, percent

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.release.metadata import Effect, Pair

_MOST_PAIRS = 15  # other pairs that are drawn without being asked for, and tables of balance


def contrasts_part(
    release: Release, scope: Scope = "all", *, monotone: bool = False
) -> list[Markup]:
    """Return the contrasts as a picture and a table, the means, and notes."""
    parts = [element("p", headline(release), class_="soft")]
    if assumption(release):
        told = assumption(release)
        parts.append(element("p", f"{told[:1].upper()}{told[1:]}."))
    rows = shown_contrasts(release, scope)
    reference = release.arms[0].label
    first = [row for row in rows if row.against == reference]
    parts.append(_contrasts_figure(release, first, f"against {reference}"))
    others = [row for row in rows if row.against != reference]
    if others:
        figure = _contrasts_figure(release, others, "between the other arms")
        parts.append(_folded(figure, "The other pairs", fold=len(others) > _MOST_PAIRS))
    cells = contrast_cells(release, scope)
    names = [[f"{row[0]} against {row[1]}"] for row in cells.rows]
    table = phone_table("contrast", cells, names, 2, _caption(release, scope))
    parts.append(_folded(table, "All contrasts as a table", fold=len(rows) > _MOST_PAIRS))
    facts = release.facts
    covers = facts.interval_covers if release.interval else facts.noise_interval_covers
    if covers is not None:
        parts.append(element("p", f"The intervals cover {covers}."))
    parts += _means(release, monotone=monotone)
    return [*parts, *(element("p", f"Note: {note}.") for note in facts.notes)]


def _contrasts_figure(release: Release, rows: Sequence[Effect], of_what: str) -> Markup:
    names = [f"{short_name(row.arm)} against {short_name(row.against)}" for row in rows]
    return _forest(
        release, rows, names, f"Every {noun(release)} {of_what}", "all",
        f"Forest plot of {len(rows)} contrasts {of_what}",
    )  # fmt: skip


def _forest(
    release: Release,
    rows: Sequence[Effect],
    names: Sequence[str],
    title: str,
    at_once: str,
    describe: str,
) -> Markup:
    """Draw rows of the table, thin bars around those that cover ``at_once``."""
    paid = release.interval is not None
    marks = [
        ForestMark(
            name, row.estimate, row.interval or row.noise_interval,
            row.simultaneous if paid else None,
        )
        for name, row in zip(names, rows, strict=True)
    ]  # fmt: skip
    kind = "interval" if paid else "interval for the noise alone"
    thin = f", thin ones cover {at_once} at once" if paid else ""
    line = (
        f"{title}. Thick bars: {percent(release)} {kind}{thin}. The vertical line is no "
        f"{noun(release)}."
    )
    return element("figure", draw_forest(marks, describe=describe), element("figcaption", line))


def outcome_part(release: Release) -> list[Markup]:
    """Return the outcomes of a page as a table that fits a phone."""
    if not has_outcomes(release):
        return []
    cells = outcome_cells(release)
    names = cells.numbers.index(True)
    heads = [stacked(row[:names]) for row in cells.rows]
    caption = "Each in units of its own outcome."
    if release.interval is not None:
        caption += " Intervals “all at once” cover all rows of all outcomes together."
    return [element("h2", "Outcomes"), phone_table("outcome", cells, heads, names, caption)]


def subgroup_part(release: Release) -> list[Markup]:
    """Return the subgroups of a page: a forest plot, its table and the test of equal effects."""
    if not has_subgroups(release):
        return []
    rows = subgroup_rows(release)
    names = [_subgroup_name(release, row) for row in rows]
    cells = subgroup_cells(release)
    place = cells.numbers.index(True)
    heads = [
        stacked((*row[:place], *([f"{row[place]} units"] if row[place] else [])))
        for row in cells.rows
    ]
    caption = "In units of the outcome. Intervals “all at once” cover all rows together."
    parts = [
        element("h2", f"Subgroups{of_outcome(release, ': {}')}"),
        _forest(
            release, rows, names, f"The {noun(release)} in every subgroup", "all rows",
            f"Forest plot of {len(rows)} rows of subgroups",
        ),
        phone_table("subgroup", cells, heads, place + 1, caption),
    ]  # fmt: skip
    tests = equal_effects_lines(release)
    if tests:
        parts.append(element("p", f"Test of equal effects (Cochran): {'; '.join(tests)}."))
    return parts


def _subgroup_name(release: Release, row: Effect) -> str:
    name = short_name(marked_subgroup(release, row), 28)
    return f"{name}: {short_name(row.arm)}" if release.arms else name


def phone_table(
    kind: str, cells: Cells, names: Sequence[Sequence[Markup | str]], first: int, caption: str
) -> Markup:
    """Return a table that fits a phone: intervals of a row are below each other.

    ``names`` head the rows, ``first`` is the place of the number among the cells.
    """
    head = [
        element("th", kind, scope="col"),
        element("th", cells.head[first], scope="col", class_="number"),
        element("th", *stacked(cells.head[first + 1 :]), scope="col", class_="number"),
    ]
    rows = [
        element(
            "tr",
            element("th", *name, scope="row"),
            element("td", row[first], class_="number"),
            element("td", *stacked(row[first + 1 :]), class_="number"),
        )
        for name, row in zip(names, cells.rows, strict=True)
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
    )


def _caption(release: Release, scope: Scope) -> str:
    if release.interval is None:
        return "In units of the outcome. The intervals hold the privacy noise alone."
    facts = release.facts
    name = "all pairs" if scope == "all" else "against the reference"
    factor = facts.simultaneous_factor.get(name)
    wider = "" if factor is None else f", {factor:.3g} times as wide"
    which = "all pairs of arms" if scope == "all" else "all arms with the reference"
    return (
        f"In units of the outcome. Intervals “all at once” cover {which} together with "
        f"{percent(release)} confidence{wider}."
    )


def _folded(part: Markup, title: str, *, fold: bool) -> Markup:
    return element("details", element("summary", title), part) if fold else part


def _means(release: Release, *, monotone: bool) -> list[Markup]:
    """Return the means with their intervals, joined to a curve if the arms are doses."""
    arms = [arm for arm in arms_in_order(release) if arm.mean is not None]
    if len(arms) < len(release.arms):
        return []
    error = mean_error(release)
    marks = [
        ForestMark(
            f"{short_name(arm.label, 28)}: {number_text(arm.mean or 0.0, error)}", arm.mean or 0.0,
            arm.interval or arm.noise_interval,
        )
        for arm in arms
    ]  # fmt: skip
    ends = "; ".join(
        f"{mark.name} ({pair_text(mark.inner, error)})" for mark in marks if mark.inner
    )
    told = "Mean outcome if everybody were given an arm, with its interval"
    if not release.facts.doses:
        drawn = draw_forest(marks, describe=f"{told}: {ends}", zero=False)
        return [element("figure", drawn, element("figcaption", f"{told}."))]
    curve = list(monotone_means(release).values()) if monotone else None
    drawn = draw_curve(marks, curve, describe=f"Means by rising dose: {ends}")
    line = f"{told}, from the lowest dose to the highest."
    if curve is not None:
        line += " Dashed: the nearest curve that never turns, by the means' variances."
    return [element("figure", drawn, element("figcaption", line))]


def arms_part(release: Release) -> list[Markup]:
    """Return sizes, means and, of a binary outcome, risk ratios, as a table."""
    facts = release.facts
    cells = arm_cells(release)
    extra = [
        (f"worth {worth:,.0f} of equal weight" if worth is not None else "")
        for worth in (facts.several_effective.get(arm.label) for arm in release.arms)
    ]
    head = [element("th", name, scope="col", class_="number" if is_number else "")
            for name, is_number in zip(cells.head, cells.numbers, strict=True) if name]  # fmt: skip
    rows = []
    for row, worth in zip(cells.rows, extra, strict=True):
        *held, mark = row
        told = ", ".join(text for text in (mark, worth) if text)
        first = element("th", held[0], *_small(told), scope="row")
        rows.append(
            element("tr", first, *(element("td", text, class_="number") for text in held[1:]))
        )
    table = element(
        "table",
        element("caption", "The arms."),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
    )
    return [table, *_ratios(release)]


def _small(text: str) -> list[Markup]:
    return [element("br"), element("span", text, class_="soft")] if text else []


def _ratios(release: Release) -> list[Markup]:
    facts = release.facts
    if not facts.is_binary or any(arm.mean is None for arm in release.arms):
        return []
    reference = release.arms[0].label
    listed = [f"{arm.label} {_ratio(release, arm.label, reference)}" for arm in release.arms[1:]]
    return [element("p", f"Risk ratios against {reference}: {', '.join(listed)}.")]


def _ratio(release: Release, arm: str, against: str) -> str:
    text = f"{risk_ratio(release, arm=arm, against=against):.3g}"
    ends = risk_ratio_interval(release, arm=arm, against=against)
    return text if ends is None else f"{text} ({percent(release)} interval {span_text(*ends)})"


def spread_part(release: Release) -> list[Markup]:
    """Return the love plot of the greatest differences over pairs, and those of pairs, folded."""
    facts = release.facts
    return balance_parts(facts.balance, facts.arm_balance)


def balance_parts(
    balance: Mapping[str, Pair], by_arm: Mapping[str, Mapping[str, Pair]]
) -> list[Markup]:
    """Return the greatest differences over pairs of arms, and those of pairs, folded."""
    if not balance:
        return []
    parts = [balance_table(balance, "between arms, the greatest over all pairs")]
    labels = list(by_arm)
    pairs = list(combinations(labels, 2))
    if len(pairs) > _MOST_PAIRS:
        pairs = [pair for pair in pairs if pair[0] == labels[0]]
    for against, arm in pairs:
        first, second = by_arm[arm], by_arm[against]
        differences = {
            name: (first[name][0] - second[name][0], first[name][1] - second[name][1])
            for name in first.keys() & second.keys()
        }
        ordered = {name: differences[name] for name in first if name in differences}
        between = f"between {arm} and {against}"
        table = balance_table(ordered, between)
        parts.append(_folded(table, f"Balance {between}", fold=True))
    return parts


def plain_table(cells: Cells, caption: Markup | None) -> Markup:
    """Return a table for a notebook, as it is."""
    head = element("tr", *(element("th", name, scope="col") for name in cells.head))
    rows = [
        element("tr", *(element("td", text) for text in row))
        for row in cells.rows
    ]  # fmt: skip
    parts = [] if caption is None else [caption]
    return element("table", *parts, element("thead", head), element("tbody", *rows))
